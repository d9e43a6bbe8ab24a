"""The timeline of events: a lane per broker, one for the controllers and one for the partitions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import NamedTuple

import numpy as np

from kview.derive.brokers.controllers import CONTROLLER_FINDINGS, lost_controllers
from kview.derive.view import View
from kview.language import glyphs, words
from kview.model.events import Event, EventKind, Severity
from kview.model.findings import FindingKind
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.text import Line, Role, Span, Title, line, runs

MOST_NAMED = 5
"""The most brokers in trouble that are named because they have no lane."""

SPANS_MS = (60_000, 120_000, 300_000, 540_000)
"""The timeline covers the shortest of these that holds every event of the view."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What an event draws: a sign at its moment, and how the lane goes on from there."""

    sign: str
    role: Role
    goes_on: str = ""
    """How the lane goes on, '' if the event does not change that."""
    goes_on_role: Role | None = None
    """None if it goes on in the role of the sign, or calmly."""
    before: str = ""
    """How the lane was before, if nothing that happened earlier says so; '' if it was calm."""


_CALM = glyphs.RULE
_UNSEEN = " "
"""How a lane looks before kview began to watch."""

_BROKER_MARKS = {
    EventKind.BROKER_FOUND_DOWN: Mark(glyphs.DEAD, Role.RISK, glyphs.DEAD, before=_UNSEEN),
    EventKind.BROKER_SILENT: Mark(glyphs.DEAD, Role.RISK, glyphs.DEAD),
    EventKind.BROKER_FENCED: Mark(glyphs.DEAD, Role.WARN, glyphs.OUT_OF_SYNC),
    EventKind.BROKER_GONE: Mark(glyphs.DEAD, Role.WARN, glyphs.OUT_OF_SYNC),
    EventKind.BROKER_BACK: Mark(glyphs.OK, Role.GOOD, _CALM, before=glyphs.OUT_OF_SYNC),
    EventKind.BROKER_SLOW: Mark(glyphs.UP, Role.WARN, glyphs.UP),
    EventKind.BROKER_NOT_SLOW: Mark(glyphs.OK, Role.GOOD, _CALM),
}
_CONTROLLER_MARKS = {
    EventKind.CONTROLLER_MOVED: Mark(glyphs.UP, Role.WARN),
    EventKind.CONTROLLER_LOST: Mark(glyphs.DEAD, Role.WARN),
    EventKind.CONTROLLER_FOUND_DOWN: Mark(glyphs.DEAD, Role.WARN, before=_UNSEEN),
    EventKind.CONTROLLER_BACK: Mark(glyphs.OK, Role.GOOD),
    EventKind.QUORUM_LOST: Mark(glyphs.DEAD, Role.RISK),
    EventKind.QUORUM_BACK: Mark(glyphs.OK, Role.GOOD),
}
_PARTITION_MARKS = {
    EventKind.WATERMARK_FROZEN: Mark(glyphs.FROZEN, Role.RISK),
    EventKind.WATERMARK_MOVES: Mark(glyphs.OK, Role.GOOD),
    EventKind.LEADER_LOST: Mark(glyphs.DEAD, Role.RISK),
    EventKind.LEADERLESS_FOUND: Mark(glyphs.DEAD, Role.RISK, before=_UNSEEN),
    EventKind.LEADER_MOVED: Mark(glyphs.ARROW, Role.TEXT),
    EventKind.LEADER_RETURNED: Mark(glyphs.OK, Role.GOOD),
    EventKind.RECORDS_LOST: Mark("!", Role.RISK),
    EventKind.UNCLEAN_ELECTION: Mark("!", Role.RISK),
    EventKind.ISR_GREW: Mark(glyphs.FOLLOWER, Role.GOOD),
    EventKind.ISR_SHRANK: Mark(glyphs.OUT_OF_SYNC, Role.WARN),
}
_WEIGHT = {Role.RISK: 3, Role.WARN: 2, Role.GOOD: 1}


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane: its name, and what happened there, oldest first."""

    name: str
    marks: tuple[tuple[int, Mark], ...]
    now: Mark | None = None
    """How the lane ends, if nothing happened there that says so."""


class Chosen(NamedTuple):
    """The lanes for which there is room, and the other brokers that are in trouble, or to which something
    happened."""

    shown: Sequence[Lane]
    in_trouble: Sequence[int] = ()
    eventful: Sequence[int] = ()


def lanes(view: View, rows: int) -> Chosen:
    """Return at most `rows` lanes: the controllers, the partitions, then the brokers: those in trouble first,
    then the eventful ones."""
    cluster_lanes = [
        Lane("controllers", _controller_marks(view), _controllers_now(view)),
        Lane("partitions", _partition_marks(view), _partitions_now(view)),
    ]
    table = view.snapshot.brokers
    by_broker: dict[int, list[tuple[int, Mark]]] = {}
    for event in view.events:
        if mark := _BROKER_MARKS.get(event.kind):
            if event.kind is EventKind.BROKER_FOUND_DOWN and event.severity is not Severity.RISK:
                mark = replace(mark, role=Role.WARN, goes_on=glyphs.OUT_OF_SYNC)
            for broker in event.brokers:
                by_broker.setdefault(broker, []).append((event.at_ms, mark))
    ids = table.id.tolist()
    room = rows - len(cluster_lanes)
    troubled = {id for id in ids if _troubled(view, id)}
    ranked = sorted(ids, key=lambda id: (id not in troubled, id not in by_broker, id))
    chosen, left = ranked[: max(0, room)], ranked[max(0, room) :]
    brokers = [Lane(f"broker {id}", tuple(by_broker.get(id, ())), _state(view, id)) for id in sorted(chosen)]
    return Chosen(
        [*brokers, *cluster_lanes][-rows:] if rows else [],
        [id for id in left if id in troubled],
        [id for id in left if id in by_broker and id not in troubled],
    )


def left_out(which: Chosen) -> Line:
    """Return which brokers in trouble have no lane, and how many others to which something happened."""
    named = ", ".join(map(str, which.in_trouble[:MOST_NAMED]))
    named += f" and {len(which.in_trouble) - MOST_NAMED:,} more" if len(which.in_trouble) > MOST_NAMED else ""
    noun = "broker" if len(which.in_trouble) == 1 else "brokers"
    parts = [Span(f"{glyphs.DEAD} no room for {noun} {named}", Role.WARN)] if named else []
    if which.eventful:
        parts += [Span("  " if named else ""), Span(f"{len(which.eventful):,} others had events", Role.DIM)]
    return tuple(parts)


def _troubled(view: View, id: int) -> bool:
    return _state(view, id) is not None


def _state(view: View, id: int) -> Mark | None:
    """Return how a broker's lane looks if no event says so."""
    table = view.snapshot.brokers
    rows = np.flatnonzero(table.id == id)
    match table.state[rows[0]] if len(rows) else BrokerState.UP:
        case BrokerState.SILENT:
            return _BROKER_MARKS[EventKind.BROKER_SILENT]
        case BrokerState.FENCED | BrokerState.GONE:
            return _BROKER_MARKS[EventKind.BROKER_FENCED]
        case _:
            return None


def _controller_marks(view: View) -> tuple[tuple[int, Mark], ...]:
    """Return the marks of the controllers. The lane shows how long one of them was down, and the quorum.

    Which are down is known at the end, so it is followed back from there: an earlier loss may be forgotten.
    """
    known = [event for event in view.events if event.kind in _CONTROLLER_MARKS]
    down, is_lost = lost_controllers(view), _is_quorum_lost(view)
    marks: list[tuple[int, Mark]] = []
    for event in reversed(known):
        mark = _CONTROLLER_MARKS[event.kind]
        goes_on, role = _controllers_look(down, is_lost)
        match event.kind:
            case EventKind.CONTROLLER_LOST | EventKind.CONTROLLER_FOUND_DOWN:
                down = down - set(event.controllers)
            case EventKind.CONTROLLER_BACK:
                down = down | set(event.controllers)
            case EventKind.QUORUM_LOST:
                is_lost = False
            case EventKind.QUORUM_BACK:
                is_lost = True
        before = mark.before or _controllers_look(down, is_lost)[0]
        marks.append((event.at_ms, replace(mark, goes_on=goes_on, goes_on_role=role, before=before)))
    return tuple(reversed(marks))


def _controllers_now(view: View) -> Mark | None:
    """Return how the lane of the controllers looks if no event is known."""
    down, is_lost = lost_controllers(view), _is_quorum_lost(view)
    sign, role = _controllers_look(down, is_lost)
    return Mark(sign, role, sign) if down or is_lost else None


def _controllers_look(down: frozenset[int], is_lost: bool) -> tuple[str, Role]:
    if is_lost:
        return glyphs.DEAD, Role.RISK
    return (glyphs.DEAD, Role.WARN) if down else (_CALM, Role.RULE)


def _is_quorum_lost(view: View) -> bool:
    kinds = CONTROLLER_FINDINGS - {FindingKind.CONTROLLERS_LOST}
    return any(finding.kind in kinds for finding in view.headline.findings)


def _partition_marks(view: View) -> tuple[tuple[int, Mark], ...]:
    """Return the marks of the partitions. The lane shows how long some had no leader, or a frozen watermark.

    How many have none is known at the end, so it is counted back from there: kview may not have seen when
    the first of them lost its leader.
    """
    table, figures = view.snapshot.partitions, view.partitions
    known = [event for event in view.events if event.kind in _PARTITION_MARKS]
    leaderless = [int((table.leader == NO_BROKER).sum())]
    for event in reversed(known):
        leaderless.append(max(0, leaderless[-1] - _LEADERLESS.get(event.kind, 0) * _count(event)))
    frozen, frozen_now = 0, bool((figures.frozen_since_ms != UNKNOWN).any())
    marks = []
    for event, none in zip(known, reversed(leaderless[:-1]), strict=True):
        frozen = max(0, frozen + _FROZEN.get(event.kind, 0) * _count(event))
        is_last = event is known[-1]
        if none:
            goes_on, role = glyphs.DEAD, Role.RISK
        elif frozen_now if is_last else frozen:
            goes_on, role = glyphs.FROZEN, Role.RISK
        else:
            goes_on, role = _CALM, Role.RULE
        mark = _PARTITION_MARKS[event.kind]
        if none and event.kind is EventKind.WATERMARK_FROZEN:
            mark = _PARTITION_MARKS[EventKind.LEADER_LOST]  # the worse of the two goes on
        marks.append((event.at_ms, replace(mark, goes_on=goes_on, goes_on_role=role)))
    return tuple(marks)


def _partitions_now(view: View) -> Mark | None:
    """Return how the lane of the partitions looks if no event is known."""
    if (view.snapshot.partitions.leader == NO_BROKER).any():
        return Mark(glyphs.DEAD, Role.RISK, glyphs.DEAD)
    if (view.partitions.frozen_since_ms != UNKNOWN).any():
        return Mark(glyphs.FROZEN, Role.RISK, glyphs.FROZEN)
    return None


_LEADERLESS = {
    EventKind.LEADER_LOST: 1,
    EventKind.LEADERLESS_FOUND: 1,
    EventKind.LEADER_RETURNED: -1,
}
"""How the events change the number of partitions without a leader."""

_FROZEN = {EventKind.WATERMARK_FROZEN: 1, EventKind.WATERMARK_MOVES: -1, EventKind.LEADER_LOST: -1}
"""How they change the number of frozen watermarks. A partition without a leader counts as that alone."""


def _count(event: Event) -> int:
    return event.partition_count + event.internal_count


def span_ms(view: View, now_ms: int) -> int:
    """Return how far back the timeline goes."""
    oldest = min((event.at_ms for event in view.events), default=now_ms)
    return next((span for span in SPANS_MS if now_ms - oldest < span), SPANS_MS[-1])


def lane_lines(
    view: View, now_ms: int, zone: tzinfo | None, cells: int, rows: int
) -> tuple[Title, list[Line]]:
    """Return the timeline: the lanes, and a line with its times. Incidents are marked on that line."""
    title = Title(line(Span("TIMELINE", Role.HEAD)))
    if rows < 2:
        return title, []
    span, chosen = span_ms(view, now_ms), lanes(view, rows - 1)
    shown = chosen.shown
    label = max((len(lane.name) for lane in shown), default=0) + 2
    room = max(1, cells - label - 3)
    lines = []
    for lane in shown:
        name = Span(f"  {lane.name:<{label}}", Role.DIM if not lane.marks and lane.now is None else Role.TEXT)
        lines.append((name, *_drawn(lane, now_ms, span, room)))
    lines.append((Span(" " * (label + 2), Role.DIM), *_axis(view, now_ms, span, zone, room)))
    return title._replace(scope=left_out(chosen)), lines


def _cell(at_ms: int, now_ms: int, span: int, room: int) -> int:
    return min(room - 1, max(0, room - 1 - round((now_ms - at_ms) / span * (room - 1))))


def _drawn(lane: Lane, now_ms: int, span: int, room: int) -> Line:
    """Return a lane's cells. Of several marks in one cell, the worst one is drawn."""
    signs, roles = [_CALM] * room, [Role.RULE] * room
    if not lane.marks and lane.now is not None:
        signs, roles = [lane.now.goes_on] * room, [lane.now.role] * room
    elif lane.marks and (before := lane.marks[0][1].before) not in ("", _CALM):
        signs, roles = [before] * room, [Role.WARN] * room
    fixed: dict[int, Mark] = {}
    for at_ms, mark in lane.marks:
        at = _cell(at_ms, now_ms, span, room)
        if at not in fixed or _WEIGHT.get(mark.role, 0) >= _WEIGHT.get(fixed[at].role, 0):
            fixed[at] = mark
        if mark.goes_on:
            role = mark.goes_on_role or (Role.RULE if mark.goes_on == _CALM else mark.role)
            signs[at:], roles[at:] = [mark.goes_on] * (room - at), [role] * (room - at)
    for at, mark in fixed.items():
        signs[at], roles[at] = mark.sign, mark.role
    return runs(signs, roles)


def _axis(view: View, now_ms: int, span: int, zone: tzinfo | None, room: int) -> Line:
    """Return the times below the lanes: how long ago the left edge is, and the times of incidents."""
    text = [" "] * room
    roles = [Role.DIM] * room

    def put(at: int, word: str, role: Role = Role.DIM) -> None:
        at = max(0, min(at, room - len(word)))
        if all(sign == " " for sign in text[max(0, at - 1) : at + len(word) + 1]):
            text[at : at + len(word)] = list(word)
            roles[at : at + len(word)] = [role] * len(word)

    end = "now" if view.moment.live else words.clock(now_ms, zone, tenths=False)
    put(room, end)
    put(0, f"{glyphs.MINUS}{words.duration(span, tenths=False)}")
    for incident in reversed(view.incidents):
        if now_ms - incident.began_ms < span:
            at = _cell(incident.began_ms, now_ms, span, room)
            put(at, f"{glyphs.UP} {words.clock(incident.began_ms, zone, tenths=False)}", Role.HEAD)
    return runs(text, roles)
