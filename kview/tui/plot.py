"""Curves drawn with characters: plots, which plotext draws, and sparklines."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kview.derive.series import stretches
from kview.language import glyphs, words
from kview.language.glyphs import LEVELS
from kview.tui.text import Line, Role, Span, line

NONE_DRAWN = " \u2800"
"""The characters of a cell in which nothing is drawn."""

_EVERY_OTHER_COLUMN = 0x2800 | 0x47
"""The braille cell whose left column of dots is full. A line reduced to these dots is dotted."""

_COLUMNS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The dots of the left and of the right column of a braille cell, from the top."""


def _below(cell: int) -> int:
    """Return the dots of a cell, and those below them."""
    filled = cell
    for column in _COLUMNS:
        top = next((at for at, dot in enumerate(column) if cell & dot), len(column))
        filled |= sum(column[top:])
    return filled


_BELOW = tuple(map(_below, range(256)))
"""By the dots of a cell: these dots, and those below them."""
_FULL_BELOW = tuple(sum(sum(column) for column in _COLUMNS if cell & sum(column)) for cell in range(256))
"""By the dots of a cell: the dots of the cells below it that are filled."""

_MARKERS = "*o"
"""The markers of a plot's lines in ASCII."""

_STEPS = (1, 1.5, 2, 3, 5)

AXIS_CELLS = 9
"""The number of cells to the left of a curve: the figures of its axis, a space and the axis."""

NEAR = 1e-9
"""Positions that differ by less than this are considered equal, because they are results of divisions."""


def sparkline(values: Sequence[float], cells: int) -> str:
    """Return the last `cells` values as levels from 0 to a round number, right-aligned.

    An unknown value is a gap.
    """
    shown = values[-cells:] if cells > 0 else ()
    greatest = max((v for v in shown if math.isfinite(v)), default=0.0)
    top = nice_top(greatest) if greatest > 0 else 0.0
    return "".join(level(v, top) if math.isfinite(v) else " " for v in shown).rjust(cells)


def level(value: float, top: float) -> str:
    """Return one character for `value` between 0 and `top`."""
    if top <= 0:
        return LEVELS[0]
    return LEVELS[min(len(LEVELS) - 1, max(0, int(value / top * len(LEVELS))))]


def nice_top(value: float) -> float:
    """Return the smallest of 1, 1.5, 2, 3, 5 × a power of ten that is not below `value`.

    An axis that ends there does not jump with every sample.
    """
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if step * power >= value * 0.999), 10 * power)


def curve(
    values: Sequence[float], cells: int, rows: int, top: float, braille: bool, filled: bool = True
) -> list[str]:
    """Draw `values` over the full width as `rows` strings of `cells`, the top row first.

    Values lie between 0 and `top`, and unknown values are gaps. Consecutive values are joined, and if
    `filled`, so is the area below them. Plotext draws them; it is imported with the first curve.
    """
    if cells <= 0 or rows <= 0:
        return []
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(cells, rows)
    figure.axes(active=False)
    across, up = (2, 4) if braille else (1, 1)
    last = max(len(values) - 1, 1)
    for axis, (end, count, dots) in enumerate(((last, cells, across), (top, rows, up))):
        ruler = figure.ruler(axis, 0)
        ruler.lim(*_limits(end, count, dots))
        ruler.frequency(0)
    for first, known in stretches(values):
        places, heights = _columns(first, known, last / max(1, cells * across - 1))
        signal = figure.signal(places, heights, marker="braille" if braille else "*")
        figure.draw(signal if filled else signal.lines())
    drawn = plotext.uncolorize(figure.build().string()).splitlines()
    lines = [row[:cells].ljust(cells) for row in (*drawn, *[""] * rows)][:rows]
    return _filled(lines, braille) if filled else lines


def _filled(rows: Sequence[str], braille: bool) -> list[str]:
    """Return the rows of a curve with the area below it filled. Plotext's own way takes twice as long."""
    above, filled = [0] * len(rows[0]), []
    for row in rows:
        if braille:
            dots = [ord(cell) & 0xFF if cell not in NONE_DRAWN else 0 for cell in row]
            shown = [_BELOW[cell] | full for cell, full in zip(dots, above, strict=True)]
            above = [_FULL_BELOW[cell] for cell in shown]
            filled.append("".join(chr(0x2800 | cell) if cell else " " for cell in shown))
        else:
            above = [full or cell not in NONE_DRAWN for full, cell in zip(above, row, strict=True)]
            filled.append("".join(_MARKERS[0] if full else " " for full in above))
    return filled


def _limits(end: float, cells: int, dots: int) -> tuple[float, float]:
    """Return limits that put 0 on the first dot of the first cell and `end` on the last dot of the last cell.

    Each cell has `dots` dots. Plotext puts a limit in the middle of the first or last cell.
    """
    if cells < 2:
        return 0, end
    outside = (1 - 1 / dots) / 2
    length = end * (cells - 1) / (cells - 1 + 2 * outside)
    first = length * outside / (cells - 1)
    return first, first + length


def _columns(first: int, values: Sequence[float], apart: float) -> tuple[list[float], list[float]]:
    """Return the positions of the columns of dots, and how high each column is filled.

    A column is filled up to the line that joins the values, and to the highest value next to the column. The
    columns are `apart` from each other, and the values begin at position `first`.
    """
    last = len(values) - 1
    heights = {}
    for column in range(math.ceil(first / apart - NEAR), math.floor((first + last) / apart + NEAR) + 1):
        at = min(max(column * apart - first, 0.0), last)
        before, after = values[int(at)], values[min(int(at) + 1, last)]
        heights[column] = before + (after - before) * (at - int(at))
    for place, value in enumerate(values):
        column = round((first + place) / apart)
        heights[column] = max(heights.get(column, 0.0), value)
    return [column * apart for column in heights], list(heights.values())


class Frame(NamedTuple):
    """The axes and the colour of a curve.

    `ago` and `until` label the ends of the time axis, and `paint` has the colour of the curve. `top` is the
    end of the other axis if several curves share that end, else 0.
    """

    ago: str
    until: str = "now"
    paint: Span = Span("", series=0)
    top: float = 0.0
    figure: Callable[[float], str] = words.si


class Trace(NamedTuple):
    """A line of a plot: its name, its values, oldest first, and its colour."""

    name: str
    values: Sequence[float]
    paint: Span


def framed(values: Sequence[float], cells: int, rows: int, braille: bool, frame: Frame) -> list[Line]:
    """Return a filled curve with its axes in `rows` lines. The last line is the time axis. Values are not
    below 0."""
    height, room = rows - 1, cells - AXIS_CELLS
    if height < 2 or room < 2:
        return []
    top = frame.top or _top(values)
    drawn = curve(values, room, height, top, braille)
    return _with_axes([(frame.paint._replace(text=text),) for text in drawn], top, room, frame)


def framed_lines(traces: Sequence[Trace], cells: int, rows: int, braille: bool, frame: Frame) -> list[Line]:
    """Return several lines in one plot with its axes, in `rows` lines. The second line is dotted.

    The lines share their scale, and in a cell that two of them cross, both colours take turns.
    """
    height, room = rows - 1, cells - AXIS_CELLS
    if height < 2 or room < 2:
        return []
    top = frame.top or _top([value for trace in traces for value in trace.values])
    drawn = [
        _dotted(curve(trace.values, room, height, top, braille, False), number, braille)
        for number, trace in enumerate(traces)
    ]
    merged = [
        _merged([(lines[row], trace.paint) for lines, trace in zip(drawn, traces, strict=True)], braille)
        for row in range(height)
    ]
    return _with_axes(merged, top, room, frame)


def legend(traces: Sequence[Trace], braille: bool) -> Line:
    """Return the names of a plot's lines, each after a sample of its line."""
    spans: list[Span] = []
    for number, trace in enumerate(traces):
        sample = (glyphs.LINE, glyphs.DOTTED)[number % 2] * 2 if braille else _MARKERS[number % 2]
        spans += [trace.paint._replace(text=f"  {sample} "), Span(trace.name, Role.DIM)]
    return tuple(spans)


def _top(values: Sequence[float]) -> float:
    return nice_top(max((value for value in values if math.isfinite(value)), default=0.0))


def _dotted(rows: list[str], number: int, braille: bool) -> list[str]:
    """Return a drawn line in the manner of the plot's line of that number."""
    if not number % 2:
        return rows
    if not braille:
        return [row.replace(_MARKERS[0], _MARKERS[1]) for row in rows]
    return [
        "".join(chr(ord(cell) & _EVERY_OTHER_COLUMN) if cell not in NONE_DRAWN else " " for cell in row)
        for row in rows
    ]


def _merged(rows: Sequence[tuple[str, Span]], braille: bool) -> Line:
    """Return one row of a plot from the rows of its lines, each with its colour."""
    spans: list[Span] = []
    for place, cells in enumerate(zip(*(text for text, _ in rows), strict=True)):
        there = [number for number, cell in enumerate(cells) if cell not in NONE_DRAWN]
        if not there:
            cell, paint = " ", spans[-1] if spans else rows[0][1]
        else:
            number = there[place % len(there)]
            paint, cell = rows[number][1], cells[number]
            if braille and len(there) > 1:
                dots = 0
                for crossing in there:
                    dots |= ord(cells[crossing])
                cell = chr(dots)
        if spans and (spans[-1].role, spans[-1].series) == (paint.role, paint.series):
            spans[-1] = spans[-1]._replace(text=spans[-1].text + cell)
        else:
            spans.append(paint._replace(text=cell))
    return tuple(spans)


def _with_axes(drawn: Sequence[Line], top: float, room: int, frame: Frame) -> list[Line]:
    """Return the rows of a plot behind the axis of its values, above the axis of time."""
    height = len(drawn)
    labels = {0: frame.figure(top), height - 1: "0"}
    if height >= 5 and height % 2:
        labels[height // 2] = frame.figure(top / 2)
    lines: list[Line] = []
    for number, row in enumerate(drawn):
        label = labels.get(number, "")
        axis = glyphs.TICK if label else glyphs.BAR
        lines.append((Span(f"{label:>{AXIS_CELLS - 2}} ", Role.DIM), Span(axis, Role.RULE), *row))
    ago = f"{glyphs.MINUS}{frame.ago}"
    lines.append(
        line(
            Span(" " * AXIS_CELLS),
            Span(f"{ago}{frame.until:>{max(len(frame.until), room - len(ago))}}", Role.DIM),
        )
    )
    return lines
