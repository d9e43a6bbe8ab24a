"""Events: what changed between two observations, as data."""

from dataclasses import dataclass
from enum import StrEnum

from kview.model.units import NO_BROKER


class EventKind(StrEnum):
    """What can happen to a cluster, as seen from outside."""

    BROKER_SILENT = "broker silent"
    BROKER_FENCED = "broker fenced"
    BROKER_GONE = "broker gone"
    BROKER_BACK = "broker back"
    LEADER = "leader"
    ISR_SHRANK = "ISR shrank"
    ISR_GREW = "ISR grew"
    WATERMARK_FROZEN = "watermark frozen"
    WATERMARK_MOVES = "watermark moves"
    TRUNCATED = "truncated"
    REBALANCE = "rebalance"
    GROUP_STATE = "group state"
    CONTROLLER = "controller"
    TOPIC_CREATED = "topic created"
    TOPIC_DELETED = "topic deleted"
    PARTITIONS_ADDED = "partitions added"


class Severity(StrEnum):
    """How urgent an event, a finding or a verdict is for the person on call.

    RISK: data or availability is at risk now. WARN: one step away from that. GOOD: something recovered. CALM:
    no concern.
    """

    RISK = "risk"
    WARN = "warn"
    GOOD = "good"
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that changed, seen at `at_ms` (epoch ms of the observation, or of the first sign of it).

    `text` is one short sentence for a person. `partitions` names those it concerns, as (topic, partition).
    """

    at_ms: int
    kind: EventKind
    severity: Severity
    text: str
    broker: int = NO_BROKER
    group: str = ""
    topic: str = ""
    partitions: tuple[tuple[str, int], ...] = ()
