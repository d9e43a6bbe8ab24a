"""ListPartitionReassignments (46), which a broker forwards to the controller."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from kafka.protocol.admin.topics import ListPartitionReassignmentsRequest

from kview.model.failures import refused
from kview.model.snapshot import IdMatrix, Reassignments
from kview.observe.causes import Refused
from kview.observe.layout import Layout, matrix, old_rows, strings

TIMEOUT_MS = 5_000


def with_begun(known: Reassignments, then: Layout, now: Layout) -> Reassignments:
    """Return the reassignments with those that began between two metadata answers.

    Only a reassignment adds replicas to a partition. The list of them is asked for less often than metadata.
    """
    if then.replicas is now.replicas:
        return known
    rows = list(zip(known.topic, known.partition.tolist(), known.adding, known.removing, strict=True))
    keys = {(topic, partition) for topic, partition, _, _ in rows}
    was = old_rows(now, then)
    for row in np.flatnonzero(was >= 0).tolist():
        before, after = then.replicas[was[row]].tolist(), now.replicas[row].tolist()
        added = [id for id in after if id not in before and id >= 0]
        key = (str(now.topic[row]), int(now.partition[row]))
        if added and key not in keys:
            rows.append((*key, np.array(added), np.empty(0, np.int32)))
    return known if len(rows) == len(known) else _table(rows)


def has_ended(known: Reassignments, listed: Reassignments) -> bool:
    """Return whether a list lacks a reassignment that was known."""
    if not len(known):
        return False
    keys = set(zip(listed.topic.tolist(), listed.partition.tolist(), strict=True))
    return not keys.issuperset(zip(known.topic.tolist(), known.partition.tolist(), strict=True))


def request() -> Any:
    """Build the request for all reassignments."""
    return ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None)


def table(answer: Any) -> Reassignments:
    """Convert an answer to a table. Raises Refused."""
    if answer.error_code:
        raise Refused(refused(answer.error_code))
    return _table(
        (t.name, p.partition_index, p.adding_replicas, p.removing_replicas)
        for t in answer.topics for p in t.partitions
    )  # fmt: skip


def _table(rows: Iterable[tuple[str, int, Iterable[int], Iterable[int]]]) -> Reassignments:
    ordered = sorted(rows, key=lambda row: row[:2])

    def ids(lists: Iterable[Iterable[int]]) -> IdMatrix:
        return matrix([[int(id) for id in each if id >= 0] for each in lists])

    return Reassignments(
        topic=strings([topic for topic, _, _, _ in ordered]),
        partition=np.array([partition for _, partition, _, _ in ordered], np.int32),
        adding=ids(adding for _, _, adding, _ in ordered),
        removing=ids(removing for _, _, _, removing in ordered),
    )
