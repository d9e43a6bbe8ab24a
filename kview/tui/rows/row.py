"""The content of a table: a row's cells, and rows that are made on demand."""

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct, field

from kview.model.snapshot import Flags
from kview.tui.rows.columns import Column
from kview.tui.text import EMPTY, Line


class Row(NamedTuple):
    """A row's cells by column. `fresh` says whether something in the row changed within the last seconds, and
    `is_tinted` whether it has another background, as every second of the groups of rows."""

    cells: tuple[Line, ...]
    fresh: bool = False
    is_tinted: bool = False


class Rows(Protocol):
    """The rows of a table in one view."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, in order."""
        ...

    @property
    def title(self) -> Line:
        """The panel's name, and the order of its rows."""
        ...

    @property
    def empty(self) -> str:
        """Why there are no rows, for a table without any."""
        ...

    @property
    def troubled(self) -> int:
        """The number of rows in trouble that the list begins with, 0 if it has another order."""
        ...

    @property
    def panel(self) -> str:
        """The name under which the order of the rows is kept, '' if they cannot be sorted."""
        ...

    @property
    def sorts(self) -> Collection[str]:
        """The keys of the columns by which the rows can be sorted."""
        ...

    @property
    def in_trouble(self) -> Flags:
        """Which rows need attention, by index. Empty if rows are never in trouble."""
        ...

    @property
    def closed(self) -> Collection[Hashable]:
        """The keys of the rows that have no details to open."""
        ...

    def __len__(self) -> int: ...

    def key(self, index: int) -> Hashable:
        """Return the key of a row. The same thing has the same key in every view."""
        ...

    def find(self, key: Hashable) -> int | None:
        """Return the index of the row with that key, or None if there is no such row."""
        ...

    def row(self, index: int, now_ms: int) -> Row:
        """Return a row's cells, with ages as of `now_ms`."""
        ...


def _none() -> Flags:
    return np.zeros(0, bool)


class NoRows(Struct, frozen=True):
    """The rows of a table that has no rows yet."""

    columns: Sequence[Column] = ()
    title: Line = EMPTY
    empty: str = ""
    troubled: int = 0
    panel: str = ""
    sorts: Collection[str] = ()
    in_trouble: Flags = field(default_factory=_none)
    closed: Collection[Hashable] = ()

    def __len__(self) -> int:
        return 0

    def key(self, index: int) -> Hashable:
        raise IndexError(index)

    def find(self, key: Hashable) -> int | None:
        return None

    def row(self, index: int, now_ms: int) -> Row:
        raise IndexError(index)
