"""Records in every format and codec are those that kafka-python and Kafka's rules say; hostile bytes raise
nothing but MalformedBytes."""

import contextlib
import zlib
from struct import pack

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder

from kview.simulate.records import encode_batch
from kview.wire import records as wire
from kview.wire.compression import GZIP, LZ4, SNAPPY, ZSTD, TooLarge
from kview.wire.primitives import MalformedBytes, record_field, varint
from tests.simulate.client_batches import client_batch, compressed, raw_batch, recompressed, with_field
from tests.simulate.engine import START_MS

EVERYTHING = (0, 2**62, 10**6, False)
OLD_TIME_MS = 1_000


def all_of(data: bytes) -> list[wire.RawRecord]:
    return [record for batch in wire.batches(data) for record in wire.records(batch, *EVERYTHING)]


def legacy(
    magic: int, offset: int, key: bytes | None, value: bytes | None, attributes: int = 0, time_ms: int = 7
) -> bytes:
    """A message of an old format, whose checksum is right."""

    def field(data: bytes | None) -> bytes:
        return pack(">i", -1) if data is None else pack(">i", len(data)) + data

    body = (
        pack(">bB", magic, attributes) + (pack(">q", time_ms) if magic else b"") + field(key) + field(value)
    )
    return pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_records_of_every_codec(codec: int) -> None:
    plain = with_field(client_batch(records=60), 0, "q", 500)
    found = all_of(recompressed(plain, codec))
    assert [r.offset for r in found] == list(range(500, 560))
    assert [r.timestamp_ms for r in found] == [START_MS + 7 * n for n in range(60)]
    assert [r.key for r in found] == [b"k" if n % 2 == 0 else None for n in range(60)]
    assert [len(r.value or b"") for r in found] == [(1, 70, 9_000)[n % 3] for n in range(60)]
    assert found[2].headers == ((b"trace", b"id"), (b"empty", None))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY])
def test_old_formats(magic: int, codec: int) -> None:
    rows: list[tuple[bytes | None, bytes | None]] = [(b"a", b"1"), (None, b"2"), (b"c", None)]
    if codec:
        inner = b"".join(
            legacy(magic, n if magic else 40 + n, k, v, time_ms=OLD_TIME_MS + n)
            for n, (k, v) in enumerate(rows)
        )
        data = legacy(magic, 42, None, compressed(codec, inner), codec, 9_999)
    else:
        data = b"".join(legacy(magic, 40 + n, k, v, time_ms=OLD_TIME_MS + n) for n, (k, v) in enumerate(rows))
    found = all_of(data)
    assert [r.offset for r in found] == [40, 41, 42]
    assert [(r.key, r.value) for r in found] == rows
    assert [r.timestamp_ms for r in found] == ([OLD_TIME_MS + n for n in range(3)] if magic else [-1] * 3)
    builder = MemoryRecordsBuilder(magic, 0, 1 << 20)
    builder.append(OLD_TIME_MS, b"key", b"value", [])
    builder.close()
    assert all_of(bytes(builder.buffer()))[0][3:5] == (b"key", b"value")


def test_only_what_is_asked_for_is_decoded() -> None:
    (batch,) = wire.batches(with_field(client_batch(records=60), 0, "q", 500))
    assert [r.offset for r in wire.records(batch, 510, 530, 3, newest=False)] == [510, 511, 512]
    assert [r.offset for r in wire.records(batch, 510, 530, 3, newest=True)] == [527, 528, 529]
    cut_off = bytes(batch.data) + bytes(batch.data)[:-1]
    assert len(list(wire.batches(cut_off))) == 1


def test_append_time_counts_for_all_records() -> None:
    batch = with_field(with_field(client_batch(), 21, "h", 8), 35, "q", 123_456)
    assert {(r.timestamp_ms, r.append_time) for r in all_of(batch)} == {(123_456, True)}


def test_what_is_wrong_is_said_by_type() -> None:
    good = client_batch()
    with pytest.raises(wire.BadChecksum):
        all_of(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(wire.UnknownFormat):
        all_of(with_field(good, 21, "h", 5))
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        with pytest.raises(TooLarge):
            all_of(raw_batch(codec, compressed(codec, bytes(wire.INFLATED_MAX + 1)), 1))


@given(st.binary(max_size=300), st.integers(0, 7), st.integers(-1, 2**31 - 1))
def test_random_bytes_with_the_right_checksum_raise_nothing_else(body: bytes, codec: int, count: int) -> None:
    data = encode_batch([(None, None, START_MS)])[:61]
    rest = pack(">h", codec) + data[23:57] + pack(">i", count) + body
    batch = data[:8] + pack(">i", 49 + len(body)) + data[12:17] + pack(">I", crc32c(rest)) + rest
    old = pack(">bB", 1, codec & 3) + pack(">q", 7) + body
    message = pack(">qiI", 9, len(old) + 4, zlib.crc32(old)) + old
    for hostile in (batch, message, body):
        try:
            all_of(hostile)
        except MalformedBytes:
            continue


PARTS = st.one_of(
    st.none(),
    st.lists(st.sampled_from([b"ab", b"b", b"\0", b"\0\0\0\0\7", b"x" * 70, b"y" * 20_000]), max_size=4).map(
        b"".join
    ),
)


@given(
    st.lists(st.tuples(PARTS, PARTS, st.integers(0, 2**40)), min_size=1, max_size=30),
    st.lists(
        st.sampled_from([b"ab", b"bb", b"\0ab", b"xab", b"nothing", b"\x12", b"\x14"]), min_size=1, max_size=2
    ),
    st.booleans(),
)
def test_records_with_needles_are_all_of_those_that_have_one(
    written: list[tuple[bytes | None, bytes | None, int]], needles: list[bytes], with_schemas: bool
) -> None:
    [batch] = wire.batches(encode_batch(written, 40))
    body = wire.body(batch)
    assert body is not None
    every = wire.records(batch, *EVERYTHING)
    found = wire.records_with(batch, 0, 2**62, body, [needles], with_schemas)
    assert found == [record for record in every if record in found]
    for record in every:
        parts = [part for part in (record.key, record.value) if part is not None]
        if any(needle in part for needle in needles for part in parts):
            assert record in found
        if with_schemas and any(len(part) >= 5 and part[0] == 0 for part in parts):
            assert record in found
    assert with_schemas or all(any(needle in body for needle in needles) for record in found)


def test_records_have_one_needle_of_each_group() -> None:
    written = [(b"ab", b"x", 0), (b"ab", b"y", 0), (b"b", b"xy", 0), (None, b"ab", 0), (b"y", b"ab", 0)]
    [batch] = wire.batches(encode_batch(written, 40))
    body = wire.body(batch)
    assert body is not None

    def found(*groups: list[bytes]) -> list[int]:
        return [r.offset for r in wire.records_with(batch, 0, 99, body, groups, with_schemas=False)]

    assert found([b"ab"]) == [40, 41, 43, 44]
    assert found([b"ab"], [b"y"]) == [41, 44]
    assert found([b"x", b"y"], [b"ab", b"xy"]) == [40, 41, 42, 44]
    assert found([b"ab"], [b"nothing"]) == []
    found([body[:1]])  # a record's length ends this search, too


def test_schemas_in_headers_count_and_damage_is_said() -> None:
    field = record_field(b"__value_schema_id") + record_field(b"\1" + bytes(16))
    record = b"\0\0\0" + record_field(b"k") + record_field(b"v") + varint(1) + field
    body = varint(len(record)) + record
    [batch] = wire.batches(raw_batch(0, body, 1))
    assert len(wire.records_with(batch, 0, 9, body, [[b"nothing"]], with_schemas=True)) == 1
    assert not wire.records_with(batch, 0, 9, body, [[b"nothing"]], with_schemas=False)
    cut = varint(9) + b"\0\0\0" + varint(90) + b"vvvv"
    [batch] = wire.batches(raw_batch(0, cut, 1))
    with pytest.raises(MalformedBytes):
        wire.records_with(batch, 0, 9, cut, [[b"nothing"]], with_schemas=True)


@given(st.binary(max_size=80), st.booleans())
def test_hostile_bytes_raise_nothing_else(body: bytes, with_schemas: bool) -> None:
    [batch] = wire.batches(raw_batch(0, body, 3))
    for needle in (b"nothing", body[:1] or b"x"):
        with contextlib.suppress(MalformedBytes):
            wire.records_with(batch, 0, 9, body, [[needle]], with_schemas)
