"""The observations of a segment in memory, as the values of each column at each moment.

Cells come in two orders: by moment (in a stream), or by position and then moment (in Parquet, where numbers
are differences to the previous value at the same position). A column in which many rows change at every
moment is stored as a matrix, other columns as cells.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kview.model.snapshot import Longs, Observation
from kview.recording.columns import LENGTH_AT, NAMES, WIDTH_AT, Array, Cells, Encoded, dtype_of, fill_of
from kview.recording.segment import cells, differences

MATRIX_SHARE = 0.25
"""A column is stored as cells if a smaller share of its values than this changes at each of its moments.
Cells then take less memory than a matrix."""


class Kind(NamedTuple):
    """The type of a column's values, and the value of rows that were never written."""

    dtype: Any
    fill: Any


def kind_of(name: str) -> Kind:
    """Return the kind of a column of NAMES."""
    return Kind(dtype_of(name), fill_of(name))


Shapes = Mapping[int, tuple[int, ...]]
"""Sequence at which a column was written completely → the column's shape from then on."""


class Column(Protocol):
    """A column over the moments of a segment."""

    @property
    def moments(self) -> Longs:
        """The sequences at which the column changed or was written completely, ascending."""
        ...

    def layer(self, number: int) -> Array:
        """Return the column's values from `moments[number]` until the next of its moments."""
        ...


@dataclass(slots=True)
class Written:
    """A column as cells, in the order of its moments."""

    kind: Kind
    moments: Longs
    starts: Longs
    """The indices at which the cells of each moment start, followed by the index after the last cell."""
    row: NDArray[np.int32]
    value: Array
    shapes: Mapping[int, tuple[int, ...]]
    """The shapes of the column, by indices into `moments`."""
    held: tuple[int, Array] | None = None

    def layer(self, number: int) -> Array:
        """Return the column's values at a moment; see `Column`. Reading moments in order is fast."""
        whole = max(at for at in self.shapes if at <= number)
        if self.held is not None and whole <= self.held[0] <= number:
            begin, out = self.held[0] + 1, self.held[1].copy()
        else:
            begin, out = whole, np.full(self.shapes[whole], self.kind.fill, self.kind.dtype)
        which = slice(self.starts[begin], self.starts[number + 1])
        # If a position has several values, the last one wins.
        out.reshape(-1)[self.row[which]] = self.value[which]
        self.held = (number, out)
        return out


@dataclass(frozen=True, slots=True)
class Matrix:
    """A column of numbers as a matrix, with a row for each of its moments."""

    kind: Kind
    moments: Longs
    shape: tuple[int, ...]
    values: NDArray[np.int64]

    def layer(self, number: int) -> Array:
        """Return the column's values at a moment; see `Column`."""
        # A copy does not keep the entire matrix in memory, as a view would.
        values: Array = self.values[number].astype(self.kind.dtype)
        return values.reshape(self.shape)


@dataclass(slots=True)
class _Place:
    """A column and the values last read from it, which are valid from sequence `since` to before `until`."""

    column: Column
    since: int = 0
    until: int = 0
    values: Array = field(default_factory=lambda: np.empty(0))

    def at(self, sequence: int, like: Array | None) -> Array:
        if not self.since <= sequence < self.until:
            moments = self.column.moments
            number = int(np.searchsorted(moments, sequence, "right")) - 1
            self.since = int(moments[number])
            self.until = int(moments[number + 1]) if number + 1 < len(moments) else 2**62
            values = self.column.layer(number)
            alike = like is not None and like.shape == values.shape and np.array_equal(like, values)
            self.values = like if like is not None and alike else values
        return self.values


class Moments:
    """The observations of a segment, and its columns by moment.

    If a column did not change between two moments that are read one after the other, the same array is
    returned for both.
    """

    def __init__(
        self,
        numbers: pa.Table,
        words: pa.Table,
        seen: dict[int, Observation],
        names: tuple[str, ...] = NAMES,
    ) -> None:
        """Build the moments from the `numbers` and `words` of a segment, from a stream or from Parquet.

        `names` are those that the column numbers stand for.
        """
        self._seen = seen
        by_place = "change" in numbers.schema.names
        texts = _by_column(cells(words), names)
        written: dict[str, Column] = {}
        for name, run in _by_column(cells(numbers), names).items():
            # In cells ordered by position, lengths and widths come first.
            low = slice(0, int(np.searchsorted(run.row, np.int32(0)))) if by_place else run.row < 0
            values = run.select(slice(low.stop, None)) if isinstance(low, slice) else run.select(~low)
            shapes = _shapes(run.select(low), by_place)
            if name in texts:
                written[name] = _written(kind_of(name), _by_moment(texts[name]), shapes)
            else:
                make = _numbers if by_place else _written
                written[name] = make(kind_of(name), values, shapes)
        self._places = {name: _Place(column) for name, column in written.items()}
        self._moving = [name for name, place in self._places.items() if len(place.column.moments) > 1]
        self._still: dict[str, Array] = {}

    def observation(self, sequence: int) -> Observation:
        """Return when and how the observation at a moment was made."""
        return self._seen[sequence]

    def at(self, sequence: int, like: Encoded | None = None) -> Encoded:
        """Return the columns at a moment, reusing the arrays of `like` that are equal."""
        others = like.columns if like is not None else {}
        if not self._still:
            self._still = {name: place.at(sequence, others.get(name)) for name, place in self._places.items()}
        moving = {name: self._places[name].at(sequence, others.get(name)) for name in self._moving}
        return Encoded({**self._still, **moving})

    def changes(self, names: tuple[str, ...]) -> Longs:
        """Return the moments at which one of these columns changed or was written completely."""
        return np.unique(np.concatenate([self._places[name].column.moments for name in names]))

    def column(self, name: str, sequence: int) -> Array:
        """Return the values of one column at a moment."""
        return self._places[name].at(sequence, None)

    def falls(self, name: str) -> Longs:
        """Return the moments at which a value of this column of numbers fell."""
        column = self._places[name].column
        numbers = range(len(column.moments))
        layers = (column.layer(number) for number in numbers)
        has_fallen = [fell(before, now) for before, now in pairwise(layers)]
        return column.moments[1:][np.array(has_fallen, np.bool_)]


def fell(before: Array, now: Array) -> bool:
    """Return whether a value fell. If there are more or fewer rows, nobody can tell."""
    return before.shape == now.shape and bool((now < before).any())


def _by_column(part: Cells, names: tuple[str, ...]) -> dict[str, Cells]:
    """Split cells by column, preserving their order within a column."""
    if np.any(part.column[1:] < part.column[:-1]):
        part = part.select(np.argsort(part.column, kind="stable"))
    bounds = np.searchsorted(part.column, np.arange(len(names) + 1, dtype=np.int16)).tolist()
    runs = zip(names, pairwise(bounds), strict=True)
    return {name: part.select(slice(begin, end)) for name, (begin, end) in runs if begin < end}


def _by_moment(part: Cells) -> Cells:
    """Sort cells by moment, preserving their order within a moment."""
    if not np.any(part.sequence[1:] < part.sequence[:-1]):
        return part
    return part.select(np.argsort(part.sequence, kind="stable"))


def _shapes(part: Cells, by_place: bool) -> Shapes:
    """Convert the cells of lengths and widths to shapes."""
    values = differences(part.value) if by_place else part.value
    sides: dict[int, dict[int, int]] = {LENGTH_AT: {}, WIDTH_AT: {}}
    last = {LENGTH_AT: 0, WIDTH_AT: 0}
    for row, at, value in zip(part.row.tolist(), part.sequence.tolist(), values.tolist(), strict=True):
        last[row] = value + last[row] if by_place else value
        sides[row][at] = last[row]
    lengths, widths = sides.values()
    return {at: (length, widths[at]) if at in widths else (length,) for at, length in lengths.items()}


def _written(kind: Kind, part: Cells, shapes: Shapes) -> Written:
    """Build a column from its cells in the order of moments."""
    moments = np.array(sorted({*part.sequence[_starts(part.sequence)].tolist(), *shapes}), np.int64)
    starts = np.append(np.searchsorted(part.sequence, moments), len(part))
    numbers = np.searchsorted(moments, list(shapes)).tolist()
    by_number = dict(zip(numbers, shapes.values(), strict=True))
    return Written(kind, moments, starts, part.row, part.value, by_number)


def _numbers(kind: Kind, part: Cells, shapes: Shapes) -> Column:
    """Build a column from its changes in the order of positions."""
    first = min(shapes)
    number = part.sequence - first
    present = np.bincount(number, minlength=1) > 0
    present[0] = True
    moments = np.flatnonzero(present)
    places = int(np.prod(shapes[first]))
    few = len(part) < MATRIX_SHARE * places * len(moments)
    if few or len(shapes) > 1 or kind.fill != 0:
        return _written(kind, _by_moment(_summed(part)), shapes)
    if len(moments) < len(present):
        number = (np.cumsum(present) - 1)[number]
    matrix = np.zeros((len(moments), places), np.int64)
    number *= places
    number += part.row
    matrix.reshape(-1)[number] = part.value
    sums = np.zeros(places, np.int64)
    for line in matrix:
        sums += differences(line)
        line[:] = sums
    return Matrix(kind, moments + first, shapes[first], matrix)


def _summed(part: Cells) -> Cells:
    """Convert changes in the order of positions to the resulting values."""
    sums = np.cumsum(differences(part.value))
    starts = _starts(part.row)
    before = np.where(starts > 0, sums[starts - 1], 0)
    return replace(part, value=sums - np.repeat(before, np.diff(np.append(starts, len(part)))))


def _starts(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices at which runs of equal values start."""
    begins = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return np.flatnonzero(begins)
