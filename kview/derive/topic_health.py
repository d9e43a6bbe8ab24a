"""The worst state of each topic's partitions, and which partitions have which state."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kview.derive.lookup import replication
from kview.derive.view import PartitionFigures, PartitionStatus, View
from kview.model.snapshot import Longs, Partitions, Strings
from kview.model.units import NO_BROKER, UNKNOWN_ID

_WORST_FIRST = (
    PartitionStatus.NO_LEADER,
    PartitionStatus.SILENT_LEADER,
    PartitionStatus.FROZEN,
    PartitionStatus.UNDER_MIN_ISR,
    PartitionStatus.AT_MIN_ISR,
    PartitionStatus.UNDER_REPLICATED,
    PartitionStatus.UNREAD,
    PartitionStatus.UNKNOWN,
    PartitionStatus.PENDING,
    PartitionStatus.REASSIGNING,
    PartitionStatus.NOT_PREFERRED,
    PartitionStatus.OK,
)
_ORDER = {status: rank for rank, status in enumerate(_WORST_FIRST)}
_STATUSES = np.array([*_WORST_FIRST, None], object)[:-1]


@dataclass(frozen=True, slots=True)
class TopicHealth:
    """The worst status of each topic's partitions. The arrays have the rows of `View.topics`."""

    status: Strings
    count: Longs
    """The number of partitions with that status."""


def topic_health(view: View) -> TopicHealth:
    """Return the worst status of each topic, and how many of its partitions have it."""
    topics = view.topics
    if not len(topics.topic):
        return TopicHealth(np.empty(0, object), np.empty(0, np.int64))
    ranks = np.fromiter(
        map(_ORDER.__getitem__, view.partitions.status.tolist()), np.int8, len(view.partitions.status)
    )
    worst = np.minimum.reduceat(ranks, topics.first_row)
    count = np.add.reduceat((ranks == np.repeat(worst, topics.partitions)).astype(np.int64), topics.first_row)
    return TopicHealth(_STATUSES[worst], count)


class Trouble(StrEnum):
    """What a list of partitions can be narrowed to. A partition may have several of these."""

    ALL = "all"
    SILENT_LEADER = "silent_leader"
    FROZEN = "frozen"
    NO_LEADER = "no_leader"
    UNDER_MIN_ISR = "under_min_isr"
    AT_MIN_ISR = "at_min_isr"
    UNDER_REPLICATED = "under_replicated"
    UNREAD = "unread"
    UNKNOWN = "unknown"
    REASSIGNING = "reassigning"
    NOT_PREFERRED = "not_preferred"


ALWAYS_COUNTED = frozenset(Trouble) - {Trouble.UNREAD, Trouble.UNKNOWN, Trouble.REASSIGNING}
"""The troubles whose number is worth knowing even if it is 0."""

_BY_STATUS = {
    Trouble.SILENT_LEADER: PartitionStatus.SILENT_LEADER,
    Trouble.FROZEN: PartitionStatus.FROZEN,
    Trouble.UNREAD: PartitionStatus.UNREAD,
    Trouble.UNKNOWN: PartitionStatus.UNKNOWN,
    Trouble.REASSIGNING: PartitionStatus.REASSIGNING,
}


def having(table: Partitions, figures: PartitionFigures, trouble: Trouble) -> NDArray[np.bool_]:
    """Return which partitions have that trouble: a flag for each row of `snapshot.partitions`.

    The ISR is compared as kafka-topics.sh does it (--under-min-isr-partitions and its like), so that a
    partition with a silent leader is also under-replicated. Silent and frozen partitions are counted by their
    worst state, as in the headline.
    """
    replicas = replication(table)
    known = table.min_isr != UNKNOWN_ID
    match trouble:
        case Trouble.ALL:
            return np.ones(len(table), np.bool_)
        case Trouble.NO_LEADER:
            return np.asarray(table.leader == NO_BROKER, np.bool_)
        case Trouble.UNDER_MIN_ISR:
            return np.asarray(known & (figures.isr_count < np.minimum(table.min_isr, replicas)), np.bool_)
        case Trouble.AT_MIN_ISR:
            at_min = (figures.isr_count == table.min_isr) & (figures.isr_count < replicas)
            return np.asarray(known & at_min, np.bool_)
        case Trouble.UNDER_REPLICATED:
            return np.asarray(figures.isr_count < replicas, np.bool_)
        case Trouble.NOT_PREFERRED:
            return np.asarray(~figures.preferred & (table.leader >= 0), np.bool_)
        case _:
            return np.asarray(figures.status == _BY_STATUS[trouble], np.bool_)


def counts(view: View, among: NDArray[np.bool_]) -> dict[Trouble, int]:
    """Return the number of partitions with each trouble. `among` flags the partitions that count."""
    table, figures = view.snapshot.partitions, view.partitions
    return {trouble: int((having(table, figures, trouble) & among).sum()) for trouble in Trouble}
