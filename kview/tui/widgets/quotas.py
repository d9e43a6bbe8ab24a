"""The panel of client quotas, which are read when it comes into sight."""

from typing import ClassVar

from textual.binding import BindingType

from kview.language import inspection as said
from kview.model.inspection import QuotasAnswer, QuotasRequest
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.rows.quotas import QuotaRows
from kview.tui.text import Role
from kview.tui.widgets.inspecting import InspectingTable


class QuotasPanel(InspectingTable):
    """The client quotas. They are read once, and again by a key."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.QUOTAS)]

    def __init__(self) -> None:
        super().__init__(id="quotas", opens=False)
        self._answer: QuotasAnswer | None = None
        self._asked = False

    def show(self) -> None:
        """Read the quotas when the panel is in sight for the first time."""
        if not self._asked:
            self._asked = True
            self.action_read()

    def refill(self) -> None:
        answer, zone = self._answer, app_of(self).zone
        self.fill(lambda: QuotaRows(answer, zone))

    def action_read(self) -> None:
        self.ask(QuotasRequest(), "the quotas", self._take)

    def _take(self, answer: QuotasAnswer) -> None:
        self._answer = answer
        nothing = "" if answer.quotas or answer.failure else said.NO_QUOTAS
        why = said.failure(answer.failure, answer)
        self.message(why or nothing, Role.WARN if answer.failure else Role.DIM)
        self.refill()
