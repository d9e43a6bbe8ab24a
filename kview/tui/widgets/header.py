"""The two top lines: which cluster is shown, how fresh the figures are, and whether anything is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from kview.derive.view import View
from kview.language import glyphs, notices, words
from kview.language.findings import sentence
from kview.model.events import Severity
from kview.model.findings import Finding
from kview.model.notices import Notice
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN_ID
from kview.tui.canvas import canvas
from kview.tui.rows.common import ROLES, SIGNS
from kview.tui.text import Line, Role, Span, cut, joined, justified, line, line_width, width
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.moment import shown_moment

LATE_INTERVALS = 3
"""A view older than this many intervals is late."""

NAME_CELLS = 24
"""The number of cells reserved for the name of the cluster next to the moment shown."""

MIN_LATE_MS = 3_000
"""A view younger than this is never late, because a single slow answer does not matter."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What kview watches.

    `label` is `simulated`, the bootstrap servers or the recording. `interval_ms` is the time between two
    observations.
    """

    label: str
    interval_ms: int = 1_000

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

    A narrow line leaves out the less important facts.
    """
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


def headline_lines(findings: Sequence[Finding], now_ms: int, cells: int, rows: int) -> list[Line]:
    """Return the findings as of `now_ms`. Their sentences fill up to `rows` lines.

    Findings that do not fit are counted at the end.
    """
    worst = findings[0].severity
    sign = Role.ALERT if worst is Severity.RISK else Role.WARN if worst is Severity.WARN else Role.GOOD
    lines: list[Line] = [line(" ", Span(f"{SIGNS[worst]} ", sign))]
    counts = [0]
    between = f" {glyphs.DOT} "
    for number, finding in enumerate(findings):
        text = sentence(finding, now_ms)
        role = Role.ALERT if number == 0 and worst is Severity.RISK else ROLES[finding.severity]
        if counts[-1] and line_width(lines[-1]) + width(between) + width(text) > cells:
            lines.append(line("   "))
            counts.append(0)
        if counts[-1]:
            lines[-1] += (Span(between, Role.DIM),)
        lines[-1] += (Span(text, role),)
        counts[-1] += 1
    if len(lines) > rows:
        left = f"{between}+ {sum(counts[rows:])} more"
        room = cells - width(left)
        lines = [*lines[: rows - 1], (*cut(lines[rows - 1], room), Span(left, Role.DIM))]
    return [cut(made, cells) for made in lines]


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
        """Return the header line."""
        at = canvas(self)
        return [
            header_line(self.view, self.source, self.replay, self.started_ms, at.wall_ms(), at.zone, width)
        ]


class HeadlinePanel(Lines):
    """The lines below the header: the findings, or what kview is doing before the first view."""

    DEFAULT_CSS = "HeadlinePanel { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="headline")
        self.view: View | None = None
        self.notice: Notice | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the lines of the headline."""
        if self.view is None:
            text = notices.text(self.notice) if self.notice else "reading the cluster…"
            role = Role.WARN if self.notice else Role.DIM
            return [cut(line("   ", Span(text, role)), width)]
        return headline_lines(self.view.headline.findings, canvas(self).now_ms(), width, height)
