"""Lines of text with roles, and the strips that a palette makes of them. Panels consist of these lines before
colours are added. All functions are pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Self

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from kview.language.glyphs import ELLIPSIS, plain, printable


class Role(StrEnum):
    """The meaning of a piece of text. A palette turns it into a style."""

    TEXT = "text"
    DIM = "dim"
    PREFERRED = "preferred"
    """A preferred leader that follows."""
    BRIGHT = "bright"
    HEAD = "head"
    RULE = "rule"
    RISK = "risk"
    WARN = "warn"
    GOOD = "good"
    KEY = "key"
    ALERT = "alert"
    """A RISK that must be seen first: solid, in the headline and on the tiles of brokers."""
    CLUSTER = "cluster"
    """The name of the cluster, which may have a colour of its own."""
    MOMENT = "moment"
    """The moment shown, if it is not the live one."""


SHADES = 6
"""How many shades a colour of the palette's series has, the last one the brightest."""


class Palette(Struct, frozen=True):
    """A style for every role.

    `selected` and `marked` are added to a table's selected row, with and without focus.
    """

    name: str
    dark: bool
    styles: dict[Role, Style]
    series: tuple[tuple[Style, ...], ...]
    """For each colour its shades."""
    base: Style
    selected: Style
    marked: Style
    band: Style
    """Is added to every second group of rows."""
    warned: Style
    """Is added to the tile of a broker that is one step from risk."""
    fresh: Style
    """Is added to the role's style if something changed within the last seconds."""

    def style(self, role: Role, series: int = -1, shade: int = SHADES - 1) -> Style:
        """Return the style of a span."""
        return self.styles[role] if series < 0 else self.series[series % len(self.series)][shade]


class _Fields(NamedTuple):
    text: str
    role: Role = Role.TEXT
    series: int = -1
    link: str = ""
    shade: int = SHADES - 1


class Span(_Fields):
    """A piece of printable text with one role. `series` selects a colour of the palette's series instead,
    and `shade` one of its SHADES. `link` is an address that terminals open if the piece is clicked.

    Everything that is drawn becomes a span first. This is where names from a cluster become printable.
    """

    __slots__ = ()

    def __new__(
        cls, text: str, role: Role = Role.TEXT, series: int = -1, link: str = "", shade: int = SHADES - 1
    ) -> Self:
        """Make a span of what is printable in `text`."""
        return super().__new__(cls, printable(text), role, series, link, shade)


Line = tuple[Span, ...]
EMPTY: Line = ()


TITLE_MARGIN = 4
"""The cells of a panel's inner width that its upper edge keeps around a title."""

EDGE_CELLS = TITLE_MARGIN + 2
"""The same around a title and what stands at its end."""


class Title(NamedTuple):
    """What stands in the upper edge: the title, and at the right end what is shown of how much.

    `is_marked` says whether a demo points at the panel.
    """

    text: Line = EMPTY
    scope: Line = EMPTY
    is_marked: bool = False
    has_note: bool = False
    """Whether the last span of the text is a note that can be left out."""


def line(*parts: str | Span) -> Line:
    """Return a line of spans and plain strings."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts if part)


def painted(signs: Sequence[str], paints: Sequence[Span]) -> Line:
    """Return a line of single signs, as one span for each run of the same paint: a span without its text."""
    spans: list[Span] = []
    begin = 0
    for at in range(1, len(signs) + 1):
        if at == len(signs) or paints[at][1:] != paints[begin][1:]:
            spans.append(Span("".join(signs[begin:at]), *paints[begin][1:]))
            begin = at
    return tuple(spans)


def runs(signs: Sequence[str], roles: Sequence[Role]) -> Line:
    """Return a line of single signs, as one span for each run of the same role."""
    paints = {role: Span("", role) for role in roles}
    return painted(signs, [paints[role] for role in roles])


@lru_cache(maxsize=1024)
def spaces(cells: int) -> Span:
    """Return empty cells."""
    return Span(" " * cells)


def width(text: str) -> int:
    """Return the number of terminal cells that `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def line_width(spans: Iterable[Span]) -> int:
    """Return the number of terminal cells that a line takes."""
    cells = 0
    for span in spans:  # for each cell of each table, so without calls
        text = span.text
        cells += len(text) if text.isascii() else cell_len(text)
    return cells


def content(spans: Iterable[Span]) -> str:
    """Return a line's text."""
    return "".join(span.text for span in spans)


def middle(text: str, cells: int) -> str:
    """Return a name in at most `cells`, cut in its middle: `my-very-lo…ic-name`."""
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
    """Return a line in at most `cells`. If its end is cut off, `…` takes its place."""
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
    """Return a line in exactly `cells`.

    A short line is filled on its right, or on its left if `right` (figures). A longer one is cut.
    """
    gap = cells - line_width(spans)
    if gap < 0:
        spans = cut(spans, cells)
        gap = cells - line_width(spans)  # cutting a wide sign leaves a cell
    if gap <= 0:
        return spans
    space = spaces(gap)
    return (space, *spans) if right else (*spans, space)


def joined(parts: Sequence[Line], between: Span, cells: int) -> Line:
    """Return as many of `parts` as fit into `cells` uncut, in order, with `between` them.

    The first part is cut if it is too long by itself.
    """
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
    """Return `left` and `right` at the two ends of a line.

    Only the left part is cut if there is too little room.
    """
    right = cut(right, cells)
    room = cells - line_width(right)
    return (*pad(left, room), *right) if room > 0 else right


SEVERE = (Role.RISK, Role.WARN, Role.GOOD, Role.ALERT, Role.MOMENT)


@lru_cache(maxsize=4096)
def _add(style: Style, other: Style) -> Style:
    return style + other


@lru_cache(maxsize=16)
def _link(url: str) -> Style:
    return Style(link=url)


def strip(spans: Line, cells: int, palette: Palette, ascii_only: bool, over: Style | None = None) -> Strip:
    """Return a line as a strip of exactly `cells`. A line that is longer ends in `…`.

    `over` is added to every style, as for a selected row. What is wrong keeps its colour there.
    """
    used = line_width(spans)
    if used > cells:
        spans = cut(spans, cells)
        used = line_width(spans)
    segments: list[Segment] = []
    for span in spans:  # for each cell of each table, so without calls where it can be
        style = _add(palette.base, palette.style(span.role, span.series, span.shade))
        if span.link and not ascii_only:  # A terminal without UTF-8 may not know links either.
            style = _add(style, _link(span.link))
        if over is not None:
            style = _add(style, over)
            if span.role in SEVERE:
                style = _add(style, palette.style(span.role))
        segments.append(Segment(plain(span.text) if ascii_only else span.text, style))
    if used < cells:
        segments.append(
            Segment(" " * (cells - used), palette.base if over is None else _add(palette.base, over))
        )
    return Strip(segments, used).crop(0, cells) if used > cells else Strip(segments, cells)


def blank(cells: int, palette: Palette) -> Strip:
    """Return an empty line."""
    return Strip([Segment(" " * cells, palette.base)], cells)
