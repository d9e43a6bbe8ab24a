"""What must be in a record's bytes: never more than what a filter needs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.model.expressions import bad_pattern
from kview.model.where import Condition, Field, Literal, Operator, Problem, Subject
from kview.where.judge import matches
from kview.where.needles import has_fields, needle_groups, needles, wanted_keys
from kview.where.parse import parse
from tests.where.candidates import candidate


def of(text: str) -> tuple[bytes, ...]:
    where = parse(text)
    assert not isinstance(where, Problem)
    return needles(where)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("key = order-17", (b"order-17", b"\\u")),
        ('value contains "a/b"', (b"a/b", b"\\")),
        ("Müller", ("Müller".encode(), b"\\u")),
        ("key = 0x00ff", (b"0x00ff", b"\0\xff", b"\\u")),
        ("key = 42", (b"42", b"4.2", b"\\u")),
        ("key = 4200", (b"4200", b"42", b"4.2", b"\\u")),
        ("headers.trace = abc", (b"abc", b"\\u")),
        ("key = abc and value contains abcdef", (b"abcdef", b"\\u")),
        ("key = abc and offset > 4", (b"abc", b"\\u")),
        ("abc or def", (b"abc", b"\\u", b"def")),
        ("abc or offset > 4", ()),
        ("not abc", ()),
        ("key != abc", ()),
        ("value contains 42", ()),
        ("key = 0", ()),
        ("key = null", ()),
        ('key = ""', ()),
        ("value.status = FAILED", (b"FAILED", b"\\u")),
        ("value.status != FAILED", ()),
        ("value.status exists", ()),
        ("value.id > 4", ()),
        ("value ~ abc", (b"abc", b"\\u")),
        ("key ~ /^order-.*9$/", (b"order-", b"\\u")),
        ("key ~ /^colou?r.x+y*$/", (b"colo", b"\\u")),
        ("key ~ /ab+/", (b"ab", b"\\u")),
        ("key ~ /ab\n?cde/", (b"cde", b"\\u")),
        ("key ~ /^42/", ()),
        ("key ~ /a|b/", ()),
        ("key ~ /(?i)abc/", ()),
        ("key ~ /ab\\d/", ()),
        ("key ~ /a{0}b/", ()),
        ("key ~ /.*/", ()),
    ],
)
def test_needles(text: str, found: tuple[bytes, ...]) -> None:
    assert of(text) == found


NUMBERS = st.one_of(
    st.integers(-(10**22), 10**22).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: str(d).lstrip("+")),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["42.0", "4.2e1", "420e-1", "0.42e2", "1e5", "100000"]),
)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)


@given(NUMBERS, NUMBERS)
def test_a_number_is_found_however_it_is_written(literal: str, written: str) -> None:
    for key in (literal, written):
        where = parse(f"key = {literal}")
        assert not isinstance(where, Problem)
        [answer] = matches(where, [candidate(key.encode())])
        found = needles(where)
        assert not answer or not found or any(needle in key.encode() for needle in found)


@given(TEXTS, st.sampled_from([Operator.EQUAL, Operator.CONTAINS]), st.booleans(), st.text(max_size=3))
def test_a_text_is_found_however_it_is_written(
    text: str, operator: Operator, ascii_only: bool, more: str
) -> None:
    where = Condition(Field(Subject.VALUE), operator, Literal(text))
    whole = text if operator is Operator.EQUAL else f"{more}{text}"
    nested = json.dumps({"a": [whole, None]}, ensure_ascii=ascii_only).replace("/", "\\/")
    for data in (
        whole.encode("utf-8", "replace"),
        json.dumps(whole, ensure_ascii=ascii_only).encode("utf-8", "replace"),
        nested.encode("utf-8", "replace"),
    ):
        [answer] = matches(where, [candidate(None, data)])
        found = needles(where)
        assert not answer or not found or any(needle in data for needle in found)


def test_groups_are_those_of_all_that_must_hold() -> None:
    where = parse("key ~ /^order-1/ and (value contains FAILED and offset > 4) and not x")
    assert not isinstance(where, Problem)
    assert needle_groups(where) == ((b"order-1", b"\\u"), (b"FAILED", b"\\u"))
    either = parse("order or offset > 4")
    assert not isinstance(either, Problem) and needle_groups(either) == ()


def test_fields_may_need_a_schema() -> None:
    def asks(text: str) -> bool:
        where = parse(text)
        assert not isinstance(where, Problem)
        return has_fields(where)

    assert asks("a or not value.id = 1") and asks("key = a and key[0] exists")
    assert not asks("key = a and headers.b.c = d or value contains x or offset > 4")


PATTERNS = st.lists(
    st.sampled_from(
        ["a", "b", "ab", "é", ".", "^", "$", "a?", "b*", "a+", "ba+", "a??", "b*?", "\n?", " ", "4", "-"]
    ),
    min_size=1,
    max_size=6,
).map("".join)


@given(PATTERNS, st.text("ab é4-x", max_size=8), st.booleans())
def test_what_every_match_has_is_in_every_match(pattern: str, text: str, is_json: bool) -> None:
    if bad_pattern(pattern):
        return
    where = Condition(Field(Subject.VALUE), Operator.MATCHES, Literal(pattern))
    data = json.dumps(["x", text]).encode() if is_json else text.encode()
    [answer] = matches(where, [candidate(None, data)])
    found = needles(where)
    assert not answer or not found or any(needle in data for needle in found)


def test_wanted_keys() -> None:
    def keys(text: str) -> tuple[bytes, ...]:
        where = parse(text)
        assert not isinstance(where, Problem)
        return wanted_keys(where)

    assert keys("key = order-17 and value contains x") == (b"order-17",)
    assert keys("key = a or key = b") == (b"a", b"b")
    assert keys("key = 0x6162") == (b"0x6162", b"ab")
    assert keys("key = a or value contains x") == ()
    assert keys("not key = a") == keys("key.id = 4") == keys("key = null") == keys("key != a") == ()
