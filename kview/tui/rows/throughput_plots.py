"""The plots of the throughput screen: which ones a cluster, topic, rack, broker or group has, and their
values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kview.derive.view import View
from kview.derive.windows import series, series_of
from kview.language import glyphs, words
from kview.model.aggregates import Key, Rollups
from kview.model.sums import Kind, Sum
from kview.model.units import UNKNOWN
from kview.tui.plot import Frame, Trace, framed, framed_lines, legend
from kview.tui.rows import direct
from kview.tui.text import EMPTY, Line, Role, Span, cut, pad

LEAST_PLOT = 6
"""The fewest lines of a plot: its title, four lines of the curve, and the time axis."""
MOST_PLOT = 24
COLUMN_CELLS = 36
"""The smallest width of a plot that has another plot next to it."""

LENGTHS_S = (30, 60, 120, 300, 600, 1200, 3600)
"""The lengths that a time axis can have, so that it rarely changes while figures accumulate."""
MOST_STEPS = 60
"""The most values of a plot, if steps are not shorter than a second."""

_FIRST, _SECOND = Span("", series=0), Span("", series=1)
_THIRD, _FOURTH = Span("", series=2), Span("", series=3)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: its title, its lines, the label of its axis of time, and how the figures of the other axis are
    shown.

    A plot with one line is filled. `alarm`: any value above 0 is a problem, and 0 is not drawn.
    """

    title: str
    traces: Sequence[Trace]
    ago: str
    figure: Callable[[float], str] = words.si
    alarm: bool = False


def fitting_length(length_s: int, known_s: int) -> int:
    """Return how many seconds a plot shows: `length_s`, or less if fewer seconds are known."""
    return next((each for each in LENGTHS_S if known_s <= each <= length_s), length_s)


def plots(view: View, key: Key, end_s: int, length_s: int) -> list[Plot]:
    """Return the plots of a key from the roll-ups, over the `length_s` seconds before `end_s`."""
    rollups = view.aggregates.rollups
    step_s = next(step for step in (1, 2, 5, 10, 20, 60) if length_s // step <= MOST_STEPS)
    ago = words.duration(length_s * 1000, tenths=False)

    def values(column: Sum, unit: float = 1.0) -> list[float]:
        per_step: list[float] = (series(rollups, key, column, end_s, length_s, step_s) / unit).tolist()
        return per_step

    if key.kind is Kind.GROUP:
        written = _written(view, rollups, key.name, end_s, length_s, step_s)
        traces = [Trace("read", values(Sum.RECORDS_OUT), _SECOND)]
        if written:
            traces.append(Trace("written", written, _FIRST))
        return [Plot("records /s", traces, ago), *lag_plots(view, key)]
    unavailable = [
        silent + offline
        for silent, offline in zip(values(Sum.SILENT_MS, 1000), values(Sum.OFFLINE_MS, 1000), strict=True)
    ]
    return [
        Plot(
            "records /s",
            (Trace("in", values(Sum.RECORDS_IN), _FIRST), Trace("out", values(Sum.RECORDS_OUT), _SECOND)),
            ago,
        ),
        Plot(
            "partitions, no live leader",
            (Trace("", unavailable, Span("", Role.RISK)),),
            ago,
            alarm=True,
        ),
        Plot(
            "replicated /s",
            (
                Trace("all", values(Sum.REPLICATED), _THIRD),
                Trace("cross-rack", values(Sum.CROSS_RACK), _FOURTH),
            ),
            ago,
        ),
        Plot(
            "bytes in /s ≈",
            (Trace("", values(Sum.CENTIBYTES_IN, 100), _FIRST),),
            ago,
            lambda rate: words.size(round(rate)),
        ),
    ]


def direct_plots(view: View, key: Key) -> list[Plot]:
    """Return the plots that need no roll-ups: the last minute from the rates between observations."""
    if key.kind is Kind.GROUP:
        return lag_plots(view, key)
    values = direct.records_in(view, key)
    if not any(math.isfinite(value) for value in values):
        return []
    return [Plot("records in /s", (Trace("", values, _FIRST),), "1 m")]


def lag_plots(view: View, key: Key) -> list[Plot]:
    """Return the plot of a group's lag, nothing if no lag is known."""
    values = direct.lag(view, key.name)
    if not any(math.isfinite(value) for value in values):
        return []
    return [Plot("lag, last minute", (Trace("", values, _FOURTH),), "1 m")]


def _written(view: View, rollups: Rollups, group: str, end_s: int, length_s: int, step_s: int) -> list[float]:
    """Return what producers write per second to the topics that a group reads, [] if it reads none."""
    offsets = view.snapshot.offsets
    mine = (offsets.group == group) & (offsets.committed != UNKNOWN)
    topics = sorted(set(offsets.topic[mine].tolist()))
    if not topics:
        return []
    keys = [Key(Kind.TOPIC, str(topic)) for topic in topics]
    each = series_of(rollups, keys, Sum.RECORDS_IN, end_s, length_s, step_s)
    total: list[float] = np.asarray(each).sum(axis=0).tolist()
    return total


def grid(shown: Sequence[Plot], size: tuple[int, int], braille: bool, until: str) -> list[Line]:
    """Return as many plots as fit into `size` (cells, rows), in columns. The lines left over are empty."""
    cells, rows = size
    if not shown or rows < LEAST_PLOT:
        return [EMPTY] * max(0, rows)
    columns = max(1, min(2, cells // COLUMN_CELLS, len(shown)))
    down = max(1, min(rows // LEAST_PLOT, -(-len(shown) // columns)))
    height = min(MOST_PLOT, rows // down)
    shown = shown[: columns * down]
    wide = cells // columns
    lines: list[Line] = []
    for begin in range(0, len(shown), columns):
        drawn = [_drawn(plot, (wide - 1, height), braille, until) for plot in shown[begin : begin + columns]]
        for number in range(height):
            parts = [pad(plot[number] if number < len(plot) else EMPTY, wide) for plot in drawn]
            lines.append(tuple(span for part in parts for span in part))
    return [*lines, *[EMPTY] * (rows - len(lines))][:rows]


def _drawn(plot: Plot, size: tuple[int, int], braille: bool, until: str) -> list[Line]:
    cells, height = size
    title: Line = (Span(f" {plot.title}", Role.HEAD),)
    frame = Frame(plot.ago, until, figure=plot.figure)
    if len(plot.traces) > 1:
        title += legend(plot.traces, braille)
        return [cut(title, cells), *framed_lines(plot.traces, cells, height - 1, braille, frame)]
    (trace,) = plot.traces
    values = trace.values
    if plot.alarm:
        title += (Span(_none(values), Role.DIM),)
        values = [value if value > 0 else math.nan for value in values]
    frame = frame._replace(paint=trace.paint)
    return [cut(title, cells), *framed(values, cells, height - 1, braille, frame)]


def _none(values: Sequence[float]) -> str:
    """Return that an alarm has nothing to draw, as far as that is known, '' if it has."""
    known = [value for value in values if math.isfinite(value)]
    if any(value > 0 for value in known):
        return ""
    return f": {glyphs.NONE}" if not known else ": none" if len(known) == len(values) else ": none yet"
