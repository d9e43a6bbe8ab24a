"""The two things read first: which cluster and how fresh, and whether anything is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from kview.derive.view import View
from kview.language import glyphs, notices, words
from kview.model.events import Severity
from kview.model.notices import Notice
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.tui.canvas import canvas
from kview.tui.rows.common import ROLES, SIGNS
from kview.tui.text import Line, Role, Span, cut, joined, justified, line, line_width, width
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.moment import shown_moment

LATE_INTERVALS = 3
"""A picture older than this many intervals is late."""

NAME_CELLS = 24
"""Cells that what is watched keeps beside the moment shown."""

MIN_LATE_MS = 3_000
"""… but not below this: one slow answer is no news."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What is being watched: `label` is `simulated` or the bootstrap servers, `interval_ms` how often it is
    asked."""

    label: str
    interval_ms: int = 1_000

    @property
    def late_ms(self) -> int:
        """The age at which a figure or a picture is late."""
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
    """Which cluster, and how fresh, or which moment: the less important facts go as the width shrinks."""
    name = line(
        Span(" kview ", Role.BRIGHT), Span(f"{glyphs.MARK} ", Role.DIM), Span(source.label, Role.BRIGHT)
    )
    if view is None:
        waiting = line(Span(f"waiting {words.duration(now_ms - started_ms)} ", Role.DIM))
        return justified(cut(name, cells), waiting, cells)
    if view.moment.live:
        right = _freshness(view, source, now_ms)
    else:
        right = (Span(f" {shown_moment(view, replay, now_ms, zone, cells - NAME_CELLS)} ", Role.MOMENT),)
    room = cells - line_width(right) - 2
    return justified(joined([name, *_facts(view)], Span("  "), room), right, cells)


def _facts(view: View) -> list[Line]:
    table, head, seen = view.snapshot.brokers, view.headline, view.snapshot.observation
    up = int((table.state == BrokerState.UP).sum())
    racks = len({rack for rack in table.rack if rack})
    brokers = words.plural(len(table), "broker") if up == len(table) else f"{up:,}/{len(table):,} brokers up"
    facts = [line(Span(brokers, Role.HEAD if up == len(table) else Role.WARN))]
    if racks:
        facts.append(line(Span(words.plural(racks, "rack"), Role.HEAD)))
    facts.append(line(Span(words.plural(head.topics, "topic"), Role.HEAD)))
    facts.append(line(Span(words.plural(head.partitions, "partition"), Role.HEAD)))
    if seen.controller_id != UNKNOWN_ID:
        facts.append(line(Span(f"controller {seen.controller_id} epoch {seen.controller_epoch}", Role.HEAD)))
    else:
        facts.append(line(Span("controller not known", Role.DIM)))
    facts.append(line(Span(f"{words.rate(head.requests_per_second)} req/s", Role.DIM)))
    return facts


def _freshness(view: View, source: SourceInfo, now_ms: int) -> Line:
    age_ms = now_ms - view.snapshot.observation.ended_ms
    if age_ms > source.late_ms:
        return line(Span(f"{glyphs.DEAD} nothing new for {words.duration(age_ms, tenths=False)} ", Role.WARN))
    return line(Span(f"{glyphs.OK} ", Role.GOOD), Span(f"seen {words.duration(age_ms)} ago ", Role.DIM))


def headline_lines(
    sentences: Sequence[str], severities: Sequence[Severity], cells: int, rows: int
) -> list[Line]:
    """Whether anything is wrong: sentences flow over `rows` lines; what does not fit is counted at the
    end."""
    worst = severities[0]
    sign = Role.ALERT if worst is Severity.RISK else Role.WARN if worst is Severity.WARN else Role.GOOD
    lines: list[Line] = []
    current: Line = line(" ", Span(f"{SIGNS[worst]} ", sign))
    between = f" {glyphs.DOT} "
    is_first_of_line = True
    for number, (sentence, severity) in enumerate(zip(sentences, severities, strict=True)):
        role = Role.ALERT if number == 0 and severity is Severity.RISK else ROLES[severity]
        if not is_first_of_line and line_width(current) + width(between) + width(sentence) > cells:
            lines.append(current)
            current, is_first_of_line = line("   "), True
        current += (
            (Span(sentence, role),) if is_first_of_line else (Span(between, Role.DIM), Span(sentence, role))
        )
        is_first_of_line = False
    lines.append(current)
    if len(lines) > rows:
        left = f" {glyphs.DOT} + {len(lines) - rows} more lines" if rows > 1 else f" {glyphs.ELLIPSIS}"
        room = cells - width(left)
        lines = [*lines[: rows - 1], (*cut(lines[rows - 1], room), Span(left, Role.DIM))]
    return [cut(made, cells) for made in lines]


class Header(Lines):
    """Line 1: which cluster, how fresh, what kview costs it."""

    DEFAULT_CSS = "Header { height: 1; }"

    def __init__(self, source: SourceInfo, replay: bool, started_ms: int) -> None:
        super().__init__(id="header")
        self.source = source
        self.replay = replay
        self.started_ms = started_ms
        self.view: View | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        """The line."""
        at = canvas(self)
        return [
            header_line(self.view, self.source, self.replay, self.started_ms, at.wall_ms(), at.zone, width)
        ]


class HeadlinePanel(Lines):
    """Line 2 and more: is anything wrong. Before the first picture, what is being waited for."""

    DEFAULT_CSS = "HeadlinePanel { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="headline")
        self.view: View | None = None
        self.notice: Notice | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        """The headline."""
        if self.view is None:
            text = notices.text(self.notice) if self.notice else "asking the cluster for a first picture"
            role = Role.WARN if self.notice else Role.DIM
            return [cut(line("   ", Span(text, role)), width)]
        sentences = sentences_at(self.view, canvas(self).now_ms())
        return headline_lines(sentences, self.view.headline.severities, width, height)


def sentences_at(view: View, now_ms: int) -> tuple[str, ...]:
    """The headline's sentences with the age of a silence and the countdown to fencing as of `now_ms`.

    Only these two go on between observations: nothing is calculated from figures that are not there.
    """
    table, figures, seen_ms = view.snapshot.brokers, view.brokers, view.snapshot.observation.ended_ms
    silent = table.state == BrokerState.SILENT
    since = figures.silent_since_ms[silent & (figures.silent_since_ms != UNKNOWN)]
    due = figures.fencing_due_ms[silent & (figures.fencing_due_ms != UNKNOWN)]
    changes = []
    if len(since):
        since_ms = int(since.min())
        changes.append(
            (f" silent {words.duration(seen_ms - since_ms)}", f" silent {words.duration(now_ms - since_ms)}")
        )
    if len(due):
        due_ms = int(due.min())
        changes.append((words.fencing(due_ms, seen_ms), words.fencing(due_ms, now_ms)))
    sentences = view.headline.sentences
    for then, now in changes:
        sentences = tuple(sentence.replace(then, now) for sentence in sentences)
    return sentences
