"""The lines that a screen types into: the filter, and the answer to a question."""

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on
from textual.screen import Screen
from textual.widgets import Input

from kview.language import filters
from kview.model.events import Severity
from kview.tui.app_of import app_of
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.key_line import KeyLine
from kview.tui.widgets.prompt import Prompt, Question, fitting
from kview.tui.widgets.table import Table

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

FILTER_HINT = f"part of a name, or {filters.FORMS}"


class AskingScreen(Screen[None], inherit_bindings=False):
    """A screen with a filter line `#filter` and a `Prompt`. It has the class `-filtering` or `-asking` while
    one of them is typed into, and the panel that was focused before gets the focus back."""

    @property
    def dashboard(self) -> "KviewApp":
        return app_of(self)

    def say(self) -> None:
        """Draw the status line."""
        raise NotImplementedError

    @property
    def is_typing(self) -> bool:
        """Whether a line is being typed: a filter, or the answer to a question."""
        return self.has_class("-asking") or self.has_class("-filtering")

    def begin_filter(self) -> None:
        """Ask for the part of a name to filter by."""
        self.add_class("-filtering")
        line = self.query_one("#filter", Input)
        line.placeholder = fitting(FILTER_HINT, self.app.size.width)
        line.value = self.dashboard.options.filter
        self.set_focus(line)

    def _end_filter(self, keep: bool) -> None:
        self.remove_class("-filtering")
        if not keep:
            self.query_one("#filter", Input).value = ""
            self._filter_by("")
        self._focus_panel()
        self.say()

    def ask(self, question: Question) -> None:
        """Ask a question in place of the status line."""
        if self.has_class("-filtering"):
            self._end_filter(keep=True)
        self.query_one(Prompt).ask(question)

    def _end_question(self) -> Question | None:
        if self.has_class("-refused"):
            self.remove_class("-refused")
            self.dashboard.clear_message()
        question = self.query_one(Prompt).leave()
        self._focus_panel()
        return question

    @on(Input.Submitted, "#prompt")
    def _answered(self, event: Input.Submitted) -> None:
        asked, typed = self.query_one(Prompt).question, event.value.strip()
        if asked is not None and typed and (wrong := asked.problem(typed)):
            self.add_class("-refused")
            self.dashboard.say(StatusMessage(wrong, severity=Severity.WARN))
            return
        question = self._end_question()
        if question is not None:
            question.answer(event.value.strip())

    def _focus_panel(self) -> None:
        if tables := [table for table in self.query(Table) if table.display]:
            self.set_focus(self._before_filter() or tables[0])
        else:
            self.set_focus(None)

    def _before_filter(self) -> Table | None:
        return next((table for table in self.query(Table) if table.id == self._last_table), None)

    _last_table: str | None = None

    def on_descendant_focus(self) -> None:
        """Remember which panel had the focus, so that it gets the focus back after the filter line."""
        if isinstance(self.focused, Table):
            self._last_table = self.focused.id
        self.query_one(KeyLine).redraw()

    @on(Input.Changed, "#filter")
    def _filter_typed(self, event: Input.Changed) -> None:
        if self.has_class("-filtering"):
            self._filter_by(event.value)

    @on(Input.Submitted, "#filter")
    def _filter_kept(self) -> None:
        self._end_filter(keep=True)

    def _filter_by(self, text: str) -> None:
        self.dashboard.set_options(replace(self.dashboard.options, filter=text))
