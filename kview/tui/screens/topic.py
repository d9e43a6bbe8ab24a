"""Enter on a topic or a partition: all the topic's partitions."""

from typing import ClassVar

from textual.app import ComposeResult

from kview.derive.view import View
from kview.tui.aim import Target, leader_of
from kview.tui.options import Options
from kview.tui.rows.partitions import PartitionRows
from kview.tui.rows.placement import PlacementRows
from kview.tui.screens.base import KviewScreen
from kview.tui.text import EMPTY, Line, line
from kview.tui.widgets.bottom import Rule
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.table import Table


class Heading(Lines):
    """A line that says what the screen is about."""

    DEFAULT_CSS = "Heading { height: 1; }"

    text: Line = EMPTY

    def lines(self, width: int, height: int) -> list[Line]:
        """The line."""
        return [line("  ", *self.text)]


class TopicScreen(KviewScreen):
    """One topic: its partitions with leader, epoch, replicas, ISR, log start, watermark, uncommitted."""

    AUTO_FOCUS = "#partitions"
    has_targets = True
    panel_sorts: ClassVar[dict[str, int]] = {}

    def __init__(self, topic: str, partition: int = -1) -> None:
        super().__init__()
        self.topic = topic
        self._wanted = partition

    def body(self) -> ComposeResult:
        """The panels."""
        yield Rule()
        yield Heading(id="heading")
        yield Table(id="partitions", opens=False)

    def draw(self, view: View) -> None:
        """Hand the panels a picture."""
        self.query_one(Heading).text = PlacementRows(view, Options(), self.topic).headline()
        table = self.query_one("#partitions", Table)
        table.set_rows(PartitionRows(view, self.kview.options, self.topic))
        if self._wanted >= 0:
            table.select((self.topic, self._wanted))
            self._wanted = -1

    def target(self) -> Target | None:
        """The leader of the selected partition."""
        selected = self.query_one("#partitions", Table).selected
        return leader_of(self.view, *selected) if self.view and isinstance(selected, tuple) else None
