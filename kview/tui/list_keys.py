"""The keys of the focused list: its order, the next row in trouble, and copying."""

from typing import TYPE_CHECKING

import numpy as np

from kview.derive.groups.alike import Alike
from kview.derive.view import View
from kview.language.glyphs import printable
from kview.model.aggregates import Key
from kview.tui.options import HOLD_MS, OWN_ORDER, Options, Sort
from kview.tui.rows.groups import GroupRows
from kview.tui.rows.sorting import sort_mark
from kview.tui.text import content
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.table import Table

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

COPY_TWICE_MS = 3_000
"""Within this time, the key that copies a row's name copies the whole row when pressed again."""

MOST_COPIED = 8_000
"""The most characters copied. Terminals take a limited number of bytes."""


def holding(options: Options, view: View) -> Options:
    """Return the options for a view: the view that holds the order of sorted lists is at most HOLD_MS old."""
    if not options.sorts:
        return options
    held = options.held
    age_ms = view.snapshot.observation.ended_ms - held.snapshot.observation.ended_ms if held else -1
    return options if 0 <= age_ms < HOLD_MS else options.holding(view)


def descends(table: Table, column: str) -> bool:
    """Return whether a column is first sorted with the largest value first, as figures are."""
    return any(each.key == column and each.right for each in table.rows.columns)


def next_in_trouble(table: Table) -> tuple[int, int] | None:
    """Select the next row that needs attention, after the last one the first one.

    Returns its number among these rows, from 1 on, and how many they are. None if there is none.
    """
    troubled = np.flatnonzero(table.rows.in_trouble)
    if not len(troubled):
        return None
    at = int(np.searchsorted(troubled, table.index, "right")) % len(troubled)
    table.choose(int(troubled[at]))
    return at + 1, len(troubled)


def name_of(key: object) -> str:
    """Return what a row is about in one word, from its key: `invoice-3`, `4`, `billing`."""
    if isinstance(key, Key):
        return printable(key.name or str(key.kind))
    return printable("-".join(map(str, key)) if isinstance(key, tuple) else str(key))


def _name(table: Table) -> str:
    """Return what the selected row is about, a group if groups share the row."""
    if isinstance(table.rows, GroupRows) and isinstance(table.selected, Alike):
        return name_of(table.rows.example(table.selected))
    return name_of(table.selected)


class ListKeys:
    """Carries out the actions `rows('…')`, on the table that has the focus."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._copied: tuple[object, int] | None = None

    def do(self, what: str) -> None:
        """Carry out an action. Raises ValueError if there is no action of that name."""
        screen = self._app.shown()
        table = screen.focused_table() if screen is not None else None
        if table is None:
            return
        match what:
            case "sort":
                self._sort(table)
            case "reverse":
                self._reverse(table)
            case "trouble":
                self._trouble(table)
            case "copy":
                self._copy(table)
            case _:
                raise ValueError(what)

    def sort_by(self, table: Table, column: str) -> None:
        """Sort by a column, or reverse the order if it is that of the column already."""
        if self._app.options.sort(table.rows.panel).column == column:
            self._reverse(table)
        else:
            self._set(table, Sort(column, descends(table, column)))

    def _sort(self, table: Table) -> None:
        stops = ["", *table.sort_stops()]
        if len(stops) == 1:
            self._app.say(StatusMessage("this panel cannot be sorted"))
            return
        now = self._app.options.sort(table.rows.panel).column
        column = stops[(stops.index(now) + 1) % len(stops)] if now in stops else ""
        self._set(table, Sort(column, descends(table, column)) if column else OWN_ORDER)

    def _reverse(self, table: Table) -> None:
        if not table.rows.panel:
            self._app.say(StatusMessage("this panel cannot be sorted"))
            return
        sort = self._app.options.sort(table.rows.panel)
        self._set(table, Sort(sort.column, not sort.descending))

    def _set(self, table: Table, sort: Sort) -> None:
        options = self._app.options.with_sort(table.rows.panel, sort)
        self._app.set_options(options.holding(self._app.view))
        titles = {column.key: (column.title or column.key).strip() for column in table.rows.columns}
        keys = self._app.keys
        how = f"by {titles[sort.column]} {sort_mark(sort)}" if sort.column in titles else "in its own order"
        back = f"{keys.name('sort')} next column, {keys.name('reverse')} reverses"
        self._app.say(StatusMessage(f"sorted {how}", back))

    def _trouble(self, table: Table) -> None:
        """Select the next row in trouble below the selected one, or the first one."""
        position = next_in_trouble(table)
        if position is None:
            self._app.say(StatusMessage("no row of this panel is in trouble"))
            return
        place, count = position
        if count == 1:
            self._app.say(StatusMessage("this is the only row in trouble"))
        else:
            self._app.say(StatusMessage(f"row {place:,} of {count:,} in trouble"))

    def _copy(self, table: Table) -> None:
        """Copy the name of the selected row, or the whole row if its name was copied just before."""
        if table.selected in (None, ""):
            self._app.say(StatusMessage("nothing is selected to copy"))
            return
        now_ms = self._app.wall_ms()
        again = self._copied is not None and self._copied[0] == table.selected
        again = again and self._copied is not None and 0 <= now_ms - self._copied[1] <= COPY_TWICE_MS
        self._copied = None if again else (table.selected, now_ms)
        text = (self._row_text(table) if again else _name(table))[:MOST_COPIED]
        self._app.copy_to_clipboard(text)
        tail = "" if again else f"{self._app.keys.name('copy')} again copies the whole row"
        self._app.say(StatusMessage(f"copied {'the row: ' if again else ''}{' '.join(text.split())}", tail))

    def _row_text(self, table: Table) -> str:
        """Return the cells of the selected row, separated by tabs."""
        row = table.rows.row(table.index, self._app.now_ms())
        return "\t".join(content(cell).strip() for cell in row.cells)
