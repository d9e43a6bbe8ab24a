"""What is wrong with a filter's text, and that any text is either a filter or wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.language.where import problem
from kview.model.where import Field, Mistake, Problem, Subject
from kview.where.judge import matches
from kview.where.parse import parse, parse_with_columns
from tests.where.candidates import candidate


@pytest.mark.parametrize(
    ("text", "mistake", "at"),
    [
        ("", Mistake.EMPTY, 0),
        ("  ", Mistake.EMPTY, 0),
        ("x" * 2_001, Mistake.TOO_LONG, 2_000),
        (" or ".join("a" * 51), Mistake.TOO_MANY, 250),
        ("(" * 30 + "a" + ")" * 30, Mistake.TOO_DEEP, 21),
        ("not " * 30 + "a", Mistake.TOO_DEEP, 84),
        ("value" + ".a" * 50 + " = 1", Mistake.TOO_DEEP, 87),
        ("customer.id = 42", Mistake.UNKNOWN_FIELD, 0),
        ("a and vlaue.id = 42", Mistake.UNKNOWN_FIELD, 6),
        ("value. = 42", Mistake.NO_PATH, 6),
        ("value[x] = 42", Mistake.NO_PATH, 5),
        ("offset.x = 42", Mistake.NO_PATH, 6),
        ("value.status =", Mistake.NO_VALUE, 14),
        ("value.status", Mistake.NO_VALUE, 0),
        ("(key = )", Mistake.NO_VALUE, 7),
        ("offset = x", Mistake.NOT_A_NUMBER, 9),
        ("timestamp > yesterday", Mistake.NOT_A_NUMBER, 12),
        ("value.a < x", Mistake.NOT_ORDERED, 10),
        ("offset contains 3", Mistake.NOT_FOR_FIELD, 0),
        ("headers = x", Mistake.NOT_FOR_FIELD, 0),
        ("value ~ /a(/", Mistake.BAD_PATTERN, 8),
        ("value ~ (?=x)", Mistake.NO_VALUE, 8),
        ('value ~ "(?=x)"', Mistake.BAD_PATTERN, 8),
        ("/" + "a" * 201 + "/", Mistake.BAD_PATTERN, 0),
        ('value = "abc', Mistake.OPEN_QUOTE, 8),
        ("(a or b", Mistake.OPEN_BRACKET, 0),
        ("a)", Mistake.NO_BRACKET, 1),
        ("a and", Mistake.NO_CONDITION, 5),
        ("or a", Mistake.NO_CONDITION, 0),
        ("()", Mistake.NO_CONDITION, 1),
        ("= 4", Mistake.NO_CONDITION, 0),
        ("value.status = NOT FOUND", Mistake.NOT_JOINED, 19),
        ("value contains a b", Mistake.NOT_JOINED, 17),
        ("(a b)", Mistake.NOT_JOINED, 3),
    ],
)
def test_mistakes(text: str, mistake: Mistake, at: int) -> None:
    wrong = parse(text)
    assert isinstance(wrong, Problem)
    assert (wrong.mistake, wrong.at) == (mistake, at)
    said = problem(wrong)
    assert said.startswith(f"at character {at + 1}: ")
    assert "\n" not in said


def test_mistakes_say_what_to_do() -> None:
    def said(text: str) -> str:
        wrong = parse(text)
        assert isinstance(wrong, Problem)
        return problem(wrong)

    assert said("customer.id = 42") == (
        "at character 1: 'customer.id' is not a field: did you mean value.customer.id? The fields are"
        " key, value, headers, offset, partition, timestamp, size, or put the text in quotes"
    )
    assert "did you mean value.id?" in said("vlaue.id = 42")
    assert said("value.status = NOT FOUND") == (
        "at character 20: 'FOUND' follows a condition: join them with and, or with or,"
        " or put a text in quotes"
    )
    assert said("headers = x") == "at character 1: = needs one header: write headers.NAME = …"


_LEFT = ["value", "headers", "offset", "key", ".a", "[]", "[3]", "(", " not "]
_MIDDLE = [" = ", " ~ ", " < ", " exists", " contains ", " and ", " or ", ")"]
_RIGHT = ["42", "0x00", "null", "1e9", "2026-11-27", "/x/", '"', "'", "\\", "\0", "é", "/"]
PIECES = st.sampled_from([*_LEFT, *_MIDDLE, *_RIGHT])


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=20).map("".join)))
def test_any_text_is_a_filter_or_wrong(text: str) -> None:
    where = parse(text)
    if isinstance(where, Problem):
        assert 0 <= where.at <= len(text)
        assert problem(where)
        return
    hostile = candidate(b"\xff", b'{"a": [1, {"a": null}]}', {"a": b"\0"})
    assert matches(where, [hostile])[0] in (True, False, None)


def test_columns_follow_a_bar() -> None:
    both = parse_with_columns("value.id > 4 | key.a, headers.x.trace")
    assert both == (
        parse("value.id > 4"),
        (Field(Subject.KEY, ("a",)), Field(Subject.HEADERS, ("x.trace",))),
    )
    assert parse_with_columns("| value.a[0]") == (None, (Field(Subject.VALUE, ("a", 0)),))
    for text in ('"a | b"', "value ~ /a|b/", "a|b", "value contains | "):
        assert parse_with_columns(text) == (parse(text), ())
    wrong = parse_with_columns("a b | value.id")
    assert isinstance(wrong, Problem) and wrong.at == 2
