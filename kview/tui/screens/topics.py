"""3 Topics: one line per topic, and below them what is written to the selected one, and who reads it."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from kview.derive.view import View
from kview.tui.layout import SIDE_BY_SIDE_WIDTH
from kview.tui.rows.topic_groups import TopicGroupRows
from kview.tui.rows.topic_list import TopicListRows
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.minute_plot import TOPIC_INPUT, MinutePlot
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

LEAST_BELOW = 6
"""The fewest lines for the panels below the list, without their edges."""

LEAST_LISTED = 5
"""The list's head and rows, before there is anything below it."""

LOW_PLOT = 6
"""The lines of the plot where the groups are below it, without its edges."""


class TopicsScreen(KviewScreen):
    """The list of all topics, and more about the selected one."""

    AUTO_FOCUS = "#topic_list"
    CSS = "TopicsScreen #below { height: 1fr; } TopicsScreen #readers_side { width: 1fr; height: 1fr; }"
    topic_panels: ClassVar[frozenset[str]] = frozenset({"topic_list"})

    def body(self) -> ComposeResult:
        with Panel(id="list_side"):
            yield Table(id="topic_list")
        with Container(id="below"):
            with Panel(id="plot_side"):
                yield MinutePlot(TOPIC_INPUT, id="topic_plot")
            with Panel(id="readers_side"):
                yield Table(id="topic_groups")

    def draw(self, view: View) -> None:
        options, listed = self.dashboard.options, self.query_one("#topic_list", Table)
        listed.fill(lambda: TopicListRows(view, options))
        hidden = 0 if options.internal else int(view.topics.internal.sum())
        self._lay_out(len(view.topics.topic) - hidden)
        self._show_selected(view)

    def _show_selected(self, view: View) -> None:
        """Show more about the selected topic."""
        options, selected = self.dashboard.options, self.query_one("#topic_list", Table).selected
        topic = selected if isinstance(selected, str) else ""
        plot = self.query_one(MinutePlot)
        plot.view, plot.about = view, topic
        readers = self.query_one("#topic_groups", Table)
        if readers.is_shown:
            readers.fill(lambda: TopicGroupRows(view, topic, options))
        else:
            readers.let_go()

    def _lay_out(self, topics: int) -> None:
        """Give the panels below the list what all topics leave free, so that a filter moves no panel, but at
        least a few lines."""
        edges, below = self.edge_lines, self.query_one("#below")
        least = LEAST_LISTED if topics else self.room
        left = self.split(self.room, "list_side", "below", topics + 1, LEAST_BELOW, least)
        is_beside = self.app.size.width >= SIDE_BY_SIDE_WIDTH
        below.styles.layout = "horizontal" if is_beside else "vertical"
        plot = self.query_one("#plot_side")
        plot.display = is_beside or left >= LEAST_BELOW + LOW_PLOT + 2 * edges
        plot.styles.width = "40%" if is_beside else "1fr"
        plot.styles.height = "1fr" if is_beside else LOW_PLOT + edges

    @on(Table.Moved, "#topic_list")
    def _another_topic(self) -> None:
        if self.view is not None:
            self._show_selected(self.view)
            self.query_one(MinutePlot).redraw()

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if event.table.id == "topic_groups" and isinstance(event.key, str):
            self.dashboard.go.group(event.key)
        elif isinstance(event.key, str):
            self.dashboard.go.topic(event.key)
