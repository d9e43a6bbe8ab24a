"""The panel of the producers that write to a topic, which are read when it comes into sight."""

from typing import ClassVar

from textual.binding import BindingType

from kview.derive.view import View
from kview.language import inspection as said
from kview.model.inspection import ProducersAnswer, ProducersRequest
from kview.model.snapshot import Transactions
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows.producers import ProducerRows
from kview.tui.text import Role
from kview.tui.widgets.inspecting import InspectingTable


class ProducersPanel(InspectingTable):
    """The producers of a topic. They are read once, and again by a key."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.PRODUCERS)]

    def __init__(self, topic: str) -> None:
        super().__init__(id="producers", opens=False)
        self._request = ProducersRequest(topic)
        self._answer: ProducersAnswer | None = None
        self._transactions: Transactions | None = None
        """Those of the last view, which has their names."""

    def show(self, view: View, options: Options) -> None:
        """Read the producers when the panel is in sight for the first time."""
        is_first, self._transactions = self._transactions is None, view.snapshot.transactions
        if is_first:
            self.action_read()

    def refill(self) -> None:
        answer, transactions, zone = self._answer, self._transactions, app_of(self).zone
        self.fill(lambda: ProducerRows(self._request, answer, transactions, zone))

    def action_read(self) -> None:
        self.ask(self._request, "the producers", self._take)

    def _take(self, answer: ProducersAnswer) -> None:
        self._answer = answer
        nothing = "" if answer.producers or answer.failure else said.NO_PRODUCERS
        self.message(said.unread(answer) or nothing, Role.WARN if answer.failure else Role.DIM)
        self.refill()
