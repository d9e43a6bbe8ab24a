"""Curves out of characters: plots by plotext, and sparklines."""

import math
from collections.abc import Iterator, Sequence

from kview.tui.glyphs import LEVELS

_STEPS = (1, 2, 5)


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


def _stretches(values: Sequence[float]) -> Iterator[tuple[int, list[float]]]:
    """The runs of known values, each with the place of its first: plotext is never given a NaN."""
    known: list[float] = []
    for place, value in enumerate((*values, math.nan)):
        if math.isfinite(value):
            known.append(value)
        elif known:
            yield place - len(known), known
            known = []
