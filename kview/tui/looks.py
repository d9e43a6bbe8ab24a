"""Marks on panels, rows and cells: where a demo says to look. All functions here are pure."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from kview.language import glyphs
from kview.tui.text import Palette, Role

_CELL = Style(bold=True, underline=True)


class Look(NamedTuple):
    """A mark on the widgets with these ids: on the panel, on the row with `key`, or on its cell in
    `column`. Of the cell, only `word` is marked, if it is given. A cell that is not shown has its row marked
    instead. In the drawing of a log, `column` is a figure, and `word` the broker or the group whose it is."""

    ids: frozenset[str]
    key: Hashable | None = None
    column: str = ""
    word: str = ""


class Spot(NamedTuple):
    """The cells from `begin` to `end` of a panel's line `y`. The sign stands at `sign`."""

    y: int
    begin: int
    end: int
    sign: int


def marked(strips: list[Strip], spots: Sequence[Spot], palette: Palette, ascii_only: bool) -> list[Strip]:
    """Return a panel's lines with a sign and a background at each spot."""
    lines = list(strips)
    for spot in spots:
        if 0 <= spot.y < len(lines):
            lines[spot.y] = _marked(lines[spot.y], spot, palette, ascii_only)
    return lines


def _marked(strip: Strip, spot: Spot, palette: Palette, ascii_only: bool) -> Strip:
    cells = strip.cell_length
    end = min(spot.end, cells)
    parts = [
        strip.crop(0, spot.begin),
        _over(strip.crop(spot.begin, end), palette),
        strip.crop(end, cells),
    ]
    whole = Strip.join(parts)
    if not 0 <= spot.sign < cells:
        return whole
    sign = glyphs.plain(glyphs.PLAYING) if ascii_only else glyphs.PLAYING
    style = palette.base + palette.style(Role.MOMENT)
    return Strip.join(
        [whole.crop(0, spot.sign), Strip([Segment(sign, style)]), whole.crop(spot.sign + 1, cells)]
    )


def _over(strip: Strip, palette: Palette) -> Strip:
    """Underline a strip in the colour of marks. What is red or yellow stays so: a mark must not calm."""
    kept = {palette.style(role).color for role in (Role.RISK, Role.WARN)}
    segments = []
    for text, own, _ in strip:
        style = own or Style()
        color = style.color if style.color in kept else palette.style(Role.KEY).color
        segments.append(Segment(text, style + _CELL + Style(color=color)))
    return Strip(segments, strip.cell_length)
