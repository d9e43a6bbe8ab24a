"""Rates of offsets that were read twice.

A rate is per second between the two readings, not between observations.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment
from kview.derive.view import Floats
from kview.model.snapshot import Flags, Longs
from kview.model.units import UNKNOWN

MIN_INTERVAL_MS = 200
"""If two readings are closer than this, their difference says more about the network than about the
traffic."""

STALE_RATE_MS = 15_000
"""If the newer reading of a rate is older than this, the rate is not shown as the current rate."""

LOOK_BACK_MS = 600_000
"""How far back the figures of a view may depend on what was seen: ten minutes."""

SETTLE_MS = 60_000
"""How far back events may depend on what was seen. Something that began shortly before the look-back is only
recognised shortly after its beginning, so events are kept for as much less than the look-back."""


class Ends(Struct, frozen=True):
    """Where a log ended in its last reading, and how fast it grew since the previous reading."""

    value: Longs
    received_ms: Longs
    per_second: Floats

    @staticmethod
    def none(rows: int) -> "Ends":
        """Return the state before any reading."""
        unknown = np.full(rows, UNKNOWN, np.int64)
        return Ends(unknown, unknown, np.full(rows, np.nan))

    def carried(self, alignment: Alignment) -> "Ends":
        """Return the same state in this step's rows."""
        return Ends(
            alignment.carry(self.value, UNKNOWN),
            alignment.carry(self.received_ms, UNKNOWN),
            alignment.carry(self.per_second, np.nan),
        )


def advance(before: Ends, value: Longs, received_ms: Longs, now_ms: int) -> tuple[Ends, NDArray[np.bool_]]:
    """Add new readings. Returns the new state, and which rows' log ends fell (truncation).

    After a truncation there is no rate until the next reading. A cell that was not read again keeps its rate
    for STALE_RATE_MS. A rate over a gap is the mean over the entire gap.
    """
    known = (value != UNKNOWN) & (received_ms != UNKNOWN)
    had = before.value != UNKNOWN
    elapsed = np.where(known & had, received_ms - before.received_ms, 0)
    again = elapsed >= MIN_INTERVAL_MS
    grown = np.where(again, value - before.value, 0)
    fell = grown < 0
    rate = np.where(again, grown * 1000.0 / np.maximum(elapsed, 1), before.per_second)
    taken = again | (known & ~had)
    received = np.where(taken, received_ms, before.received_ms)
    old = (received != UNKNOWN) & (received < now_ms - STALE_RATE_MS)
    rate[fell | old] = np.nan
    return Ends(np.where(taken, value, before.value), received, rate), fell


def minus(a: Longs, b: Longs) -> Longs:
    """Return a − b, UNKNOWN if either of them is unknown."""
    return np.where((a == UNKNOWN) | (b == UNKNOWN), UNKNOWN, a - b)


def total(values: Floats) -> float:
    """Return the sum of the known values, NaN if none is known."""
    return float(np.nansum(values)) if np.isfinite(values).any() else float("nan")


def sum_by(index: Longs, values: Floats, size: int) -> Floats:
    """Return the sums of the known values by index, leaving out index −1.

    NaN if an index has values but none is known, 0 if it has no values.
    """
    mine = index >= 0
    index, values = index[mine], values[mine]
    known = np.isfinite(values)
    sums = np.bincount(index[known], values[known], size)
    has = np.bincount(index, minlength=size) > 0
    has_known = np.bincount(index[known], minlength=size) > 0
    return np.where(has & ~has_known, np.nan, sums)


def leaves_out(index: Longs, values: Floats, size: int) -> Flags:
    """Return which sums of `sum_by` are lower bounds, because some of their values are not known."""
    mine = index >= 0
    index, known = index[mine], np.isfinite(values[mine])
    some, others = (np.bincount(index[mask], minlength=size) > 0 for mask in (known, ~known))
    return np.asarray(some & others, np.bool_)
