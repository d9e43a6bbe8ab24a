"""Throttles on the copying of replicas: which one slows a move, and which ones were left behind."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from kview.derive.partitions.retention import settings_of
from kview.derive.view import PartitionFigures
from kview.model.events import Severity
from kview.model.failures import Part
from kview.model.findings import MOST_TOPICS, Finding, FindingKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN

NO_LIMIT = 2**63 - 1
"""Kafka's own value for a rate that limits nothing."""

QUIET_MS = 60_000
"""A throttle counts as left behind if nothing has been reassigned for this long."""

SETTINGS_AGE_MS = 60_000
"""Settings are read once a minute. After a move, a reading that is younger than its end is waited for."""

LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


class Quiet(Struct, frozen=True):
    """From when on a throttle counts as left behind: `from_ms`, UNKNOWN while nobody tells what is moved."""

    from_ms: int = UNKNOWN

    def next(self, snapshot: Snapshot) -> "Quiet":
        """Return the same as of the next observation."""
        seen = snapshot.observation
        if any(failure.part == Part.REASSIGNMENTS for failure in seen.failures):
            return Quiet()
        if len(snapshot.reassignments):
            return Quiet(seen.ended_ms + QUIET_MS + SETTINGS_AGE_MS)
        if self.from_ms == UNKNOWN and Part.REASSIGNMENTS in seen.asked:
            return Quiet(seen.ended_ms + QUIET_MS)
        return self

    def is_over(self, now_ms: int) -> bool:
        """Return whether nothing has been moved for long enough."""
        return self.from_ms != UNKNOWN and now_ms >= self.from_ms


def throttle_of(snapshot: Snapshot, figures: PartitionFigures, row: int) -> int:
    """Return the lowest rate in bytes per second that limits a broker in the move of a partition.

    NO_LIMIT if nothing limits it, UNKNOWN if that is not known. A broker shares its rate among all replicas
    that it copies under the throttle.
    """
    table = snapshot.partitions
    topics = settings_of(snapshot.topic_configs, str(table.topic[row]))
    leader = int(table.leader[row])
    waiting = table.replicas[row][figures.being_added[row] & ~figures.in_isr[row]].tolist()
    if not waiting:
        return NO_LIMIT
    limits = []
    for role, broker in ((LEADER, leader), *((FOLLOWER, broker) for broker in waiting)):
        replicas = topics.get(f"{role}.replicas")
        if replicas is None:
            limits.append(UNKNOWN)
        elif replicas == "*" or f"{int(table.partition[row])}:{broker}" in replicas.split(","):
            limits.append(_rate(snapshot, broker, f"{role}.rate"))
    known = [limit for limit in limits if limit not in (UNKNOWN, NO_LIMIT)]
    return min(known, default=UNKNOWN if UNKNOWN in limits else NO_LIMIT)


def _rate(snapshot: Snapshot, broker: int, name: str) -> int:
    table = snapshot.broker_configs
    rows = np.flatnonzero((table.broker == broker) & (table.name == name))
    return _number(str(table.value[rows[0]])) if len(rows) else UNKNOWN


def _number(value: str) -> int:
    """Return a rate. A broker without the setting has no limit."""
    return int(value) if value.isdigit() else NO_LIMIT


class Throttle(Struct, frozen=True):
    """A topic or a broker with a throttle, and the settings that set it."""

    topic: str
    """'' for a broker."""
    broker: int
    settings: tuple[str, ...]


def throttles(snapshot: Snapshot) -> Iterator[Throttle]:
    """Yield the topics with throttled replicas, then the brokers with a throttled rate."""
    topics, brokers = snapshot.topic_configs, snapshot.broker_configs
    by_topic: dict[str, list[str]] = {}
    names = (f"{FOLLOWER}.replicas", f"{LEADER}.replicas")
    for at in np.flatnonzero(np.isin(topics.name, names) & (topics.value != "")).tolist():
        by_topic.setdefault(str(topics.topic[at]), []).append(str(topics.name[at]))
    for topic, settings in by_topic.items():
        yield Throttle(topic, UNKNOWN, tuple(settings))
    by_broker: dict[int, list[str]] = {}
    for at in range(len(brokers)):
        if _number(str(brokers.value[at])) != NO_LIMIT:
            by_broker.setdefault(int(brokers.broker[at]), []).append(str(brokers.name[at]))
    for broker, settings in by_broker.items():
        yield Throttle("", broker, tuple(settings))


def throttle_findings(snapshot: Snapshot, quiet: Quiet) -> Iterator[Finding]:
    """Yield one finding with all throttles that were left behind: the next move would be slowed by them."""
    if not quiet.is_over(snapshot.observation.ended_ms):
        return
    if left := list(throttles(snapshot)):
        topics = tuple(each.topic for each in left if each.topic)
        yield Finding(
            FindingKind.THROTTLE_LEFT,
            Severity.CALM,
            brokers=tuple(each.broker for each in left if not each.topic),
            topics=topics[:MOST_TOPICS],
            count=len(topics),
        )
