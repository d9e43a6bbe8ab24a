"""A simulated member of a group of the consumer protocol (KIP-848), whose coordinator assigns partitions.

A heartbeat brings what the member is to have. It gives back what it has too much, after a last commit, and
reads on in the others. Source: ConsumerMembershipManager and ConsumerHeartbeatRequestManager.
"""

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_records import OwnedPartitions, Partitions
from kview.simulate.groups.consumer_results import ConsumerHeartbeat, ConsumerHeartbeatResult
from kview.simulate.metadata import TopicPartition
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.member import HOST, MAX_POLL_INTERVAL_MS, Phase, SimulatedMember
from kview.simulate.traffic.reader import Progress
from kview.simulate.world import GroupSpec

JOINS, LEAVES = 0, -1
"""Epochs of a member that is not in the group."""

_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class IncrementalMember(SimulatedMember):
    """A member whose `generation` is its member epoch, and which chooses its own id."""

    def __init__(self, cluster: Connections, spec: GroupSpec, number: int, progress: Progress) -> None:
        super().__init__(cluster, spec, number, progress)
        self.member_id = f"{self.client_id}-{self._random.getrandbits(64):016x}"
        self.generation = JOINS
        self._waits = False
        """Whether a heartbeat is under way."""
        self._has_news = True
        """Whether the coordinator does not know yet what the member has."""

    def _given_up(self) -> None:
        super()._given_up()
        self._waits, self._has_news = False, True

    def _join(self) -> None:
        if not self._waits:
            self.phase = Phase.JOINING
            self._has_news = True
            self._beat()

    def _say_goodbye(self) -> None:
        request = ConsumerHeartbeat(self.spec.name, self.member_id, LEAVES, self.client_id, HOST)
        self._link.coordinator().consumer_heartbeat(request, lambda result: None)

    def _beat(self) -> None:
        if self._waits:
            return
        attempt, joins, tells = self._attempt, self.generation == JOINS, self._has_news
        self._waits, self._has_news = True, False

        def done(result: ConsumerHeartbeatResult) -> None:
            if attempt == self._attempt:
                self._later(self._answered, result)

        self._link.coordinator().consumer_heartbeat(
            ConsumerHeartbeat(
                self.spec.name,
                self.member_id,
                self.generation,
                self.client_id,
                HOST,
                rebalance_timeout_ms=MAX_POLL_INTERVAL_MS if joins else -1,
                topics=self.spec.topics if joins else None,
                owned=self._owned() if tells else None,
            ),
            done,
        )

    def _owned(self) -> Partitions:
        """Return what the member has, by topic id."""
        names = self._cluster.image(self._link.broker).topic_names
        ids = {name: topic_id for topic_id, name in names.items()}
        owned: dict[bytes, set[int]] = {}
        for topic, partition in self._reader.owned:
            if topic in ids:
                owned.setdefault(ids[topic], set()).add(partition)
        return {topic_id: frozenset(numbers) for topic_id, numbers in owned.items()}

    def _answered(self, result: ConsumerHeartbeatResult) -> None:
        self._waits = False
        code = result.error_code
        if code is not ErrorCode.NONE:
            self._has_news = True
            if self.phase is Phase.JOINING:
                self.phase = Phase.OUTSIDE  # The next step will try again.
            self._heed(code)
            return
        self.generation = result.member_epoch
        self._next_us["heartbeat"] = self._kernel.now_us + result.heartbeat_interval_ms * 1000
        if self.phase is Phase.JOINING:
            self.phase = Phase.ASSIGNED
            self._next_us["commit"] = self._kernel.now_us + self.spec.commit_interval_ms * 1000
        if result.assignment is not None:
            self._reconcile(result.assignment)

    def _reconcile(self, assignment: OwnedPartitions) -> None:
        """Give back what the member is not to have, begin with what is new, and say so at once."""
        names = self._cluster.image(self._link.broker).topic_names
        wanted: list[TopicPartition] = sorted(
            (names[topic_id], number)
            for topic_id, numbers in assignment.items()
            if topic_id in names
            for number in numbers
        )
        kept = [pair for pair in self._reader.owned if pair in wanted]
        if len(kept) < len(self._reader.owned):
            self._read()
            self._reader.finish()
            self._commit()
        if not self._reader.owned:
            self._reader.rest()
        self._reader.keep([*kept, *(pair for pair in wanted if pair not in kept)])
        self._has_news = True
        self._beat()
        if self._reader.unplaced():
            self._fetch_positions()

    def _heed(self, code: ErrorCode) -> None:
        if code in _FENCED:
            self._attempt += 1
            self._waits = self._committing = False
            self._reader.begin([])
            self.generation, self.phase = JOINS, Phase.OUTSIDE
        elif code is not ErrorCode.STALE_MEMBER_EPOCH:  # of a commit, which is tried again
            super()._heed(code)
