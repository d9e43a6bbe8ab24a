"""The panel of the settings of a topic or a broker, which are read when it comes into sight."""

from typing import ClassVar

from textual.binding import BindingType

from kview.derive.view import View
from kview.language import inspection as said
from kview.language.payloads import Form
from kview.model.inspection import SettingsAnswer, SettingsRequest
from kview.model.units import NO_BROKER
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows.settings import SettingDetail, SettingRows
from kview.tui.text import Role
from kview.tui.widgets.inspecting import InspectingTable
from kview.tui.widgets.prompt import Question


class SettingsPanel(InspectingTable):
    """The settings of a topic, or of a broker if `topic` is ''. They are read once, and again by a key."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.SETTINGS)]

    def __init__(self, topic: str = "", broker: int = NO_BROKER, *, id: str = "settings") -> None:
        super().__init__(id=id)
        self._request = SettingsRequest(topic, broker)
        self._answer: SettingsAnswer | None = None
        self._search = ""
        self._asked = False

    def show(self, view: View, options: Options) -> None:
        """Read the settings when the panel is in sight for the first time."""
        if not self._asked:
            self._asked = True
            self.action_read()

    def refill(self) -> None:
        zone = app_of(self).zone
        self.fill(lambda: SettingRows(self._request, self._answer, self._search, zone))

    def action_read(self) -> None:
        self.ask(self._request, "the settings", self._take)

    def _take(self, answer: SettingsAnswer) -> None:
        before = self._answer
        if answer.failure and before is not None and before.settings:
            old = " (the settings above are from an earlier read)"
            self.message(f"{said.failure(answer.failure, answer)}{old}", Role.WARN)
            return
        self._answer = answer
        self.message(said.failure(answer.failure, answer), Role.WARN)
        self.refill()

    def action_find(self) -> None:
        """Ask for a text that the settings shown contain."""
        app_of(self).ask(
            Question("filter", "part of a setting's name or value; empty shows all", "filter", self._find)
        )

    def _find(self, typed: str) -> None:
        self._search = typed
        self.refill()

    def action_open(self) -> None:
        """Show the selected setting in full."""
        index = self.rows.find(self.selected) if self.selected is not None else None
        if index is not None and isinstance(self.rows, SettingRows):
            detail = SettingDetail(self._request, self.rows.setting(index))
            app_of(self).go.detail(detail, Form.AUTO)
