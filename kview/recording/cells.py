"""Differences between two encoded snapshots, as cells.

A cell is (column number, row, value). When a column changes its shape, it is written completely. Its shape
comes first (row −1 has the number of rows, row −2 the width of a matrix), followed by every cell that differs
from the column's fill value. In a matrix, the cell's row is the matrix row × width + position.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.recording.columns import IS_TEXT, NAMES, Array, Encoded, fill_of

LENGTH_AT = -1
WIDTH_AT = -2

Ints = NDArray[np.int64]


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
