"""The records of consumer groups in `__consumer_offsets`, as values and as bytes in Kafka's format.

A key's version is its type: 3 the group, 5 a member, 6 the target assignment, 7 a member's part of it, 8 a
member's current assignment, 16 a regular expression. All values have version 0 and are flexible.
"""

from collections.abc import Mapping
from enum import IntEnum
from struct import pack, unpack
from types import MappingProxyType
from typing import NamedTuple

from kview.simulate.groups.results import GroupProtocol
from kview.wire.primitives import INT64, MalformedBytes, Reader, Writer

TOPIC_ID_BYTES = 16

Partitions = Mapping[bytes, frozenset[int]]
"""Topic id → partitions."""

OwnedPartitions = Mapping[bytes, Mapping[int, int]]
"""Topic id → partition → the epoch in which it was assigned."""


_NOTHING: OwnedPartitions = MappingProxyType({})


class MemberState(IntEnum):
    """How far a member has come on its way to the target assignment, with its number in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


STATES = frozenset(MemberState)


class EpochKey(NamedTuple):
    """The key of a group's epoch (ConsumerGroupMetadata)."""

    group: str


class MemberKey(NamedTuple):
    """The key of what a member has said about itself (ConsumerGroupMemberMetadata)."""

    group: str
    member_id: str


class TargetEpochKey(NamedTuple):
    """The key of the target assignment's epoch (ConsumerGroupTargetAssignmentMetadata)."""

    group: str


class TargetKey(NamedTuple):
    """The key of a member's part of the target assignment (ConsumerGroupTargetAssignmentMember)."""

    group: str
    member_id: str


class CurrentKey(NamedTuple):
    """The key of what a member has (ConsumerGroupCurrentMemberAssignment)."""

    group: str
    member_id: str


class RegexKey(NamedTuple):
    """The key of a regular expression that members subscribe to (ConsumerGroupRegularExpression)."""

    group: str
    pattern: str


class EpochValue(NamedTuple):
    """A group's epoch, and a hash of the topics that it reads. The hash is 0 if none of them exists."""

    epoch: int
    metadata_hash: int


class ClassicMember(NamedTuple):
    """What a member of the classic protocol has said in JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]


class MemberMetadata(NamedTuple):
    """What a member has said about itself. `classic` is set if it uses the classic protocol."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMember | None = None


class TargetEpochValue(NamedTuple):
    """The epoch of the target assignment, and when that was calculated (ms, 0 if never)."""

    epoch: int
    calculated_ms: int


class TargetValue(NamedTuple):
    """A member's part of the target assignment."""

    partitions: Partitions


class CurrentValue(NamedTuple):
    """A member's epoch, and what it has: the partitions that it may keep, and those that it must revoke."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = _NOTHING
    revoking: OwnedPartitions = _NOTHING


class RegexValue(NamedTuple):
    """The topics that match a regular expression, as of `offset` in the metadata log and `resolved_ms`."""

    topics: frozenset[str]
    offset: int
    resolved_ms: int


ConsumerKey = EpochKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | RegexKey
ConsumerValue = EpochValue | MemberMetadata | TargetEpochValue | TargetValue | CurrentValue | RegexValue
ConsumerChange = tuple[ConsumerKey, ConsumerValue | None]

_KEYS: Mapping[int, type[ConsumerKey]] = {
    3: EpochKey,
    5: MemberKey,
    6: TargetEpochKey,
    7: TargetKey,
    8: CurrentKey,
    16: RegexKey,
}
_VERSIONS = {kind: version for version, kind in _KEYS.items()}
_VALUE_VERSION = 0
_NO_TAGS: Mapping[int, bytes] = {}
_NO_CLASSIC_MEMBER = b"\0"
"""A nullable struct begins with a byte: 1 if it is there."""


def encode_key(key: ConsumerKey) -> bytes:
    """Encode a key."""
    writer = Writer().int16(_VERSIONS[type(key)])
    for text in key:
        writer.string(text)
    return writer.done()


def decode_key(version: int, reader: Reader) -> ConsumerKey:
    """Decode a key after its version. Raises MalformedBytes."""
    kind = _KEYS.get(version)
    if kind is None:
        raise MalformedBytes(f"a key of version {version}")
    return kind(*(reader.string() for _ in kind._fields))


def encode_value(value: ConsumerValue) -> bytes:
    """Encode a value."""
    writer = Writer().int16(_VALUE_VERSION)
    if isinstance(value, EpochValue):
        tags = {0: INT64.pack(value.metadata_hash)} if value.metadata_hash else _NO_TAGS
        writer.int32(value.epoch).tagged_fields(tags)
    elif isinstance(value, TargetEpochValue):
        tags = {0: INT64.pack(value.calculated_ms)} if value.calculated_ms else _NO_TAGS
        writer.int32(value.epoch).tagged_fields(tags)
    elif isinstance(value, TargetValue):
        writer.array_length(len(value.partitions), compact=True)
        for topic_id, partitions in value.partitions.items():
            _write_partitions(writer, topic_id, sorted(partitions)).tagged_fields(_NO_TAGS)
        writer.tagged_fields(_NO_TAGS)
    elif isinstance(value, CurrentValue):
        writer.int32(value.epoch).int32(value.previous_epoch).int8(value.state)
        _write_owned(writer, value.assigned)
        _write_owned(writer, value.revoking)
        writer.tagged_fields(_NO_TAGS)
    elif isinstance(value, MemberMetadata):
        _write_member(writer, value)
    else:
        writer.array_length(len(value.topics), compact=True)
        for topic in sorted(value.topics):
            writer.compact_string(topic)
        writer.int64(value.offset).int64(value.resolved_ms).tagged_fields(_NO_TAGS)
    return writer.done()


def _write_partitions(writer: Writer, topic_id: bytes, partitions: list[int]) -> Writer:
    numbers = pack(f">{len(partitions)}i", *partitions)
    return writer.raw(topic_id).array_length(len(partitions), compact=True).raw(numbers)


def _write_owned(writer: Writer, owned: OwnedPartitions) -> None:
    writer.array_length(len(owned), compact=True)
    for topic_id, epochs in owned.items():
        partitions = sorted(epochs)
        _write_partitions(writer, topic_id, partitions)
        in_order = pack(f">{len(partitions)}i", *(epochs[partition] for partition in partitions))
        length = Writer().array_length(len(partitions), compact=True).done()
        writer.tagged_fields({0: length + in_order})


def _write_member(writer: Writer, member: MemberMetadata) -> None:
    writer.compact_string(member.instance_id).compact_string(member.rack_id)
    writer.compact_string(member.client_id).compact_string(member.client_host)
    writer.array_length(len(member.topics), compact=True)
    for topic in member.topics:
        writer.compact_string(topic)
    writer.compact_string(member.regex).int32(member.rebalance_timeout_ms).compact_string(member.assignor)
    if member.classic is None:
        writer.tagged_fields({0: _NO_CLASSIC_MEMBER})
        return
    classic = Writer().int8(1)
    classic.int32(member.classic.session_timeout_ms)
    classic.array_length(len(member.classic.protocols), compact=True)
    for protocol in member.classic.protocols:
        classic.compact_string(protocol.name)
        classic.array_length(len(protocol.metadata), compact=True).raw(protocol.metadata)
        classic.tagged_fields(_NO_TAGS)
    writer.tagged_fields({0: classic.tagged_fields(_NO_TAGS).done()})


def decode_value(key: ConsumerKey, reader: Reader) -> ConsumerValue:
    """Decode the value that belongs to a key. Raises MalformedBytes."""
    version = reader.int16()
    if version != _VALUE_VERSION:
        raise MalformedBytes(f"a value of version {version}")
    if isinstance(key, EpochKey):
        return EpochValue(reader.int32(), _int64(reader.tagged_fields()))
    if isinstance(key, TargetEpochKey):
        return TargetEpochValue(reader.int32(), _int64(reader.tagged_fields()))
    if isinstance(key, TargetKey):
        target: dict[bytes, frozenset[int]] = {}
        for _ in range(reader.array_length(compact=True)):
            topic_id, partitions = _read_partitions(reader)
            target[topic_id] = frozenset(partitions)
            reader.tagged_fields()
        return TargetValue(target)
    if isinstance(key, CurrentKey):
        epoch, previous_epoch, state = reader.int32(), reader.int32(), reader.int8()
        if state not in STATES:
            raise MalformedBytes(f"a member in state {state}")
        assigned, revoking = _read_owned(reader, epoch), _read_owned(reader, epoch)
        return CurrentValue(epoch, previous_epoch, MemberState(state), assigned, revoking)
    if isinstance(key, MemberKey):
        return _read_member(reader)
    topics = frozenset(reader.compact_string() for _ in range(reader.array_length(compact=True)))
    return RegexValue(topics, reader.int64(), reader.int64())


def _int64(tags: Mapping[int, bytes]) -> int:
    data = tags.get(0, bytes(8))
    if len(data) != 8:
        raise MalformedBytes(f"a number of {len(data)} bytes")
    return int.from_bytes(data, "big", signed=True)


def _read_partitions(reader: Reader) -> tuple[bytes, tuple[int, ...]]:
    topic_id = bytes(reader.take(TOPIC_ID_BYTES))
    return topic_id, _numbers(reader)


def _numbers(reader: Reader) -> tuple[int, ...]:
    count = reader.array_length(compact=True)
    return unpack(f">{count}i", reader.take(4 * count))


def _read_owned(reader: Reader, epoch: int) -> OwnedPartitions:
    """Read partitions with the epochs of their assignment, which are the member's if there are none."""
    owned: dict[bytes, Mapping[int, int]] = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id, partitions = _read_partitions(reader)
        tag = reader.tagged_fields().get(0)
        epochs = _numbers(Reader(tag)) if tag is not None else ()
        if len(epochs) != len(partitions):
            epochs = (epoch,) * len(partitions)
        owned[topic_id] = dict(zip(partitions, epochs, strict=True))
    return owned


def _read_member(reader: Reader) -> MemberMetadata:
    member = MemberMetadata(
        instance_id=reader.nullable_compact_string(),
        rack_id=reader.nullable_compact_string(),
        client_id=reader.compact_string(),
        client_host=reader.compact_string(),
        topics=tuple(reader.compact_string() for _ in range(reader.array_length(compact=True))),
        regex=reader.nullable_compact_string() or "",
        rebalance_timeout_ms=reader.int32(),
        assignor=reader.nullable_compact_string(),
    )
    classic = Reader(reader.tagged_fields().get(0, _NO_CLASSIC_MEMBER))
    if classic.int8() != 1:
        return member
    session_timeout_ms = classic.int32()
    protocols = []
    for _ in range(classic.array_length(compact=True)):
        name = classic.compact_string()
        protocols.append(GroupProtocol(name, bytes(classic.take(classic.array_length(compact=True)))))
        classic.tagged_fields()
    if not protocols:
        raise MalformedBytes("a member of the classic protocol that offers none")
    return member._replace(classic=ClassicMember(session_timeout_ms, tuple(protocols)))
