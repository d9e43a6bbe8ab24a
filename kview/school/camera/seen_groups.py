"""What an observer would know of the consumer groups: their coordinators' last answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kview.model.failures import FailureKind
from kview.model.states import GroupType, group_type
from kview.model.units import NO_OFFSET, UNKNOWN, UNKNOWN_ID
from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.placement import partition_of
from kview.simulate.groups.consumer_results import DescribedConsumerGroup
from kview.simulate.groups.results import DescribedGroup
from kview.simulate.groups.share_offsets import StartOffset, TopicRows
from kview.simulate.groups.share_results import DescribedShareGroup
from kview.simulate.groups.streams_records import NO_TASKS, OwnedTasks, Role, TaskKey, Tasks
from kview.simulate.groups.streams_results import DescribedStreamsGroup
from kview.simulate.groups.streams_topology import sources
from kview.simulate.metadata import MetadataImage, TopicPartition
from kview.simulate.traffic.assignment import assigned
from kview.simulate.world import OFFSETS_TOPIC

Description = DescribedGroup | DescribedConsumerGroup | DescribedShareGroup | DescribedStreamsGroup


@dataclass(slots=True)
class GroupSeen:
    """The last answers about one group. `error_code` is Kafka's number for the last refusal, or 0."""

    coordinator: int
    description: Description
    received_ms: int
    committed: dict[TopicPartition, int]
    committed_ms: int
    error_code: int = 0
    starts: tuple[TopicRows, ...] = ()
    starts_ms: int = UNKNOWN


class SeenGroups:
    """All groups by name."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.by_name: dict[str, GroupSeen] = {}

    def ask(self, answering: Iterable[int], image: MetadataImage, now_ms: int) -> None:
        """Ask every broker that answers for the groups that it coordinates."""
        for broker in sorted(answering):
            coordinator = self._cluster.groups(broker)
            for listed in coordinator.list_groups().groups:
                known = self.by_name.get(listed.group)
                if known is None or known.coordinator != broker:
                    self._describe(listed.group, broker, now_ms)
        owners = self._owners(image)
        for name, known in list(self.by_name.items()):
            owner = owners[partition_of(name, len(owners))] if owners else -1
            if owner >= 0 and owner != known.coordinator:
                known.coordinator, known.error_code = owner, 0
            if known.coordinator in answering:
                self._describe(name, known.coordinator, now_ms)

    @staticmethod
    def _owners(image: MetadataImage) -> list[int]:
        topic = image.topics.get(OFFSETS_TOPIC)
        return [partition.leader for partition in topic.partitions] if topic is not None else []

    def _describe(self, name: str, broker: int, now_ms: int) -> None:
        coordinator = self._cluster.groups(broker)
        description: Description
        description = coordinator.describe_consumer_group(name)
        if description.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            description = coordinator.describe_share_group(name)
        if description.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            description = coordinator.describe_streams_group(name)
        if description.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            description = coordinator.describe(name)
        if description.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            self.by_name.pop(name, None)
            return
        known = self.by_name.get(name)
        if description.error_code is not ErrorCode.NONE:
            if known is not None:
                known.error_code = int(description.error_code)
            return
        if isinstance(description, DescribedShareGroup):
            seen = GroupSeen(broker, description, now_ms, {}, now_ms)
            if known is not None:
                seen.starts, seen.starts_ms = known.starts, known.starts_ms
            self.by_name[name] = seen
            coordinator.describe_share_offsets(
                name, None, lambda code, rows: self._starts(name, code, tuple(rows))
            )
            return
        fetched = coordinator.fetch_offsets(name, None)
        committed = {(entry.topic, entry.partition): entry.offset for entry in fetched.offsets}
        self.by_name[name] = GroupSeen(broker, description, now_ms, committed, now_ms)

    def _starts(self, name: str, code: ErrorCode, rows: tuple[TopicRows, ...]) -> None:
        """Note where a share group starts, which its coordinator asks others about first."""
        known = self.by_name.get(name)
        if known is not None and code is ErrorCode.NONE:
            known.starts, known.starts_ms = rows, self._cluster.kernel.now_us // 1000

    def share_rows(self) -> list[tuple[object, ...]]:
        """Return the rows of `ShareOffsets`."""
        return [
            (
                name,
                topic.topic,
                row.partition,
                row.offset if row.offset >= 0 else UNKNOWN,
                row.lag if row.lag >= 0 else UNKNOWN,
                known.starts_ms,
            )
            for name, known in sorted(self.by_name.items())
            for topic in sorted(known.starts)
            for row in topic.rows
            if isinstance(row, StartOffset) and row.code[0] is ErrorCode.NONE
        ]

    def rows(
        self, failing: Mapping[int, bool], image: MetadataImage
    ) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]], list[tuple[object, ...]]]:
        """Return the rows of `Groups`, `Members` and `Offsets`.

        `failing` says which brokers are silent, and `image` has the names of topics.
        """
        groups: list[tuple[object, ...]] = []
        members: list[tuple[object, ...]] = []
        offsets: list[tuple[object, ...]] = []
        for name in sorted(self.by_name):
            known = self.by_name[name]
            description = known.description
            kind = FailureKind.KAFKA_ERROR if known.error_code else FailureKind.NONE
            if failing.get(known.coordinator, False):
                kind = FailureKind.COORDINATOR_SILENT
            code = known.error_code if kind is FailureKind.KAFKA_ERROR else 0
            topology = UNKNOWN_ID, ""
            if isinstance(description, DescribedConsumerGroup):
                of_group, of_members, owners = _of_consumers(description, image)
            elif isinstance(description, DescribedShareGroup):
                (of_group, of_members), owners = _of_shares(description, image), {}
            elif isinstance(description, DescribedStreamsGroup):
                of_group, of_members, owners = _of_streams(description)
                topology = _topology_of(description)
            else:
                of_group, of_members, owners = _of_classic(description)
            kind_of_group, state, strategy, epoch, target_epoch = of_group
            groups.append(
                (
                    name,
                    kind_of_group,
                    state,
                    known.coordinator,
                    strategy,
                    epoch,
                    target_epoch,
                    *topology,
                    len(description.members),
                    known.received_ms,
                    kind.value,
                    code,
                    False,
                )
            )
            members += ((name, *row) for row in of_members)
            for key in sorted(known.committed.keys() | owners.keys()):
                offset = known.committed.get(key, NO_OFFSET)
                at_ms = known.committed_ms if known.committed_ms != UNKNOWN else known.received_ms
                offsets.append((name, *key, offset, owners.get(key, ""), at_ms))
        return groups, members, offsets


OfGroup = tuple[str, str, str, int, int]
"""Type, state, assignor, group epoch and assignment epoch."""


def _of_classic(
    description: DescribedGroup,
) -> tuple[OfGroup, list[tuple[object, ...]], dict[TopicPartition, str]]:
    """Return what the rows of a classic group have: its own, those of its members, and who owns what."""
    members: list[tuple[object, ...]] = []
    owners: dict[TopicPartition, str] = {}
    for member in sorted(description.members, key=lambda member: member.member_id):
        owned = assigned(member.assignment)
        owners.update(dict.fromkeys(owned, member.member_id))
        host = member.client_host.removeprefix("/")
        at = (member.member_id, member.client_id, host)
        members.append((*at, "", UNKNOWN_ID, len(owned), UNKNOWN_ID, UNKNOWN_ID, UNKNOWN_ID, ""))
    type_of_group = group_type(None, description.protocol_type)
    return (type_of_group, description.state, description.protocol, UNKNOWN_ID, UNKNOWN_ID), members, owners


def _of_consumers(
    description: DescribedConsumerGroup, image: MetadataImage
) -> tuple[OfGroup, list[tuple[object, ...]], dict[TopicPartition, str]]:
    """Return the same of a group of the consumer protocol (KIP-848)."""
    members: list[tuple[object, ...]] = []
    owners: dict[TopicPartition, str] = {}
    for member in sorted(description.members, key=lambda member: member.member_id):
        has = _pairs(member.current.assigned, image)
        is_to_have = _pairs(description.targets.get(member.member_id, {}), image)
        owners.update(dict.fromkeys(has, member.member_id))
        host = member.metadata.client_host.removeprefix("/")
        moves = len(is_to_have - has), len(has - is_to_have)
        at = (member.member_id, member.metadata.client_id, host, "", member.current.epoch)
        members.append((*at, len(has), len(is_to_have), *moves, ""))
    epochs = description.epoch, description.target_epoch
    return (GroupType.CONSUMER.value, description.state, description.assignor, *epochs), members, owners


def _of_shares(
    description: DescribedShareGroup, image: MetadataImage
) -> tuple[OfGroup, list[tuple[object, ...]]]:
    """Return the rows of a share group and its members. They own nothing: several may read a partition."""
    members: list[tuple[object, ...]] = []
    for member in sorted(description.members, key=lambda member: member.member_id):
        read = _pairs(member.current.assigned, image)
        numbers: dict[str, list[int]] = {}
        for topic, number in sorted(read):
            numbers.setdefault(topic, []).append(number)
        runs = "; ".join(f"{topic}: {', '.join(map(str, of_topic))}" for topic, of_topic in numbers.items())
        host = member.metadata.client_host.removeprefix("/")
        at = (member.member_id, member.metadata.client_id, host, member.metadata.rack_id or "")
        members.append((*at, member.current.epoch, len(read), UNKNOWN_ID, UNKNOWN_ID, UNKNOWN_ID, runs))
    epochs = description.epoch, description.target_epoch
    return (GroupType.SHARE.value, description.state, description.assignor, *epochs), members


def _of_streams(
    description: DescribedStreamsGroup,
) -> tuple[OfGroup, list[tuple[object, ...]], dict[TopicPartition, str]]:
    """Return the rows of a streams group and its members. Who has an active task owns what the task reads."""
    members: list[tuple[object, ...]] = []
    owners: dict[TopicPartition, str] = {}
    read = _sources(description)
    for member in sorted(description.members, key=lambda member: member.member_id):
        current, target = member.current, description.targets.get(member.member_id, NO_TASKS)
        has, is_to_have = _tasks(current.assigned), _tasks(target)
        active = [task for task in has if task[0].role is Role.ACTIVE]
        for key, number in active:
            owners.update(((topic, number), member.member_id) for topic in read.get(key.subtopology, ()))
        names = {
            role: ", ".join(f"{key.subtopology}_{number}" for key, number in sorted(has) if key.role is role)
            for role in Role
        }
        runs = "; ".join(f"{role.name.lower()} {tasks}" for role, tasks in names.items() if tasks)
        host = member.metadata.client_host.removeprefix("/")
        at = (member.member_id, member.metadata.client_id, host, member.metadata.rack_id or "", current.epoch)
        wanted = sum(key.role is Role.ACTIVE for key, _ in is_to_have)
        members.append((*at, len(active), wanted, len(is_to_have - has), len(has - is_to_have), runs))
    epochs = description.epoch, description.target_epoch
    return (GroupType.STREAMS.value, description.state, "", *epochs), members, owners


def _sources(description: DescribedStreamsGroup) -> dict[str, list[str]]:
    """Return the topics that each subtopology reads."""
    subtopologies = description.topology.subtopologies if description.topology is not None else ()
    return {subtopology.subtopology: sources(subtopology) for subtopology in subtopologies}


def _topology_of(description: DescribedStreamsGroup) -> tuple[int, str]:
    """Return the epoch of a group's topology, and what it reads."""
    read = sorted(_sources(description).items())
    epoch = UNKNOWN_ID if description.topology is None else description.topology.epoch
    return epoch, "; ".join(f"{name}: {', '.join(sorted(topics))}" for name, topics in read)


def _tasks(tasks: Tasks | OwnedTasks) -> set[tuple[TaskKey, int]]:
    return {(key, number) for key, numbers in tasks.items() for number in numbers}


def _pairs(assignment: Mapping[bytes, Iterable[int]], image: MetadataImage) -> set[TopicPartition]:
    names = image.topic_names
    return {(names[id], number) for id, numbers in assignment.items() if id in names for number in numbers}
