"""What a table shows: a row's cells, and rows that are made on demand."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kview.tui.rows.columns import Column
from kview.tui.text import EMPTY, Line


class Row(NamedTuple):
    """A row's cells by column; `fresh` when something of it changed within the last seconds."""

    cells: tuple[Line, ...]
    fresh: bool = False


class Rows(Protocol):
    """The rows of one table in one view."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, in order."""
        ...

    @property
    def title(self) -> Line:
        """The panel's name, and in which order its rows are."""
        ...

    @property
    def empty(self) -> str:
        """Why there are no rows, if there are none."""
        ...

    def __len__(self) -> int: ...

    def key(self, index: int) -> Hashable:
        """What the row is: the same thing has the same key in every view."""
        ...

    def find(self, key: Hashable) -> int | None:
        """Where the row with that key is."""
        ...

    def row(self, index: int, now_ms: int) -> Row:
        """A row's cells; ages count to `now_ms`."""
        ...


@dataclass(frozen=True, slots=True)
class NoRows:
    """The rows of a table that has not been given any."""

    columns: Sequence[Column] = ()
    title: Line = EMPTY
    empty: str = ""

    def __len__(self) -> int:
        return 0

    def key(self, index: int) -> Hashable:
        raise IndexError(index)

    def find(self, key: Hashable) -> int | None:
        return None

    def row(self, index: int, now_ms: int) -> Row:
        raise IndexError(index)
