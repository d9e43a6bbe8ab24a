"""The plots of a topic or a group over minutes and hours, as the recording has them."""

import math
from collections.abc import Sequence
from datetime import tzinfo
from typing import NamedTuple

import numpy as np

from kview.derive.view import View
from kview.language import words
from kview.model.aggregates import Key
from kview.model.history import Course
from kview.model.sums import Kind
from kview.model.units import UNKNOWN
from kview.tui.plot import AXIS_CELLS, Frame, Plot, Trace, grid, marks_between
from kview.tui.rows import direct
from kview.tui.text import EDGE_CELLS, EMPTY, Line, Role, Span, Title, line, line_width, middle

LEAST_NAME = 8
"""So much of the name stays in the title."""

CURRENT_MS = 15_000
"""A live plot that ends so long ago at most ends now: it is read every few seconds."""

_IN, _OUT, _LAG, _BEHIND = (Span("", series=number) for number in (0, 1, 3, 2))

_UNITS_S = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))


class Reach(NamedTuple):
    """How far back plots go."""

    label: str
    span_ms: int
    """UNKNOWN for all of the recording."""


REACHES = (
    Reach("1 m", 60_000),
    Reach("10 m", 600_000),
    Reach("1 h", 3_600_000),
    Reach("6 h", 21_600_000),
    Reach("all", UNKNOWN),
)
USUAL = 1


def offered(recorded_ms: int) -> list[Reach]:
    """Return how far back plots can go if so much is recorded."""
    return [reach for reach in REACHES if reach.span_ms < recorded_ms or reach.span_ms == UNKNOWN]


class Shown(NamedTuple):
    """What to draw of a view: a topic, or a group if `topic` is ''."""

    view: View
    topic: str
    groups: tuple[str, ...]
    """The group, or those that read the topic."""
    course: Course | None
    """None if nothing has been read yet."""
    reach: Reach
    offered: Sequence[Reach]
    key: str
    """The name of the key that changes the reach."""
    zone: tzinfo | None
    has_failed: bool = False
    """Whether the recording could not be read."""

    @property
    def is_unrecorded(self) -> bool:
        """Whether it is known that nothing is recorded."""
        return self.course is not None and self.course.since_ms == UNKNOWN


def over_time(shown: Shown, cells: int, rows: int) -> tuple[Title, list[Line]]:
    """Return a title with how far back the plots go, and as many plots as fit into `rows`."""
    course = shown.course
    if shown.is_unrecorded:
        plots, note = _unrecorded(shown), "no recording: only the last minute"
    elif course is None:
        why = "the recording could not be read" if shown.has_failed else "reading the recording"
        plots, note = [_plot("", [], _LAG, Frame("", "", why=why))], ""
    else:
        plots, note = _plots(shown, course, cells), _since(course, shown)
    return _title(shown, note, cells), grid(plots, (cells, rows))


def _title(shown: Shown, note: str, cells: int) -> Title:
    choices: Line = EMPTY
    for reach in () if shown.is_unrecorded else shown.offered:
        label, is_chosen = reach.label, reach is shown.reach
        length_ms = 0 if shown.course is None else shown.course.until_ms - shown.course.since_ms
        if is_chosen and reach.span_ms == UNKNOWN and length_ms > 0:
            label += f" {words.duration(length_ms, tenths=False)}"
        choices += (Span(f"[{label}]" if is_chosen else f" {label} ", Role.TEXT if is_chosen else Role.DIM),)
    keys: Line = (*choices, Span(f" {shown.key}", Role.KEY)) if choices else EMPTY
    called = "" if shown.topic else "LAG of "
    name = shown.topic or shown.groups[0]
    said: Line = (Span(f"{note}  ", Role.DIM), *keys) if note else keys
    least = len(called) + min(len(name), LEAST_NAME)
    right = next((each for each in (said, keys) if line_width(each) + least + EDGE_CELLS <= cells), keys[-1:])
    room = max(LEAST_NAME, cells - len(called) - line_width(right) - EDGE_CELLS)
    head = line(Span(called or "OVER TIME ", Role.HEAD), Span(middle(name, room), Role.DIM))
    return Title(head if called or line_width(head) <= room else head[1:], right)


def _since(course: Course, shown: Shown) -> str:
    """Return since when something is recorded, if the plots go back so far."""
    if shown.reach.span_ms != UNKNOWN:
        return ""
    if course.since_ms < course.from_ms - course.step_ms:
        return f"the last {words.duration(course.until_ms - course.from_ms, tenths=False)}"
    return f"recorded since {_time(course.since_ms, course, shown)}"


def _time(at_ms: int, course: Course, shown: Shown) -> str:
    clock = words.clock(at_ms, shown.zone, tenths=False)
    day = words.day(at_ms, shown.zone)
    return clock if day == words.day(course.until_ms, shown.zone) else f"{day} {clock}"


def _plots(shown: Shown, course: Course, cells: int) -> list[Plot]:
    view = shown.view
    length_ms = course.until_ms - course.from_ms
    shown_ms = view.snapshot.observation.ended_ms
    is_now = view.moment.live and shown_ms - course.until_ms <= CURRENT_MS
    frame = Frame(
        words.duration(length_ms, tenths=False),
        "now" if is_now else words.clock(min(course.until_ms, shown_ms), shown.zone, tenths=False),
        marks=marks_between(view.moment.marks, course.from_ms, course.until_ms),
        why="not known",
    )
    column_ms = max(course.step_ms, length_ms // max(1, cells - 1 - AXIS_CELLS))
    # A cell shows the worst of several seconds, which is worth a word where it makes a difference.
    most = f"  highest of each {words.duration(column_ms, tenths=False)}" if column_ms >= 2_000 else ""
    plots = []
    if shown.topic:
        traces = (Trace("in", course.records_in, _IN), Trace("out", course.records_out, _OUT))
        plots.append(Plot("records /s", traces, frame, note=line(Span(most, Role.DIM))))
    if shown.groups:
        peak = ""
        if course.peak is not None:
            lag = words.at_least(words.count(course.peak.lag), course.peak.is_bound).strip()
            of = f" {course.peak.group}" if shown.topic and len(shown.groups) > 1 else ""
            peak = f"highest {lag}{of} at {_time(course.peak.at_ms, course, shown)} "
        whose = "lag of " + (shown.groups[0] if len(shown.groups) == 1 else "the worst group")
        whose += ", all topics" if _reads_others(shown) else ""
        called = whose if shown.topic else f"records{most}"
        plots.append(_plot(called, course.lag, _LAG, frame, peak))
        plots.append(_behind(course, frame))
    return plots


def _reads_others(shown: Shown) -> bool:
    """Return whether a group of a topic reads others, too: its lag is that of all of them."""
    offsets = shown.view.snapshot.offsets
    others = offsets.group[(offsets.topic != shown.topic) & (offsets.committed != UNKNOWN)]
    return not set(shown.groups).isdisjoint(others.tolist())


def _behind(course: Course, frame: Frame) -> Plot:
    """Return the plot of the lag in time, in the unit that gives short figures."""
    known = [value for value in course.behind_s if math.isfinite(value)]
    longest = max(known, default=0.0)
    unit_s, unit = next((each for each in _UNITS_S if longest >= 2 * each[0]), _UNITS_S[-1])
    title = f"behind, {'≥ ' if course.behind_is_bound else ''}{unit}"
    return _plot(title, (np.array(course.behind_s) / unit_s).tolist(), _BEHIND, frame)


def _unrecorded(shown: Shown) -> list[Plot]:
    """Return the plot of the last minute, which needs no recording."""
    view = shown.view
    until = "now"
    if not view.moment.live:
        until = words.clock(view.snapshot.observation.ended_ms, shown.zone, tenths=False)
    frame = Frame("1 m", until, marks=direct.marks(view), why="figures need 2 observations")
    if shown.topic:
        return [_plot("records in /s", direct.records_in(view, Key(Kind.TOPIC, shown.topic)), _IN, frame)]
    return [_plot("records", direct.lag(view, shown.groups[0]), _LAG, frame)]


def _plot(title: str, values: Sequence[float], paint: Span, frame: Frame, note: str = "") -> Plot:
    return Plot(title, (Trace("", values, paint),), frame, note=line(Span(note, Role.DIM)) if note else EMPTY)
