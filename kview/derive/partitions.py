"""Partitions: status, severity, uncommitted records, and the log end of each replica."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import Alignment, positions, take
from kview.derive.brokers import Silence
from kview.derive.rates import LOOK_BACK_MS, minus
from kview.derive.view import Floats, LongMatrix, PartitionFigures, PartitionStatus
from kview.model.events import Severity
from kview.model.snapshot import Brokers, IdMatrix, Longs, Partitions, Replicas, Snapshot
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

READING_SKEW_MS = 20
"""Two readings of one observation may be this far apart even if they were received together."""

MAX_SKEW_MS = 5_000
"""If the readings of a follower and its leader are further apart than this, replica lag is not known."""

STATUSES = tuple(PartitionStatus)
"""The statuses, ordered by how much they matter. A status's rank is its index in this tuple."""
RANK = {status: rank for rank, status in enumerate(STATUSES)}
_STATUS_WORDS = np.array([*STATUSES, None], object)[:-1]
SEVERITIES = {
    PartitionStatus.NO_LEADER: Severity.RISK,
    PartitionStatus.SILENT_LEADER: Severity.RISK,
    PartitionStatus.FROZEN: Severity.RISK,
    PartitionStatus.UNDER_MIN_ISR: Severity.RISK,
    PartitionStatus.AT_MIN_ISR: Severity.WARN,
    PartitionStatus.UNDER_REPLICATED: Severity.WARN,
}
_SEVERITY_WORDS = np.array([*(SEVERITIES.get(s, Severity.CALM) for s in STATUSES), None], object)[:-1]


@dataclass(frozen=True, slots=True)
class Placement:
    """What follows from leaders, ISRs and silent brokers alone.

    Matrices have the shape of `replicas`.
    """

    in_isr: NDArray[np.bool_]
    replica_silent: NDArray[np.bool_]
    isr_count: Longs
    replication: Longs
    leader_silent_since_ms: Longs
    silent_in_isr_since_ms: Longs
    """When the first member of the ISR other than the leader fell silent; UNKNOWN if all of them answer."""


def placement(table: Partitions, quiet: Silence) -> Placement:
    """Return the placement of partitions."""
    real = table.replicas >= 0
    in_isr = real & (table.replicas[:, :, None] == table.isr[:, None, :]).any(2)
    since = np.where(real, quiet.since_of(table.replicas), UNKNOWN)
    silent = real & quiet.of(table.replicas)
    waiting = silent & in_isr & (table.replicas != table.leader[:, None])
    never = np.iinfo(np.int64).max
    first = np.where(waiting, since, never).min(1, initial=never)
    return Placement(
        in_isr,
        silent,
        (table.isr >= 0).sum(1).astype(np.int64),
        real.sum(1).astype(np.int64),
        quiet.since_of(table.leader),
        np.where(first == never, UNKNOWN, first),
    )


def under_replicated(placed: Placement) -> NDArray[np.bool_]:
    """Return which partitions have fewer in-sync replicas than replicas.

    This is what --under-replicated-partitions lists.
    """
    return np.less(placed.isr_count, placed.replication)


def under_min(table: Partitions, placed: Placement) -> NDArray[np.bool_]:
    """Return which partitions have fewer in-sync replicas than required, as --under-min-isr-partitions does.

    The required number is min(min.insync.replicas, replicas). False if the setting is not known.
    """
    required = np.minimum(table.min_isr.astype(np.int64), placed.replication)
    return np.not_equal(table.min_isr, UNKNOWN_ID) & np.less(placed.isr_count, required)


def at_min(table: Partitions, placed: Placement) -> NDArray[np.bool_]:
    """Return which partitions have exactly min.insync.replicas in sync, as --at-min-isr-partitions does.

    Partitions that have no more replicas than that are left out. For the others, the next loss stops
    acks=all.
    """
    return np.equal(placed.isr_count, table.min_isr) & under_replicated(placed)


def status_ranks(table: Partitions, placed: Placement, frozen: Longs, moving: NDArray[np.bool_]) -> Longs:
    """Return each partition's worst status as its rank (see STATUSES).

    `moving` marks partitions under reassignment.
    """
    S = PartitionStatus
    preferred = table.replicas[:, 0] if table.replicas.shape[1] else table.leader
    found = (
        (S.NO_LEADER, table.leader == NO_BROKER),
        (S.UNKNOWN, (table.leader == UNKNOWN_ID) | (placed.replication == 0)),
        (S.SILENT_LEADER, placed.leader_silent_since_ms != UNKNOWN),
        (S.FROZEN, frozen != UNKNOWN),
        (S.UNDER_MIN_ISR, under_min(table, placed)),
        (S.AT_MIN_ISR, at_min(table, placed)),
        (S.UNDER_REPLICATED, under_replicated(placed)),
        (S.REASSIGNING, moving),
        (S.NOT_PREFERRED, table.leader != preferred),
    )
    return np.select([mask for _, mask in found], [RANK[status] for status, _ in found], RANK[S.OK])


def words(ranks: Longs) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return the statuses and severities for these ranks."""
    return _STATUS_WORDS[ranks], _SEVERITY_WORDS[ranks]


def reassigning(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return the partitions that a reassignment is moving."""
    table, moves = snapshot.partitions, snapshot.reassignments
    if not len(moves):
        return np.zeros(len(table), np.bool_)
    keys = set(zip(moves.topic, moves.partition.tolist(), strict=True))
    return np.array(
        [key in keys for key in zip(table.topic, table.partition.tolist(), strict=True)], np.bool_
    )


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


@dataclass(frozen=True, slots=True)
class Readings:
    """What each replica itself answered. Matrices have the shape of `Partitions.replicas`."""

    ends: LongMatrix
    times_ms: LongMatrix
    sizes: LongMatrix
    listed: LongMatrix
    """The row of `Replicas` from which each reading was taken, −1 if there is none."""


def listed_replicas(table: Partitions, replicas: Replicas) -> LongMatrix:
    """Return each listed replica's row in `replicas`, −1 if there is no such row."""
    listed = np.full(table.replicas.shape, -1, np.int64)
    if len(replicas) and table.replicas.shape[1]:
        match = table.replicas[replicas.row] == replicas.broker[:, None]
        found = np.flatnonzero(match.any(1))
        listed[replicas.row[found], match.argmax(1)[found]] = found
    return listed


def replica_readings(table: Partitions, replicas: Replicas, listed: LongMatrix | None = None) -> Readings:
    """Return the readings of listed replicas.

    `listed` is the result of `listed_replicas`, if it is already known.
    """
    at = listed_replicas(table, replicas) if listed is None else listed
    columns = replicas.log_end, replicas.log_end_ms, replicas.size_bytes
    if at.size == len(replicas) and np.array_equal(at.ravel(), np.arange(at.size)):
        ends, times_ms, sizes = (column.reshape(at.shape) for column in columns)
    else:
        ends, times_ms, sizes = (take(column, at, UNKNOWN) for column in columns)
    return Readings(ends, times_ms, sizes, at)


def replica_lag(
    table: Partitions, placed: Placement, ends: LongMatrix, times: LongMatrix, per_second: Floats
) -> LongMatrix:
    """Return the leader's end at the moment of the follower's reading − the follower's end.

    The leader's end at that moment follows from the rate between the leader's readings. Below rate × skew,
    the result is 0. A negative result is left as it is, because it means that the follower will truncate its
    log. UNKNOWN for silent replicas and leaders, whose old readings say nothing about the present.
    """
    known = (ends != UNKNOWN) & (table.log_end != UNKNOWN)[:, None] & ~placed.replica_silent
    known &= ((placed.leader_silent_since_ms == UNKNOWN) & (table.leader >= 0))[:, None]
    apart = np.where(known, table.log_end_ms[:, None] - times, 0)
    known &= np.abs(apart) <= MAX_SKEW_MS
    rate = np.nan_to_num(per_second)[:, None]
    lag = np.where(known, table.log_end[:, None] - ends, 0) - np.rint(rate * apart / 1000).astype(np.int64)
    noise = rate * (np.abs(apart) + READING_SKEW_MS) / 1000
    lag = np.where(np.abs(lag) <= noise, 0, lag)
    lag[table.replicas == table.leader[:, None]] = 0
    return np.where(known, lag, UNKNOWN)


def rack_safe(table: Partitions, brokers: Brokers) -> NDArray[np.bool_]:
    """Return whether each partition's replicas are on more than one rack.

    The result is also True if there is only one rack or one replica, or if a rack is not known.
    """
    names = {name: number for number, name in enumerate(sorted({rack for rack in brokers.rack if rack}))}
    if len(names) < 2:
        return np.ones(len(table), np.bool_)
    codes = np.array([names.get(rack, -1) for rack in brokers.rack], np.int64)
    rack = take(codes, positions(brokers.id, table.replicas), -1)
    real = table.replicas >= 0
    unknown = (real & (rack < 0)).any(1)
    high = np.where(real, rack, -1).max(1, initial=-1)
    low = np.where(real, rack, len(names)).min(1, initial=len(names))
    return np.asarray((real.sum(1) < 2) | unknown | (high != low), np.bool_)


def same_lists(a: IdMatrix, b: IdMatrix) -> NDArray[np.bool_]:
    """Return row by row whether two padded lists have the same ids.

    Kafka may order an ISR differently from answer to answer.
    """
    if a is b:
        return np.ones(len(a), np.bool_)
    width = max(a.shape[1], b.shape[1])
    pad_a, pad_b = (
        np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=NO_BROKER) if m.shape[1] < width else m
        for m in (a, b)
    )
    equal: NDArray[np.bool_] = (pad_a == pad_b).all(1)
    rest = np.flatnonzero(~equal)
    if len(rest):
        equal[rest] = (np.sort(pad_a[rest], 1) == np.sort(pad_b[rest], 1)).all(1)
    return equal


def changed_since(
    before: Partitions, changed_ms: Longs, alignment: Alignment, table: Partitions, now_ms: int
) -> Longs:
    """Return when leader, epoch or ISR was last seen to change, UNKNOWN if not within the look-back."""
    carried = alignment.carry(changed_ms, UNKNOWN)
    carried = np.where(carried > now_ms - LOOK_BACK_MS, carried, UNKNOWN)
    columns = ("leader", "leader_epoch", "isr")
    if alignment.rows is None and all(getattr(before, name) is getattr(table, name) for name in columns):
        return carried
    leader = alignment.carry(before.leader, UNKNOWN_ID)
    epoch = alignment.carry(before.leader_epoch, UNKNOWN_ID)
    isr_same = same_lists(alignment.carry(before.isr, NO_BROKER), table.isr)
    other = (leader != table.leader) | (epoch != table.leader_epoch) | ~isr_same
    return np.where(alignment.known() & other, now_ms, carried)


def in_rates(table: Partitions, placed: Placement, per_second: Floats) -> Floats:
    """Return the rates as read, NaN for partitions whose leader does not answer."""
    unled = (placed.leader_silent_since_ms != UNKNOWN) | (table.leader < 0)
    return np.where(unled, np.nan, per_second)


def partition_figures(
    snapshot: Snapshot,
    placed: Placement,
    frozen: Longs,
    in_rate: Floats,
    fallback_rate: Floats,
    changed_ms: Longs,
    readings: Readings,
) -> PartitionFigures:
    """Return the figures of the partitions.

    `in_rate` is the result of `in_rates`. While those rates are not known, `fallback_rate` is used to
    estimate the effect of skew.
    """
    table = snapshot.partitions
    rate = np.where(np.isfinite(in_rate), in_rate, fallback_rate)
    ranks = status_ranks(table, placed, frozen, reassigning(snapshot))
    status, severity = words(ranks)
    ends, times = readings.ends, readings.times_ms
    first = table.replicas[:, 0] if table.replicas.shape[1] else table.leader
    return PartitionFigures(
        status=status,
        severity=severity,
        in_rate=in_rate,
        uncommitted=uncommitted(table, rate, placed.leader_silent_since_ms),
        frozen_since_ms=frozen,
        leader_silent_since_ms=placed.leader_silent_since_ms,
        isr_count=placed.isr_count,
        preferred=np.asarray(table.leader == first, np.bool_),
        rack_safe=rack_safe(table, snapshot.brokers),
        replica_end=ends,
        replica_end_ms=times,
        replica_lag=replica_lag(table, placed, ends, times, rate),
        in_isr=placed.in_isr,
        replica_silent=placed.replica_silent,
        changed_ms=changed_ms,
    )


def worst_first(table: Partitions, figures: PartitionFigures) -> NDArray[np.int64]:
    """Return the rows of the user's topics by status, the worst first.

    Rows of equal status keep the table's order, so that nothing jumps.
    """
    rows = np.flatnonzero(~table.internal)
    ranks = np.array([RANK[status] for status in figures.status[rows]], np.int64)
    ranks[ranks == RANK[PartitionStatus.UNKNOWN]] = RANK[PartitionStatus.REASSIGNING]
    return rows[np.argsort(ranks, kind="stable")].astype(np.int64)
