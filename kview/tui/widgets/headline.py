"""The second line of every screen: what is wrong in a few words, what comes next, and the stopwatch. While
another moment than the live one is shown, the time bar."""

import re
from collections.abc import Collection, Hashable, Sequence

from kview.derive.view import View
from kview.language import glyphs, notices, words
from kview.language import incidents as of_incident
from kview.language.briefs import brief
from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.incidents import Incident
from kview.model.notices import Notice
from kview.model.units import UNKNOWN
from kview.tui.app_of import app_of
from kview.tui.looks import Look, Spot
from kview.tui.rows.common import ROLES, SIGNS
from kview.tui.text import Line, Role, Span, content, cut, justified, line, line_width, width
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.header import SourceInfo
from kview.tui.widgets.time_bar import bar_line

MOST_WORDS = 10
"""The most words of the line, so that a wide screen does not have more of them than a narrow one."""

DIAL_CELLS = 6
"""The width of a countdown's bar, which is half of it on a line of less than WIDE cells."""

WIDE = 100

_WORD = re.compile(r"[A-Za-z][\w-]{2,}")
_BETWEEN = Span(f" {glyphs.DOT} ", Role.DIM)
_APART = Span("  ")
_NO_FENCING = (FindingKind.QUORUM_SILENT, FindingKind.QUORUM_LOST, FindingKind.NO_CONTROLLER)
"""Why no broker can be fenced: said where the countdown would be."""
_CALM = (FindingKind.ALL_WELL, FindingKind.CLUSTER_WELL)


def shown_incidents(view: View | None, opened: Collection[Hashable]) -> list[Incident]:
    """Return the incidents that go on or that nobody has opened yet: the worst first, then the newest."""
    if view is None or not view.incidents:
        return []
    shown = [incident for incident in view.incidents if incident.is_open or incident.key not in opened]

    def urgency(incident: Incident) -> tuple[bool, int, int]:
        return not incident.is_open, SEVERITY_ORDER.index(incident.severity), -incident.began_ms

    return sorted(shown, key=urgency)


def stopwatch(shown: Sequence[Incident], now_ms: int, cells: int) -> Line:
    """Return how long the first of these incidents has lasted, and how many others there are."""
    if not shown:
        return ()
    first, *others = shown
    lasts_ms = of_incident.lasted_ms(first, now_ms)
    more = f" {glyphs.DOT} {words.plural(len(others), 'other')}" if others else ""
    if first.is_open:
        return line(Span(f"  {of_incident.after(lasts_ms)}", Role.BRIGHT), Span(f"{more} ", Role.DIM))
    sign = Span(f"  {SIGNS[first.severity]} ", ROLES[first.severity])
    over = "incident over after" if cells >= WIDE else "over after"
    return line(sign, Span(f"{over} {words.duration(lasts_ms)}{more} ", Role.DIM))


def state_line(view: View, shown: Sequence[Incident], now_ms: int, cells: int) -> Line:
    """Return what is wrong, the worst first and reversed if it is a risk, the countdown to what comes next,
    and the stopwatch of the incidents `shown` at the right. What has no room is counted."""
    right = stopwatch(shown, now_ms, cells)
    parts = _parts(view, shown, now_ms, DIAL_CELLS if cells >= WIDE else DIAL_CELLS // 2)
    room, well = cells - line_width(right), _cluster_well(view)

    def fits(left: Line) -> bool:
        return line_width(left) <= room and len(_WORD.findall(content((*left, *right)))) <= MOST_WORDS

    for number in range(len(parts), 0, -1):
        left = _said(parts[:number], len(parts) - number)
        if fits(left):
            with_well = (*left, _APART, *well)
            return justified(with_well if well and fits(with_well) else left, right, cells)
    return justified(cut(_said(parts[:1], 0), room), right, cells)


def _said(parts: Sequence[tuple[Line, bool]], left_out: int) -> Line:
    """Return parts in a line. What stands apart has more room before it."""
    spans: Line = line(" ")
    for at, (part, is_apart) in enumerate(parts):
        spans += (*((_APART if is_apart else _BETWEEN,) if at else ()), *part)
    return (*spans, Span(f"{_BETWEEN.text}{left_out:,} more", Role.DIM)) if left_out else spans


def _parts(view: View, shown: Sequence[Incident], now_ms: int, dial: int) -> list[tuple[Line, bool]]:
    """Return what is said, and whether it stands apart from what is before it. `dial` is the width of a
    countdown's bar."""
    findings = view.headline.findings
    worst, *rest = [finding for finding in findings if finding.kind not in _CALM] or findings[:1] or (None,)
    if worst is None or worst.kind in _CALM:
        return [(_well(view, findings), False)]
    first, *figures = brief(worst, now_ms)
    has_noun = not any("partition" in text for text in (first, *figures))
    if worst.severity is Severity.RISK:
        parts = [(line(Span(f" {SIGNS[worst.severity]} {first} ", Role.ALERT)), False)]
    else:
        sign = SIGNS[worst.severity] if worst.severity is not Severity.CALM else glyphs.DOT
        parts = [(line(Span(f"{sign} {first}", ROLES[worst.severity])), False)]
    for finding in rest:
        if finding.kind is FindingKind.FENCING_DUE:
            parts.append((_dial(view, finding, now_ms, dial), True))
        elif finding.kind in _NO_FENCING:
            parts.append((line(Span(brief(finding, now_ms)[0], ROLES[finding.severity])), True))
    more = [*((text, worst.severity) for text in figures)]
    for finding in rest:
        if finding.kind not in (FindingKind.FENCING_DUE, *_NO_FENCING):
            texts = brief(finding, now_ms, has_noun)
            has_noun = has_noun and not any("partition" in text for text in texts)
            more += [(text, finding.severity) for text in texts]
    if gone := _gone(shown, findings):
        more.insert(min(1, len(more)), (gone, Severity.RISK))
    before = worst.severity
    for at, (text, severity) in enumerate(more):
        sign = f"{SIGNS[severity]} " if severity not in (before, Severity.CALM) else ""
        parts.append((line(Span(f"{sign}{text}", ROLES[severity])), not at))
        before = severity
    return parts


def _cluster_well(view: View) -> Line:
    """Return that it is not the cluster that something is wrong with, () if it is, or if nothing is."""
    kinds = [finding.kind for finding in view.headline.findings]
    if FindingKind.CLUSTER_WELL not in kinds or len(kinds) < 2:
        return ()
    return line(Span(f"{glyphs.OK} ", Role.GOOD), Span("cluster healthy", Role.DIM))


def _well(view: View, findings: Sequence[Finding]) -> Line:
    """Return that nothing is wrong, in three figures."""
    head, groups = view.headline, sum(finding.groups for finding in findings)
    partitions = words.at_least(words.plural(head.partitions, "partition"), head.topics_are_bound)
    keep_up = f" {glyphs.DOT} {words.plural(groups, 'group')} keep{'s' if groups == 1 else ''} up"
    said = f"  {partitions} in sync{keep_up if groups else ''}"
    return line(Span(f"{glyphs.OK} ", Role.GOOD), Span("WELL", Role.BRIGHT), Span(said, Role.DIM))


def _gone(shown: Sequence[Incident], findings: Sequence[Finding]) -> str:
    """Return the records that the incident that goes on has cost, if no finding says so."""
    losses = (FindingKind.LEADER_RECORDS_LOST, FindingKind.UNCLEAN_ELECTION)
    going = [incident for incident in shown[:1] if incident.is_open and incident.gone > 0]
    if not going or any(finding.kind in losses for finding in findings):
        return ""
    return of_incident.records_gone(shown[0])


def _dial(view: View, due: Finding, now_ms: int, cells: int) -> Line:
    """Return how long it takes until the broker is fenced, as a bar that empties."""
    left_ms, whole_ms = due.due_ms - now_ms, _session_ms(view, due)
    if left_ms <= 0 or whole_ms <= 0:
        return line(Span(words.fencing(due.due_ms, now_ms), Role.WARN))
    full = min(cells, -(-left_ms * cells // whole_ms))
    return line(
        Span("fenced in " if cells == DIAL_CELLS else "fenced ", Role.DIM),
        Span(glyphs.LINE * full, Role.WARN),
        Span(glyphs.RULE * (cells - full), Role.RULE),
        Span(f" {glyphs.ABOUT} {words.duration(left_ms)}", Role.WARN),
    )


def _session_ms(view: View, due: Finding) -> int:
    """Return how long it takes from the silence of the broker that is fenced first until it is fenced."""
    table, figures = view.snapshot.brokers, view.brokers
    for row, due_ms in enumerate(figures.fencing_due_ms.tolist()):
        if due_ms == due.due_ms and table.session_timeout_ms[row] != UNKNOWN:
            return int(table.session_timeout_ms[row])
    return UNKNOWN


class Headline(Lines):
    """The line below the header."""

    DEFAULT_CSS = "Headline { height: 1; }"

    def __init__(self, source: SourceInfo, replay: bool) -> None:
        super().__init__(id="headline")
        self._source = source
        self._replay = replay
        self.view: View | None = None
        self.notice: Notice | None = None
        self.instead = ""
        """What is said in place of the findings, '' to show them."""

    @property
    def is_ticking(self) -> bool:
        """Whether it shows tenths of seconds."""
        view = self.view
        return view is not None and view.moment.live and any(incident.is_open for incident in view.incidents)

    def lines(self, width: int, height: int) -> list[Line]:
        at = app_of(self)
        if self.view is None:
            text = notices.text(self.notice) if self.notice else _beginning(self._source, self._replay)
            role = Role.WARN if self.notice else Role.DIM
            return [cut(line("   ", Span(text, role)), width)]
        shown, now_ms = shown_incidents(self.view, at.opened_incidents), at.now_ms()
        if self.instead:
            said = line("   ", Span(self.instead, Role.DIM))
            return [justified(said, stopwatch(shown, now_ms, width), width)]
        if not self.view.moment.live:
            right = stopwatch(shown, now_ms, width)
            return [
                justified(bar_line(self.view, self._replay, at.zone, width - line_width(right)), right, width)
            ]
        return [state_line(self.view, shown, now_ms, width)]

    async def on_click(self) -> None:
        """Say in whole sentences what is wrong."""
        await app_of(self).run_action("wrong")

    def spots(self, look: Look) -> list[Spot]:
        """Return the number of lost records if that is marked and is said, else the whole line."""
        shown = shown_incidents(self.view, app_of(self).opened_incidents)
        if look.column == "gone" and shown:
            wanted = of_incident.records_gone(shown[0])
            (spans,) = self.lines(self.size.width, 1)
            before, said, _ = content(spans).partition(wanted)
            if said:
                return [Spot(0, width(before), width(before + wanted), width(before) - 1)]
        return super().spots(look)


def _beginning(source: SourceInfo, replay: bool) -> str:
    """Return what kview does before the first view."""
    return f"{'opening' if replay else 'connecting to'} {source.label}{glyphs.ELLIPSIS}"
