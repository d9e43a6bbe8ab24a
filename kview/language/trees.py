"""Decoded keys and values as people read them: laid out like JSON, with long parts folded."""

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import NamedTuple

from kview.language import words
from kview.language.glyphs import ELLIPSIS
from kview.model.decoded import Fields, Hidden, Items, Moment, MomentKind, Node, Symbol
from kview.model.masking import MASKED

INDENT = "  "
FOLDED_TEXT, FOLDED_BYTES = 300, 100
"""A text of more characters, and bytes of more than this, are folded."""
UNFOLDED_BYTES = 4_096
"""Bytes of more than this are never shown in full: the payload's hex dump has them."""
FOLDED_ITEMS = 100
"""So is what an array or a map has beyond this."""
SHORT = 60
"""An array or a record of this many characters stays on one line."""
LINES_MAX = 20_000
_DAY_S = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = 719_163
"""Python's number of 1970-01-01."""


def quoted(text: str) -> str:
    """Return a text in quotes, with what is not printable escaped."""
    made = json.dumps(text, ensure_ascii=False)
    return made if made.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in made)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def moment(at: Moment) -> str:
    """Return a date or a time as ISO 8601 has it, or its number if no calendar has it."""
    seconds, rest = divmod(at.value, at.per_second)
    fraction = f".{rest:0{len(str(at.per_second)) - 1}}" if at.per_second > 1 else ""
    try:
        if at.kind is MomentKind.DATE:
            return date.fromordinal(_EPOCH_DAY + at.value).isoformat()
        if at.kind is MomentKind.TIME:
            if not 0 <= seconds < _DAY_S:
                return str(at.value)
            return f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
        made = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, ValueError):
        return str(at.value)
    return f"{made:0>19}{fraction}{'Z' if at.kind is MomentKind.TIMESTAMP else ''}"


def scalar(node: Node, unfolded: bool = False) -> str:
    """Return a node without parts in one line."""
    match node:
        case None:
            return "null"
        case bool():
            return "true" if node else "false"
        case str():
            if unfolded or len(node) <= FOLDED_TEXT:
                return quoted(node)
            more = words.plural(len(node) - FOLDED_TEXT, "more character")
            return f'{quoted(node[:FOLDED_TEXT])[:-1]}{ELLIPSIS} {more}"'
        case bytes():
            most = UNFOLDED_BYTES if unfolded else FOLDED_BYTES
            if len(node) <= most:
                return f"0x{node.hex(' ')}"
            return f"0x{node[:most].hex(' ')}{ELLIPSIS} ({words.count(len(node))} bytes)"
        case float():
            return repr(node) if math.isfinite(node) else str(node)
        case Decimal():
            return f"{node:f}" if abs(node.adjusted()) < 100 else str(node)
        case Moment():
            return moment(node)
        case Hidden():
            return MASKED
        case Symbol():
            return node.name if node.name.isprintable() else quoted(node.name)
    return str(node)


def one_line(node: Node, most: int = 400) -> str:
    """Return a node in one line, of which a row shows as much as fits."""
    if isinstance(node, str):  # alone, it needs no quotes
        text = node if len(node) <= most else f"{node[:most]}{ELLIPSIS}"
        return quoted(text)[1:-1].replace('\\"', '"')
    return "".join(_limited(node, most))


def _limited(node: Node, most: int) -> Iterator[str]:
    """Yield the pieces of a node in one line until they are longer than `most`."""
    length = 0
    for piece in _pieces(node):
        yield piece
        length += len(piece)
        if length > most:
            yield ELLIPSIS
            return


def _pieces(node: Node) -> Iterator[str]:
    if isinstance(node, Fields):
        yield "{"
        for place, (name, child) in enumerate(node.fields):
            yield f"{', ' if place else ''}{quoted(name)}: "
            yield from _pieces(child)
        yield "}"
    elif isinstance(node, Items):
        yield "["
        for place, child in enumerate(node.items):
            yield ", " if place else ""
            yield from _pieces(child)
        yield "]"
    else:
        yield scalar(node)


def lines(node: Node, unfolded: bool = False) -> list[str]:
    """Return a node laid out over lines, in at most LINES_MAX lines."""
    laid_out = _Lines(unfolded)
    laid_out.add(node, "", "", "")
    if len(laid_out.lines) > LINES_MAX:
        more = len(laid_out.lines) - LINES_MAX
        return [*laid_out.lines[:LINES_MAX], f"{ELLIPSIS} and {words.plural(more, 'more line')}"]
    return laid_out.lines


class _Lines:
    def __init__(self, unfolded: bool) -> None:
        self.lines: list[str] = []
        self._unfolded = unfolded

    def add(self, node: Node, indent: str, name: str, comma: str) -> None:
        """Add a node with what stands before and behind it."""
        if not isinstance(node, Fields | Items):
            self.lines.append(f"{indent}{name}{scalar(node, self._unfolded)}{comma}")
            return
        short = "".join(_limited(node, SHORT))
        if len(short) <= SHORT:
            self.lines.append(f"{indent}{name}{short}{comma}")
            return
        is_record = isinstance(node, Fields)
        inner = indent + INDENT
        self.lines.append(f"{indent}{name}{'{' if is_record else '['}")
        parts = (
            [(f"{quoted(key)}: ", child) for key, child in node.fields]
            if isinstance(node, Fields)
            else [("", child) for child in node.items]
        )
        is_record_of_schema = isinstance(node, Fields) and bool(node.type)
        shown = parts if self._unfolded or is_record_of_schema else parts[:FOLDED_ITEMS]
        for place, (key, child) in enumerate(shown, 1):
            self.add(child, inner, key, "," if place < len(parts) else "")
        if len(shown) < len(parts):
            self.lines.append(f"{inner}{ELLIPSIS} {words.count(len(parts) - len(shown))} more")
        self.lines.append(f"{indent}{'}' if is_record else ']'}{comma}")


def folded(line: str) -> str:
    """Return a line of a JSON document with its long texts folded."""
    if len(line) <= FOLDED_TEXT:
        return line

    def fold(token: re.Match[str]) -> str:
        text = token[0]
        more = len(text) - 2 - FOLDED_TEXT
        if more <= 0:
            return text
        return f'{text[: FOLDED_TEXT + 1]}{ELLIPSIS} {words.plural(more, "more character")}"'

    return _TEXT.sub(fold, line)


class Token(Enum):
    """What a piece of a line that is laid out like JSON is."""

    NAME = "name"
    TEXT = "text"
    VALUE = "value"
    """A number, a date, a symbol, bytes."""
    CONSTANT = "constant"
    """null, true or false."""
    MARK = "mark"


class Piece(NamedTuple):
    """A piece of a line."""

    text: str
    token: Token


_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_PIECE = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*"?)(?P<colon>\s*:)?|(?P<mark>[\s{}\[\],:]+)|(?P<value>[^\s{}\[\],"][^{}\[\],"]*)'
)
_CONSTANTS = frozenset({"null", "true", "false"})


def pieces(line: str) -> list[Piece]:
    """Return the pieces of a line, which joined are the line."""
    found: list[Piece] = []
    for match in _PIECE.finditer(line):
        if match["text"] is not None:
            found.append(Piece(match["text"], Token.NAME if match["colon"] else Token.TEXT))
            if match["colon"]:
                found.append(Piece(match["colon"], Token.MARK))
        elif match["mark"] is not None:
            found.append(Piece(match["mark"], Token.MARK))
        else:
            token = Token.CONSTANT if match["value"].strip() in _CONSTANTS else Token.VALUE
            found.append(Piece(match["value"], token))
    return found
