"""A share group as its coordinator sees it. Source: Kafka's ShareGroup.

A group changes only by `replay`, with the changes that are written to the log. So a new coordinator, which
replays the log, has the same group.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kview.simulate.groups.consumer_records import Partitions
from kview.simulate.groups.records import OffsetValue
from kview.simulate.groups.share_records import (
    ShareChange,
    ShareCurrentKey,
    ShareCurrentValue,
    ShareEpochKey,
    ShareEpochValue,
    ShareKey,
    ShareMemberKey,
    ShareMemberValue,
    ShareStatesKey,
    ShareStatesValue,
    ShareTargetEpochKey,
    ShareTargetEpochValue,
    ShareTargetKey,
    ShareTargetValue,
    ShareValue,
)

FIRST_EPOCH = 1
"""The epoch of a new group and of its empty target assignment, which are in no record."""
LEFT_EPOCH = -1


class ShareGroupState(StrEnum):
    """The states of a share group, spelled as in ShareGroupDescribe."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareMember(NamedTuple):
    """A member: what it has said about itself, and what it has."""

    member_id: str
    metadata: ShareMemberValue = ShareMemberValue()
    current: ShareCurrentValue = ShareCurrentValue()


@dataclass(slots=True)
class ShareGroup:
    """A group, with its members in the order they joined."""

    name: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    target_epoch: int = FIRST_EPOCH
    target_calculated_ms: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    """Member id → its part of the target assignment."""
    states: ShareStatesValue = field(default_factory=ShareStatesValue)
    asked_ms: dict[tuple[bytes, int], int] = field(default_factory=dict)
    """(topic id, partition) → when its share coordinator was asked to begin with its state."""
    topics_checked: int = -1
    """The number of the topics of which the hash is known to be up to date."""
    offsets: dict[tuple[str, int], OffsetValue] = field(default_factory=dict)
    """Nothing: a share group commits no offsets."""

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups."""
        return "share"

    @property
    def state(self) -> ShareGroupState:
        """The group's state."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that the members read."""
        return frozenset(topic for member in self.members.values() for topic in member.metadata.topics)

    def initialized(self) -> Partitions:
        """Return the partitions whose state the share coordinators have, by topic id."""
        return {topic_id: named.partitions for topic_id, named in self.states.initialized.items()}

    def replay(self, key: ShareKey, value: ShareValue | None) -> None:
        """Apply a change from the log. A tombstone of something unknown changes nothing."""
        if isinstance(key, ShareEpochKey) and isinstance(value, ShareEpochValue):
            self.epoch, self.metadata_hash = value
        elif isinstance(key, ShareTargetEpochKey):
            never = ShareTargetEpochValue(FIRST_EPOCH, 0)
            calculated = value if isinstance(value, ShareTargetEpochValue) else never
            self.target_epoch, self.target_calculated_ms = calculated
        elif isinstance(key, ShareTargetKey):
            if isinstance(value, ShareTargetValue):
                self.targets[key.member_id] = value.partitions
            else:
                self.targets.pop(key.member_id, None)
        elif isinstance(key, ShareStatesKey):
            self.states = value if isinstance(value, ShareStatesValue) else ShareStatesValue()
        elif isinstance(key, ShareMemberKey):
            if isinstance(value, ShareMemberValue):
                before = self.members.get(key.member_id, ShareMember(key.member_id))
                self.members[key.member_id] = before._replace(metadata=value)
            else:
                self.members.pop(key.member_id, None)
        elif isinstance(key, ShareCurrentKey) and isinstance(value, ShareCurrentValue):
            before = self.members.get(key.member_id, ShareMember(key.member_id))
            self.members[key.member_id] = before._replace(current=value)

    def changes(self) -> Iterator[ShareChange]:
        """Yield the whole group as changes for the log."""
        name = self.name
        for member_id, member in self.members.items():
            yield ShareMemberKey(name, member_id), member.metadata
        yield ShareEpochKey(name), ShareEpochValue(self.epoch, self.metadata_hash)
        for member_id, partitions in self.targets.items():
            yield ShareTargetKey(name, member_id), ShareTargetValue(partitions)
        yield ShareTargetEpochKey(name), ShareTargetEpochValue(self.target_epoch, self.target_calculated_ms)
        for member_id, member in self.members.items():
            yield ShareCurrentKey(name, member_id), member.current
        if self.states != ShareStatesValue():
            yield ShareStatesKey(name), self.states

    def tombstones(self) -> Iterator[ShareChange]:
        """Yield the changes that delete the whole group from the log."""
        for member_id in self.members:
            yield ShareCurrentKey(self.name, member_id), None
        for member_id in self.targets:
            yield ShareTargetKey(self.name, member_id), None
        yield ShareTargetEpochKey(self.name), None
        for member_id in self.members:
            yield ShareMemberKey(self.name, member_id), None
        yield ShareStatesKey(self.name), None
        yield ShareEpochKey(self.name), None
