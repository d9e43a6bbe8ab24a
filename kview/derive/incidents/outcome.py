"""What a fault led to, from the views before and after it."""

import numpy as np
from msgspec import Struct

from kview.derive.align import align_partitions, positions, take
from kview.derive.brokers.silence import silence
from kview.derive.view import View
from kview.model.events import EventKind
from kview.model.lab import CommandKind, Done, NodeRole, Outcome
from kview.model.snapshot import Flags, Ids, Partitions
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER


class Led(Struct, frozen=True, eq=False):
    """The partitions of the user's topics that a broker led: the marked rows of a table."""

    table: Partitions
    rows: Flags


_LOSSES = frozenset({EventKind.RECORDS_LOST, EventKind.UNCLEAN_ELECTION})


def led_by(view: View, node: int) -> Led:
    """Return the partitions that a broker leads."""
    table = view.snapshot.partitions
    return Led(table, np.asarray((table.leader == node) & ~table.internal, np.bool_))


def outcome(view: View, kind: CommandKind, node: int, led: Led, at_ms: int) -> Outcome | None:
    """Return what a fault at `at_ms` (epoch ms) led to, or None while the broker still leads a partition.

    `led` are the partitions that the broker led at that time.
    """
    table = view.snapshot.partitions
    leaders = table.leader[align_partitions(led.table, table).carry(led.rows, False)]
    if not len(leaders) or (leaders == node).any():
        return None
    without = int((leaders == NO_BROKER).sum())
    silent = _silent(view, leaders)
    lost = [e.records for e in view.events if e.kind in _LOSSES and e.at_ms >= at_ms]
    return Outcome(
        kind,
        node,
        moved=len(leaders) - without - int(silent.sum()),
        without_leader=without,
        records_lost=sum(lost),
        after_ms=max(0, view.snapshot.observation.ended_ms - at_ms),
        moved_to_silent=int(silent.sum()),
        silent_leaders=tuple(sorted({int(leader) for leader in leaders[silent]})),
    )


def rejoined(view: View, done: Done, at_ms: int) -> bool:
    """Return whether START or UNDO at `at_ms` (epoch ms) has come to its end.

    That is when the brokers, for UNDO all of them, are up and in every ISR that they belong in. A controller
    never is.
    """
    if done.kind not in (CommandKind.START, CommandKind.UNDO) or done.role is not NodeRole.BROKER:
        return False
    snapshot = view.snapshot
    brokers, table = snapshot.brokers, snapshot.partitions
    if snapshot.observation.began_ms <= at_ms:
        return False
    ids = brokers.id if done.kind is CommandKind.UNDO else np.array(done.nodes, np.int32)
    up = brokers.id[np.asarray(brokers.state == BrokerState.UP, np.bool_)]
    if not np.isin(ids, up).all():
        return False
    copies, in_sync = np.isin(table.replicas, ids).sum(1), np.isin(table.isr, ids).sum(1)
    return bool((copies == in_sync).all())


def _silent(view: View, leaders: Ids) -> Flags:
    """Return which of these leaders do not answer anyone: clients cannot use what they lead."""
    brokers = view.snapshot.brokers
    quiet = silence(brokers)
    reached = take(~view.brokers.unreached, positions(brokers.id, leaders), True)
    return np.asarray(quiet.of(leaders) & reached, np.bool_)
