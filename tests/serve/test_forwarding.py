"""Requests that a broker forwards while there is no active controller.

The times, numbers and missing messages were read from Apache Kafka 4.3.1 with its only controller killed, and
requests whose own time limit was 2 s. Two were not tried there and follow its source: the reassignment and
the election of one partition (getErrorResponse of these requests).
"""

from typing import Any

import pytest
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
)

from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import TOPIC, cluster_of, go

OWN_LIMIT_MS = 2_000


def _creation() -> Any:
    topic = CreateTopicsRequest.CreatableTopic
    new = topic(version=7, name="new", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    return CreateTopicsRequest(version=7, topics=[new], timeout_ms=OWN_LIMIT_MS, validate_only=False)


def _deletion() -> Any:
    topic = DeleteTopicsRequest.DeleteTopicState(version=6, name=TOPIC, topic_id=None)
    return DeleteTopicsRequest(version=6, topics=[topic], timeout_ms=OWN_LIMIT_MS)


def _partitions() -> Any:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(version=3, name=TOPIC, count=9, assignments=None)
    return CreatePartitionsRequest(version=3, topics=[topic], timeout_ms=OWN_LIMIT_MS, validate_only=False)


def _alteration() -> Any:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = resource.AlterableConfig(version=1, name="retention.ms", config_operation=0, value="100000")
    topic = resource(version=1, resource_type=2, resource_name=TOPIC, configs=[config])
    return IncrementalAlterConfigsRequest(version=1, resources=[topic], validate_only=False)


def _reassignment() -> Any:
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    moved = topic.ReassignablePartition(version=1, partition_index=0, replicas=[1, 0])
    return AlterPartitionReassignmentsRequest(
        version=1,
        timeout_ms=OWN_LIMIT_MS,
        allow_replication_factor_change=True,
        topics=[topic(version=1, name=TOPIC, partitions=[moved])],
    )


def _election(topics: list[Any] | None) -> Any:
    return ElectLeadersRequest(version=2, election_type=0, topic_partitions=topics, timeout_ms=OWN_LIMIT_MS)


def _one_election() -> Any:
    return _election([ElectLeadersRequest.TopicPartitions(version=2, topic=TOPIC, partitions=[0])])


def _reassignments() -> Any:
    return ListPartitionReassignmentsRequest(version=0, timeout_ms=OWN_LIMIT_MS, topics=None)


ASKED: dict[str, tuple[Any, Any]] = {
    "CreateTopics": (_creation, lambda a: [(a.topics[0].error_code, a.topics[0].error_message)]),
    "DeleteTopics": (_deletion, lambda a: [(a.responses[0].error_code, a.responses[0].error_message)]),
    "CreatePartitions": (_partitions, lambda a: [(a.results[0].error_code, a.results[0].error_message)]),
    "AlterConfigs": (_alteration, lambda a: [(a.responses[0].error_code, a.responses[0].error_message)]),
    "AlterPartitionReassignments": (_reassignment, lambda a: [(a.error_code, a.error_message)]),
    "ListPartitionReassignments": (_reassignments, lambda a: [(a.error_code, a.error_message)]),
    "ElectLeaders of all": (
        lambda: _election(None),
        lambda a: [(a.error_code, None), *a.replica_election_results],
    ),
    "ElectLeaders of one": (
        _one_election,
        lambda a: [(a.error_code, a.replica_election_results[0].partition_result[0].error_message)],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_without_a_controller_it_waits_a_minute_whatever_its_own_limit_is(name: str) -> None:
    make, seen = ASKED[name]
    cluster = cluster_of()
    go(cluster, 1)
    for controller in cluster.world.controllers:
        cluster.faults.crash(controller)
    request = make()
    request.with_header(correlation_id=1, client_id="tests")
    client, wire = UnwiredClient(0), Unwired(cluster)
    wire.send(client, request.encode(header=True, framed=False))
    go(cluster, 59)
    assert client.answers == []
    go(cluster, 2)
    assert client.failures == [] and wire.event_failures == []
    (frame,) = client.answers
    assert frame is not None
    answer = request.header.get_response_class().decode(bytes(frame[4:]), header=True)
    assert seen(answer) == [(7, None)]
