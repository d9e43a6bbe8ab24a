"""Bytes as text, JSON and hex: as they were written, and without a character that could move the cursor."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.language import payloads
from kview.language.payloads import FORMS, Form
from kview.model.inspection import NULL, Payload


def payload(data: bytes) -> Payload:
    return Payload(data, len(data))


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain", "plain"),
        ("Grüner 日本".encode(), "Grüner 日本"),
        (b"two\nlines\t.", "two\\nlines\\t."),
        (b"", '""'),
        (b"\x00\x00\x00\x2a", "0x00 00 00 2a"),
        (b"\x1b[31mred", "0x1b 5b 33 31 6d 72 65 64"),
        ("a\u202eb".encode(), "0x61 e2 80 ae 62"),
    ],
)
def test_a_row_has_text_or_hex(data: bytes, shown: str) -> None:
    assert payloads.one_line(payload(data)) == shown


def test_what_was_asked_for_and_cannot_be_is_said() -> None:
    binary = payload(b"\x00\x00\x00\x00\x2aabc\xff")
    assert payloads.shown_as(binary, Form.JSON) == "not JSON"
    assert "not text" in payloads.shown_as(binary, Form.TEXT)
    assert "schema 42" in payloads.shown_as(binary, Form.AUTO)
    assert "number of 8 bytes: 42" in payloads.shown_as(payload(bytes(7) + b"\x2a"), Form.AUTO)
    assert payloads.one_line(binary, Form.TEXT) == "\\x00\\x00\\x00\\x00*abc\\xff"
    assert payloads.one_line(NULL, null="null (tombstone)") == "null (tombstone)"


def test_json_is_laid_out_as_it_was_written() -> None:
    text = '{"n": 1.10, "big": 12345678901234567890, "n": [1e999, {}], "s": "a\\u0007 {\\"b\\": 1}"}'
    lines = payloads.lines(payload(text.encode()), Form.AUTO)
    assert lines[:4] == ["{", '  "n": 1.10,', '  "big": 12345678901234567890,', '  "n": [']
    assert '  "s": "a\\u0007 {\\"b\\": 1}"' in lines
    assert "".join(line.strip() for line in lines).replace(" ", "") == text.replace(" ", "")
    deep = b"[" * 5_000 + b"]" * 5_000
    assert (
        payloads.pretty(payload(deep)) is None and payloads.shown_as(payload(deep), Form.JSON) == "not JSON"
    )


def test_a_payload_that_is_cut_says_so() -> None:
    cut = Payload("é".encode()[:1], 5_000_000)
    assert payloads.one_line(Payload(b"abc", 5_000_000)) == "abc…"
    assert payloads.lines(Payload(b"abc", 5_000_000), Form.AUTO)[-1].startswith("… cut here")
    assert payloads.one_line(cut, Form.AUTO) == "…"


@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)), st.sampled_from(FORMS))
def test_nothing_unprintable_gets_out(data: bytes, form: Form) -> None:
    shown = [payloads.one_line(payload(data), form), *payloads.lines(payload(data), form)]
    assert all(line.isprintable() for line in shown)
    assert payloads.shown_as(payload(data), form)


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(_VALUES)
def test_laid_out_json_says_the_same(value: object) -> None:
    made = payloads.pretty(payload(json.dumps(value, ensure_ascii=False).encode(errors="replace")))
    if isinstance(value, list | dict):
        assert made is None or json.loads("\n".join(made)) == json.loads(
            json.dumps(value, ensure_ascii=False).encode(errors="replace")
        )
