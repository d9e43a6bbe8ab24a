"""A record or a setting in full, which scrolls. A key changes between text, JSON and hex."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from kview.derive.view import View
from kview.language.payloads import Form, next_form
from kview.tui.actions import Where, bindings
from kview.tui.keys import ACTIONS
from kview.tui.rows.records import DetailRows
from kview.tui.screens.base import KviewScreen
from kview.tui.text import Role, Span
from kview.tui.widgets.inspecting import Detail
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import GUTTER, Table


class DetailScreen(KviewScreen):
    """Shows a `Detail`. It stays as it was read, whatever happens in the cluster."""

    AUTO_FOCUS = "#detail"
    is_filtered = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.DETAIL)]

    def __init__(self, detail: Detail, form: Form = Form.AUTO) -> None:
        super().__init__()
        self._detail = detail
        self._form = form
        self._made_for: tuple[Form, int] | None = None

    def body(self) -> ComposeResult:
        with Panel(id="heading"):
            yield Table(id="detail", opens=False)

    def let_go(self) -> None:
        """Drop the lines, which are made again."""
        super().let_go()
        self._made_for = None

    def draw(self, view: View) -> None:
        """Draw the lines, again only if the form or the width has changed."""
        cells = max(10, self.inner_width - GUTTER)
        if self._made_for == (self._form, cells):
            return
        self._made_for = (self._form, cells)
        form = Span(f"  as {self._form.value}" if self._form is not Form.AUTO else "", Role.DIM)
        self.query_one(Panel).entitle(lambda: (*self._detail.title(), form))
        self.query_one("#detail", Table).fill(lambda: DetailRows(self._detail.lines(self._form, cells)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action works: some details have only one form."""
        return self._detail.forms if action == "form" else super().check_action(action, parameters)

    def action_form(self) -> None:
        """Show it in the next form."""
        self._form = next_form(self._form)
        self.update()
