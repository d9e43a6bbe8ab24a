"""Enter on a broker: what it is doing, the replicas it has, and what happened to it."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from kview.derive.partitions.log import events_of_broker
from kview.derive.view import View
from kview.language import history
from kview.language.payloads import Form
from kview.model.inspection import SettingsRequest
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.faults import Target
from kview.tui.keys import ACTIONS
from kview.tui.rows import broker_replicas
from kview.tui.rows.broker_details import SetRows
from kview.tui.rows.broker_heading import LINES, broker_heading
from kview.tui.rows.settings import SettingDetail
from kview.tui.screens.base import KviewScreen
from kview.tui.text import Line, Title, cut
from kview.tui.widgets.broker_details import BrokerDetailsPanel
from kview.tui.widgets.drawn import Headed
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.partition_log import History
from kview.tui.widgets.table import Table

WIDE = 110
"""From this width on, the settings of the broker stand next to its events."""
LOW = 18
"""Below this height there are no events, so that the replicas have rows."""


class BrokerHeading(Headed):
    """The lines about the broker."""

    DEFAULT_CSS = f"BrokerHeading {{ height: {LINES - 1}; }}"

    make: Callable[[int, int], list[Line]] | None = None

    def let_go(self) -> None:
        """Drop the view, of which the lines are made."""
        super().let_go()
        self.make = None

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        """Return the lines, with ages as of now."""
        if self.make is None:
            return Title(), []
        first, *rest = self.make(app_of(self).now_ms(), width)
        return Title(first), [cut(spans, width) for spans in rest]


class BrokerScreen(KviewScreen):
    """The screen of a single broker."""

    CSS = """
    BrokerScreen #about { height: auto; }
    BrokerScreen #history_side { width: 5fr; }
    BrokerScreen #set_side { width: 4fr; }
    """

    AUTO_FOCUS = "#replicas"
    has_targets = True
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.BROKER)]
    partition_panels: ClassVar[frozenset[str]] = frozenset({"replicas"})

    def __init__(self, broker: int) -> None:
        super().__init__()
        self.broker = broker

    def body(self) -> ComposeResult:
        with Panel(id="about"):
            yield BrokerHeading(id="heading")
            yield BrokerDetailsPanel(self.broker, self.update)
        with Panel():
            yield Table(id="replicas")
        with Horizontal(id="bottom"):
            with Panel(id="history_side"):
                yield History(id="history")
            with Panel(id="set_side"):
                yield Table(id="set")

    def lay_out_panels(self) -> None:
        """Give the list of events a fifth of the screen. A small screen has no events."""
        height = self.page_height
        bottom = self.query_one("#bottom")
        bottom.styles.height = max(1, min(11, height // 5 - 1)) + self.edge_lines
        bottom.display = height >= LOW

    def draw(self, view: View) -> None:
        broker, options = self.broker, self.dashboard.options
        self.query_one(BrokerHeading).make = lambda now_ms, cells: broker_heading(view, broker, now_ms, cells)
        details = self.query_one(BrokerDetailsPanel)
        details.show(view, count_set=not self._is_wide, inner_width=self.inner_width)
        beside = self._is_wide and details.details.settings is not None
        self.query_one("#set_side").display = beside
        if beside:
            self.query_one("#set", Table).fill(lambda: SetRows(details.details))
        self.query_one("#replicas", Table).fill(
            lambda: broker_replicas.BrokerReplicaRows(view, broker, options)
        )
        self.query_one(History).fill(
            history.TITLE_OF_BROKER,
            lambda: (events_of_broker(view.events, broker), ""),
            history.NOTHING_OF_BROKER,
        )

    @property
    def _is_wide(self) -> bool:
        return self.app.size.width >= WIDE

    def action_settings(self) -> None:
        self.dashboard.go.settings(broker=self.broker)

    def target(self) -> Target | None:
        """Return the broker of this screen."""
        return Target(self.broker)

    def selected_broker(self) -> int | None:
        """Return the broker of this screen."""
        return self.broker

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, tuple):
            self.dashboard.go.partition(*event.key)
        elif isinstance(event.table.rows, SetRows):
            setting = event.table.rows.setting(event.table.index)
            request = SettingsRequest(broker=self.broker)
            app_of(self).go.detail(SettingDetail(request, setting), Form.AUTO)
