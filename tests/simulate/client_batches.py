"""Batches made by kafka-python's own builder, and batches with one thing wrong."""

import gzip
from struct import pack

import pyarrow as pa
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from kview.simulate.records import CRC_FROM, HEADER_BYTES, LENGTH_FROM, encode_batch
from kview.wire.compression import GZIP, LZ4, SNAPPY
from kview.wire.primitives import record_field, varint
from tests.simulate.engine import START_MS

HEADERS = [("trace", b"id"), ("empty", None)]
LZ4_HEADER = bytes.fromhex("04224d18604082")
"""An LZ4 frame of independent blocks of 64 KiB, without checksums."""


def client_batch(
    producer_id: int = -1, epoch: int = -1, sequence: int = -1, records: int = 3, compression: int = 0
) -> bytes:
    """Return a batch with keys, null keys, null values and headers."""
    builder = DefaultRecordBatchBuilder(2, compression, False, producer_id, epoch, sequence, 1 << 20)
    for n in range(records):
        value = b"v" * (1, 70, 9_000)[n % 3]
        builder.append(n, START_MS + 7 * n, b"k" if n % 2 == 0 else None, value, HEADERS[: n % 3])
    return bytes(builder.build())


def with_field(batch: bytes, at: int, layout: str, value: int) -> bytes:
    """Return a batch with another number in its header or body, and with the checksum that belongs to it."""
    data = pack(f">{layout}", value)
    changed = batch[:at] + data + batch[at + len(data) :]
    return changed[:17] + crc32c(changed[21:]).to_bytes(4, "big") + changed[21:]


def compressed(codec: int, data: bytes) -> bytes:
    """Compress data as a client does."""
    if codec == GZIP:
        return gzip.compress(data)
    if codec == SNAPPY:
        return bytes(pa.compress(data, "snappy", asbytes=True))
    if codec == LZ4:
        blocks = [
            pa.compress(data[at : at + 65_536], "lz4_raw", asbytes=True) for at in range(0, len(data), 65_536)
        ]
        return LZ4_HEADER + b"".join(pack("<I", len(block)) + block for block in blocks) + bytes(4)
    return streamed("zstd", data)


def streamed(name: str, data: bytes) -> bytes:
    """Compress data with one of pyarrow's streams."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, name) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def record(offset: int, key: bytes | None = b"k", after_ms: int = 0, value: bytes = b"value") -> bytes:
    """Return a record's bytes as they are in a batch."""
    times = b"\0" + varint(after_ms) + varint(offset)
    inner = times + record_field(key) + record_field(value) + b"\0"
    return varint(len(inner)) + inner


def recompressed(batch: bytes, codec: int) -> bytes:
    """Return an uncompressed batch as a client with this codec would send it. Codec 0 changes nothing."""
    if not codec:
        return batch
    body = compressed(codec, batch[HEADER_BYTES:])
    size = (HEADER_BYTES + len(body) - LENGTH_FROM).to_bytes(4, "big")
    attributes = batch[CRC_FROM] << 8 | batch[CRC_FROM + 1] | codec
    checked = attributes.to_bytes(2, "big") + batch[CRC_FROM + 2 : HEADER_BYTES] + body
    return batch[:8] + size + batch[12:17] + crc32c(checked).to_bytes(4, "big") + checked


def compressed_batch(codec: int, records: bytes, count: int, time_ms: int = START_MS) -> bytes:
    """Return a batch that claims to have `count` records, with `records` compressed in it."""
    return raw_batch(codec, compressed(codec, records), count, time_ms)


def raw_batch(codec: int, body: bytes, count: int, time_ms: int = START_MS) -> bytes:
    """Return a batch that claims to have `count` compressed records, with these bytes after its header."""
    header = encode_batch([(None, None, time_ms)])[:61]
    data = header[:8] + pack(">i", 49 + len(body)) + header[12:] + body
    return with_field(with_field(with_field(data, 21, "h", codec), 23, "i", count - 1), 57, "i", count)
