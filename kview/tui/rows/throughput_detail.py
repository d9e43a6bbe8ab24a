"""The right side of the throughput screen: problems in the time shown, plots, and figures by window."""

from dataclasses import dataclass
from datetime import tzinfo
from textwrap import wrap

from kview.derive.view import View
from kview.derive.windows import Window, whole_until_s, window_of
from kview.language import glyphs, words
from kview.model.aggregates import Key, Rollups, SparkState
from kview.model.sums import Kind
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.throughput_plots import LEAST_PLOT, direct_plots, fitting_length, grid, plots
from kview.tui.rows.throughput_windows import figure_lines
from kview.tui.spark import covered_until_s
from kview.tui.text import EMPTY, Line, Role, Span, joined, justified, line, line_width, width


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
    """Where plots are drawn: how large that is (cells, rows), and how curves and times look there."""

    size: tuple[int, int]
    braille: bool
    """Whether curves are of braille dots."""
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
) -> list[Line]:
    """Return title, problems, plots and, if `with_figures`, figures, as far as they fit.

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
    lines = [head, _problems(found, key, stretch, clock, cells)]
    room = rows - len(lines)
    figures = figure_lines(rollups, key, end_s, (cells, room - LEAST_PLOT)) if with_figures else []
    until = "now" if view.moment.live and is_current else clock
    made = plots(view, key, end_s, fitting_length(stretch.length_s, known_s))
    return [*lines, *grid(made, (cells, room - len(figures)), canvas.braille, until), *figures]


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
) -> list[Line]:
    """Return why there are no figures from Spark, and the plots that do not need them."""
    cells, rows = canvas.size
    title = line(" ", Span(label, Role.BRIGHT))
    why = [line(Span(f" {text}", Role.DIM)) for text in wrap(_why_empty(view, options), max(1, cells - 2))]
    made = direct_plots(view, key)
    until = "now"
    if not view.moment.live:
        until = words.clock(view.snapshot.observation.ended_ms, canvas.zone, tenths=False)
    lines = [title, *why]
    if made:
        lines += [line(Span(" Direct rates of the last minute:", Role.DIM)), EMPTY]
        lines += grid(made, (cells, rows - len(lines)), canvas.braille, until)
    return lines[:rows]


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


def _head(label: str, stretch: Stretch, which: str, so_far: str, cells: int) -> Line:
    """Return the title, and which stretch of time is shown.

    `which` stands before its length, and how much of it there is so far, as far as they fit.
    """
    title, choices = line(" ", Span(label, Role.BRIGHT)), EMPTY
    for choice in STRETCHES:
        chosen = choice is stretch
        choices += (
            Span(f"[{choice.label}]" if chosen else f" {choice.label} ", Role.TEXT if chosen else Role.DIM),
        )
    keys: Line = (*choices, Span(" w ", Role.KEY))
    said = line(Span(f"{which} {stretch.label}{', ' if so_far else ''}{so_far}  ", Role.DIM))
    short = line(Span(f"{so_far}  ", Role.DIM)) if so_far else EMPTY
    room = cells - line_width(title) - 1
    rights: tuple[Line, ...] = ((*said, *keys), (*short, *keys))
    return justified(title, next((right for right in rights if line_width(right) <= room), keys), cells)


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
