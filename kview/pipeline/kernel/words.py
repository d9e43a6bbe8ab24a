"""Numbers for words."""

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
