"""Words with numbers."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kview.model.snapshot import Longs


class Words:
    """A list of different words that grows, for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}

    def place(self, word: str) -> int:
        """Return the code of a word."""
        with self._lock:
            return self._places.setdefault(word, len(self._places))

    def codes(self, column: pa.Array) -> Longs:
        """Return the codes of a column's words, −1 for null."""
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        to = np.array([*(self.place(word) for word in coded.dictionary.to_pylist()), -1], np.int64)
        places = pc.fill_null(coded.indices.cast(pa.int64()), len(to) - 1)
        found: Longs = to[places.to_numpy(zero_copy_only=False)]
        return found

    def listed(self) -> list[str]:
        """Return all words by code."""
        with self._lock:
            return list(self._places)

    def ranks(self) -> Longs:
        """Return each word's place in the order of all words, by code."""
        words = self.listed()
        ranks = np.empty(len(words), np.int64)
        ranks[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
        return ranks
