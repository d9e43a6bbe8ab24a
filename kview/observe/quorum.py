"""DescribeQuorum (55): the active controller, and when each node last fetched metadata.

A broker forwards this request to the controller.
"""

from typing import Any

import numpy as np
from kafka.protocol.admin.cluster import DescribeQuorumRequest
from msgspec import Struct

from kview.model.failures import Cause, FailureKind, refused
from kview.model.snapshot import Quorum
from kview.model.states import QuorumRole
from kview.model.units import UNKNOWN
from kview.observe.causes import Refused
from kview.observe.layout import strings

TOPIC = "__cluster_metadata"


class QuorumSeen(Struct, frozen=True):
    """The active controller's answer about its quorum, received at `received_ms`."""

    controller_id: int
    controller_epoch: int
    nodes: Quorum
    received_ms: int


def request() -> Any:
    """Build the request for the metadata quorum."""
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    return DescribeQuorumRequest(topics=[topic(topic_name=TOPIC, partitions=[partition])])


def seen(answer: Any, at_ms: int) -> QuorumSeen:
    """Convert an answer to a table. Raises Refused if the answer has no quorum."""
    partitions = [p for t in answer.topics for p in t.partitions]
    code = answer.error_code or (partitions[0].error_code if partitions else 0)
    if code or not partitions:
        raise Refused(refused(code) if code else Cause(FailureKind.INCOMPLETE))
    (partition, *_) = partitions
    nodes = {}
    for role, replicas in (
        (QuorumRole.OBSERVER, partition.observers),
        (QuorumRole.VOTER, partition.current_voters),
    ):
        for replica in replicas:
            leads = replica.replica_id == partition.leader_id
            nodes[replica.replica_id] = (QuorumRole.LEADER if leads else role, replica)
    ordered = [(node, *nodes[node]) for node in sorted(nodes)]
    return QuorumSeen(
        partition.leader_id,
        partition.leader_epoch,
        Quorum(
            node=np.array([node for node, _, _ in ordered], np.int32),
            role=strings([role.value for _, role, _ in ordered]),
            log_end=np.array([_known(r.log_end_offset) for _, _, r in ordered], np.int64),
            last_fetch_ms=np.array([_known(r.last_fetch_timestamp) for _, _, r in ordered], np.int64),
            last_caught_up_ms=np.array([_known(r.last_caught_up_timestamp) for _, _, r in ordered], np.int64),
        ),
        at_ms,
    )


def _known(value: int | None) -> int:
    """Return UNKNOWN for −1, and for a field that an old version lacks."""
    return UNKNOWN if value is None or value < 0 else value
