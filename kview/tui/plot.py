"""Plots with their axes: areas, two that mirror each other, and one with a part of it as a band; and several
of them together."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kview.language import glyphs
from kview.language.curves import area, hanging, tick, top_of
from kview.model.ports import TimeMark
from kview.model.units import UNKNOWN
from kview.tui.text import EMPTY, SHADES, Line, Role, Span, justified, line, line_width, middle, pad, painted

AXIS_CELLS = 9
"""The number of cells to the left of a plot: the figures of its axis, a space and the axis."""

LEAST_TICKED = 5
"""A plot with at least this many rows has a figure in its middle."""

LEAST_PLOT = 6
"""The fewest lines of a plot: its title, four lines of the curve, and the time axis."""
MOST_PLOT = 24
COLUMN_CELLS = 36
"""The smallest width of a plot that has another plot next to it."""

_ABOVE_AND_BELOW = ("↑", "↓")
_WHOLE_AND_PART = (glyphs.LEVELS[-1], glyphs.UNCOMMITTED)
"""The signs of the two parts of a plot in its legend."""


class Frame(NamedTuple):
    """What stands around a plot.

    `ago` and `until` label the ends of the time axis, whose `marks` are (place from 0 to 1, sign). `why` is
    said if nothing is known to draw.
    """

    ago: str
    until: str = "now"
    marks: tuple[tuple[float, Span], ...] = ()
    why: str = "nothing known yet"


class Trace(NamedTuple):
    """What a plot shows: its name, its values, oldest first and not below 0, and its colour."""

    name: str
    values: Sequence[float]
    paint: Span


class Plot(NamedTuple):
    """A plot: its title with a note at its right end, what it shows, and what stands around it.

    Of two traces the second one hangs from the axis of the first, or, `as_band`, is a part of it.
    """

    title: str
    traces: Sequence[Trace]
    frame: Frame
    as_band: bool = False
    note: Line = EMPTY


def marks_between(marks: Sequence[TimeMark], since_ms: int, until_ms: int) -> tuple[tuple[float, Span], ...]:
    """Return the marks of a time axis: where incidents began, and since when they were healing."""
    signs = ((glyphs.DEAD, Role.RISK), (glyphs.UP, Role.WARN))
    return tuple(
        ((ms - since_ms) / (until_ms - since_ms), Span(sign, role))
        for mark in marks
        for ms, (sign, role) in zip((mark.began_ms, mark.healing_ms), signs, strict=True)
        if ms != UNKNOWN and since_ms <= ms <= until_ms
    )


def framed(trace: Trace, cells: int, rows: int, frame: Frame) -> list[Line]:
    """Return an area with its axes in `rows` lines. The last line is the time axis."""
    height, room = rows - 1, cells - AXIS_CELLS
    if height < 2 or room < 2:
        return []
    top = top_of(trace.values)
    drawn = [
        (_shaded(trace.paint, text, (height - row) / height),)
        for row, text in enumerate(area(trace.values, room, height, top))
    ]
    return _with_axes(drawn, _ticks(top, height), room, frame, [trace])


def mirrored(above: Trace, below: Trace, cells: int, rows: int, frame: Frame) -> list[Line]:
    """Return an area, and below its axis another one that hangs there, on the same scale, in `rows` lines or
    one less."""
    half, room = (rows - 1) // 2, cells - AXIS_CELLS
    if half < 1 or room < 2:
        return []
    top = top_of(above.values, below.values)
    standing, hung = area(above.values, room, half, top), hanging(below.values, room, half, top)
    drawn = [
        *((_shaded(above.paint, text, (half - row) / half),) for row, text in enumerate(standing)),
        *((_shaded(below.paint, text, (row + 1) / half),) for row, text in enumerate(hung)),
    ]
    end = tick(top)
    ticks = {0: end, 2 * half - 1: end} | ({half - 1: "0"} if half > 1 else {})
    return _with_axes(drawn, ticks, room, frame, [above, below])


def banded(whole: Trace, part: Trace, cells: int, rows: int, frame: Frame) -> list[Line]:
    """Return an area whose lower part is a band of its own."""
    height, room = rows - 1, cells - AXIS_CELLS
    if height < 2 or room < 2:
        return []
    top = top_of(whole.values)
    drawn: list[Line] = []
    for text, band in zip(
        area(whole.values, room, height, top), area(part.values, room, height, top), strict=True
    ):
        # The band's own end is a whole cell or none: half a cell of it would hide the area above it.
        is_band = [there >= glyphs.LEVELS[len(glyphs.LEVELS) // 2] for there in band]
        drawn.append(
            painted(
                [glyphs.UNCOMMITTED if mine else cell for mine, cell in zip(is_band, text, strict=True)],
                [part.paint if mine else whole.paint for mine in is_band],
            )
        )
    return _with_axes(drawn, _ticks(top, height), room, frame, [whole])


def legend(*samples: tuple[str, Trace]) -> Line:
    """Return the names of what a plot shows, each after its sign."""
    spans: list[Span] = []
    for sign, trace in samples:
        spans += [trace.paint._replace(text=f"  {sign} "), Span(trace.name, Role.DIM)]
    return tuple(spans)


def grid(shown: Sequence[Plot], size: tuple[int, int]) -> list[Line]:
    """Return as many plots as fit into `size` (cells, rows): the first one large, the others below it, side
    by side. The lines left over are empty."""
    cells, rows = size
    if not shown or rows < LEAST_PLOT:
        return [EMPTY] * max(0, rows)
    first, *others = shown
    others = others[: max(1, cells // COLUMN_CELLS)] if rows >= 2 * LEAST_PLOT else []
    low = max(LEAST_PLOT, min(MOST_PLOT, rows // 3)) if others else 0
    high = min(MOST_PLOT, rows - low)
    lines = _drawn(first, (cells - 1, high))
    if others:
        wide = cells // len(others)
        drawn = [_drawn(plot, (wide - 1, low)) for plot in others]
        for row in zip(*drawn, strict=True):
            lines.append(tuple(span for part in row for span in pad(part, wide)))
    return [*lines, *[EMPTY] * (rows - len(lines))][:rows]


def _drawn(plot: Plot, size: tuple[int, int]) -> list[Line]:
    """Return a plot below its title."""
    cells, height = size
    title: Line = (Span(f" {plot.title}", Role.HEAD),)
    if len(plot.traces) == 1:
        (only,) = plot.traces
        drawn = framed(only, cells, height - 1, plot.frame)
    else:
        one, other = plot.traces
        signs, draw = (_WHOLE_AND_PART, banded) if plot.as_band else (_ABOVE_AND_BELOW, mirrored)
        title += legend(*zip(signs, plot.traces, strict=True))
        drawn = draw(one, other, cells, height - 1, plot.frame)
    note = plot.note if line_width(title) + line_width(plot.note) < cells else EMPTY
    return [justified(title, note, cells), *drawn]


def _shaded(paint: Span, text: str, height: float) -> Span:
    """Return a row of an area, the brighter the higher it is. `height` is above 0, and 1 at the top."""
    return paint._replace(text=text, shade=min(SHADES - 1, int(height * SHADES)))


def _ticks(top: float, height: int) -> dict[int, str]:
    """Return the figures of an axis by row, none of them twice."""
    ticks = {0: tick(top), height - 1: "0"}
    if height >= LEAST_TICKED and height % 2:
        half = tick(top / 2)
        if half not in ticks.values():
            ticks[height // 2] = half
    return ticks


def _with_axes(
    drawn: Sequence[Line], ticks: dict[int, str], room: int, frame: Frame, traces: Sequence[Trace]
) -> list[Line]:
    """Return the rows of a plot behind the axis of its values, above the axis of time."""
    if not any(math.isfinite(value) for trace in traces for value in trace.values):
        said = middle(frame.why, room)
        drawn = [
            line(Span(said.center(room), Role.DIM)) if row == len(drawn) // 2 else line(Span(" " * room))
            for row in range(len(drawn))
        ]
        ticks = {}
    lines: list[Line] = []
    for number, row in enumerate(drawn):
        label = ticks.get(number, "")
        axis = glyphs.TICK if label else glyphs.BAR
        lines.append((Span(f"{label:>{AXIS_CELLS - 2}} ", Role.DIM), Span(axis, Role.RULE), *row))
    return [*lines, (Span(" " * AXIS_CELLS), *_times(room, frame))]


def _times(room: int, frame: Frame) -> Line:
    """Return the axis of time: its ends, and the marks, which never hide the ends."""
    ago = f"{glyphs.MINUS}{frame.ago}"
    cells = [*f"{ago}{frame.until:>{max(len(frame.until), room - len(ago))}}"]
    paints = [Span("", Role.DIM)] * len(cells)
    first, last = len(ago), len(cells) - len(frame.until) - 1
    for place, sign in frame.marks:
        at = min(max(round(place * (room - 1)), first), last)
        if first <= at <= last:
            cells[at], paints[at] = sign.text, sign
    return painted(cells, paints)
