"""Series for sparklines and plots: the last values of each key, and their known stretches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.view import SERIES_POINTS, Floats

Key = TypeVar("Key", str, int)
Series = tuple[float, ...]


def next_moments(before: tuple[int, ...], now_ms: int) -> tuple[int, ...]:
    """Return the moments of a series after this step: at most SERIES_POINTS, all within the look-back."""
    kept = tuple(at for at in before[-(SERIES_POINTS - 1) :] if at > now_ms - LOOK_BACK_MS)
    return (*kept, now_ms)


def extended(
    before: Mapping[Key, Series], keys: Sequence[Key], values: Floats, points: int
) -> tuple[Series, ...]:
    """Return each key's series with its new value at the end, at most `points` values.

    The series of a new key starts here. A value that does not change is one object, and so is a series in
    which nothing changes: those of 15,000 groups at rest would take 30 MB.
    """
    old: int = points - 1
    made: list[Series] = []
    for key, value in zip(keys, values.tolist(), strict=True):
        held: Series = before.get(key, ())
        last = held[-1] if held else value
        same = last == value or (last != last and value != value)
        series = (*(held[-old:] if old else ()), last if same else value)
        made.append(held if same and series == held else series)
    return tuple(made)


def stretches(values: Sequence[float]) -> Iterator[tuple[int, list[float]]]:
    """Yield the runs of known values, each with the position of its first, because plotext cannot handle
    NaN."""
    known: list[float] = []
    for place, value in enumerate((*values, math.nan)):
        if math.isfinite(value):
            known.append(value)
        elif known:
            yield place - len(known), known
            known = []
