"""Kafka's primitive types read back, equal kafka-python's encoding, and are refused if they end early."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.schemas.fields.codecs.types import Bytes, String, UnsignedVarInt32
from kafka.record.util import encode_varint

from kview.wire.primitives import (
    TAGGED_FIELDS_MAX,
    VARINT_BYTES,
    MalformedBytes,
    Reader,
    Writer,
    array_length,
    read_record_field,
    read_uvarint,
    read_varint,
    record_field,
    skip_tagged_fields,
    string,
    uvarint,
    varint,
)

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
UINT32 = st.integers(0, 2**32 - 1)
TEXTS = st.none() | st.text(max_size=200)
DATA = st.none() | st.binary(max_size=200)


@given(UINT32, st.binary(max_size=3))
def test_an_unsigned_varint_is_the_codecs_and_reads_back(value: int, after: bytes) -> None:
    encoded = uvarint(value)
    assert encoded == UnsignedVarInt32.encode(value)
    assert read_uvarint(encoded + after, 0) == (value, len(encoded))


@given(INT64, st.binary(max_size=3))
def test_a_signed_varint_is_the_codecs_and_reads_back(value: int, after: bytes) -> None:
    encoded = varint(value)
    if -(2**34) <= value < 2**34:  # kafka-python loses the upper bits of longer numbers
        theirs = bytearray()
        encode_varint(value, theirs.append)
        assert encoded == theirs
    assert read_varint(encoded + after, 0) == (value, len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"), (2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ffffffffffffffffff01"),
    ],
)  # fmt: skip
def test_signed_varints_known_by_heart(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(TEXTS, TEXTS, DATA, st.lists(INT32, max_size=9))
def test_what_a_writer_writes_is_the_codecs_and_a_reader_reads_it(
    text: str | None, compact: str | None, data: bytes | None, numbers: list[int]
) -> None:
    encoded = Writer().string(text).compact_string(compact).nullable_bytes(data).int32s(numbers).done()
    theirs = (
        String().encode(text),
        String().encode(compact, compact=True),
        Bytes.encode(data),
        len(numbers).to_bytes(4, "big"),
        *(number.to_bytes(4, "big", signed=True) for number in numbers),
    )
    assert encoded == b"".join(theirs)
    reader = Reader(encoded)
    assert (reader.nullable_string(), reader.nullable_compact_string()) == (text, compact)
    assert (reader.nullable_bytes(), reader.int32s()) == (data, tuple(numbers))
    reader.end()


@given(INT16, INT32, INT64, UINT32, st.binary(max_size=30), st.booleans(), st.integers(0, 500))
def test_numbers_tags_and_lengths_read_back(
    short: int, number: int, long: int, tag: int, data: bytes, compact: bool, length: int
) -> None:
    writer = Writer().int16(short).int32(number).int64(long).tagged_fields({tag: data})
    reader = Reader(writer.done() + array_length(length, compact) + bytes(length))
    assert (reader.int16(), reader.int32(), reader.int64()) == (short, number, long)
    assert reader.tagged_fields() == {tag: data}
    assert (reader.array_length(compact), reader.left) == (length, length)


@given(DATA, st.binary(max_size=3))
def test_a_field_of_a_record_reads_back(value: bytes | None, after: bytes) -> None:
    encoded = record_field(value)
    assert read_record_field(encoded + after, 0) == (value, len(encoded))


READS: list[Callable[[Reader], Any]] = [
    Reader.int16,
    Reader.int32,
    Reader.int64,
    Reader.uvarint,
    Reader.string,
    Reader.nullable_string,
    Reader.compact_string,
    Reader.nullable_compact_string,
    Reader.nullable_bytes,
    Reader.array_length,
    lambda reader: reader.array_length(compact=True),
    Reader.int32s,
    Reader.tagged_fields,
    Reader.no_tagged_fields,
    lambda reader: skip_tagged_fields(reader.data, 0),
    lambda reader: read_varint(reader.data, 0),
    lambda reader: read_varint(reader.data, 0, VARINT_BYTES),
    lambda reader: read_record_field(bytes(reader.data), 0),
]


@pytest.mark.parametrize("read", READS)
@given(data=st.binary(max_size=12) | st.binary(max_size=3).map(lambda tail: b"\xff\xff\xff\xff\x0f" + tail))
def test_any_bytes_are_a_value_or_malformed(read: Callable[[Reader], Any], data: bytes) -> None:
    reader = Reader(data)
    try:
        read(reader)
    except MalformedBytes:
        return
    assert 0 <= reader.position <= len(data)


@pytest.mark.parametrize("read", READS)
def test_no_bytes_are_no_value(read: Callable[[Reader], Any]) -> None:
    with pytest.raises(MalformedBytes):
        read(Reader(b""))


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (Reader.int32, b"\0\0\0"),
        (Reader.uvarint, b"\x80"),
        (Reader.uvarint, b"\xff\xff\xff\xff\x10"),
        (Reader.uvarint, b"\x80\x80\x80\x80\x80\0"),
        (Reader.string, b"\xff\xff"),
        (Reader.nullable_string, b"\xff\xfe"),
        (Reader.nullable_string, b"\0\3ab"),
        (Reader.nullable_string, b"\0\1\xff"),
        (Reader.compact_string, b"\0"),
        (Reader.nullable_compact_string, b"\4ab"),
        (Reader.nullable_bytes, b"\xff\xff\xff\xfe"),
        (Reader.nullable_bytes, b"\0\0\0\2a"),
        (Reader.array_length, b"\xff\xff\xff\xfe"),
        (Reader.array_length, b"\0\0\0\2a"),
        (Reader.int32s, b"\0\0\0\1abc"),
        (Reader.tagged_fields, b"\1\0\5abcd"),
        (Reader.tagged_fields, uvarint(TAGGED_FIELDS_MAX + 1) + b"\0\0" * (TAGGED_FIELDS_MAX + 1)),
        (Reader.no_tagged_fields, b"\1\0\0"),
        (lambda reader: reader.take(-1), b"abc"),
        (lambda reader: read_varint(reader.data, 0), b"\x80" * 10 + b"\0"),
        (lambda reader: read_varint(reader.data, 0, VARINT_BYTES), b"\x80" * 5 + b"\0"),
        (lambda reader: read_record_field(bytes(reader.data), 0), b"\6ab"),
    ],
)
def test_half_a_value_and_impossible_lengths_are_malformed(
    read: Callable[[Reader], Any], data: bytes
) -> None:
    with pytest.raises(MalformedBytes):
        read(Reader(data))


def test_null_is_not_the_empty_string() -> None:
    assert [string(None), string("")] == [b"\xff\xff", b"\0\0"]
    assert [string(None, compact=True), string("", compact=True)] == [b"\0", b"\1"]
    assert [array_length(None), array_length(None, compact=True)] == [b"\xff\xff\xff\xff", b"\0"]


def test_a_section_of_tagged_fields_is_skipped_whatever_is_in_it() -> None:
    tags = bytes([2, 0, 3]) + b"abc" + bytes([0x85, 1, 1]) + b"x"
    assert skip_tagged_fields(tags + b"body", 0) == len(tags)
    assert Reader(tags).tagged_fields() == {0: b"abc", 0x85: b"x"}
