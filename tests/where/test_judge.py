"""What filters say of records."""

from datetime import UTC
from decimal import Decimal

import pytest

from kview.language import where as fields
from kview.model.decoded import (
    Decoded,
    DecodedRecord,
    DecodeFailure,
    DecodeFailureKind,
    Fields,
    Items,
    Moment,
    MomentKind,
    SchemaId,
    SchemaKind,
    Symbol,
)
from kview.model.where import EVERY, Field, Problem, Subject
from kview.where.judge import matches, value_at
from kview.where.parse import parse
from tests.where.candidates import candidate, judged

ORDER = (
    b'{"customer": {"id": 42.0, "name": "M\\u00fcller"}, "status": "FAILED",'
    b' "lines": [{"qty": 1}, {"qty": 20}], "big": 9007199254740993, "share": 0.1, "huge": 1e400,'
    b' "gone": null, "paid": true, "a.b": 1, "code": "42"}'
)


@pytest.mark.parametrize(
    "text",
    [
        "value.customer.id = 42",
        "value.customer.id = 42.00",
        "value.customer.id = 4.2e1",
        "value.customer.id != 43",
        "value.big = 9007199254740993",
        "value.big != 9007199254740992",
        "value.big > 9007199254740992",
        "value.share = 0.1",
        "value.share = 1e-1",
        "value.huge > 1e399",
        'value.status = "FAILED"',
        "value.status = 'FAILED'",
        "VALUE.status == FAILED",
        "value.status ~ /^FAIL[A-Z]{2}$/",
        'value.status ~ "(?i)failed"',
        "value.status !~ /x/",
        "value.lines[1].qty >= 20",
        "value.lines[].qty = 20",
        "value.lines[*].qty < 2",
        "value.lines[7].qty != 1",
        "value.gone = null",
        "value.gone exists",
        "value.missing != 7",
        "not value.missing exists",
        "value.paid = true",
        'value."a.b" = 1',
        "value.code = 42",
        'value.code = "42"',
        "value contains FAILED",
        'value contains "Müller"',
        "value.customer contains Müller",
        "value.customer.name = Müller",
        "value ~ /Müller/",
        "Müller",
        "key = order-17",
        "key = 0x6f726465722d3137",
        "value contains 0x4641494c4544",
        "key ~ ^order-[0-9]+$",
        "order-17",
        "trace-9",
        "x-trace",
        "headers.x-trace = trace-9",
        "headers.kafka.retry > 2",
        "headers exists and headers contains trace-9 and headers.empty exists and headers.empty = null",
        "header.x-trace exists",
        "offset = 5 and partition = 3 and size > 100 and timestamp = 1970-01-01T00:00:01Z",
        "timestamp < 1001 and timestamp > 999",
        "timestamp >= 1970-01-01T01:00:01+01:00",
        "nothing or (FAILED and not nothing)",
        "not (value.customer.id = 1 or key = x)",
    ],
)
def test_holds(text: str) -> None:
    headers = {"x-trace": b"trace-9", "kafka.retry": b"3", "empty": None}
    record = candidate(b"order-17", ORDER, headers, partition=3)
    assert judged(text, record) is True
    assert judged(f"not ({text})", record) is False


@pytest.mark.parametrize(
    "text",
    [
        'value.customer.id = "42"',
        "value.customer.id = 42.0000001",
        "value.big = 9007199254740992",
        "value.missing = null",
        "value.missing = 1",
        "value.missing < 1",
        "value.missing exists",
        "value.status = failed",
        "value.status > 1",
        "value.lines.qty = 1",
        "value.lines = 1",
        "value = null",
        "value.paid = 1",
        "value.customer.name.x exists",
        "headers.nothing != x and headers.nothing exists",
        "key = order-1",
        "order-18",
    ],
)
def test_does_not_hold(text: str) -> None:
    record = candidate(b"order-17", ORDER, {"x-trace": b"trace-9"})
    assert judged(text, record) is False
    assert judged(f"not ({text})", record) is True


def test_null_values_are_tombstones() -> None:
    tombstone = candidate(b"a", None)
    assert judged("value = null", tombstone) is True
    assert judged("value exists", tombstone) is False
    assert judged("value.x = 1", tombstone) is False
    assert judged("value = null", candidate(b"a", b"null")) is True  # JSON's
    assert judged('value = "null"', candidate(b"a", b"null")) is True  # the text
    assert judged('value = "null"', tombstone) is False


def test_a_payload_may_be_a_json_scalar() -> None:
    assert judged("key = order-17", candidate(b'"order-17"')) is True
    assert judged("key = 42", candidate(b"42.0")) is True
    assert judged("key = 42", candidate(b"42")) is True
    assert judged("key > 41", candidate(b"42")) is True
    assert judged("key > 41", candidate(b"forty")) is False


def of_schema(tree: object, failure: DecodeFailureKind = DecodeFailureKind.NONE) -> DecodedRecord:
    """A value decoded with Avro."""
    has_tree = failure is not DecodeFailureKind.NO_REGISTRY
    decoded = Decoded(SchemaId(7), SchemaKind.AVRO, "Order", tree, has_tree, None, DecodeFailure(failure))  # type: ignore[arg-type]
    return DecodedRecord(value=decoded)


AVRO = Fields(
    "Order",
    [
        ("id", 42),
        ("price", Decimal("12.50")),
        ("ratio", 0.10000000149011612),
        ("state", Symbol("FAILED")),
        ("raw", b"\x01\x02"),
        ("at", Moment(MomentKind.TIMESTAMP, 1_764_237_600_000_000, 1_000_000)),
        ("day", Moment(MomentKind.DATE, 1)),
        ("tags", Items(["a", "b"])),
        ("nan", float("nan")),
    ],
)


@pytest.mark.parametrize(
    "text",
    [
        "value.id = 42.0",
        "value.price = 12.5",
        "value.ratio = 0.1",
        "value.state = FAILED",
        "value contains FAIL",
        "FAILED",
        "value.raw = 0x0102",
        "value.at = 2025-11-27T10:00:00Z",
        "value.at > 2025-11-27T09:59:59.999Z",
        "value.at = 1764237600000000",
        "value.day < 1970-01-03",
        "value.tags[].x exists or value.tags[] = b",
        "value.tags[0] = a",
        "value.state ~ ^FA",
        "value.nan != 1 and not value.nan > 0",
    ],
)
def test_decoded_values(text: str) -> None:
    where = parse(text, UTC)
    assert not isinstance(where, Problem)
    assert matches(where, [candidate(None, b"\0\0\0\0\7?", decoded=of_schema(AVRO))]) == [True]


def test_what_is_not_decoded_is_judged_by_its_bytes_and_its_fields_are_not_known() -> None:
    record = candidate(b"k", b"\0\0\0\0\7abc", decoded=of_schema(None, DecodeFailureKind.NO_REGISTRY))
    assert judged("value.id = 1", record) is None
    assert judged("value.id != 1", record) is None
    assert judged("not value.id exists", record) is None
    assert judged("value.id ~ x", record) is None
    assert judged("value contains abc", record) is True
    assert judged("value contains 0x0761", record) is True
    assert judged("value contains x", record) is False
    assert judged("value ~ bc$", record) is True
    assert judged("nothing", record) is False
    assert judged("value.id = 1 and key = other", record) is False
    assert judged("value.id = 1 or key = k", record) is True
    assert judged("value.id = 1 or key = other", record) is None


def test_the_beginning_of_a_value_that_ends_within_a_field_is_known() -> None:
    record = candidate(None, b"\0\0\0\0\7?", decoded=of_schema(AVRO, DecodeFailureKind.ENDS))
    assert judged("value.id = 42", record) is True
    assert judged("value.later = 1", record) is None


def test_json_that_is_broken_is_not_known_and_other_bytes_have_no_fields() -> None:
    assert judged("value.a = 1", candidate(None, b'{"a": 1')) is None
    assert judged("value.a = 1", candidate(None, b"[" * 100_000)) is None
    assert judged("value.a = 1", candidate(None, b"hello")) is False
    assert judged("value.a = 1", candidate(None, b"\xff\xfe")) is False
    assert judged("value.a != 1", candidate(None, b"hello")) is True


def test_what_is_cut_off_is_not_known() -> None:
    cut = candidate(b"k", b'{"a": 1, ', value_size=1_000)
    assert judged("value contains a", cut) is True
    assert judged("value contains b", cut) is None
    assert judged("value = '{\"a\": 1, '", cut) is None
    assert judged("value ~ b", cut) is None
    assert judged("value.a = 1", cut) is None
    assert judged("nothing", cut) is None
    assert judged("key = k", cut) is True
    few = candidate(None, None, {"a": b"1"}, header_count=200)
    assert judged("headers.b exists", few) is None
    assert judged("headers.a exists", few) is True
    assert judged("headers.b = 1", few) is None


def test_many_candidates_are_asked_at_once() -> None:
    where = parse("value ~ /^a+$/ and offset >= 1")
    assert not isinstance(where, Problem)
    values = (b"aaa", b"aaa", b"b", None)
    judged_all = matches(where, [candidate(None, value, offset=place) for place, value in enumerate(values)])
    assert judged_all == [False, True, False, False]


def test_what_is_cancelled_is_not_judged_any_further() -> None:
    left = iter([False] * 4 + [True] * 99)
    where = parse("value ~ /[0-9]/ or offset = 5")
    assert not isinstance(where, Problem)
    assert (
        matches(where, [candidate(b"k", b"%d" % n) for n in range(9)], lambda: next(left))
        == [True] + [None] * 8
    )
    left = iter([False] * 4 + [True] * 99)
    plain = parse("offset = 5")
    assert not isinstance(plain, Problem)
    assert matches(plain, [candidate()] * 9, lambda: next(left)) == [True] * 4 + [None] * 5


def test_expressions_are_looked_for_in_many_texts() -> None:
    many = b"[%s]" % b",".join([b'"x"'] * 4_000)
    some = [candidate(None, many if n % 4 else b'["found"]') for n in range(9)]
    where = parse("value ~ /f..nd/")
    assert not isinstance(where, Problem)
    assert matches(where, some) == [n % 4 == 0 for n in range(9)]


def test_no_expression_takes_more_than_linear_time() -> None:
    assert judged("value ~ /^(a+)+$/", candidate(None, b"a" * 200_000 + b"!")) is False


def test_numbers_of_many_digits() -> None:
    digits = b"1" + b"0" * 5_000
    assert judged("value.a > 1", candidate(None, b'{"a": %s}' % digits)) in (True, None)
    assert judged("value contains x", candidate(None, b"[1" + b"0" * 4_290 + b"]")) is False


def test_numbers_that_nothing_can_hold_and_what_only_python_takes_for_json() -> None:
    huge = b'{"n": 1e9999999999999999999, "s": "found"}'
    assert judged("value.n > 4", candidate(None, huge)) is None
    assert judged("found", candidate(None, huge)) is True
    assert judged("found", candidate(b"1e9999999999999999999", b"found")) is True
    assert value_at(candidate(None, huge), Field(Subject.VALUE, ("n",))) == (False, None)
    field = Field(Subject.VALUE, ("n",))
    assert fields.value(value_at(candidate(None, b'{"n": 1e99999999}'), field)[1]) == "1E+99999999"
    assert judged("value.n > 4", candidate(None, b'{"n": 1e99999999}')) is True
    assert judged("value.n contains N", candidate(None, b'{"n": NaN}')) is None


def test_a_column_of_a_large_tree_is_cut() -> None:
    large = value_at(candidate(None, b'{"n": [%s]}' % b", ".join([b'"ab"'] * 1_000)), Field(Subject.VALUE))
    assert fields.value(large[1]) == ('{"n": [' + '"ab", ' * 100)[:400]


def test_a_column_of_a_field() -> None:
    record = candidate(b"k", ORDER)
    assert value_at(record, Field(Subject.VALUE, ("customer", "id"))) == (True, Decimal("42.0"))
    assert value_at(record, Field(Subject.VALUE, ("lines", EVERY, "qty"))) == (True, 1)
    assert value_at(record, Field(Subject.VALUE, ("nothing",))) == (False, None)
    traced = candidate(b"k", None, {"trace": b"abc"})
    assert value_at(traced, Field(Subject.HEADERS, ("trace",))) == (True, traced.record.headers[0].value)
    assert value_at(traced, Field(Subject.HEADERS, ("other",))) == (False, None)
