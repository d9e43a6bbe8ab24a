"""Rates from offsets that were read twice: per second of the time between the readings, never of the time
between looks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import Alignment
from kview.derive.view import Floats
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

MIN_INTERVAL_MS = 200
"""Two readings closer than this say more about the network than about the traffic."""

STALE_RATE_MS = 15_000
"""A rate whose newer reading is older than this is not shown as the rate of this moment."""

LOOK_BACK_MS = 600_000
"""How far back a figure of the view may depend on what was seen: ten minutes."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a log ended when it was last read, and how fast it grew between that reading and the one before
    it."""

    value: Longs
    received_ms: Longs
    per_second: Floats

    @staticmethod
    def none(rows: int) -> "Ends":
        """Nothing has been read."""
        unknown = np.full(rows, UNKNOWN, np.int64)
        return Ends(unknown, unknown, np.full(rows, np.nan))

    def carried(self, alignment: Alignment) -> "Ends":
        """The same in this step's rows."""
        return Ends(
            alignment.carry(self.value, UNKNOWN),
            alignment.carry(self.received_ms, UNKNOWN),
            alignment.carry(self.per_second, np.nan),
        )


def advance(before: Ends, value: Longs, received_ms: Longs, now_ms: int) -> tuple[Ends, NDArray[np.bool_]]:
    """Take new readings in; also the rows whose log end fell (truncation): those have no rate until the
    next reading.

    A cell that was not read again keeps its rate for STALE_RATE_MS. A rate over a gap is the mean over the
    whole gap.
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
    """A − b, UNKNOWN where either is."""
    return np.where((a == UNKNOWN) | (b == UNKNOWN), UNKNOWN, a - b)


def total(values: Floats) -> float:
    """The sum of what is known; NaN where nothing is."""
    return float(np.nansum(values)) if np.isfinite(values).any() else float("nan")


def sum_by(index: Longs, values: Floats, size: int) -> Floats:
    """Sums of the known values by index (−1: nobody's); NaN where an index has values but none is known, 0
    where it has none."""
    mine = index >= 0
    index, values = index[mine], values[mine]
    known = np.isfinite(values)
    sums = np.bincount(index[known], values[known], size)
    has = np.bincount(index, minlength=size) > 0
    has_known = np.bincount(index[known], minlength=size) > 0
    return np.where(has & ~has_known, np.nan, sums)
