"""The records of `__transaction_state`, as values and as bytes in Kafka's format.

Key version 0 (TransactionLogKey), value version 1 (TransactionLogValue), whose tagged fields tell what
KIP-890 added, or 0, if the cluster does not know of that. A value of None is a tombstone.
"""

from enum import IntEnum
from typing import NamedTuple

from kview.simulate import records
from kview.wire.primitives import INT16, INT64, MalformedBytes, Reader, Writer

NO_PRODUCER_ID, NO_EPOCH, NO_TIME = -1, -1, -1


class TransactionState(IntEnum):
    """The states of a transaction, with their numbers in the log (TransactionState.java)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def called(self) -> str:
        """Its name in DescribeTransactions."""
        return "".join(part.capitalize() for part in self.name.split("_"))


STATES = frozenset(TransactionState)
EPOCH_MAX = 2**15 - 2
"""The last epoch that a producer gets. The one after it ends the last transaction with this producer id."""


class TransactionValue(NamedTuple):
    """The state of a transactional id as it is stored.

    `previous_producer_id` is the id in the state before. `next_producer_id` is NO_PRODUCER_ID unless the
    producer is getting a new id.
    `version` is 2 if the client bumps its epoch with each transaction (KIP-890), else 0. `partitions` are in
    the order in which they were added.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[tuple[str, int], ...] = ()
    updated_ms: int = NO_TIME
    began_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    version: int = 0


Change = tuple[str, TransactionValue | None]

_KEY_VERSION, _VALUE_VERSION, _WITHOUT_TAGS = 0, 1, 0
_PREVIOUS_ID_TAG, _NEXT_ID_TAG, _VERSION_TAG = 0, 1, 2


def encode_batch(change: Change, time_ms: int, has_tags: bool = True) -> bytes:
    """Encode the state of one transactional id as one v2 batch."""
    transactional_id, value = change
    key = Writer().int16(_KEY_VERSION).string(transactional_id).done()
    return records.encode_batch([(key, None if value is None else _encode_value(value, has_tags), time_ms)])


def _encode_value(value: TransactionValue, has_tags: bool) -> bytes:
    version = _VALUE_VERSION if has_tags else _WITHOUT_TAGS
    writer = Writer().int16(version).int64(value.producer_id).int16(value.producer_epoch)
    writer.int32(value.timeout_ms).int8(value.state)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in value.partitions:
        by_topic.setdefault(topic, []).append(partition)
    is_empty = value.state is TransactionState.EMPTY
    writer.array_length(None if is_empty else len(by_topic), compact=has_tags)
    for topic, numbers in by_topic.items():
        (writer.compact_string if has_tags else writer.string)(topic)
        writer.array_length(len(numbers), compact=has_tags)
        for number in numbers:
            writer.int32(number)
        if has_tags:
            writer.tagged_fields({})
    writer.int64(value.updated_ms).int64(value.began_ms)
    if not has_tags:
        return writer.done()
    ids = {_PREVIOUS_ID_TAG: value.previous_producer_id, _NEXT_ID_TAG: value.next_producer_id}
    tags = {tag: INT64.pack(id) for tag, id in ids.items() if id != NO_PRODUCER_ID}
    if value.version:
        tags[_VERSION_TAG] = INT16.pack(value.version)
    return writer.tagged_fields(tags).done()


def decode_batch(batch: bytes) -> list[Change]:
    """Decode a batch written by `encode_batch`. Raises MalformedBytes."""
    changes: list[Change] = []
    for record in records.decode_batch(batch):
        reader = Reader(record.key or b"")
        if reader.int16() != _KEY_VERSION:
            raise MalformedBytes("a key of another version")
        changes.append((reader.string(), None if record.value is None else _decode_value(record.value)))
    return changes


def _decode_value(data: bytes) -> TransactionValue:
    reader = Reader(data)
    version = reader.int16()
    if version not in (_VALUE_VERSION, _WITHOUT_TAGS):
        raise MalformedBytes("a value of another version")
    has_tags = version == _VALUE_VERSION
    producer_id, epoch, timeout_ms, state = reader.int64(), reader.int16(), reader.int32(), reader.int8()
    partitions: list[tuple[str, int]] = []
    for _ in range(reader.array_length(compact=has_tags)):
        topic = reader.compact_string() if has_tags else reader.string()
        partitions += [(topic, reader.int32()) for _ in range(reader.array_length(compact=has_tags))]
        if has_tags:
            reader.tagged_fields()
    updated_ms, began_ms = reader.int64(), reader.int64()
    tags = reader.tagged_fields() if has_tags else {}
    if state not in STATES or producer_id < 0 or epoch < NO_EPOCH:
        raise MalformedBytes(f"state {state} of producer {producer_id}, epoch {epoch}")

    def number(tag: int, missing: int) -> int:
        bytes_ = tags.get(tag)
        if bytes_ is not None and len(bytes_) != (2 if tag == _VERSION_TAG else 8):
            raise MalformedBytes(f"a number of {len(bytes_)} bytes")
        return missing if bytes_ is None else int.from_bytes(bytes_, "big", signed=True)

    return TransactionValue(
        producer_id,
        epoch,
        timeout_ms,
        TransactionState(state),
        tuple(partitions),
        updated_ms,
        began_ms,
        number(_PREVIOUS_ID_TAG, NO_PRODUCER_ID),
        number(_NEXT_ID_TAG, NO_PRODUCER_ID),
        number(_VERSION_TAG, 0),
    )
