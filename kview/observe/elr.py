"""DescribeTopicPartitions (75): eligible leader replicas, which only exist if |ISR| < min.insync.replicas."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.model.snapshot import IdMatrix, Ids
from kview.model.units import NO_BROKER, UNKNOWN_ID
from kview.observe.layout import Layout, matrix

PARTITIONS_A_PAGE = 2_000
"""Kafka's own limit for one answer."""
MOST_PAGES = 10

Brokers = tuple[int, ...]
Elr = Mapping[tuple[str, int], tuple[Brokers, Brokers]]
"""(topic, partition) → its eligible leader replicas, and the ISR that the same answer has. They hold for this
ISR alone: a replica that leaves the ISR may become eligible."""


def request(topics: Sequence[str], cursor: Any = None) -> Any:
    """Build the request for `topics`, sorted by name, starting at `cursor`."""
    # A healthy cluster is not asked, and this module has all messages about topics.
    from kafka.protocol.admin.topics import DescribeTopicPartitionsRequest as Wanted

    names = [Wanted.TopicRequest(name=name) for name in topics]
    if cursor is not None:
        cursor = Wanted.Cursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index)
    return Wanted(topics=names, response_partition_limit=PARTITIONS_A_PAGE, cursor=cursor)


def answered(answer: Any) -> dict[tuple[str, int], tuple[Brokers, Brokers]]:
    """Return the eligible leader replicas of the partitions in an answer, and their ISRs."""
    return {
        (t.name, p.partition_index): (tuple(p.eligible_leader_replicas or ()), tuple(p.isr_nodes))
        for t in answer.topics
        if not t.error_code
        for p in t.partitions
    }


def wanting(layout: Layout, min_isr: Ids) -> NDArray[np.bool_]:
    """Return a mask of the rows with fewer in-sync replicas than min.insync.replicas."""
    return np.asarray((layout.isr != NO_BROKER).sum(axis=1) < min_isr, np.bool_)


def column(layout: Layout, rows: NDArray[np.bool_], known: Elr) -> IdMatrix:
    """Return eligible leader replicas by partition row: as answered for `rows`, empty for other rows.

    UNKNOWN_ID stands alone for what has not been answered since the ISR changed.
    """
    if not rows.any():
        return np.empty((len(layout), 0), np.int32)
    lists: list[tuple[int, ...]] = [()] * len(layout)
    for row in np.flatnonzero(rows).tolist():
        eligible, isr = known.get((layout.topic[row], int(layout.partition[row])), ((), None))
        now = layout.isr[row]
        lists[row] = eligible if isr == tuple(now[now != NO_BROKER].tolist()) else (UNKNOWN_ID,)
    return matrix(lists)
