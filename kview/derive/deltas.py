"""What came and went between two snapshots, in whole records: additive, so that sums over time and partitions
are right.

Every count is 0 or more. What would give a negative or absurd rate is counted as what it is: a log end that
fell as `truncated`, a commit that fell as `rewound`, records whose interval is too long or has no length as
`…_in_gap` and `…_out_gap`. A partition that is seen for the first time or was created again, and a cell that
was not read again, count nothing."""

from dataclasses import dataclass

import numpy as np

from kview.derive.align import (
    Alignment,
    align_offsets,
    align_partitions,
    partition_rows,
    positions,
    same,
    take,
)
from kview.derive.partitions import Readings, under_min, under_replicated
from kview.derive.standing import Standing, standing
from kview.model.snapshot import Brokers, Flags, Ids, Longs, Partitions, Snapshot, Strings
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MAX_INTERVAL_MS = 60_000
"""Records between two readings further apart than this have no rate that says anything about a second of
it."""

MAX_SPREAD_MS = 60_000
"""A commit's records are spread over no more than this: who resumes after an hour did not read for an
hour."""


@dataclass(frozen=True, slots=True)
class PartitionDeltas:
    """Rows of `current.partitions`. Records are of the leader's log end, or of the high watermark where the
    cluster does not tell log ends."""

    began_ms: Longs
    ended_ms: Longs
    """The two readings that the records lie between; equal where there is no interval."""
    records_in: Longs
    record_centibytes: Longs
    """≈ the leader's size ÷ offsets held, in hundredths of a byte, to three digits; 0 where the size is not
    known."""
    truncated: Longs
    records_in_gap: Longs
    replicated: Longs
    """Over the followers: their own log ends' growth."""
    cross_rack: Longs
    """The part of it between a leader and a follower of different racks."""
    leader_rack: Strings
    topic_partitions: Ids
    """How many partitions the topic has: what a mean over partitions is taken over."""
    offline: Flags
    silent: Flags
    under_min_isr: Flags
    under_replicated: Flags
    """The partition's state since the previous observation, as that one saw it."""
    standing: Standing
    """Of `current`: the next call begins with it."""

    @property
    def bytes_in(self) -> Longs:
        """≈ the size of `records_in`."""
        return self.records_in * self.record_centibytes // 100


@dataclass(frozen=True, slots=True)
class OffsetDeltas:
    """Rows of `current.offsets`."""

    since_ms: Longs
    ended_ms: Longs
    """The previous change of the commit (MAX_SPREAD_MS before at most) and this reading: the records were
    read between."""
    records_out: Longs
    rewound: Longs
    records_out_gap: Longs
    changed_ms: Longs
    """When the commit was last seen to change, or first seen; carried from one call to the next."""
    leader: Ids
    leader_rack: Strings
    partition_row: Longs
    """The row in `current.partitions`, −1 where the partition is not there."""


def state_ms(previous: Snapshot | None, current: Snapshot) -> int:
    """How long the previous observation's states held until this one; 0 over a gap or a clock that jumped."""
    if previous is None:
        return 0
    elapsed = current.observation.ended_ms - previous.observation.ended_ms
    return elapsed if 0 < elapsed <= MAX_INTERVAL_MS else 0


def _comparable(previous: Snapshot | None, current: Snapshot) -> Snapshot:
    """The snapshot to count from: nothing where there is none, or where it is another cluster's."""
    if previous is None:
        return Snapshot(current.observation)
    before, now = previous.observation, current.observation
    return previous if now.follows(before) and now.cluster_id == before.cluster_id else Snapshot(now)


def racks_of(brokers: Brokers, ids: Ids) -> Strings:
    """The rack of each broker id, '' where it is not known."""
    return take(brokers.rack, positions(brokers.id, ids), "")


def _topic_partitions(table: Partitions) -> Ids:
    if not len(table):
        return np.empty(0, np.int32)
    starts = np.flatnonzero(np.r_[True, table.topic[1:] != table.topic[:-1]])
    counts = np.diff(np.r_[starts, len(table)])
    return np.repeat(counts, counts).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Growth:
    """How a column of offsets grew between two readings of each cell."""

    began_ms: Longs
    ended_ms: Longs
    grown: Longs
    """0 where the interval says nothing."""
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
    previous: Snapshot | None, current: Snapshot, carried: PartitionDeltas | None = None
) -> PartitionDeltas:
    """What came into each partition since `previous`, and the state that it was in meanwhile; `carried` is
    what this gave for `previous` (None: nothing yet)."""
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
    # Sizes are asked for less often than log ends: the two belong together when a size has just come.
    stale = ~same_leader | (size == rows.carry(_leader_sizes(before.partitions, old), UNKNOWN))
    # Followers may go on where the leader has not answered us.
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
    """UNKNOWN where there is no leader, or where its size is not known."""
    leads = table.replicas == table.leader[:, None]
    sizes: Longs = np.where(leads, readings.sizes, UNKNOWN).max(1, initial=UNKNOWN)
    return sizes


def _record_centibytes(table: Partitions, size: Longs) -> Longs:
    """Three digits say what an estimate can, and stay the same for a while, which costs a recording
    nothing."""
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
    """Records that followers' logs grew by: all, and those from a leader in another rack."""
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
    """Whether each replica is in another rack than its leader, as far as both are known; by numbers of racks:
    words compare slowly."""
    names, numbers = np.unique(brokers.rack.astype(str), return_inverse=True)
    numbers = np.where(names[numbers] == "", -1, numbers) if len(names) else numbers
    theirs, its = (
        take(numbers, positions(brokers.id, ids), -1) for ids in (table.replicas, table.leader[:, None])
    )
    other: Flags = (theirs != its) & (theirs >= 0) & (its >= 0)
    return other


def offset_deltas(
    previous: Snapshot | None, current: Snapshot, carried: OffsetDeltas | None = None
) -> OffsetDeltas:
    """What each group committed since `previous`; `carried` is what this gave for `previous` (None: nothing
    yet)."""
    before, table = _comparable(previous, current), current.offsets
    carried = carried if before is previous else None
    rows = align_offsets(before.offsets, table)
    # Looking the rows up takes as long as all the rest: they are the same while nobody comes or goes.
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
    """Rows of offsets whose topic was deleted and created between the two snapshots."""
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
