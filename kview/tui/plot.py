"""Curves out of characters: plots by plotext, and sparklines."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kview.derive import words
from kview.tui import glyphs
from kview.tui.glyphs import LEVELS
from kview.tui.text import Line, Role, Span, line

_STEPS = (1, 2, 5)

AXIS_CELLS = 8
"""Cells left of a curve: its axis' figures, a space and the axis."""


def sparkline(values: Sequence[float], cells: int) -> str:
    """The last `cells` values as levels from 0 to a round number; a gap where one is not known;
    right-aligned."""
    shown = values[-cells:] if cells > 0 else ()
    greatest = max((v for v in shown if math.isfinite(v)), default=0.0)
    top = nice_top(greatest) if greatest > 0 else 0.0
    signs = [" " if not math.isfinite(v) else level(v, top) for v in shown]
    return "".join(signs).rjust(cells)


def level(value: float, top: float) -> str:
    """One character for `value` between 0 and `top`."""
    if top <= 0:
        return LEVELS[0]
    return LEVELS[min(len(LEVELS) - 1, max(0, int(value / top * len(LEVELS))))]


def nice_top(value: float) -> float:
    """The least of 1, 2, 5 × a power of ten that is not below `value`: an axis that does not jump with every
    sample."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if step * power >= value * 0.999), 10 * power)


def curve(values: Sequence[float], cells: int, rows: int, top: float, braille: bool) -> list[str]:
    """`values` over the whole width as `rows` strings of `cells`, the top row first; a gap where one is not
    known.

    Values lie between 0 and `top`; consecutive ones are joined. Drawn by plotext, which is imported with the
    first curve.
    """
    if cells <= 0 or rows <= 0:
        return []
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(cells, rows)
    figure.axes(active=False)
    for axis, end in enumerate((max(len(values) - 1, 1), top)):
        ruler = figure.ruler(axis, 0)
        ruler.lim(0, end)
        ruler.frequency(0)
    for first, known in _stretches(values):
        signal = figure.signal(
            list(range(first, first + len(known))), known, marker="braille" if braille else "*"
        )
        signal.lines()
        figure.draw(signal)
    drawn = plotext.uncolorize(figure.build().string()).splitlines()
    return [row[:cells].ljust(cells) for row in (*drawn, *[""] * rows)][:rows]


class Frame(NamedTuple):
    """What stands around a curve: `ago` and `until` are the ends of its axis of time, `series` its colour;
    `top` the end of the other axis, where curves beside each other share one."""

    ago: str
    until: str = "now"
    series: int = 0
    top: float = 0.0
    figure: Callable[[float], str] = words.si


def framed(values: Sequence[float], cells: int, rows: int, braille: bool, frame: Frame) -> list[Line]:
    """A curve with its axes in `rows` lines, the last of which is that of time; values are not below 0."""
    height, room = rows - 1, cells - AXIS_CELLS
    if height < 2 or room < 2:
        return []
    top = frame.top or nice_top(max((value for value in values if math.isfinite(value)), default=0.0))
    labels = {0: frame.figure(top), height - 1: "0"}
    if height >= 5 and height % 2:
        labels[height // 2] = frame.figure(top / 2)
    lines: list[Line] = []
    for number, text in enumerate(curve(values, room, height, top, braille)):
        label = labels.get(number, "")
        axis = glyphs.TICK if label else glyphs.BAR
        lines.append(
            line(
                Span(f"{label:>{AXIS_CELLS - 2}} ", Role.DIM),
                Span(axis, Role.RULE),
                Span(text, series=frame.series),
            )
        )
    ago = f"{glyphs.MINUS}{frame.ago}"
    lines.append(
        line(
            Span(" " * AXIS_CELLS),
            Span(f"{ago}{frame.until:>{max(len(frame.until), room - len(ago))}}", Role.DIM),
        )
    )
    return lines


def _stretches(values: Sequence[float]) -> Iterator[tuple[int, list[float]]]:
    """The runs of known values, each with the place of its first: plotext is never given a NaN."""
    known: list[float] = []
    for place, value in enumerate((*values, math.nan)):
        if math.isfinite(value):
            known.append(value)
        elif known:
            yield place - len(known), known
            known = []
