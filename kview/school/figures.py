"""Figures of a view by name, as lessons write them: `partition invoice-3 leader`, `broker 4 state`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from kview.model.incidents import Incident, PhaseKind
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.school.group_figures import of_group, of_member, of_position
from kview.school.moment import Asked, Moment, Value, whole
from kview.school.partition_figures import of_partition, of_topic


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
    return counters["expired" if figure.name == "lost" else figure.name]


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
         "log-start",
         "uncommitted", "status", "frozen", "rack-safe", "rate", "min-isr", "gone", "end", "behind"),
        of_partition,
    ),
    "topic": Subject(
        ("TOPIC",),
        ("partitions", "replication", "min-isr", "no-leader", "silent-leader", "frozen", "under-min-isr",
         "under-replicated", "not-preferred", "rack-safe", "rate", "gone", "gone-committed"),
        of_topic,
    ),
    "group": Subject(
        ("GROUP",),
        ("verdict", "reason", "state", "members", "active-members", "idle-members", "coordinator", "lag",
         "behind", "lost", "rate", "read", "reread", "skipped"),
        of_group,
    ),
    "position": Subject(
        ("GROUP", "TOPIC-NUMBER"), ("committed", "lag", "owner", "verdict", "lost"), of_position
    ),
    "member": Subject(("CLIENT",), ("assigned",), of_member),
    "incident": Subject(
        (),
        (*_PHASES, "kind", "open", "brokers", "waited", "groups", "gone", "partitions", "moved",
         "leaderless"),
        _incident,
    ),
    "producer": Subject(
        ("NAME",), ("created", "acknowledged", "lost", "waiting", "blocked"), _producer
    ),
}  # fmt: skip
"""What lessons may name. A producer's figures, what a group read twice, and the records of a topic that an
earlier leader had and the present one has not, are counted by the simulated cluster itself; all others are of
the view."""

_DURATIONS = frozenset({
    *(("incident", name) for name in (*_PHASES, "waited")), ("group", "behind"), ("broker", "latency"),
})  # fmt: skip
"""Subject and name of the figures in milliseconds."""
