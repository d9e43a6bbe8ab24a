"""Record batches (magic 2): functions that read and rewrite headers, and make batches from records."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from kview.wire.compression import inflated
from kview.wire.primitives import (
    VARINT_BYTES,
    MalformedBytes,
    read_record_field,
    read_varint,
    record_field,
    varint,
)

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and last time, producer
id and epoch, base sequence, number of records."""
HEADER_BYTES = 61
LENGTH_FROM = 12
"""The length field does not count the bytes before this one."""
CRC_FROM = 21
MAGIC = 2
_MAGIC_AT = 16
_CODEC_AT = 22
_BASE_AND_LENGTH, _LAST_DELTA = struct.Struct(">qi"), struct.Struct(">i")
_LAST_DELTA_AT = 23
COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
"""Set by the cleaner in a batch whose base timestamp is the time when its tombstones, or its marker, may
go."""


class BatchHeader(NamedTuple):
    """The header of a batch. `size_bytes` is the size of the complete batch."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_time_ms: int
    max_time_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int


class Sender(NamedTuple):
    """Who sends a batch: an idempotent producer, and the sequence number of the batch's first record."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


class Marker(NamedTuple):
    """The end of a transaction in a partition: the only record of a control batch (EndTransactionMarker)."""

    is_commit: bool
    coordinator_epoch: int


class Record(NamedTuple):
    """A record of a batch. `offset_delta` is relative to the batch's base offset."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    offset_delta: int = 0


def header(batch: bytes | memoryview, at: int = 0) -> BatchHeader:
    """Read the header of the batch at byte `at`. Raises struct.error if there are too few bytes."""
    base, length, epoch, _, _, attributes, last, first_ms, max_ms, pid, pepoch, seq, count = (
        HEADER.unpack_from(batch, at)
    )
    return BatchHeader(
        base, length + LENGTH_FROM, epoch, attributes, last, first_ms, max_ms, pid, pepoch, seq, count
    )


def end_of(batches: bytes | memoryview) -> int:
    """Return the offset after the last of some complete batches, 0 if there is none."""
    at, end = 0, 0
    while at < len(batches):
        base, length = _BASE_AND_LENGTH.unpack_from(batches, at)
        end = base + _LAST_DELTA.unpack_from(batches, at + _LAST_DELTA_AT)[0] + 1
        at += LENGTH_FROM + length
    return end


def last_offset_delta(batch: bytes) -> int:
    """Return the offset of the last record of a batch, relative to its base offset."""
    return int(_LAST_DELTA.unpack_from(batch, _LAST_DELTA_AT)[0])


def codec(batch: bytes) -> int:
    """Return the number of a batch's codec, or 0 if the bytes are not a batch."""
    if len(batch) < HEADER_BYTES or batch[_MAGIC_AT] != MAGIC:
        return 0
    return batch[_CODEC_AT] & COMPRESSION_MASK


def transactional(batch: bytes) -> bool:
    """Return whether a batch belongs to a transaction. Bytes that are not a batch do not."""
    return len(batch) >= HEADER_BYTES and batch[_MAGIC_AT] == MAGIC and bool(batch[_CODEC_AT] & TRANSACTIONAL)


def placed(batch: bytes, base_offset: int, leader_epoch: int) -> tuple[bytes, bytes, bytes, memoryview]:
    """Return `batch` in pieces, with this base offset and leader epoch, neither of which its CRC covers."""
    return (
        base_offset.to_bytes(8, "big"),
        batch[8:12],
        leader_epoch.to_bytes(4, "big", signed=True),
        memoryview(batch)[16:],
    )


def with_times(batch: bytes, attributes: int, max_time_ms: int) -> bytes:
    """Return `batch` with these attributes and this latest timestamp, and with the checksum that belongs to
    them."""
    rest = b"".join(
        (
            attributes.to_bytes(2, "big", signed=True),
            batch[23:35],
            max_time_ms.to_bytes(8, "big", signed=True),
            batch[43:],
        )
    )
    return b"".join((batch[:17], crc32c(rest).to_bytes(4, "big"), rest))


def encode_batch(
    records: Sequence[Record | tuple[bytes | None, bytes | None, int]],
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
) -> bytes:
    """Encode at least one record, given as (key, value, timestamp in ms), as an uncompressed batch."""
    base_ms = records[0][2]
    encoded: list[bytes] = []
    for delta, (key, value, time_ms) in enumerate((r[0], r[1], r[2]) for r in records):
        inner = b"".join(
            (
                b"\0",
                varint(time_ms - base_ms),
                varint(delta),
                record_field(key),
                record_field(value),
                b"\0",
            )
        )
        encoded += (varint(len(inner)), inner)
    data = b"".join(encoded)
    head = BatchHeader(
        base_offset=base_offset,
        size_bytes=HEADER_BYTES + len(data),
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_time_ms=base_ms,
        max_time_ms=max(r[2] for r in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records=len(records),
    )
    return pack_batch(head, data)


_MARKER_KEY = struct.Struct(">hh")  # version, type
_MARKER_VALUE = struct.Struct(">hi")  # version, the coordinator's epoch
_ABORT, _COMMIT = 0, 1


def encode_marker(marker: Marker, producer_id: int, producer_epoch: int, time_ms: int) -> bytes:
    """Encode the control batch that ends a producer's transaction."""
    key = _MARKER_KEY.pack(0, _COMMIT if marker.is_commit else _ABORT)
    value = _MARKER_VALUE.pack(0, marker.coordinator_epoch)
    return encode_batch(
        [(key, value, time_ms)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )


def decode_marker(batch: bytes) -> Marker | None:
    """Decode a control batch, or return None if it does not end a transaction. Raises MalformedBytes."""
    record = next(decode_batch(batch), None)
    if record is None:  # The cleaner has emptied it.
        return None
    key, value = record.key or b"", record.value or b""
    if len(key) < _MARKER_KEY.size or len(value) < _MARKER_VALUE.size:
        return None
    kind = _MARKER_KEY.unpack_from(key)[1]
    return Marker(kind == _COMMIT, _MARKER_VALUE.unpack_from(value)[1]) if kind in (_ABORT, _COMMIT) else None


_AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")


def pack_batch(head: BatchHeader, body: bytes) -> bytes:
    """Build a batch from its header and its records, which are already encoded."""
    base, size, epoch, attributes, last, first_ms, max_ms, pid, pepoch, seq, count = head
    rest = _AFTER_CRC.pack(attributes, last, first_ms, max_ms, pid, pepoch, seq, count) + body
    return _BEFORE_CRC.pack(base, size - LENGTH_FROM, epoch, MAGIC, crc32c(rest)) + rest


def body(batch: bytes, head: BatchHeader) -> tuple[bytes, int]:
    """Return the batch's records, decompressed, and the position of the first. Raises MalformedBytes."""
    codec = head.attributes & COMPRESSION_MASK
    return (inflated(codec, batch[HEADER_BYTES:]), 0) if codec else (batch, HEADER_BYTES)


def decode_batch(batch: bytes) -> Iterator[Record]:
    """Yield the records of a batch, compressed or not. Raises MalformedBytes if they cannot be decoded."""
    head = header(batch)
    data, at = body(batch, head)
    append_time = bool(head.attributes & TIMESTAMP_TYPE)
    for _ in range(head.records):
        length, at = read_varint(data, at, VARINT_BYTES)
        end = at + length
        if length <= 0 or end > len(data):
            raise MalformedBytes("a record longer than its batch")
        time_delta, at = read_varint(data, at + 1)
        offset_delta, at = read_varint(data, at, VARINT_BYTES)
        key, at = read_record_field(data, at)
        value, at = read_record_field(data, at)
        time_ms = head.max_time_ms if append_time else head.base_time_ms + time_delta
        yield Record(key, value, time_ms, offset_delta)
        at = end
