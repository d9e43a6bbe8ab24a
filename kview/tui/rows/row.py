"""The content of a table: a row's cells, and rows that are made on demand."""

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from kview.model.snapshot import Flags
from kview.tui.rows.columns import Column
from kview.tui.text import EMPTY, Line


class Row(NamedTuple):
    """A row's cells by column. `fresh` says whether something in the row changed within the last seconds, and
    `is_tinted` whether it has another background, as every second of the groups of rows."""

    cells: tuple[Line, ...]
    fresh: bool = False
    is_tinted: bool = False


class Rows:
    """The rows of a table in one view. By themselves they are those of a table that has none yet."""

    columns: Sequence[Column] = ()
    """The columns, in order."""
    title: Line = EMPTY
    """The panel's name, and the order of its rows."""
    empty: str = ""
    """Why there are no rows, for a table without any."""
    troubled: int = 0
    """The number of rows in trouble that the list begins with, 0 if it has another order."""
    panel: str = ""
    """The name under which the order of the rows is kept, '' if they cannot be sorted."""
    sorts: Collection[str] = ()
    """The keys of the columns by which the rows can be sorted."""
    closed: Collection[Hashable] = ()
    """The keys of the rows that have no details to open."""

    @property
    def in_trouble(self) -> Flags:
        """Which rows need attention, by index. Empty if rows are never in trouble."""
        return np.zeros(0, bool)

    def __len__(self) -> int:
        return 0

    def key(self, index: int) -> Hashable:
        """Return the key of a row. The same thing has the same key in every view."""
        raise IndexError(index)

    def find(self, key: Hashable) -> int | None:
        """Return the index of the row with that key, or None if there is no such row."""
        return None

    def row(self, index: int, now_ms: int) -> Row:
        """Return a row's cells, with ages as of `now_ms`."""
        raise IndexError(index)


NO_ROWS = Rows()
"""The rows of a table that has let go of its own, or has none yet."""
