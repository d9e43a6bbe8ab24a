"""Events of groups: rebalances and changes of state."""

from kview.derive.align import same
from kview.language.words import plural
from kview.model.events import Event, EventKind, Severity
from kview.model.snapshot import Snapshot
from kview.model.states import GroupState

REBALANCING = frozenset(
    {
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
    }
)


def _owners(snapshot: Snapshot) -> dict[str, frozenset[tuple[str, int, str]]]:
    """Per group, who owns what."""
    table = snapshot.offsets
    owned: dict[str, set[tuple[str, int, str]]] = {}
    for group, topic, partition, owner in zip(
        table.group, table.topic, table.partition.tolist(), table.owner, strict=True
    ):
        if owner:
            owned.setdefault(group, set()).add((topic, partition, owner))
    return {group: frozenset(rows) for group, rows in owned.items()}


def group_events(before: Snapshot, now: Snapshot) -> tuple[Event, ...]:
    """A rebalance that was seen, or whose result was (other owners); other changes of state; groups that
    are deleted."""
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
        was, state = before.groups.state[old[name]], now.groups.state[row]
        members = int(now.groups.members[row])
        other = moved and name in owners_then and name in owners and owners_then[name] != owners[name]
        event = _group_event(str(name), was, state, members, other)
        if event is not None:
            made.append(Event(now.observation.ended_ms, *event, group=str(name)))
    return tuple(made)


def _group_event(
    name: str, was: str, state: str, members: int, other_owners: bool
) -> tuple[EventKind, Severity, str] | None:
    if GroupState.UNKNOWN in (was, state):
        return None
    if state in REBALANCING:
        if was in REBALANCING:
            return None
        return EventKind.REBALANCE, Severity.WARN, f"{name} is rebalancing"
    if was in REBALANCING and state == GroupState.STABLE:
        return EventKind.REBALANCE, Severity.GOOD, f"{name} is stable with {plural(members, 'member')}"
    if was == state:
        if not other_owners:
            return None
        return EventKind.REBALANCE, Severity.WARN, f"{name} rebalanced: {plural(members, 'member')}"
    severity = Severity.WARN if state in (GroupState.EMPTY, GroupState.DEAD) else Severity.CALM
    return EventKind.GROUP_STATE, severity, f"{name} is {state} (it was {was})"
