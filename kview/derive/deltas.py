"""The changes between two snapshots, in whole records. Deltas can be added up over time and partitions.

Every count is 0 or more. Changes that would produce a negative or absurd rate have counts of their own: a log
end that fell is `truncated`, a commit that fell is `rewound`, and records whose interval is too long or has
no length are `…_in_gap` and `…_out_gap`. Nothing is counted for a partition that is new or was created again,
nor for a cell that was not read again.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kview.derive.align import (
    Alignment,
    align_offsets,
    align_partitions,
    partition_rows,
    positions,
    runs,
    same,
    take,
)
from kview.derive.partitions.placement import Readings, under_min, under_replicated
from kview.derive.standing import Standing, standing
from kview.model.snapshot import Brokers, Flags, Ids, Longs, Partitions, Snapshot, Strings
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MAX_INTERVAL_MS = 60_000
"""If two readings are further apart than this, the records between them say nothing about any single
second."""

MAX_SPREAD_MS = 60_000
"""The longest time over which a commit's records are spread, because a group that resumes after an hour was
not reading for that hour."""


@dataclass(frozen=True, slots=True)
class PartitionDeltas:
    """What came into each partition. The arrays have the rows of `current.partitions`.

    Records are counted by the leader's log end, or by the high watermark if the cluster does not report log
    ends.
    """

    began_ms: Longs
    ended_ms: Longs
    """The records arrived between these two readings. Both times are equal if there is no interval."""
    records_in: Longs
    record_centibytes: Longs
    """≈ the leader's size ÷ the number of offsets in its log, in hundredths of a byte, to three digits; 0 if
    the size is not known."""
    truncated: Longs
    records_in_gap: Longs
    replicated: Longs
    """The growth of the followers' own log ends, summed up."""
    cross_rack: Longs
    """The part of `replicated` that went from a leader to a follower in another rack."""
    leader_rack: Strings
    topic_partitions: Ids
    """The number of partitions of the topic, for means over its partitions."""
    offline: Flags
    silent: Flags
    under_min_isr: Flags
    under_replicated: Flags
    """The partition's state since the previous observation, as that observation saw it."""
    standing: Standing
    """The state of `current`, from which the next call starts."""

    @property
    def bytes_in(self) -> Longs:
        """≈ the size of `records_in`, in bytes."""
        return self.records_in * self.record_centibytes // 100


@dataclass(frozen=True, slots=True)
class OffsetDeltas:
    """What groups committed. The arrays have the rows of `current.offsets`."""

    since_ms: Longs
    ended_ms: Longs
    """The records were read between the commit's previous change (at most MAX_SPREAD_MS earlier) and this
    reading."""
    records_out: Longs
    rewound: Longs
    records_out_gap: Longs
    changed_ms: Longs
    """When the commit was last seen to change, or first seen. Carried from one call to the next."""
    leader: Ids
    leader_rack: Strings
    partition_row: Longs
    """The row in `current.partitions`, −1 if the partition is not in that table."""


class CarriedPartitions(NamedTuple):
    """What `partition_deltas` needs of its result for the previous snapshot."""

    record_centibytes: Longs
    topic_partitions: Ids
    standing: Standing

    @staticmethod
    def of(deltas: PartitionDeltas) -> "CarriedPartitions":
        """Return what to keep of a result."""
        return CarriedPartitions(deltas.record_centibytes, deltas.topic_partitions, deltas.standing)


class CarriedOffsets(NamedTuple):
    """What `offset_deltas` needs of its result for the previous snapshot. All of it would be 12 MB for 15,000
    groups of twelve partitions."""

    changed_ms: Longs
    partition_row: Longs

    @staticmethod
    def of(deltas: OffsetDeltas) -> "CarriedOffsets":
        """Return what to keep of a result."""
        return CarriedOffsets(deltas.changed_ms, deltas.partition_row)


def state_ms(previous: Snapshot | None, current: Snapshot) -> int:
    """Return how long the previous observation's states lasted until this one.

    0 over a gap or a clock jump.
    """
    if previous is None:
        return 0
    elapsed = current.observation.ended_ms - previous.observation.ended_ms
    return elapsed if 0 < elapsed <= MAX_INTERVAL_MS else 0


def _comparable(previous: Snapshot | None, current: Snapshot) -> Snapshot:
    """Return the snapshot to count from: `previous`, or an empty one.

    It is empty if there is no previous snapshot, or if that snapshot is of another cluster.
    """
    if previous is None:
        return Snapshot(current.observation)
    before, now = previous.observation, current.observation
    return previous if now.follows(before) and now.cluster_id == before.cluster_id else Snapshot(now)


def racks_of(brokers: Brokers, ids: Ids) -> Strings:
    """Return the rack of each broker id, '' if it is not known."""
    return take(brokers.rack, positions(brokers.id, ids), "")


def _topic_partitions(table: Partitions) -> Ids:
    starts, ends = runs(table.topic)
    counts = ends - starts
    return np.repeat(counts, counts).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Growth:
    """How a column of offsets grew between two readings of each cell."""

    began_ms: Longs
    ended_ms: Longs
    grown: Longs
    """0 if the interval is too long or has no length."""
    fell: Longs
    in_gap: Longs


def _growth(value: Longs, received_ms: Longs, before: Longs, before_ms: Longs) -> _Growth:
    known = (value != UNKNOWN) & (before != UNKNOWN) & (received_ms != UNKNOWN) & (before_ms != UNKNOWN)
    again = known & (received_ms != before_ms)
    elapsed = np.where(again, received_ms - before_ms, 0)
    change = np.where(again, value - before, 0)
    gap = (elapsed <= 0) | (elapsed > MAX_INTERVAL_MS)
    rose = np.maximum(change, 0)
    ended = np.where(known, received_ms, 0)
    return _Growth(
        began_ms=np.where(gap, ended, before_ms),
        ended_ms=ended,
        grown=np.where(gap, 0, rose),
        fell=np.maximum(-change, 0),
        in_gap=np.where(gap, rose, 0),
    )


def partition_deltas(
    previous: Snapshot | None,
    current: Snapshot,
    carried: CarriedPartitions | None = None,
) -> PartitionDeltas:
    """Return what came into each partition since `previous`, and the partition's state in the meantime.

    `carried` is of the result of the call for `previous`, None if there was no such call.
    """
    before, table = _comparable(previous, current), current.partitions
    rows = align_partitions(before.partitions, table)
    has_ends = "debugging_replica" in current.observation.capabilities
    value, value_ms = ("log_end", "log_end_ms") if has_ends else ("high_watermark", "high_watermark_ms")
    log = _growth(
        getattr(table, value),
        getattr(table, value_ms),
        rows.carry(getattr(before.partitions, value), UNKNOWN),
        rows.carry(getattr(before.partitions, value_ms), UNKNOWN),
    )
    racks = racks_of(current.brokers, table.leader)
    carried = carried if before is previous else None
    was = carried.standing if carried else standing(before)
    now = standing(current, was)
    old, readings = was.readings, now.readings
    replicated, cross_rack = _replicated(before, current, rows, old, readings)
    size = _leader_sizes(table, readings)
    same_leader = table.leader == rows.carry(before.partitions.leader, NO_BROKER)
    held = rows.carry(carried.record_centibytes, 0) if carried else 0
    # Sizes are requested less often than log ends, so the two only match when the size is new.
    stale = ~same_leader | (size == rows.carry(_leader_sizes(before.partitions, old), UNKNOWN))
    # Followers may continue copying while the leader does not answer us.
    alone = (replicated > 0) & (log.began_ms == log.ended_ms)
    states = (
        before.partitions.leader == NO_BROKER,
        was.placed.leader_silent_since_ms != UNKNOWN,
        under_min(before.partitions, was.placed),
        under_replicated(was.placed),
    )
    offline, silent, below_min, below_all = (rows.carry(state, False) for state in states)
    return PartitionDeltas(
        began_ms=np.where(alone, before.observation.ended_ms, log.began_ms),
        ended_ms=np.where(alone, current.observation.ended_ms, log.ended_ms),
        records_in=log.grown,
        record_centibytes=np.where(stale & (held != 0), held, _record_centibytes(table, size)),
        truncated=log.fell,
        records_in_gap=log.in_gap,
        replicated=replicated,
        cross_rack=cross_rack,
        leader_rack=racks,
        topic_partitions=carried.topic_partitions
        if carried and before.partitions.topic is table.topic
        else _topic_partitions(table),
        offline=offline,
        silent=silent,
        under_min_isr=below_min,
        under_replicated=below_all,
        standing=now,
    )


def _leader_sizes(table: Partitions, readings: Readings) -> Longs:
    """Return the size of each leader's log, UNKNOWN if there is no leader or its size is not known."""
    leads = table.replicas == table.leader[:, None]
    sizes: Longs = np.where(leads, readings.sizes, UNKNOWN).max(1, initial=UNKNOWN)
    return sizes


def _record_centibytes(table: Partitions, size: Longs) -> Longs:
    """Return ≈ the bytes of a record, in hundredths, rounded to three digits.

    An estimate has no more than three meaningful digits anyway. Rounded figures often stay the same, so that
    a recording need not store them again.
    """
    end = np.where(table.log_end == UNKNOWN, table.high_watermark, table.log_end)
    known = (end != UNKNOWN) & (table.log_start != UNKNOWN) & (end > table.log_start) & (size > 0)
    exact = np.where(known, size, 0) * 100.0 / np.where(known, end - table.log_start, 1)
    unit = 10.0 ** np.maximum(np.floor(np.log10(np.maximum(exact, 1.0))) - 2, 0)
    digits: Longs = (np.rint(exact / unit) * unit).astype(np.int64)
    return digits


def _replicated(
    before: Snapshot,
    current: Snapshot,
    rows: Alignment,
    old: Readings,
    readings: Readings,
) -> tuple[Longs, Longs]:
    """Return the number of records by which followers' logs grew, in total and from leaders in other
    racks."""
    table = current.partitions
    ends, times = rows.carry(old.ends, UNKNOWN), rows.carry(old.times_ms, UNKNOWN)
    held = rows.carry(before.partitions.replicas, NO_BROKER)
    if not same(held, table.replicas):
        is_it = (table.replicas[:, :, None] == held[:, None, :]) & (table.replicas[:, :, None] >= 0)
        place = is_it.argmax(2) if held.shape[1] else np.zeros(table.replicas.shape, np.int64)
        there = is_it.any(2)
        ends, times = (
            np.where(there, np.take_along_axis(m, place, 1) if m.shape[1] else UNKNOWN, UNKNOWN)
            for m in (ends, times)
        )
    grown = _growth(readings.ends, readings.times_ms, ends, times).grown
    grown = np.where(table.replicas == table.leader[:, None], 0, grown)
    return grown.sum(1), np.where(_in_other_rack(current.brokers, table), grown, 0).sum(1)


def _in_other_rack(brokers: Brokers, table: Partitions) -> Flags:
    """Return whether each replica is in another rack than its leader, False if one of the racks is not known.

    Racks are compared as numbers, because comparing strings is slow.
    """
    names, numbers = np.unique(brokers.rack.astype(str), return_inverse=True)
    numbers = np.where(names[numbers] == "", -1, numbers) if len(names) else numbers
    theirs, its = (
        take(numbers, positions(brokers.id, ids), -1) for ids in (table.replicas, table.leader[:, None])
    )
    other: Flags = (theirs != its) & (theirs >= 0) & (its >= 0)
    return other


def offset_deltas(
    previous: Snapshot | None,
    current: Snapshot,
    carried: CarriedOffsets | None = None,
) -> OffsetDeltas:
    """Return what each group committed since `previous`.

    `carried` is of the result of the call for `previous`, None if there was no such call.
    """
    before, table = _comparable(previous, current), current.offsets
    carried = carried if before is previous else None
    rows = align_offsets(before.offsets, table)
    # Finding the rows takes as long as everything else. They stay the same while no row is added or removed.
    still = (
        carried is not None and rows.rows is None and _same_partitions(before.partitions, current.partitions)
    )
    of = carried.partition_row if carried and still else partition_rows(table, current.partitions)
    was, was_ms = (
        rows.carry(before.offsets.committed, UNKNOWN),
        rows.carry(before.offsets.received_ms, UNKNOWN),
    )
    created = _created_again(before, current, of)
    was = np.where(created | (was < 0), UNKNOWN, was)
    value = np.where(table.committed < 0, UNKNOWN, table.committed)
    moved = _growth(value, table.received_ms, was, was_ms)
    changed_before = was_ms if carried is None else rows.carry(carried.changed_ms, UNKNOWN)
    changed_before = np.where(changed_before == UNKNOWN, was_ms, changed_before)
    # A change after the last reading was seen before the clock was set back.
    changed_before = np.where(was_ms == UNKNOWN, changed_before, np.minimum(changed_before, was_ms))
    changed = (value != was) | created
    since = np.maximum(changed_before, table.received_ms - MAX_SPREAD_MS)
    leader = take(current.partitions.leader, of, UNKNOWN_ID)
    return OffsetDeltas(
        since_ms=np.where(moved.grown > 0, since, moved.ended_ms),
        ended_ms=moved.ended_ms,
        records_out=moved.grown,
        rewound=moved.fell,
        records_out_gap=moved.in_gap,
        changed_ms=np.where(changed, table.received_ms, changed_before),
        leader=leader,
        leader_rack=racks_of(current.brokers, leader),
        partition_row=of,
    )


def _same_partitions(before: Partitions, now: Partitions) -> bool:
    return same(before.topic, now.topic) and same(before.partition, now.partition)


def _created_again(before: Snapshot, current: Snapshot, of: Longs) -> Flags:
    """Return which rows of offsets belong to a topic that was created again between the snapshots."""
    was = align_partitions(before.partitions, current.partitions)
    if was.rows is None:
        return np.zeros(len(of), np.bool_)
    names = dict(zip(before.partitions.topic, before.partitions.topic_id, strict=True))
    table = current.partitions
    other = np.array(
        [names.get(topic, id) != id for topic, id in zip(table.topic, table.topic_id, strict=True)], np.bool_
    )
    again: Flags = take(other, of, False)
    return again
