"""Lines of text with roles: what panels are made of before they have colours. Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from kview.language.glyphs import ELLIPSIS, printable


class Role(StrEnum):
    """What a piece of text means; a palette makes it a style."""

    TEXT = "text"
    DIM = "dim"
    BRIGHT = "bright"
    HEAD = "head"
    RULE = "rule"
    RISK = "risk"
    WARN = "warn"
    GOOD = "good"
    KEY = "key"
    ALERT = "alert"
    """RISK that must be seen first: the headline's."""
    MOMENT = "moment"
    """Which moment is shown, if it is not the live one."""


class Span(NamedTuple):
    """A piece of text with one role; `series` picks a colour of the palette's series instead."""

    text: str
    role: Role = Role.TEXT
    series: int = -1


Line = tuple[Span, ...]
EMPTY: Line = ()


def line(*parts: str | Span) -> Line:
    """A line of spans and plain strings."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts if part)


def width(text: str) -> int:
    """Terminal cells that `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def line_width(spans: Iterable[Span]) -> int:
    """Terminal cells that a line takes."""
    return sum(width(span.text) for span in spans)


def content(spans: Iterable[Span]) -> str:
    """A line's text."""
    return "".join(span.text for span in spans)


def middle(text: str, cells: int) -> str:
    """A name in at most `cells`, cut in its middle: `my-very-lo…ic-name`."""
    text = printable(text)
    if width(text) <= cells:
        return text
    if cells <= 1:
        return ELLIPSIS[:cells]
    tail = (cells - 1) // 2
    head = cells - 1 - tail
    end = text[len(text) - tail :] if tail else ""
    while width(end) > tail:
        end = end[1:]
    return set_cell_size(text, head) + ELLIPSIS + " " * (tail - width(end)) + end


def cut(spans: Line, cells: int) -> Line:
    """A line in at most `cells`; if its end is cut, it ends in `…`."""
    if line_width(spans) <= cells:
        return spans
    kept: list[Span] = []
    left = cells - 1
    for span in spans:
        size = width(span.text)
        if size > left:
            kept.append(span._replace(text=set_cell_size(span.text, max(left, 0)).rstrip() + ELLIPSIS))
            break
        kept.append(span)
        left -= size
    return tuple(kept) if cells > 0 else ()


def pad(spans: Line, cells: int, right: bool = False) -> Line:
    """A line in exactly `cells`: filled on its right, or on its left if `right` (figures); cut if it is
    longer."""
    spans = cut(spans, cells)
    gap = cells - line_width(spans)
    if gap <= 0:
        return spans
    space = Span(" " * gap)
    return (space, *spans) if right else (*spans, space)


def joined(parts: Sequence[Line], between: Span, cells: int) -> Line:
    """As many of `parts` as fit whole into `cells`, in order, with `between` them; the first one is cut if it
    is too long itself."""
    if not parts:
        return ()
    result = cut(parts[0], cells)
    used = line_width(result)
    for part in parts[1:]:
        more = width(between.text) + line_width(part)
        if used + more > cells:
            break
        result = (*result, between, *part)
        used += more
    return result


def justified(left: Line, right: Line, cells: int) -> Line:
    """`left` and `right` at the two ends of a line; the right one stays whole, the left one is cut."""
    right = cut(right, cells)
    room = cells - line_width(right)
    return (*pad(left, room), *right) if room > 0 else right
