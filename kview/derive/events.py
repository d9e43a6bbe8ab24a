"""Events: the differences between two steps, one event for each kind of change, not one for each
partition."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import Alignment, same
from kview.derive.partitions import same_lists
from kview.derive.rates import LOOK_BACK_MS
from kview.derive.standing import Standing
from kview.language import failures
from kview.language import nouns as text
from kview.language.words import plural
from kview.model.events import Event, EventKind, Severity
from kview.model.snapshot import Ids, Longs, Partitions, Snapshot
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MAX_EVENTS = 500
"""Events kept: a cluster in which more happens within the look-back is read from its headline."""

MAX_LISTED = 4
"""Brokers named in a sentence; more are counted."""

MAX_NAMED = 200
"""Partitions named in one event: the text has the count."""


@dataclass(frozen=True, slots=True)
class Seen(Standing):
    """A snapshot, and what is told of it by the next one's events."""

    frozen_since_ms: Longs


def kept(events: tuple[Event, ...], new: tuple[Event, ...], now_ms: int) -> tuple[Event, ...]:
    """The latest events of the look-back, oldest first."""
    young = (event for event in (*events, *new) if event.at_ms > now_ms - LOOK_BACK_MS)
    return tuple(young)[-MAX_EVENTS:]


def differences(before: Seen, now: Seen, alignment: Alignment) -> tuple[Event, ...]:
    """All events of a step, causes before their effects."""
    return (
        *controller_events(before.snapshot, now.snapshot),
        *broker_events(before.snapshot, now.snapshot),
        *topic_events(before.snapshot, now.snapshot),
        *partition_events(before, now, alignment),
    )


def controller_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Another controller, as the quorum says; not knowing one is no event."""
    old, new = before.observation, now.observation
    if new.controller_id < 0 or old.controller_id == new.controller_id:
        return ()
    if old.controller_id == UNKNOWN_ID:
        return ()
    epoch = f", epoch {new.controller_epoch}" if new.controller_epoch != UNKNOWN_ID else ""
    came_from = f" after {old.controller_id}" if old.controller_id >= 0 else ""
    sentence = f"{new.controller_id} is the active controller{came_from}{epoch}"
    return (Event(new.ended_ms, EventKind.CONTROLLER, Severity.WARN, sentence, broker=new.controller_id),)


def broker_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """State changes of brokers; a silence begins at the first request that was not answered."""
    if same(before.brokers.id, now.brokers.id) and same(before.brokers.state, now.brokers.state):
        return ()
    old = dict(zip(before.brokers.id.tolist(), before.brokers.state, strict=True))
    at_ms = now.observation.ended_ms
    made = []
    table = now.brokers
    for row, broker in enumerate(table.id.tolist()):
        state, was = table.state[row], old.get(broker)
        if was is None or was == state:
            continue
        error = f": {failures.of(table.error[row])}" if table.error[row] else ""
        match state:
            case BrokerState.SILENT:
                first = max(int(table.since_ms[row]), before.observation.began_ms)
                sentence = f"broker {broker} stopped answering{error}"
                made.append(Event(first, EventKind.BROKER_SILENT, Severity.RISK, sentence, broker))
            case BrokerState.FENCED:
                sentence = f"broker {broker} is fenced"
                made.append(Event(at_ms, EventKind.BROKER_FENCED, Severity.WARN, sentence, broker))
            case BrokerState.GONE:
                sentence = f"broker {broker} has left the cluster"
                made.append(Event(at_ms, EventKind.BROKER_GONE, Severity.WARN, sentence, broker))
            case _:
                sentence = f"broker {broker} is back"
                made.append(Event(at_ms, EventKind.BROKER_BACK, Severity.GOOD, sentence, broker))
    return tuple(made)


def _partition_counts(table: Partitions) -> dict[str, tuple[int, str]]:
    """Per topic the number of partitions and the topic id."""
    names, first, counts = np.unique(table.topic.astype(str), return_index=True, return_counts=True)
    ids = table.topic_id[first]
    return {str(name): (int(n), str(id)) for name, n, id in zip(names, counts.tolist(), ids, strict=True)}


def topic_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Topics created and deleted (also: deleted and created again), partitions added."""
    a, b = before.partitions, now.partitions
    if same(a.topic, b.topic) and same(a.topic_id, b.topic_id):
        return ()
    old, new = _partition_counts(a), _partition_counts(b)
    if not old:
        return ()
    at_ms, made = now.observation.ended_ms, []
    for name in sorted(old.keys() | new.keys()):
        was, is_ = old.get(name), new.get(name)
        again = bool(was and is_ and was[1] and is_[1] and was[1] != is_[1])
        if is_ is None or again:
            sentence = f"topic {name} was deleted"
            made.append(Event(at_ms, EventKind.TOPIC_DELETED, Severity.WARN, sentence, topic=name))
        if is_ is not None and (was is None or again):
            sentence = f"topic {name} was created with {plural(is_[0], 'partition')}"
            made.append(Event(at_ms, EventKind.TOPIC_CREATED, Severity.CALM, sentence, topic=name))
        elif was and is_ and is_[0] > was[0]:
            sentence = f"topic {name} has {is_[0]} partitions, {is_[0] - was[0]} more"
            made.append(Event(at_ms, EventKind.PARTITIONS_ADDED, Severity.CALM, sentence, topic=name))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Picker:
    """Makes events of masks over partitions."""

    table: Partitions
    at_ms: int

    def split(self, mask: NDArray[np.bool_]) -> tuple[int, int]:
        """How many of the user's, and how many internal ones."""
        internal = int((mask & self.table.internal).sum())
        return int(mask.sum()) - internal, internal

    def many(self, mask: NDArray[np.bool_]) -> str:
        """`6 partitions (+25 internal)`."""
        return text.partitions(*self.split(mask))

    def names(self, mask: NDArray[np.bool_]) -> tuple[tuple[str, int], ...]:
        """The user's partitions first."""
        rows = np.flatnonzero(mask)
        rows = rows[np.argsort(self.table.internal[rows], kind="stable")][:MAX_NAMED]
        return tuple((str(self.table.topic[row]), int(self.table.partition[row])) for row in rows.tolist())

    def event(
        self,
        mask: NDArray[np.bool_],
        kind: EventKind,
        severity: Severity,
        sentence: str,
        broker: int = NO_BROKER,
    ) -> Event:
        return Event(self.at_ms, kind, severity, sentence, broker=broker, partitions=self.names(mask))


def partition_events(before: Seen, now: Seen, alignment: Alignment) -> tuple[Event, ...]:
    """Leaders, ISRs, watermarks and truncations, each kind in one event."""
    pick = _Picker(now.snapshot.partitions, now.snapshot.observation.ended_ms)
    return (
        *_leader_events(before, now, alignment, pick),
        *_isr_events(before, now, alignment, pick),
        *_lost_events(before, now, alignment, pick),
        *_cut_events(before, now, alignment, pick),
        *_watermark_events(before, now, alignment, pick),
    )


def _leader_events(before: Seen, now: Seen, alignment: Alignment, pick: _Picker) -> list[Event]:
    table, known = now.snapshot.partitions, alignment.known()
    if alignment.rows is None and before.snapshot.partitions.leader is table.leader:
        return []
    leader = alignment.carry(before.snapshot.partitions.leader, UNKNOWN_ID)
    changed = known & (leader != table.leader) & (leader != UNKNOWN_ID) & (table.leader != UNKNOWN_ID)
    if not changed.any():
        return []
    made = []
    none = changed & (table.leader == NO_BROKER)
    again = changed & ~none & (leader == NO_BROKER)
    led = changed & ~none & ~again
    if led.any():
        lost = alignment.carry(before.placed.leader_silent_since_ms, UNKNOWN) != UNKNOWN
        severity = Severity.GOOD if (led & lost).any() else Severity.CALM
        sentence = f"{pick.many(led)} led by another broker: {_by(table.leader[led])}"
        made.append(pick.event(led, EventKind.LEADER, severity, sentence))
    if again.any():
        sentence = f"{pick.many(again)} led again: {_by(table.leader[again])}"
        made.append(pick.event(again, EventKind.LEADER, Severity.GOOD, sentence))
    if none.any():
        verb = "has" if sum(pick.split(none)) == 1 else "have"
        made.append(pick.event(none, EventKind.LEADER, Severity.RISK, f"{pick.many(none)} {verb} no leader"))
    return made


def _by(leaders: Ids) -> str:
    brokers = sorted(set(leaders.tolist()))
    return text.brokers(brokers) if len(brokers) <= MAX_LISTED else f"{len(brokers)} brokers"


def _isr_events(before: Seen, now: Seen, alignment: Alignment, pick: _Picker) -> list[Event]:
    was, is_ = before.snapshot.partitions, now.snapshot.partitions
    if alignment.rows is None and was.isr is is_.isr:
        return []
    old = alignment.carry(was.isr, NO_BROKER)
    changed = alignment.known() & ~same_lists(old, is_.isr)
    if not changed.any():
        return []
    left = (old >= 0) & ~(old[:, :, None] == is_.isr[:, None, :]).any(2)
    came = (is_.isr >= 0) & ~(is_.isr[:, :, None] == old[:, None, :]).any(2)
    made = []
    for who, members, kind, severity, verb in (
        (left, old, EventKind.ISR_SHRANK, Severity.WARN, "out of the ISR of"),
        (came, is_.isr, EventKind.ISR_GREW, Severity.GOOD, "back in the ISR of"),
    ):
        mask = changed & who.any(1)
        if mask.any():
            ids = sorted(set(members[mask][who[mask]].tolist()))
            sentence = f"{text.brokers(ids)} {verb} {pick.many(mask)}"
            made.append(pick.event(mask, kind, severity, sentence, ids[0] if len(ids) == 1 else NO_BROKER))
    return made


def _watermark_events(before: Seen, now: Seen, alignment: Alignment, pick: _Picker) -> list[Event]:
    known = alignment.known()
    frozen_then = alignment.carry(before.frozen_since_ms, UNKNOWN) != UNKNOWN
    frozen = now.frozen_since_ms != UNKNOWN
    if not np.any(frozen != frozen_then):
        return []
    silent = now.placed.leader_silent_since_ms != UNKNOWN
    led = now.snapshot.partitions.leader >= 0
    made = []
    freezes = known & frozen & ~frozen_then & ~silent
    if freezes.any():
        sentence = f"watermark frozen on {pick.many(freezes)}"
        made.append(pick.event(freezes, EventKind.WATERMARK_FROZEN, Severity.RISK, sentence))
    moves = known & frozen_then & ~frozen & led
    if moves.any():
        sentence = f"watermark free again on {pick.many(moves)}"
        made.append(pick.event(moves, EventKind.WATERMARK_MOVES, Severity.GOOD, sentence))
    return made


def lost_at_election(before: Seen, now: Seen, alignment: Alignment) -> Longs:
    """Per partition with a new leader: the old leader's last log end seen − where the new leader's epoch
    starts, as seen.

    The new epoch starts where the new leader's log ended when it was elected. Seen of that: its last
    reading as a follower, if it was taken after the old leader fell silent (nothing was left to copy from
    then on), else its first reading as the leader, which is later: so this is a lower bound, 0 where
    nothing is known to be lost.
    """
    was, is_ = before.snapshot.partitions, now.snapshot.partitions
    leader = alignment.carry(was.leader, UNKNOWN_ID)
    old_end = alignment.carry(was.log_end, UNKNOWN)
    silent_since = alignment.carry(before.placed.leader_silent_since_ms, UNKNOWN)
    elected = alignment.known() & (is_.leader >= 0) & (leader >= 0) & (is_.leader != leader)
    as_new_leader = alignment.carry(was.replicas, NO_BROKER) == is_.leader[:, None]
    follower = _pick(alignment.carry(before.readings.ends, UNKNOWN), as_new_leader)
    follower_ms = _pick(alignment.carry(before.readings.times_ms, UNKNOWN), as_new_leader)
    final = (follower != UNKNOWN) & (silent_since != UNKNOWN) & (follower_ms > silent_since)
    read_now = (is_.log_end != UNKNOWN) & (is_.log_end_ms > before.snapshot.observation.ended_ms)
    start = np.where(final, follower, np.where(read_now, is_.log_end, UNKNOWN))
    known = elected & (old_end != UNKNOWN) & (start != UNKNOWN)
    return np.where(known, np.maximum(np.where(known, old_end - start, 0), 0), 0)


def _pick(matrix: NDArray[np.int64], where: NDArray[np.bool_]) -> Longs:
    """The value of each row at its mark, UNKNOWN where it has none."""
    picked: Longs = np.where(where, matrix, UNKNOWN).max(1, initial=UNKNOWN)
    return picked


def _lost_events(before: Seen, now: Seen, alignment: Alignment, pick: _Picker) -> list[Event]:
    if alignment.rows is None and before.snapshot.partitions.leader is now.snapshot.partitions.leader:
        return []
    lost = lost_at_election(before, now, alignment)
    mask = lost > 0
    if not mask.any():
        return []
    names = text.some(pick.names(mask))
    sentence = f"≥ {plural(int(lost.sum()), 'record')} of the old leader's log gone: {names}"
    return [pick.event(mask, EventKind.TRUNCATED, Severity.RISK, sentence)]


def _cut_events(before: Seen, now: Seen, alignment: Alignment, pick: _Picker) -> list[Event]:
    """Replicas whose own log end fell between two readings of it."""
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
    made = []
    for broker in sorted(set(is_.replicas[fell].tolist())):
        mine = fell & (is_.replicas == broker)
        mask = mine.any(1)
        records = plural(int(cut[mine].sum()), "record")
        sentence = f"broker {broker} cut ≥ {records} off its log of {text.some(pick.names(mask))}"
        made.append(pick.event(mask, EventKind.TRUNCATED, Severity.WARN, sentence, broker))
    return made
