"""Incidents: which faults are going on, what followed from them, and when they end. Part of the fold.

An incident begins only with a change that was seen: a broker that the cluster loses, a quorum that cannot
act, a partition that loses its leader, or a watermark that freezes. Brokers that are lost within JOIN_MS
belong to one incident; a later loss is another one. A broker that only kview cannot reach begins none.

While no broker answers at all, nobody can tell whether the cluster or only kview lost them. Then all brokers
belong to one incident that says just that, and nothing else is concluded until one answers again.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.derive.brokers.quorum import Term, quorum_findings, voters_lost
from kview.derive.brokers.silence import late, none_answer_since
from kview.derive.incidents import hit as hits
from kview.derive.incidents.going_on import Open, Step, charged, followed
from kview.derive.incidents.hit import Hit, Layer
from kview.derive.incidents.phases import finished
from kview.derive.seen import Seen
from kview.model.events import Event, EventKind, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.incidents import Incident, IncidentKind, Phase, PhaseKind
from kview.model.snapshot import Flags, Longs, Snapshot
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN

JOIN_MS = 10_000
"""Brokers lost within this time after the first one are one incident: a rack or a switch fails bit by bit."""

MAX_INCIDENTS = 20
"""The most incidents kept, open ones included."""

MAX_LAYERS = 32
LAYERS_BACK_MS = 20_000
"""How long leaders and ISRs are remembered: it takes some seconds to tell that a silent broker is lost."""

QUORUM_AFTER_MS = 5_000
"""If there is no active controller for this long, it is not just an election, which takes three at most."""

FROZEN_FOR_MS = 3_000
"""If no broker is lost, a watermark must stand still for this long to be an incident."""

NONE_ANSWER_FOR_MS = 3_000
"""If no broker answers for this long, it is not just a hiccup of kview's own machine. Brokers whose ports
refuse connections are lost at once."""

_NO_ROWS = np.empty(0, np.int64)

_CANNOT_ACT = (FindingKind.NO_CONTROLLER, FindingKind.QUORUM_LOST, FindingKind.QUORUM_SILENT)


class Incidents(Struct, frozen=True):
    """What is carried from step to step."""

    layers: tuple[Layer, ...] = ()
    open: tuple[Open, ...] = ()
    closed: tuple[Incident, ...] = ()
    lost: frozenset[int] = frozenset()
    """Brokers whose loss already belongs to an incident, or was not seen to happen."""
    quorum_since_ms: int = UNKNOWN
    """Since when no controller has been able to act."""
    controllers_lost: frozenset[int] | None = None
    """The controllers that do not fetch from the active one, None if the quorum was never described."""

    @property
    def of_quorum(self) -> Incident | None:
        """The open incident of the quorum, None while a controller can act."""
        return next(
            (running.incident for running in self.open if running.incident.kind is IncidentKind.QUORUM),
            None,
        )

    @property
    def all(self) -> tuple[Incident, ...]:
        """All incidents in the order in which they began."""
        ours = (*self.closed, *(running.incident for running in self.open))
        return tuple(sorted(ours, key=lambda incident: incident.began_ms))


def first(now: Seen, term: Term) -> Incidents:
    """Return the state after the first snapshot, whose losses nobody saw happen."""
    snapshot = now.snapshot
    layer = Layer.of(snapshot.partitions, snapshot.observation.ended_ms)
    lost = voters_lost(None, snapshot, term)
    return Incidents((layer,), lost=frozenset(_lost(now)), controllers_lost=lost)


def follow(before: Incidents, step: Step) -> Incidents:
    """Return the incidents after a step."""
    if step.alignment.rows is not None:
        before = replace(
            before,
            layers=tuple(layer.carried(step.alignment) for layer in before.layers),
            open=tuple(replace(running, hit=running.hit.carried(step.alignment)) for running in before.open),
        )
    none_since = none_answer_since(step.now.snapshot.brokers)
    begun = _begin_brokers(before, step, none_since)
    if step.now.snapshot.brokers.answers.any():
        begun = _begin_partitions(begun, step)
        begun = _quorum(begun, step)
    hurt = charged(begun.open, step)
    going, over = [], list(begun.closed)
    none_acts = begun.of_quorum is not None
    for running in begun.open:
        if running.incident.kind is not IncidentKind.QUORUM:
            running = followed(running, step, hurt.get(running.incident.key, _NO_ROWS), none_since, none_acts)
        if running.incident.is_open:
            going.append(running)
        else:
            over.append(running.incident)
    going = going[-MAX_INCIDENTS:]
    room = MAX_INCIDENTS - len(going)
    return replace(
        begun,
        layers=_layers(before.layers, step),
        open=tuple(going),
        closed=tuple(over[-room:]) if room else (),
        controllers_lost=voters_lost(before.controllers_lost, step.now.snapshot, step.term),
    )


def controller_events(before: Incidents | None, now: Incidents, snapshot: Snapshot) -> tuple[Event, ...]:
    """Return the controllers that were lost, were found to be lost when kview began to watch, or are back.

    `before` is None for the first snapshot. Controllers that were removed from the quorum are not back.
    """
    now_ms, was = snapshot.observation.ended_ms, None if before is None else before.controllers_lost
    if now.controllers_lost is None or was == now.controllers_lost:
        return ()
    new = now.controllers_lost - (was or frozenset())
    back = ((was or frozenset()) - now.controllers_lost) & frozenset(snapshot.quorum.node.tolist())
    kind = EventKind.CONTROLLER_FOUND_DOWN if was is None else EventKind.CONTROLLER_LOST
    events = [Event(now_ms, kind, Severity.WARN, controllers=tuple(sorted(new)))] if new else []
    if back:
        back_again = tuple(sorted(back))
        events.append(Event(now_ms, EventKind.CONTROLLER_BACK, Severity.GOOD, controllers=back_again))
    return tuple(events)


def incident_events(before: Incidents, now: Incidents, now_ms: int) -> tuple[Event, ...]:
    """Return the events of the quorum: that no controller can act, and that one can again."""
    was, is_ = before.of_quorum, now.of_quorum
    if was is None and is_ is not None:
        active = is_.controllers
        return (Event(is_.began_ms, EventKind.QUORUM_LOST, Severity.RISK, controllers=active),)
    if was is not None and is_ is None:
        return (Event(now_ms, EventKind.QUORUM_BACK, Severity.GOOD),)
    return ()


def _layers(before: tuple[Layer, ...], step: Step) -> tuple[Layer, ...]:
    """Return the layers with this step's, if anything changed. The oldest one holds for all time before."""
    layer_now = Layer.of(step.now.snapshot.partitions, step.now_ms)
    last = before[-1]
    if last.leader is layer_now.leader and last.epoch is layer_now.epoch and last.isr is layer_now.isr:
        return before
    after = (*before, layer_now)[-MAX_LAYERS:]
    back_ms = step.now_ms - max(LAYERS_BACK_MS, 3 * max(0, step.now.interval_ms))
    old = sum(layer.at_ms <= back_ms for layer in after)
    return after[max(0, old - 1) :]


# -- how incidents begin


def _lost(seen: Seen) -> set[int]:
    """Return the brokers that the cluster has lost: dead, fenced or no longer listed."""
    table = seen.snapshot.brokers
    out = np.asarray((table.state == BrokerState.FENCED) | (table.state == BrokerState.GONE), np.bool_)
    return set(table.id[(seen.known.lost | out) & (table.answered_ms != UNKNOWN)].tolist())


def _begin_brokers(before: Incidents, step: Step, none_since: int) -> Incidents:
    """Begin or extend the incident of the brokers that this step has lost.

    If no broker has answered since `none_since`, that is all of them.
    """
    brokers = step.now.snapshot.brokers
    lost = _lost(step.now)
    none_answer = none_since != UNKNOWN and (bool(lost) or step.now_ms - none_since >= NONE_ANSWER_FOR_MS)
    if none_answer:
        lost = set(brokers.id[brokers.answered_ms != UNKNOWN].tolist())
    up = set(brokers.id[np.asarray(brokers.state == BrokerState.UP, np.bool_)].tolist())
    new = sorted(lost - before.lost)
    state = replace(before, lost=frozenset((before.lost | lost) - up))
    if not new:
        return state
    since = {broker: _since(broker, step) for broker in new}
    silent = [broker for broker in new if since[broker][1]]
    began_ms = min(ms for ms, _ in since.values())
    ends = hits.leaders_ends(step.then, step.changed_ms, step.alignment)
    hit = hits.hit_by(before.layers, new, began_ms, ends)
    going: list[Open] = []
    ended = list(before.closed)
    joined = False
    join_ms = began_ms if none_answer else JOIN_MS
    for running in before.open:
        incident = running.incident
        if incident.kind is IncidentKind.BROKERS and set(incident.brokers) & set(new):
            ended.append(finished(incident, PhaseKind.REPEATED, step.now_ms, step.now))
            hit = hit.with_more(running.hit.as_before())
        elif incident.kind is IncidentKind.BROKERS and not joined and began_ms - incident.began_ms <= join_ms:
            joined = True
            going.append(_joined(running, new, hit, began_ms))
        else:
            going.append(running)
    if not joined:
        kind = PhaseKind.SILENT if silent else PhaseKind.STOPPED
        phase = Phase(kind, began_ms, len(new), len(new), last_ms=began_ms)
        incident = Incident(IncidentKind.BROKERS, began_ms, step.now_ms, (phase,), brokers=tuple(new))
        going.append(Open(incident, hit))
    if none_answer:  # there is no other loss any more than that of all brokers
        first, *others = [running for running in going if running.incident.kind is IncidentKind.BROKERS]
        for other in others:
            at_ms = other.incident.phases[0].last_ms
            first = _joined(first, list(other.incident.brokers), other.hit.as_before(), at_ms)
            ended.append(finished(other.incident, PhaseKind.JOINED, step.now_ms, step.now))
        going = [
            first,
            *(running for running in going if running.incident.kind is not IncidentKind.BROKERS),
        ]
    return replace(state, open=tuple(going), closed=tuple(ended))


def _joined(running: Open, new: list[int], hit: Hit, at_ms: int) -> Open:
    """Return an incident with more brokers, which were lost at `at_ms`, and the partitions that they hit."""
    ids = tuple(sorted({*running.incident.brokers, *new}))
    first, *rest = running.incident.phases
    first = replace(first, count=len(ids), total=len(ids), last_ms=max(first.last_ms, at_ms))
    incident = replace(running.incident, brokers=ids, phases=(first, *rest))
    return replace(running, incident=incident, hit=running.hit.joined(hit))


def _since(broker: int, step: Step) -> tuple[int, bool]:
    """Return since when a broker has been lost, and whether it was silent before the cluster told so."""
    for seen in (step.then, step.now):
        brokers = seen.snapshot.brokers
        rows = np.flatnonzero(brokers.id == broker)
        if len(rows) and brokers.state[rows[0]] == BrokerState.SILENT:
            return int(brokers.since_ms[rows[0]]), True
    return step.now_ms, False


def _begin_partitions(before: Incidents, step: Step) -> Incidents:
    """Begin or extend the incident of the partitions that are in trouble without a lost broker."""
    table, now = step.now.snapshot.partitions, step.now
    frozen = now.frozen_since_ms
    stuck = (frozen != UNKNOWN) & (frozen <= step.now_ms - FROZEN_FOR_MS)
    was = step.then.snapshot.partitions.leader
    if was is not table.leader:
        was = step.alignment.carry(was, NO_BROKER)
        stuck |= (table.leader == NO_BROKER) & (was >= 0)
    if not stuck.any():
        return before
    for running in before.open:
        stuck[running.hit.rows] = False
    rows = np.flatnonzero(stuck).astype(np.int64)
    rows = rows[~_undecided(now, rows)]
    if not len(rows):
        return before
    ends = hits.leaders_ends(step.then, step.changed_ms, step.alignment)
    hit = hits.hit_rows(rows, before.layers, ends)
    for at, running in enumerate(before.open):
        if running.incident.kind is IncidentKind.PARTITIONS:
            longer = replace(running, hit=running.hit.with_more(hit))
            return replace(before, open=(*before.open[:at], longer, *before.open[at + 1 :]))
    since = frozen[rows][frozen[rows] != UNKNOWN]
    began_ms = int(since.min()) if len(since) else step.now_ms
    begun = Open(Incident(IncidentKind.PARTITIONS, began_ms, step.now_ms, ()), hit)
    return replace(before, open=(*before.open, begun))


def _undecided(now: Seen, rows: Longs) -> Flags:
    """Return the partitions whose trouble may be that of a broker about which it is not decided yet."""
    brokers, table = now.snapshot.brokers, now.snapshot.partitions
    listed = np.asarray(brokers.state == BrokerState.SILENT, np.bool_) & ~now.known.lost
    ids = brokers.id[(listed & ~now.known.unreached) | late(brokers)]
    return np.isin(table.isr[rows], ids).any(1) | np.isin(table.leader[rows], ids)


def _quorum(before: Incidents, step: Step) -> Incidents:
    """Begin or end the incident of the quorum."""
    found = _cannot_act(step)
    at = next(
        (n for n, running in enumerate(before.open) if running.incident.kind is IncidentKind.QUORUM),
        None,
    )
    if found is None:
        state = replace(before, quorum_since_ms=UNKNOWN)
        if at is None:
            return state
        incident = finished(before.open[at].incident, PhaseKind.QUORUM_BACK, step.now_ms, step.now)
        rest = (*before.open[:at], *before.open[at + 1 :])
        return replace(state, open=rest, closed=(*before.closed, incident))
    since = before.quorum_since_ms
    if since == UNKNOWN:
        since = found.since_ms if found.since_ms != UNKNOWN else step.now_ms
    state = replace(before, quorum_since_ms=since)
    sure = found.kind is FindingKind.QUORUM_LOST or step.now_ms - since >= QUORUM_AFTER_MS
    if at is None and sure:
        none_told = none_answer_since(step.then.snapshot.brokers) != UNKNOWN
        began_ms = step.now_ms if none_told else since
        made = Incident(
            IncidentKind.QUORUM,
            began_ms,
            step.now_ms,
            (Phase(PhaseKind.QUORUM_LOST, began_ms),),
            not_before_ms=since if none_told else UNKNOWN,
            controllers=found.controllers,
        )
        return replace(state, open=(*state.open, Open(made, Hit.none())))
    return state


def _cannot_act(step: Step) -> Finding | None:
    found = quorum_findings(step.now.snapshot, step.term, step.now.interval_ms)
    return next((finding for finding in found if finding.kind in _CANNOT_ACT), None)
