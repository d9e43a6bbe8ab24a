"""Groups that commit no offsets: share groups, judged by their backlog, and Kafka Connect's workers, of which
nothing is judged."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import group_rows
from kview.derive.groups.verdicts import RANK
from kview.derive.series import Series
from kview.derive.view import Reason, Verdict
from kview.model.snapshot import Flags, Longs, Snapshot
from kview.model.states import GroupType
from kview.model.units import UNKNOWN

GROWS_AFTER = 30
"""Of so many moments the backlog must be known before it is said to grow or not: half a minute at the usual
interval. The last third is compared with the first."""


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


def commits_nothing(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return the groups that commit no offsets by nature."""
    return np.isin(snapshot.groups.type.astype(str), (GroupType.SHARE, GroupType.CONNECT))


def judged(
    snapshot: Snapshot, which: Flags, lag: Mapping[str, Series], ranks: Longs, reasons: NDArray[np.object_]
) -> None:
    """Put the verdicts on the groups `which`, that commit nothing, into `ranks`, and why into `reasons`.

    `lag` has each group's backlog at the last moments, oldest first.
    """
    groups = snapshot.groups
    for row in np.flatnonzero(which).tolist():
        verdict, reason = Verdict.NONE, Reason.WORKERS
        if groups.type[row] == GroupType.SHARE:
            verdict, reason = _of_share(int(groups.members[row]), np.array(lag[groups.group[row]]))
        ranks[row], reasons[row] = RANK[verdict], reason


def _of_share(members: int, lag: NDArray[np.float64]) -> tuple[Verdict, Reason]:
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
    if known[-third:].min() > known[:third].max():
        return Verdict.FALLING_BEHIND, Reason.BACKLOG_GROWS
    return Verdict.OK, Reason.NONE
