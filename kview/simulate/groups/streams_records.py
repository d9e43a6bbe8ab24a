"""The records of streams groups in `__consumer_offsets`, as values and as bytes in Kafka's format (KIP-1071).

A key's version is its type: 17 the group, 19 a member, 20 the target assignment, 21 a member's part of it, 22
a member's current assignment, 23 the topology. All values have version 0 and are flexible.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from struct import pack, unpack
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from kview.simulate.groups.consumer_records import STATES, MemberState
from kview.wire.primitives import INT32, INT64, MalformedBytes, Reader, Writer, array_length

T = TypeVar("T")


class Role(IntEnum):
    """What a member does with a task, in the order of the lists of tasks."""

    ACTIVE = 0
    STANDBY = 1
    WARMUP = 2


class TaskKey(NamedTuple):
    """The tasks of one role in one subtopology, which are numbered by partitions."""

    role: Role
    subtopology: str


Tasks = Mapping[TaskKey, frozenset[int]]
"""Role and subtopology → partitions."""

OwnedTasks = Mapping[TaskKey, Mapping[int, int]]
"""Role and subtopology → partition → the epoch in which an active task was assigned, 0 for others."""

NO_TASKS: Tasks = MappingProxyType({})
_NO_OWNED: OwnedTasks = MappingProxyType({})

STATE_OFFSET = 1
"""States of members have numbers from 1 on in the log, and from 0 on in those of consumer groups."""


class StreamsEpochKey(NamedTuple):
    """The key of a group's epoch (StreamsGroupMetadata)."""

    group: str


class StreamsMemberKey(NamedTuple):
    """The key of what a member has said about itself (StreamsGroupMemberMetadata)."""

    group: str
    member_id: str


class StreamsTargetEpochKey(NamedTuple):
    """The key of the target assignment's epoch (StreamsGroupTargetAssignmentMetadata)."""

    group: str


class StreamsTargetKey(NamedTuple):
    """The key of a member's part of the target assignment (StreamsGroupTargetAssignmentMember)."""

    group: str
    member_id: str


class StreamsCurrentKey(NamedTuple):
    """The key of what a member has (StreamsGroupCurrentMemberAssignment)."""

    group: str
    member_id: str


class TopologyKey(NamedTuple):
    """The key of a group's topology (StreamsGroupTopology)."""

    group: str


class StreamsEpochValue(NamedTuple):
    """A group's epoch and a hash of its topics, the epoch of the topology whose topics are right (−1: none),
    and the settings of the last assignment, by name."""

    epoch: int
    metadata_hash: int
    validated_epoch: int
    configs: tuple[tuple[str, str], ...]


class StreamsMemberValue(NamedTuple):
    """What a member has said about itself. `process_id` is that of its instance, which may have several
    members, `endpoint` the host and port of its interactive queries."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()


class StreamsTargetEpochValue(NamedTuple):
    """The epoch of the target assignment, and when that was calculated (ms, 0 if never)."""

    epoch: int
    calculated_ms: int


class StreamsTargetValue(NamedTuple):
    """A member's part of the target assignment."""

    tasks: Tasks


class StreamsCurrentValue(NamedTuple):
    """A member's epoch, and what it has: the tasks that it may keep, and those that it must revoke."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: OwnedTasks = _NO_OWNED
    revoking: OwnedTasks = _NO_OWNED


class TopicInfo(NamedTuple):
    """An internal topic. Zero partitions or replicas mean that the coordinator decides."""

    name: str
    partitions: int
    replication: int
    configs: tuple[tuple[str, str], ...]


class CopartitionGroup(NamedTuple):
    """Source topics that must have equally many partitions, by their places in the subtopology's lists."""

    source_topics: tuple[int, ...]
    source_regexes: tuple[int, ...]
    repartition_sources: tuple[int, ...]


class Subtopology(NamedTuple):
    """A part of a topology whose tasks each read the same partition of all source topics."""

    subtopology: str
    source_topics: tuple[str, ...]
    source_regexes: tuple[str, ...]
    changelogs: tuple[TopicInfo, ...]
    repartition_sinks: tuple[str, ...]
    repartition_sources: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


class TopologyValue(NamedTuple):
    """What an application reads and writes."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]


StreamsKey = (
    StreamsEpochKey
    | StreamsMemberKey
    | StreamsTargetEpochKey
    | StreamsTargetKey
    | StreamsCurrentKey
    | TopologyKey
)
StreamsValue = (
    StreamsEpochValue
    | StreamsMemberValue
    | StreamsTargetEpochValue
    | StreamsTargetValue
    | StreamsCurrentValue
    | TopologyValue
)
StreamsChange = tuple[StreamsKey, StreamsValue | None]

KEYS: Mapping[int, type[StreamsKey]] = {
    17: StreamsEpochKey,
    19: StreamsMemberKey,
    20: StreamsTargetEpochKey,
    21: StreamsTargetKey,
    22: StreamsCurrentKey,
    23: TopologyKey,
}
_VERSIONS = {kind: version for version, kind in KEYS.items()}
_VALUE_VERSION = 0
_NO_TAGS: Mapping[int, bytes] = {}
_NEVER_VALIDATED = -1


def encode_key(key: StreamsKey) -> bytes:
    """Encode a key."""
    writer = Writer().int16(_VERSIONS[type(key)])
    for text in key:
        writer.string(text)
    return writer.done()


def decode_key(version: int, reader: Reader) -> StreamsKey:
    """Decode a key after its version, which is one of KEYS. Raises MalformedBytes."""
    kind = KEYS[version]
    return kind(*(reader.string() for _ in kind._fields))


def encode_value(value: StreamsValue) -> bytes:
    """Encode a value."""
    writer, tags = Writer().int16(_VALUE_VERSION), dict[int, bytes]()
    if isinstance(value, StreamsEpochValue):
        writer.int32(value.epoch).int64(value.metadata_hash)
        if value.validated_epoch != _NEVER_VALIDATED:
            tags[0] = INT32.pack(value.validated_epoch)
        if value.configs:
            tags[1] = _pairs(Writer(), value.configs).done()
    elif isinstance(value, StreamsMemberValue):
        _write_member(writer, value)
    elif isinstance(value, StreamsTargetEpochValue):
        writer.int32(value.epoch)
        if value.calculated_ms:
            tags[0] = INT64.pack(value.calculated_ms)
    elif isinstance(value, StreamsTargetValue):
        for role in Role:
            keys = _of_role(value.tasks, role)
            writer.array_length(len(keys), compact=True)
            for key in keys:
                _write_numbers(writer.compact_string(key.subtopology), sorted(value.tasks[key]))
                writer.tagged_fields(_NO_TAGS)
    elif isinstance(value, StreamsCurrentValue):
        writer.int32(value.epoch).int32(value.previous_epoch).int8(value.state + STATE_OFFSET)
        for owned in (value.assigned, value.revoking):
            _write_owned(writer, owned)
    else:
        writer.int32(value.epoch)
        _write_all(writer, value.subtopologies, _write_subtopology)
    return writer.tagged_fields(tags).done()


def _of_role(tasks: Iterable[TaskKey], role: Role) -> list[TaskKey]:
    """Return the keys of this role, sorted as in Kafka's records."""
    return sorted(key for key in tasks if key.role is role)


def _write_numbers(writer: Writer, numbers: list[int]) -> Writer:
    return writer.array_length(len(numbers), compact=True).raw(pack(f">{len(numbers)}i", *numbers))


def _write_owned(writer: Writer, owned: OwnedTasks) -> None:
    for role in Role:
        keys = _of_role(owned, role)
        writer.array_length(len(keys), compact=True)
        for key in keys:
            numbers = sorted(owned[key])
            epochs = [owned[key][number] for number in numbers]
            _write_numbers(writer.compact_string(key.subtopology), numbers)
            tags = {0: _write_numbers(Writer(), epochs).done()} if role is Role.ACTIVE else _NO_TAGS
            writer.tagged_fields(tags)


def _write_all(writer: Writer, items: tuple[T, ...], write: Callable[[Writer, T], object]) -> Writer:
    writer.array_length(len(items), compact=True)
    for item in items:
        write(writer, item)
    return writer


def _pairs(writer: Writer, pairs: tuple[tuple[str, str], ...]) -> Writer:
    return _write_all(
        writer,
        pairs,
        lambda to, pair: to.compact_string(pair[0]).compact_string(pair[1]).tagged_fields(_NO_TAGS),
    )


def _write_member(writer: Writer, member: StreamsMemberValue) -> None:
    writer.compact_string(member.instance_id).compact_string(member.rack_id)
    writer.compact_string(member.client_id).compact_string(member.client_host)
    writer.int32(member.rebalance_timeout_ms).int32(member.topology_epoch).compact_string(member.process_id)
    if member.endpoint is None:
        writer.int8(-1)
    else:
        host, port = member.endpoint
        writer.int8(1).compact_string(host).raw(port.to_bytes(2, "big")).tagged_fields(_NO_TAGS)
    _pairs(writer, member.tags)


def _write_subtopology(writer: Writer, subtopology: Subtopology) -> None:
    def names(texts: tuple[str, ...]) -> None:
        _write_all(writer, texts, Writer.compact_string)

    writer.compact_string(subtopology.subtopology)
    names(subtopology.source_topics)
    names(subtopology.source_regexes)
    _write_all(writer, subtopology.changelogs, _write_topic)
    names(subtopology.repartition_sinks)
    _write_all(writer, subtopology.repartition_sources, _write_topic)
    _write_all(writer, subtopology.copartition_groups, _write_copartition_group)
    writer.tagged_fields(_NO_TAGS)


def _write_topic(writer: Writer, topic: TopicInfo) -> None:
    writer.compact_string(topic.name).int32(topic.partitions).int16(topic.replication)
    _pairs(writer, topic.configs).tagged_fields(_NO_TAGS)


def _write_copartition_group(writer: Writer, group: CopartitionGroup) -> None:
    for places in group:
        writer.raw(array_length(len(places), compact=True)).raw(pack(f">{len(places)}h", *places))
    writer.tagged_fields(_NO_TAGS)


def decode_value(key: StreamsKey, reader: Reader) -> StreamsValue:
    """Decode the value that belongs to a key. Raises MalformedBytes."""
    version = reader.int16()
    if version != _VALUE_VERSION:
        raise MalformedBytes(f"a value of version {version}")
    if isinstance(key, StreamsEpochKey):
        epoch, hashed, tags = reader.int32(), reader.int64(), reader.tagged_fields()
        validated = Reader(tags[0]).int32() if 0 in tags else _NEVER_VALIDATED
        configs = _read_pairs(Reader(tags[1])) if 1 in tags else ()
        return StreamsEpochValue(epoch, hashed, validated, configs)
    if isinstance(key, StreamsMemberKey):
        return _read_member(reader)
    if isinstance(key, StreamsTargetEpochKey):
        epoch, tags = reader.int32(), reader.tagged_fields()
        return StreamsTargetEpochValue(epoch, Reader(tags[0]).int64() if 0 in tags else 0)
    if isinstance(key, StreamsTargetKey):
        owned = _read_owned(reader, 0)
        return StreamsTargetValue({key: frozenset(numbers) for key, numbers in owned.items()})
    if isinstance(key, StreamsCurrentKey):
        epoch, previous, state = reader.int32(), reader.int32(), reader.int8() - STATE_OFFSET
        if state not in STATES:
            raise MalformedBytes(f"a member in state {state}")
        assigned, revoking = _read_owned(reader, epoch), _read_owned(reader, epoch)
        return StreamsCurrentValue(epoch, previous, MemberState(state), assigned, revoking)
    return TopologyValue(reader.int32(), _read_all(reader, _read_subtopology))


def _read_all(reader: Reader, read: Callable[[Reader], T]) -> tuple[T, ...]:
    return tuple(read(reader) for _ in range(reader.array_length(compact=True)))


def _read_numbers(reader: Reader) -> tuple[int, ...]:
    count = reader.array_length(compact=True)
    return unpack(f">{count}i", reader.take(4 * count))


def _read_owned(reader: Reader, epoch: int) -> OwnedTasks:
    """Read the tasks of each role. Active ones without an epoch have that of their member."""
    owned: dict[TaskKey, dict[int, int]] = {}
    for role in Role:
        for _ in range(reader.array_length(compact=True)):
            key, numbers = TaskKey(role, reader.compact_string()), _read_numbers(reader)
            tags = reader.tagged_fields()
            epochs = _read_numbers(Reader(tags[0])) if 0 in tags else ()
            if role is not Role.ACTIVE:
                epochs = (0,) * len(numbers)
            elif len(epochs) != len(numbers):
                epochs = (epoch,) * len(numbers)
            owned[key] = dict(zip(numbers, epochs, strict=True))
    return owned


def _read_pair(reader: Reader) -> tuple[str, str]:
    pair = reader.compact_string(), reader.compact_string()
    reader.tagged_fields()
    return pair


def _read_pairs(reader: Reader) -> tuple[tuple[str, str], ...]:
    return _read_all(reader, _read_pair)


def _read_member(reader: Reader) -> StreamsMemberValue:
    instance_id, rack_id = reader.nullable_compact_string(), reader.nullable_compact_string()
    client_id, client_host = reader.compact_string(), reader.compact_string()
    timeout_ms, topology_epoch, process_id = reader.int32(), reader.int32(), reader.compact_string()
    endpoint = None
    if reader.int8() >= 0:
        endpoint = reader.compact_string(), int.from_bytes(reader.take(2), "big")
        reader.tagged_fields()
    return StreamsMemberValue(
        instance_id,
        rack_id,
        client_id,
        client_host,
        timeout_ms,
        topology_epoch,
        process_id,
        endpoint,
        _read_pairs(reader),
    )


def _read_subtopology(reader: Reader) -> Subtopology:
    subtopology = Subtopology(
        reader.compact_string(),
        _read_all(reader, Reader.compact_string),
        _read_all(reader, Reader.compact_string),
        _read_all(reader, _read_topic),
        _read_all(reader, Reader.compact_string),
        _read_all(reader, _read_topic),
        _read_all(reader, _read_copartition_group),
    )
    reader.tagged_fields()
    return subtopology


def _read_topic(reader: Reader) -> TopicInfo:
    name, partitions, replication = reader.compact_string(), reader.int32(), reader.int16()
    configs = _read_pairs(reader)
    reader.tagged_fields()
    return TopicInfo(name, partitions, replication, configs)


def _read_copartition_group(reader: Reader) -> CopartitionGroup:
    places: list[tuple[int, ...]] = []
    for _ in CopartitionGroup._fields:
        count = reader.array_length(compact=True)
        places.append(unpack(f">{count}h", reader.take(2 * count)))
    reader.tagged_fields()
    return CopartitionGroup(*places)
