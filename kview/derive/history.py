"""Columns kept from past observations, thinned out with age.

Recent observations are kept close together, older ones further apart.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

LEAST_ROWS = 4_096
"""Shorter columns stay as they are."""


class Dated(Protocol):
    """Something that was observed at a known time."""

    @property
    def at_ms(self) -> int:
        """Epoch ms of the observation."""
        ...


Layer = TypeVar("Layer", bound=Dated)


class Thinning(Struct, frozen=True):
    """Keeps one layer per `bucket_ms` of absolute time for layers younger than `age_ms`.

    The last layer of a bucket is kept. Buckets nest, because each width divides the next. So which layers
    remain depends only on the layers of the last `age_ms`, not on when kview began to watch.
    """

    steps: tuple[tuple[int, int], ...]
    """Pairs of (age_ms, bucket_ms), the youngest first."""

    def bucket(self, age_ms: int) -> int | None:
        """Return the width of the bucket at an age, None if the age is too great."""
        return next((bucket for limit, bucket in self.steps if age_ms < limit), None)


def thinned(layers: tuple[Layer, ...], now_ms: int, rule: Thinning) -> tuple[Layer, ...]:
    """Return `layers` (oldest first) without the layers that the rule drops."""
    kept: list[Layer] = []
    following = None
    for layer in reversed(layers):
        width = rule.bucket(now_ms - layer.at_ms)
        if width is None:
            break
        if following is None or following // width != layer.at_ms // width:
            kept.append(layer)
        following = layer.at_ms
    return tuple(reversed(kept))


def each(layers: tuple[Layer, ...], change: Callable[[Layer], Layer]) -> tuple[Layer, ...]:
    """Return the layers with `change` applied to each."""
    return tuple(change(layer) for layer in layers)


Columns = TypeVar("Columns", bound=Struct)


def lean(columns: Columns) -> Columns:
    """Return the same columns, those with one value in all rows as arrays that hold it once.

    Such an array cannot be written to. Of what is known about committed offsets, most never happened to any:
    with 180,000 of them, each column would take 1.4 MB.
    """
    single = {}
    for name in columns.__struct_fields__:
        column = getattr(columns, name)
        if isinstance(column, np.ndarray) and (once := held_once(column)) is not column:
            single[name] = once
    return replace(columns, **single) if single else columns


def held_once(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column, or an array that holds its value once if it has one value in all rows."""
    return np.broadcast_to(column[:1].copy(), column.shape) if _has_one_value(column) else column


def _has_one_value(column: NDArray[Any]) -> bool:
    """Return whether a column is worth replacing: it is long and has a single value, which may be NaN."""
    if column.ndim != 1 or len(column) < LEAST_ROWS or column.dtype == object or not column.strides[0]:
        return False
    first = column[0]
    if first != first:
        return bool(np.isnan(column).all())
    return bool(column[-1] == first and column[len(column) // 2] == first and (column == first).all())
