"""Partitions: status, severity, uncommitted records, and the log end of each replica."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment, take
from kview.derive.brokers.silence import Silence
from kview.derive.lookup import replication
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.partitions.reassignments import changing
from kview.derive.view import Floats, LongMatrix
from kview.model.snapshot import Flags, IdMatrix, Longs, Partitions, Reassignments, Replicas
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

READING_SKEW_MS = 20
"""Two readings of one observation may be this far apart even if they were received together."""

MAX_SKEW_MS = 5_000
"""If the readings of a follower and its leader are further apart than this, replica lag is not known."""

UNREAD_AFTER_MS = 5_000
"""A leader may refuse for this long: an election and the metadata that tells of it take a second or two."""


class Placement(Struct, frozen=True):
    """What follows from leaders, ISRs and silent brokers alone.

    Matrices have the shape of `replicas`.
    """

    in_isr: NDArray[np.bool_]
    replica_silent: NDArray[np.bool_]
    isr_count: Longs
    assigned: Longs
    """The number of replicas, with those that a reassignment adds and removes."""
    replication: Longs
    """The number of replicas without those that a reassignment adds: with these the ISR is compared."""
    target: Longs
    """The number of replicas that the reassignment leaves."""
    being_added: NDArray[np.bool_]
    being_removed: NDArray[np.bool_]
    leader_silent_since_ms: Longs


class Unreached(Struct, frozen=True):
    """What lives, but does not answer us: leaders, and replicas as a matrix of the shape of `replicas`."""

    leader: Flags
    replicas: NDArray[np.bool_]


def placement(table: Partitions, moves: Reassignments, quiet: Silence) -> Placement:
    """Return the placement of partitions."""
    added, removed = changing(table, moves)
    assigned = replication(table)
    real = table.replicas >= 0
    in_isr = real & (table.replicas[:, :, None] == table.isr[:, None, :]).any(2)
    return Placement(
        in_isr,
        real & quiet.of(table.replicas),
        (table.isr >= 0).sum(1).astype(np.int64),
        assigned,
        assigned - added.sum(1),
        assigned - removed.sum(1),
        added,
        removed,
        quiet.since_of(table.leader),
    )


def lost_in_isr_since(table: Partitions, placed: Placement, quiet: Silence, lost: Flags) -> Longs:
    """Return when the first ISR member that the cluster has lost fell silent, leaders excepted.

    `lost` has the rows of `Brokers`. UNKNOWN if no member is lost.
    """
    if not lost.any():
        return np.full(len(table), UNKNOWN, np.int64)
    gone = Silence(quiet.ids, quiet.silent & lost, quiet.since_ms)
    waiting = placed.in_isr & gone.of(table.replicas) & (table.replicas != table.leader[:, None])
    never = np.iinfo(np.int64).max
    first = np.where(waiting, quiet.since_of(table.replicas), never).min(1, initial=never)
    return np.where(first == never, UNKNOWN, first)


def under_replicated(placed: Placement) -> NDArray[np.bool_]:
    """Return which partitions have fewer in-sync replicas than replicas, without those that are being added.

    This is what --under-replicated-partitions lists.
    """
    return np.less(placed.isr_count, placed.replication)


def under_min(table: Partitions, placed: Placement) -> NDArray[np.bool_]:
    """Return which partitions have fewer in-sync replicas than required, as --under-min-isr-partitions does.

    The required number is min(min.insync.replicas, replicas), in which Kafka counts replicas that are being
    added. False if the setting is not known.
    """
    required = np.minimum(table.min_isr.astype(np.int64), placed.assigned)
    return np.not_equal(table.min_isr, UNKNOWN_ID) & np.less(placed.isr_count, required)


def at_min(table: Partitions, placed: Placement) -> NDArray[np.bool_]:
    """Return which partitions have exactly min.insync.replicas in sync, as --at-min-isr-partitions does.

    Partitions that have no more replicas than that are left out. For the others, the next loss stops
    acks=all.
    """
    return np.equal(placed.isr_count, table.min_isr) & under_replicated(placed)


def unread(table: Partitions, placed: Placement, unreached: Flags, now_ms: int) -> Flags:
    """Return the partitions whose leaders answer us, but have refused for a while to answer for them.

    A partition that was never read counts at once.
    """
    answers = (table.leader >= 0) & (placed.leader_silent_since_ms == UNKNOWN) & ~unreached
    never = table.high_watermark_ms == UNKNOWN
    age_ms = np.where(never, UNREAD_AFTER_MS, now_ms - table.high_watermark_ms)
    refused = (table.error_code != 0) & (age_ms >= UNREAD_AFTER_MS)
    return np.asarray(answers & refused, np.bool_)


class Readings(Struct, frozen=True):
    """The log end that each replica reported for itself, when it was received, and the size of the log.

    The matrices have the shape of `Partitions.replicas`.
    """

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
        listed_rows = np.flatnonzero(match.any(1))
        listed[replicas.row[listed_rows], match.argmax(1)[listed_rows]] = listed_rows
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
    the result is 0. It is negative only if the follower's log ends beyond the leader's, which means that the
    follower will truncate its log. UNKNOWN for silent replicas and leaders, whose old readings say nothing
    about the present.
    """
    known = (ends != UNKNOWN) & (table.log_end != UNKNOWN)[:, None] & ~placed.replica_silent
    known &= ((placed.leader_silent_since_ms == UNKNOWN) & (table.leader >= 0))[:, None]
    apart = np.where(known, table.log_end_ms[:, None] - times, 0)
    known &= np.abs(apart) <= MAX_SKEW_MS
    rate = np.nan_to_num(per_second)[:, None]
    lag = np.where(known, table.log_end[:, None] - ends, 0) - np.rint(rate * apart / 1000).astype(np.int64)
    noise = np.ceil(rate * (np.abs(apart) + READING_SKEW_MS) / 1000)
    lag = np.where(np.abs(lag) <= noise, 0, lag)
    inside = known & (ends <= table.log_end[:, None])
    lag = np.where(inside, np.maximum(lag, 0), lag)
    lag[table.replicas == table.leader[:, None]] = 0
    return np.where(known, lag, UNKNOWN)


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
    return np.where(is_led(table, placed), per_second, np.nan)


def is_led(table: Partitions, placed: Placement) -> Flags:
    """Return the partitions whose leaders answer."""
    return np.asarray((placed.leader_silent_since_ms == UNKNOWN) & (table.leader >= 0), np.bool_)
