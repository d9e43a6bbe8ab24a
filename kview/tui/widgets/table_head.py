"""A table's head: its title, which rows are in sight, and the titles of the columns.

The title and the columns' titles share a line if the title fits above leading columns that have no title. All
functions here are pure.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import set_cell_size

from kview.tui.rows.columns import GAP, Column
from kview.tui.text import Line, Role, Span, content, joined, line, line_width, pad

Shared = Sequence[tuple[int, int]]
"""The columns shown, as (index, width)."""


class Mark(NamedTuple):
    """The sign that shows by which column the rows are sorted, and in which direction."""

    column: str
    sign: str


NO_MARK = Mark("", "")


def marked(title: str, sign: str, cells: int) -> str:
    """Return a column's title with a sign, within the column's width, so that no column moves."""
    if not title:
        return ""
    short = title.rstrip()
    for between in (" ", ""):
        if line_width(line(short)) + len(between) + 1 <= cells:
            return f"{short}{between}{sign}"
    return f"{set_cell_size(short, cells - 1)}{sign}" if cells > 1 else short


def head_height(title: Line, columns: Sequence[Column], shared: Shared) -> int:
    """Return the number of lines that the head takes."""
    return 2 if columns and not _shares_line(title, columns, shared) else 1


def head_lines(
    title: Line, columns: Sequence[Column], shared: Shared, in_sight: Line, cells: int, mark: Mark = NO_MARK
) -> list[Line]:
    """Return the head, `cells` wide. `in_sight` follows the title if there is room.

    A title of a name and one note, the order, makes room for it: rows that are out of sight are said.
    `mark` stands at the title of its column.
    """
    titles: Line = line("  ")
    for position, (index, width) in enumerate(shared):
        column = columns[index]
        titles += (Span(" " * GAP),) if position else ()
        name = marked(column.title, mark.sign, width) if column.key == mark.column else column.title
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


def _shares_line(title: Line, columns: Sequence[Column], shared: Shared) -> bool:
    return line_width(title) <= _title_room(columns, shared)


def _title_room(columns: Sequence[Column], shared: Shared) -> int:
    """Return the number of cells above the leading columns without a title."""
    room = 0
    for index, width in shared:
        if columns[index].title:
            break
        room += width + GAP
    return room - GAP
