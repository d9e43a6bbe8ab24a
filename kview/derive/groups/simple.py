"""Simple groups: they never have members, so that only the pace of commits tells whether somebody reads.

Flink, Spark and all who assign partitions themselves commit like this.
"""

import numpy as np

from kview.derive.groups.commits import LATE_FACTOR
from kview.model.snapshot import Flags, Groups, Longs
from kview.model.states import GroupType
from kview.model.units import UNKNOWN

STILL_MS = 120_000
"""A simple group has not stopped before records have waited for this long."""


def are_simple(groups: Groups) -> Flags:
    """Return which groups never have members."""
    return np.asarray(groups.type == GroupType.SIMPLE, np.bool_)


def overdue(waited_ms: Longs, cadence_ms: Longs) -> Flags:
    """Return where records have waited for LATE_FACTOR × the group's cadence, and for STILL_MS.

    Nothing is overdue before the cadence is known.
    """
    late = waited_ms >= np.maximum(STILL_MS, LATE_FACTOR * cadence_ms)
    return np.asarray(late & (cadence_ms != UNKNOWN), np.bool_)
