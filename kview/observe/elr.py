"""DescribeTopicPartitions (75): eligible leader replicas, which only exist if |ISR| < min.insync.replicas."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from kafka.protocol.admin import DescribeTopicPartitionsRequest
from numpy.typing import NDArray

from kview.model.snapshot import IdMatrix, Ids
from kview.model.units import NO_BROKER
from kview.observe.layout import Layout, matrix

PARTITIONS_A_PAGE = 2_000
"""Kafka's own limit for one answer."""
MOST_PAGES = 10

Elr = Mapping[tuple[str, int], tuple[int, ...]]


def request(topics: Sequence[str], cursor: Any = None) -> Any:
    """Build the request for `topics`, sorted by name, starting at `cursor`."""
    names = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in topics]
    return DescribeTopicPartitionsRequest(
        topics=names, response_partition_limit=PARTITIONS_A_PAGE, cursor=_cursor(cursor)
    )


def _cursor(cursor: Any) -> Any:
    if cursor is None:
        return None
    return DescribeTopicPartitionsRequest.Cursor(
        topic_name=cursor.topic_name, partition_index=cursor.partition_index
    )


def answered(answer: Any) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return the eligible leader replicas of the partitions in an answer."""
    return {
        (t.name, p.partition_index): tuple(p.eligible_leader_replicas or ())
        for t in answer.topics
        if not t.error_code
        for p in t.partitions
    }


def wanting(layout: Layout, min_isr: Ids) -> NDArray[np.bool_]:
    """Return a mask of the rows with fewer in-sync replicas than min.insync.replicas."""
    return np.asarray((layout.isr != NO_BROKER).sum(axis=1) < min_isr, np.bool_)


def column(layout: Layout, rows: NDArray[np.bool_], known: Elr) -> IdMatrix:
    """Return eligible leader replicas by partition row: as answered for `rows`, empty for other rows."""
    if not rows.any():
        return np.empty((len(layout), 0), np.int32)
    lists: list[tuple[int, ...]] = [()] * len(layout)
    for row in np.flatnonzero(rows).tolist():
        lists[row] = known.get((layout.topic[row], int(layout.partition[row])), ())
    return matrix(lists)
