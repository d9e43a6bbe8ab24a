"""The figures of groups' partitions: lag, lag in time, rates and verdicts.

A cell that was not read again keeps its last figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.derive import commits as past
from kview.derive.align import Alignment, group_rows, take
from kview.derive.commits import Commits
from kview.derive.lag import Points, behind
from kview.derive.rates import minus
from kview.derive.verdicts import RANK, VERDICTS, Circumstances, reasons, verdict_ranks
from kview.derive.view import Floats, OffsetFigures, Reason, Verdict
from kview.model.snapshot import Longs, Offsets, Partitions, Snapshot
from kview.model.states import GroupState
from kview.model.units import NEVER, NO_OFFSET, UNKNOWN

CAUGHT_UP_MS = 10_000
"""A group's partition with verdict ok that is behind by less than this has nothing to catch up with. The time
is two default commit intervals."""

_KEPT: dict[str, Any] = {
    "log_end_offset": UNKNOWN,
    "lag": UNKNOWN,
    "behind_ms": UNKNOWN,
    "behind_is_bound": False,
    "catch_up_ms": UNKNOWN,
    "verdict": Verdict.UNKNOWN,
    "reason": Reason.NONE,
    "reason_ms": UNKNOWN,
    "reason_count": UNKNOWN,
    "lost": 0,
}
"""The columns that do not change while a cell is not read again, and their values for a row without a
past."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The figures that do not change while a cell is not read again. The arrays have the rows of
    `Offsets`."""

    of_ms: Longs
    """When the cells of the figures were read; UNKNOWN for rows without figures."""
    columns: Mapping[str, NDArray[Any]]

    @staticmethod
    def none(rows: int) -> "Kept":
        """Return rows without figures."""
        return Kept(np.full(rows, UNKNOWN), {name: np.full(rows, fill) for name, fill in _KEPT.items()})

    @staticmethod
    def of(offsets: Offsets, figures: OffsetFigures) -> "Kept":
        """Return what to keep of a step's figures."""
        return Kept(offsets.received_ms, {name: getattr(figures, name) for name in _KEPT})

    def carried(self, alignment: Alignment) -> "Kept":
        """Return the same figures in this step's rows."""
        if alignment.rows is None:
            return self
        columns = {name: alignment.carry(self.columns[name], fill) for name, fill in _KEPT.items()}
        return Kept(alignment.carry(self.of_ms, UNKNOWN), columns)


def record_lag(table: Partitions, rows: Longs, offsets: Offsets) -> tuple[Longs, Longs]:
    """Return LOG-END-OFFSET (the high watermark) and LAG of each row, UNKNOWN if one of the two offsets is.

    A negative lag is left as it is, unless the watermark was read before the commit. In that case it only
    shows that the partition's leader did not answer in time.
    """
    end = take(table.high_watermark, rows, UNKNOWN)
    end_ms = take(table.high_watermark_ms, rows, UNKNOWN)
    lag = minus(end, np.where(offsets.committed <= NO_OFFSET, UNKNOWN, offsets.committed))
    older = (end_ms != UNKNOWN) & (end_ms < offsets.received_ms)
    lag = np.where((lag != UNKNOWN) & (lag < 0) & older, UNKNOWN, lag)
    leaderless = take(table.leader, rows, -1) < 0
    return end, np.where(leaderless, UNKNOWN, lag)


def lost_records(table: Partitions, rows: Longs, offsets: Offsets) -> Longs:
    """Return the records between committed offset and log start, which no consumer of that group will see."""
    start = take(table.log_start, rows, UNKNOWN)
    known = (start != UNKNOWN) & (offsets.committed > NO_OFFSET)
    return np.where(known, np.maximum(np.where(known, start - offsets.committed, 0), 0), 0)


def members_by_offset(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return whether each row's group has members."""
    groups = snapshot.groups
    alive = (groups.members > 0) & (groups.state != GroupState.DEAD)
    return take(np.asarray(alive, np.bool_), group_rows(groups.group, snapshot.offsets.group), False)


@dataclass(frozen=True, slots=True)
class Led:
    """What the figures of a group's partition need to know about the partition.

    The arrays have the rows of `Partitions`.
    """

    in_rate: Floats
    leader_silent_since_ms: Longs
    frozen_since_ms: Longs


def circumstances(snapshot: Snapshot, rows: Longs, lag: Longs, end: Longs, led: Led) -> Circumstances:
    """Return the state of the cluster and the group for each row."""
    table = snapshot.partitions
    leader = take(table.leader, rows, -1)
    silent = take(led.leader_silent_since_ms, rows, UNKNOWN) != UNKNOWN
    return Circumstances(
        lag=lag,
        high_watermark=np.where(leader >= 0, end, UNKNOWN),
        leader_known=rows >= 0,
        leader_silent=(rows >= 0) & silent,
        no_leader=(rows >= 0) & (leader == -1),
        frozen=take(led.frozen_since_ms, rows, UNKNOWN) != UNKNOWN,
        has_members=members_by_offset(snapshot),
        write_rate=take(led.in_rate, rows, np.nan),
    )


def catch_up(lag: Longs, behind_ms: Longs, read: Floats, write: Floats, ranks: Longs) -> Longs:
    """Return lag ÷ (read − write) in ms.

    NEVER if the lag does not shrink. UNKNOWN if there is nothing to catch up with, or if rates are not known.
    """
    near = (ranks == RANK[Verdict.OK]) & (behind_ms != UNKNOWN) & (behind_ms < CAUGHT_UP_MS)
    wanted = (lag != UNKNOWN) & (lag > 0) & ~near & np.isfinite(read) & np.isfinite(write)
    gain = np.where(wanted, read - write, 1.0)
    shrinks = gain > 0
    ms = np.minimum(np.where(wanted, lag, 0) * 1000.0 / np.where(shrinks, gain, 1.0), float(NEVER // 2))
    return np.where(wanted, np.where(shrinks, ms.astype(np.int64), NEVER), UNKNOWN)


def offset_figures(
    snapshot: Snapshot, rows: Longs, led: Led, points: Points, commits: Commits, kept: Kept
) -> OffsetFigures:
    """Return the figures of the groups' partitions.

    `rows` are rows of `snapshot.partitions`. `points` and `commits` include this snapshot's readings.
    """
    offsets, now_ms = snapshot.offsets, snapshot.observation.ended_ms
    end, lag = record_lag(snapshot.partitions, rows, offsets)
    behind_ms, bound = behind(points, rows, offsets.committed, offsets.received_ms)
    at = circumstances(snapshot, rows, lag, end, led)
    ranks = verdict_ranks(commits, past.lag_growth(commits, now_ms), at)
    why = reasons(ranks, commits, at, offsets.owner)
    read = past.read_rate(commits, now_ms)

    fresh = OffsetFigures(
        partition_row=rows,
        log_end_offset=end,
        lag=lag,
        behind_ms=np.where(at.leader_lost & (behind_ms == 0), UNKNOWN, behind_ms),
        behind_is_bound=bound,
        read_rate=read,
        write_rate=at.write_rate,
        catch_up_ms=catch_up(lag, behind_ms, read, at.write_rate, ranks),
        verdict=VERDICTS[ranks],
        reason=why.kind,
        reason_ms=why.ms,
        reason_count=why.count,
        lost=lost_records(snapshot.partitions, rows, offsets),
    )
    stale = (kept.of_ms == offsets.received_ms) & (offsets.received_ms != UNKNOWN)
    if not stale.any():
        return fresh
    old = {name: np.where(stale, column, getattr(fresh, name)) for name, column in kept.columns.items()}
    return replace(fresh, **old)
