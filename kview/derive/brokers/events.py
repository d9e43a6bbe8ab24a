"""Events of controllers and brokers: the differences between two snapshots."""

from collections.abc import Sequence

from kview.derive.align import same
from kview.derive.brokers.silence import other_apis
from kview.derive.seen import Seen
from kview.model.events import Event, EventKind, Severity
from kview.model.failures import FailureKind
from kview.model.snapshot import Snapshot
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN, UNKNOWN_ID


def controller_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Return an event if the controller changed, or none if the old or the new controller is not known."""
    old, new = before.observation, now.observation
    if new.controller_id < 0 or old.controller_id == new.controller_id:
        return ()
    if old.controller_id == UNKNOWN_ID:
        return ()
    return (
        Event(
            new.ended_ms,
            EventKind.CONTROLLER_MOVED,
            Severity.WARN,
            controllers=(new.controller_id,),
            before=old.controller_id if old.controller_id >= 0 else None,
            after=new.controller_id,
            epoch=new.controller_epoch if new.controller_epoch != UNKNOWN_ID else None,
        ),
    )


_STATES = {
    BrokerState.SILENT: (EventKind.BROKER_SILENT, Severity.RISK),
    BrokerState.FENCED: (EventKind.BROKER_FENCED, Severity.WARN),
    BrokerState.GONE: (EventKind.BROKER_GONE, Severity.WARN),
    BrokerState.UP: (EventKind.BROKER_BACK, Severity.GOOD),
}


_FOUND = (BrokerState.SILENT, BrokerState.FENCED, BrokerState.GONE)
"""The states in which a broker counts as down when kview begins to watch."""


def brokers_found_down(now: Snapshot) -> tuple[Event, ...]:
    """Return the brokers that are down in the first snapshot, one event for each state and cause."""
    table = now.brokers
    rows = [row for row, state in enumerate(table.state) if state in _FOUND]
    return _found_down(now, rows)


def _found_down(now: Snapshot, rows: Sequence[int]) -> tuple[Event, ...]:
    table, at_ms = now.brokers, now.observation.ended_ms
    alike: dict[tuple[BrokerState, FailureKind], list[int]] = {}
    for row in rows:
        state = BrokerState(table.state[row])
        cause = _cause(str(table.error[row])) if state is BrokerState.SILENT else FailureKind.NONE
        alike.setdefault((state, cause), []).append(int(table.id[row]))
    return tuple(
        Event(
            at_ms,
            EventKind.BROKER_FOUND_DOWN,
            Severity.RISK if state is BrokerState.SILENT else Severity.WARN,
            brokers=tuple(brokers),
            cause=cause,
            after=state.value,
        )
        for (state, cause), brokers in alike.items()
    )


def broker_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Return the changes of brokers' states. A silence begins at the first unanswered request."""
    if same(before.brokers.id, now.brokers.id) and same(before.brokers.state, now.brokers.state):
        return ()
    old = dict(zip(before.brokers.id.tolist(), before.brokers.state, strict=True))
    answered_before = set(before.brokers.id[before.brokers.answered_ms != UNKNOWN].tolist())
    changes, never_answered = [], []
    table = now.brokers
    for row, broker in enumerate(table.id.tolist()):
        state, was = BrokerState(table.state[row]), old.get(broker)
        if was == state or state is BrokerState.STARTING:
            continue
        if state is BrokerState.SILENT and table.answered_ms[row] == UNKNOWN:
            never_answered.append(row)  # it did not stop answering
            continue
        if was is None:
            continue
        if was == BrokerState.STARTING and state is BrokerState.UP and broker not in answered_before:
            continue  # kview's first contact with it, not its return
        kind, severity = _STATES[state]
        at_ms, cause = now.observation.ended_ms, FailureKind.NONE
        if state is BrokerState.SILENT:
            at_ms = max(int(table.since_ms[row]), before.observation.began_ms)
            cause = _cause(str(table.error[row]))
        changes.append(Event(at_ms, kind, severity, brokers=(broker,), cause=cause))
    return (*_found_down(now, never_answered), *changes)


def slow_events(before: Seen, now: Seen) -> tuple[Event, ...]:
    """Return the brokers that became slow, and those that are no longer slow although they answer."""
    table, at_ms = now.snapshot.brokers, now.snapshot.observation.ended_ms
    was = dict(zip(before.snapshot.brokers.id.tolist(), before.slow_since_ms.tolist(), strict=True))
    changes = []
    for row, broker in enumerate(table.id.tolist()):
        then, is_ = was.get(broker, UNKNOWN) != UNKNOWN, bool(now.slow_since_ms[row] != UNKNOWN)
        if then == is_ or (then and (table.state[row] != BrokerState.UP or table.latency_us[row] < 0)):
            continue
        kind, severity = (
            (EventKind.BROKER_SLOW, Severity.WARN) if is_ else (EventKind.BROKER_NOT_SLOW, Severity.GOOD)
        )
        latency_ms = int(table.latency_us[row]) // 1000
        changes.append(Event(at_ms, kind, severity, brokers=(broker,), after=latency_ms))
    return tuple(changes)


def api_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Return that brokers begin, or no longer, offer different APIs, as in a rolling upgrade."""
    was, is_ = (each.observation.apis_differ_since_ms != UNKNOWN for each in (before, now))
    if was == is_:
        return ()
    if not is_:
        return (Event(now.observation.ended_ms, EventKind.APIS_ALIKE, Severity.CALM),)
    ids = tuple(now.brokers.id[other_apis(now)].tolist())
    return (Event(now.observation.ended_ms, EventKind.APIS_DIFFER, Severity.CALM, brokers=ids),)


_FAILURES = frozenset(FailureKind)


def _cause(error: str) -> FailureKind:
    """Convert a broker's `error` to a kind of failure; OTHER if it is not one."""
    return FailureKind(error) if error in _FAILURES else FailureKind.OTHER
