"""3 Topics: one line per topic, the worst first."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from kview.derive.view import View
from kview.tui.rows import topic_list
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table


class TopicsScreen(KviewScreen):
    """The list of all topics."""

    AUTO_FOCUS = "#topic_list"
    topic_panels: ClassVar[frozenset[str]] = frozenset({"topic_list"})

    def body(self) -> ComposeResult:
        with Panel():
            yield Table(id="topic_list")

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        self.query_one("#topic_list", Table).fill(lambda: topic_list.TopicListRows(view, options))

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, str):
            self.dashboard.go.topic(event.key)
