"""Avro's binary encoding: what fastavro wrote is read, and no bytes or schema of anybody hurt."""

import io
import json
import math
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.decode import avro
from kview.decode.avro_schema import parsed
from kview.decode.cursor import Cursor, short_float
from kview.decode.errors import NotASchema
from kview.decode.framing import Framed
from kview.decode.schemas import decoded, schema_of
from kview.model.decoded import (
    DECODED,
    MOST_DEPTH,
    DecodeFailure,
    DecodeFailureKind,
    Fields,
    Items,
    Moment,
    MomentKind,
    Node,
    SchemaId,
    SchemaKind,
    Symbol,
)
from kview.model.inspection import Payload

INVOICE = {
    "type": "record",
    "name": "Invoice",
    "namespace": "com.acme",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "made", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "rate", "type": "float"},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "qty", "type": "int"}, {"name": "state", "type": "State"}],
                },
            },
        },
        {"name": "tags", "type": {"type": "map", "values": ["null", "boolean", "Line"]}},
        {"name": "corrects", "type": ["null", "Invoice"]},
    ],
}
VALUE: dict[str, Any] = {
    "id": -4711,
    "total": Decimal("-19.90"),
    "made": datetime(2026, 3, 1, 14, 5, 30, 123_000, UTC),
    "day": date(2026, 3, 1),
    "at": time(14, 5, 30),
    "key": uuid.UUID("123e4567-e89b-12d3-a456-426614174000"),
    "state": "PAID",
    "hash": b"\0\xff\x1b[",
    "note": None,
    "rate": 0.1,
    "lines": [{"qty": 2, "state": "OPEN"}, {"qty": -1, "state": "PAID"}],
    "tags": {"a": True, "b": None, "c": {"qty": 7, "state": "OPEN"}},
    "corrects": None,
}


def written(schema: Any, value: Any) -> bytes:
    """What fastavro writes."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(schema: Any, data: bytes) -> tuple[Node, DecodeFailure]:
    """What kview reads, and why no further."""
    _, tree, failure = avro.read(parsed(json.dumps(schema)), Cursor(data))
    return tree, failure


def test_every_type_that_fastavro_writes_is_read() -> None:
    tree, failure = read(INVOICE, written(INVOICE, VALUE))
    assert not failure and isinstance(tree, Fields) and tree.type == "com.acme.Invoice"
    lines: list[Node] = [Fields("com.acme.Line", [("qty", qty), ("state", Symbol(state))]) for qty, state in
             ((2, "OPEN"), (-1, "PAID"))]  # fmt: skip
    line = Fields("com.acme.Line", [("qty", 7), ("state", Symbol("OPEN"))])
    assert dict(tree.fields) == {
        "id": -4711,
        "total": Decimal("-19.90"),
        "made": Moment(MomentKind.TIMESTAMP, 1_772_373_930_123, 1_000),
        "day": Moment(MomentKind.DATE, 20_513, 1),
        "at": Moment(MomentKind.TIME, 50_730_000, 1_000),
        "key": "123e4567-e89b-12d3-a456-426614174000",
        "state": Symbol("PAID"),
        "hash": b"\0\xff\x1b[",
        "note": None,
        "rate": 0.1,
        "lines": Items(lines),
        "tags": Fields("", [("a", True), ("b", None), ("c", line)]),
        "corrects": None,
    }


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.floats(width=32), st.text(), st.binary())
def test_numbers_texts_and_bytes_are_what_was_written(
    longs: list[int], number: float, text: str, data: bytes
) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "longs", "type": {"type": "array", "items": "long"}},
            {"name": "number", "type": "float"},
            {"name": "text", "type": "string"},
            {"name": "data", "type": "bytes"},
        ],
    }
    value = {"longs": longs, "number": number, "text": text, "data": data}
    tree, failure = read(schema, written(schema, value))
    assert isinstance(tree, Fields) and not failure
    back = dict(tree.fields)
    assert back["longs"] == Items(list(longs)) and (back["text"], back["data"]) == (text, data)
    assert isinstance(back["number"], float)
    assert back["number"] == pytest.approx(number, rel=1e-6, abs=1e-45, nan_ok=True)


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    read(INVOICE, data)


def test_where_bytes_stop_being_what_the_schema_says() -> None:
    data = written(INVOICE, VALUE)
    tree, failure = read(INVOICE, data[:-3])
    assert isinstance(tree, Fields) and [name for name, _ in tree.fields][-1] == "tags"
    assert (failure.kind, failure.path) == (DecodeFailureKind.ENDS, "tags.c.state")
    wrong = written(INVOICE, VALUE | {"lines": [{"qty": 2, "state": "OPEN"}] * 2})
    at = wrong.index(b"\4\0\4\0\0")
    tree, failure = read(INVOICE, wrong[: at + 1] + b"\x0a" + wrong[at + 2 :])
    assert failure == DecodeFailure(DecodeFailureKind.WRONG, at + 1, "lines[0].state")
    assert read("int", b"\2\2")[1] == DecodeFailure(DecodeFailureKind.LEFT_OVER, 1)


def test_a_text_that_is_not_utf8_is_read_on_with_a_note() -> None:
    tree, failure = read({"type": "map", "values": "string"}, b"\2\2a\4\xffb\2\2c\2d\0")
    assert tree == Fields("", [("a", "\ufffdb"), ("c", "d")])
    assert failure == DecodeFailure(DecodeFailureKind.NOT_UTF8, 4, "a")


def test_bytes_alone_are_what_confluents_serializers_write_without_a_length() -> None:
    made = schema_of(SchemaKind.AVRO, '"bytes"')
    by_id = decoded(Framed(Payload(b"\0\0\0\0\7hello", 10), SchemaId(7), 5), made)
    assert by_id.tree == b"hello" and not by_id.failure
    by_file = decoded(Framed(Payload(b"\x0ahello", 6), SchemaId(file="bytes.avsc"), 0), made)
    assert by_file.tree == b"hello" and not by_file.failure


NESTED = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
ENDLESS = {"type": "record", "name": "E", "fields": [{"name": "next", "type": "E"}]}
NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "array", "items": {"type": "record", "name": "Nothing", "fields": []}}


@pytest.mark.parametrize(
    ("schema", "data", "kind"),
    [
        (NULLS, b"\x80\x80\x90\xaf\xa4\xc8\x3a\0", DecodeFailureKind.TOO_MANY),  # 10¹² of them
        (EMPTY, b"\x80\x80\x90\xaf\xa4\xc8\x3a\0", DecodeFailureKind.TOO_MANY),
        (NULLS, b"\xff" * 9 + b"\x01\0\0", DecodeFailureKind.TOO_MANY),  # −2⁶³ of them
        (NESTED, b"\2" * 1_000_000, DecodeFailureKind.TOO_DEEP),
        (ENDLESS, b"", DecodeFailureKind.TOO_DEEP),
        ("string", b"\xfe" + b"\xff" * 8 + b"\x01", DecodeFailureKind.ENDS),  # 2⁶³ − 1 bytes
        ("bytes", b"\x01", DecodeFailureKind.WRONG),  # −1 bytes
        ("long", b"\xff" * 11, DecodeFailureKind.WRONG),
        ("int", b"\xff" * 9 + b"\x01", DecodeFailureKind.WRONG),
        ("boolean", b"\2", DecodeFailureKind.WRONG),
        (["null", "int"], b"\4", DecodeFailureKind.WRONG),
        ([], b"\0", DecodeFailureKind.WRONG),
    ],
    ids=count(),
)
def test_bombs_end_at_a_limit(schema: Any, data: bytes, kind: DecodeFailureKind) -> None:
    tree, failure = read(schema, data)
    assert failure.kind is kind
    depth = 0
    while isinstance(tree, Fields) and tree.fields:
        tree, depth = tree.fields[0][1], depth + 1
    assert depth <= MOST_DEPTH


def test_references_come_before_what_needs_them() -> None:
    line = '{"type": "record", "name": "a.Line", "fields": [{"name": "qty", "type": "int"}]}'
    made = parsed('{"type": "array", "items": "a.Line"}', [line])
    assert avro.read(made, Cursor(b"\2\x0e\0"))[1] == Items([Fields("a.Line", [("qty", 7)])])
    with pytest.raises(NotASchema):
        parsed('{"type": "array", "items": "a.Line"}')


@pytest.mark.parametrize("scale", [-1, "2", None, 100_000_000])
def test_a_logical_type_that_is_not_valid_is_ignored(scale: Any) -> None:
    assert read({"type": "bytes", "logicalType": "decimal", "scale": scale}, b"\2\7") == (b"\7", DECODED)
    assert isinstance(read({"type": "int", "logicalType": "date", "scale": scale}, b"\2")[0], Moment)


def test_names_without_a_namespace_are_found_within_one() -> None:
    enum = {"type": "enum", "name": ".E", "namespace": None, "symbols": ["A"]}
    fields = [{"name": "one", "type": enum}, {"name": "other", "type": ".E"}]
    tree, failure = read({"type": "record", "name": "a.R", "namespace": None, "fields": fields}, b"\0\0")
    assert (tree, failure) == (Fields("a.R", [("one", Symbol("A")), ("other", Symbol("A"))]), DECODED)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "7", "[" * 100_000, '{"type": "record"}', '{"type": "enum", "name": "E"}', '"Unknown"',
        '{"type": "fixed", "name": "F", "size": -1}',
        '{"type": "record", "name": "R", "fields": [{"name": "x"}]}',
        '{"type": ' * 300 + '"int"' + "}" * 300, json.dumps(["int"] * 30_000),
        json.dumps({"type": "fixed", "name": "F", "namespace": "n" * 1_000, "size": 1}),
    ],
    ids=count(),
)  # fmt: skip
def test_what_is_not_a_schema_is_refused(text: str) -> None:
    with pytest.raises(NotASchema):
        parsed(text)


def test_a_float_is_the_shortest_number_that_stands_for_it() -> None:
    for number in (0.1, 1e-45, 3.4028234663852886e38, 16777217.0, -0.0):
        short, _ = read("float", written("float", number))
        assert short == pytest.approx(number, rel=1e-6) and len(repr(short)) <= 15
    assert math.isnan(short_float(b"\0\0\xc0\x7f")) and short_float(b"\0\0\x80\xff") == -math.inf
