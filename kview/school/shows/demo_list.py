"""`D`: the list of demos, above the screen. Enter starts one on a fresh cluster."""

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kview.language import glyphs, words
from kview.school.demos import Listed
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.figures import figure
from kview.tui.rows.row import Row
from kview.tui.screens.over import OverScreen
from kview.tui.text import Line, Role, Span, line
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

ABOUT_ROWS = 3
"""An empty line, and two for what the selected demo is about."""

MARGIN_ROWS = 8
"""The rows of the screen that the list leaves free."""


class DemoRows(Keyed[str]):
    """The rows of demos. The key is the demo's name."""

    empty = "there is no demo"

    def __init__(self, demos: Sequence[Listed]) -> None:
        super().__init__([demo.name for demo in demos])
        self._demos = demos
        # What a demo is about stands below the list, too, but what is wrong with a file does not.
        is_wrong = any(demo.wrong for demo in demos)
        about = min(110, max((len(demo.about) for demo in demos), default=20))
        longest = 22 if is_wrong else min(46, max((len(demo.title) for demo in demos), default=22))
        self.columns: Sequence[Column] = (
            Column("title", "", longest, flex=1, most=46, name=True),
            Column("minutes", "", 5, right=True),
            Column("about", "", 20 if is_wrong else about, flex=3, most=110, rank=1 if is_wrong else 2),
            Column("name", "", 10 if is_wrong else 16, flex=1, most=16, rank=2 if is_wrong else 1, name=True),
        )
        note = Span(" Enter starts one, in place of this cluster", Role.DIM)
        self.title: Line = line(Span("DEMOS", Role.HEAD), note)

    def row(self, index: int, now_ms: int) -> Row:
        demo = self._demos[index]
        if demo.wrong:
            file = line(Span(glyphs.DEAD, Role.WARN), " ", demo.title)
            return Row((file, figure(words.NONE, None), line(Span(demo.wrong, Role.WARN)), line(demo.name)))
        return Row(
            (
                line(demo.title),
                figure(f"{demo.minutes} min", demo.minutes, role=Role.DIM),
                line(Span(demo.about, Role.DIM)),
                line(Span(demo.name, Role.KEY)),
            )
        )


class About(Lines):
    """What the selected demo is about, in full."""

    DEFAULT_CSS = f"About {{ height: {ABOUT_ROWS}; }}"

    def __init__(self) -> None:
        super().__init__(id="about")
        self.text = ""

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the sentence, below an empty line."""
        return [(), *(line(f"  {each}") for each in wrap(self.text, max(10, width - 4)))][:height]


class DemoScreen(OverScreen, inherit_bindings=False):
    """The list of demos. `current` is the name of the one that is shown, and `start` starts one."""

    CSS = """
    DemoScreen { align: center middle; background: $background 0%; }
    DemoScreen Panel { width: 96%; height: auto; }
    DemoScreen Table { width: 100%; }
    """
    AUTO_FOCUS = "Table"
    CHOOSES: ClassVar[str] = "start this demo"
    """What Enter does, for the key line of the screen below."""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,D", "leave", "back", key_display="Esc")]

    def __init__(self, demos: Sequence[Listed], current: str, start: Callable[[str], None]) -> None:
        super().__init__()
        self._demos = demos
        self._current = current
        self._start = start

    def compose(self) -> ComposeResult:
        """Make the list, with room for what the selected demo is about."""
        with Panel():
            yield Table(id="demos")
            yield About()

    def on_mount(self) -> None:
        """Fill the list, and select the demo that is shown."""
        table = self.query_one(Table)
        most = max(6, self.app.size.height - MARGIN_ROWS) - ABOUT_ROWS - 2
        table.styles.height = min(len(self._demos), most)
        table.fill(lambda: DemoRows(self._demos))
        if self._current:
            table.select(self._current)
        self._tell()

    def action_leave(self) -> None:
        """Start nothing."""
        self.leave()

    @on(Table.Moved)
    def _tell(self) -> None:
        """Say what the selected demo is about."""
        selected, about = self.query_one(Table).selected, self.query_one(About)
        about.text = next((demo.about for demo in self._demos if demo.name == selected), "")
        about.redraw()

    @on(Table.Opened)
    def _chosen(self, event: Table.Opened) -> None:
        if self.leave() and isinstance(event.key, str):
            self.app.call_next(self._start, event.key)
