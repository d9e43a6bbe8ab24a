"""2 Placement: brokers by partitions of a topic, above the list of topics."""

from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from kview.derive.view import View
from kview.tui import layout
from kview.tui.actions import Where, bindings
from kview.tui.faults import Target
from kview.tui.keys import ACTIONS
from kview.tui.rows import topics
from kview.tui.rows.matrix import CELLS, MatrixRows
from kview.tui.rows.placed import PlacedRows
from kview.tui.rows.placement import PlaceRows, heading, is_place
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Cell, Table

LOW = 18
"""Below this height there is only the table of brokers: keys choose the topic."""

LEAST_TOPICS = 4
"""The number of lines reserved for the list of topics: head, and three rows."""

BESIDE_WIDTH = 150
"""From this width on, the list of partitions is to the right of the list of topics."""
TOPICS_SHARE = 50
"""The width of the list of topics next to the list of partitions, in percent of the screen's width."""
LEAST_PARTITIONS = 6
"""The fewest lines for which the list of partitions is shown below the list of topics."""

PLACED = "placed"
"""The id of the list of partitions."""


class PlacementScreen(KviewScreen):
    """The replicas of the topic that is selected below, by broker, and by partition or by place in the
    replica lists."""

    AUTO_FOCUS = "#grid"
    CSS = "PlacementScreen #heading { height: auto; } PlacementScreen #lists { height: 1fr; }"
    has_targets = True
    partition_panels = frozenset({PLACED})
    topic_panels = frozenset({"topics"})
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.PLACEMENT)]

    _began = False
    """Whether a topic has been selected. It stays selected when another topic becomes the worst."""

    _of_broker = False
    """Whether only partitions on the selected broker are listed: after the user selected another broker, and
    until they select another topic."""

    def body(self) -> ComposeResult:
        with Panel(id="heading"):
            yield Table(id="grid")
        with Container(id="lists"):
            with Panel(id="topics_side"):
                yield Table(id="topics")
            with Panel(id="placed_side"):
                yield Table(id=PLACED)

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        listed = self.query_one("#topics", Table)
        listed.fill(lambda: topics.TopicRows(view, options))
        if not self._began:
            self._began = listed.select(listed.selected)
        topic, grid = self._topic(), self.query_one("#grid", Table)
        around = self.query_one("#heading", Panel)
        around.entitle(lambda: heading(view, options, topic, self.title_cells))
        # A lesson about places marks the table, or places in it.
        looks = [look for look in self.dashboard.teaching.looks if "grid" in look.ids]
        if options.by_place or any(look.key is None or is_place(look.column) for look in looks):
            grid.fill(lambda: PlaceRows(view, options, topic))
        else:
            grid.fill(lambda: MatrixRows(view, options, topic, self.inner_width))
        height = self.page_height
        edges = self.edge_lines
        room = self.page_height - layout.CHROME - edges
        # A caption is about the brokers: they come before the lists.
        is_crowded = (
            self.dashboard.teaching.caption is not None and room - LEAST_TOPICS - edges < len(grid.rows) + 1
        )
        is_low = height < LOW or is_crowded
        room -= 0 if is_low else LEAST_TOPICS + edges
        grid.styles.height = max(3, min(len(grid.rows) + 1, room))
        self.query_one("#lists").display = not is_low
        self.query_one(f"#{PLACED}", Table).fill(lambda: self._placed(view))
        self._lay_out_lists()

    def _placed(self, view: View) -> PlacedRows:
        """Return the partitions of the topic shown, or those on the broker that is selected."""
        grid = self.query_one("#grid", Table)
        broker = grid.selected if self._of_broker else None
        return PlacedRows(
            view, self.dashboard.options, self._topic(), broker if isinstance(broker, int) else None
        )

    def _lay_out_lists(self) -> None:
        """Give the list of partitions what the list of topics leaves free, below it or to its right."""
        size, listed = self.app.size, self.query_one("#topics", Table)
        grid_height = self.query_one("#grid", Table).styles.height
        used = int(grid_height.value) if grid_height else 0
        edges = self.edge_lines
        room = self.page_height - layout.CHROME - edges - used
        is_beside = size.width >= BESIDE_WIDTH
        topics_height = min(len(listed.rows) + 1, max(LEAST_TOPICS, room // 3)) + edges
        is_below = not is_beside and room - topics_height - edges >= LEAST_PARTITIONS
        self.query_one("#lists").styles.layout = "horizontal" if is_beside else "vertical"
        side = self.query_one("#topics_side")
        side.styles.width = f"{TOPICS_SHARE}%" if is_beside else "1fr"
        side.styles.height = topics_height if is_below else "1fr"
        self.query_one("#placed_side").display = is_beside or is_below

    def _topic(self) -> str:
        selected = self.query_one("#topics", Table).selected
        return selected if isinstance(selected, str) else topics.ALL

    def target(self) -> Target | None:
        """Return the selected broker, if the brokers panel is focused."""
        broker = self.selected_broker()
        return None if broker is None else Target(broker)

    def selected_broker(self) -> int | None:
        """Return the broker whose row is selected, if the brokers panel is focused."""
        grid = self.query_one("#grid", Table)
        return grid.aimed if grid.has_focus and isinstance(grid.aimed, int) else None

    def action_places(self) -> None:
        """List a topic's replicas by their place in the replica lists, or draw a cell for each partition."""
        options = self.dashboard.options
        self.dashboard.set_options(replace(options, by_place=not options.by_place))

    def action_topic(self, by: int) -> None:
        """Select another topic, regardless of which panel is focused."""
        self.query_one("#topics", Table).step(by)

    def action_open(self) -> None:
        """Go to the topic's partitions."""
        if topic := self._topic():
            self.dashboard.go.topic(topic)

    @on(Table.Moved, "#grid")
    def _another_broker(self) -> None:
        self._of_broker = True
        self.update()

    @on(Table.Moved, "#topics")
    def _another_topic(self) -> None:
        self._of_broker = False
        self.update()

    @on(Table.Clicked, "#grid")
    def _a_cell(self, event: Table.Clicked) -> None:
        if (partition := self._partition_at(event.table.selected, event.cell)) is not None:
            self.query_one(f"#{PLACED}", Table).select(partition)

    def _partition_at(self, broker: Hashable, cell: Cell) -> tuple[str, int] | None:
        """Return the partition of which a cell of a broker shows the replica."""
        rows = self.query_one("#grid", Table).rows
        if not isinstance(rows, MatrixRows) or cell.column != CELLS:
            return None
        return rows.partition_at(broker, cell.offset)

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        is_grid = event.table.id == "grid"
        if event.table.id == PLACED and isinstance(event.key, tuple):
            self.dashboard.go.partition(*event.key)
        elif is_grid and (partition := self._partition_at(event.key, event.cell)) is not None:
            self.dashboard.go.partition(*partition)
        elif isinstance(event.key, int):
            self.dashboard.go.broker(event.key)
        else:
            self.action_open()
