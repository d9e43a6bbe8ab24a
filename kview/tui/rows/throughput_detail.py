"""The right side of the throughput screen: problems in the time shown, plots, and figures by window."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from textwrap import wrap

from kview.derive.view import Floats, View
from kview.derive.windows import Window, series, whole_until_s, window_of
from kview.language import glyphs, words
from kview.model.aggregates import Key, Kind, Rollups, SparkState, Sum
from kview.model.units import UNKNOWN
from kview.tui.keys import SPARK_KEY
from kview.tui.options import Options
from kview.tui.plot import Frame, framed, nice_top
from kview.tui.rows.throughput_windows import figure_lines
from kview.tui.spark import covered_until_s
from kview.tui.text import EMPTY, Line, Role, Span, cut, joined, justified, line, line_width, pad, width


@dataclass(frozen=True, slots=True)
class Stretch:
    """How much time plots show, and how much time one value covers."""

    label: str
    length_s: int
    step_s: int


STRETCHES = (Stretch("1 m", 60, 1), Stretch("5 m", 300, 5), Stretch("1 h", 3600, 60))
USUAL = 1
"""The index of the stretch that is shown first."""

LEAST_PLOT = 6
"""The fewest lines of a plot: its title, four lines of the curve, and the time axis."""
MOST_PLOT = 16
COLUMN_CELLS = 36
"""The smallest width of a plot that has another plot next to it."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: its title, the columns that it adds up, its colour, and how the figures of its axis are
    shown."""

    title: str
    columns: tuple[Sum, ...]
    paint: Span
    figure: Callable[[float], str] = words.si
    unit: float = 1.0
    """The divisor of the sums."""
    alarm: bool = False
    """Whether any value above 0 is a problem. In that case 0 is not drawn."""


IN = Plot("records in /s", (Sum.RECORDS_IN,), Span("", series=0))
OUT = Plot("records out /s", (Sum.RECORDS_OUT,), Span("", series=1))
BYTES = Plot(
    "bytes in /s ≈", (Sum.CENTIBYTES_IN,), Span("", series=0), lambda rate: words.size(round(rate)), 100.0
)
UNAVAILABLE = Plot(
    "no leader or silent one",
    (Sum.SILENT_MS, Sum.OFFLINE_MS),
    Span("", Role.RISK),
    unit=1000.0,
    alarm=True,
)
REPLICATED = Plot("records replicated /s", (Sum.REPLICATED,), Span("", series=2))
CROSS_RACK = Plot("records across racks /s", (Sum.CROSS_RACK,), Span("", series=2))

PLOTS = (IN, OUT, BYTES, UNAVAILABLE, REPLICATED, CROSS_RACK)


def detail_lines(
    view: View,
    options: Options,
    key: Key,
    label: str,
    stretch: Stretch,
    size: tuple[int, int],
    braille: bool,
    zone: tzinfo | None,
) -> list[Line]:
    """Return title, problems, plots and figures, as far as they fit into `size` (cells, rows).

    All of them end where Spark's figures end, which they say if that is not now.
    """
    cells, rows = size
    rollups, at_ms = view.aggregates.rollups, view.snapshot.observation.ended_ms
    end_s = whole_until_s(rollups, at_ms)
    if rollups.from_ms == UNKNOWN or end_s * 1000 <= rollups.from_ms:
        head = _head(label, stretch, "last", cells)
        return [head, *(line(Span(f" {text}", Role.DIM)) for text in wrap(_why_empty(view), cells - 2))]
    clock = words.clock(end_s * 1000, zone, tenths=False)
    is_current = covered_until_s(view, options) is not None
    head = _head(label, stretch, "last" if is_current else f"up to {clock}", cells)
    found = window_of(rollups, [key], end_s, stretch.length_s)
    lines = [head, _problems(found, key, stretch, clock, cells)]
    plots = (OUT,) if key.kind is Kind.GROUP else PLOTS
    room = rows - len(lines)
    figures = figure_lines(rollups, key, end_s, stretch.length_s, (cells, room - LEAST_PLOT))
    until = "now" if view.moment.live and is_current else clock
    drawn = _grid(rollups, key, plots, end_s, stretch, (cells, room - len(figures)), braille, until)
    return [*lines, *drawn, *figures]


def _why_empty(view: View) -> str:
    """Return the reason why there is nothing to draw."""
    if view.aggregates.rollups.from_ms != UNKNOWN:
        return "Spark's figures start after this moment."
    match view.aggregates.status.state:
        case SparkState.OFF:
            return "Plots, windows and percentiles come from Spark, and Spark is off."
        case SparkState.STARTING:
            return "No Spark figures yet: the job is starting, which usually takes less than a minute."
        case SparkState.FAILED:
            return f"No Spark figures: the job has failed. {SPARK_KEY} restarts it."
        case _:
            return "No Spark figures yet: the job has not added up a whole second."


def _head(label: str, stretch: Stretch, which: str, cells: int) -> Line:
    """Return the title, and which stretch of time is shown. `which` stands before its length if it fits."""
    title, choices = line(" ", Span(label, Role.BRIGHT)), EMPTY
    for choice in STRETCHES:
        chosen = choice is stretch
        choices += (
            Span(f"[{choice.label}]" if chosen else f" {choice.label} ", Role.TEXT if chosen else Role.DIM),
        )
    right: Line = (*choices, Span(" w ", Role.KEY))
    before = Span(f"{which} ", Role.DIM)
    fits = line_width(title) + 1 + line_width((before, *right)) <= cells
    return justified(title, (before, *right) if fits else right, cells)


def _problems(found: Window, key: Key, stretch: Stretch, clock: str, cells: int) -> Line:
    """Return the line of problems in the time shown, which is there even without problems.

    That there are none is said only of the seconds that have figures, which end at `clock`.
    """
    risks = [
        (int(found.offline_ms[0]) / 1000, "no leader", Role.RISK),
        (int(found.silent_ms[0]) / 1000, "leader silent", Role.RISK),
        (int(found.under_min_isr_ms[0]) / 1000, "under min ISR", Role.WARN),
        (int(found.under_replicated_ms[0]) / 1000, "under-replicated", Role.WARN),
    ]
    counts = [
        (int(found.truncated[0]), "truncated"),
        (int(found.records_in_gap[0]), "written while not observed"),
        (int(found.rewound[0]), "rewound"),
        (int(found.records_out_gap[0]), "read while not observed"),
    ]
    parts: list[Line] = [
        line(Span(f"{words.rate(seconds)} {what}", role)) for seconds, what, role in risks if seconds > 0
    ]
    if parts:
        sign = Role.RISK if any(seconds > 0 for seconds, _, role in risks if role is Role.RISK) else Role.WARN
        mark = glyphs.DEAD if sign is Role.RISK else glyphs.OUT_OF_SYNC
        parts[0] = (Span(f"{mark} partition-seconds: ", sign), *parts[0])
    records = [line(Span(f"{count:,} {what}", Role.WARN)) for count, what in counts if count]
    if records:
        records[0] = (Span("records: ", Role.DIM), *records[0])
    parts += records
    if not parts:
        parts = [_no_problems(found.covered_s, key, stretch, clock, cells - len(" ● "))]
    return line(" ", *joined(parts, Span(f" {glyphs.DOT} ", Role.DIM), cells - 1))


def _no_problems(covered_s: int, key: Key, stretch: Stretch, clock: str, cells: int) -> Line:
    if not covered_s:
        return line(Span(f"{words.NONE} no whole second up to {clock}", Role.DIM))
    calm = "nothing rewound" if key.kind is Kind.GROUP else "no partition problems"
    part = "" if covered_s >= stretch.length_s else f" in {words.duration(covered_s * 1000, tenths=False)}"
    short = calm if key.kind is Kind.GROUP else "no problems"
    said = (
        f"{calm}{part} up to {clock}",
        f"{calm}{part} to {clock}",
        f"{short}{part} to {clock}",
        f"{short} to {clock}",
    )
    fitting = next((text for text in said if width(text) <= cells), said[-1])
    return line(Span(f"{glyphs.OK} ", Role.GOOD), Span(fitting, Role.DIM))


def _grid(
    rollups: Rollups,
    key: Key,
    plots: Sequence[Plot],
    end_s: int,
    stretch: Stretch,
    size: tuple[int, int],
    braille: bool,
    until: str,
) -> list[Line]:
    """Return as many plots as fit, in columns. The lines left over are empty."""
    cells, rows = size
    columns = max(1, min(3, cells // COLUMN_CELLS, len(plots)))
    down = max(1, min(rows // LEAST_PLOT, -(-len(plots) // columns)))
    height = min(MOST_PLOT, rows // down)
    plots = plots[: columns * down]
    values = {plot: _values(rollups, key, plot, end_s, stretch) for plot in plots}
    tops = {plot: _top(plot, values) for plot in plots}
    wide = cells // columns
    lines: list[Line] = []
    for begin in range(0, len(plots), columns):
        drawn = [
            _plot(
                plot,
                values[plot],
                (wide - 1, height),
                braille,
                Frame(stretch.label, until, plot.paint, tops[plot], plot.figure),
            )
            for plot in plots[begin : begin + columns]
        ]
        for number in range(height):
            parts = [pad(plot[number] if number < len(plot) else EMPTY, wide) for plot in drawn]
            lines.append(tuple(span for part in parts for span in part))
    return [*lines, *[EMPTY] * (rows - len(lines))][:rows]


def _plot(plot: Plot, values: list[float], size: tuple[int, int], braille: bool, frame: Frame) -> list[Line]:
    cells, height = size
    title = line(Span(f" {plot.title}", Role.HEAD))
    if plot.alarm:
        title += (Span(_none(values), Role.DIM),)
        values = [value if value > 0 else math.nan for value in values]
    return [cut(title, cells), *framed(values, cells, height - 1, braille, frame)]


def _none(values: Sequence[float]) -> str:
    """Return that an alarm has nothing to draw, as far as that is known, '' if it has."""
    known = [value for value in values if math.isfinite(value)]
    if any(value > 0 for value in known):
        return ""
    return f": {words.NONE}" if not known else ": none" if len(known) == len(values) else ": none yet"


def _values(rollups: Rollups, key: Key, plot: Plot, end_s: int, stretch: Stretch) -> list[float]:
    each = [series(rollups, key, column, end_s, stretch.length_s, stretch.step_s) for column in plot.columns]
    summed: Floats = sum(each[1:], each[0]) / plot.unit
    values: list[float] = summed.tolist()
    return values


def _top(plot: Plot, values: dict[Plot, list[float]]) -> float:
    """Return the end of a plot's axis. Records across racks have the scale of all replicated records."""
    shared = [REPLICATED, CROSS_RACK] if plot in (REPLICATED, CROSS_RACK) else [plot]
    known = [value for one in shared for value in values.get(one, ()) if math.isfinite(value)]
    return nice_top(max(known, default=0.0))
