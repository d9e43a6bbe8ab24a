"""Find the rows of a topic or of a partition in a view without going through all rows."""

import numpy as np
from numpy.typing import NDArray

from kview.derive.view import TopicFigures, View
from kview.model.snapshot import Longs, Partitions, Strings


def topic_row(topics: TopicFigures, topic: str) -> int | None:
    """Return the row of a topic in `TopicFigures`, or None if the topic is not listed."""
    at = int(np.searchsorted(topics.topic, _needle(topic))[0])
    return at if at < len(topics.topic) and topics.topic[at] == topic else None


def _needle(name: str) -> Strings:
    """Return a name as numpy looks it up: as an object, because its own strings end at a NUL character."""
    return np.array([name], object)


def topic_partitions(topics: TopicFigures, topic: str) -> Longs:
    """Return the rows of a topic's partitions, in order of their numbers. Empty if it is not listed."""
    at = topic_row(topics, topic)
    if at is None:
        return np.empty(0, np.int64)
    first = int(topics.first_row[at])
    return np.arange(first, first + int(topics.partitions[at]), dtype=np.int64)


def partition_row(view: View, topic: str, partition: int) -> int | None:
    """Return the row of a partition in `snapshot.partitions`, or None if there is no such partition."""
    rows = topic_partitions(view.topics, topic)
    if not len(rows):
        return None
    first, last = int(rows[0]), int(rows[-1]) + 1
    at = first + int(np.searchsorted(view.snapshot.partitions.partition[first:last], partition))
    return at if at < last and view.snapshot.partitions.partition[at] == partition else None


def index_of(rows: Longs, row: int) -> int | None:
    """Return where `row` is in `rows`, or None if it is not there."""
    at = np.flatnonzero(rows == row)
    return int(at[0]) if len(at) else None


def replica_rows(replicas_row: NDArray[np.int32], row: int) -> range:
    """Return the rows of a partition's replicas. `replicas_row` is `Replicas.row`, which is in order."""
    begin, end = np.searchsorted(replicas_row, [row, row + 1]).tolist()
    return range(begin, end)


def replication(table: Partitions) -> Longs:
    """Return the number of replicas of each partition."""
    number: Longs = (table.replicas >= 0).sum(1).astype(np.int64)
    return number
