"""The right side of the throughput screen: problems in the time shown, plots, and figures by window."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from textwrap import wrap

import numpy as np

from kview.derive.view import View
from kview.derive.windows import Window, series, series_of, whole_until_s, window_of
from kview.language import glyphs, words
from kview.language.curves import sparkline
from kview.model.aggregates import Key, Rollups, SparkState
from kview.model.sums import Kind, Sum
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.plot import LEAST_PLOT, Frame, Plot, Trace, grid, marks_between
from kview.tui.rows import direct
from kview.tui.rows.throughput_windows import figure_lines
from kview.tui.spark import covered_until_s
from kview.tui.text import (
    EDGE_CELLS,
    EMPTY,
    Line,
    Role,
    Span,
    Title,
    joined,
    line,
    line_width,
    width,
)

LENGTHS_S = (30, 60, 120, 300, 600, 1200, 3600)
"""The lengths that a time axis can have, so that it rarely changes while figures accumulate."""
MOST_STEPS = 60
"""The most values of a plot, if steps are not shorter than a second."""

_FIRST, _SECOND = Span("", series=0), Span("", series=1)
_THIRD, _FOURTH = Span("", series=2), Span("", series=3)

BYTES_CELLS = 12


@dataclass(frozen=True, slots=True)
class Stretch:
    """How much time plots show."""

    label: str
    length_s: int


STRETCHES = (Stretch("1 m", 60), Stretch("5 m", 300), Stretch("1 h", 3600))
USUAL = 1
"""The index of the stretch that is shown first."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where plots are drawn: how large that is (cells, rows), and how times look there."""

    size: tuple[int, int]
    zone: tzinfo | None
    """The time zone of what clocks show."""


def detail_lines(
    view: View,
    options: Options,
    key: Key,
    label: str,
    stretch: Stretch,
    canvas: Canvas,
    with_figures: bool = True,
) -> tuple[Title, list[Line]]:
    """Return a title, problems, plots and, if `with_figures`, figures, as far as they fit.

    All of them end where Spark's figures end, which they say if that is not now.
    """
    cells, rows = canvas.size
    rollups, at_ms = view.aggregates.rollups, view.snapshot.observation.ended_ms
    end_s = whole_until_s(rollups, at_ms)
    if rollups.from_ms == UNKNOWN or end_s * 1000 <= rollups.from_ms:
        return _without_spark(view, options, key, label, canvas)
    clock = words.clock(end_s * 1000, canvas.zone, tenths=False)
    is_current = covered_until_s(view, options) is not None
    known_s = _known_s(rollups, end_s)
    so_far = ""
    if known_s < stretch.length_s:
        so_far = f"{words.duration(known_s * 1000, tenths=False)} so far"
    head = _head(label, stretch, "last" if is_current else f"up to {clock}", so_far, cells)
    found = window_of(rollups, [key], end_s, stretch.length_s)
    lines = [_problems(found, key, stretch, clock, cells)]
    room = rows - len(lines)
    figures = figure_lines(rollups, key, end_s, (cells, room - LEAST_PLOT)) if with_figures else []
    until = "now" if view.moment.live and is_current else clock
    made = _plots(view, key, end_s, _fitting_length(stretch.length_s, known_s), until)
    return head, [*lines, *grid(made, (cells, room - len(figures))), *figures]


def figures_alone(view: View, key: Key, size: tuple[int, int]) -> list[Line]:
    """Return the figures by window alone, as far as they fit into `size` (cells, rows).

    Empty if there are no figures from Spark.
    """
    rollups = view.aggregates.rollups
    end_s = whole_until_s(rollups, view.snapshot.observation.ended_ms)
    if rollups.from_ms == UNKNOWN or end_s * 1000 <= rollups.from_ms:
        return []
    return figure_lines(rollups, key, end_s, size)


def _known_s(rollups: Rollups, end_s: int) -> int:
    """Return the number of seconds from the beginning of the roll-ups to `end_s`."""
    return end_s - -(-rollups.from_ms // 1000)


def _without_spark(
    view: View,
    options: Options,
    key: Key,
    label: str,
    canvas: Canvas,
) -> tuple[Title, list[Line]]:
    """Return why there are no figures from Spark, and the plots that do not need them."""
    cells, rows = canvas.size
    title = line(Span(label, Role.BRIGHT))
    why = [line(Span(f" {text}", Role.DIM)) for text in wrap(_why_empty(view, options), max(1, cells - 2))]
    until = "now"
    if not view.moment.live:
        until = words.clock(view.snapshot.observation.ended_ms, canvas.zone, tenths=False)
    made = _direct_plots(view, key, until)
    lines = why
    if made:
        lines += [line(Span(" Direct rates of the last minute:", Role.DIM)), EMPTY]
        lines += grid(made, (cells, rows - len(lines)))
    return Title(title), lines[:rows]


def _why_empty(view: View, options: Options) -> str:
    """Return the reason why there is nothing to draw."""
    if view.aggregates.rollups.from_ms != UNKNOWN:
        return "Spark's figures start after this moment."
    match view.aggregates.status.state:
        case SparkState.OFF:
            return "Plots, windows and percentiles come from Spark, and Spark is off."
        case SparkState.STARTING:
            return "No Spark figures yet: the job is starting, which usually takes less than a minute."
        case SparkState.FAILED:
            return f"No Spark figures: the job has failed. {options.keys.name('spark')} restarts it."
        case _:
            return "No Spark figures yet: the job has not added up a whole second."


def _head(label: str, stretch: Stretch, which: str, so_far: str, cells: int) -> Title:
    """Return the title, and which stretch of time is shown.

    `which` stands before its length, and how much of it there is so far, as far as they fit.
    """
    title, choices = line(Span(label, Role.BRIGHT)), EMPTY
    for choice in STRETCHES:
        chosen = choice is stretch
        choices += (
            Span(f"[{choice.label}]" if chosen else f" {choice.label} ", Role.TEXT if chosen else Role.DIM),
        )
    keys: Line = (*choices, Span(" w", Role.KEY))
    said = line(Span(f"{which} {stretch.label}{', ' if so_far else ''}{so_far}  ", Role.DIM))
    short = line(Span(f"{so_far}  ", Role.DIM)) if so_far else EMPTY
    room = cells - line_width(title) - EDGE_CELLS
    rights: tuple[Line, ...] = ((*said, *keys), (*short, *keys))
    return Title(title, next((right for right in rights if line_width(right) <= room), keys))


def _problems(found: Window, key: Key, stretch: Stretch, clock: str, cells: int) -> Line:
    """Return the line of problems in the time shown, which is there even without problems.

    That there are none is said only of the seconds that have figures, which end at `clock`.
    """
    risks = [
        (int(found.offline_ms[0]), "without a leader", Role.RISK),
        (int(found.silent_ms[0]), "leader silent", Role.RISK),
        (int(found.under_min_isr_ms[0]), "under min ISR", Role.WARN),
        (int(found.under_replicated_ms[0]), "under-replicated", Role.WARN),
    ]
    counts = [
        (int(found.truncated[0]), "truncated"),
        (int(found.records_in_gap[0]), "written while not observed"),
        (int(found.rewound[0]), "rewound"),
        (int(found.records_out_gap[0]), "read while not observed"),
    ]
    parts: list[Line] = [
        line(Span(f"{words.duration(ms)} {what}", role)) for ms, what, role in risks if ms > 0
    ]
    if parts:
        sign = Role.RISK if any(ms > 0 for ms, _, role in risks if role is Role.RISK) else Role.WARN
        mark = glyphs.DEAD if sign is Role.RISK else glyphs.OUT_OF_SYNC
        parts[0] = (Span(f"{mark} ", sign), *parts[0])
    records = [line(Span(f"{count:,} {what}", Role.WARN)) for count, what in counts if count]
    if records:
        records[0] = (Span("records: ", Role.DIM), *records[0])
    parts += records
    if not parts:
        parts = [_no_problems(found.covered_s, key, stretch, clock, cells - len(" ● "))]
    between = Span(f" {glyphs.DOT} ", Role.DIM)
    said = joined(parts, between, cells - 1)
    if any(ms > 0 for ms, _, _ in risks) and not records:
        together = joined([*parts[:-1], (*parts[-1], _TOGETHER)], between, cells - 1)
        said = together if _TOGETHER in together else said
    return line(" ", *said)


_TOGETHER = Span(" (all partitions together)", Role.DIM)


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


# -- plots


def _fitting_length(length_s: int, known_s: int) -> int:
    """Return how many seconds a plot shows: `length_s`, or less if fewer seconds are known."""
    return next((each for each in LENGTHS_S if known_s <= each <= length_s), length_s)


def _plots(view: View, key: Key, end_s: int, length_s: int, until: str) -> list[Plot]:
    """Return the plots of a key from the roll-ups, over the `length_s` seconds before `end_s`."""
    rollups = view.aggregates.rollups
    step_s = next(step for step in (1, 2, 5, 10, 20, 60) if length_s // step <= MOST_STEPS)
    marks = marks_between(view.moment.marks, (end_s - length_s) * 1000, end_s * 1000)
    frame = Frame(words.duration(length_s * 1000, tenths=False), until, marks=marks)

    def values(column: Sum, unit: float = 1.0) -> list[float]:
        per_step: list[float] = (series(rollups, key, column, end_s, length_s, step_s) / unit).tolist()
        return per_step

    if key.kind is Kind.GROUP:
        read = Trace("read", values(Sum.RECORDS_OUT), _SECOND)
        written = _written(view, rollups, key.name, end_s, length_s, step_s)
        traces = (Trace("written", written, _FIRST), read) if written else (read,)
        return [Plot("records /s", traces, frame), *_lag_plots(view, key, until)]
    came_in = Trace("in", values(Sum.RECORDS_IN), _FIRST)
    plots = [
        Plot(
            "records /s",
            (came_in, Trace("out", values(Sum.RECORDS_OUT), _SECOND)),
            frame,
            note=_bytes(values(Sum.CENTIBYTES_IN, 100)),
        ),
        Plot(
            "replicated /s",
            (
                Trace("all", values(Sum.REPLICATED), _THIRD),
                Trace("cross-rack", values(Sum.CROSS_RACK), _FOURTH),
            ),
            frame,
            as_band=True,
        ),
    ]
    unavailable = [
        silent + offline
        for silent, offline in zip(values(Sum.SILENT_MS, 1000), values(Sum.OFFLINE_MS, 1000), strict=True)
    ]
    if any(value > 0 for value in unavailable):
        shown = [value if value > 0 else math.nan for value in unavailable]
        plots.append(
            Plot("partitions without a live leader", (Trace("", shown, Span("", Role.RISK)),), frame)
        )
    return plots


def _bytes(values: Sequence[float]) -> Line:
    """Return the bytes in per second with their course, nothing if they are not known."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return EMPTY
    said = f"{glyphs.ABOUT} {words.size(round(known[-1]))}/s in "
    return line(Span(said, Role.DIM), Span(f"{sparkline(values, BYTES_CELLS)} ", Role.DIM))


def _direct_plots(view: View, key: Key, until: str) -> list[Plot]:
    """Return the plots that need no roll-ups: the last minute from the rates between observations."""
    if key.kind is Kind.GROUP:
        return _lag_plots(view, key, until)
    values = direct.records_in(view, key)
    if not any(math.isfinite(value) for value in values):
        return []
    return [Plot("records in /s", (Trace("", values, _FIRST),), _last_minute(view, until))]


def _lag_plots(view: View, key: Key, until: str) -> list[Plot]:
    """Return the plot of a group's lag, nothing if no lag is known."""
    values = direct.lag(view, key.name)
    if not any(math.isfinite(value) for value in values):
        return []
    return [Plot("lag, last minute", (Trace("", values, _FOURTH),), _last_minute(view, until))]


def _last_minute(view: View, until: str) -> Frame:
    return Frame("1 m", until, marks=direct.marks(view))


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
