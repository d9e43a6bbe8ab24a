"""The records of `__consumer_offsets`, as values and as bytes in Kafka's format.

Key versions: 1 for an offset (OffsetCommitKey), 2 for a classic group (GroupMetadataKey), others for groups
of the consumer protocol, share groups and streams groups. Value versions: 4 for an offset with the topic's
id, 3 for one without, and 3 for a classic group. A value of None is a tombstone.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kview.simulate import records
from kview.simulate.groups import consumer_records, share_records, streams_records
from kview.simulate.groups.consumer_records import ConsumerKey, ConsumerValue
from kview.simulate.groups.share_records import ShareKey, ShareValue
from kview.simulate.groups.streams_records import StreamsKey, StreamsValue
from kview.wire.primitives import MalformedBytes, Reader, Writer

NO_TOPIC_ID = bytes(consumer_records.TOPIC_ID_BYTES)


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group: str
    topic: str
    partition: int


class OffsetValue(NamedTuple):
    """A committed offset. `topic_id` distinguishes the topic from a later topic of the same name, unless it
    is NO_TOPIC_ID."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    topic_id: bytes


class GroupKey(NamedTuple):
    """The key of a classic group's metadata."""

    group: str


class MemberValue(NamedTuple):
    """A member as stored in the log."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupValue(NamedTuple):
    """A group's latest completed generation. A group without members is empty."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_since_ms: int
    members: tuple[MemberValue, ...]


Key = OffsetKey | GroupKey | ConsumerKey | ShareKey | StreamsKey
Written = OffsetValue | GroupValue | ConsumerValue | ShareValue | StreamsValue
Value = Written | None
Change = tuple[Key, Value]

_OFFSET_KEY_VERSION = 1
_GROUP_KEY_VERSION = 2
_OFFSET_VALUE_VERSION, _WITHOUT_TOPIC_ID = 4, 3
_GROUP_VALUE_VERSION = 3
_TOPIC_ID_TAG = 0


def encode_key(key: Key) -> bytes:
    """Encode a key."""
    if isinstance(key, OffsetKey):
        writer = Writer().int16(_OFFSET_KEY_VERSION).string(key.group).string(key.topic)
        return writer.int32(key.partition).done()
    if isinstance(key, GroupKey):
        return Writer().int16(_GROUP_KEY_VERSION).string(key.group).done()
    if isinstance(key, ShareKey):
        return share_records.encode_key(key)
    if isinstance(key, StreamsKey):
        return streams_records.encode_key(key)
    return consumer_records.encode_key(key)


def encode_value(value: Written) -> bytes:
    """Encode a value."""
    if isinstance(value, OffsetValue):
        if value.topic_id == NO_TOPIC_ID:
            writer = Writer().int16(_WITHOUT_TOPIC_ID).int64(value.offset).int32(value.leader_epoch)
            return writer.string(value.metadata).int64(value.commit_ms).done()
        writer = Writer().int16(_OFFSET_VALUE_VERSION).int64(value.offset).int32(value.leader_epoch)
        writer.compact_string(value.metadata).int64(value.commit_ms)
        return writer.tagged_fields({_TOPIC_ID_TAG: value.topic_id}).done()
    if isinstance(value, ShareValue):
        return share_records.encode_value(value)
    if isinstance(value, StreamsValue):
        return streams_records.encode_value(value)
    if not isinstance(value, GroupValue):
        return consumer_records.encode_value(value)
    writer = Writer().int16(_GROUP_VALUE_VERSION)
    writer.string(value.protocol_type).int32(value.generation).string(value.protocol)
    writer.string(value.leader).int64(value.state_since_ms).int32(len(value.members))
    for member in value.members:
        writer.string(member.member_id).string(member.group_instance_id)
        writer.string(member.client_id).string(member.client_host)
        writer.int32(member.rebalance_timeout_ms).int32(member.session_timeout_ms)
        writer.nullable_bytes(member.subscription).nullable_bytes(member.assignment)
    return writer.done()


def encode_batch(changes: Sequence[Change], time_ms: int, producer: tuple[int, int] | None = None) -> bytes:
    """Encode these changes as one v2 batch: as part of a transaction, if its producer's id and epoch are
    given."""
    encoded = [
        (encode_key(key), None if value is None else encode_value(value), time_ms) for key, value in changes
    ]
    if producer is None:
        return records.encode_batch(encoded)
    producer_id, epoch = producer
    return records.encode_batch(
        encoded, producer_id=producer_id, producer_epoch=epoch, attributes=records.TRANSACTIONAL
    )


def decode_batch(batch: bytes) -> list[Change]:
    """Decode a batch written by `encode_batch`. Raises MalformedBytes."""
    changes: list[Change] = []
    for record in records.decode_batch(batch):
        key = decode_key(record.key or b"")
        changes.append((key, None if record.value is None else decode_value(key, record.value)))
    return changes


def decode_key(data: bytes) -> Key:
    """Decode a key. Raises MalformedBytes."""
    reader = Reader(data)
    version = reader.int16()
    if version == _OFFSET_KEY_VERSION:
        return OffsetKey(reader.string(), reader.string(), reader.int32())
    if version == _GROUP_KEY_VERSION:
        return GroupKey(reader.string())
    if version in share_records.KEYS:
        return share_records.decode_key(version, reader)
    if version in streams_records.KEYS:
        return streams_records.decode_key(version, reader)
    return consumer_records.decode_key(version, reader)


def decode_value(key: Key, data: bytes) -> Written:
    """Decode the value that belongs to a key. Raises MalformedBytes."""
    reader = Reader(data)
    if isinstance(key, ShareKey):
        return share_records.decode_value(key, reader)
    if isinstance(key, StreamsKey):
        return streams_records.decode_value(key, reader)
    if not isinstance(key, OffsetKey | GroupKey):
        return consumer_records.decode_value(key, reader)
    version = reader.int16()
    if isinstance(key, OffsetKey):
        if version == _WITHOUT_TOPIC_ID:
            return OffsetValue(reader.int64(), reader.int32(), reader.string(), reader.int64(), NO_TOPIC_ID)
        if version != _OFFSET_VALUE_VERSION:
            raise MalformedBytes(f"an offset of version {version}")
        offset, epoch, metadata = reader.int64(), reader.int32(), reader.compact_string()
        commit_ms = reader.int64()
        topic_id = reader.tagged_fields().get(_TOPIC_ID_TAG, NO_TOPIC_ID)
        return OffsetValue(offset, epoch, metadata, commit_ms, topic_id)
    return GroupValue(
        protocol_type=reader.string(),
        generation=reader.int32(),
        protocol=reader.nullable_string(),
        leader=reader.nullable_string(),
        state_since_ms=reader.int64(),
        members=tuple(
            MemberValue(
                reader.string(),
                reader.nullable_string(),
                reader.string(),
                reader.string(),
                reader.int32(),
                reader.int32(),
                reader.nullable_bytes() or b"",
                reader.nullable_bytes() or b"",
            )
            for _ in range(reader.array_length())
        ),
    )
