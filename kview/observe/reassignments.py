"""ListPartitionReassignments (46), which a broker forwards to the controller."""

from typing import Any

import numpy as np
from kafka.protocol.admin import ListPartitionReassignmentsRequest

from kview.model.failures import refused
from kview.model.snapshot import Reassignments
from kview.observe.causes import Refused
from kview.observe.layout import matrix, strings

TIMEOUT_MS = 5_000


def request() -> Any:
    """Build the request for all reassignments."""
    return ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None)


def table(answer: Any) -> Reassignments:
    """Convert an answer to a table. Raises Refused."""
    if answer.error_code:
        raise Refused(refused(answer.error_code))
    rows = sorted(
        (t.name, p.partition_index, p.adding_replicas, p.removing_replicas)
         for t in answer.topics for p in t.partitions
    )  # fmt: skip
    return Reassignments(
        topic=strings([topic for topic, _, _, _ in rows]),
        partition=np.array([partition for _, partition, _, _ in rows], np.int32),
        adding=matrix([adding for _, _, adding, _ in rows]),
        removing=matrix([removing for _, _, _, removing in rows]),
    )
