"""Group events: rebalances and changes of state."""

from kview.derive.align import same
from kview.model.events import Event, EventKind, Severity
from kview.model.snapshot import Snapshot
from kview.model.states import GroupState
from kview.model.units import UNKNOWN, UNKNOWN_ID

REBALANCING = frozenset(
    {
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
    }
)


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
    """Return rebalances, and other changes of groups' states.

    A rebalance is recognised by the group's state, or by its result, which is a change of owners.
    """
    old = {name: row for row, name in enumerate(before.groups.group)}
    a, b = before.groups, now.groups
    moved = not same(before.offsets.owner, now.offsets.owner) or not same(
        before.offsets.group, now.offsets.group
    )
    if not moved and same(a.group, b.group) and same(a.state, b.state):
        return ()
    owners_then, owners = (_owners(before), _owners(now)) if moved else ({}, {})
    made = []
    for row, name in enumerate(now.groups.group):
        if name not in old:
            continue
        was, state = str(before.groups.state[old[name]]), str(now.groups.state[row])
        other = moved and name in owners_then and name in owners and owners_then[name] != owners[name]
        found = _change(was, state, other)
        if found is not None:
            (kind, severity), members = found, int(now.groups.members[row])
            made.append(
                Event(
                    now.observation.ended_ms,
                    kind,
                    severity,
                    group=str(name),
                    members=members if members != UNKNOWN_ID else UNKNOWN,
                    before=was,
                    after=state,
                )
            )
    return tuple(made)


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
