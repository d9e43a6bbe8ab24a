"""`:`: go to anything by part of its name, or run a command. A selected theme is previewed.

The list lies over the screen, which stays visible.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from msgspec import Struct
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from kview.tui.fuzzy import rank
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, name_width
from kview.tui.rows.row import Row
from kview.tui.screens.over import OverScreen
from kview.tui.text import EMPTY, Line, Role, Span, line
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.prompt import fitting
from kview.tui.widgets.table import Table


class Command(Struct, frozen=True):
    """A command. `preview` shows the command's result for as long as the command is selected."""

    name: str
    key: str
    help: str
    run: Callable[[], Awaitable[None] | None]
    preview: Callable[[], None] | None = None


Found = tuple[tuple[int, int], Command]
"""What matches, with its rank: less is better."""

IN_HELP = 6
"""The rank of a command whose help has the words, but whose name does not match."""

MOST_SHOWN = 100
"""The most matches listed. Nobody reads further."""


def matching(commands: Sequence[Command], typed: str, places: Sequence[Found] = ()) -> list[Command]:
    """Return the commands and places that match what was typed, the best first.

    A command matches by the letters of its name, in order, or by words in its help.
    """
    wanted = typed.casefold().split()
    ranked: list[Found] = []
    for command in commands:
        at = rank(typed, command.name)
        if at is None and all(word in f"{command.name} {command.help}".casefold() for word in wanted):
            at = IN_HELP, 0
        if at is not None:
            ranked.append(((at[0], at[1] if wanted else 0), command))
    return [command for _, command in sorted([*ranked, *places], key=lambda each: each[0])][:MOST_SHOWN]


HINT = "part of a name: ovr, invoice-3, broker 4, crash broker 0"


class CommandRows(Keyed[int]):
    """The rows of commands. The key is the command's place in the list."""

    empty = "nothing matches"

    def __init__(self, commands: list[Command]) -> None:
        super().__init__(range(len(commands)))
        self._commands = commands
        self.title: Line = line(Span("GO TO", Role.HEAD))
        self.columns = (
            Column("name", "", name_width((command.name for command in commands), 16, 32), name=True),
            Column("key", "", 6),
            Column("help", "", 20, flex=1, rank=1),
        )

    def row(self, index: int, now_ms: int) -> Row:
        command = self._commands[index]
        return Row(
            (
                line(command.name),
                line(Span(command.key, Role.KEY)),
                line(Span(command.help, Role.DIM)) or EMPTY,
            )
        )


class CommandScreen(OverScreen, inherit_bindings=False):
    """An input line above what matches."""

    CSS = """
    CommandScreen { align: center top; background: $background 0%; }
    CommandScreen Panel {
        width: 94%; max-width: 100; height: 60%; min-height: 10; max-height: 18; margin-top: 2;
    }
    CommandScreen Input { height: 1; }
    """
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+p", "leave", "back", key_display="Esc")]

    def __init__(
        self,
        commands: Sequence[Command],
        places: Callable[[str], Sequence[Found]],
        restore: Callable[[], None],
    ) -> None:
        super().__init__()
        self._commands = list(commands)
        self._places = places
        self._restore = restore
        self._listed: list[Command] = []

    def compose(self) -> ComposeResult:
        with Panel():
            yield Input(placeholder=fitting(HINT, self.app.size.width * 9 // 10), compact=True)
            yield Table(id="commands")

    def on_mount(self) -> None:
        """Show all commands."""
        self._show("")

    def _show(self, typed: str) -> None:
        table = self.query_one(Table)
        table.fill(lambda: self._found(typed))
        table.action_end(-1)
        self._preview()

    def _found(self, typed: str) -> CommandRows:
        self._listed = matching(self._commands, typed, self._places(typed))
        return CommandRows(self._listed)

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
        return self._listed[selected] if isinstance(selected, int) else None

    def on_key(self, event: events.Key) -> None:
        """Move in the list with up and down while the input line is focused."""
        if event.key in ("up", "down") and isinstance(self.focused, Input):
            self.query_one(Table).action_move(-1 if event.key == "up" else 1)
            event.prevent_default().stop()

    @on(Input.Submitted)
    @on(Table.Opened)
    def _run(self) -> None:
        command = self._selected()
        if command is not None and self.leave():  # or the list says that nothing matches
            self._restore()
            self.app.call_next(command.run)

    def action_leave(self) -> None:
        """Leave, and restore the theme that was in use."""
        self._restore()
        self.leave()
