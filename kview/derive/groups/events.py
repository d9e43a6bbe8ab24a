"""Group events: groups that come and go, rebalances, changes of state, resets of offsets and lost records."""

import numpy as np
from msgspec.structs import replace

from kview.derive.align import same
from kview.derive.events import MAX_NAMED
from kview.derive.groups.commits import Commits
from kview.derive.groups.losses import Losses
from kview.model.events import Event, EventKind, Severity
from kview.model.failures import Part
from kview.model.snapshot import Longs, Snapshot
from kview.model.states import REBALANCING, GroupState
from kview.model.units import UNKNOWN, UNKNOWN_ID

FIRST_LISTED = 2
"""The first observations may have been made before every broker had listed its groups."""


def _owners(snapshot: Snapshot) -> dict[str, frozenset[tuple[str, int, str]]]:
    """Return which member owns which partition, by group."""
    table = snapshot.offsets
    owned: dict[str, set[tuple[str, int, str]]] = {}
    for group, topic, partition, owner in zip(
        table.group, table.topic, table.partition.tolist(), table.owner, strict=True
    ):
        if owner:
            owned.setdefault(group, set()).add((topic, partition, owner))
    return {group: frozenset(rows) for group, rows in owned.items()}


def group_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """Return groups that appeared or were deleted, new coordinators, rebalances, and other changes of state.

    A rebalance is recognised by the group's state, or by its result, which is a change of owners.
    """
    old = {name: row for row, name in enumerate(before.groups.group)}
    a, b = before.groups, now.groups
    moved = not same(before.offsets.owner, now.offsets.owner) or not same(
        before.offsets.group, now.offsets.group
    )
    one_set = same(a.group, b.group)
    if not moved and one_set and same(a.state, b.state) and same(a.coordinator, b.coordinator):
        return ()
    owners_then, owners = (_owners(before), _owners(now)) if moved else ({}, {})
    changes = [] if one_set else _listed(before, now)
    for row, name in enumerate(now.groups.group):
        if name not in old:
            continue
        was, state = str(before.groups.state[old[name]]), str(now.groups.state[row])
        then, coordinator = int(a.coordinator[old[name]]), int(b.coordinator[row])
        if then != coordinator and then >= 0 and coordinator >= 0:
            changes.append(_event(now, EventKind.COORDINATOR_MOVED, Severity.WARN, name, then, coordinator))
        other = moved and name in owners_then and name in owners and owners_then[name] != owners[name]
        change = _change(was, state, other)
        if change is not None:
            (kind, severity), members = change, int(now.groups.members[row])
            event = _event(now, kind, severity, name, was, state)
            changes.append(replace(event, members=members if members != UNKNOWN_ID else UNKNOWN))
    return tuple(changes)


def _event(
    now: Snapshot,
    kind: EventKind,
    severity: Severity,
    group: str,
    before: str | int | None = None,
    after: str | int | None = None,
) -> Event:
    return Event(now.observation.ended_ms, kind, severity, group=str(group), before=before, after=after)


def _listed(before: Snapshot, now: Snapshot) -> list[Event]:
    """Return the groups that appeared, and those that were deleted.

    A group did not appear if it may have been there before: while a coordinator did not answer, or while
    kview was asking all brokers for the first time.
    """
    old, new, seen = set(before.groups.group), set(now.groups.group), before.observation
    complete = seen.sequence >= FIRST_LISTED and all(f.part is not Part.GROUPS for f in seen.failures)
    appeared = sorted(new - old) if complete else []
    return [
        *(_event(now, EventKind.GROUP_DELETED, Severity.WARN, name) for name in sorted(old - new)),
        *(_event(now, EventKind.GROUP_APPEARED, Severity.CALM, name) for name in appeared),
    ]


def offset_events(now: Snapshot, before: Commits, commits: Commits, losses: Losses) -> tuple[Event, ...]:
    """Return an event for each group whose offsets were reset, and for each that lost records.

    `before` has the rows of `commits`.
    """
    reset = (commits.reset_ms != before.reset_ms) & (commits.reset_ms != UNKNOWN)
    lost = losses.new > 0
    changes = []
    for group in sorted(set(now.offsets.group[reset])):
        rows = np.flatnonzero(reset & (now.offsets.group == group))
        changes.append(_reset_event(now, str(group), rows, commits))
    for group in sorted(set(now.offsets.group[lost])):
        rows = np.flatnonzero(lost & (now.offsets.group == group))
        event = _event(now, EventKind.GROUP_RECORDS_LOST, Severity.RISK, str(group))
        changes.append(replace(_at(now, event, rows), records=int(losses.new[rows].sum())))
    return tuple(changes)


def _reset_event(now: Snapshot, group: str, rows: Longs, commits: Commits) -> Event:
    is_one_row = len(rows) == 1
    event = _event(
        now,
        EventKind.GROUP_RESET,
        Severity.WARN,
        group,
        int(commits.reset_from[rows[0]]) if is_one_row else None,
        int(commits.committed[rows[0]]) if is_one_row else None,
    )
    by = int((commits.committed[rows] - commits.reset_from[rows]).sum())
    return replace(_at(now, event, rows), records=by)


def _at(now: Snapshot, event: Event, rows: Longs) -> Event:
    names = zip(now.offsets.topic[rows], now.offsets.partition[rows].tolist(), strict=True)
    return replace(
        event,
        partitions=tuple((str(topic), partition) for topic, partition in names)[:MAX_NAMED],
        partition_count=len(rows),
    )


def _change(was: str, state: str, other_owners: bool) -> tuple[EventKind, Severity] | None:
    if GroupState.UNKNOWN in (was, state):
        return None
    if state in REBALANCING:
        return None if was in REBALANCING else (EventKind.REBALANCE_STARTED, Severity.WARN)
    if was in REBALANCING and state == GroupState.STABLE:
        return EventKind.REBALANCE_ENDED, Severity.GOOD
    if was == state:
        return (EventKind.REBALANCED, Severity.WARN) if other_owners else None
    severity = Severity.WARN if state in (GroupState.EMPTY, GroupState.DEAD) else Severity.CALM
    return EventKind.GROUP_STATE, severity
