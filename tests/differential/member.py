"""A member of a classic consumer group that does only what a script tells it, one request after another."""

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

from kview.simulate.groups.consumer_protocol import (
    CONSUMER,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from tests.differential.lab import Answer, ask
from tests.differential.play import Play
from tests.serve import questions as q

SESSION_MS = 10_000
REBALANCE_MS = 60_000
JOIN, SYNC, BEAT, LEAVE, COMMIT, FETCH, DESCRIBE = 5, 3, 3, 3, 7, 5, 5
"""The versions of the requests."""

MEMBER_ID_REQUIRED = 79
NO_GENERATION = -1
DEAD = "Dead"


class Member:
    """A member named `name`. Requests go to the group's coordinator, which is looked up each time."""

    def __init__(self, play: Play, group: str, name: str, topic: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = NO_GENERATION
        self.leads = False
        self.assigned: list[int] = []
        self.members: list[str] = []
        self._play = play
        self._group = group
        self._topic = topic

    def join(self) -> Answer:
        """Send JoinGroup. A new member first gets its id."""
        if not self.member_id:
            answer = self._ask(self._join_request())
            assert answer.error_code == MEMBER_ID_REQUIRED, answer
            self.member_id = answer.member_id
        return self._play.lab.send(coordinator(self._play, self._group), self._join_request())

    def joined(self, answer: Answer) -> str:
        """Wait for the answer to a join, and return words for it."""
        self._play.until(answer.arrived, f"{self.name} has joined")
        found = answer.message()
        if found.error_code:
            return f"error {found.error_code}"
        self.generation, self.leads = found.generation_id, found.leader == self.member_id
        self.members = [m.member_id for m in found.members]
        role = f"leads {len(self.members)}" if self.leads else "follows"
        return f"{self.name} {role}, generation {self.generation}, {found.protocol_name}"

    def sync(self, shares: Mapping[str, Sequence[int]] | None = None) -> Answer:
        """Send SyncGroup. The leader passes the partitions of each member id."""
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(
                version=SYNC, member_id=member, assignment=encode_assignment({self._topic: list(partitions)})
            )
            for member, partitions in (shares or {}).items()
        ]
        request = SyncGroupRequest(
            version=SYNC,
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=None,
            assignments=assignments,
        )
        return self._play.lab.send(coordinator(self._play, self._group), request)

    def synced(self, answer: Answer) -> str:
        """Wait for the answer to a sync, and return words for it."""
        self._play.until(answer.arrived, f"{self.name} has synced")
        found = answer.message()
        if found.error_code:
            return f"error {found.error_code}"
        self.assigned = [partition for _, partition in decode_assignment(bytes(found.assignment))]
        return f"{self.name} has {self.assigned}"

    def beat(self) -> int:
        """Send a heartbeat, and return its error number."""
        request = HeartbeatRequest(
            version=BEAT,
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=None,
        )
        return int(self._ask(request).error_code)

    def leave(self) -> int:
        """Leave the group, and return the error number."""
        identity = LeaveGroupRequest.MemberIdentity(
            version=LEAVE, member_id=self.member_id, group_instance_id=None
        )
        answer = self._ask(LeaveGroupRequest(version=LEAVE, group_id=self._group, members=[identity]))
        return int(answer.error_code or answer.members[0].error_code)

    def commit(self, offset: int, partition: int = 0) -> int:
        """Commit an offset, and return the error number."""
        return commit(
            self._play, self._group, self._topic, offset, partition, self.generation, self.member_id
        )

    def _join_request(self) -> Any:
        subscription = encode_subscription(Subscription((self._topic,), {}))
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            version=JOIN, name="range", metadata=subscription
        )
        return JoinGroupRequest(
            version=JOIN,
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type=CONSUMER,
            protocols=[protocol],
        )

    def _ask(self, request: Any) -> Any:
        return ask(self._play.lab, coordinator(self._play, self._group), request)


def coordinator(play: Play, group: str) -> int:
    """Wait until the group has a coordinator that answers, and return it."""

    def found() -> int:
        error, broker = q.find_coordinator(play.at(play.witness), group)
        return 0 if error or committed_answer(play, broker, group, []).error_code else broker + 1

    return play.until(found, f"{group} has a coordinator") - 1


def commit(
    play: Play,
    group: str,
    topic: str,
    offset: int,
    partition: int = 0,
    generation: int = NO_GENERATION,
    member_id: str = "",
) -> int:
    """Commit an offset, by default as a tool that is no member, and return the error number."""
    per_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    row = per_topic.OffsetCommitRequestPartition(
        version=COMMIT,
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=-1,
        committed_metadata="",
    )
    request = OffsetCommitRequest(
        version=COMMIT,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        topics=[per_topic(version=COMMIT, name=topic, partitions=[row])],
    )
    answer = ask(play.lab, coordinator(play, group), request)
    return int(answer.topics[0].partitions[0].error_code)


def committed(play: Play, group: str, topic: str, partition: int = 0) -> int:
    """Return the committed offset, or −1."""
    answer = committed_answer(play, coordinator(play, group), group, [(topic, partition)])
    return int(answer.topics[0].partitions[0].committed_offset)


def committed_answer(play: Play, broker: int, group: str, partitions: Sequence[tuple[str, int]]) -> Any:
    """Return the answer to OffsetFetch."""
    per_topic = OffsetFetchRequest.OffsetFetchRequestTopic
    topics = [per_topic(version=FETCH, name=name, partition_indexes=[number]) for name, number in partitions]
    return ask(play.lab, broker, OffsetFetchRequest(version=FETCH, group_id=group, topics=topics))


def described(play: Play, group: str, names: Mapping[str, str]) -> str:
    """Return words for a group's state and its members' partitions. `names` are by member id.

    Kafka's answer comes from what the coordinator has committed. So a group that has members is asked about
    again as long as it is dead.
    """
    request = DescribeGroupsRequest(version=DESCRIBE, groups=[group], include_authorized_operations=False)

    def committed_group() -> Any:
        found = ask(play.lab, coordinator(play, group), request).groups[0]
        return None if names and found.group_state == DEAD else found

    found = play.until(committed_group, f"{group} is committed")
    shares = {
        names.get(m.member_id, "?"): [p for _, p in decode_assignment(bytes(m.member_assignment))]
        for m in found.members
    }
    each = ", ".join(f"{name} {share}" for name, share in sorted(shares.items()))
    return f"{found.group_state} {found.protocol_data} {each}".rstrip()
