"""A classic consumer group as its coordinator sees it. Source: Kafka's ClassicGroup."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_protocol import decode_subscription
from kview.simulate.groups.records import GroupKey, GroupValue, MemberValue, OffsetValue
from kview.simulate.groups.results import (
    GroupProtocol,
    JoinDone,
    JoinedMember,
    JoinResult,
    SyncDone,
    SyncResult,
    refusal_of,
)
from kview.simulate.kernel import Timer
from kview.wire.primitives import MalformedBytes


class GroupState(StrEnum):
    """The states of a classic group, spelled as in DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Member:
    """A member of a group.

    `join_done` is set while the member waits for the answer to JoinGroup, `sync_done` while it waits for the
    answer to SyncGroup.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    protocols: tuple[GroupProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    assignment: bytes = b""
    is_new: bool = False
    """True from the member's first JoinGroup until the answer. In this time the wait is limited, because the
    client may have given up."""
    join_done: JoinDone | None = None
    sync_done: SyncDone | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's subscription bytes for this protocol, empty if the member does not offer it."""
        return next((offered.metadata for offered in self.protocols if offered.name == protocol), b"")

    def answer_join(self, result: JoinResult) -> None:
        """Answer the waiting JoinGroup, if there is one."""
        done, self.join_done = self.join_done, None
        if done is not None:
            done(result)

    def answer_sync(self, result: SyncResult) -> None:
        """Answer the waiting SyncGroup, if there is one."""
        done, self.sync_done = self.sync_done, None
        if done is not None:
            done(result)


@dataclass(slots=True)
class Group:
    """A group, with its members in the order they joined."""

    name: str
    state: GroupState = GroupState.EMPTY
    before_rebalance: GroupState = GroupState.EMPTY
    """The state before the current rebalance began."""
    state_since_ms: int = 0
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Group instance id → member id."""
    pending_members: dict[str, Timer] = field(default_factory=dict)
    """Member ids assigned with MEMBER_ID_REQUIRED that have not joined yet, with their expiry timers."""
    pending_sync: dict[str, None] = field(default_factory=dict)
    """Members of the new generation that have not sent SyncGroup yet, as an ordered set."""
    new_member_added: bool = False
    rebalance_timer: Timer | None = None
    sync_timer: Timer | None = None
    offsets: dict[tuple[str, int], OffsetValue] = field(default_factory=dict)
    """(topic, partition) → committed offset."""

    @property
    def empty(self) -> bool:
        """Whether the group has no members."""
        return self.state is GroupState.EMPTY

    def enter(self, state: GroupState, now_ms: int) -> None:
        """Change to `state` at `now_ms`."""
        if state is GroupState.PREPARING_REBALANCE:
            self.before_rebalance = self.state
        self.state = state
        self.state_since_ms = now_ms

    def add(self, member: Member) -> None:
        """Add a member. The first member becomes the leader."""
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member.

        If the member was the leader, the first member that waits in JoinGroup becomes the leader. If none
        waits there, the first member does.
        """
        member = self.members.pop(member_id)
        self.pending_sync.pop(member_id, None)
        if self.static_members.get(member.group_instance_id or "") == member_id:
            del self.static_members[member.group_instance_id or ""]
        if self.leader == member_id:
            self.leader = None
            self.elect_leader()

    def elect_leader(self) -> bool:
        """Make sure that the leader waits in JoinGroup, and return False if no member waits there.

        A leader that does not wait is replaced by a member that does.
        """
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.join_done is not None:
            return True
        joined = next((m.member_id for m in self.members.values() if m.join_done is not None), None)
        if joined is not None:
            self.leader = joined
        elif self.leader is None:
            self.leader = next(iter(self.members), None)
        return joined is not None

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these protocols is compatible with the current members."""
        offered = set(names)
        if not self.members:
            return bool(protocol_type) and bool(offered)
        return self.protocol_type == protocol_type and bool(offered & self._common_protocols())

    def _common_protocols(self) -> set[str]:
        sets = [{offered.name for offered in member.protocols} for member in self.members.values()]
        return set.intersection(*sets)

    def vote(self) -> str:
        """Return the next generation's protocol.

        Each member votes for the first of its protocols that all members support.
        """
        common = self._common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(offered.name for offered in member.protocols if offered.name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def all_joined(self) -> bool:
        """Return whether every member waits in JoinGroup and every assigned member id has been used."""
        return not self.pending_members and all(m.join_done is not None for m in self.members.values())

    def rebalance_timeout_ms(self) -> int:
        """Return the longest rebalance timeout among the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Return the members as the leader's JoinGroup answer lists them."""
        return tuple(
            JoinedMember(m.member_id, m.group_instance_id, m.metadata(self.protocol))
            for m in self.members.values()
        )

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that the members read. A subscription that cannot be decoded counts as none."""
        topics: set[str] = set()
        for member in self.members.values():
            for protocol in member.protocols:
                try:
                    topics.update(decode_subscription(protocol.metadata).topics)
                except MalformedBytes:
                    continue
        return frozenset(topics)

    def refusal_of(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return why a request of this member is refused, or NONE."""
        return refusal_of(self.members, self.static_members, member_id, group_instance_id)

    def changes(self) -> Iterator[tuple[GroupKey, GroupValue]]:
        """Yield the group as changes for the log. A group of generation 0 has none: it only has offsets, or
        the log has its first record, without members."""
        if self.generation > 0:
            yield GroupKey(self.name), self.value()

    def tombstones(self) -> Iterator[tuple[GroupKey, None]]:
        """Yield the changes that delete the group from the log."""
        yield GroupKey(self.name), None

    def value(self) -> GroupValue:
        """Return the group in the form in which the log stores it."""
        return GroupValue(
            self.protocol_type,
            self.generation,
            self.protocol,
            self.leader,
            self.state_since_ms,
            tuple(
                MemberValue(
                    m.member_id,
                    m.group_instance_id,
                    m.client_id,
                    m.client_host,
                    m.rebalance_timeout_ms,
                    m.session_timeout_ms,
                    m.metadata(self.protocol),
                    m.assignment,
                )
                for m in self.members.values()
            ),
        )

    def load(self, value: GroupValue) -> None:
        """Restore the group from the log. Its state is Stable if it has members, else Empty."""
        self.protocol_type = value.protocol_type
        self.generation = value.generation
        self.protocol = value.protocol
        self.leader = value.leader
        self.state = GroupState.STABLE if value.members else GroupState.EMPTY
        self.state_since_ms = value.state_since_ms
        for m in value.members:
            offered = (GroupProtocol(value.protocol or "", m.subscription),)
            self.add(
                Member(
                    m.member_id,
                    m.group_instance_id,
                    m.client_id,
                    m.client_host,
                    offered,
                    m.session_timeout_ms,
                    m.rebalance_timeout_ms,
                    m.assignment,
                )
            )
