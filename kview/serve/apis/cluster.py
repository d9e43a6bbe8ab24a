"""DescribeCluster (60) 0–2 lists the brokers, DescribeQuorum (55) 0–2 describes the KRaft quorum.

DescribeCluster: v1 adds the endpoint type (a request for controllers gets MISMATCHED_ENDPOINT_TYPE), v2 adds
fenced brokers. As in Metadata, the controller in the response is any live broker.

DescribeQuorum: v1 adds the times of the last fetches, v2 error messages, directory ids and the voters, but
not their listeners, because clients cannot reach a controller. A broker forwards the request
to the active controller. If there is none, the request waits.
"""

from typing import Any
from uuid import UUID

from kafka.protocol.admin.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)

from kview.serve.apis.metadata import any_live_broker
from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.requests.voters import directory_id
from kview.simulate.results import QuorumInfo, QuorumReplica
from kview.simulate.world import METADATA_TOPIC

BROKERS, CONTROLLERS = 1, 2
MISMATCHED_ENDPOINT_TYPE = 114
UNSUPPORTED_ENDPOINT_TYPE = 115
MISMATCHED = (
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
)
NODES_FROM = 2


def describe_cluster(call: Call) -> None:
    """Answer with the brokers in this broker's metadata."""
    request, version, image = call.request, call.version, call.image
    if version >= 1 and request.endpoint_type != BROKERS:
        asked_controllers = request.endpoint_type == CONTROLLERS
        error = MISMATCHED_ENDPOINT_TYPE if asked_controllers else UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {request.endpoint_type}"
        if asked_controllers:
            message = MISMATCHED
        call.answer(
            DescribeClusterResponse(
                version=version, error_code=error, error_message=message, cluster_id="", brokers=[]
            )
        )
        return
    operations = None
    if request.include_cluster_authorized_operations:
        describes = call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER)
        operations = call.operations(ResourceType.CLUSTER) if describes else frozenset()
    fenced_too = version >= 2 and request.include_fenced_brokers
    brokers = []
    for broker in image.brokers.values():
        if broker.fenced and not fenced_too:
            continue
        host, port = call.wire.endpoint(broker.id)
        brokers.append(
            DescribeClusterResponse.DescribeClusterBroker(
                version=version,
                broker_id=broker.id,
                host=host,
                port=port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
        )
    call.answer(
        DescribeClusterResponse(
            version=version,
            cluster_id=image.cluster_id,
            controller_id=any_live_broker(call, image.live_brokers()),
            brokers=brokers,
            authorized_operations=operations,
        )
    )


def describe_quorum(call: Call) -> None:
    """Answer with the voters and observers as the active controller sees them."""

    if not call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER):
        _answer_refused(
            call, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, MESSAGES[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        )
        return

    def described(info: QuorumInfo) -> None:
        call.run(_answer_quorum(call, info))

    call.cluster.forwarding.describe_quorum(call.broker, call.later(described))


def _answer_quorum(call: Call, info: QuorumInfo) -> Steps:
    version, per_topic = call.version, DescribeQuorumResponse.TopicData
    if info.error_code:
        message = "There is no active controller to forward the request to."
        _answer_refused(call, info.error_code, message)
        return
    topics, described = [], False
    for entry in call.request.topics:
        partitions = []
        for p in entry.partitions:
            is_quorum = (entry.topic_name, p.partition_index) == (METADATA_TOPIC, 0)
            described = described or is_quorum
            partitions.append(_partition(call, p.partition_index, info if is_quorum else None))
            yield
        topics.append(per_topic(version=version, topic_name=entry.topic_name, partitions=partitions))
        yield
    voters = info.voters if described and version >= NODES_FROM else ()
    nodes = [DescribeQuorumResponse.Node(version=version, node_id=v.node, listeners=[]) for v in voters]
    call.answer(DescribeQuorumResponse(version=version, topics=topics, nodes=nodes, error_message=""))


def _answer_refused(call: Call, error: ErrorCode, message: str) -> None:
    call.answer(
        DescribeQuorumResponse(version=call.version, error_code=error, error_message=message, topics=[])
    )


def _partition(call: Call, index: int, info: QuorumInfo | None) -> Any:
    """Return a partition's row, of which only one has a quorum to describe."""
    version, per_topic = call.version, DescribeQuorumResponse.TopicData
    if info is None:
        return per_topic.PartitionData(
            version=version,
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
            current_voters=[],
            observers=[],
        )
    cluster_id = call.image.cluster_id

    def states(replicas: tuple[QuorumReplica, ...]) -> list[Any]:
        return [
            per_topic.PartitionData.ReplicaState(
                version=version,
                replica_id=r.node,
                replica_directory_id=UUID(bytes=directory_id(cluster_id, r.node)),
                log_end_offset=r.log_end,
                last_fetch_timestamp=r.last_fetch_ms,
                last_caught_up_timestamp=r.last_caught_up_ms,
            )
            for r in replicas
        ]

    return per_topic.PartitionData(
        version=version,
        partition_index=index,
        error_message="",
        leader_id=info.leader_id,
        leader_epoch=info.leader_epoch,
        high_watermark=info.high_watermark,
        current_voters=states(info.voters),
        observers=states(info.observers),
    )


APIS = (
    Api(60, DescribeClusterRequest, (0, 2), describe_cluster),
    Api(55, DescribeQuorumRequest, (0, 2), describe_quorum),
)
