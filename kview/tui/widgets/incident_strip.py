"""The incident strip: one or two lines on every screen while something is going on, and until dismissed."""

from collections.abc import Collection, Hashable

from kview.derive.view import View
from kview.language import glyphs
from kview.language import incidents as said
from kview.model.events import SEVERITY_ORDER
from kview.model.incidents import Incident
from kview.tui.canvas import canvas
from kview.tui.rows.common import ROLES
from kview.tui.text import Line, Role, Span, cut, joined, justified, line, line_width
from kview.tui.widgets.drawn import Lines

SHOWN_AFTER_MS = 120_000
"""An incident that has ended stays for this long, if nobody dismisses it earlier."""

TWO_LINES_HEIGHT = 24
"""From this height of the screen on, there is a second line for what followed from the incident."""

LABEL = " INCIDENT "
_BETWEEN = Span(f" {glyphs.MARK} ", Role.DIM)


def shown_incidents(view: View | None, now_ms: int, hidden: Collection[Hashable]) -> list[Incident]:
    """Return the incidents that the strip is about: the worst first, then the newest."""
    if view is None or not view.incidents:
        return []
    found = [
        one
        for one in view.incidents
        if one.key not in hidden and (one.is_open or now_ms - one.ended_ms < SHOWN_AFTER_MS)
    ]
    return sorted(found, key=lambda one: (SEVERITY_ORDER.index(one.severity), not one.is_open, -one.began_ms))


def strip_rows(shown: Collection[Incident], height: int) -> int:
    """Return the number of lines of the strip on a screen of this height, 0 if there is nothing to tell."""
    return 0 if not shown else 1 if height < TWO_LINES_HEIGHT else 2


def strip_lines(shown: list[Incident], now_ms: int, hint: str, cells: int, rows: int) -> list[Line]:
    """Return the strip: what happened so far with its stopwatch, and what followed from it."""
    incident = shown[0]
    role = ROLES[incident.severity]
    more = f"+{len(shown) - 1} more " if len(shown) > 1 else ""
    right = line(
        Span(f"  {said.after(said.lasted_ms(incident, now_ms))} ", Role.BRIGHT if incident.is_open else Role.DIM),
        Span(f" {more}{hint} " if more or hint else "", Role.DIM),
    )
    room = max(0, cells - line_width(right))
    lines = [justified(_stages(incident, room, role), right, cells)]
    if rows > 1:
        parts = [line(Span(text, _role(text, incident))) for text in said.consequences(incident)]
        indent = " " * len(LABEL)
        rest = joined(parts, Span(f" {glyphs.DOT} ", Role.DIM), max(1, cells - len(indent)))
        lines.append(cut((Span(indent), *rest), cells))
    return lines


def _role(text: str, incident: Incident) -> Role:
    if not incident.is_open:
        return Role.DIM
    return Role.RISK if text.startswith("no leader") or (incident.gone > 0 and text.startswith("records")) else Role.TEXT


def _stages(incident: Incident, cells: int, role: Role) -> Line:
    """Return the stages in full if there is room, else in fewer words, and without the earliest ones."""
    whole = _fitting(incident, cells, role, terse=False)
    return _fitting(incident, cells, role, terse=True) if whole is None else whole


def _fitting(incident: Incident, cells: int, role: Role, terse: bool) -> Line | None:
    """Return the stages in words or, if `terse`, in as few as possible. None if words do not fit."""
    begin = line(Span(LABEL, Role.ALERT if role is Role.RISK else role), Span(said.title(incident), role))
    told = said.stages(incident, terse)
    if terse and told and told[0].after_ms == 0:  # seen together with the beginning
        begin += (Span(f", {told[0].text}", Role.TEXT),)
        told = told[1:]
    stages = [
        line(Span(f"{said.after(stage.after_ms)} ", Role.DIM), Span(stage.text, Role.TEXT if incident.is_open else Role.DIM))
        for stage in told
    ]
    if incident.is_open:
        stages.append(line(Span(f"{glyphs.ELLIPSIS} {said.waits_for(incident, terse)}", Role.DIM)))
    elif told:
        last = told[-1]
        stages[-1] = line(Span(f"{said.after(last.after_ms)} ", Role.DIM), Span(last.text, role))
    for left_out in range(len(stages) + 1):
        kept = stages[left_out:]
        gap = [line(Span(glyphs.ELLIPSIS, Role.DIM))] if left_out and len(kept) > 1 else []
        made: Line = begin
        for part in (*gap, *kept):
            made += (_BETWEEN, *part)
        if line_width(made) <= cells:
            return made
        if not terse:
            return None
    return cut(begin, cells)


class IncidentStrip(Lines):
    """The strip below the headline."""

    DEFAULT_CSS = "IncidentStrip { height: 0; display: none; }"

    def __init__(self) -> None:
        super().__init__(id="incident")
        self.shown: list[Incident] = []
        self.hint = ""

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the lines of the strip."""
        if not self.shown:
            return []
        return strip_lines(self.shown, canvas(self).now_ms(), self.hint, width, height)
