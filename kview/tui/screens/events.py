"""7 Events: what happened, on a timeline, as incidents with their stopwatch, and one by one."""

from functools import cache, partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import ScreenResume

from kview.derive.view import View
from kview.language import incidents as said
from kview.model.events import Event
from kview.tui.actions import Where, bindings
from kview.tui.keys import ACTIONS
from kview.tui.rows.incidents import EventRows, IncidentRows, incident_of
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.lanes import Lanes
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

FEWEST_LANES, USUAL_LANES, MOST_LANES = 3, 9, 14


class EventsScreen(KviewScreen):
    """The timeline, the incidents and the events."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.EVENTS)]
    AUTO_FOCUS = "#incidents"

    def body(self) -> ComposeResult:
        with Panel(id="lanes_side"):
            yield Lanes()
        with Panel(id="incidents_side"):
            yield Table(id="incidents")
        with Panel():
            yield Table(id="events_list")

    def lay_out_panels(self) -> None:
        height, view = self.page_height, self.view
        brokers = len(view.snapshot.brokers) if view else 3
        room = max(FEWEST_LANES, min(USUAL_LANES, (height - 10) // 2), (height - 10) // 3)
        lanes = min(brokers + 3, MOST_LANES, room)
        above, edges = self.query_one("#lanes_side"), self.edge_lines
        above.styles.height, above.display = lanes + edges, height >= 20
        incidents = len(view.incidents) if view else 0
        rows = min(max(1, incidents) + 1, max(2, (height - lanes) // 3 - 1))
        self.query_one("#incidents_side").styles.height = rows + edges

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Note that the list was opened."""
        self.dashboard.opened(None)

    def draw(self, view: View) -> None:
        options, zone = self.dashboard.options, self.dashboard.zone
        self.query_one(Lanes).view = view
        self.query_one("#incidents", Table).fill(lambda: IncidentRows(view, options, zone))
        rows = cache(partial(EventRows, view, options, zone))
        self.query_one("#events_list", Table).fill(rows)
        self.lay_out_panels()

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if event.table.id == "incidents":
            self.dashboard.go.incident(event.key)
        elif selected := self._event():
            self._open_event(selected)

    def _open_event(self, event: Event) -> None:
        """Go to what an event names, or to its moment if it names nothing."""
        if event.group:
            self.dashboard.go.group(event.group)
        elif len(event.partitions) == 1:
            self.dashboard.go.topic(*event.partitions[0])
        elif event.topic:
            self.dashboard.go.topic(event.topic)
        elif len(event.brokers) == 1:
            self.dashboard.go.broker(event.brokers[0])
        else:
            self.dashboard.show_moment(event.shown_ms)

    def _event(self) -> Event | None:
        table = self.query_one("#events_list", Table)
        if not isinstance(table.rows, EventRows) or table.selected is None:
            return None
        at = table.rows.find(table.selected)
        return table.rows.events[at] if at is not None else None

    def action_go_there(self) -> None:
        """Show the cluster in the first observation that shows the selected event or incident."""
        table = self.query_one("#incidents", Table)
        if table.has_focus and table.selected is not None and self.view is not None:
            if incident := incident_of(self.view, table.selected):
                self.dashboard.show_moment(incident.seen_ms, said.first_seen(incident))
        elif selected := self._event():
            self.dashboard.show_moment(selected.shown_ms)
