"""One partition's log as facts: where it starts and ends, where each replica's log ends, and where the groups
that read it are."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kview.derive.align import group_rows
from kview.derive.brokers.log_dirs import stranded
from kview.derive.lookup import partition_row, replica_rows
from kview.derive.transactions.findings import stands_still
from kview.derive.view import View
from kview.model.events import Event, EventKind
from kview.model.snapshot import Longs, Snapshot
from kview.model.units import NO_BROKER, NO_OFFSET, UNKNOWN, UNKNOWN_ID


class ReplicaEnd(NamedTuple):
    """One replica: where its log ends according to its own broker, and when that was received."""

    position: int
    """The place in the replica list, 0 for the preferred leader."""
    broker: int
    end: int
    end_ms: int
    lag: int
    """Records behind the leader, as `PartitionFigures.replica_lag`."""
    size_bytes: int
    is_leader: bool
    in_isr: bool
    answers: bool
    """Whether its broker answers kview."""
    stranded: bool
    """Whether it is offline although its broker is up: its log directory must have failed."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupPositions:
    """Where the groups with a commit are, the ones that are furthest behind first. They may be 15,000."""

    group: Longs
    """Their rows in `snapshot.groups`."""
    offset: Longs
    """Their rows in `snapshot.offsets`."""
    committed: Longs

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """A partition's log. Offsets are UNKNOWN if they are not known. `row` is that of
    `snapshot.partitions`."""

    row: int
    eligible: tuple[int, ...] | None
    """The eligible leader replicas, None if nobody has told them."""
    log_start: int
    high_watermark: int
    log_end: int
    last_stable: int
    """The last stable offset if an open transaction holds it where it is, else UNKNOWN."""
    read_ms: int
    """When the high watermark was received."""
    replicas: tuple[ReplicaEnd, ...]
    groups: GroupPositions

    @property
    def last(self) -> int:
        """The largest offset that is known of the log, UNKNOWN if there is none."""
        return max(self.high_watermark, self.log_end, *(replica.end for replica in self.replicas), UNKNOWN)

    @property
    def first(self) -> int:
        """The smallest offset that is known of the log, UNKNOWN if there is none."""
        known = (self.log_start, self.high_watermark, self.log_end)
        return min((offset for offset in known if offset != UNKNOWN), default=UNKNOWN)


def eligible(snapshot: Snapshot, row: int) -> tuple[int, ...] | None:
    """Return the eligible leader replicas (ELR) of a partition, None if nobody has told them."""
    if "elr" not in snapshot.observation.capabilities:
        return None
    ids = snapshot.partitions.elr[row]
    return None if (ids == UNKNOWN_ID).any() else tuple(ids[ids >= 0].tolist())


def partition_log(view: View, topic: str, partition: int) -> PartitionLog | None:
    """Return the log of a partition, or None if there is no such partition."""
    row = partition_row(view, topic, partition)
    if row is None:
        return None
    table = view.snapshot.partitions
    return PartitionLog(
        row=row,
        eligible=eligible(view.snapshot, row),
        log_start=int(table.log_start[row]),
        high_watermark=int(table.high_watermark[row]),
        log_end=int(table.log_end[row]),
        last_stable=int(table.last_stable[row]) if stands_still(view.snapshot)[row] else UNKNOWN,
        read_ms=int(table.high_watermark_ms[row]),
        replicas=tuple(_replicas(view, row)),
        groups=_groups(view, row),
    )


def _replicas(view: View, row: int) -> list[ReplicaEnd]:
    table, figures, replicas = view.snapshot.partitions, view.partitions, view.snapshot.replicas
    sizes = {int(replicas.broker[at]): int(replicas.size_bytes[at]) for at in replica_rows(replicas.row, row)}
    replica_ends, offline = [], stranded(view.snapshot)[row]
    for position, broker in enumerate(table.replicas[row].tolist()):
        if broker == NO_BROKER:
            continue
        is_leader = broker == int(table.leader[row])
        end, end_ms = int(figures.replica_end[row, position]), int(figures.replica_end_ms[row, position])
        if is_leader and table.log_end_ms[row] != UNKNOWN and int(table.log_end_ms[row]) >= end_ms:
            end, end_ms = int(table.log_end[row]), int(table.log_end_ms[row])
        silent = bool(figures.replica_silent[row, position] or figures.replica_unreached[row, position])
        replica_ends.append(
            ReplicaEnd(
                position=position,
                broker=broker,
                end=end,
                end_ms=end_ms,
                lag=int(figures.replica_lag[row, position]),
                size_bytes=sizes.get(broker, UNKNOWN),
                is_leader=is_leader,
                in_isr=bool(figures.in_isr[row, position]),
                answers=not silent,
                stranded=bool(offline[position]),
            )
        )
    return replica_ends


def _groups(view: View, row: int) -> GroupPositions:
    offsets = view.snapshot.offsets
    rows = np.flatnonzero((view.offsets.partition_row == row) & (offsets.committed > NO_OFFSET))
    groups = group_rows(view.snapshot.groups.group, offsets.group[rows])
    rows, groups = rows[groups >= 0], groups[groups >= 0]
    order = np.argsort(offsets.committed[rows], kind="stable")
    return GroupPositions(groups[order], rows[order], offsets.committed[rows[order]])


def zoomed(log: PartitionLog) -> tuple[int, int] | None:
    """Return the stretch at the log's end in which watermark, in-sync replicas, other replicas that are near,
    and near groups lie.

    A group is near if it is within a hundredth of the log from its end, and a replica that answers if it is
    within a tenth. The length is rounded up, so that the
    stretch does not change with every record. None if the log's end is not known.
    """
    last, first = log.last, log.first
    if last == UNKNOWN or first == UNKNOWN:
        return None
    near = last - max(1, (last - first) // 100)
    points = [log.high_watermark, *(replica.end for replica in log.replicas if replica.in_isr)]
    catching_up = [replica.end for replica in log.replicas if replica.answers and not replica.in_isr]
    points += [end for end in catching_up if end >= last - (last - first) // 10]
    points += log.groups.committed[log.groups.committed >= near][:1].tolist()
    lowest = min((point for point in points if point != UNKNOWN), default=last)
    length = _round_up(max(LEAST_ZOOM, (last - lowest) * 11 // 10))
    return max(first, last - length), last


LEAST_ZOOM = 10
"""The fewest records that the zoom shows."""


def _round_up(length: int) -> int:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below `length`."""
    power = int("1" + "0" * (len(str(length)) - 1))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= length)


def events_of_partition(events: tuple[Event, ...], topic: str, partition: int) -> tuple[Event, ...]:
    """Return the events that name a partition, the newest first, and those of its whole topic."""
    key, of_topic = (topic, partition), (EventKind.TOPIC_CREATED, EventKind.TOPIC_SEEN)
    return tuple(
        event
        for event in reversed(events)
        if key in event.partitions or (event.topic == topic and event.kind in of_topic)
    )


def unnamed_events(events: tuple[Event, ...], topic: str, partition: int) -> int:
    """Return the number of events about so many partitions that this one may be among those not named."""
    key = (topic, partition)
    return sum(
        len(event.partitions) < event.partition_count + event.internal_count and key not in event.partitions
        for event in events
    )


def events_of_broker(events: tuple[Event, ...], broker: int) -> tuple[Event, ...]:
    """Return the events that name a broker, the newest first."""
    return tuple(event for event in reversed(events) if broker in _brokers(event))


def _brokers(event: Event) -> set[object]:
    moved = event.kind in (EventKind.COORDINATOR_MOVED, EventKind.CONTROLLER_MOVED)
    return {*event.brokers, *event.controllers, *((event.before, event.after) if moved else ())}
