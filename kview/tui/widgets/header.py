"""The first line of every screen: which cluster is shown, what flows through it, and how fresh that is."""

import math
from collections.abc import Hashable, Sequence
from datetime import tzinfo
from enum import Enum, auto

from msgspec import Struct

from kview.derive.brokers.silence import answering, late, none_answer_since
from kview.derive.view import View
from kview.language import glyphs, nouns, words
from kview.model.findings import FindingKind
from kview.model.notices import Notice
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.tui.app_of import app_of
from kview.tui.text import Line, Role, Span, cut, joined, justified, line, line_width
from kview.tui.widgets.drawn import Lines

FRESH_INTERVALS = 2
"""A view older than this many intervals is not fresh: an observation is missing."""

LATE_INTERVALS = 3
"""A view older than this many intervals is late."""

NAME_CELLS = 24
"""The number of cells reserved for the name of the cluster next to the moment shown."""

SECONDS_BELOW_MS = 600_000
"""If a recording is shorter than this, its beginning and end are shown with seconds."""


class Fact(Enum):
    """What the header says of a cluster, the least important first. That is left out first."""

    REQUESTS = auto()
    EPOCH = auto()
    CONTROLLER = auto()
    OUT = auto()
    IN = auto()


LEAST_NAME_CELLS = 12
"""If there is less room for the name of the cluster, the facts give way instead."""

BETWEEN = "   "

TURNS = 0.2
"""Input that differs from its median of the last minute by this part is said to fall or to rise."""

MIN_FRESH_MS = 2_000
"""A view younger than this is fresh, because an observation may take a second."""

MIN_LATE_MS = 3_000
"""A view younger than this is never late, because a single slow answer does not matter."""


class SourceInfo(Struct, frozen=True):
    """What kview watches.

    `label` is `simulated`, the profile, the first bootstrap server or the recording. `interval_ms` is the
    time between two observations. `production` says that the cluster is in production, and `colour`
    (`#rrggbb`) is that of its name, '' for the theme's.
    """

    label: str
    interval_ms: int = 1_000
    production: bool = False
    colour: str = ""

    @property
    def fresh_ms(self) -> int:
        """The age up to which a view is fresh."""
        return max(MIN_FRESH_MS, FRESH_INTERVALS * self.interval_ms)

    @property
    def late_ms(self) -> int:
        """The age from which a figure or a view is late."""
        return max(MIN_LATE_MS, LATE_INTERVALS * self.interval_ms)


class Member(Struct, frozen=True):
    """A cluster of the fleet as it is now. `began_ms` (epoch ms) is when kview began to observe it."""

    source: SourceInfo
    began_ms: int
    view: View | None = None
    notice: Notice | None = None
    """Why there is no view, or none that is newer."""
    opened: frozenset[Hashable] = frozenset()
    """The keys of the incidents that somebody has opened."""

    @property
    def name(self) -> str:
        return self.source.label

    def is_late(self, now_ms: int) -> bool:
        """Return whether its figures are older than they should be."""
        if self.view is None:
            return False
        return now_ms - self.view.snapshot.observation.ended_ms > self.source.late_ms


def header_line(
    view: View | None,
    source: SourceInfo,
    replay: bool,
    started_ms: int,
    now_ms: int,
    zone: tzinfo | None,
    cells: int,
) -> Line:
    """Return which cluster is shown, its traffic, and how many brokers answer, or which moment is shown.

    A narrow line leaves out the least important facts.
    """
    name = line(
        Span(" kview ", Role.BRIGHT), Span(f"{glyphs.MARK} ", Role.DIM), Span(source.label, Role.CLUSTER)
    )
    if source.production:
        name = line(Span(" PRODUCTION ", Role.MOMENT), *name[1:])
    if view is None:
        what = "reading" if replay else "waiting"
        waiting = line(Span(f"{what} {words.duration(now_ms - started_ms)} ", Role.DIM))
        return justified(cut(name, cells), waiting, cells)
    if view.moment.live:
        right = badge(view, source, now_ms)
    else:
        right = (Span(f" {shown_moment(view, replay, now_ms, zone, cells - NAME_CELLS)} ", Role.MOMENT),)
    return justified(_fitting(view, name, cells - line_width(right) - 2), right, cells)


def badge(view: View, source: SourceInfo, now_ms: int, is_short: bool = False) -> Line:
    """Return the badge: every broker answers, some do, nobody does, or the view is late.

    It is green only if the view is fresh. A short one says only the number of brokers, or the age.
    """
    fresh_ms, late_ms = source.fresh_ms, source.late_ms
    answers = answering(view)
    age_ms = now_ms - view.snapshot.observation.ended_ms
    if age_ms > late_ms or not (answers.answer or late(view.snapshot.brokers).any()):
        text = "no answer yet"
        if answers.last_ms != UNKNOWN:
            what = "answer" if not answers.answer else "new figures"
            age = words.duration(now_ms - answers.last_ms, tenths=False)
            text = age if is_short else f"no {what} for {age}"
        return line(Span(f"{glyphs.DEAD} {text} ", Role.RISK))
    verb = "" if is_short else "answers " if answers.answer == 1 else "answer "
    how_many = f"{answers.answer:,} of {answers.all:,} {verb}"
    if answers.answer < answers.all:
        return line(Span(f"{glyphs.UP} {how_many}", Role.WARN))
    if age_ms > fresh_ms:
        return line(Span(f"{glyphs.UP} updated {words.duration(age_ms, tenths=False)} ago ", Role.WARN))
    return line(Span(f"{glyphs.OK} ", Role.GOOD), Span(how_many, Role.DIM))


def shown_moment(view: View, replay: bool, wall_ms: int, zone: tzinfo | None, cells: int) -> str:
    """Return `❚❚ 14:02:07 · 3 m 20 s ago`, or, in a replay, `► ×4 14:02:07 of 13:30–14:31`. While another
    moment is being read, that is `reading 14:02:06 …`.

    If that does not fit into `cells`, only the first part is returned. The day is included if it differs from
    that of `wall_ms`.
    """
    moment, shown_ms = view.moment, view.snapshot.observation.ended_ms
    is_reading = moment.reading_ms != UNKNOWN
    if is_reading:
        shown_ms = moment.reading_ms
    sign = glyphs.PLAYING if moment.playing else glyphs.PAUSED
    speed = f" ×{moment.speed}" if moment.playing or moment.speed != 1 else ""
    day = words.day(shown_ms, zone)
    date = "" if day == words.day(wall_ms, zone) else f"{day} "
    clock = words.clock(shown_ms, zone, tenths=False)
    if is_reading:
        return f"reading {date}{clock} {glyphs.ELLIPSIS}"
    first = f"{sign}{speed} {date}{clock}"
    if replay:
        rest = _range(view, zone)
    else:
        rest = f" {glyphs.DOT} {words.duration(wall_ms - shown_ms, tenths=False)} ago"
    return first + rest if len(first) + len(rest) <= cells else first


def _range(view: View, zone: tzinfo | None) -> str:
    """Return when the recording begins and ends."""
    shown_ms, first_ms, last_ms = (
        view.snapshot.observation.ended_ms,
        view.moment.first_ms,
        view.moment.last_ms,
    )
    if UNKNOWN in (first_ms, last_ms):
        return ""
    days = [f"{words.day(ms, zone)} " for ms in (first_ms, last_ms)]
    if days[0] == days[1] == f"{words.day(shown_ms, zone)} ":
        days = ["", ""]
    cut = None if last_ms - first_ms < SECONDS_BELOW_MS else -len(":00")
    ends = [words.clock(ms, zone, tenths=False)[:cut] for ms in (first_ms, last_ms)]
    return f" of {days[0]}{ends[0]}–{days[1]}{ends[1]}"


def _fitting(view: View, name: Line, cells: int) -> Line:
    """Return the name and as many facts as fit, the most important ones. The name is cut at last."""
    facts = _facts(view)
    for least in Fact:
        kept = [text for fact, text in facts.items() if fact.value >= least.value and text]
        room = cells - sum(map(line_width, kept)) - len(BETWEEN) * len(kept)
        if line_width(name) <= room or (least is Fact.IN and room >= LEAST_NAME_CELLS):
            return joined([cut(name, room), *kept], Span(BETWEEN), cells)
        if least is Fact.EPOCH:
            facts[Fact.CONTROLLER] = _controller(view, False)
    return cut(name, cells)


def _facts(view: View) -> dict[Fact, Line]:
    """Return what can be said of the cluster, in order, with the controller's epoch."""
    flow = view.throughput
    return {
        Fact.IN: (*rate("in", flow.total_in, flow.in_is_bound), *_turn(flow.in_series)),
        Fact.OUT: rate("out", flow.total_out, flow.out_is_bound),
        Fact.CONTROLLER: _controller(view, True),
        Fact.REQUESTS: _requests(view.headline.requests_per_second),
    }


def rate(name: str, per_second: float, is_bound: bool) -> Line:
    """Return a rate in two or three figures: `in 5.4 k/s`, `in –`."""
    text = f"{words.si(per_second)}/s" if math.isfinite(per_second) else words.NONE
    return line(Span(f"{name} ", Role.DIM), Span(words.at_least(text, is_bound), Role.HEAD))


def _turn(series: Sequence[float]) -> Line:
    """Return ↓ or ↑ if the last rate is well below or above the median of the last minute, in two cells."""
    known = sorted(value for value in series if math.isfinite(value))
    usual = known[len(known) // 2] if known and math.isfinite(series[-1]) else 0.0
    if not usual or abs(series[-1] - usual) <= TURNS * usual:
        return line("  ")
    return line(Span(f" {'↓' if series[-1] < usual else '↑'}", Role.HEAD))


def _requests(per_second: float) -> Line:
    """Return what observing costs, nothing if it costs no requests, as in a demo that is only calculated."""
    return () if per_second == 0 else line(Span(f"{words.rate(per_second)} req/s", Role.DIM))


def _controller(view: View, with_epoch: bool) -> Line:
    """Return which controller is active. If no broker answers, or no controller, nobody can tell."""
    seen = view.snapshot.observation
    is_quorum_silent = any(finding.kind is FindingKind.QUORUM_SILENT for finding in view.headline.findings)
    is_unknown = is_quorum_silent or none_answer_since(view.snapshot.brokers) != UNKNOWN
    id = UNKNOWN_ID if is_unknown else seen.controller_id
    epoch = seen.controller_epoch if with_epoch else UNKNOWN_ID
    role = Role.DIM if id == UNKNOWN_ID else Role.RISK if id == NO_BROKER else Role.HEAD
    return line(Span(nouns.active_controller(id, epoch), role))


class Header(Lines):
    """Line 1: which cluster is shown, how fresh the figures are, and what kview costs the cluster."""

    DEFAULT_CSS = "Header { height: 1; }"

    def __init__(self, source: SourceInfo, replay: bool, started_ms: int) -> None:
        super().__init__(id="header")
        self.source = source
        self.replay = replay
        self.started_ms = started_ms
        self.view: View | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        at = app_of(self)
        return [
            header_line(self.view, self.source, self.replay, self.started_ms, at.wall_ms(), at.zone, width)
        ]
