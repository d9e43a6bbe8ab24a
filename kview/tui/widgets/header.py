"""The two top lines: which cluster is shown, how fresh the figures are, and whether anything is wrong."""

from collections.abc import Sequence
from datetime import tzinfo
from enum import Enum, auto
from textwrap import wrap

from msgspec import Struct

from kview.derive.brokers.silence import answering, late, none_answer_since
from kview.derive.view import View
from kview.language import glyphs, notices, nouns, words
from kview.language.findings import sentences
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.notices import Notice
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.tui.app_of import app_of
from kview.tui.rows.common import ROLES, SIGNS
from kview.tui.text import Line, Role, Span, cut, joined, justified, line, line_width, width
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

    EPOCH = auto()
    RACKS = auto()
    TOPICS = auto()
    REQUESTS = auto()
    PARTITIONS = auto()
    CONTROLLER = auto()
    BROKERS = auto()


LEAST_NAME_CELLS = 12
"""If there is less room for the name of the cluster, the facts give way instead."""

BETWEEN = "  "

MIN_FRESH_MS = 2_000
"""A view younger than this is fresh, because an observation may take a second."""

MIN_LATE_MS = 3_000
"""A view younger than this is never late, because a single slow answer does not matter."""


class SourceInfo(Struct, frozen=True):
    """What kview watches.

    `label` is `simulated`, the bootstrap servers or the recording. `interval_ms` is the time between two
    observations.
    """

    label: str
    interval_ms: int = 1_000

    @property
    def fresh_ms(self) -> int:
        """The age up to which a view is fresh."""
        return max(MIN_FRESH_MS, FRESH_INTERVALS * self.interval_ms)

    @property
    def late_ms(self) -> int:
        """The age from which a figure or a view is late."""
        return max(MIN_LATE_MS, LATE_INTERVALS * self.interval_ms)


def header_line(
    view: View | None,
    source: SourceInfo,
    replay: bool,
    started_ms: int,
    now_ms: int,
    zone: tzinfo | None,
    cells: int,
) -> Line:
    """Return which cluster is shown, and how fresh the figures are, or which moment is shown.

    A narrow line leaves out the least important facts.
    """
    name = line(
        Span(" kview ", Role.BRIGHT), Span(f"{glyphs.MARK} ", Role.DIM), Span(source.label, Role.BRIGHT)
    )
    if view is None:
        what = "reading" if replay else "waiting"
        waiting = line(Span(f"{what} {words.duration(now_ms - started_ms)} ", Role.DIM))
        return justified(cut(name, cells), waiting, cells)
    has_badge = view.moment.live
    if has_badge:
        right = badge(view, source.fresh_ms, source.late_ms, now_ms)
    else:
        right = (Span(f" {shown_moment(view, replay, now_ms, zone, cells - NAME_CELLS)} ", Role.MOMENT),)
    room = cells - line_width(right) - 2
    return justified(_fitting(view, name, has_badge, room), right, cells)


def badge(view: View, fresh_ms: int, late_ms: int, now_ms: int) -> Line:
    """Return the badge: every broker answers, some do, nobody does, or the view is older than `late_ms`.

    It is green only if the view is at most `fresh_ms` old.
    """
    answers = answering(view)
    age_ms = now_ms - view.snapshot.observation.ended_ms
    if age_ms > late_ms or not (answers.answer or late(view.snapshot.brokers).any()):
        text = "no answer yet"
        if answers.last_ms != UNKNOWN:
            what = "answer" if not answers.answer else "new figures"
            text = f"no {what} for {words.duration(now_ms - answers.last_ms, tenths=False)}"
        return line(Span(f"{glyphs.DEAD} {text} ", Role.RISK))
    if answers.answer < answers.all:
        return line(Span(f"{glyphs.UP} {words.answering(answers.answer, answers.all)} ", Role.WARN))
    seen = f"updated {words.duration(age_ms)} ago "
    if age_ms > fresh_ms:
        return line(Span(f"{glyphs.UP} {seen}", Role.WARN))
    return line(Span(f"{glyphs.OK} ", Role.GOOD), Span(seen, Role.DIM))


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


def _fitting(view: View, name: Line, has_badge: bool, cells: int) -> Line:
    """Return the name and as many facts as fit, the most important ones. The name is cut at last."""
    facts = _facts(view, has_badge)
    for least in Fact:
        parts = [name, *(said for fact, said in facts.items() if fact.value >= least.value and said)]
        if sum(map(line_width, parts)) + len(BETWEEN) * (len(parts) - 1) <= cells:
            return joined(parts, Span(BETWEEN), cells)
        if least is Fact.EPOCH:
            facts[Fact.CONTROLLER] = _controller(view, False)
    brokers = facts[Fact.BROKERS]
    room = cells - line_width(brokers) - len(BETWEEN)
    return (*cut(name, room), Span(BETWEEN), *brokers) if room >= LEAST_NAME_CELLS else cut(name, cells)


def _facts(view: View, has_badge: bool) -> dict[Fact, Line]:
    """Return what can be said of the cluster, in order, with the controller's epoch.

    How many brokers answer is left to the badge, if there is one.
    """
    table, head = view.snapshot.brokers, view.headline
    answers = answering(view)
    up = int((table.state == BrokerState.UP).sum())
    all_of = max(up, answers.all)
    if has_badge and answers.answer == up:
        up = all_of
    racks = len({rack for rack in table.rack if rack})
    brokers = words.plural(up, "broker") if up == all_of else f"{up:,}/{all_of:,} brokers up"
    topics, partitions = words.plural(head.topics, "topic"), words.plural(head.partitions, "partition")
    return {
        Fact.BROKERS: line(Span(brokers, Role.HEAD if up == all_of else Role.WARN)),
        Fact.RACKS: line(Span(words.plural(racks, "rack"), Role.HEAD)) if racks else (),
        Fact.TOPICS: line(Span(words.at_least(topics, head.topics_are_bound), Role.HEAD)),
        Fact.PARTITIONS: line(Span(words.at_least(partitions, head.topics_are_bound), Role.HEAD)),
        Fact.CONTROLLER: _controller(view, True),
        Fact.REQUESTS: _requests(head.requests_per_second),
    }


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


def headline_lines(findings: Sequence[Finding], now_ms: int, cells: int, rows: int) -> list[Line]:
    """Return the findings as of `now_ms`. Their sentences fill up to `rows` lines.

    A sign stands where the severity changes. Findings that do not fit as a whole are counted at the end. Only
    a sentence that is alone too long for all lines is cut, after a word.
    """
    if not findings:
        return [line(" ")]
    shown, lines = _fitted(findings, sentences(findings, now_ms), cells, rows)
    if shown < len(findings):
        more, terse = _fitted(findings, sentences(findings, now_ms, terse=True), cells, rows)
        lines = terse if more > shown else lines
    return [cut(spans, cells) for spans in lines]


def _fitted(
    findings: Sequence[Finding], said: Sequence[str], cells: int, rows: int
) -> tuple[int, list[Line]]:
    """Return how many sentences fit, and the lines with these and the number of the others.

    A sentence that does not fit leaves its room to the ones after it.
    """
    chosen: list[int] = []
    lines: list[Line] = []
    for place in range(len(findings)):
        more = [*chosen, place]
        signed = _signed([findings[at] for at in more], [said[at] for at in more])
        flowed = _flowed([*signed, *_counted(len(findings) - len(more))], cells)
        if len(flowed) <= rows:
            chosen, lines = more, flowed
        elif not chosen:
            return 0, _cut_first(_signed(findings[:1], said[:1]), len(findings) - 1, cells, rows)
    return len(chosen), lines


def _cut_first(signed: Sequence[Line], others: int, cells: int, rows: int) -> list[Line]:
    """Return the first sentence, which is too long for all lines, and the number of the others."""
    left = _counted(others)
    end: Line = (Span(_BETWEEN, Role.DIM), *left[0]) if left else ()
    lines = _flowed(signed, cells)
    *whole, last = lines[:rows]
    for left_out in lines[rows:]:
        *before, text = last
        last = (*before, text._replace(text=f"{text.text} {left_out[-1].text}"))
    return [*whole, (*_cut_after_word(last, cells - line_width(end)), *end)]


_BETWEEN = f" {glyphs.DOT} "


def _counted(left: int) -> list[Line]:
    return [line(Span(words.plural(left, "more finding"), Role.DIM))] if left else []


def _signed(findings: Sequence[Finding], said: Sequence[str]) -> list[Line]:
    """Return the sentences of the findings, with a sign where the severity changes."""
    signed: list[Line] = []
    before: str | None = None
    for finding, text in zip(findings, said, strict=True):
        sign, role = "", ROLES[finding.severity]
        is_scope = finding.kind is FindingKind.CLUSTER_WELL
        if before is None or is_scope or finding.severity not in (before, Severity.CALM):
            sign = f"{SIGNS[finding.severity]} "
        if before is None and finding.severity is Severity.RISK:
            role = Role.ALERT
        before = finding.severity
        signed.append(line(Span(sign, Role.GOOD if role is Role.DIM else role), Span(text, role)))
    return signed


def _flowed(parts: Sequence[Line], cells: int) -> list[Line]:
    """Return the parts on as few lines as possible. Only a part that is longer than a line is broken."""
    lines: list[Line] = [line(" ")]
    is_empty = True
    for part in parts:
        if not is_empty and line_width(lines[-1]) + width(_BETWEEN) + line_width(part) > cells:
            lines.append(line("   "))
            is_empty = True
        lines[-1] += () if is_empty else (Span(_BETWEEN, Role.DIM),)
        *signs, text = part
        first, *rest = _broken(text.text, cells - line_width((*lines[-1], *signs)))
        lines[-1] += (*signs, text._replace(text=first))
        lines += [
            line("   ", text._replace(text=more)) for more in _broken(" ".join(rest), cells - 3) if more
        ]
        is_empty = False
    return lines


def _cut_after_word(spans: Line, cells: int) -> Line:
    """Return a line in at most `cells`. If its end is left out, `…` follows the last word that is whole."""
    if line_width(spans) <= cells:
        return spans
    *before, text = spans
    kept = _broken(text.text, cells - line_width(before) - 1)[0].rstrip(",:")
    return cut((*before, text._replace(text=f"{kept}{glyphs.ELLIPSIS}")), cells)


def _broken(text: str, cells: int) -> list[str]:
    """Return a sentence in lines of at most `cells`, broken between words."""
    return wrap(text, max(1, cells), break_on_hyphens=False) or [""]


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


def _beginning(source: SourceInfo, replay: bool) -> str:
    """Return what kview does before the first view."""
    return f"{'opening' if replay else 'connecting to'} {source.label}{glyphs.ELLIPSIS}"


class HeadlinePanel(Lines):
    """The lines below the header: the findings, or what kview is doing before the first view."""

    DEFAULT_CSS = "HeadlinePanel { height: 1; }"

    def __init__(self, source: SourceInfo, replay: bool) -> None:
        super().__init__(id="headline")
        self._source = source
        self._replay = replay
        self.view: View | None = None
        self.notice: Notice | None = None
        self.instead = ""
        """What is said in place of the findings, '' to show them."""

    def lines(self, width: int, height: int) -> list[Line]:
        if self.instead:
            return [cut(line("   ", Span(self.instead, Role.DIM)), width)]
        if self.view is None:
            text = notices.text(self.notice) if self.notice else _beginning(self._source, self._replay)
            role = Role.WARN if self.notice else Role.DIM
            return [cut(line("   ", Span(text, role)), width)]
        return headline_lines(self.view.headline.findings, app_of(self).now_ms(), width, height)
