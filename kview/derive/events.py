"""Events: the differences between two steps. All changes of one kind form one event, not one per
partition."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment, same
from kview.derive.brokers.events import (
    api_events,
    broker_events,
    brokers_found_down,
    controller_events,
    slow_events,
)
from kview.derive.groups.connect import connector_events
from kview.derive.hidden import lacks_topics
from kview.derive.partitions.elections import Elected
from kview.derive.partitions.placement import same_lists
from kview.derive.partitions.rates import LOOK_BACK_MS, SETTLE_MS
from kview.derive.seen import Seen
from kview.model.events import Event, EventKind, Severity
from kview.model.snapshot import Ids, Partitions, Snapshot
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

EVENTS_BACK_MS = LOOK_BACK_MS - SETTLE_MS
"""How long events are kept: nine minutes."""

MAX_EVENTS = 500
"""The most events kept. If more happens within this time, the headline is the better summary."""

MAX_NAMED = 200
"""The most partitions named in one event. The event's count includes all of them."""


def kept(events: tuple[Event, ...], new: tuple[Event, ...], now_ms: int) -> tuple[Event, ...]:
    """Return the latest events of EVENTS_BACK_MS, oldest first."""
    young = (event for event in (*events, *new) if event.at_ms > now_ms - EVENTS_BACK_MS)
    return tuple(young)[-MAX_EVENTS:]


def differences(before: Seen, now: Seen, alignment: Alignment, found: Elected | None) -> tuple[Event, ...]:
    """Return all events of a step, causes before their effects. `found` is what elections lost."""
    return (
        *controller_events(before.snapshot, now.snapshot),
        *broker_events(before.snapshot, now.snapshot),
        *slow_events(before, now),
        *api_events(before.snapshot, now.snapshot),
        *topic_events(before.snapshot, now.snapshot),
        *partition_events(before, now, alignment, found),
        *connector_events(before.snapshot, now.snapshot),
    )


def found(now: Snapshot) -> tuple[Event, ...]:
    """Return what is already wrong in the first snapshot. Nobody saw when it began."""
    pick = Picker(now.partitions, now.observation.ended_ms)
    none = np.asarray(now.partitions.leader == NO_BROKER, np.bool_)
    leaderless = (pick.event(none, EventKind.LEADERLESS_FOUND, Severity.RISK),) if none.any() else ()
    return (*brokers_found_down(now), *leaderless)


def _partition_counts(table: Partitions) -> dict[str, tuple[int, str]]:
    """Return the number of partitions and the topic id of each topic."""
    names, first, counts = np.unique(table.topic.astype(str), return_index=True, return_counts=True)
    ids = table.topic_id[first]
    return {str(name): (int(n), str(id)) for name, n, id in zip(names, counts.tolist(), ids, strict=True)}


def topic_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Return the topics that were created or deleted (both, if created again), or that gained partitions.

    Where kview is not authorized to see all topics, one that leaves or joins the list may have been there
    all the time.
    """
    a, b = before.partitions, now.partitions
    if same(a.topic, b.topic) and same(a.topic_id, b.topic_id):
        return ()
    old, new = _partition_counts(a), _partition_counts(b)
    lost_sight, was_blind = lacks_topics(now.observation), lacks_topics(before.observation)
    if not old and not was_blind:
        return ()
    at_ms, changes = now.observation.ended_ms, []
    for name in sorted(old.keys() | new.keys()):
        was, is_ = old.get(name), new.get(name)
        again = bool(was and is_ and was[1] and is_[1] and was[1] != is_[1])
        if is_ is None or again:
            kind = EventKind.TOPIC_UNSEEN if lost_sight and not again else EventKind.TOPIC_DELETED
            changes.append(Event(at_ms, kind, Severity.WARN, topic=name))
        if is_ is not None and (was is None or again):
            kind = EventKind.TOPIC_SEEN if was_blind and not again else EventKind.TOPIC_CREATED
            changes.append(Event(at_ms, kind, Severity.CALM, topic=name, after=is_[0]))
        elif was and is_ and is_[0] > was[0]:
            kind = EventKind.PARTITIONS_ADDED
            changes.append(Event(at_ms, kind, Severity.CALM, topic=name, before=was[0], after=is_[0]))
    return tuple(changes)


class Picker(Struct, frozen=True):
    """Makes an event from a mask over partitions."""

    table: Partitions
    at_ms: int

    def split(self, mask: NDArray[np.bool_]) -> tuple[int, int]:
        """Return the number of the user's partitions and the number of internal ones in the mask."""
        internal = int((mask & self.table.internal).sum())
        return int(mask.sum()) - internal, internal

    def names(self, mask: NDArray[np.bool_]) -> tuple[tuple[str, int], ...]:
        """Return the names of the partitions, the user's partitions first."""
        rows = np.flatnonzero(mask)
        rows = rows[np.argsort(self.table.internal[rows], kind="stable")][:MAX_NAMED]
        return tuple((str(self.table.topic[row]), int(self.table.partition[row])) for row in rows.tolist())

    def event(
        self,
        mask: NDArray[np.bool_],
        kind: EventKind,
        severity: Severity,
        brokers: tuple[int, ...] = (),
        records: int = 0,
    ) -> Event:
        mine, internal = self.split(mask)
        return Event(
            self.at_ms,
            kind,
            severity,
            brokers=brokers,
            partitions=self.names(mask),
            partition_count=mine,
            internal_count=internal,
            records=records,
        )


def partition_events(
    before: Seen, now: Seen, alignment: Alignment, found: Elected | None
) -> tuple[Event, ...]:
    """Return the changes of leaders, ISRs, watermarks and log ends, one event for each kind."""
    pick = Picker(now.snapshot.partitions, now.snapshot.observation.ended_ms)
    return (
        *_leader_events(before, now, alignment, pick),
        *_isr_events(before, now, alignment, pick),
        *_lost_events(found, pick),
        *_cut_events(before, now, alignment, pick),
        *_watermark_events(before, now, alignment, pick),
    )


def _leader_events(before: Seen, now: Seen, alignment: Alignment, pick: Picker) -> list[Event]:
    table, known = now.snapshot.partitions, alignment.known()
    if alignment.rows is None and before.snapshot.partitions.leader is table.leader:
        return []
    leader = alignment.carry(before.snapshot.partitions.leader, UNKNOWN_ID)
    changed = known & (leader != table.leader) & (leader != UNKNOWN_ID) & (table.leader != UNKNOWN_ID)
    if not changed.any():
        return []
    changes = []
    none = changed & (table.leader == NO_BROKER)
    again = changed & ~none & (leader == NO_BROKER)
    led = changed & ~none & ~again
    if led.any():
        lost = alignment.carry(before.placed.leader_silent_since_ms, UNKNOWN) != UNKNOWN
        severity = Severity.GOOD if (led & lost).any() else Severity.CALM
        changes.append(pick.event(led, EventKind.LEADER_MOVED, severity, _distinct(table.leader[led])))
    if again.any():
        leaders = _distinct(table.leader[again])
        changes.append(pick.event(again, EventKind.LEADER_RETURNED, Severity.GOOD, leaders))
    if none.any():
        changes.append(pick.event(none, EventKind.LEADER_LOST, Severity.RISK))
    return changes


def _distinct(ids: Ids) -> tuple[int, ...]:
    return tuple(sorted(set(ids.tolist())))


def _isr_events(before: Seen, now: Seen, alignment: Alignment, pick: Picker) -> list[Event]:
    was, is_ = before.snapshot.partitions, now.snapshot.partitions
    if alignment.rows is None and was.isr is is_.isr:
        return []
    old = alignment.carry(was.isr, NO_BROKER)
    changed = alignment.known() & ~same_lists(old, is_.isr)
    if not changed.any():
        return []
    left = (old >= 0) & ~(old[:, :, None] == is_.isr[:, None, :]).any(2)
    came = (is_.isr >= 0) & ~(is_.isr[:, :, None] == old[:, None, :]).any(2)
    changes = []
    for who, members, kind, severity in (
        (left, old, EventKind.ISR_SHRANK, Severity.WARN),
        (came, is_.isr, EventKind.ISR_GREW, Severity.GOOD),
    ):
        mask = changed & who.any(1)
        if mask.any():
            changes.append(pick.event(mask, kind, severity, _distinct(members[mask][who[mask]])))
    return changes


def _watermark_events(before: Seen, now: Seen, alignment: Alignment, pick: Picker) -> list[Event]:
    known = alignment.known()
    frozen_then = alignment.carry(before.frozen_since_ms, UNKNOWN) != UNKNOWN
    frozen = now.frozen_since_ms != UNKNOWN
    if not np.any(frozen != frozen_then):
        return []
    answers = now.placed.leader_silent_since_ms == UNKNOWN
    led = (now.snapshot.partitions.leader >= 0) & answers
    changes = []
    freezes = known & frozen & ~frozen_then
    if freezes.any():
        changes.append(pick.event(freezes, EventKind.WATERMARK_FROZEN, Severity.RISK))
    moves = known & frozen_then & ~frozen & led
    if moves.any():
        changes.append(pick.event(moves, EventKind.WATERMARK_MOVES, Severity.GOOD))
    return changes


def _lost_events(found: Elected | None, pick: Picker) -> list[Event]:
    """Return the unclean elections, and what other elections lost."""
    if found is None:
        return []
    losses, lost = [], np.maximum(found.lost, 0)
    for mask, kind in (
        (found.unclean, EventKind.UNCLEAN_ELECTION),
        (~found.unclean & (lost > 0), EventKind.RECORDS_LOST),
    ):
        if mask.any():
            leaders = _distinct(pick.table.leader[mask]) if kind is EventKind.UNCLEAN_ELECTION else ()
            losses.append(pick.event(mask, kind, Severity.RISK, leaders, int(lost[mask].sum())))
    return losses


def _cut_events(before: Seen, now: Seen, alignment: Alignment, pick: Picker) -> list[Event]:
    """Return an event for each broker whose replicas' log ends fell between two readings."""
    was, is_ = before.snapshot.partitions, now.snapshot.partitions
    replicas_then = alignment.carry(was.replicas, NO_BROKER)
    if replicas_then.shape != is_.replicas.shape:
        return []
    then = alignment.carry(before.readings.ends, UNKNOWN)
    end = now.readings.ends
    fell = (then > end) & (end != UNKNOWN)
    if not fell.any():
        return []
    fell &= (replicas_then == is_.replicas) & alignment.known()[:, None]
    cut = np.where(fell, then - end, 0)
    cuts = []
    for broker in sorted(set(is_.replicas[fell].tolist())):
        mine = fell & (is_.replicas == broker)
        records = int(cut[mine].sum())
        cuts.append(pick.event(mine.any(1), EventKind.LOG_CUT, Severity.WARN, (broker,), records))
    return cuts
