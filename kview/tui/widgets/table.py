"""The table that draws every list. Only visible rows are made, so 10,000 rows scroll as fast as ten.

The selection is a row's key, so it stays on its row while rows appear, disappear and change places.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from msgspec.structs import replace
from rich.cells import set_cell_size
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kview.language.glyphs import DOWN, MARK, UP
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.looks import Look, Spot
from kview.tui.rows.columns import GAP, Column, share
from kview.tui.rows.row import NO_ROWS, Rows
from kview.tui.text import (
    EMPTY,
    Line,
    Role,
    Span,
    Title,
    content,
    line,
    line_width,
    middle,
    pad,
    spaces,
    strip,
)
from kview.tui.widgets.drawn import Drawn

GUTTER = 2
"""The number of cells before the first column, which hold the mark of the selected row."""

SELECTED = Span(f"{MARK} ")

_Shown = Sequence[tuple[int, int]]
"""The columns shown, as (index, width)."""

LEAST_OF_NAME = 6
"""The fewest cells for a name after other words in its cell. With less room, all of the cell is shortened in
its middle."""

WHEEL_ROWS = 3
"""By how many rows a step of the mouse wheel scrolls."""

TWICE_MS = 1_000
"""Within this time, a key that means something else when pressed twice has to be pressed again."""


class Cell(NamedTuple):
    """The column where a click was, and how many cells from the left of the column. '' if it was in none, or
    if there was no click."""

    column: str = ""
    offset: int = 0


class _Mark(NamedTuple):
    """The sign that shows by which column the rows are sorted, and in which direction."""

    column: str
    sign: str


_NO_MARK = _Mark("", "")


class _Shares(NamedTuple):
    """The widths of columns, for which rows, and for how many cells and which marks."""

    rows: Rows
    room: tuple[int, tuple[Look, ...]]
    columns: list[tuple[int, int]]


class Table(Drawn, ScrollView, can_focus=True, inherit_bindings=False):
    """A list with a head, a selected row, and the keys that move the selection."""

    DEFAULT_CSS = """
    Table {
        overflow-x: hidden; overflow-y: auto; scrollbar-size: 0 0;
        width: 1fr; height: 1fr; background: transparent;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.TABLE)]

    @dataclass
    class Opened(Message):
        """The user pressed Enter, or double-clicked the selected row."""

        table: "Table"
        key: Hashable
        cell: Cell

        @property
        def control(self) -> "Table":
            """The table, for handlers that name the table."""
            return self.table

    @dataclass
    class Clicked(Message):
        """The user clicked a cell of a row."""

        table: "Table"
        cell: Cell

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
        self.rows: Rows = NO_ROWS
        self._index = 0
        self._widest: dict[str, int] = {}
        self._shares: _Shares | None = None
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

    def figures(self) -> list[str]:
        """Return the names of the figures that it can show, for help."""
        return [column.title for column in self.rows.columns if column.title]

    @property
    def chosen(self) -> Hashable | None:
        """The key of the row that the user has selected, None as long as the first row is selected because it
        is the first."""
        return self._key if self._chosen else None

    @property
    def in_sight(self) -> list[Hashable]:
        """The keys of the rows that the panel has room for, from the first visible row on."""
        if not self.is_shown or not self.is_drawn:
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

    def let_go(self) -> None:
        """Drop the rows and the view. The selection stays at its place."""
        super().let_go()
        self.rows, self._shares = NO_ROWS, None

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
        if self._key is not None and self.rows is NO_ROWS:
            return  # it has let go of its rows, which come back
        self._index = max(0, min(self._index, len(self.rows) - 1))
        if len(self.rows):
            self._key = self.rows.key(self._index)
        self.virtual_size = Size(self.size.width, self._extent())
        self._show_selected()

    def _extent(self) -> int:
        """Return the lines of all that it can scroll to."""
        return self._head_height() + len(self.rows) + self._below()

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
        self._open(Cell())

    def _open(self, cell: Cell) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self, self.selected, cell))

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
        cell = self._cell_at(event.x)
        if event.y == self._head_height() - 1 and cell.column in self.rows.sorts:
            self.post_message(self.HeadClicked(self, cell.column))
        if event.y < self._head_height() or not 0 <= index < len(self.rows):
            return
        if index == self._index and event.chain > 1 and self.opens:
            self._open(cell)
        else:
            self.choose(index)
            self.post_message(self.Clicked(self, cell))

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

    def _cell_at(self, x: int) -> Cell:
        at = GUTTER
        for index, width in self._shared():
            if at <= x < at + width:
                return Cell(self.rows.columns[index].key, x - at)
            at += width + GAP
        return Cell()

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

    # -- how it is drawn

    def _room(self) -> int:
        """Return the number of rows that fit."""
        return self.size.height - self._head_height() - self._below()

    def _below(self) -> int:
        """Return the number of lines below the rows that something else takes."""
        return 0

    def painted_for(self) -> object:
        """Return what determines the drawing, including the focus."""
        return (Drawn.painted_for(self), self.has_focus)

    def painted(self, size: Size) -> list[Strip]:
        """Return the strips of the head and the visible rows."""
        at = app_of(self)
        shared = self._shared()
        head = _head(self.rows.columns, shared, self._mark())
        lines = [strip(head, size.width, at.palette, at.ascii_only)] if head else []
        in_sight = self._in_sight_text(size.height - len(lines))
        self.title = Title(self.rows.title, in_sight, has_note=True)
        if not len(self.rows) and self.rows.empty:
            lines.append(
                strip(
                    pad(line("  ", Span(self.rows.empty, Role.DIM)), size.width),
                    size.width,
                    at.palette,
                    at.ascii_only,
                )
            )
        top = self.scroll_offset.y
        now_ms = at.now_ms()
        for index in range(top, min(len(self.rows), top + size.height - len(lines))):
            lines.append(self._row_strip(index, now_ms, shared, size.width))
        return lines

    def spots(self, look: Look) -> list[Spot]:
        """Return the cells that a mark is about: a row, or a cell. That of the table is at its title."""
        if look.key is None:
            return super().spots(look)
        index, top = self.rows.find(look.key), self.scroll_offset.y
        if index is None or index < top:
            return []
        y, begin = self._head_height() + index - top, GUTTER
        for at, width in self._shared():
            if self.rows.columns[at].key == look.column:
                if look.word:
                    begin, width = self._word(look.word, index, at, begin, width)
                return [Spot(y, begin, begin + width, begin - 1)]
            begin += width + GAP
        return [Spot(y, 0, 0, 0)]

    def _word(self, word: str, index: int, column: int, begin: int, width: int) -> tuple[int, int]:
        """Return where a word of a cell begins and how wide it is, or the same of the cell if the cell has no
        such word."""
        cell = content(self.rows.row(index, app_of(self).now_ms()).cells[column])
        match = re.search(rf"\b{re.escape(word)}\b", cell)
        if match is None or match.end() > width:
            return begin, width
        return begin + match.start(), match.end() - match.start()

    def _row_strip(self, index: int, now_ms: int, shared: list[tuple[int, int]], cells: int) -> Strip:
        at = app_of(self)
        row = self.rows.row(index, now_ms)
        is_selected = index == self._index
        spans = [SELECTED if is_selected else spaces(GUTTER)]
        for position, (column, width) in enumerate(shared):
            if position:
                spans.append(spaces(GAP))
            spans += _cell(row.cells[column], self.rows.columns[column], width)
        over = at.palette.band if row.is_tinted else None
        if is_selected:
            over = at.palette.selected if self.has_focus else at.palette.marked
        if row.fresh:
            over = at.palette.fresh if over is None else over + at.palette.fresh
        return strip(tuple(spans), cells, at.palette, at.ascii_only, over)

    def _shared(self) -> list[tuple[int, int]]:
        """Return the columns in sight, as (index, width), in order."""
        cells, known = max(1, self.size.width - GUTTER), self._shares
        if known is None or known.rows is not self.rows or known.room != (cells, self.looks):
            known = self._shares = _Shares(self.rows, (cells, self.looks), self._widths(cells))
        return known.columns

    def _widths(self, cells: int) -> list[tuple[int, int]]:
        """Return the columns that fit, with figures as wide as they have ever been.

        This way the next column does not move. If something else would be cut or left out for that, figures
        are only as wide as they are now. A column with a mark is never left out.
        """
        marked = {look.column for look in self.looks if look.key is not None}
        columns = [
            replace(column, rank=0) if column.key in marked else column for column in self.rows.columns
        ]
        for column in columns:
            if column.right:
                self._widest[column.key] = max(column.width, self._widest.get(column.key, 0))
        steady = [replace(column, width=self._widest.get(column.key, column.width)) for column in columns]
        shared = share(steady, cells)
        if steady == columns:
            return shared
        now, wide = share(columns, cells), dict(shared)
        if any(wide.get(at, 0) < min(columns[at].width, width) for at, width in now):
            self._widest = {column.key: column.width for column in columns if column.right}
            return now
        return shared

    def _mark(self) -> _Mark:
        """Return the mark of the column by which the rows are sorted, and of the direction."""
        if not self.rows.panel:
            return _NO_MARK
        sort = app_of(self).options.sort(self.rows.panel)
        return _Mark(sort.column, DOWN if sort.descending else UP)

    def _head_height(self) -> int:
        return 1 if _has_titles(self.rows.columns, self._shared()) else 0

    def _in_sight_text(self, room: int) -> Line:
        """Return which rows are in sight, if not all of them are."""
        top, rows = self.scroll_offset.y, len(self.rows)
        if rows <= room or room <= 0:
            return EMPTY
        shown = Span(f"{top + 1:,}–{min(rows, top + room):,} of {rows:,}", Role.DIM)
        above = min(top, self.rows.troubled)
        return line(Span(f"{UP} {above:,} worse above  ", Role.WARN), shown) if above else line(shown)


def _cell(spans: Line, column: Column, width: int) -> Line:
    if column.name and line_width(spans) > width:
        before, last = spans[:-1], spans[-1] if spans else Span("")
        if width - line_width(before) < LEAST_OF_NAME:
            before, last = EMPTY, spans[0]._replace(text=content(spans))
        spans = (*before, last._replace(text=middle(last.text, width - line_width(before))))
    return pad(spans, width, column.right)


# -- the head


def _marked(title: str, sign: str, cells: int) -> str:
    """Return a column's title with a sign, within the column's width, so that no column moves."""
    if not title:
        return ""
    short = title.rstrip()
    for between in (" ", ""):
        if line_width(line(short)) + len(between) + 1 <= cells:
            return f"{short}{between}{sign}"
    return f"{set_cell_size(short, cells - 1)}{sign}" if cells > 1 else short


def _has_titles(columns: Sequence[Column], shared: _Shown) -> bool:
    return any(columns[index].title for index, _ in shared)


def _head(columns: Sequence[Column], shared: _Shown, mark: _Mark = _NO_MARK) -> Line:
    """Return the titles of the columns, nothing if they have none. `mark` stands at the title of its
    column."""
    if not _has_titles(columns, shared):
        return EMPTY
    titles: Line = line("  ")
    for position, (index, width) in enumerate(shared):
        column = columns[index]
        titles += (Span(" " * GAP),) if position else ()
        name = _marked(column.title, mark.sign, width) if column.key == mark.column else column.title
        titles += pad(line(Span(name, Role.DIM)), width, column.right)
    return titles
