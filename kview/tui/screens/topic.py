"""Enter on a topic: its partitions, the groups that read it, its records, its settings, who writes to it, and
its traffic over time, each in a tab."""

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from kview.derive.view import View
from kview.model.units import NO_PARTITION
from kview.tui.actions import Where, bindings
from kview.tui.faults import Target, leader_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows.partitions import PartitionRows
from kview.tui.rows.topic_groups import TopicGroupRows
from kview.tui.rows.topic_heading import topic_heading
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.choice_line import Choice, ChoiceLine
from kview.tui.widgets.over_time import OverTime
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.producers import ProducersPanel
from kview.tui.widgets.records import RecordsPanel
from kview.tui.widgets.settings import SettingsPanel
from kview.tui.widgets.table import Table


class PartitionsPanel(Table):
    """The partitions of a topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(id="partitions")
        self.topic = topic

    def show(self, view: View, options: Options) -> None:
        self.fill(lambda: PartitionRows(view, options, self.topic))


class GroupsPanel(Table):
    """The groups that read a topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(id="topic_groups")
        self.topic = topic

    def show(self, view: View, options: Options) -> None:
        self.fill(lambda: TopicGroupRows(view, self.topic, options))


TabPanel = PartitionsPanel | GroupsPanel | OverTime | RecordsPanel | SettingsPanel | ProducersPanel
"""The panel of a tab, which can have the focus. Only the panel in sight is asked to draw."""


class Tab(NamedTuple):
    """A tab: its name, and what makes its panel for a topic."""

    name: str
    make: Callable[[str], TabPanel]


TABS = (
    Tab("Partitions", PartitionsPanel),
    Tab("Groups", GroupsPanel),
    Tab("Records", RecordsPanel),
    Tab("Settings", SettingsPanel),
    Tab("Producers", ProducersPanel),
    Tab("Over time", OverTime),
)
"""The tabs of a topic, in order. The keys ← and → and a click go from one to another."""


class TopicScreen(KviewScreen):
    """The screen of a single topic."""

    AUTO_FOCUS = "#partitions"
    CSS = "TopicScreen #heading { height: auto; }"
    is_filtered = False
    has_targets = True
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.TOPIC)]

    def __init__(self, topic: str, partition: int = -1) -> None:
        super().__init__()
        self.topic = topic
        self._wanted = partition
        self._tab = TABS[0].name
        self._panels: dict[Hashable, TabPanel] = {}

    def body(self) -> ComposeResult:
        with Panel(id="heading"):
            yield ChoiceLine(id="tabs")
        with Panel(id="tab"):
            for tab in TABS:
                panel = self._panels[tab.name] = tab.make(self.topic)
                panel.display = tab.name == self._tab
                yield panel

    def draw(self, view: View) -> None:
        around = self.query_one("#heading", Panel)
        around.entitle(lambda: topic_heading(view, self.topic, self.title_cells))
        self.query_one(ChoiceLine).fill(_choices, self._tab)
        self._panels[self._tab].show(view, self.dashboard.options)
        table = self._table()
        if self._wanted >= 0 and table is not None:
            table.select((self.topic, self._wanted))
            self._wanted = -1

    def _table(self) -> Table | None:
        """Return the partitions, if they are in sight."""
        panel = self._panels[self._tab]
        return panel if isinstance(panel, PartitionsPanel) else None

    def action_tab(self, by: int) -> None:
        """Show another tab."""
        self._show_tab(self.query_one(ChoiceLine).after(by))

    @on(ChoiceLine.Chosen)
    def _chosen(self, event: ChoiceLine.Chosen) -> None:
        self._show_tab(event.key)

    def _show_tab(self, name: Hashable) -> None:
        table, panel = self._table(), self._panels[name]
        if table is not None and isinstance(panel, RecordsPanel) and isinstance(table.selected, tuple):
            panel.show_partition(table.selected[1])
        self._tab = str(name)
        for key, panel in self._panels.items():
            panel.display = key == name
            if not panel.display:
                panel.let_go()
        self.update()
        self._panels[name].focus()

    def partitions_in_sight(self) -> frozenset[tuple[str, int]]:
        """Return the topic, and those of its partitions that have a row on the screen."""
        table = self._table()
        keys = [key for key in table.in_sight if isinstance(key, tuple)] if table else []
        return frozenset([(self.topic, NO_PARTITION), *keys])

    def action_records(self) -> None:
        """Show the records of the selected partition."""
        self._show_tab("Records")

    def action_settings(self) -> None:
        self._show_tab("Settings")

    def target(self) -> Target | None:
        """Return the leader of the selected partition."""
        table = self._table()
        selected = table.aimed if table else None
        return leader_of(self.view, *selected) if self.view and isinstance(selected, tuple) else None

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, tuple):
            self.dashboard.go.partition(*event.key)
        elif isinstance(event.key, str):
            self.dashboard.go.group(event.key)


def _choices() -> Sequence[Choice]:
    return [Choice(tab.name, tab.name) for tab in TABS]
