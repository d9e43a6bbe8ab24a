"""The screens of a partition's records, of the settings of a topic or a broker, and of client quotas."""

from textual.app import ComposeResult

from kview.derive.view import View
from kview.model.units import NO_BROKER
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.quotas import QuotasPanel
from kview.tui.widgets.records import RecordsPanel
from kview.tui.widgets.settings import SettingsPanel


class RecordsScreen(KviewScreen):
    """The records of a partition."""

    AUTO_FOCUS = "#records"
    is_filtered = False

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__()
        self._topic = topic
        self._partition = partition

    def body(self) -> ComposeResult:
        with Panel():
            yield RecordsPanel(self._topic, self._partition)

    def draw(self, view: View) -> None:
        self.query_one(RecordsPanel).show(view, self.dashboard.options)


class SettingsScreen(KviewScreen):
    """The settings of a topic, or of a broker."""

    AUTO_FOCUS = "#settings"
    is_filtered = False

    def __init__(self, topic: str = "", broker: int = NO_BROKER) -> None:
        super().__init__()
        self._topic = topic
        self._broker = broker

    def body(self) -> ComposeResult:
        with Panel():
            yield SettingsPanel(self._topic, self._broker)

    def draw(self, view: View) -> None:
        self.query_one(SettingsPanel).show(view, self.dashboard.options)


class QuotasScreen(KviewScreen):
    """The client quotas of the cluster."""

    AUTO_FOCUS = "#quotas"
    is_filtered = False

    def body(self) -> ComposeResult:
        with Panel():
            yield QuotasPanel()

    def draw(self, view: View) -> None:
        self.query_one(QuotasPanel).show()
