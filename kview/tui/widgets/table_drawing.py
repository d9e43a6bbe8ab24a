"""How a table is drawn: its head, and the rows in sight, which are made when they are drawn."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace
from rich.cells import set_cell_size
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kview.language.glyphs import DOWN, MARK, UP
from kview.tui.app_of import app_of
from kview.tui.looks import Look, Spot
from kview.tui.paint import strip
from kview.tui.rows.columns import GAP, Column, share
from kview.tui.rows.row import NoRows, Rows
from kview.tui.text import EMPTY, Line, Role, Span, content, joined, line, line_width, middle, pad, spaces
from kview.tui.widgets.drawn import Drawn

GUTTER = 2
"""The number of cells before the first column, which hold the mark of the selected row."""


SELECTED = Span(f"{MARK} ")

_Shown = Sequence[tuple[int, int]]
"""The columns shown, as (index, width)."""


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


class DrawnTable(Drawn, ScrollView, inherit_bindings=False):
    """A list with a head and a selected row."""

    DEFAULT_CSS = """
    DrawnTable {
        overflow-x: hidden; overflow-y: auto; scrollbar-size: 0 0;
        width: 1fr; height: 1fr; background: transparent;
    }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.rows: Rows = NoRows()
        self._index = 0
        self._widest: dict[str, int] = {}
        self._shares: _Shares | None = None

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
        title, columns = self.rows.title, self.rows.columns
        in_sight = self._in_sight_text(size.height - _head_rows(title, columns, shared))
        head = _head_lines(title, columns, shared, in_sight, size.width, self._mark())
        lines = [strip(spans, size.width, at.palette, at.ascii_only) for spans in head]
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
        """Return the cells that a mark is about: the head, a row, or a cell."""
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
        over = None
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
        shared = self._shared()
        return _head_rows(self.rows.title, self.rows.columns, shared)

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
        first = spans[0] if spans else Span("")
        spans = (first._replace(text=middle(content(spans), width)),)
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


def _head_rows(title: Line, columns: Sequence[Column], shared: _Shown) -> int:
    """Return the number of lines that the head takes."""
    return 2 if columns and not _shares_line(title, columns, shared) else 1


def _head_lines(
    title: Line, columns: Sequence[Column], shared: _Shown, in_sight: Line, cells: int, mark: _Mark = _NO_MARK
) -> list[Line]:
    """Return the head, `cells` wide. `in_sight` follows the title if there is room.

    A title of a name and one note, the order, makes room for it: rows that are out of sight are said.
    `mark` stands at the title of its column.
    """
    titles: Line = line("  ")
    for position, (index, width) in enumerate(shared):
        column = columns[index]
        titles += (Span(" " * GAP),) if position else ()
        name = _marked(column.title, mark.sign, width) if column.key == mark.column else column.title
        titles += pad(line(Span(name, Role.DIM)), width, column.right)
    parts = [title, in_sight] if in_sight else [title]
    if columns and _shares_line(title, columns, shared):
        room = _title_room(columns, shared)
        if len(title) == 2 and line_width((*title, *in_sight)) + len("  ") > room:
            parts[0] = title[:1]
        shown = joined(parts, Span("  "), room)
        return [line("  ", *shown, Span(content(titles)[2 + line_width(shown) :], Role.DIM))]
    own = line("  ", *joined(parts, Span("  "), cells - 2))
    return [own, titles] if columns else [own]


def _shares_line(title: Line, columns: Sequence[Column], shared: _Shown) -> bool:
    """Return whether the title and the columns' titles share a line: it fits above leading columns that have
    no title."""
    return line_width(title) <= _title_room(columns, shared)


def _title_room(columns: Sequence[Column], shared: _Shown) -> int:
    """Return the number of cells above the leading columns without a title."""
    room = 0
    for index, width in shared:
        if columns[index].title:
            break
        room += width + GAP
    return room - GAP
