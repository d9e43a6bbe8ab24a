"""The figures of groups' partitions: lag, lag in time, rates and verdicts.

A cell that was not read again keeps its last figures.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.derive.align import Alignment, take
from kview.derive.groups.commit_moves import read_rate
from kview.derive.groups.commits import Commits, Reading
from kview.derive.groups.connect import paused_sinks
from kview.derive.groups.losses import LogStarts, Losses, abandoned, start_then
from kview.derive.groups.simple import are_simple
from kview.derive.groups.trends import NEAR_MS, Trends
from kview.derive.groups.turns import cadence, resting, stuck
from kview.derive.groups.unread import Behind, Unread, behind
from kview.derive.groups.verdicts import RANK, VERDICTS, Circumstances, reasons, verdict_ranks
from kview.derive.history import held_once, lean
from kview.derive.partitions.rates import minus
from kview.derive.view import Floats, OffsetFigures, Reason, Verdict
from kview.model.snapshot import Longs, Offsets, Partitions, Snapshot
from kview.model.states import REBALANCING, GroupState
from kview.model.units import NEVER, NO_OFFSET, UNKNOWN

MOST_MARKERS = 2
"""A reader that commits the record after the last one it has seen is this far before the last stable offset,
if the records in between are the ends of transactions."""

_KEPT: dict[str, Any] = {
    "log_end_offset": UNKNOWN,
    "log_end_ms": UNKNOWN,
    "lag": UNKNOWN,
    "lag_is_bound": False,
    "behind_ms": UNKNOWN,
    "behind_is_bound": False,
    "behind_is_estimate": False,
    "catch_up_ms": UNKNOWN,
    "rank": RANK[Verdict.UNKNOWN],
    "verdict": Verdict.UNKNOWN,
    "reason": Reason.NONE,
    "reason_ms": UNKNOWN,
    "reason_count": UNKNOWN,
    "lost": 0,
    "lost_is_bound": False,
}
"""The columns that do not change while a cell is not read again, and their values for a row without a
past."""


class Kept(Struct, frozen=True):
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
        columns = {name: held_once(alignment.carry(self.columns[name], fill)) for name, fill in _KEPT.items()}
        return Kept(alignment.carry(self.of_ms, UNKNOWN), columns)


class Lags(Struct, frozen=True):
    """LOG-END-OFFSET and LAG, as in `Reading`. The arrays have the rows of `Offsets`."""

    end: Longs
    end_ms: Longs
    lag: Longs
    beyond: Longs


def record_lag(table: Partitions, rows: Longs, offsets: Offsets) -> Lags:
    """Return LOG-END-OFFSET (the high watermark) and LAG of each row, UNKNOWN if one of the two offsets is.

    A commit between the high watermark and the leader's log end has lag 0, because the watermark of a new
    leader may be behind. A commit beyond a log end that was read after it has no lag. Nor has a commit beyond
    a watermark that was read before it, which only shows that the leader did not answer in time.
    """
    end = take(table.high_watermark, rows, UNKNOWN)
    end_ms = take(table.high_watermark_ms, rows, UNKNOWN)
    log_end = take(table.log_end, rows, UNKNOWN)
    log_end_ms = take(table.log_end_ms, rows, UNKNOWN)
    committed = np.where(offsets.committed <= NO_OFFSET, UNKNOWN, offsets.committed)
    lag = minus(end, committed)
    negative = (lag != UNKNOWN) & (lag < 0)
    older = (end_ms != UNKNOWN) & (end_ms < offsets.received_ms)
    known_end = (log_end != UNKNOWN) & (log_end_ms >= offsets.received_ms) & (committed != UNKNOWN)
    beyond = np.where(known_end, np.maximum(np.where(known_end, committed - log_end, 0), 0), 0)
    lag = np.where(negative, np.where(older | (beyond > 0), UNKNOWN, 0), lag)
    return Lags(end, end_ms, lag, beyond)


class Earlier(Struct, frozen=True):
    """What the previous observation said about the rows of this one. The arrays have the rows of
    `Offsets`."""

    began_ms: int
    received_ms: Longs
    """When each offset was read."""
    starts: LogStarts


def earlier(then: Snapshot, partitions: Alignment, rows: Longs, received_ms: Longs) -> Earlier:
    """Return what the snapshot `then` said.

    `partitions` is its alignment, `rows` are rows of the present partitions, and `received_ms` is when `then`
    read each of the present offsets.
    """
    offset = partitions.carry(then.partitions.log_start, UNKNOWN)
    at_ms = partitions.carry(then.partitions.log_start_ms, UNKNOWN)
    starts = LogStarts(take(offset, rows, UNKNOWN), take(at_ms, rows, UNKNOWN))
    return Earlier(then.observation.began_ms, received_ms, starts)


def reading(
    snapshot: Snapshot,
    then: Earlier,
    rows: Longs,
    lags: Lags,
    per_second: Floats,
    frozen_since_ms: Longs,
    group: Longs,
) -> Reading:
    """Return what a snapshot says about commits.

    `per_second` and `frozen_since_ms` have the rows of `Partitions`. `rows` and `group` are the rows of each
    offset's partition and group.
    """
    offsets, table, groups = snapshot.offsets, snapshot.partitions, snapshot.groups
    received_ms, seen = offsets.received_ms, snapshot.observation
    starts = LogStarts(take(table.log_start, rows, UNKNOWN), take(table.log_start_ms, rows, UNKNOWN))
    stable_since_ms = _at_stable(offsets.committed, table, rows)
    alive = np.asarray((groups.members != 0) & (groups.state != GroupState.DEAD), np.bool_)
    joining = np.array([state in REBALANCING for state in groups.state.tolist()], np.bool_)
    return Reading(
        committed=offsets.committed,
        received_ms=received_ms,
        fresh=received_ms != then.received_ms,
        end=lags.end,
        end_ms=lags.end_ms,
        lag=lags.lag,
        beyond=lags.beyond,
        log_start=starts.offset,
        log_start_ms=starts.received_ms,
        start_then=start_then(starts, then.starts, received_ms, seen.began_ms, then.began_ms),
        write_rate=take(per_second, rows, np.nan),
        has_members=take(alive, group, False),
        simple=take(are_simple(groups), group, False),
        joining=take(joining, group, False),
        held=(take(frozen_since_ms, rows, UNKNOWN) != UNKNOWN)
        | (take(table.leader, rows, -1) < 0)
        | (stable_since_ms != UNKNOWN),
        stable_since_ms=stable_since_ms,
        group=group,
        now_ms=seen.ended_ms,
    )


def _at_stable(committed: Longs, table: Partitions, rows: Longs) -> Longs:
    """Return since when the last stable offset has stood still at which a row's group waits, or UNKNOWN.

    A group beyond it reads uncommitted records, which nothing holds back.
    """
    stable = take(table.last_stable, rows, UNKNOWN)
    waits = (committed > NO_OFFSET) & (committed <= stable) & (committed >= stable - MOST_MARKERS)
    return np.where(waits, take(table.last_stable_since_ms, rows, UNKNOWN), UNKNOWN)


class Led(Struct, frozen=True):
    """What the figures of a group's partition need to know about the partition.

    The arrays have the rows of `Partitions`.
    """

    in_rate: Floats
    leader_silent_since_ms: Longs
    """Since when leaders that the cluster has lost have been silent; UNKNOWN for all others."""
    frozen_since_ms: Longs
    unseen: NDArray[np.bool_]
    """The partitions whose leaders do not answer us, and may live for all we know."""


class Followed(Struct, frozen=True):
    """What is known about the groups' partitions, from this snapshot's readings and from earlier steps."""

    read: Reading
    unread: Unread
    commits: Commits
    trends: Trends
    losses: Losses
    readers: Longs
    kept: Kept


def circumstances(snapshot: Snapshot, rows: Longs, led: Led, known: Followed, late: Behind) -> Circumstances:
    """Return the state of the cluster and the group for each row. `late` is the lag in time."""
    table, offsets, now_ms = snapshot.partitions, snapshot.offsets, snapshot.observation.ended_ms
    read, group, members = known.read, known.read.group, known.read.has_members
    joined = take(np.asarray(snapshot.groups.members > 0, np.bool_), group, False) & members
    leader = take(table.leader, rows, -1)
    silent = take(led.leader_silent_since_ms, rows, UNKNOWN) != UNKNOWN
    waiting = (offsets.committed > NO_OFFSET) & (read.lag != UNKNOWN) & (read.lag > 0)
    empty = take(
        np.asarray((snapshot.groups.state == GroupState.EMPTY) & (snapshot.groups.members <= 0), np.bool_),
        group,
        False,
    )
    return Circumstances(
        lag=read.lag,
        beyond=read.beyond,
        behind_ms=late.guess_ms,
        behind_is_bound=late.is_open,
        high_watermark=np.where(leader >= 0, read.end, UNKNOWN),
        leader_known=(rows >= 0) & ~take(led.unseen, rows, False),
        leader_silent=(rows >= 0) & silent,
        no_leader=(rows >= 0) & (leader == -1),
        frozen=take(led.frozen_since_ms, rows, UNKNOWN) != UNKNOWN,
        has_members=joined,
        nobody=~members & ~read.simple,
        simple=read.simple,
        paused=take(paused_sinks(snapshot), group, False),
        stable_since_ms=read.stable_since_ms,
        cadence_ms=cadence(known.commits, group, len(snapshot.groups)),
        write_rate=take(led.in_rate, rows, np.nan),
        stuck=stuck(known.commits, joined & waiting, known.readers, now_ms),
        resting=resting(known.commits, known.readers, now_ms),
        abandoned=abandoned(known.losses, known.commits, empty, group, len(snapshot.groups)),
        trend=known.trends.shown,
        level=known.trends.level,
    )


def readers(offsets: Offsets) -> Longs:
    """Return a number for each row's group and owner, from 0."""
    number: dict[tuple[str, str], int] = {}
    pairs = zip(offsets.group.tolist(), offsets.owner.tolist(), strict=True)
    return np.array([number.setdefault(pair, len(number)) for pair in pairs], np.int64)


def catch_up(at: Circumstances, read: Floats, ranks: Longs) -> Longs:
    """Return lag ÷ (read − write) in ms.

    NEVER if the lag does not shrink. UNKNOWN if there is nothing to catch up with, if rates are not known, or
    if nobody can write at present.
    """
    near = (ranks == RANK[Verdict.OK]) & (at.behind_ms != UNKNOWN) & (at.behind_ms < NEAR_MS)
    wanted = (at.lag != UNKNOWN) & (at.lag > 0) & ~near & ~at.frozen & ~at.leader_lost
    wanted &= np.isfinite(read) & np.isfinite(at.write_rate)
    gain = np.where(wanted, read - at.write_rate, 1.0)
    shrinks = gain > 0
    ms = np.minimum(np.where(wanted, at.lag, 0) * 1000.0 / np.where(shrinks, gain, 1.0), float(NEVER // 2))
    return np.where(wanted, np.where(shrinks, ms.astype(np.int64), NEVER), UNKNOWN)


def offset_figures(snapshot: Snapshot, rows: Longs, led: Led, known: Followed) -> OffsetFigures:
    """Return the figures of the groups' partitions. `rows` are rows of `snapshot.partitions`."""
    offsets, now_ms, commits = snapshot.offsets, snapshot.observation.ended_ms, known.commits
    read = known.read
    late = behind(known.unread, offsets.received_ms)
    at = circumstances(snapshot, rows, led, known, late)
    ranks = verdict_ranks(commits, at)
    why = reasons(ranks, commits, at, offsets.owner)
    rate = read_rate(commits, now_ms)
    nowhere = (at.leader_lost & (late.ms == 0)) | (at.beyond > 0)  # not at any record of the log

    fresh = lean(
        OffsetFigures(
            partition_row=rows,
            log_end_offset=read.end,
            log_end_ms=read.end_ms,
            lag=read.lag,
            lag_is_bound=(at.leader_lost | ((rows >= 0) & ~at.leader_known)) & (read.lag != UNKNOWN),
            behind_ms=np.where(nowhere, UNKNOWN, late.ms),
            behind_is_bound=late.is_bound & ~nowhere,
            behind_is_estimate=late.is_estimate & ~nowhere,
            read_rate=rate,
            write_rate=at.write_rate,
            catch_up_ms=catch_up(at, rate, ranks),
            rank=ranks,
            verdict=VERDICTS[ranks],
            reason=why.kind,
            reason_ms=why.ms,
            reason_count=why.count,
            lost=known.losses.records,
            lost_is_bound=(known.losses.records > 0) & ~known.losses.exact,
        )
    )
    stale = (known.kept.of_ms == offsets.received_ms) & (offsets.received_ms != UNKNOWN)
    if not stale.any():
        return fresh
    old = {
        name: held_once(np.where(stale, column, getattr(fresh, name)))
        for name, column in known.kept.columns.items()
    }
    return replace(fresh, **old)
