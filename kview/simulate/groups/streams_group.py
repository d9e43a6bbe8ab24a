"""A streams group as its coordinator sees it. Source: Kafka's StreamsGroup.

A group changes only by `replay`, with the changes that are written to the log. So a new coordinator, which
replays the log, has the same group. What is not in the log (how the topology was configured, who asked for
the end of the application, the epoch of endpoints) begins again there, as in Kafka.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kview.simulate.groups.records import OffsetValue
from kview.simulate.groups.streams_records import (
    Role,
    StreamsChange,
    StreamsCurrentKey,
    StreamsCurrentValue,
    StreamsEpochKey,
    StreamsEpochValue,
    StreamsKey,
    StreamsMemberKey,
    StreamsMemberValue,
    StreamsTargetEpochKey,
    StreamsTargetEpochValue,
    StreamsTargetKey,
    StreamsTargetValue,
    StreamsValue,
    Subtopology,
    TaskKey,
    Tasks,
    TopologyKey,
    TopologyValue,
)
from kview.simulate.groups.streams_topology import Configured, sources

FIRST_EPOCH = 1
"""The epoch of a new group and of its empty target assignment, which are in no record."""
LEFT_EPOCH = -1


class StreamsGroupState(StrEnum):
    """The states of a streams group, spelled as in StreamsGroupDescribe."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsMember(NamedTuple):
    """A member: what it has said about itself, and what it has."""

    member_id: str
    metadata: StreamsMemberValue = StreamsMemberValue()
    current: StreamsCurrentValue = StreamsCurrentValue()

    def reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has what the target assignment of this epoch gives it."""
        return not self.current.state and self.current.epoch == epoch


@dataclass(slots=True)
class StreamsGroup:
    """A group, with its members in the order they joined."""

    name: str
    offsets: dict[tuple[str, int], OffsetValue] = field(default_factory=dict)
    """(topic, partition) → committed offset."""
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    validated_epoch: int = 0
    """The epoch of the topology whose topics are right, or −1."""
    configs: tuple[tuple[str, str], ...] = ()
    """The settings of the last assignment."""
    target_epoch: int = FIRST_EPOCH
    target_calculated_ms: int = 0
    topology: TopologyValue | None = None
    members: dict[str, StreamsMember] = field(default_factory=dict)
    targets: dict[str, Tasks] = field(default_factory=dict)
    """Member id → its part of the target assignment."""
    configured: Configured | None = None
    topics_checked: int = -1
    """The number of the topics of which the hash is known to be up to date."""
    shutdown_by: str | None = None
    """The member that asked for the end of the application, until the group is empty."""
    endpoints_epoch: int = 0

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups."""
        return "streams"

    @property
    def state(self) -> StreamsGroupState:
        """The group's state, which follows from its epochs and members."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        reconciled = all(member.reconciled_to(self.target_epoch) for member in self.members.values())
        return StreamsGroupState.STABLE if reconciled else StreamsGroupState.RECONCILING

    @property
    def empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that the members read."""
        return frozenset() if self.empty else frozenset(self.readers())

    def readers(self) -> dict[str, Subtopology]:
        """Return each topic that is read with the subtopology that reads it."""
        subtopologies = () if self.topology is None else self.topology.subtopologies
        return {topic: subtopology for subtopology in subtopologies for topic in sources(subtopology)}

    def replay(self, key: StreamsKey, value: StreamsValue | None) -> None:
        """Apply a change from the log. A tombstone of something unknown changes nothing."""
        if isinstance(key, StreamsEpochKey) and isinstance(value, StreamsEpochValue):
            self.epoch, self.metadata_hash, self.validated_epoch, self.configs = value
        elif isinstance(key, StreamsTargetEpochKey):
            never = StreamsTargetEpochValue(FIRST_EPOCH, 0)
            calculated = value if isinstance(value, StreamsTargetEpochValue) else never
            self.target_epoch, self.target_calculated_ms = calculated
        elif isinstance(key, StreamsTargetKey):
            if isinstance(value, StreamsTargetValue):
                self.targets[key.member_id] = value.tasks
            else:
                self.targets.pop(key.member_id, None)
        elif isinstance(key, TopologyKey):
            self.topology = value if isinstance(value, TopologyValue) else None
        elif isinstance(key, StreamsMemberKey):
            if isinstance(value, StreamsMemberValue):
                before = self.members.get(key.member_id, StreamsMember(key.member_id))
                self.members[key.member_id] = before._replace(metadata=value)
            else:
                self.members.pop(key.member_id, None)
            if not self.members:
                self.shutdown_by = None
        elif isinstance(key, StreamsCurrentKey):
            known = self.members.get(key.member_id)
            if isinstance(value, StreamsCurrentValue):
                known = known or StreamsMember(key.member_id)
                self.members[key.member_id] = known._replace(current=value)
            elif known is not None:
                gone = StreamsCurrentValue(LEFT_EPOCH, LEFT_EPOCH)
                self.members[key.member_id] = known._replace(current=gone)

    def tombstones(self) -> Iterator[StreamsChange]:
        """Yield the changes that delete the whole group from the log."""
        for member_id in self.members:
            yield StreamsCurrentKey(self.name, member_id), None
        for member_id in self.targets:
            yield StreamsTargetKey(self.name, member_id), None
        yield StreamsTargetEpochKey(self.name), None
        for member_id in self.members:
            yield StreamsMemberKey(self.name, member_id), None
        yield StreamsEpochKey(self.name), None
        yield TopologyKey(self.name), None


class Holders:
    """Which processes have which tasks, or have not revoked them yet."""

    def __init__(self, group: StreamsGroup) -> None:
        self._active: set[tuple[str, int]] = set()
        self._in_process: set[tuple[str, str, int]] = set()
        for member in group.members.values():
            process_id = member.metadata.process_id
            for owned in (member.current.assigned, member.current.revoking):
                for (role, subtopology), partitions in owned.items():
                    for partition in partitions:
                        self._in_process.add((process_id, subtopology, partition))
                        if role is Role.ACTIVE:
                            self._active.add((subtopology, partition))

    def hold(self, process_id: str, key: TaskKey, partition: int) -> bool:
        """Return whether a member in this process must wait for a task: for an active one while any member
        has it as that, and for any while a member of the same process has it."""
        active = key.role is Role.ACTIVE and (key.subtopology, partition) in self._active
        return active or (process_id, key.subtopology, partition) in self._in_process
