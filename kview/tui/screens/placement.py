"""2 Placement: which replicas of a topic each broker has, above the list of topics."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from kview.derive.partitions.order import HOLD_MS
from kview.derive.view import View
from kview.tui import layout
from kview.tui.actions import Where, bindings
from kview.tui.faults import Target
from kview.tui.keys import ACTIONS
from kview.tui.options import Sort
from kview.tui.rows import topics
from kview.tui.rows.placed import PlacedRows
from kview.tui.rows.placement import PlacementRows
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.bottom import Bar, Rule
from kview.tui.widgets.heading import Heading
from kview.tui.widgets.table import Table

LOW = 18
"""Below this height there is only the table of brokers: keys choose the topic."""

HEADING = 2
"""The lines of the rule and the heading above that table."""

LEAST_TOPICS = 5
"""The number of lines reserved for the list of topics: title, head, and three rows."""

LISTS = 1 + LEAST_TOPICS
"""The lines reserved below that table: a rule and the list of topics."""

BESIDE_WIDTH = 150
"""From this width on, the list of partitions is to the right of the list of topics."""
TOPICS_SHARE = 50
"""The width of the list of topics next to the list of partitions, in percent of the screen's width."""
LEAST_PARTITIONS = 6
"""The fewest lines for which the list of partitions is shown below the list of topics."""

PLACED = "placed"
"""The id of the list of partitions."""


class _Hold(NamedTuple):
    """The topics as they were listed, in which order, and when (epoch ms)."""

    keys: Sequence[Hashable]
    sort: Sort
    at_ms: int


class PlacementScreen(KviewScreen):
    """The replicas of the topic that is selected below, by broker and by position in the replica list."""

    AUTO_FOCUS = "#grid"
    CSS = "PlacementScreen #lists { height: 1fr; }"
    has_targets = True
    partition_panels = frozenset({PLACED})
    topic_panels = frozenset({"topics"})
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.PLACEMENT)]

    _began = False
    """Whether a topic has been selected. It stays selected when another topic becomes the worst."""

    _of_broker = False
    """Whether only partitions on the selected broker are listed: after the user selected another broker, and
    until they select another topic."""

    _hold: _Hold | None = None
    """How the topics were listed when the user last selected one."""

    def body(self) -> ComposeResult:
        yield Rule()
        yield Heading(id="heading")
        yield Table(id="grid")
        yield Rule(id="above")
        with Container(id="lists"):
            yield Table(id="topics")
            yield Bar()
            yield Rule(id="between")
            yield Table(id=PLACED)

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        listed = self.query_one("#topics", Table)
        listed.fill(lambda: topics.TopicRows(view, options, self._held()))
        if not self._began:
            self._began = listed.select(listed.selected)
        rows = cache(partial(PlacementRows, view, options, self._topic()))
        self.query_one(Heading).fill(lambda: rows().headline(self.app.size.width - 2))
        grid = self.query_one("#grid", Table)
        grid.fill(rows)
        height = self.page_height
        room = self.page_height - layout.CHROME - HEADING
        # A caption is about the brokers: they come before the lists.
        is_crowded = self.dashboard.teaching.caption is not None and room - LISTS < len(grid.rows) + 1
        is_low = height < LOW or is_crowded
        room -= 0 if is_low else LISTS
        grid.styles.height = max(3, min(len(grid.rows) + 1, room))
        self.query_one("#lists").display = self.query_one("#above").display = not is_low
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
        height = self.page_height
        room = height - layout.CHROME - 3 - used
        is_beside = size.width >= BESIDE_WIDTH
        topics_height = min(len(listed.rows) + 2, max(LEAST_TOPICS, room // 3))
        is_below = not is_beside and room - topics_height - 1 >= LEAST_PARTITIONS
        self.query_one("#lists").styles.layout = "horizontal" if is_beside else "vertical"
        listed.styles.width = f"{TOPICS_SHARE}%" if is_beside else "1fr"
        listed.styles.height = topics_height if is_below else "1fr"
        self.query_one(Bar).display = is_beside
        self.query_one("#between").display = is_below
        self.query_one(f"#{PLACED}").display = is_beside or is_below

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

    def action_racks(self) -> None:
        """Order the brokers round-robin over the racks, or group them by rack."""
        options = self.dashboard.options
        self.dashboard.set_options(replace(options, racks_together=not options.racks_together))

    def action_topic(self, by: int) -> None:
        """Select another topic, regardless of which panel is focused."""
        self._hold_order()
        self.query_one("#topics", Table).step(by)

    def _hold_order(self) -> None:
        """Keep the topics in their order, so that the next key goes to the topic that is listed next."""
        sort = self.dashboard.options.sort(topics.PANEL)
        self._hold = _Hold(self.query_one("#topics", Table).keys, sort, self.dashboard.now_ms())

    def _held(self) -> Sequence[Hashable]:
        """Return the topics in the order that is kept, or nothing if no topic was selected lately."""
        hold = self._hold
        if hold is None or hold.sort != self.dashboard.options.sort(topics.PANEL):
            return ()
        return hold.keys if 0 <= self.dashboard.now_ms() - hold.at_ms < HOLD_MS else ()

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
        self._hold_order()
        self.update()

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if event.table.id == PLACED and isinstance(event.key, tuple):
            self.dashboard.go.partition(*event.key)
        elif isinstance(event.key, int):
            self.dashboard.go.broker(event.key)
        else:
            self.action_open()
