"""How busy partitions are, in steps that hold for a while, so that lists in that order do not jump."""

import numpy as np

from kview.derive.align import Alignment
from kview.derive.view import Floats
from kview.model.snapshot import Longs

HOLD_MS = 10_000
"""A list keeps its order for this long if nothing in it changes its severity."""

STEP = 1.1
"""Rates that differ by less than this factor count as equal and stay in the order of their names."""


def next_busy(before: Longs, alignment: Alignment, rates: Floats, then_ms: int, now_ms: int) -> Longs:
    """Return a level of traffic for each partition, 0 if it is idle.

    The levels are calculated again once in HOLD_MS, and in every observation until some rate is known.
    `rates` are records per second, NaN if not known.
    """
    held = alignment.carry(before, 0)
    if then_ms // HOLD_MS == now_ms // HOLD_MS and len(before) and held.any():
        return held
    return steps(rates)


def steps(rates: Floats) -> Longs:
    """Return the steps of rates; 0 for rates that are not known, or too low to matter."""
    known = np.where(np.isfinite(rates) & (rates > 0), rates, 0.0)
    taken: Longs = np.rint(np.log1p(known) / np.log(STEP)).astype(np.int64)
    return taken
