"""Share groups: they commit no offsets, and are judged by their backlog as their coordinator counts it."""

import numpy as np
from msgspec import Struct

from kview.derive.align import group_rows, rows_at, take
from kview.derive.groups.trends import FALLING_MS
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
    write_rate: Floats
    """Records per second that are written to the partitions whose lags are known, as far as that is known."""


def backlogs(snapshot: Snapshot, in_rate: Floats) -> Backlogs:
    """Return what waits for each share group, as its coordinator counts it.

    `in_rate` are the rates of partitions.
    """
    table, size = snapshot.share_offsets, len(snapshot.groups)
    index = group_rows(snapshot.groups.group, table.group)
    mine = index >= 0
    known = mine & (table.lag != UNKNOWN)
    sums = np.zeros(size, np.int64)
    np.add.at(sums, index[known], table.lag[known])
    some = np.bincount(index[known], minlength=size) > 0
    unknown = np.bincount(index[mine & ~known], minlength=size) > 0
    rates = np.nan_to_num(take(in_rate, rows_at(snapshot.partitions, table.topic, table.partition), 0.0))
    traffic = np.zeros(size)
    np.add.at(traffic, index[known], rates[known])
    return Backlogs(np.where(some, sums, UNKNOWN), some & unknown, traffic)


def verdict(members: int, lag: Floats, write_rate: float) -> tuple[Verdict, Reason]:
    """Return what a share group with so many members does, and why.

    `lag` is its backlog at the last moments, oldest first, NaN where it was not known. `write_rate` is as in
    `Backlogs`: a backlog of a few seconds grows and shrinks with every fetch and acknowledgement.
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
    least = known[-third:].min()
    if known[:third].max() < lower and upper < least and least * 1000.0 >= write_rate * FALLING_MS:
        return Verdict.FALLING_BEHIND, Reason.BACKLOG_GROWS
    return Verdict.OK, Reason.NONE
