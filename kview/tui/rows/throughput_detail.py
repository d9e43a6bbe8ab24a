"""The right side of the throughput screen: problems in the time shown, plots, and figures by window."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from textwrap import wrap
from typing import NamedTuple

from kview.derive.view import Floats, View
from kview.derive.windows import WINDOWS_S, Window, series, whole_until_s, window_of
from kview.language import glyphs, words
from kview.model.aggregates import Key, Kind, Rollups, SparkState, Sum
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.plot import Frame, framed, nice_top
from kview.tui.spark import covered_until_s
from kview.tui.text import EMPTY, Line, Role, Span, cut, joined, justified, line, pad


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
LABEL_CELLS, WINDOW_CELLS = 14, 8
LONG_RATE = 99_999.5
"""From this value on, a rate is shown with a prefix instead of its last digits."""
TABLE_CELLS = LABEL_CELLS + len(WINDOWS_S) * WINDOW_CELLS


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
    "partitions silent or offline",
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
    """Return title, problems, plots and figures, as far as they fit into `size` (cells, rows)."""
    cells, rows = size
    head = _head(label, stretch, cells)
    rollups, at_ms = view.aggregates.rollups, view.snapshot.observation.ended_ms
    if rollups.from_ms == UNKNOWN or whole_until_s(rollups, at_ms) * 1000 <= rollups.from_ms:
        return [head, *(line(Span(f" {text}", Role.DIM)) for text in wrap(_why_empty(view), cells - 2))]
    covered_s = covered_until_s(view, options)
    end_s = at_ms // 1000 if covered_s is None else covered_s
    lines = [head, _problems(window_of(rollups, [key], end_s, stretch.length_s), key, cells)]
    plots = (OUT,) if key.kind is Kind.GROUP else PLOTS
    room = rows - len(lines)
    figures = _figures(rollups, key, end_s, (cells, room - LEAST_PLOT))
    until = "now" if view.moment.live else words.clock(end_s * 1000, zone, tenths=False)
    drawn = _grid(rollups, key, plots, end_s, stretch, (cells, room - len(figures)), braille, until)
    return [*lines, *drawn, *figures]


def _why_empty(view: View) -> str:
    """Return the reason why there is nothing to draw."""
    if view.aggregates.rollups.from_ms != UNKNOWN:
        return "Spark's figures start after this moment."
    if view.aggregates.status.state is SparkState.OFF:
        return "Plots, windows and percentiles come from Spark, and Spark is off."
    return "Plots start when Spark has added up its first whole seconds."


def _head(label: str, stretch: Stretch, cells: int) -> Line:
    """Return the title, and which stretch of time is shown."""
    choices: Line = line(Span("last ", Role.DIM))
    for choice in STRETCHES:
        chosen = choice is stretch
        choices += (
            Span(f"[{choice.label}]" if chosen else f" {choice.label} ", Role.TEXT if chosen else Role.DIM),
        )
    return justified(line(" ", Span(label, Role.BRIGHT)), (*choices, Span(" w ", Role.KEY)), cells)


def _problems(found: Window, key: Key, cells: int) -> Line:
    """Return the line of problems in the time shown, which is there even without problems."""
    risks = [
        (int(found.offline_ms[0]) / 1000, "offline", Role.RISK),
        (int(found.silent_ms[0]) / 1000, "silent", Role.RISK),
        (int(found.under_min_isr_ms[0]) / 1000, "under min ISR", Role.WARN),
        (int(found.under_replicated_ms[0]) / 1000, "under-replicated", Role.WARN),
    ]
    counts = [
        (int(found.truncated[0]), "truncated"),
        (int(found.records_in_gap[0]), "in over gaps"),
        (int(found.rewound[0]), "rewound"),
        (int(found.records_out_gap[0]), "out over gaps"),
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
        calm = "nothing rewound" if key.kind is Kind.GROUP else "no partition problems"
        parts = [line(Span(f"{glyphs.OK} ", Role.GOOD), Span(calm, Role.DIM))]
    return line(" ", *joined(parts, Span(f" {glyphs.DOT} ", Role.DIM), cells - 1))


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
        title += (Span("" if any(value > 0 for value in values) else " none", Role.DIM),)
        values = [value if value > 0 else math.nan for value in values]
    return [cut(title, cells), *framed(values, cells, height - 1, braille, frame)]


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


def _figures(rollups: Rollups, key: Key, end_s: int, size: tuple[int, int]) -> list[Line]:
    """Return rates and their distribution by window.

    They are in two columns if there is room, otherwise as many as fit in one column.
    """
    windows = [window_of(rollups, [key], end_s, length_s) for length_s in WINDOWS_S]
    figures = list(_figure_lines(windows, key))
    cells, rows = size
    # If a window is only partly known, its column's title is the length of the known part.
    lengths = [
        f"{found.covered_s} s"
        if found.covered_s < length_s
        else words.duration(length_s * 1000, tenths=False)
        for found, length_s in zip(windows, WINDOWS_S, strict=True)
    ]
    head = _table_line("RECORDS /s", lengths, Role.HEAD, Role.DIM)
    if cells < 2 * TABLE_CELLS or len(figures) < 4:
        kept = sorted(sorted(figures)[: max(0, rows - 1)], key=figures.index)
        return [pad(made, cells) for made in (head, *(figure.line for figure in kept))][:rows]
    half = -(-len(figures) // 2)
    lefts, rights = [[head, *(figure.line for figure in side)] for side in (figures[:half], figures[half:])]
    wide = cells // 2
    return [(*pad(left, wide), *right) for left, right in zip(lefts, rights, strict=True)][:rows]


class Figure(NamedTuple):
    """A line of figures. If there is no room for all lines, those of the highest rank are left out."""

    rank: int
    line: Line


def _figure_lines(windows: Sequence[Window], key: Key) -> Iterator[Figure]:
    """Yield the ten lines of the cluster, a topic, a rack or a broker, or the two lines of a group."""

    def of(rank: int, label: str, read: Callable[[Window], str]) -> Figure:
        return Figure(rank, _table_line(label, [read(found) for found in windows]))

    out = of(1, "out", lambda found: _rate(float(found.out_rate[0])))
    if key.kind is Kind.GROUP:
        yield from (out, Figure(2, _hottest(windows[-1])))
        return
    yield of(0, "in", lambda found: _rate(float(found.in_rate[0])))
    yield out
    yield of(9, "replicated", lambda found: _rate(float(found.replicated_rate[0])))
    yield of(3, "across racks", lambda found: _rate(float(found.cross_rack_rate[0])))
    yield of(2, "bytes in ≈", lambda found: _bytes(float(found.bytes_rate[0])))
    yield of(4, "in, p50", lambda found: _rate(float(found.in_p50[0])))
    yield of(8, "in, p95", lambda found: _rate(float(found.in_p95[0])))
    yield of(5, "in, p99", lambda found: _rate(float(found.in_p99[0])))
    yield of(6, "hottest ÷ mean", lambda found: _ratio(float(found.skew[0])))
    yield Figure(7, _hottest(windows[-1]))


def _hottest(found: Window) -> Line:
    """Return the line of the partition that was the hottest in the longest window."""
    hottest = found.hottest[0]
    name = f"{hottest[0]}-{hottest[1]}" if hottest else words.NONE
    room = TABLE_CELLS - LABEL_CELLS
    return line(Span(f" {'hottest':<{LABEL_CELLS - 1}}", Role.DIM), *pad(line(name), room, right=True))


def _table_line(label: str, values: Sequence[str], role: Role = Role.DIM, of: Role = Role.TEXT) -> Line:
    head = f" {label:<{LABEL_CELLS - 1}}"
    first = LABEL_CELLS + WINDOW_CELLS - len(head)  # A long label takes cells from a short figure.
    cells = (f"{value:>{WINDOW_CELLS if place else first}}" for place, value in enumerate(values))
    return line(Span(head, role), *(Span(cell, of) for cell in cells))


def _rate(per_second: float) -> str:
    """Return a rate in at most seven cells."""
    if per_second == UNKNOWN:
        return words.NONE
    return words.si(per_second) if per_second >= LONG_RATE else words.rate(per_second)


def _ratio(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else words.NONE


def _bytes(rate: float) -> str:
    return words.size(round(rate)) if math.isfinite(rate) else words.NONE
