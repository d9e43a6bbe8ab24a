"""A group of the consumer protocol as its coordinator sees it. Source: Kafka's ConsumerGroup.

A group changes only by `replay`, with the changes that are written to the log. So a new coordinator, which
replays the log, has the same group.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_protocol import CONSUMER
from kview.simulate.groups.consumer_records import (
    ConsumerChange,
    ConsumerKey,
    ConsumerValue,
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberMetadata,
    MemberState,
    OwnedPartitions,
    Partitions,
    RegexKey,
    RegexValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from kview.simulate.groups.records import OffsetValue
from kview.simulate.groups.results import refusal_of

FIRST_EPOCH = 1
"""The epoch of a new group and of its empty target assignment, which are in no record."""
LEFT_EPOCH = -1
AWAY_EPOCH = -2
"""The epoch of a static member that has left and will come back."""


class ConsumerGroupState(StrEnum):
    """The states of a group of the consumer protocol, spelled as in ConsumerGroupDescribe."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerMember(NamedTuple):
    """A member: what it has said about itself, and what it has."""

    member_id: str
    metadata: MemberMetadata = MemberMetadata()
    current: CurrentValue = CurrentValue()

    def reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has what the target assignment of this epoch gives it."""
        return self.current.state is MemberState.STABLE and self.current.epoch == epoch


@dataclass(slots=True)
class ConsumerGroup:
    """A group, with its members in the order they joined."""

    name: str
    offsets: dict[tuple[str, int], OffsetValue] = field(default_factory=dict)
    """(topic, partition) → committed offset."""
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    target_epoch: int = FIRST_EPOCH
    target_calculated_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Group instance id → member id."""
    targets: dict[str, Partitions] = field(default_factory=dict)
    """Member id → its part of the target assignment."""
    regexes: dict[str, RegexValue] = field(default_factory=dict)
    """Regular expression → what it matches."""
    owners: dict[tuple[bytes, int], str] = field(default_factory=dict)
    """(topic id, partition) → the member that has it, or has not revoked it yet."""
    topic_counts: dict[str, int] = field(default_factory=dict)
    """Topic → how many members name it."""
    regex_counts: dict[str, int] = field(default_factory=dict)
    """Regular expression → how many members subscribe to it."""
    topics_checked: int = -1
    """The number of the topics of which the hash is known to be up to date."""
    resolving: bool = False
    """Whether the topics of its regular expressions are being found."""
    not_resolved_ms: int | None = None
    """When these topics were found last and were too many for the log."""

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups."""
        return CONSUMER

    @property
    def state(self) -> ConsumerGroupState:
        """The group's state, which follows from its epochs and members."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        reconciled = all(member.reconciled_to(self.target_epoch) for member in self.members.values())
        return ConsumerGroupState.STABLE if reconciled else ConsumerGroupState.RECONCILING

    @property
    def empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def classic_members(self) -> Iterator[ConsumerMember]:
        """Yield the members that use the classic protocol."""
        return (member for member in self.members.values() if member.metadata.classic is not None)

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member of the classic protocol with these protocols may join: the others of that
        protocol all have one of them."""
        offered = set(names)
        for member in self.classic_members():
            assert member.metadata.classic is not None
            offered.intersection_update(protocol.name for protocol in member.metadata.classic.protocols)
        return protocol_type == CONSUMER and bool(offered)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """Return the member with this instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None) -> Partitions:
        """Return a member's part of the target assignment: of a static member, that of its instance id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.targets.get(member_id, {})

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that the members read."""
        matched = (self.regexes[name].topics for name in self.regex_counts if name in self.regexes)
        return frozenset(self.topic_counts).union(*matched)

    def refusal_of(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return why a request of this member is refused, or NONE."""
        return refusal_of(self.members, self.static_members, member_id, group_instance_id)

    # --- changes

    def replay(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        """Apply a change from the log. A tombstone of something unknown changes nothing."""
        if isinstance(key, EpochKey) and isinstance(value, EpochValue):
            self.epoch, self.metadata_hash = value
        elif isinstance(key, TargetEpochKey):
            never = TargetEpochValue(FIRST_EPOCH, 0)
            self.target_epoch, self.target_calculated_ms = (
                value if isinstance(value, TargetEpochValue) else never
            )
        elif isinstance(key, TargetKey):
            if isinstance(value, TargetValue):
                self.targets[key.member_id] = value.partitions
            else:
                self.targets.pop(key.member_id, None)
        elif isinstance(key, RegexKey):
            if isinstance(value, RegexValue):
                self.regexes[key.pattern] = value
            else:
                self.regexes.pop(key.pattern, None)
        elif isinstance(key, MemberKey):
            self._replay_member(key.member_id, value if isinstance(value, MemberMetadata) else None)
        elif isinstance(key, CurrentKey):
            self._replay_current(key.member_id, value if isinstance(value, CurrentValue) else None)

    def _replay_member(self, member_id: str, metadata: MemberMetadata | None) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._count(before.metadata, -1)
            instance = before.metadata.instance_id
            if instance is not None and self.static_members.get(instance) == member_id:
                del self.static_members[instance]
        if metadata is None:
            if before is not None:
                self._release(before)
                del self.members[member_id]
            return
        self._count(metadata, 1)
        if metadata.instance_id is not None:
            self.static_members[metadata.instance_id] = member_id
        self.members[member_id] = (before or ConsumerMember(member_id))._replace(metadata=metadata)

    def _replay_current(self, member_id: str, current: CurrentValue | None) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._release(before)
        elif current is None:
            return
        after = (before or ConsumerMember(member_id))._replace(current=current or CurrentValue(LEFT_EPOCH))
        self.members[member_id] = after
        for pair in owned_pairs(after.current):
            self.owners[pair] = member_id

    def _release(self, member: ConsumerMember) -> None:
        for pair in owned_pairs(member.current):
            if self.owners.get(pair) == member.member_id:
                del self.owners[pair]

    def _count(self, metadata: MemberMetadata, by: int) -> None:
        for topic in metadata.topics:
            _count(self.topic_counts, topic, by)
        if metadata.regex:
            _count(self.regex_counts, metadata.regex, by)

    def changes(self) -> Iterator[ConsumerChange]:
        """Yield the whole group as changes for the log."""
        name = self.name
        for member_id, member in self.members.items():
            yield MemberKey(name, member_id), member.metadata
        for pattern, regex in self.regexes.items():
            yield RegexKey(name, pattern), regex
        yield EpochKey(name), EpochValue(self.epoch, self.metadata_hash)
        for member_id, partitions in self.targets.items():
            yield TargetKey(name, member_id), TargetValue(partitions)
        yield TargetEpochKey(name), TargetEpochValue(self.target_epoch, self.target_calculated_ms)
        for member_id, member in self.members.items():
            yield CurrentKey(name, member_id), member.current

    def tombstones(self) -> Iterator[ConsumerChange]:
        """Yield the changes that delete the whole group from the log."""
        for member_id in self.members:
            yield CurrentKey(self.name, member_id), None
        for member_id in self.targets:
            yield TargetKey(self.name, member_id), None
        yield TargetEpochKey(self.name), None
        for member_id in self.members:
            yield MemberKey(self.name, member_id), None
        for pattern in self.regexes:
            yield RegexKey(self.name, pattern), None
        yield EpochKey(self.name), None


def wanted_assignor(members: Iterable[MemberMetadata], known: Sequence[str]) -> str:
    """Return the one of the known assignors that most of these members want, or else the first."""
    votes = dict.fromkeys(known, 0)
    for metadata in members:
        if metadata.assignor in votes:
            votes[metadata.assignor] += 1
    return max(votes, key=lambda name: votes[name])


def _count(counts: dict[str, int], name: str, by: int) -> None:
    left = counts.get(name, 0) + by
    if left > 0:
        counts[name] = left
    else:
        counts.pop(name, None)


def pairs(owned: OwnedPartitions | Partitions) -> Iterator[tuple[bytes, int]]:
    """Yield (topic id, partition) for each of these partitions."""
    for topic_id, partitions in owned.items():
        for partition in partitions:
            yield topic_id, partition


def owned_pairs(current: CurrentValue) -> Iterator[tuple[bytes, int]]:
    """Yield the partitions that a member has, including those that it must revoke."""
    yield from pairs(current.assigned)
    yield from pairs(current.revoking)
