"""Steps of figures, and for how long a list keeps its order, so that rows do not jump."""

import numpy as np

from kview.derive.view import Floats
from kview.model.snapshot import Longs

HOLD_MS = 10_000
"""A list keeps its order for this long if nothing in it changes its severity."""

STEP = 1.1
"""Figures that differ by less than this factor count as equal and stay in the order of their names."""


def steps(values: Floats) -> Longs:
    """Return the steps of values; 0 for those that are not known, or too low to matter."""
    known = np.where(np.isfinite(values) & (values > 0), values, 0.0)
    taken: Longs = np.rint(np.log1p(known) / np.log(STEP)).astype(np.int64)
    return taken
