"""Numbers for words, and for combinations of keys."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Words:
    """A list of different words that grows."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, word: str) -> int:
        """Return the code of a word. A new word gets the next one."""
        return self._places.setdefault(word, len(self._places))

    def codes(self, column: pa.Array) -> Longs:
        """Return the codes of a column's words, −1 for null."""
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        to = np.array([*(self.place(word) for word in coded.dictionary.to_pylist()), -1], np.int64)
        places = pc.fill_null(coded.indices.cast(pa.int64()), len(to) - 1)
        codes: Longs = to[places.to_numpy(zero_copy_only=False)]
        return codes

    def listed(self) -> list[str]:
        """Return all words by code."""
        return list(self._places)

    def ranks(self) -> Longs:
        """Return each word's place in the order of all words, by code."""
        words = self.listed()
        ranks = np.empty(len(words), np.int64)
        ranks[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
        return ranks


class Index:
    """Numbers the different combinations of some keys, which are 0 or more."""

    def __init__(self, *keys: Longs) -> None:
        key, size = np.zeros(len(keys[0]), np.int64), 1
        for column in keys:
            width = int(column.max()) + 1 if len(column) else 1
            key, size = key * width + column, size * width
        if size <= 4 * len(key) + 1_000:
            # A table of all combinations takes less time than sorting the keys.
            last = np.full(size, -1, np.int64)
            last[key] = np.arange(len(key))
            there = np.flatnonzero(last >= 0)
            places = np.empty(size, np.int64)
            places[there] = np.arange(len(there))
            self.at, self.example = places[key], last[there]
        else:
            _, self.example, self.at = np.unique(key, return_index=True, return_inverse=True)
        self.count = len(self.example)
        """`at` is the number of each row's combination, `example` a row of each combination."""

    def sums(self, values: Longs | None) -> Longs:
        """Return the sums of values per combination; None stands for zeros."""
        sums = np.zeros(self.count, np.int64)
        if values is not None and values.any():
            np.add.at(sums, self.at, values)
        return sums

    def most(self, values: Longs) -> Longs:
        """Return the greatest value per combination, at least −1."""
        most = np.full(self.count, -1, np.int64)
        np.maximum.at(most, self.at, values)
        return most


def near(values: Longs) -> Longs:
    """Return values as small numbers from 0 on."""
    if not len(values):
        return values
    least, most = int(values.min()), int(values.max())
    if most - least <= len(values) + 1_000:
        return values - least
    return np.unique(values, return_inverse=True)[1]
