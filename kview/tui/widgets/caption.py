"""The caption strip above the status line: what a demo, a tour or a drill says about the screen."""

from textwrap import wrap

from msgspec import Struct

from kview.language import glyphs
from kview.tui.app_of import app_of
from kview.tui.layout import FRAMED_HEIGHT
from kview.tui.text import EMPTY, Line, Role, Span, cut, joined, line, line_width, pad
from kview.tui.widgets.drawn import Lines

LEAST_ROWS = 4
"""A caption gets at least this many lines, even on the smallest screen."""

SHARE_PERCENT = 45
"""The most of the screen's height that a caption takes."""

MOST_LOW = 5
"""The most lines, with its heading, on a screen too low for frames, if everybody can go on."""

MOST_PERCENT = 60
"""The most that it takes if nobody could go on otherwise, because a question or a key would not be read."""

MOST_CELLS = 110
"""Lines do not get longer than this on a wide screen, because the eye would lose the next line."""

LEAST_LINES = 2
"""So many lines of what is said stay if even that is not enough for the question or the key below it."""

MOST_NEEDED = 2
"""So many of the keys at the head are always there."""

LEAST_HEADING = 16
"""So much of a long heading stays, or else only its first word."""

GAP = 2
"""The cells between two keys."""

_BETWEEN = Span(" " * GAP)

_EDGES = 8
"""The cells of a caption's first line around its heading and its keys."""

_WIDE = {ord(" "): "  ", **{code: chr(code + 0xFEE0) for code in range(ord("!"), ord("~") + 1)}}
"""The wide form of every ASCII character, which takes two cells."""


class Paragraph(Struct, frozen=True):
    """A paragraph of a caption. `sign` stands before its first line.

    `choices` are keys with what each chooses, in place of `text`: in one line if they fit into it.
    Paragraphs of the highest `rank` are left out first if not all of them fit, and those of rank 0 never.
    """

    text: str
    role: Role = Role.TEXT
    sign: str = ""
    rank: int = 0
    sign_role: Role | None = None
    """The role of the sign, None if it is that of the text."""
    choices: tuple[tuple[str, str], ...] = ()


class Caption(Struct, frozen=True):
    """What the strip shows. `heading` and `place`, such as `step 2 of 6`, stand on its first line, `keys` at
    the end of that line, each as the key's name and what it does: the first two always, which cut the heading
    if they must, and the others as far as they fit. If `is_large`, the paragraphs of rank 0 are twice as
    wide, for a projector. If it `keeps_order`, brokers do not change their places when captions of another
    height leave less room for them. `headline` stands in place of the findings above, if it is not
    ''. `short` are a heading and a place for a head with less room."""

    heading: str
    place: str
    paragraphs: tuple[Paragraph, ...]
    keys: tuple[tuple[str, str], ...] = ()
    is_large: bool = False
    keeps_order: bool = True
    headline: str = ""
    short: tuple[str, str] = ("", "")


def caption_rows(caption: Caption | None, cells: int, height: int) -> int:
    """Return the number of lines of a caption on a screen of this size, 0 if there is none."""
    if caption is None:
        return 0
    needed = [paragraph for paragraph in caption.paragraphs if not paragraph.rank]
    least = 1 + sum(len(_wrapped(paragraph, cells, caption.is_large, False)) for paragraph in needed)
    share = max(LEAST_ROWS, height * SHARE_PERCENT // 100)
    if height < FRAMED_HEIGHT and not caption.is_large:
        share = min(share, MOST_LOW)
    most = max(share, min(least, height * MOST_PERCENT // 100))
    return len(caption_lines(caption, cells, most, False))


def caption_lines(caption: Caption, cells: int, rows: int, ascii_only: bool) -> list[Line]:
    """Return a caption in at most `rows` lines, its heading first."""
    kept = list(caption.paragraphs)
    while True:
        lines = [
            each
            for paragraph in kept
            for each in _wrapped(paragraph, cells, caption.is_large and not paragraph.rank, ascii_only)
        ]
        worst = max((paragraph.rank for paragraph in kept), default=0)
        if len(lines) < rows or not worst:
            break
        last = max(at for at, paragraph in enumerate(kept) if paragraph.rank == worst)
        del kept[last]
    if kept and len(lines) >= rows:
        said = _wrapped(kept[0], cells, caption.is_large, ascii_only)
        most = max(LEAST_LINES, len(said) - (len(lines) - rows + 1))
        if most < len(said):
            last_kept = cut(line(*said[most - 1], glyphs.ELLIPSIS), cells)
            lines = [*said[: most - 1], last_kept, *lines[len(said) :]]
    if len(lines) >= rows:
        lines = [*lines[: rows - 2], cut(line(*lines[rows - 2], glyphs.ELLIPSIS), cells)]
    return [_heading(caption, cells), *lines]


_BEGIN, _END = line(Span(f"{glyphs.RULE * 2} ", Role.KEY)), line(" ")


def key_names(caption: Caption, cells: int) -> list[str]:
    """Return the names of the keys that a caption shows at the end of its first line."""
    return [name for name, _ in caption.keys[: len(_fitted(caption, cells)[2])]]


def _heading(caption: Caption, cells: int) -> Line:
    heading, place, keys = _fitted(caption, cells)
    shown = joined(keys, _BETWEEN, cells)
    heading = cut(heading, cells - _EDGES - line_width(place) - line_width(shown))
    begin = (*_BEGIN, *heading, *place, *_END)
    gap = cells - line_width(begin) - line_width(shown) - (2 if shown else 0)
    rule = line(Span(glyphs.RULE * max(0, gap - 1), Role.KEY))
    return (*begin, *rule, *line(" ", *shown, " ")) if shown else (*begin, *rule)


def _fitted(caption: Caption, cells: int) -> tuple[Line, Line, list[Line]]:
    """Return the heading, the place and the keys that fit into the first line. The heading may still have to
    be cut."""
    heading, place = _titled(caption.heading, caption.place)
    keys = [line(Span(name, Role.KEY), Span(f" {does}", Role.DIM)) for name, does in caption.keys]
    # The title yields to the keys without which nobody can go on or leave, and then so does the place.
    short = line(Span(caption.heading.split()[0], Role.BRIGHT))
    least = min(line_width(heading), LEAST_HEADING)
    room = cells - _EDGES
    needed = line_width(joined(keys[:MOST_NEEDED], _BETWEEN, room))
    if caption.short[0] and line_width((*heading, *place)) + needed > room:
        heading, place = _titled(*caption.short)
    if least + line_width(place) + needed > room:
        if least == LEAST_HEADING and line_width(short) + line_width(place) + needed <= room:
            heading = short
        else:
            place = EMPTY
    left = max(needed, room - line_width(heading) - line_width(place))
    while keys and sum(line_width(key) + GAP for key in keys) - GAP > left:
        keys = keys[:-1]
    return heading, place, keys


def _titled(heading: str, place: str) -> tuple[Line, Line]:
    after = f" {glyphs.DOT} {place}" if place else ""
    return line(Span(heading, Role.BRIGHT)), line(Span(after, Role.DIM))


def _wrapped(paragraph: Paragraph, cells: int, is_large: bool, ascii_only: bool) -> list[Line]:
    """Return a paragraph's lines, indented by the width of its sign, or those of its choices."""
    if paragraph.choices:
        return _chosen(paragraph, cells, is_large, ascii_only)
    begin = f" {paragraph.sign} " if paragraph.sign else " "
    room = max(cells - len(begin) - 1, 10)
    if is_large:
        words = wrap(paragraph.text, max(room // 2, 5), break_on_hyphens=False)
        words = [" ".join(text) if ascii_only else text.translate(_WIDE) for text in words]
    else:
        words = wrap(paragraph.text, min(room, MOST_CELLS), break_on_hyphens=False)
    role = Role.BRIGHT if is_large and paragraph.role is Role.TEXT else paragraph.role
    return [
        cut(
            line(Span(begin if not at else " " * len(begin), paragraph.sign_role or role), Span(text, role)),
            cells,
        )
        for at, text in enumerate(words)
    ]


def _chosen(paragraph: Paragraph, cells: int, is_large: bool, ascii_only: bool) -> list[Line]:
    """Return what can be chosen: side by side if there is room, else one below another."""
    side_by_side: Line = line("  ")
    for key, text in paragraph.choices:
        side_by_side += line(Span(f" {key} ", Role.KEY), Span(f"{text}  ", paragraph.role))
    if line_width(side_by_side) <= cells and not is_large:
        return [side_by_side]
    lines: list[Line] = []
    for key, text in paragraph.choices:
        one = Paragraph(text, paragraph.role, f" {key}", paragraph.rank, Role.KEY)
        lines += _wrapped(one, cells, is_large, ascii_only)
    return lines


class CaptionStrip(Lines):
    """The strip. It is as high as its caption needs, and not shown without one."""

    DEFAULT_CSS = "CaptionStrip { height: 0; display: none; }"

    def __init__(self) -> None:
        super().__init__(id="caption")
        self.caption: Caption | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        if self.caption is None:
            return []
        lines = caption_lines(self.caption, width, height, app_of(self).ascii_only)
        return [pad(each, width) for each in lines]
