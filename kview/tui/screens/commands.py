"""`^p`: every command by name. A selected theme is previewed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line
from kview.tui.widgets.table import Table


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `preview` shows the command's result for as long as the command is selected."""

    name: str
    key: str
    help: str
    run: Callable[[], Awaitable[None] | None]
    preview: Callable[[], None] | None = None


def matching(commands: Sequence[Command], typed: str) -> list[Command]:
    """Return the commands whose name or help contains every word of `typed`, matches in the name first."""
    wanted = typed.casefold().split()
    found = [c for c in commands if all(word in f"{c.name} {c.help}".casefold() for word in wanted)]
    return sorted(found, key=lambda c: not all(word in c.name.casefold() for word in wanted))


class CommandRows(Keyed[str]):
    """The rows of commands. The key is the command's name."""

    empty = "no command matches"

    def __init__(self, commands: list[Command]) -> None:
        super().__init__([command.name for command in commands])
        self._commands = commands
        self.title: Line = line(Span("COMMANDS", Role.HEAD))
        self.columns = (
            Column("name", "", 20, flex=1, most=32),
            Column("key", "", 6),
            Column("help", "", 20, flex=4, rank=1),
        )

    def row(self, index: int, now_ms: int) -> Row:
        """Return a command's cells."""
        command = self._commands[index]
        return Row(
            (
                line(command.name),
                line(Span(command.key, Role.KEY)),
                line(Span(command.help, Role.DIM)) or EMPTY,
            )
        )


class CommandScreen(ModalScreen[None], inherit_bindings=False):
    """An input line above the commands that match what was typed."""

    CSS = """
    CommandScreen { align: center top; background: $background 100%; }
    CommandScreen > Vertical { width: 100%; height: 100%; }
    CommandScreen Input { height: 1; }
    """
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+p", "leave", "back", key_display="Esc")]

    def __init__(self, commands: Sequence[Command], restore: Callable[[], None]) -> None:
        super().__init__()
        self._commands = list(commands)
        self._restore = restore

    def compose(self) -> ComposeResult:
        """Make the input line and the list."""
        with Vertical():
            yield Input(
                placeholder="type part of a command; ↑↓ select, Enter runs it, Esc cancels", compact=True
            )
            yield Table(id="commands")

    def on_mount(self) -> None:
        """Show all commands."""
        self._show("")

    def _show(self, typed: str) -> None:
        table = self.query_one(Table)
        table.fill(lambda: CommandRows(matching(self._commands, typed)))
        table.action_end(-1)
        self._preview()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value)

    @on(Table.Moved)
    def _preview(self) -> None:
        command = self._selected()
        if command is not None and command.preview is not None:
            command.preview()
        else:
            self._restore()

    def _selected(self) -> Command | None:
        selected = self.query_one(Table).selected
        return next((command for command in self._commands if command.name == selected), None)

    def on_key(self, event: events.Key) -> None:
        """Move in the list with up and down while the input line is focused."""
        if event.key in ("up", "down") and isinstance(self.focused, Input):
            self.query_one(Table).action_move(-1 if event.key == "up" else 1)
            event.prevent_default().stop()

    @on(Input.Submitted)
    @on(Table.Opened)
    def _run(self) -> None:
        command = self._selected()
        self.dismiss()
        if command is not None:
            self._restore()
            self.app.call_next(command.run)

    def action_leave(self) -> None:
        """Leave, and restore the theme that was in use."""
        self._restore()
        self.dismiss()
