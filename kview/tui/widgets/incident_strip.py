"""The incident strip: one or two lines on every screen while something is going on, and until dismissed."""

from collections.abc import Collection, Hashable, Iterator

from kview.derive.view import View
from kview.language import glyphs
from kview.language import incidents as said
from kview.model.events import SEVERITY_ORDER
from kview.model.incidents import Incident
from kview.tui.app_of import app_of
from kview.tui.looks import Look, Spot
from kview.tui.rows.common import ROLES
from kview.tui.text import Line, Role, Span, content, cut, joined, justified, line, line_width, width
from kview.tui.widgets.drawn import Lines

SHOWN_AFTER_MS = 120_000
"""An incident that has ended stays for this long, if nobody dismisses it earlier."""

TWO_LINES_HEIGHT = 28
"""From this height of the screen on, there is a second line for what followed from the incident."""

LABEL = " INCIDENT "
_BETWEEN = Span(f" {glyphs.MARK} ", Role.DIM)


def shown_incidents(view: View | None, now_ms: int, hidden: Collection[Hashable]) -> list[Incident]:
    """Return the incidents that the strip is about: the worst first, then the newest."""
    if view is None or not view.incidents:
        return []
    shown = [
        incident
        for incident in view.incidents
        if incident.key not in hidden and (incident.is_open or now_ms - incident.ended_ms < SHOWN_AFTER_MS)
    ]

    def urgency(incident: Incident) -> tuple[int, bool, int]:
        return SEVERITY_ORDER.index(incident.severity), not incident.is_open, -incident.began_ms

    return sorted(shown, key=urgency)


def strip_rows(shown: Collection[Incident], height: int) -> int:
    """Return the number of lines of the strip on a screen of this height, 0 if there is nothing to tell."""
    return 0 if not shown else 1 if height < TWO_LINES_HEIGHT else 2


def strip_lines(shown: list[Incident], now_ms: int, hint: str, cells: int, rows: int) -> list[Line]:
    """Return the strip: what happened so far with its stopwatch, and what followed from it."""
    incident = shown[0]
    role = ROLES[incident.severity]
    more = f"+{len(shown) - 1} more " if len(shown) > 1 else ""
    right = line(
        Span(
            f"  {said.after(said.lasted_ms(incident, now_ms))} ",
            Role.BRIGHT if incident.is_open else Role.DIM,
        ),
        Span(f" {more}{hint} " if more or hint else "", Role.DIM),
    )
    left = _stages(incident, max(0, cells - line_width(right)), role)
    if rows == 1 and incident.gone > 0:
        with_loss = (Span(f"  {said.records_gone(incident)}", _gone_role(incident)), *right)
        short, goes_on = _stages(incident, max(0, cells - line_width(with_loss)), role), _goes_on(incident)
        if goes_on in content(short) or goes_on not in content(left):
            left, right = short, with_loss
    lines = [justified(left, right, cells)]
    if rows > 1:
        parts = [line(Span(text, _role(text, incident))) for text in said.consequences(incident)]
        indent = " " * len(LABEL)
        lines.append(cut((Span(indent), *_fitting(parts, max(1, cells - len(indent)))), cells))
    return lines


def _fitting(parts: list[Line], cells: int) -> Line:
    """Return as many parts as fit, with `…` in place of the others."""
    between, gap = Span(f" {glyphs.DOT} ", Role.DIM), line(Span(glyphs.ELLIPSIS, Role.DIM))
    whole = joined(parts, between, cells)
    if content(whole) == between.text.join(map(content, parts)):
        return whole
    return (*joined(parts, between, max(1, cells - line_width((between, *gap)))), between, *gap)


def _goes_on(incident: Incident) -> str:
    """Return the last words about an incident's stages: what it waits for, or what happened last."""
    stages = said.stages(incident, terse=True)
    return said.waits_for(incident, terse=True) or (stages[-1].text if stages else "")


def _gone_role(incident: Incident) -> Role:
    return Role.RISK if incident.is_open else Role.DIM


def _role(text: str, incident: Incident) -> Role:
    if not incident.is_open:
        return Role.DIM
    is_loss = incident.gone > 0 and text.startswith("records")
    return Role.RISK if is_loss or text.startswith("no leader") else Role.TEXT


def _stages(incident: Incident, cells: int, role: Role) -> Line:
    """Return the stages in full if there is room, else in fewer words and without the earliest ones."""
    label = Span(LABEL, Role.ALERT if role is Role.RISK else role)
    begun = said.title(incident)
    if until_ms := said.began_until_ms(incident):
        begun = f"{begun} by {said.after(until_ms)}"
    begin = line(label, Span(begun, role))
    choices = [(begin, _told(incident, role, terse=False))]
    short = said.stages(incident, terse=True)
    if short and short[0].until_ms == 0:  # seen together with the beginning
        both = (*begin, Span(f", {short[0].text}", Role.TEXT))
        choices += [(both, kept) for kept in _shorter(_told(incident, role, terse=True)[1:])]
    choices += [(begin, kept) for kept in _shorter(_told(incident, role, terse=True))]
    for first, stages in choices:
        spans: Line = first
        for stage in stages:
            spans += (_BETWEEN, *stage)
        if line_width(spans) <= cells:
            return spans
    if line_width(begin) > cells:
        begin = line(label, Span(said.title(incident), role))
    return cut(begin, cells)


def _told(incident: Incident, role: Role, terse: bool) -> list[Line]:
    """Return the stages after the beginning, and what has to happen next."""
    stages = said.stages(incident, terse)
    last = len(stages) - 1
    lines = []
    for at, stage in enumerate(stages):
        how = Role.TEXT if incident.is_open else role if at == last else Role.DIM
        lines.append(line(Span(f"{stage.when} ", Role.DIM), Span(stage.text, how)))
    if incident.is_open:
        lines.append(line(Span(f"{glyphs.ELLIPSIS} {said.waits_for(incident, terse)}", Role.DIM)))
    return lines


def _shorter(stages: list[Line]) -> Iterator[list[Line]]:
    """Yield the stages with `…` in place of more and more of the earliest, and never without the last."""
    gap = line(Span(glyphs.ELLIPSIS, Role.DIM))
    yield stages
    for left_out in range(1, len(stages)):
        first, *rest = stages[-1]
        shortened = first._replace(text=first.text.removeprefix(f"{glyphs.ELLIPSIS} "))
        # One sign that something is left out is enough.
        yield [gap, *stages[left_out:-1], (shortened, *rest)]
    yield stages[-1:]


class IncidentStrip(Lines):
    """The strip below the headline."""

    DEFAULT_CSS = "IncidentStrip { height: 0; display: none; }"

    def __init__(self) -> None:
        super().__init__(id="incident")
        self.shown: list[Incident] = []
        self.hint = ""

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.shown:
            return []
        return strip_lines(self.shown, app_of(self).now_ms(), self.hint, width, height)

    def spots(self, look: Look) -> list[Spot]:
        """Return the number of lost records if that is marked and has a place, else the first line."""
        if look.column == "gone" and self.shown:
            wanted = said.records_gone(self.shown[0])
            for y, spans in enumerate(self.lines(self.size.width, self.size.height)):
                before, matched, _ = content(spans).partition(wanted)
                if matched:
                    return [Spot(y, width(before), width(before + wanted), width(before) - 1)]
        return super().spots(look)
