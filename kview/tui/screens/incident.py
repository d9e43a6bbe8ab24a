"""Enter on an incident: its stopwatch, which partitions it hit, who waited, and what is gone."""

from collections.abc import Hashable
from itertools import zip_longest
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import ScreenResume

from kview.derive.view import View
from kview.language import glyphs
from kview.language import incidents as said
from kview.model.incidents import Incident
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows.common import ROLES, SIGNS
from kview.tui.rows.incidents import HitRows, facts, incident_of, stage_lines
from kview.tui.screens.base import KviewScreen
from kview.tui.text import EDGE_CELLS, EMPTY, Line, Role, Span, Title, cut, justified, line, line_width
from kview.tui.widgets.drawn import Headed
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

NO_LONGER_KNOWN = "this incident is not known at the moment shown"
FACTS_WIDTH = 130
"""From this width on, the figures stand next to the stopwatch, if both fit."""
BETWEEN = 3
"""Cells between the stopwatch and the figures."""


def incident_lines(
    incident: Incident, options: Options, now_ms: int, live: bool, zone: object, cells: int, rows: int
) -> tuple[Title, list[Line]]:
    """Return what is known about an incident: a title in sum, its stages, and its figures."""
    sign = Span(f"{SIGNS[incident.severity]} ", ROLES[incident.severity])
    name = Span(said.title(incident), Role.BRIGHT)
    how = said.outcome(incident) or said.waits_for(incident)
    head = line(sign, name, Span(f"  {glyphs.DOT}  {how}", ROLES[incident.severity]))
    lasted = said.length(incident, now_ms)
    right = line(
        Span(f"{'going on for' if incident.is_open else 'lasted'} ", Role.DIM), Span(lasted, Role.BRIGHT)
    )
    if line_width(head) + line_width(right) + EDGE_CELLS > cells:
        right = line(Span(lasted, Role.BRIGHT))
    stages = stage_lines(incident, now_ms, zone)  # type: ignore[arg-type]
    figures = [line(Span(f"  {title:<10}", Role.DIM), *what) for title, what in facts(incident, options)]
    lines: list[Line] = []
    widths = [max(map(line_width, part), default=0) for part in (stages, figures)]
    if cells >= FACTS_WIDTH and sum(widths) + BETWEEN <= cells:
        middle = max(widths[0] + BETWEEN, min(cells // 2, cells - widths[1]))
        for stage, figure in zip_longest(stages, figures, fillvalue=EMPTY):
            lines.append((*justified(stage, (), middle), *figure))
    else:
        lines += [*stages, *figures]
    return Title(head, right), [cut(each, cells) for each in lines[:rows]]


class IncidentPanel(Headed):
    """The stopwatch and the figures of the incident."""

    DEFAULT_CSS = "IncidentPanel { height: 12; }"

    incident: Incident | None = None
    options = Options()

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        at = app_of(self)
        if self.incident is None:
            return Title(), [line(Span(f"  {NO_LONGER_KNOWN}", Role.WARN))]
        return incident_lines(self.incident, self.options, at.now_ms(), at.live, at.zone, width, height)

    def needed(self, width: int, now_ms: int) -> int:
        """Return the number of lines for all that is known."""
        if self.incident is None:
            return 1
        return len(incident_lines(self.incident, self.options, now_ms, True, None, width, 1_000)[1])


class IncidentScreen(KviewScreen):
    """The screen of a single incident."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.EVENTS)]
    AUTO_FOCUS = "#hit"
    CSS = "IncidentScreen #about_side { height: auto; }"

    def __init__(self, key: Hashable) -> None:
        super().__init__()
        self._key = key
        self._last: Incident | None = None

    def body(self) -> ComposeResult:
        with Panel(id="about_side"):
            yield IncidentPanel(id="about")
        with Panel():
            yield Table(id="hit")

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Note that the incident was opened."""
        self.dashboard.opened(self._key)

    def on_unmount(self) -> None:
        """Note that it was opened, if it has ended meanwhile."""
        self.dashboard.opened(self._key)

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        incident = incident_of(view, self._key)
        self._last = incident or self._last
        panel = self.query_one(IncidentPanel)
        panel.incident, panel.options = incident, options
        needed = panel.needed(self.inner_width, self.dashboard.now_ms())
        panel.styles.height = min(needed, max(4, self.page_height - 11))
        self.query_one("#hit", Table).fill(lambda: HitRows(incident, options))

    @on(Table.Opened, "#hit")
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, tuple):
            self.dashboard.go.topic(*event.key)

    def action_go_there(self) -> None:
        """Show the cluster in the first observation that shows the incident."""
        if self._last is not None:
            self.dashboard.show_moment(self._last.seen_ms, said.first_seen(self._last))
