"""Snapshots as plain columns that change little from one observation to the next, and back.

`encode` and `decode` need only one snapshot. Two kinds of values usually follow from others, so a sentinel
takes their place:

- The time of a reading is mostly the latest answer of the same broker (or group). That answer's time is
  stored once, in an extra column named `<column>@` with one value per broker.
- The log end of a leader's own replica, and its time, equal those of the partition. The last stable offset
  mostly equals the high watermark.

So a partition that did not change has no changed column, even though all its values were read again.

The differences between two encoded snapshots are cells: (column number, row, value). When a column changes
its shape, it is written completely. Its shape comes first (row −1 has the number of rows, row −2 the width
of a matrix), followed by every cell that differs from the column's fill value. In a matrix, the cell's row is
the matrix row × width + position.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.model.snapshot import Observation, Snapshot, Table, columns
from kview.model.units import NO_BROKER, UNKNOWN

Array = NDArray[Any]
Ints = NDArray[np.int64]

LENGTH_AT = -1
WIDTH_AT = -2

SAME = UNKNOWN + 1
LATEST = UNKNOWN + 2
"""Sentinels for "the same as the column it follows" and "read when its broker last answered". No offset or
time is that far below zero."""

TABLES: dict[str, type[Table]] = {
    name: kind
    for name, kind in Snapshot.__annotations__.items()
    if isinstance(kind, type) and issubclass(kind, Table)
}

COLUMNS = {table: columns(kind) for table, kind in TABLES.items()}
"""The columns of each table, by name."""

CLOCK_OF = {
    "partitions.log_start_ms": "partitions.leader",
    "partitions.high_watermark_ms": "partitions.leader",
    "partitions.last_stable_ms": "partitions.leader",
    "partitions.log_end_ms": "partitions.leader",
    "replicas.log_end_ms": "replicas.broker",
    "offsets.received_ms": "offsets.group",
}
"""Column of times → the column of brokers or groups. Rows of the same broker or group come from the same
answer."""


def _names() -> tuple[str, ...]:
    names = []
    for table, kinds in COLUMNS.items():
        for column in kinds:
            name = f"{table}.{column}"
            names += [name, f"{name}@"] if name in CLOCK_OF else [name]
    return tuple(names)


NAMES = _names()
"""Every column of every table, in order. The column numbers of a recording are indices into this list, and
its manifest repeats the list."""

IS_TEXT = tuple(
    not name.endswith("@") and COLUMNS[name.partition(".")[0]][name.partition(".")[2]].dtype is np.object_
    for name in NAMES
)


def dtype_of(name: str) -> Any:
    """Return the numpy type of a column of NAMES."""
    table, _, column = name.partition(".")
    return np.int64 if column.endswith("@") else COLUMNS[table][column].dtype


def fill_of(name: str) -> Any:
    """Return the value of a column's rows that were never written."""
    table, _, column = name.partition(".")
    if column.endswith("@"):
        return UNKNOWN
    kind = COLUMNS[table][column]
    if kind.dimensions == 2:
        return NO_BROKER
    return "" if kind.dtype is np.object_ else 0


@dataclass(frozen=True, slots=True)
class Encoded:
    """The columns of a snapshot, by their names in NAMES. Do not write to the arrays."""

    columns: Mapping[str, Array]


class _Kept:
    """A cache of the last result of each named function, valid while it is called with the same arrays."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[tuple[Array, ...], Any]] = {}

    def get(self, name: str, of: tuple[Array, ...], build: Callable[[], Any]) -> Any:
        held = self._held.get(name)
        if (
            held is None
            or len(held[0]) != len(of)
            or any(a is not b for a, b in zip(held[0], of, strict=True))
        ):
            self._held[name] = held = (of, build())
        return held[1]


class Codec:
    """Encodes snapshots, or decodes them.

    The codec remembers what did not change since the previous snapshot, which is faster and preserves the
    identity of unchanged arrays. Use one instance for one direction and one sequence of snapshots.
    """

    def __init__(self) -> None:
        self._kept = _Kept()

    def encode(self, snapshot: Snapshot) -> Encoded:
        """Return the columns of a snapshot."""
        out: dict[str, Array] = {
            f"{table}.{column}": getattr(getattr(snapshot, table), column)
            for table, kinds in COLUMNS.items()
            for column in kinds
        }
        self._follow(out, _same)
        for name, by in CLOCK_OF.items():
            of = (out[name], out[by])
            clock, times = self._kept.get(name, of, partial(self._clocked, out, name, by))
            out[f"{name}@"], out[name] = clock, times
        return Encoded(out)

    def decode(self, encoded: Encoded, observation: Observation) -> Snapshot:
        """Return the snapshot that was encoded."""
        out = dict(encoded.columns)
        for name, by in CLOCK_OF.items():
            clock = out.pop(f"{name}@")
            of = (out[name], clock, out[by])
            out[name] = self._kept.get(name, of, partial(self._unclocked, out, name, by, clock))
        self._follow(out, _unsame)
        tables: dict[str, Any] = {}
        for table, kind in TABLES.items():
            arrays = tuple(out[f"{table}.{column}"] for column in COLUMNS[table])
            tables[table] = self._kept.get(f"{table} table", arrays, partial(kind, *arrays))
        return Snapshot(observation, **tables)

    def _follow(self, out: dict[str, Array], change: Callable[[Array, Array], Array]) -> None:
        """Apply `change` to the columns that follow another column.

        The other columns stay unchanged.
        """
        watermark = out["partitions.high_watermark"]
        stable = out["partitions.last_stable"]
        out["partitions.last_stable"] = self._kept.get(
            "last stable", (stable, watermark), partial(change, stable, watermark)
        )
        of = out["partitions.leader"], out["replicas.row"], out["replicas.broker"]
        rows = self._kept.get("leaders", of, partial(_rows_led, *of))
        for column in ("log_end", "log_end_ms"):
            both = out[f"replicas.{column}"], out[f"partitions.{column}"]
            out[f"replicas.{column}"] = self._kept.get(
                column, (*both, *rows), partial(_of_leaders, change, *both, *rows)
            )

    def _codes(self, out: dict[str, Array], by: str) -> tuple[Array, int]:
        """Number the brokers or groups in a column, and return each row's number and the count of numbers."""
        column = out[by]

        def build() -> tuple[Array, int]:
            if not len(column):
                return np.empty(0, np.int64), 0
            if column.dtype == object:
                codes = np.cumsum(np.r_[False, column[1:] != column[:-1]])
            else:
                codes = np.unique(column, return_inverse=True)[1]
            return codes, int(codes.max()) + 1

        codes, count = self._kept.get(f"{by} codes", (column,), build)
        return codes, count

    def _clocked(self, out: dict[str, Array], name: str, by: str) -> tuple[Array, Array]:
        codes, count = self._codes(out, by)
        times = out[name]
        clock = np.full(count, UNKNOWN, np.int64)
        np.maximum.at(clock, codes, times)
        return clock, np.where(times == clock[codes], LATEST, times)

    def _unclocked(self, out: dict[str, Array], name: str, by: str, clock: Array) -> Array:
        codes, _ = self._codes(out, by)
        return np.where(out[name] == LATEST, clock[codes], out[name])


def _rows_led(leader: Array, row: Array, broker: Array) -> tuple[Array, Array]:
    """Return the rows of the replicas that lead, and the rows of their partitions."""
    leads = np.flatnonzero(leader[row] == broker)
    return leads, row[leads]


def _of_leaders(
    change: Callable[[Array, Array], Array], replicas: Array, partitions: Array, leads: Array, rows: Array
) -> Array:
    """Return the replicas' column, changed in the rows of leaders."""
    out = replicas.copy()
    out[leads] = change(replicas[leads], partitions[rows])
    return out


def _same(column: Array, followed: Array) -> Array:
    return np.where(column == followed, SAME, column)


def _unsame(column: Array, followed: Array) -> Array:
    return np.where(column == SAME, followed, column)


def interned(values: list[str]) -> list[str]:
    """Return the same words, sharing one object among all equal words."""
    return [sys.intern(value) for value in values]


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of numbers or of words as parallel arrays.

    The cells of a moment are ordered by column, then by row.
    """

    column: NDArray[np.int16]
    row: NDArray[np.int32]
    value: Array
    sequence: Ints
    """The sequence of the moment at which each cell was written."""

    def __len__(self) -> int:
        return len(self.row)

    def select(self, which: Any) -> "Cells":
        """Return the cells selected by a mask, a slice or an array of indices."""
        return Cells(self.column[which], self.row[which], self.value[which], self.sequence[which])


def changes(before: Encoded | None, now: Encoded, sequence: int) -> tuple[Cells, Cells]:
    """Return the numbers and the words that changed, or all of them if `before` is None."""
    numbers: list[tuple[int, Array, Array]] = []
    words: list[tuple[int, Array, Array]] = []
    for number, (name, is_text) in enumerate(zip(NAMES, IS_TEXT, strict=True)):
        new = now.columns[name]
        old = before.columns[name] if before is not None else None
        if new is old:
            continue
        if old is None or old.shape != new.shape:
            at = np.array([WIDTH_AT, LENGTH_AT] if new.ndim == 2 else [LENGTH_AT])
            numbers.append((number, at, np.array(new.shape[::-1])))
            rows = np.flatnonzero(new != fill_of(name))
        else:
            rows = np.flatnonzero(new != old)
        if len(rows):
            (words if is_text else numbers).append((number, rows, new.ravel()[rows]))
    return _joined(numbers, np.int64, sequence), _joined(words, np.object_, sequence)


def _joined(parts: list[tuple[int, Array, Array]], dtype: Any, sequence: int) -> Cells:
    if not parts:
        none = np.empty(0, np.int64)
        return Cells(none.astype(np.int16), none.astype(np.int32), none.astype(dtype), none)
    sizes = [len(rows) for _, rows, _ in parts]
    return Cells(
        np.repeat(np.array([number for number, _, _ in parts], np.int16), sizes),
        np.concatenate([rows for _, rows, _ in parts]).astype(np.int32),
        np.concatenate([values.astype(dtype, copy=False) for _, _, values in parts]),
        np.full(sum(sizes), sequence, np.int64),
    )
