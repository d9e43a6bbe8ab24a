"""Figures of a view by name, as lessons write them: `partition invoice-3 leader`, `broker 4 state`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from kview.derive.lookup import partition_row, topic_row
from kview.derive.view import View
from kview.model.incidents import Incident, PhaseKind
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.school.moment import Asked, Moment, Value, split, whole


class NotAFigure(Exception):
    """Raised for words that do not name a figure, with what is wrong and what would be right."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure's name. `of` are the names after the subject, and `at` is a broker, or −1."""

    subject: str
    of: tuple[str, ...]
    name: str
    at: int = -1

    def __str__(self) -> str:
        at = f"@{self.at}" if self.at >= 0 else ""
        return " ".join((self.subject, *self.of, self.name + at))

    @property
    def is_duration(self) -> bool:
        """Whether its value is in milliseconds."""
        return (self.subject, self.name) in _DURATIONS

    def value(self, moment: Moment) -> Value:
        """Return the figure's value at a moment."""
        value: Value = SUBJECTS[self.subject].value(moment, Asked(self.of, self.name, self.at))
        if isinstance(value, (np.integer, int)) and not isinstance(value, bool):
            return None if int(value) in (UNKNOWN, UNKNOWN_ID) else int(value)
        return value


def parse_subject(words: list[str]) -> tuple[str, tuple[str, ...], list[str]]:
    """Return a subject, the names after it, and the other words. Raises NotAFigure."""
    subject = words[0] if words else ""
    if subject not in SUBJECTS:
        raise _unknown("subject", subject, list(SUBJECTS))
    names = SUBJECTS[subject].names
    if len(words) < 1 + len(names):
        raise NotAFigure(f"{' '.join(words)!r} is not complete", f"write {' '.join((subject, *names))}")
    return subject, tuple(words[1 : 1 + len(names)]), words[1 + len(names) :]


def parse(words: list[str]) -> tuple[Figure, list[str]]:
    """Return the figure that `words` begin with, and the other words. Raises NotAFigure."""
    subject, of, rest = parse_subject(words)
    name, _, at = rest[0].partition("@") if rest else ("", "", "")
    known = SUBJECTS[subject].figures
    if name not in known:
        raise _unknown(f"figure of a {subject}", name, list(known))
    if at and whole(at) < 0:
        raise NotAFigure(f"{at!r} is not a broker", "write a number, such as end@4")
    return Figure(subject, of, name, whole(at)), rest[1:]


def _unknown(what: str, name: str, known: list[str]) -> NotAFigure:
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(sorted(known))}"
    return NotAFigure(f"there is no {what} named {name!r}", hint)


# -- how they are read


@dataclass(frozen=True, slots=True)
class Subject:
    """What figures are about: the names that follow it, the figures' names, and how to read one."""

    names: tuple[str, ...]
    figures: tuple[str, ...]
    value: Callable[[Moment, Asked], Any]


def _cluster(moment: Moment, figure: Asked) -> Any:
    view = moment.view
    head, seen = view.headline, view.snapshot.observation
    states = view.snapshot.brokers.state
    return {
        "severity": head.severity.value,
        "headline": head.findings[0].kind.value if head.findings else None,
        "findings": tuple(finding.kind.value for finding in head.findings),
        "events": tuple(event.kind.value for event in view.events),
        "controller": seen.controller_id,
        "controller-epoch": seen.controller_epoch,
        "brokers-up": int((states == BrokerState.UP).sum()),
        "brokers": len(states),
        "under-replicated": head.under_replicated,
        "no-leader": head.offline,
        "under-min-isr": head.under_min_isr,
        "at-min-isr": head.at_min_isr,
        "incidents": len(view.incidents),
        "open-incidents": sum(incident.is_open for incident in view.incidents),
    }[figure.name]


def _broker(moment: Moment, figure: Asked) -> Any:
    table, figures = moment.view.snapshot.brokers, moment.view.brokers
    rows = np.flatnonzero(table.id == whole(figure.of[0]))
    if not len(rows):
        return None
    row = int(rows[0])
    match figure.name:
        case "state":
            return str(table.state[row])
        case "rack":
            return str(table.rack[row])
        case "error":
            return str(table.error[row])
        case "leads":
            return figures.leads[row]
        case "replicas":
            return figures.replicas[row]
        case "slow":
            return bool(figures.slow_since_ms[row] != UNKNOWN)
        case "answers":
            return bool(table.answers[row])
        case _:
            return int(table.latency_us[row]) // 1000 if table.latency_us[row] != UNKNOWN else None


def _ids(ids: Any) -> tuple[int, ...]:
    return tuple(sorted(id for id in ids.tolist() if id != NO_BROKER))


def _partition(moment: Moment, figure: Asked) -> Any:
    """Return a partition's figure, None if there is no such partition."""
    view = moment.view
    row = partition_row(view, *split(figure.of[0]))
    if row is None:
        return None
    table, figures = view.snapshot.partitions, view.partitions
    place = np.flatnonzero(table.replicas[row] == figure.at)
    match figure.name:
        case "end" | "behind":
            if not len(place):
                return None
            return (figures.replica_end if figure.name == "end" else figures.replica_lag)[row, place[0]]
        case "isr" | "elr":
            return _ids(getattr(table, figure.name)[row])
        case "replicas":
            return tuple(id for id in table.replicas[row].tolist() if id != NO_BROKER)
        case "racks":
            racks = dict(zip(view.snapshot.brokers.id.tolist(), view.snapshot.brokers.rack, strict=True))
            return len({racks.get(id) for id in table.replicas[row].tolist() if id != NO_BROKER})
        case "isr-size":
            return figures.isr_count[row]
        case "frozen":
            return bool(figures.frozen_since_ms[row] != UNKNOWN)
        case "status":
            return str(figures.status[row])
        case "rack-safe":
            return str(figures.rack_safe[row])
        case "gone":
            return _gone(moment.view, figure.of[0])
        case "uncommitted":
            return figures.uncommitted[row]
        case "held-back":
            stable, watermark = table.last_stable[row], table.high_watermark[row]
            return None if UNKNOWN in (stable, watermark) else int(watermark - stable)
        case "rate":
            rate = figures.in_rate[row]
            return round(float(rate)) if np.isfinite(rate) else None
        case "watermark":
            return table.high_watermark[row]
        case name:
            columns: Mapping[str, Any] = {
                "epoch": table.leader_epoch,
                "leader": table.leader,
                "log-end": table.log_end,
                "last-stable": table.last_stable,
                "log-start": table.log_start,
                "min-isr": table.min_isr,
            }
            return columns[name][row]


def _gone(view: View, name: str) -> int | None:
    """Return how many records of a partition the last incident that hit it took, a lower bound."""
    for incident in reversed(view.incidents):
        for hit in incident.hit:
            if f"{hit.topic}-{hit.partition}" == name:
                return hit.gone
    return None


def _topic(moment: Moment, figure: Asked) -> Any:
    """Return a topic's figure, None if there is no such topic."""
    if figure.name in ("gone", "gone-committed"):
        counted = moment.counters["topics"].get(figure.of[0], {})
        return counted.get(figure.name.replace("-", "_"))
    figures = moment.view.topics
    row = topic_row(figures, figure.of[0])
    if row is None:
        return None
    if figure.name == "rate":
        rate = figures.in_rate[row]
        return round(float(rate)) if np.isfinite(rate) else None
    if figure.name == "rack-safe":
        return str(figures.rack_safe[row])
    return getattr(figures, figure.name.replace("-", "_"))[row]


def _group(moment: Moment, figure: Asked) -> Any:
    """Return a group's figure, None if there is no such group."""
    view = moment.view
    table, figures = view.snapshot.groups, view.groups
    rows = np.flatnonzero(table.group == figure.of[0])
    if figure.name in ("read", "reread", "skipped", "aborted"):
        return moment.counters["groups"].get(figure.of[0], {}).get(figure.name)
    if not len(rows):
        return None
    row = int(rows[0])
    match figure.name:
        case "verdict" | "reason":
            return str(getattr(figures, figure.name)[row])
        case "state":
            return str(table.state[row])
        case "members" | "coordinator":
            return getattr(table, figure.name)[row]
        case "active-members":
            return figures.members_active[row]
        case "idle-members":
            return max(0, int(table.members[row]) - int(figures.members_active[row]))
        case "behind":
            return figures.behind_ms[row]
        case "rate":
            rate = figures.read_rate[row]
            return round(float(rate)) if np.isfinite(rate) else None
        case name:
            return getattr(figures, name)[row]


def _position(moment: Moment, figure: Asked) -> Any:
    """Return the figure of a group's partition, None if the group does not read it."""
    view = moment.view
    table, figures = view.snapshot.offsets, view.offsets
    topic, number = split(figure.of[1])
    rows = np.flatnonzero(
        (table.group == figure.of[0]) & (table.topic == topic) & (table.partition == number)
    )
    if not len(rows):
        return None
    row = int(rows[0])
    match figure.name:
        case "committed":
            return table.committed[row]
        case "owner":
            return _client(str(table.owner[row]), view)
        case "verdict":
            return str(figures.verdict[row])
        case name:
            return getattr(figures, name)[row]


def _client(member: str, view: View) -> str:
    """Return the client id of a member, which is shorter than its member id."""
    members = view.snapshot.members
    rows = np.flatnonzero(members.member_id == member)
    return str(members.client_id[rows[0]]) if len(rows) else ""


def _member(moment: Moment, figure: Asked) -> Any:
    """Return a member's figure, None if no member has that client id."""
    if figure.name == "read":
        return moment.counters["members"].get(figure.of[0], {}).get(figure.name)
    members = moment.view.snapshot.members
    rows = np.flatnonzero(members.client_id == figure.of[0])
    return members.assigned[rows[0]] if len(rows) else None


_PHASES = {
    "silent": PhaseKind.SILENT,
    "frozen": PhaseKind.FROZEN,
    "fenced": PhaseKind.FENCED,
    "elected": PhaseKind.ELECTED,
    "moves": PhaseKind.MOVES,
    "back": PhaseKind.BACK,
    "isr-full": PhaseKind.ISR_FULL,
    "stopped": PhaseKind.STOPPED,
    "quorum-back": PhaseKind.QUORUM_BACK,
}


def _incident(moment: Moment, figure: Asked) -> Any:
    """Read the incident that began last. A phase is the milliseconds from its beginning."""
    if not moment.view.incidents:
        return None
    incident: Incident = moment.view.incidents[-1]
    if figure.name in _PHASES:
        phase = incident.phase(_PHASES[figure.name])
        return None if phase is None else phase.at_ms - incident.began_ms
    match figure.name:
        case "kind":
            return incident.kind.value
        case "open":
            return incident.is_open
        case "brokers":
            return incident.brokers
        case "waited":
            return incident.waited_ms
        case "groups":
            return incident.groups
        case name:
            return getattr(incident, name)


def _producer(moment: Moment, figure: Asked) -> Any:
    counters = moment.counters["producers"].get(figure.of[0])
    if counters is None:
        return None
    if figure.name == "waiting":
        return counters["created"] - counters["acknowledged"] - counters["expired"]
    if figure.name == "fenced":
        return bool(counters.get("fenced"))
    names = {"lost": "expired", "commits": "transactions_committed", "aborts": "transactions_aborted"}
    return counters.get(names.get(figure.name, figure.name))


SUBJECTS: Mapping[str, Subject] = {
    "cluster": Subject(
        (),
        ("severity", "headline", "findings", "events", "controller", "controller-epoch", "brokers-up",
         "brokers",
         "under-replicated", "no-leader", "under-min-isr", "at-min-isr", "incidents", "open-incidents"),
        _cluster,
    ),
    "broker": Subject(
        ("ID",), ("state", "rack", "error", "leads", "replicas", "slow", "answers", "latency"), _broker
    ),
    "partition": Subject(
        ("TOPIC-NUMBER",),
        ("leader", "epoch", "isr", "isr-size", "elr", "replicas", "racks", "watermark", "log-end",
         "log-start", "last-stable", "held-back",
         "uncommitted", "status", "frozen", "rack-safe", "rate", "min-isr", "gone", "end", "behind"),
        _partition,
    ),
    "topic": Subject(
        ("TOPIC",),
        ("partitions", "replication", "min-isr", "no-leader", "silent-leader", "frozen", "under-min-isr",
         "under-replicated", "not-preferred", "rack-safe", "rate", "gone", "gone-committed"),
        _topic,
    ),
    "group": Subject(
        ("GROUP",),
        ("verdict", "reason", "state", "members", "active-members", "idle-members", "coordinator", "lag",
         "behind", "lost", "rate", "read", "reread", "skipped", "aborted"),
        _group,
    ),
    "position": Subject(
        ("GROUP", "TOPIC-NUMBER"), ("committed", "lag", "owner", "verdict", "lost"), _position
    ),
    "member": Subject(("CLIENT",), ("assigned", "read"), _member),
    "incident": Subject(
        (),
        (*_PHASES, "kind", "open", "brokers", "waited", "groups", "gone", "partitions", "moved",
         "leaderless"),
        _incident,
    ),
    "producer": Subject(
        ("NAME",),
        ("created", "acknowledged", "lost", "waiting", "blocked", "commits", "aborts", "fenced"),
        _producer,
    ),
}  # fmt: skip
"""What lessons may name. The simulated cluster itself counts a producer's figures, what a member read, what a
group read twice or in vain, and the records of a topic that an earlier leader had and the present one lacks.
All others are of the view."""

_DURATIONS = frozenset({
    *(("incident", name) for name in (*_PHASES, "waited")), ("group", "behind"), ("broker", "latency"),
})  # fmt: skip
"""Subject and name of the figures in milliseconds."""
