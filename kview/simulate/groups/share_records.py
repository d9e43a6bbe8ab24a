"""The records of share groups in `__consumer_offsets`, as values and as bytes in Kafka's format.

A key's version is its type: 10 a member, 11 the group, 12 the target assignment, 13 a member's part of it, 14
a member's current assignment, 15 the partitions whose state the share coordinators have. All values have
version 0 and are flexible.
"""

from collections.abc import Mapping
from struct import pack, unpack
from types import MappingProxyType
from typing import NamedTuple

from kview.simulate.groups.consumer_records import TOPIC_ID_BYTES, Partitions
from kview.wire.primitives import INT64, MalformedBytes, Reader, Writer

STABLE = 0
"""The only state of a share group's member in the log."""

NO_PARTITIONS: Partitions = MappingProxyType({})


class NamedPartitions(NamedTuple):
    """A topic's name and some of its partitions."""

    topic: str
    partitions: frozenset[int]


StatePartitions = Mapping[bytes, NamedPartitions]
"""Topic id → the topic's name and partitions."""

_NO_STATES: StatePartitions = MappingProxyType({})
_NO_TOPICS: Mapping[bytes, str] = MappingProxyType({})


class ShareMemberKey(NamedTuple):
    """The key of what a member has said about itself (ShareGroupMemberMetadata)."""

    group: str
    member_id: str


class ShareEpochKey(NamedTuple):
    """The key of a group's epoch (ShareGroupMetadata)."""

    group: str


class ShareTargetEpochKey(NamedTuple):
    """The key of the target assignment's epoch (ShareGroupTargetAssignmentMetadata)."""

    group: str


class ShareTargetKey(NamedTuple):
    """The key of a member's part of the target assignment (ShareGroupTargetAssignmentMember)."""

    group: str
    member_id: str


class ShareCurrentKey(NamedTuple):
    """The key of what a member has (ShareGroupCurrentMemberAssignment)."""

    group: str
    member_id: str


class ShareStatesKey(NamedTuple):
    """The key of the partitions that the group reads or begins to read (ShareGroupStatePartitionMetadata)."""

    group: str


class ShareMemberValue(NamedTuple):
    """What a member has said about itself."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()


class ShareEpochValue(NamedTuple):
    """A group's epoch, and a hash of the topics that it reads. The hash is 0 if none of them exists."""

    epoch: int
    metadata_hash: int


class ShareTargetEpochValue(NamedTuple):
    """The epoch of the target assignment, and when that was calculated (ms, 0 if never)."""

    epoch: int
    calculated_ms: int


class ShareTargetValue(NamedTuple):
    """A member's part of the target assignment."""

    partitions: Partitions


class ShareCurrentValue(NamedTuple):
    """A member's epoch, the one before, and the partitions that it has."""

    epoch: int = 0
    previous_epoch: int = 0
    assigned: Partitions = NO_PARTITIONS


class ShareStatesValue(NamedTuple):
    """The partitions whose state the share coordinators are asked to begin with, those that they have, and
    the topics whose state they are asked to delete (topic id → name)."""

    initializing: StatePartitions = _NO_STATES
    initialized: StatePartitions = _NO_STATES
    deleting: Mapping[bytes, str] = _NO_TOPICS


ShareKey = (
    ShareMemberKey | ShareEpochKey | ShareTargetEpochKey | ShareTargetKey | ShareCurrentKey | ShareStatesKey
)
ShareValue = (
    ShareMemberValue
    | ShareEpochValue
    | ShareTargetEpochValue
    | ShareTargetValue
    | ShareCurrentValue
    | ShareStatesValue
)
ShareChange = tuple[ShareKey, ShareValue | None]

KEYS: Mapping[int, type[ShareKey]] = {
    10: ShareMemberKey,
    11: ShareEpochKey,
    12: ShareTargetEpochKey,
    13: ShareTargetKey,
    14: ShareCurrentKey,
    15: ShareStatesKey,
}
_VERSIONS = {kind: version for version, kind in KEYS.items()}
_VALUE_VERSION = 0
_NO_TAGS: Mapping[int, bytes] = {}


def encode_key(key: ShareKey) -> bytes:
    """Encode a key."""
    writer = Writer().int16(_VERSIONS[type(key)])
    for text in key:
        writer.string(text)
    return writer.done()


def decode_key(version: int, reader: Reader) -> ShareKey:
    """Decode a key after its version, which is one of KEYS. Raises MalformedBytes."""
    kind = KEYS[version]
    return kind(*(reader.string() for _ in kind._fields))


def encode_value(value: ShareValue) -> bytes:
    """Encode a value."""
    writer, tags = Writer().int16(_VALUE_VERSION), _NO_TAGS
    if isinstance(value, ShareMemberValue):
        writer.compact_string(value.rack_id).compact_string(value.client_id)
        writer.compact_string(value.client_host).array_length(len(value.topics), compact=True)
        for topic in value.topics:
            writer.compact_string(topic)
    elif isinstance(value, ShareEpochValue):
        writer.int32(value.epoch).int64(value.metadata_hash)
    elif isinstance(value, ShareTargetEpochValue):
        writer.int32(value.epoch)
        tags = {0: INT64.pack(value.calculated_ms)} if value.calculated_ms else _NO_TAGS
    elif isinstance(value, ShareTargetValue):
        _write_partitions(writer, value.partitions)
    elif isinstance(value, ShareCurrentValue):
        writer.int32(value.epoch).int32(value.previous_epoch).int8(STABLE)
        _write_partitions(writer, value.assigned)
    else:
        _write_states(writer, value.initializing)
        _write_states(writer, value.initialized)
        writer.array_length(len(value.deleting), compact=True)
        for topic_id, topic in value.deleting.items():
            writer.raw(topic_id).compact_string(topic).tagged_fields(_NO_TAGS)
    return writer.tagged_fields(tags).done()


def _write_partitions(writer: Writer, assigned: Partitions) -> None:
    writer.array_length(len(assigned), compact=True)
    for topic_id, partitions in assigned.items():
        writer.raw(topic_id)
        _write_numbers(writer, partitions)


def _write_states(writer: Writer, states: StatePartitions) -> None:
    writer.array_length(len(states), compact=True)
    for topic_id, (topic, partitions) in states.items():
        writer.raw(topic_id).compact_string(topic)
        _write_numbers(writer, partitions)


def _write_numbers(writer: Writer, partitions: frozenset[int]) -> None:
    numbers = sorted(partitions)
    writer.array_length(len(numbers), compact=True).raw(pack(f">{len(numbers)}i", *numbers))
    writer.tagged_fields(_NO_TAGS)


def decode_value(key: ShareKey, reader: Reader) -> ShareValue:
    """Decode the value that belongs to a key. Raises MalformedBytes."""
    version = reader.int16()
    if version != _VALUE_VERSION:
        raise MalformedBytes(f"a value of version {version}")
    if isinstance(key, ShareMemberKey):
        return ShareMemberValue(
            reader.nullable_compact_string(),
            reader.compact_string(),
            reader.compact_string(),
            tuple(reader.compact_string() for _ in range(reader.array_length(compact=True))),
        )
    if isinstance(key, ShareEpochKey):
        return ShareEpochValue(reader.int32(), reader.int64())
    if isinstance(key, ShareTargetEpochKey):
        epoch, calculated = reader.int32(), reader.tagged_fields().get(0, bytes(8))
        if len(calculated) != 8:
            raise MalformedBytes(f"a number of {len(calculated)} bytes")
        return ShareTargetEpochValue(epoch, int.from_bytes(calculated, "big", signed=True))
    if isinstance(key, ShareTargetKey):
        return ShareTargetValue(_read_partitions(reader))
    if isinstance(key, ShareCurrentKey):
        epoch, previous_epoch, state = reader.int32(), reader.int32(), reader.int8()
        if state != STABLE:
            raise MalformedBytes(f"a member in state {state}")
        return ShareCurrentValue(epoch, previous_epoch, _read_partitions(reader))
    initializing, initialized = _read_states(reader), _read_states(reader)
    deleting: dict[bytes, str] = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = bytes(reader.take(TOPIC_ID_BYTES))
        deleting[topic_id] = reader.compact_string()
        reader.tagged_fields()
    return ShareStatesValue(initializing, initialized, deleting)


def _read_partitions(reader: Reader) -> Partitions:
    assigned: dict[bytes, frozenset[int]] = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = bytes(reader.take(TOPIC_ID_BYTES))
        assigned[topic_id] = _read_numbers(reader)
    return assigned


def _read_states(reader: Reader) -> StatePartitions:
    states: dict[bytes, NamedPartitions] = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = bytes(reader.take(TOPIC_ID_BYTES))
        topic = reader.compact_string()
        states[topic_id] = NamedPartitions(topic, _read_numbers(reader))
    return states


def _read_numbers(reader: Reader) -> frozenset[int]:
    count = reader.array_length(compact=True)
    numbers = frozenset(unpack(f">{count}i", reader.take(4 * count)))
    reader.tagged_fields()
    return numbers
