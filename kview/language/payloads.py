"""Bytes as people read them: text, JSON or hex. Control characters never get through.

Nothing here guesses a type. `Form.AUTO` shows text if the bytes are printable UTF-8, and hex if they are not,
so that numbers and binary formats are shown as the bytes they are.
"""

import json
import re
from enum import StrEnum

from kview.language import glyphs, trees, words
from kview.language.glyphs import ELLIPSIS, printable
from kview.model.inspection import Payload
from kview.model.masking import MASKED

PRETTY_MAX = 256 << 10
"""JSON of more bytes than this is not laid out, but shown as text: parsing it would hold up the screen."""
NESTED_MAX = 60
"""JSON that is nested deeper than this is shown as text, because laying it out takes more and more room."""
LINES_MAX = 20_000
"""Limit of the lines of a payload. What is beyond it is said."""
_INDENT = "  "
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
"""The tokens of valid JSON."""
_SCHEMA_BYTES = 5
"""A zero byte and the number of a schema stand before values that a schema registry knows."""
_TEXT_CONTROLS = frozenset("\t\n\r")
"""Controls that occur in text, and do not make it binary. They are escaped in a row."""
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
ONE_LINE_BYTES = 4_096
"""No more of a payload is looked at for a row."""


SHOWN_AS_JSON = "JSON"


class Form(StrEnum):
    """How payloads are shown."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "JSON"
    HEX = "hex"


FORMS = tuple(Form)


def next_form(form: Form) -> Form:
    """Return the form after this one, in a circle."""
    return FORMS[(FORMS.index(form) + 1) % len(FORMS)]


def as_text(data: bytes, cut: bool = False) -> str | None:
    """Return printable UTF-8 as text, None for other bytes. `cut`: the last character may be incomplete."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not cut or error.start < len(data) - 3 or error.reason != "unexpected end of data":
            return None
        text = data[: error.start].decode()
    unprintable = any(not c.isprintable() and c not in _TEXT_CONTROLS for c in text)
    return None if unprintable else text


def escaped(data: bytes) -> str:
    """Return bytes as text in which what is not printable UTF-8 is escaped as `\\x07`."""
    text = data.decode(errors="backslashreplace")
    return "".join(_escape(c) for c in text)


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(
    payload: Payload, form: Form = Form.AUTO, null: str = "null", most_bytes: int = ONE_LINE_BYTES
) -> str:
    """Return a payload as one line, of which a row shows as much as fits."""
    if payload.data is None:
        return null
    if not payload.size:
        return '""'
    if payload.masked and form is Form.HEX:
        return MASKED
    data = payload.data[:most_bytes]
    partly = len(data) < payload.size
    text = as_text(data, partly)
    if form is Form.HEX or (form is Form.AUTO and text is None):
        line = hex_bytes(data)
    elif text is None:
        line = escaped(data)
    else:
        line = "".join(map(_escape, text)) if not text.isprintable() else text
    return printable(line + ELLIPSIS if partly else line)


def hex_bytes(data: bytes) -> str:
    """Return bytes as `0x00 00 2a`."""
    return f"0x{data.hex(' ')}"


def shown_as(payload: Payload, form: Form) -> str:
    """Return what a payload is shown as: `text`, `JSON`, `hex`, or why it is not shown as asked."""
    if payload.data is None:
        return "null"
    if not payload.size:
        return "empty"
    if payload.masked:
        is_json = form is not Form.HEX and pretty(payload) is not None
        return SHOWN_AS_JSON if is_json else "hidden by a mask"
    text = as_text(payload.data, payload.cut)
    if form is Form.HEX:
        return "hex"
    if form is Form.TEXT:
        return "text" if text is not None else "not text: other bytes are escaped"
    if pretty(payload) is not None:
        return SHOWN_AS_JSON
    if form is Form.JSON:
        return "not JSON"
    return "text" if text is not None else binary(payload.data)


def binary(data: bytes) -> str:
    """Return what is known about bytes that are not text."""
    if len(data) in (4, 8):
        number = int.from_bytes(data, "big", signed=True)
        return f"not text: hex (as a number of {len(data)} bytes: {number:,})"
    if len(data) >= _SCHEMA_BYTES and data[0] == 0:
        return f"not text: hex (if a schema registry wrote it, schema {int.from_bytes(data[1:5], 'big')})"
    return "not text: hex"


def pretty(payload: Payload) -> list[str] | None:
    """Return a JSON object or array laid out over lines, None if the payload is something else.

    Numbers, names that occur twice and escapes stay as they were written.
    """
    data = payload.data
    if data is None or payload.cut or len(data) > PRETTY_MAX or data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        text = data.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _laid_out(text)


def _laid_out(text: str) -> list[str] | None:
    """Lay out valid JSON. Returns None if it is nested too deep."""
    lines, line, depth = [], "", 0
    tokens = _TOKEN.findall(text)
    for index, token in enumerate(tokens):
        if token in ("{", "["):
            line += token
            if tokens[index + 1] not in ("}", "]"):
                lines.append(line)
                depth += 1
                line = _INDENT * depth
                if depth > NESTED_MAX:
                    return None
        elif token in ("}", "]"):
            if tokens[index - 1] not in ("{", "["):
                lines.append(line)
                depth -= 1
                line = _INDENT * depth
            line += token
        elif token == ",":
            lines.append(f"{line},")
            line = _INDENT * depth
        else:
            line += ": " if token == ":" else token
    return [*lines, line]


def lines(payload: Payload, form: Form, hex_bytes_a_line: int = 16) -> list[str]:
    """Return a payload in full, line by line, in at most LINES_MAX lines."""
    if payload.data is None:
        return ["null"]
    if not payload.size:
        return []
    if payload.masked and form is Form.HEX:
        return [MASKED]
    text = as_text(payload.data, payload.cut)
    all_lines = pretty(payload) if form in (Form.AUTO, Form.JSON) else None
    is_json = all_lines is not None
    if all_lines is None:
        if form is Form.HEX or (text is None and form is Form.AUTO):
            all_lines = _dump(payload.data, hex_bytes_a_line)
        elif text is None:
            all_lines = [escaped(payload.data)]
        else:
            all_lines = ["".join(map(_escape, line)) for line in text.replace("\r\n", "\n").split("\n")]
    shown = [line if line.isprintable() else "".join(map(_escape, line)) for line in all_lines[:LINES_MAX]]
    if form is Form.AUTO and is_json:
        shown = list(map(trees.folded, shown))
    if len(all_lines) > LINES_MAX:
        shown.append(f"{ELLIPSIS} and {words.plural(len(all_lines) - LINES_MAX, 'more line')}")
    if payload.cut:
        left = payload.size - len(payload.data)
        shown.append(f"{ELLIPSIS} cut here: kview does not keep the other {words.size(left)}")
    return shown


def _dump(data: bytes, a_line: int) -> list[str]:
    """Return bytes as hexadecimal numbers, each line with its position before and its ASCII behind."""
    out = []
    for at in range(0, len(data), a_line):
        row = data[at : at + a_line]
        characters = "".join(chr(byte) if 0x20 <= byte < 0x7F else glyphs.DOT for byte in row)
        out.append(f"{at:06x}  {row.hex(' '):{3 * a_line - 1}}  {characters}")
        if len(out) > LINES_MAX:
            break
    return out
