"""A group's partitions: lag, lag in time, rates, verdicts. A cell that was not read again keeps its last figures."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kview.derive import commits as past
from kview.derive.align import Alignment, group_rows, take
from kview.derive.commits import Commits
from kview.derive.lag import Points, behind
from kview.derive.rates import minus
from kview.derive.verdicts import RANK, WORDS, Circumstances, reasons, verdict_ranks
from kview.derive.view import NEVER, Floats, OffsetFigures, PartitionFigures, Verdict
from kview.model.snapshot import Longs, Offsets, Partitions, Snapshot
from kview.model.states import GroupState
from kview.model.units import NO_OFFSET, UNKNOWN

CAUGHT_UP_MS = 10_000
"""A group whose verdict is ok and that is less than this behind has nothing to catch up: two default commit intervals."""

Scalar = TypeVar("Scalar", bound=np.generic)


def record_lag(table: Partitions, rows: Longs, offsets: Offsets) -> tuple[Longs, Longs]:
    """LOG-END-OFFSET (the high watermark) and LAG of each row; UNKNOWN where one of the two offsets is.

    A lag below zero is shown as it is, unless the watermark was read before the commit: then nothing is known but that the
    partition's leader did not answer in time.
    """
    end = take(table.high_watermark, rows, UNKNOWN)
    end_ms = take(table.high_watermark_ms, rows, UNKNOWN)
    lag = minus(end, np.where(offsets.committed <= NO_OFFSET, UNKNOWN, offsets.committed))
    older = (end_ms != UNKNOWN) & (end_ms < offsets.received_ms)
    lag = np.where((lag != UNKNOWN) & (lag < 0) & older, UNKNOWN, lag)
    leaderless = take(table.leader, rows, -1) < 0
    return end, np.where(leaderless, UNKNOWN, lag)


def lost_records(table: Partitions, rows: Longs, offsets: Offsets) -> Longs:
    """Records between the committed offset and the log start: no consumer of that group will see them."""
    start = take(table.log_start, rows, UNKNOWN)
    known = (start != UNKNOWN) & (offsets.committed > NO_OFFSET)
    return np.where(known, np.maximum(np.where(known, start - offsets.committed, 0), 0), 0)


def members_by_offset(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Whether each row's group has members."""
    groups = snapshot.groups
    alive = (groups.members > 0) & (groups.state != GroupState.DEAD)
    return take(np.asarray(alive, np.bool_), group_rows(groups.group, snapshot.offsets.group), False)


def circumstances(
    snapshot: Snapshot, rows: Longs, lag: Longs, end: Longs, figures: PartitionFigures
) -> Circumstances:
    """What the cluster and the group look like from each row."""
    table = snapshot.partitions
    leader = take(table.leader, rows, -1)
    silent = take(figures.leader_silent_since_ms, rows, UNKNOWN) != UNKNOWN
    return Circumstances(
        lag=lag,
        high_watermark=np.where(leader >= 0, end, UNKNOWN),
        leader_known=rows >= 0,
        leader_lost=(rows >= 0) & (silent | (leader == -1)),
        frozen=take(figures.frozen_since_ms, rows, UNKNOWN) != UNKNOWN,
        has_members=members_by_offset(snapshot),
        write_rate=take(figures.in_rate, rows, np.nan),
    )


def catch_up(lag: Longs, behind_ms: Longs, read: Floats, write: Floats, ranks: Longs) -> Longs:
    """Lag ÷ (read − write) in ms; NEVER where the lag does not shrink; UNKNOWN where there is nothing to catch up or rates are not known."""
    near = (ranks == RANK[Verdict.OK]) & (behind_ms != UNKNOWN) & (behind_ms < CAUGHT_UP_MS)
    wanted = (lag != UNKNOWN) & (lag > 0) & ~near & np.isfinite(read) & np.isfinite(write)
    gain = np.where(wanted, read - write, 1.0)
    shrinks = gain > 0
    ms = np.minimum(np.where(wanted, lag, 0) * 1000.0 / np.where(shrinks, gain, 1.0), float(NEVER // 2))
    return np.where(wanted, np.where(shrinks, ms.astype(np.int64), NEVER), UNKNOWN)


def offset_figures(
    snapshot: Snapshot,
    rows: Longs,
    figures: PartitionFigures,
    points: Points,
    before_commits: Commits,
    before: OffsetFigures | None,
    alignment: Alignment,
) -> tuple[OffsetFigures, Commits]:
    """`rows` are rows of `snapshot.partitions`; `before` the figures of the step before, in its own rows."""
    offsets, now_ms = snapshot.offsets, snapshot.observation.ended_ms
    end, lag = record_lag(snapshot.partitions, rows, offsets)
    behind_ms, bound = behind(points, rows, offsets.committed, offsets.received_ms, now_ms)
    known = past.carried(before_commits, alignment)
    stale = (known.received_ms == offsets.received_ms) & (offsets.received_ms != UNKNOWN)
    commits = past.follow(known, offsets.committed, offsets.received_ms, lag, now_ms)
    at = circumstances(snapshot, rows, lag, end, figures)
    ranks = verdict_ranks(commits, past.lag_growth(commits, now_ms), at)
    read = past.read_rate(commits, now_ms)

    def keep(now: NDArray[Scalar], then: NDArray[Scalar] | None, fill: Any) -> NDArray[Scalar]:
        """The figure of the step before where the cell was not read again."""
        return now if then is None or not stale.any() else np.where(stale, alignment.carry(then, fill), now)

    old = before
    made = OffsetFigures(
        partition_row=rows,
        log_end_offset=keep(end, old and old.log_end_offset, UNKNOWN),
        lag=keep(lag, old and old.lag, UNKNOWN),
        behind_ms=keep(behind_ms, old and old.behind_ms, UNKNOWN),
        behind_is_bound=keep(bound, old and old.behind_is_bound, False),
        read_rate=read,
        write_rate=at.write_rate,
        catch_up_ms=keep(
            catch_up(lag, behind_ms, read, at.write_rate, ranks), old and old.catch_up_ms, UNKNOWN
        ),
        verdict=keep(WORDS[ranks], old and old.verdict, Verdict.UNKNOWN),
        reason=keep(reasons(ranks, commits, at, offsets.owner), old and old.reason, ""),
        lost=keep(lost_records(snapshot.partitions, rows, offsets), old and old.lost, 0),
    )
    return made, commits
