"""Kafka Connect: which connectors and tasks have failed, and whether their states are known.

Nothing is judged of its workers as a group: they commit no offsets.
"""

from collections.abc import Iterator

import numpy as np

from kview.model.events import Event, EventKind, Severity
from kview.model.failures import Cause, FailureKind, Part
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Failure, Flags, Longs, Observation, Snapshot
from kview.model.states import ConnectorState
from kview.model.units import CONNECTOR_TASK, UNKNOWN

HOLD_MS = 60_000
"""States older than this count as unknown. They are read every 15 s, so that a request or two may fail."""


def are_known(seen: Observation) -> bool:
    """Return whether the states of connectors are known as they are now, or were a moment ago."""
    received_ms = seen.connectors_received_ms
    return received_ms != UNKNOWN and seen.ended_ms - received_ms <= HOLD_MS


def unread(seen: Observation) -> Failure | None:
    """Return why the states were not read the last time, None if they were or nobody asks for them."""
    return next((failure for failure in seen.failures if failure.part == Part.CONNECTORS), None)


def failed(snapshot: Snapshot) -> Longs:
    """Return the rows of the connectors and tasks that have failed, none if their states are not known."""
    if not are_known(snapshot.observation):
        return np.empty(0, np.int64)
    return np.flatnonzero(snapshot.connectors.state == ConnectorState.FAILED).astype(np.int64)


def paused_sinks(snapshot: Snapshot) -> Flags:
    """Return the groups with which sinks read that are paused or stopped, as far as their names tell."""
    table, groups = snapshot.connectors, snapshot.groups.group
    if not len(table) or not are_known(snapshot.observation):
        return np.zeros(len(groups), np.bool_)
    resting = np.isin(table.state.astype(str), (ConnectorState.PAUSED, ConnectorState.STOPPED))
    names = {group_of(name) for name in table.connector[resting & (table.task == CONNECTOR_TASK)]}
    return np.array([name in names for name in groups.tolist()], np.bool_)


def group_of(connector: str) -> str:
    """Return the group with which a sink reads, unless its settings say otherwise."""
    return f"connect-{connector}"


def reason(snapshot: Snapshot, row: int) -> str:
    """Return the line of a trace that says most: the last cause, or the first line. '' without a trace."""
    table = snapshot.connectors
    return str(table.root_cause[row] or table.trace[row])


def connector_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Return what failed between two readings of the states, and what had failed and runs again.

    What is wrong in the first reading is a finding: nobody saw it happen.
    """
    if before.connectors.state is now.connectors.state:
        return ()
    if before.observation.connectors_received_ms == UNKNOWN:
        return ()
    was, is_ = _states(before), _states(now)
    fell = [key for key, state in is_.items() if state == _FAILED and was.get(key, _FAILED) != _FAILED]
    rose = [key for key, state in is_.items() if state == _RUNNING and was.get(key) == _FAILED]
    kinds = (
        (fell, EventKind.CONNECT_TASK_FAILED, Severity.RISK),
        (rose, EventKind.CONNECT_TASK_RUNS, Severity.GOOD),
    )
    return tuple(
        Event(
            now.observation.ended_ms,
            kind,
            severity,
            connector=keys[0][0],
            task=keys[0][1],
            tasks=len(keys),
        )
        for keys, kind, severity in kinds
        if keys
    )


_FAILED, _RUNNING = ConnectorState.FAILED.value, ConnectorState.RUNNING.value


def _states(snapshot: Snapshot) -> dict[tuple[str, int], str]:
    table = snapshot.connectors
    return {
        (str(connector), int(task)): str(state)
        for connector, task, state in zip(table.connector, table.task.tolist(), table.state, strict=True)
    }


def connector_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the first connector or task that has failed, or that the states are not known."""
    rows, table, seen = failed(snapshot).tolist(), snapshot.connectors, snapshot.observation
    if rows:
        yield Finding(
            FindingKind.CONNECT_TASK_FAILED,
            Severity.RISK,
            count=len(rows),
            connector=str(table.connector[rows[0]]),
            task=int(table.task[rows[0]]),
            trace=reason(snapshot, rows[0]),
        )
    failure = unread(seen)
    if failure is not None and not are_known(seen) and failure.kind is not FailureKind.NOT_CONNECTED:
        yield Finding(
            FindingKind.CONNECTORS_UNREAD,
            Severity.WARN,
            since_ms=failure.shown_since_ms,
            cause=Cause(FailureKind(failure.kind), failure.code),
        )
