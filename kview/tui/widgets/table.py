"""The table that draws every list. Only visible rows are made, so 10,000 rows scroll as fast as ten.

The selection is a row's key, so it stays on its row while rows appear, disappear and change places.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message

from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.rows.columns import GAP
from kview.tui.rows.row import Rows
from kview.tui.widgets.table_drawing import GUTTER, DrawnTable

WHEEL_ROWS = 3
"""By how many rows a step of the mouse wheel scrolls."""

TWICE_MS = 1_000
"""Within this time, a key that means something else when pressed twice has to be pressed again."""


class Table(DrawnTable, can_focus=True, inherit_bindings=False):
    """A list with a head, a selected row, and the keys that move the selection."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.TABLE)]

    @dataclass
    class Opened(Message):
        """The user pressed Enter, or double-clicked the selected row."""

        table: "Table"
        key: Hashable

        @property
        def control(self) -> "Table":
            """The table, for handlers that name the table."""
            return self.table

    @dataclass
    class HeadClicked(Message):
        """The user clicked the title of a column by which the rows can be sorted."""

        table: "Table"
        column: str

    @dataclass
    class Moved(Message):
        """The user selected another row."""

        table: "Table"
        key: Hashable

        @property
        def control(self) -> "Table":
            """The table, for handlers that name the table."""
            return self.table

    def __init__(self, *, id: str, opens: bool = True) -> None:
        super().__init__(id=id)
        self.opens = opens
        self._key: Hashable | None = None
        self._chosen = False
        self._top_pressed: int | None = None

    # -- what it shows

    @property
    def selected(self) -> Hashable | None:
        """The key of the selected row, None while no row is visible."""
        return self._key if len(self.rows) and self.is_drawn else None

    @property
    def aimed(self) -> Hashable | None:
        """The key of the selected row if the user can see the row, None otherwise."""
        return self.selected if self.selected in self.in_sight else None

    @property
    def index(self) -> int:
        """The index of the selected row."""
        return self._index

    @property
    def keys(self) -> list[Hashable]:
        """The keys of all rows, in order."""
        return [self.rows.key(index) for index in range(len(self.rows))]

    @property
    def in_sight(self) -> list[Hashable]:
        """The keys of the rows that the panel has room for, from the first visible row on."""
        if not self.display or not self.is_drawn:
            return []
        top = self.scroll_offset.y
        return [self.rows.key(index) for index in range(top, min(len(self.rows), top + self._room()))]

    def fill(self, make: Callable[[], Rows]) -> None:
        """Show the rows that `make` returns. If `make` raises an exception, the panel says so."""
        self.attempt(lambda: self.set_rows(make()))

    def set_rows(self, rows: Rows) -> None:
        """Show other rows. The selected row stays selected if it still exists.

        If the new rows raise an exception, the table keeps its previous rows.
        """
        before, self.rows = self.rows, rows
        try:
            index = rows.find(self._key) if self._key is not None and self._holds() else None
            self._index = index if index is not None else self._index if self._holds() else 0
            self._settle()
        except Exception:
            self.rows = before
            raise
        self.redraw()

    def select(self, key: Hashable) -> bool:
        """Select the row with that key. Returns False if there is no such row."""
        index = self.rows.find(key)
        if index is None:
            return False
        self._chosen = True
        self._index = index
        self._settle()
        self.redraw()
        return True

    def _holds(self) -> bool:
        """Return whether the selection stays with its row.

        Until the user selects a row, the selection stays on the first row, so that the worst rows of a list
        stay in sight.
        """
        return self._chosen

    def _settle(self) -> None:
        self._index = max(0, min(self._index, len(self.rows) - 1))
        if len(self.rows):
            self._key = self.rows.key(self._index)
        self.virtual_size = Size(self.size.width, self._head_height() + len(self.rows) + self._below())
        self._show_selected()

    def _show_selected(self) -> None:
        room = self._room()
        if room <= 0:
            return
        top = self.scroll_offset.y
        if self._index < top:
            self.scroll_to(y=self._index, animate=False, force=True, immediate=True)
        elif self._index >= top + room:
            self.scroll_to(y=self._index - room + 1, animate=False, force=True, immediate=True)

    # -- keys and mouse

    def action_move(self, by: int) -> None:
        """Select the row `by` rows further down (negative: up)."""
        self.choose(self._index + by)

    def step(self, by: int) -> None:
        """Select the row `by` rows further down (negative: up). The last row is followed by the first one."""
        if len(self.rows):
            self.choose((self._index + by) % len(self.rows))

    def action_page(self, by: int) -> None:
        """Select the row `by` pages further down (negative: up)."""
        self.choose(self._index + by * max(1, self._room() - 1))

    def action_half_page(self, by: int) -> None:
        """Select the row half a page further down (negative: up)."""
        self.choose(self._index + by * max(1, self._room() // 2))

    def action_top(self) -> None:
        """Go to the first row if the key is pressed a second time, without another key in between."""
        now_ms = app_of(self).wall_ms()
        again = self._top_pressed is not None and now_ms - self._top_pressed <= TWICE_MS
        self._top_pressed = None if again else now_ms
        if again:
            self.action_end(-1)

    def action_end(self, by: int) -> None:
        """Select the first or the last row. At the first row, the list stays at its top again."""
        self.choose(0 if by < 0 else len(self.rows) - 1)
        self._chosen = by > 0

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action works. `open` works only if the rows can be opened."""
        return self.opens or action != "open"

    def action_open(self) -> None:
        """Open the selected row."""
        if self.selected is not None:
            self.post_message(self.Opened(self, self.selected))

    def choose(self, index: int) -> None:
        """Select the row at an index, or the nearest row that exists."""
        self._chosen = True
        before = self.selected
        self._index = index
        self._settle()
        self.redraw()
        if self.selected is not None and self.selected != before:
            self.post_message(self.Moved(self, self.selected))

    def on_click(self, event: events.Click) -> None:
        """Select the row under the mouse. A double click opens the row."""
        index = event.y - self._head_height() + self.scroll_offset.y
        if event.y == self._head_height() - 1 and (column := self._column_at(event.x)) is not None:
            self.post_message(self.HeadClicked(self, column))
        if event.y < self._head_height() or not 0 <= index < len(self.rows):
            return
        if index == self._index and event.chain > 1 and self.opens:
            self.action_open()
        else:
            self.choose(index)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down. The selection moves only if its row leaves the panel."""
        event.prevent_default().stop()
        self.scroll_rows(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up. The selection moves only if its row leaves the panel."""
        event.prevent_default().stop()
        self.scroll_rows(-WHEEL_ROWS)

    def scroll_rows(self, by: int) -> None:
        """Scroll by a number of rows. The selection moves only if its row leaves the panel."""
        room = self._room()
        top = max(0, min(self.scroll_offset.y + by, len(self.rows) - room))
        self.scroll_to(y=top, animate=False, force=True, immediate=True)
        self.choose(max(top, min(self._index, top + room - 1)))

    def _column_at(self, x: int) -> str | None:
        """Return the column at a cell of the head, None if the rows cannot be sorted by it."""
        at = GUTTER
        for index, width in self._shared():
            key = self.rows.columns[index].key
            if at <= x < at + width:
                return key if key in self.rows.sorts else None
            at += width + GAP
        return None

    def sort_stops(self) -> list[str]:
        """Return the columns in sight by which the rows can be sorted, in order."""
        shared = self._shared()
        keys = [self.rows.columns[index].key for index, _ in shared]
        return [key for key in keys if key in self.rows.sorts]

    def on_focus(self) -> None:
        """Show on the selected row that this panel is focused."""
        self.redraw()

    def on_blur(self) -> None:
        """Show on the selected row that this panel is not focused."""
        self.redraw()

    def on_resize(self) -> None:
        """Scroll so that the selected row stays in sight."""
        self._settle()

    def cancel(self) -> bool:
        """Stop waiting for rows, and return whether there was something to wait for."""
        return False
