"""The figures of the partitions in a view."""

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import first_that_holds
from kview.derive.partitions.placement import (
    at_min,
    replica_lag,
    under_min,
    under_replicated,
    unread,
)
from kview.derive.partitions.racks import safety_words
from kview.derive.partitions.rates import minus
from kview.derive.partitions.reassignments import reassigning
from kview.derive.seen import Seen
from kview.derive.statuses import RANK, SEVERITIES, STATUSES
from kview.derive.view import Floats, PartitionFigures, PartitionStatus
from kview.model.events import Severity
from kview.model.snapshot import Flags, Longs, Partitions
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

_STATUS_WORDS = np.array([*STATUSES, None], object)[:-1]
_SEVERITY_WORDS = np.array([*(SEVERITIES.get(s, Severity.CALM) for s in STATUSES), None], object)[:-1]


def status_ranks(seen: Seen, unreached: Flags) -> Longs:
    """Return each partition's worst status as its rank (see STATUSES).

    `unreached` marks partitions whose leader lives but does not answer us, so that their state is not known
    unless metadata tells.
    """
    S = PartitionStatus
    table, placed = seen.snapshot.partitions, seen.placed
    moving, now_ms = reassigning(seen.snapshot), seen.snapshot.observation.ended_ms
    preferred = table.replicas[:, 0] if table.replicas.shape[1] else table.leader
    statuses = (
        (S.NO_LEADER, table.leader == NO_BROKER),
        (S.UNKNOWN, (table.leader == UNKNOWN_ID) | (placed.assigned == 0)),
        (S.SILENT_LEADER, (placed.leader_silent_since_ms != UNKNOWN) & ~unreached),
        (S.FROZEN, seen.frozen_since_ms != UNKNOWN),
        (S.UNDER_MIN_ISR, under_min(table, placed)),
        (S.AT_MIN_ISR, at_min(table, placed)),
        (S.UNDER_REPLICATED, under_replicated(placed)),
        (S.UNREAD, unread(table, placed, unreached, now_ms)),
        (S.UNKNOWN, unreached),
        (S.REASSIGNING, moving),
        (S.NOT_PREFERRED, table.leader != preferred),
    )
    ranks = [RANK[status] for status, _ in statuses]
    return first_that_holds([mask for _, mask in statuses], ranks, RANK[S.OK])


def words(ranks: Longs) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return the statuses and severities for these ranks."""
    return _STATUS_WORDS[ranks], _SEVERITY_WORDS[ranks]


def uncommitted(table: Partitions, in_rate: Floats, leader_silent_since: Longs) -> Longs:
    """Return the leader's log end − high watermark.

    The result is 0 below rate × skew of the two readings, and never negative, because the watermark is never
    beyond the log end.
    """
    gap = minus(table.log_end, table.high_watermark)
    apart = np.abs(np.where(gap == UNKNOWN, 0, table.log_end_ms - table.high_watermark_ms))
    noise = np.nan_to_num(in_rate) * apart / 1000
    gap = np.where((gap != UNKNOWN) & (gap < noise), 0, np.where(gap == UNKNOWN, gap, np.maximum(gap, 0)))
    return np.where((leader_silent_since != UNKNOWN) | (table.leader < 0), UNKNOWN, gap)


def partition_figures(
    seen: Seen, in_rate: Floats, fallback_rate: Floats, changed_ms: Longs
) -> PartitionFigures:
    """Return the figures of the partitions.

    `in_rate` is the result of `in_rates`. While those rates are not known, `fallback_rate` is used to
    estimate the effect of skew.
    """
    table, placed, unreached = seen.snapshot.partitions, seen.placed, seen.unreached
    rate = np.where(np.isfinite(in_rate), in_rate, fallback_rate)
    ranks = status_ranks(seen, unreached.leader)
    status, severity = words(ranks)
    ends, times = seen.readings.ends, seen.readings.times_ms
    first = table.replicas[:, 0] if table.replicas.shape[1] else table.leader
    return PartitionFigures(
        rank=ranks.astype(np.int8),
        status=status,
        severity=severity,
        in_rate=in_rate,
        uncommitted=uncommitted(table, rate, placed.leader_silent_since_ms),
        frozen_since_ms=seen.frozen_since_ms,
        leader_silent_since_ms=placed.leader_silent_since_ms,
        isr_count=placed.isr_count,
        preferred=np.asarray(table.leader == first, np.bool_),
        rack_safe=safety_words(seen.rack_codes),
        replica_end=ends,
        replica_end_ms=times,
        replica_lag=replica_lag(table, placed, ends, times, rate),
        in_isr=placed.in_isr,
        replica_silent=placed.replica_silent,
        being_added=placed.being_added,
        being_removed=placed.being_removed,
        leader_unreached=unreached.leader,
        replica_unreached=unreached.replicas,
        changed_ms=changed_ms,
    )


_NEEDS = [*(s for s in STATUSES if s in SEVERITIES), PartitionStatus.UNKNOWN, PartitionStatus.REASSIGNING]
_NEED = np.array([_NEEDS.index(s) if s in _NEEDS else len(_NEEDS) for s in STATUSES])
"""The place of each status, by rank, in a list in which the worst come first."""


def worst_first(table: Partitions, figures: PartitionFigures) -> NDArray[np.int64]:
    """Return the rows of the user's topics in the order of `ordered`."""
    return ordered(np.flatnonzero(~table.internal).astype(np.int64), figures)


def ordered(rows: Longs, figures: PartitionFigures) -> Longs:
    """Return `rows` by status, the worst first.

    After those in trouble come those of which nothing is known, those that are moved, then all others. Rows
    of equal status keep their order, that of their names.
    """
    return rows[np.argsort(_NEED[figures.rank[rows]], kind="stable")].astype(np.int64)
