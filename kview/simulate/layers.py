"""An immutable mapping of which a changed copy costs little, however large it is.

Each step of the metadata has a mapping of all topics of its own, because the brokers' images may be of
different age. Copying 10,000 topics for each topic created would make creating them cost the square.
"""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from math import isqrt
from typing import Final, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

LAYER_MIN: Final = 32
"""Changes in a mapping's own layer before they are merged into a new base. In a larger mapping it is the
square root of its size, so that the layers and the merges cost about the same."""


class Layered(Mapping[K, V]):
    """A base that several mappings share, and the changes to it, which belong to one mapping.

    It is ordered like a dict: by first insertion, and a key that was removed and added again is last.
    """

    __slots__ = ("_base", "_removed", "_values")

    def __init__(
        self,
        base: dict[K, V],
        values: dict[K, V] | None = None,
        removed: frozenset[K] = frozenset(),
    ) -> None:
        self._base = base
        self._values = values or {}
        self._removed = removed  # keys of the base that do not count, even if they are among the values

    def changed(self, values: Mapping[K, V], removed: Iterable[K] = ()) -> "Layered[K, V]":
        """Return a mapping without the keys `removed`, and then with these values."""
        own, gone = dict(self._values), self._removed
        for key in removed:
            own.pop(key, None)
            if key in self._base:
                gone = gone | {key}
        own.update(values)
        result = Layered(self._base, own, gone)
        if len(own) + len(gone) > max(LAYER_MIN, isqrt(len(self._base))):
            result._merged()
        return result

    def _merged(self) -> dict[K, V]:
        """Return everything as one dict, which is the base from now on."""
        if self._values or self._removed:
            removed = self._removed
            kept = {k: v for k, v in self._base.items() if k not in removed} if removed else dict(self._base)
            kept.update(self._values)
            self._base, self._values, self._removed = kept, {}, frozenset()
        return self._base

    def __getitem__(self, key: K) -> V:
        if key in self._values:
            return self._values[key]
        if key in self._removed:
            raise KeyError(key)
        return self._base[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...

    def get(self, key: K, default: V | D | None = None, /) -> V | D | None:
        """Return the value of a key, or `default`. Unlike Mapping's own, it raises nothing on the way."""
        if key in self._values:
            return self._values[key]
        return default if key in self._removed else self._base.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._values or (key in self._base and key not in self._removed)

    def __iter__(self) -> Iterator[K]:
        return iter(self._merged())

    def __len__(self) -> int:
        return len(self._merged())

    def items(self) -> ItemsView[K, V]:
        """Return the keys with their values."""
        return self._merged().items()

    def values(self) -> ValuesView[V]:
        return self._merged().values()


def layered(mapping: Mapping[K, V]) -> Layered[K, V]:
    """Return a mapping in this form: itself if it already has it, else a copy."""
    return mapping if isinstance(mapping, Layered) else Layered(dict(mapping))
