"""The two lists from which somebody chooses the answer of a drill: what was hit, then what happened."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kview.tui.layout import edge_lines
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.row import Row
from kview.tui.screens.over import OverScreen
from kview.tui.text import Line, Role, Span, line
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

MARGIN_ROWS = 8
"""The rows of the screen that the list leaves free."""

Choices = Sequence[tuple[str, str]]
"""What can be chosen: a key, and its text."""


class ChoiceRows(Keyed[str]):
    """The rows of choices. The key is that of the choice."""

    empty = "there is nothing to choose"
    columns: Sequence[Column] = (Column("text", "", 20, flex=1),)

    def __init__(self, title: str, choices: Choices) -> None:
        super().__init__([key for key, _ in choices])
        self._texts = [text for _, text in choices]
        self.title: Line = line(Span(title, Role.HEAD), Span("  Enter choose  Esc look again", Role.DIM))

    def row(self, index: int, now_ms: int) -> Row:
        return Row((line(self._texts[index]),))


class AnswerList(Table):
    """A list in which the first row follows the last one, because all of it is read before one is chosen."""

    def action_move(self, by: int) -> None:
        """Select the row `by` rows further down (negative: up), and go on at the other end."""
        self.step(by)


class AnswerScreen(OverScreen, inherit_bindings=False):
    """A list of choices above the screen. `chosen` gets the key of the choice."""

    CSS = """
    AnswerScreen { align: center middle; background: $background 0%; }
    AnswerScreen Panel { width: 72; max-width: 96%; }
    """
    AUTO_FOCUS = "Table"
    CHOOSES: ClassVar[str] = "choose"
    """What Enter does, for the key line of the screen below."""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "back", key_display="Esc")]

    def __init__(self, title: str, choices: Choices, chosen: Callable[[str], None]) -> None:
        super().__init__()
        self._title, self._choices, self._chosen = title, choices, chosen

    def compose(self) -> ComposeResult:
        with Panel():
            yield AnswerList(id="answers")

    def on_mount(self) -> None:
        table = self.query_one(Table)
        needed = len(self._choices) + edge_lines(framed=True)
        self.query_one(Panel).styles.height = min(needed, max(6, self.app.size.height - MARGIN_ROWS))
        table.fill(lambda: ChoiceRows(self._title, self._choices))

    def action_leave(self) -> None:
        """Choose nothing."""
        self.leave()

    @on(Table.Opened)
    def _choose(self, event: Table.Opened) -> None:
        if self.leave():
            self.app.call_next(self._chosen, str(event.key))
