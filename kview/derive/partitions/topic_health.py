"""The worst state of each topic's partitions, and which partitions have which state."""

from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.lookup import replication
from kview.derive.statuses import STATUSES
from kview.derive.view import PartitionFigures, PartitionStatus, View
from kview.model.snapshot import Longs, Strings
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
    PartitionStatus.REASSIGNING,
    PartitionStatus.NOT_PREFERRED,
    PartitionStatus.OK,
)
TROUBLED = _WORST_FIRST[: _WORST_FIRST.index(PartitionStatus.REASSIGNING)]
"""The statuses that a topic's health counts. Each partition counts once, with its worst status."""
_ORDER = {status: place for place, status in enumerate(_WORST_FIRST)}
_PLACES = np.array([_ORDER[status] for status in STATUSES], np.int8)
_STATUSES = np.array([*_WORST_FIRST, None], object)[:-1]


class TopicHealth(Struct, frozen=True):
    """The worst status of each topic's partitions. The arrays have the rows of `View.topics`."""

    status: Strings
    count: Longs
    """The number of partitions with that status."""


def _places(figures: PartitionFigures) -> NDArray[np.int8]:
    """Return the place of each partition's status in the order of how much it matters."""
    found: NDArray[np.int8] = _PLACES[figures.rank]
    return found


def topic_health(view: View) -> TopicHealth:
    """Return the worst status of each topic, and how many of its partitions have it."""
    topics = view.topics
    if not len(topics.topic):
        return TopicHealth(np.empty(0, object), np.empty(0, np.int64))
    places = _places(view.partitions)
    worst = np.minimum.reduceat(places, topics.first_row)
    is_worst = places == np.repeat(worst, topics.partitions)
    count = np.add.reduceat(is_worst.astype(np.int64), topics.first_row)
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


def troubles(view: View) -> dict[Trouble, NDArray[np.bool_]]:
    """Return which partitions have which trouble: a flag for each row of `snapshot.partitions`.

    The ISR is compared as kafka-topics.sh does it (--under-min-isr-partitions and its like), so that a
    partition with a silent leader may also be under-replicated. Silent and frozen partitions are counted by
    their worst state, as in the headline.
    """
    table, figures = view.snapshot.partitions, view.partitions
    replicas, in_sync = replication(table), figures.isr_count
    adding = figures.being_added.sum(1)
    known, under = table.min_isr != UNKNOWN_ID, in_sync < replicas - adding
    by_status = {trouble: figures.having(status) for trouble, status in _BY_STATUS.items()}
    return by_status | {
        Trouble.ALL: np.ones(len(table), np.bool_),
        Trouble.NO_LEADER: np.equal(table.leader, NO_BROKER),
        Trouble.UNDER_MIN_ISR: known & (in_sync < np.minimum(table.min_isr, replicas)),
        Trouble.AT_MIN_ISR: known & under & (in_sync == table.min_isr),
        Trouble.UNDER_REPLICATED: np.asarray(under, np.bool_),
        Trouble.NOT_PREFERRED: ~figures.preferred & (table.leader >= 0),
    }
