"""Share groups: they commit no offsets, and are judged by their backlog as their coordinator counts it."""

import numpy as np
from msgspec import Struct

from kview.derive.align import group_rows
from kview.derive.view import Floats, Reason, Verdict
from kview.model.snapshot import Flags, Longs, Snapshot
from kview.model.units import UNKNOWN

GROWS_AFTER = 30
"""Of so many moments the backlog must be known before it is said to grow or not: half a minute at the usual
interval. The first third, the middle of the second, and the last third must each be higher than the one
before: a backlog that was raised once and stays there does not grow."""


class Backlogs(Struct, frozen=True):
    """The backlogs of share groups. The arrays have the rows of `Groups`."""

    records: Longs
    """The sum of the known lags, UNKNOWN if none is known."""
    is_bound: Flags
    """Whether the lag of some partition is not known."""


def backlogs(snapshot: Snapshot) -> Backlogs:
    """Return what waits for each share group, as its coordinator counts it."""
    table, size = snapshot.share_offsets, len(snapshot.groups)
    index = group_rows(snapshot.groups.group, table.group)
    mine = index >= 0
    known = mine & (table.lag != UNKNOWN)
    sums = np.zeros(size, np.int64)
    np.add.at(sums, index[known], table.lag[known])
    some = np.bincount(index[known], minlength=size) > 0
    unknown = np.bincount(index[mine & ~known], minlength=size) > 0
    return Backlogs(np.where(some, sums, UNKNOWN), some & unknown)


def verdict(members: int, lag: Floats) -> tuple[Verdict, Reason]:
    """Return what a share group with so many members does, and why.

    `lag` is its backlog at the last moments, oldest first, NaN where it was not known.
    """
    known = lag[~np.isnan(lag)]
    if not len(known) or np.isnan(lag[-1]):
        return Verdict.UNKNOWN, Reason.LAG_UNKNOWN
    if not known[-1]:
        return Verdict.OK, Reason.NONE
    if members == 0:
        return Verdict.STOPPED, Reason.NO_MEMBERS
    if len(known) < GROWS_AFTER:
        return Verdict.UNDECIDED, Reason.NONE
    third = len(known) // 3
    middle = np.sort(known[third:-third])
    lower, upper = middle[(len(middle) - 1) // 2], middle[len(middle) // 2]
    if known[:third].max() < lower and upper < known[-third:].min():
        return Verdict.FALLING_BEHIND, Reason.BACKLOG_GROWS
    return Verdict.OK, Reason.NONE
