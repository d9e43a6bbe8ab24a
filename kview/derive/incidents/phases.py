"""The stopwatch of an incident: which stage began when, and how far it has come."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.derive.incidents.hit import Hit
from kview.derive.seen import Seen
from kview.model.incidents import ENDS, Incident, IncidentKind, Phase, PhaseKind
from kview.model.snapshot import Flags
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN

ORDER = tuple(PhaseKind)
"""The order of phases that were seen in the same observation."""


def finished(incident: Incident, kind: PhaseKind, at_ms: int, now: Seen) -> Incident:
    """Return the incident as it ended, with the phase that ended it, if it has one of its own."""
    at_ms = max(at_ms, max((phase.at_ms for phase in incident.phases), default=at_ms))
    phases = incident.phases
    if kind in ENDS:
        phases = (*phases, Phase(kind, at_ms, last_ms=at_ms))
    return replace(incident, phases=phases, ended_ms=at_ms, is_waiting=False)


def followed(incident: Incident, hit: Hit, now: Seen, none_since: int) -> Incident:
    """Return the incident with the phases of this step, ended if this is its end.

    `none_since` is since when no broker has answered, UNKNOWN if one answers.
    """
    incident = replace(incident, phases=_phases(incident, hit, now, none_since))
    now_ms = now.snapshot.observation.ended_ms
    table, brokers = now.snapshot.brokers, np.array(incident.brokers, np.int32)
    if len(brokers) and not np.isin(brokers, table.id).any():
        return finished(incident, PhaseKind.REMOVED, now_ms, now)
    is_back = _count_in(now, incident, BrokerState.UP) == len(brokers)
    if not len(hit):
        return finished(incident, PhaseKind.BACK, now_ms, now) if is_back else incident
    if whole(hit, now).all():
        return finished(incident, PhaseKind.ISR_FULL, now_ms, now)
    return incident


def whole(hit: Hit, now: Seen) -> Flags:
    """Return which partitions are led, with every replica in the ISR and answering, and not frozen.

    Until a silent broker is fenced, metadata still lists it in the ISR.
    """
    rows, placed = hit.rows, now.placed
    full = (placed.isr_count[rows] >= placed.replication[rows]) & (placed.assigned[rows] > 0)
    silent = (placed.in_isr[rows] & placed.replica_silent[rows]).any(1)
    led = (now.snapshot.partitions.leader[rows] >= 0) & (placed.leader_silent_since_ms[rows] == UNKNOWN)
    return np.asarray(full & led & ~silent & (now.frozen_since_ms[rows] == UNKNOWN), np.bool_)


def _count_in(now: Seen, incident: Incident, *states: BrokerState) -> int:
    """Return how many of the incident's brokers are in one of these states."""
    table = now.snapshot.brokers
    mine = table.state[np.isin(table.id, incident.brokers)]
    return sum(state in states for state in mine)


class _Count(Struct, frozen=True):
    """How many of the user's and of the internal partitions a mask over the hit partitions selects."""

    mine: int
    internal: int = 0

    @staticmethod
    def of(mask: Flags, internal: Flags) -> "_Count":
        inside = int((mask & internal).sum())
        return _Count(int(mask.sum()) - inside, inside)

    def __bool__(self) -> bool:
        return self.mine + self.internal > 0

    def most(self, phase: Phase | None) -> "_Count":
        """Return the greater of these counts and those of a phase, which never fall."""
        if phase is None:
            return self
        return _Count(max(self.mine, phase.count), max(self.internal, phase.internal_count))


def _noted(
    old: Phase | None, kind: PhaseKind, count: _Count, total: _Count, at_ms: int, now_ms: int
) -> Phase | None:
    """Return the phase with its counts as of now, None if it has not begun."""
    if old is None and not count:
        return None
    counts = count.mine, total.mine, count.internal, total.internal
    if old is None:
        return Phase(kind, at_ms, *counts, last_ms=at_ms)
    changed = counts[::2] != (old.count, old.internal_count)
    return Phase(kind, old.at_ms, *counts, last_ms=now_ms if changed else old.last_ms)


def _phases(incident: Incident, hit: Hit, now: Seen, none_since: int) -> tuple[Phase, ...]:
    table, rows = now.snapshot.partitions, hit.rows
    now_ms, internal = now.snapshot.observation.ended_ms, table.internal[hit.rows]
    phases = {phase.kind: phase for phase in incident.phases}
    no_leader = (table.leader[rows] == NO_BROKER) & ~hit.elsewhere
    led = (table.leader[rows] >= 0) & (now.placed.leader_silent_since_ms[rows] == UNKNOWN)
    led |= hit.elsewhere  # what another incident took away again
    frozen = now.frozen_since_ms[rows]
    is_frozen = (frozen != UNKNOWN) & ~hit.elsewhere

    def note(kind: PhaseKind, count: _Count, total: _Count, at_ms: int = now_ms) -> None:
        at_ms = min(max(at_ms, incident.began_ms), now_ms)
        if made := _noted(phases.get(kind), kind, count, total, at_ms, now_ms):
            phases[kind] = made

    def of(mask: Flags) -> _Count:
        return _Count.of(mask, internal)

    everything = of(np.ones(len(hit), np.bool_))
    since = int(frozen[is_frozen].min()) if is_frozen.any() else now_ms
    note(PhaseKind.FROZEN, of(hit.frozen), everything, since)
    note(PhaseKind.NO_LEADER, of(hit.orphan & no_leader).most(phases.get(PhaseKind.NO_LEADER)), everything)
    if incident.kind is IncidentKind.BROKERS:
        brokers = _Count(len(incident.brokers))
        ids = now.snapshot.brokers.id[now.snapshot.brokers.answered_ms != UNKNOWN]
        if none_since != UNKNOWN and np.isin(ids, incident.brokers).all():
            note(PhaseKind.NO_ANSWER, brokers, brokers, none_since)
        listed = int(np.isin(incident.brokers, now.snapshot.brokers.id).sum())
        out = _count_in(now, incident, BrokerState.FENCED, BrokerState.GONE) + brokers.mine - listed
        note(PhaseKind.FENCED, _Count(out).most(phases.get(PhaseKind.FENCED)), brokers)
        note(PhaseKind.BACK, _Count(_count_in(now, incident, BrokerState.UP)), brokers)
    again = hit.orphan & hit.moved & led
    if again.any() or PhaseKind.ELECTED in phases:  # one that is back before it was fenced leads as before
        again |= hit.orphan & ~hit.elsewhere & led
    note(PhaseKind.ELECTED, of(again), of(hit.orphan))
    if PhaseKind.FROZEN in phases:
        note(PhaseKind.MOVES, of(hit.frozen & ~is_frozen & led), of(hit.frozen))
    return tuple(sorted(phases.values(), key=lambda phase: (phase.at_ms, ORDER.index(phase.kind))))
