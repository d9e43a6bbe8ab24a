"""What is wrong now, in whole sentences, and the incidents that go on or that nobody has opened yet."""

from textual import on
from textual.app import ComposeResult

from kview.derive.view import View
from kview.model.incidents import Incident
from kview.tui.rows.wrong import WrongKey, WrongRows
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.headline import shown_incidents
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import GUTTER, Table


class WrongScreen(KviewScreen):
    """What the head says in a few words. Incidents that are over count as opened once it is left."""

    AUTO_FOCUS = "#wrong"
    is_filtered = False
    says_what_is_wrong = True

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Incident] = []

    def body(self) -> ComposeResult:
        with Panel():
            yield Table(id="wrong")

    def draw(self, view: View) -> None:
        at, cells = self.dashboard, self.inner_width - GUTTER
        self._shown = shown_incidents(view, at.opened_incidents)
        self.query_one("#wrong", Table).fill(
            lambda: WrongRows(view, self._shown, at.now_ms(), at.zone, cells)
        )

    def on_unmount(self) -> None:
        """Note that its incidents were opened."""
        for incident in self._shown:
            self.dashboard.opened(incident.key)

    @on(Table.Opened, "#wrong")
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, WrongKey) and event.key.about is not None:
            self.dashboard.go.incident(event.key.about)
