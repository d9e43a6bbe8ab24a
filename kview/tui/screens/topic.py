"""Enter on a topic or a partition: all partitions of the topic."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kview.derive.view import View
from kview.tui.aim import Target, leader_of
from kview.tui.options import Options
from kview.tui.rows.partitions import PartitionRows
from kview.tui.rows.placement import PlacementRows
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.bottom import Rule
from kview.tui.widgets.heading import Heading
from kview.tui.widgets.table import Table


class TopicScreen(KviewScreen):
    """A topic's partitions, with leader, epoch, replicas, ISR, log start, watermark and uncommitted
    records."""

    AUTO_FOCUS = "#partitions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "records", "records", tooltip="read records of the selected partition"),
        Binding("e", "settings", "settings", tooltip="the topic's settings, and where they come from"),
    ]
    has_targets = True
    partition_panels: ClassVar[frozenset[str]] = frozenset({"partitions"})

    def __init__(self, topic: str, partition: int = -1) -> None:
        super().__init__()
        self.topic = topic
        self._wanted = partition

    def body(self) -> ComposeResult:
        """Make the panels of the screen."""
        yield Rule()
        yield Heading(id="heading")
        yield Table(id="partitions", opens=False)

    def draw(self, view: View) -> None:
        """Pass each panel its part of a view."""
        options = self.dashboard.options
        self.query_one(Heading).fill(lambda: PlacementRows(view, Options(), self.topic).headline())
        table = self.query_one("#partitions", Table)
        table.fill(lambda: PartitionRows(view, options, self.topic))
        if self._wanted >= 0:
            table.select((self.topic, self._wanted))
            self._wanted = -1

    def action_records(self) -> None:
        """Go to the records of the selected partition."""
        selected = self.query_one("#partitions", Table).selected
        if isinstance(selected, tuple):
            self.dashboard.show_records(*selected)

    def action_settings(self) -> None:
        """Go to the topic's settings."""
        self.dashboard.show_settings(self.topic)

    def target(self) -> Target | None:
        """Return the leader of the selected partition."""
        selected = self.query_one("#partitions", Table).selected
        return leader_of(self.view, *selected) if self.view and isinstance(selected, tuple) else None
