"""`t`: a small list of themes above the screen, which is drawn in the selected theme until one is chosen."""

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

MOST_ROWS = 12
"""The most themes in sight. Further ones come into sight by scrolling."""


class ThemeRows(Keyed[str]):
    """The rows of themes. The key is the theme's name."""

    empty = "there is no theme"
    columns: Sequence[Column] = (Column("name", "", 8, flex=1, name=True),)

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.title: Line = line(Span("THEMES", Role.HEAD), Span("  Enter use  Esc cancel", Role.DIM))

    def row(self, index: int, now_ms: int) -> Row:
        return Row((line(self.keys[index]),))


class ThemeScreen(OverScreen, inherit_bindings=False):
    """The list of themes. The selected theme is in use while the list is open.

    `names` begins with the themes offered, and `current` is the one in use. `use` switches to a theme.
    """

    CSS = """
    ThemeScreen { align: right bottom; background: $background 0%; }
    ThemeScreen Panel { width: 36; margin: 0 1 2 0; }
    """
    AUTO_FOCUS = "Table"
    CHOOSES: ClassVar[str] = "use this theme"
    """What Enter does, for the key line of the screen below."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back", key_display="Esc"),
        Binding("t", "next", "next theme"),
    ]

    def __init__(self, names: Sequence[str], current: str, use: Callable[[str], None]) -> None:
        super().__init__()
        self._names = list(names)
        self._before = current
        self._use = use

    def compose(self) -> ComposeResult:
        with Panel():
            yield Table(id="themes")

    def on_mount(self) -> None:
        """Fill the list, and select the theme in use."""
        table = self.query_one(Table)
        self.query_one(Panel).styles.height = min(len(self._names), MOST_ROWS) + edge_lines(framed=True)
        table.fill(lambda: ThemeRows(self._names))
        table.select(self._before)

    def action_next(self) -> None:
        """Select the next theme. The last one is followed by the first one."""
        self.query_one(Table).step(1)

    def action_leave(self) -> None:
        """Return to the theme that was in use before."""
        self._use(self._before)
        self.leave()

    @on(Table.Moved)
    def _preview(self, event: Table.Moved) -> None:
        if isinstance(event.key, str):
            self._use(event.key)

    @on(Table.Opened)
    def _choose(self) -> None:
        self.leave()
