"""8 Lab: what is set in the simulated cluster, to be changed while it runs."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from kview.derive.view import View
from kview.language import lab as words
from kview.model.lab import GroupSetting, LinkSetting, ProducerSetting, Setting, TopicSetting
from kview.model.units import UNKNOWN
from kview.tui.actions import Where, bindings
from kview.tui.faults import Target
from kview.tui.keys import ACTIONS
from kview.tui.rows.lab import OLD_MS, LabRows
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.explanation import Explanation
from kview.tui.widgets.minute_plot import BROKER_INPUT, GROUP_LAG, TOPIC_INPUT, MinutePlot
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

LEAST_PLOT = 6
"""The fewest lines for the plot of what the selected setting changes, without its edges."""

LEAST_HEIGHT = 20
"""From this height of the page on, it says what a change of the selected setting does."""


class LabScreen(KviewScreen):
    """The list of producers, groups, topics and networks with what is set, and the keys that change it."""

    AUTO_FOCUS = "#lab"
    CSS = "LabScreen #watch_side { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.LAB)]
    has_targets = True

    _asked_for: View | None = None
    """The view with which the cluster was last asked what is set."""

    def let_go(self) -> None:
        """Drop the view. The cluster is asked again when the screen is shown again."""
        super().let_go()
        self._asked_for = None

    def body(self) -> ComposeResult:
        with Panel(id="lab_side"):
            yield Table(id="lab")
        with Panel(id="effect_side"):
            yield MinutePlot(TOPIC_INPUT, id="effect")
        with Panel(id="watch_side"):
            yield Explanation(id="watch")

    def draw(self, view: View) -> None:
        lab, dashboard = self.dashboard.lab, self.dashboard
        if view is not self._asked_for:
            self._asked_for = view
            lab.ask()
        listed, age_ms = self.query_one("#lab", Table), self._age_ms
        listed.fill(lambda: LabRows(lab.settings, view, dashboard.options, age_ms, lab.failed))
        self._explain()
        room = self.room - (Explanation.MOST_LINES + self.edge_lines) * self._explains
        number = len(tuple(lab.settings or ()))
        self.split(room, "lab_side", "effect_side", number + 1 if number else room, LEAST_PLOT)
        self._plot(view)

    @property
    def _explains(self) -> bool:
        return self.page_height >= LEAST_HEIGHT

    def _plot(self, view: View) -> None:
        """Draw what the selected setting changes."""
        plot = self.query_one(MinutePlot)
        plot.view, plot.about = view, ""
        match self._setting():
            case GroupSetting() as group:
                plot.figure, plot.about = GROUP_LAG, group.name
            case LinkSetting() as link:
                plot.figure, plot.about = BROKER_INPUT, str(link.broker)
            case ProducerSetting() as producer:
                plot.figure, plot.about = TOPIC_INPUT, producer.topic
            case TopicSetting() as topic:
                plot.figure, plot.about = TOPIC_INPUT, topic.name

    @property
    def _age_ms(self) -> int:
        """How old the settings shown are."""
        dashboard = self.dashboard
        return 0 if dashboard.lab.asked_ms == UNKNOWN else dashboard.wall_ms() - dashboard.lab.asked_ms

    def tick(self, whole_second: bool) -> None:
        """Say how old the settings are also while no view comes, because the cluster hangs."""
        super().tick(whole_second)
        if whole_second and self._age_ms > OLD_MS and self.view is not None:
            self.draw(self.view)

    def _explain(self) -> None:
        of = self._setting()
        self.query_one("#watch_side").display = self._explains
        self.query_one(Explanation).say(words.watch(of) if of is not None else "", self.inner_width)

    def _setting(self) -> Setting | None:
        table = self.query_one("#lab", Table)
        rows = table.rows
        return rows.setting(table.selected) if isinstance(rows, LabRows) else None

    def target(self) -> Target | None:
        """Return the broker whose network is selected."""
        broker = self.selected_broker()
        return None if broker is None else Target(broker)

    def selected_broker(self) -> int | None:
        """Return the broker whose network is selected."""
        of = self._setting()
        return of.broker if isinstance(of, LinkSetting) else None

    def action_adjust(self, what: str) -> None:
        """Carry out a key of the panel for the selected setting."""
        self.dashboard.lab.do(what, self._setting())

    @on(Table.Moved)
    def _another(self) -> None:
        self._explain()
        if self.view is not None:
            self._plot(self.view)
            self.query_one(MinutePlot).redraw()

    @on(Table.Opened)
    def _open(self) -> None:
        go = self.dashboard.go
        match self._setting():
            case ProducerSetting() as producer:
                go.topic(producer.topic)
            case GroupSetting() as group:
                go.group(group.name)
            case LinkSetting() as link:
                go.broker(link.broker)
            case None:
                pass
            case topic:
                go.topic(topic.name)
