"""Record batches (magic 2): functions that read, check and rewrite headers, and make batches from records."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and last time, producer
id and epoch, base sequence, number of records."""
HEADER_BYTES = 61
LENGTH_FROM = 12
"""The length field counts from byte 12 on."""
CRC_FROM = 21
MAGIC = 2
COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE = 0x08


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


class Record(NamedTuple):
    """A record as it is put into or read from a batch."""

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


def split(data: bytes) -> tuple[ErrorCode, list[tuple[BatchHeader, bytes]]]:
    """Split `data` into batches, and check the magic (2), length, count and CRC of each."""
    batches: list[tuple[BatchHeader, bytes]] = []
    at, end = 0, len(data)
    while at < end:
        if end - at < HEADER_BYTES:
            return ErrorCode.CORRUPT_MESSAGE, []
        if data[at + 16] != MAGIC:
            return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, []
        head = header(data, at)
        if head.size_bytes < HEADER_BYTES or at + head.size_bytes > end:
            return ErrorCode.CORRUPT_MESSAGE, []
        batch = data[at : at + head.size_bytes]
        if head.records <= 0 or head.last_offset_delta != head.records - 1:
            return ErrorCode.INVALID_RECORD, []
        if crc32c(memoryview(batch)[CRC_FROM:]) != HEADER.unpack_from(batch)[4]:
            return ErrorCode.CORRUPT_MESSAGE, []
        batches.append((head, batch))
        at += head.size_bytes
    return (ErrorCode.NONE if batches else ErrorCode.INVALID_RECORD), batches


def placed(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return `batch` with this base offset and leader epoch, neither of which its CRC covers."""
    return b"".join(
        (
            base_offset.to_bytes(8, "big"),
            batch[8:12],
            leader_epoch.to_bytes(4, "big", signed=True),
            batch[16:],
        )
    )


def zigzag(value: int) -> bytes:
    """Encode a signed number as a varint in the format of record batches."""
    rest = (value << 1) ^ (value >> 63)
    if 0 <= rest < 0x80:
        return bytes((rest,))
    rest &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _unzigzag(data: bytes, at: int) -> tuple[int, int]:
    shift = result = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7


def encode_batch(
    records: Sequence[Record | tuple[bytes | None, bytes | None, int]],
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Encode (key, value, timestamp in ms) records, at least one, as an uncompressed batch."""
    base_ms = records[0][2]
    body: list[bytes] = []
    for delta, (key, value, time_ms) in enumerate((r[0], r[1], r[2]) for r in records):
        inner = b"".join(
            (
                b"\0",
                zigzag(time_ms - base_ms),
                zigzag(delta),
                b"\1" if key is None else zigzag(len(key)) + key,
                b"\1" if value is None else zigzag(len(value)) + value,
                b"\0",
            )
        )
        body += (zigzag(len(inner)), inner)
    return pack_batch(
        base_offset,
        leader_epoch,
        base_ms,
        max(r[2] for r in records),
        len(records),
        b"".join(body),
        producer_id,
        producer_epoch,
        base_sequence,
    )


_AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")


def pack_batch(
    base_offset: int,
    leader_epoch: int,
    base_time_ms: int,
    max_time_ms: int,
    count: int,
    body: bytes,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Build a batch from records that are already encoded."""
    rest = (
        _AFTER_CRC.pack(
            0, count - 1, base_time_ms, max_time_ms, producer_id, producer_epoch, base_sequence, count
        )
        + body
    )
    length = CRC_FROM + len(rest) - LENGTH_FROM
    return _BEFORE_CRC.pack(base_offset, length, leader_epoch, MAGIC, crc32c(rest)) + rest


def decode_batch(batch: bytes) -> Iterator[Record]:
    """Yield the records of an uncompressed batch. A compressed batch yields none."""
    head = header(batch)
    if head.attributes & COMPRESSION_MASK:
        return
    at = HEADER_BYTES
    for _ in range(head.records):
        length, at = _unzigzag(batch, at)
        end = at + length
        time_delta, at = _unzigzag(batch, at + 1)
        offset_delta, at = _unzigzag(batch, at)
        key_length, at = _unzigzag(batch, at)
        key = None if key_length < 0 else batch[at : at + key_length]
        at += max(key_length, 0)
        value_length, at = _unzigzag(batch, at)
        value = None if value_length < 0 else batch[at : at + value_length]
        yield Record(key, value, head.base_time_ms + time_delta, offset_delta)
        at = end
