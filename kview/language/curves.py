"""Figures over time drawn with characters: sparklines, and areas, which plotext draws.

Plotext places the end of each column, with a marker per point. What it cannot do is done here: an area of
eighth-blocks below these ends takes it twice as long, and it knows no axis whose figures are round.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from kview.derive.series import stretches
from kview.language import words
from kview.language.glyphs import LEVELS, UPPER_HALF

_FULL = LEVELS[-1]
_HALVES = UPPER_HALF + _FULL
"""The levels of an area that hangs from its axis: eighths hang from nothing."""

_STEPS = (1, 1.5, 2, 3, 5)

MOST_PLOTS = 2
"""How many areas are kept: those of the overview, which are drawn again in every second for the same view."""

_NEAR = 1e-9
"""Positions that differ by less than this are considered equal, because they are results of divisions."""


def nice_top(value: float) -> float:
    """Return the smallest of 1, 1.5, 2, 3, 5 × a power of ten that is not below `value`.

    An axis that ends there does not jump with every sample.
    """
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if step * power >= value * 0.999), 10 * power)


def top_of(*lines: Sequence[float]) -> float:
    """Return the end of an axis for what is known of some lines."""
    return nice_top(max((value for line in lines for value in line if math.isfinite(value)), default=0.0))


def tick(value: float, figure: Callable[[float], str] = words.si) -> str:
    """Return a round figure for an axis: `5 k`, `1.5 k`. What is below 10 keeps its fraction: `0.5`."""
    if figure is not words.si:
        return figure(value)
    return f"{value:g}" if 0 < value < 10 else words.si(value).replace(".0 ", " ")


def level(value: float, top: float) -> str:
    """Return one character for `value` between 0 and `top`."""
    if top <= 0:
        return LEVELS[0]
    return LEVELS[min(len(LEVELS) - 1, max(0, int(value / top * len(LEVELS))))]


def sparkline(values: Sequence[float], cells: int) -> str:
    """Return the last `cells` values as levels from 0 to a round number, right-aligned.

    An unknown value is a gap.
    """
    shown = values[-cells:] if cells > 0 else ()
    greatest = max((v for v in shown if math.isfinite(v)), default=0.0)
    top = nice_top(greatest) if greatest > 0 else 0.0
    return "".join(level(v, top) if math.isfinite(v) else " " for v in shown).rjust(cells)


def area(values: Sequence[float], cells: int, rows: int, top: float) -> list[str]:
    """Draw the area below `values`, which lie between 0 and `top`, as `rows` strings of `cells`.

    The values take the full width, the last one at the right edge. The first string is the top row. What is
    not known is a gap, and what is known has at least the lowest level.
    """
    return list(_area(tuple(values), cells, rows, top, LEVELS))


def hanging(values: Sequence[float], cells: int, rows: int, top: float) -> list[str]:
    """Draw the same area as `area`, hanging from an axis above it."""
    return list(_area(tuple(values), cells, rows, top, _HALVES))[::-1]


@lru_cache(MOST_PLOTS)
def _area(values: tuple[float, ...], cells: int, rows: int, top: float, levels: str) -> tuple[str, ...]:
    if cells <= 0 or rows <= 0:
        return ()
    places, ends, markers = [], [], []
    apart = max(len(values) - 1, 1) / max(1, cells - 1)
    for first, known in stretches(values):
        for place, value in _columns(first, known, apart).items():
            steps = max(1, round(min(value / top, 1.0) * rows * len(levels)))
            places.append(place)
            ends.append((steps - 1) // len(levels))
            markers.append(levels[(steps - 1) % len(levels)])
    if not places:
        return (" " * cells,) * rows
    import plotext  # which takes longer than all the rest of the first view

    plotext.terminal.limit(False, False)  # the output may be a pipe, and no terminal limits what is asked for
    figure = plotext.figure
    figure.clear()
    figure.plot_size(cells, rows)
    figure.axes(active=False)
    for axis, count in enumerate((cells, rows)):
        ruler = figure.ruler(axis, 0)
        ruler.lim(0, max(1, count - 1))
        ruler.frequency(0)
    figure.draw(figure.signal(places, ends, marker=markers))
    drawn = plotext.uncolorize(figure.build().string()).splitlines()
    lines, above = [], [False] * cells
    for row in [row[:cells].ljust(cells) for row in (*drawn, *[""] * rows)][:rows]:
        lines.append("".join(_FULL if full else cell for full, cell in zip(above, row, strict=True)))
        above = [full or cell != " " for full, cell in zip(above, row, strict=True)]
    return tuple(lines)


def _columns(first: int, values: Sequence[float], apart: float) -> dict[int, float]:
    """Return how high each column is filled, by its number.

    A column is filled up to the line that joins the values, and to the highest value next to the column. The
    columns are `apart` from each other, and the values begin at position `first`.
    """
    last = len(values) - 1
    heights = {}
    for column in range(math.ceil(first / apart - _NEAR), math.floor((first + last) / apart + _NEAR) + 1):
        at = min(max(column * apart - first, 0.0), last)
        before, after = values[int(at)], values[min(int(at) + 1, last)]
        heights[column] = before + (after - before) * (at - int(at))
    for place, value in enumerate(values):
        column = round((first + place) / apart)
        heights[column] = max(heights.get(column, 0.0), value)
    return heights
