"""The controllers' side of AddRaftVoter and RemoveRaftVoter, which change who votes in the quorum (KIP-853).

A controller of the simulated cluster that does not vote any more goes on as an observer, and can vote again.
Nodes that are not part of the cluster answer nobody.

Sources: org.apache.kafka.raft's KafkaRaftClient, AddVoterHandler and RemoveVoterHandler.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.releases import Release
from kview.simulate.results import AdminResult
from kview.simulate.uuids import in_base64, without_dash

LISTENER = "CONTROLLER"
"""The listener of controllers (Kafka's `controller.listener.names`)."""
NO_DIRECTORY = bytes(16)
OK, LATE = AdminResult(ErrorCode.NONE), AdminResult(ErrorCode.REQUEST_TIMED_OUT)
LAGGING = "Aborted add voter operation for {} since it is lagging behind"
NOBODY = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"


class Voter(NamedTuple):
    """A controller, and the 16 bytes of the UUID of its metadata directory."""

    id: int
    directory: bytes

    @property
    def is_valid(self) -> bool:
        return self.id >= 0 and self.directory != NO_DIRECTORY


def directory_id(cluster_id: str, node: int) -> bytes:
    """Return the UUID of a node's metadata directory, which is made of what names the node."""
    hashed = bytearray(sha1(f"{cluster_id}/{node}".encode(), usedforsecurity=False).digest()[:16])
    hashed[6], hashed[8] = hashed[6] & 0x0F | 0x50, hashed[8] & 0x3F | 0x80  # It looks like version 5.
    return without_dash(bytes(hashed))


class VoterChanges:
    """Changes the voters, one at a time."""

    def __init__(self, metadata: MetadataLog, quorum: Quorum, release: Release) -> None:
        self._release = release
        self._metadata = metadata
        self._quorum = quorum

    def add(
        self, cluster_id: str | None, voter: Voter, listeners: Mapping[str, tuple[str, int]]
    ) -> AdminResult:
        """Let a controller vote. `listeners` has the host and port of each of its listeners.

        Only the names of the listeners count: simulated controllers have no ports to be reached at.
        """
        wrong = self._wrong_cluster(cluster_id)
        if wrong is not None:
            return wrong
        if not voter.is_valid:
            return AdminResult(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
        if LISTENER not in listeners:
            endpoints = ", ".join(
                f"ListenerName({name})={host}/<unresolved>:{port}"
                for name, (host, port) in sorted(listeners.items())
            )
            why = (
                f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{endpoints}}}))"
                f" for the default listener ListenerName({LISTENER})"
            )
            return AdminResult(ErrorCode.INVALID_REQUEST, why)
        if voter.id in self._quorum.voters:
            named, voters = self._named(voter), self._voters()
            why = f"The voter id for {named} is already part of the set of voters {voters}."
            return AdminResult(ErrorCode.DUPLICATE_VOTER, why)
        node = self._quorum.nodes.by_id.get(voter.id)
        if node is None or not node.is_controller or not node.running:
            return AdminResult(ErrorCode.REQUEST_TIMED_OUT, NOBODY)
        if voter != self._voter(voter.id) or not self._quorum.keeps_up(voter.id):
            return AdminResult(ErrorCode.REQUEST_TIMED_OUT, LAGGING.format(self._named(voter)))
        return self._change([*self._quorum.voters, voter.id])

    def remove(self, cluster_id: str | None, voter: Voter) -> AdminResult:
        """Let a controller vote no longer. The last voter stays."""
        wrong = self._wrong_cluster(cluster_id)
        if wrong is not None:
            return wrong
        if not voter.is_valid:
            return AdminResult(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
        voters = self._quorum.voters
        if voter.id not in voters or voter != self._voter(voter.id) or len(voters) == 1:
            why = f"Cannot remove voter {self._named(voter)} from the set of voters {self._voters()}"
            return AdminResult(ErrorCode.VOTER_NOT_FOUND, why)
        return self._change([v for v in voters if v != voter.id])

    def _change(self, voters: Sequence[int]) -> AdminResult:
        return OK if self._quorum.change_voters(sorted(voters)) else LATE

    def _wrong_cluster(self, cluster_id: str | None) -> AdminResult | None:
        own = self._metadata.image.cluster_id
        if cluster_id in (None, own):
            return None
        why = f'The given id "{cluster_id}" doesn\'t match the cluster id "{own}"'
        return AdminResult(ErrorCode.INCONSISTENT_CLUSTER_ID, why)

    def _voter(self, node: int) -> Voter:
        return Voter(node, directory_id(self._metadata.image.cluster_id, node))

    def _named(self, voter: Voter) -> str:
        directory = in_base64(voter.directory)
        if self._release.optional_directories:
            directory = f"Optional[{directory}]"
        return f"ReplicaKey(id={voter.id}, directoryId={directory})"

    def _voters(self) -> str:
        return f"[{', '.join(self._named(self._voter(voter)) for voter in self._quorum.voters)}]"
