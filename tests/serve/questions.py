"""Single requests to a broker, and the error numbers and values in its answers.

Each function sends one request on its own connection, so that no client library caches or retries anything.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetDeleteRequest,
    OffsetForLeaderEpochRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from kview.simulate.records import encode_batch
from tests.real_kafka import asking
from tests.real_kafka.asking import Address
from tests.waiting import wait_until

TIMEOUT_MS = 5_000
ANSWER_S = 15.0
SHARE_STATE = 2
"""FindCoordinator's key type of share coordinators, which it has from version 6 on."""
GROUP_RESOURCE = 32
"""The resource type of groups in requests about configurations."""
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
CONSUMER, DEBUGGING = -1, -2

At = Address | Callable[[Any, float], Any]
"""A broker: its address, or a function that sends it a request and waits so many seconds for the answer."""


def ask(at: At, request: Any, timeout_s: float = asking.ANSWER_TIMEOUT_S) -> Any:
    """Return the answer to a request. Raises OSError."""
    return at(request, timeout_s) if callable(at) else asking.ask(at, request, timeout_s)


def metadata(at: At, topic: str, create: bool = False) -> int:
    """Return the error number of a topic in Metadata."""
    named = MetadataRequest.MetadataRequestTopic(version=12, name=topic, topic_id=None)
    request = MetadataRequest(version=12, topics=[named], allow_auto_topic_creation=create)
    return int(ask(at, request, ANSWER_S).topics[0].error_code)


def create_topic(
    at: At,
    name: str,
    partitions: int = 1,
    replication: int = 1,
    assignment: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Iterable[tuple[str, str | None]] = (),
    validate_only: bool = True,
) -> int:
    """Return the error number of CreateTopics. `assignment` has (partition, brokers)."""
    return created_topic(at, name, partitions, replication, assignment, configs, validate_only)[0]


def created_topic(
    at: At,
    name: str,
    partitions: int = 1,
    replication: int = 1,
    assignment: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Iterable[tuple[str, str | None]] = (),
    validate_only: bool = True,
) -> tuple[int, str | None]:
    """Return the error number and message of CreateTopics."""
    per_topic = CreateTopicsRequest.CreatableTopic
    topic = per_topic(
        version=7,
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=[
            per_topic.CreatableReplicaAssignment(version=7, partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignment
        ],
        configs=[per_topic.CreatableTopicConfig(version=7, name=k, value=v) for k, v in configs],
    )
    request = CreateTopicsRequest(
        version=7, topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only
    )
    row = ask(at, request, ANSWER_S).topics[0]
    return int(row.error_code), row.error_message


def create_partitions(
    at: At,
    name: str,
    count: int,
    assignment: Sequence[Sequence[int]] | None = None,
    validate_only: bool = True,
    times: int = 1,
) -> int:
    """Return the error number of CreatePartitions."""
    per_topic = CreatePartitionsRequest.CreatePartitionsTopic
    assigned = None
    if assignment is not None:
        per_partition = per_topic.CreatePartitionsAssignment
        assigned = [per_partition(version=3, broker_ids=list(brokers)) for brokers in assignment]
    topic = per_topic(version=3, name=name, count=count, assignments=assigned)
    request = CreatePartitionsRequest(
        version=3, topics=[topic] * times, timeout_ms=TIMEOUT_MS, validate_only=validate_only
    )
    return int(ask(at, request, ANSWER_S).results[0].error_code)


def describe_configs(at: At, kind: int, name: str, keys: Sequence[str] | None = None) -> Any:
    """Return the result of DescribeConfigs for one resource."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        version=4,
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )
    request = DescribeConfigsRequest(
        version=4, resources=[resource], include_synonyms=True, include_documentation=False
    )
    return ask(at, request, ANSWER_S).results[0]


def incremental_alter(
    at: At,
    kind: int,
    name: str,
    changes: Sequence[tuple[str, int, str | None]],
    validate_only: bool = False,
) -> int:
    """Return the error number of IncrementalAlterConfigs. `changes` has (key, operation, value)."""
    return incrementally_altered(at, kind, name, changes, validate_only)[0]


def set_for_group(group: str, name: str, value: str, leader: At, coordinator: At) -> None:
    """Set a configuration of a group, and wait until both brokers know it."""
    assert incremental_alter(leader, GROUP_RESOURCE, group, [(name, 0, value)]) == 0

    def is_known() -> bool:
        described = [describe_configs(at, GROUP_RESOURCE, group, [name]) for at in (leader, coordinator)]
        return [row.value for answer in described for row in answer.configs] == [value] * 2

    wait_until(is_known, f"{name} is {value}")


def incrementally_altered(
    at: At,
    kind: int,
    name: str,
    changes: Sequence[tuple[str, int, str | None]],
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """Return the error number and message of IncrementalAlterConfigs."""
    per_resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        per_resource.AlterableConfig(version=1, name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = per_resource(version=1, resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(version=1, resources=[resource], validate_only=validate_only)
    row = ask(at, request, ANSWER_S).responses[0]
    return int(row.error_code), row.error_message


def alter(at: At, name: str, configs: Sequence[tuple[str, str | None]]) -> int:
    """Return the error number of AlterConfigs for a topic."""
    per_resource = AlterConfigsRequest.AlterConfigsResource
    rows = [per_resource.AlterableConfig(version=2, name=key, value=value) for key, value in configs]
    resource = per_resource(version=2, resource_type=TOPIC, resource_name=name, configs=rows)
    request = AlterConfigsRequest(version=2, resources=[resource], validate_only=False)
    return int(ask(at, request, ANSWER_S).responses[0].error_code)


def elect_leaders(at: At, kind: int, topic: str, partition: int) -> tuple[int, int]:
    """Return the error numbers of ElectLeaders: the request's and the partition's."""
    asked = ElectLeadersRequest.TopicPartitions(version=2, topic=topic, partitions=[partition])
    request = ElectLeadersRequest(
        version=2, election_type=kind, topic_partitions=[asked], timeout_ms=TIMEOUT_MS
    )
    answer = ask(at, request, ANSWER_S)
    return answer.error_code, answer.replica_election_results[0].partition_result[0].error_code


def topic_id(at: At, topic: str) -> UUID:
    """Return the id of a topic."""
    named = MetadataRequest.MetadataRequestTopic(version=12, name=topic, topic_id=None)
    request = MetadataRequest(version=12, topics=[named], allow_auto_topic_creation=False)
    found = ask(at, request, ANSWER_S).topics[0].topic_id
    assert isinstance(found, UUID)
    return found


def reassign(
    at: At, topic: str, partition: int, replicas: Sequence[int] | None, may_change: bool = True
) -> int:
    """Return the error number of AlterPartitionReassignments."""
    return reassigned(at, topic, partition, replicas, may_change)[0]


def reassigned(
    at: At, topic: str, partition: int, replicas: Sequence[int] | None, may_change: bool = True
) -> tuple[int, str | None]:
    """Return the error number and message of AlterPartitionReassignments."""
    per_topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    asked = per_topic.ReassignablePartition(
        version=1, partition_index=partition, replicas=None if replicas is None else list(replicas)
    )
    request = AlterPartitionReassignmentsRequest(
        version=1,
        timeout_ms=TIMEOUT_MS,
        allow_replication_factor_change=may_change,
        topics=[per_topic(version=1, name=topic, partitions=[asked])],
    )
    row = ask(at, request, ANSWER_S).responses[0].partitions[0]
    return int(row.error_code), row.error_message


def reassignments(at: At) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    """Return the reassignments in progress: partition → replicas, adding, removing."""
    request = ListPartitionReassignmentsRequest(version=0, timeout_ms=TIMEOUT_MS, topics=None)
    return {
        (topic.name, p.partition_index): (
            list(p.replicas),
            list(p.adding_replicas),
            list(p.removing_replicas),
        )
        for topic in ask(at, request, ANSWER_S).topics
        for p in topic.partitions
    }


def delete_records(at: At, topic: str, partition: int, offset: int) -> tuple[int, int]:
    """Return (error number, low watermark) of DeleteRecords."""
    per_topic = DeleteRecordsRequest.DeleteRecordsTopic
    asked = per_topic.DeleteRecordsPartition(version=2, partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        version=2, topics=[per_topic(version=2, name=topic, partitions=[asked])], timeout_ms=TIMEOUT_MS
    )
    row = ask(at, request, ANSWER_S).topics[0].partitions[0]
    return row.error_code, row.low_watermark


def _producers(at: At, topic: str, partition: int) -> Any:
    asked = DescribeProducersRequest.TopicRequest(version=0, name=topic, partition_indexes=[partition])
    return ask(at, DescribeProducersRequest(version=0, topics=[asked]), ANSWER_S).topics[0].partitions[0]


def producers_refused(at: At, topic: str, partition: int) -> tuple[int, str | None]:
    """Return the error number and message of DescribeProducers."""
    row = _producers(at, topic, partition)
    return row.error_code, row.error_message


def producers(at: At, topic: str, partition: int) -> tuple[int, list[tuple[int, int]]]:
    """Return the error number of DescribeProducers, and (epoch, last sequence) of each producer."""
    row = _producers(at, topic, partition)
    return row.error_code, [(p.producer_epoch, p.last_sequence) for p in row.active_producers]


def config_resources(at: At, types: Sequence[int]) -> tuple[int, set[tuple[str, int]]]:
    """Return the error number of ListConfigResources, and (name, type) of each resource."""
    answer = ask(at, ListConfigResourcesRequest(version=1, resource_types=list(types)), ANSWER_S)
    return answer.error_code, {(r.resource_name, r.resource_type) for r in answer.config_resources}


def describe_cluster(at: At, endpoint_type: int) -> int:
    """Return the error number of DescribeCluster."""
    return int(ask(at, DescribeClusterRequest(version=2, endpoint_type=endpoint_type)).error_code)


def find_coordinator(at: At, key: str, kind: int = 0) -> tuple[int, int]:
    """Return (error number, broker) of FindCoordinator."""
    if kind < SHARE_STATE:
        answer = ask(at, FindCoordinatorRequest(version=3, key=key, key_type=kind), ANSWER_S)
        return answer.error_code, answer.node_id
    answer = ask(at, FindCoordinatorRequest(version=6, key_type=kind, coordinator_keys=[key]), ANSWER_S)
    return answer.coordinators[0].error_code, answer.coordinators[0].node_id


def init_producer_id(at: At, transactional_id: str | None) -> int:
    """Return the error number of InitProducerId."""
    request = InitProducerIdRequest(
        version=4,
        transactional_id=transactional_id,
        transaction_timeout_ms=TIMEOUT_MS,
        producer_id=-1,
        producer_epoch=-1,
    )
    return int(ask(at, request, ANSWER_S).error_code)


def list_offset(
    at: At,
    topic: str,
    timestamp: int,
    version: int = 7,
    partition: int = 0,
    epoch: int = -1,
    replica: int = CONSUMER,
) -> tuple[int, int]:
    """Return (error number, offset) of ListOffsets."""
    per_topic = ListOffsetsRequest.ListOffsetsTopic
    asked = per_topic.ListOffsetsPartition(
        version=version, partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
    )
    request = ListOffsetsRequest(
        version=version,
        replica_id=replica,
        isolation_level=0,
        topics=[per_topic(version=version, name=topic, partitions=[asked])],
    )
    row = ask(at, request, ANSWER_S).topics[0].partitions[0]
    return row.error_code, row.offset


def fetch(
    at: At,
    topic: str,
    offset: int,
    version: int = 11,
    epoch: int = -1,
    partition: int = 0,
    session: tuple[int, int] = (0, -1),
) -> tuple[int, int, bytes]:
    """Return (error number, high watermark, records) of Fetch, which does not wait.

    `session` is the session's id and epoch. If it is refused, the watermark is −1.
    """
    per_topic = FetchRequest.FetchTopic
    asked = per_topic.FetchPartition(
        version=version,
        partition=partition,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1_000_000,
    )
    request = FetchRequest(
        version=version,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=0,
        session_id=session[0],
        session_epoch=session[1],
        forgotten_topics_data=[],
        rack_id="",
        topics=[per_topic(version=version, topic=topic, partitions=[asked])],
    )
    answer = ask(at, request, ANSWER_S)
    if answer.error_code:
        return answer.error_code, -1, b""
    row = answer.responses[0].partitions[0]
    return row.error_code, row.high_watermark, bytes(row.records or b"")


def epoch_end(at: At, topic: str, epoch: int, current: int = -1, partition: int = 0) -> tuple[int, int, int]:
    """Return (error number, epoch, end offset) of OffsetForLeaderEpoch."""
    per_topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    asked = per_topic.OffsetForLeaderPartition(
        version=4, partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        version=4, replica_id=-1, topics=[per_topic(version=4, topic=topic, partitions=[asked])]
    )
    row = ask(at, request, ANSWER_S).topics[0].partitions[0]
    return row.error_code, row.leader_epoch, row.end_offset


def records(values: Sequence[bytes]) -> bytes:
    """Return a batch with these values, without keys, created now."""
    now_ms = round(time.time() * 1000)
    return encode_batch([(None, value, now_ms) for value in values])


def produce_answer(
    at: At, topic: str, records: bytes, acks: int = -1, partition: int = 0, version: int = 9
) -> Any:
    """Return the answer of Produce for one partition."""
    per_topic = ProduceRequest.TopicProduceData
    data = per_topic.PartitionProduceData(version=version, index=partition, records=records)
    request = ProduceRequest(
        version=version,
        transactional_id=None,
        acks=acks,
        timeout_ms=TIMEOUT_MS,
        topic_data=[per_topic(version=version, name=topic, partition_data=[data])],
    )
    return ask(at, request, ANSWER_S).responses[0].partition_responses[0]


def produce(at: At, topic: str, records: bytes, acks: int = -1, partition: int = 0, version: int = 9) -> int:
    """Return the error number of Produce."""
    return int(produce_answer(at, topic, records, acks, partition, version).error_code)


def delete_groups(at: At, groups: Sequence[str]) -> list[int]:
    """Return the error numbers of DeleteGroups."""
    answer = ask(at, DeleteGroupsRequest(version=2, groups_names=list(groups)), ANSWER_S)
    by_group = {row.group_id: row.error_code for row in answer.results}
    return [by_group[group] for group in groups]


def delete_offsets(
    at: At, group: str, partitions: Sequence[tuple[str, int]]
) -> tuple[int, dict[tuple[str, int], int]]:
    """Return the error number of OffsetDelete, and that of each partition."""
    per_topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    topics = [
        per_topic(
            version=0,
            name=topic,
            partitions=[per_topic.OffsetDeleteRequestPartition(version=0, partition_index=partition)],
        )
        for topic, partition in partitions
    ]
    answer = ask(at, OffsetDeleteRequest(version=0, group_id=group, topics=topics), ANSWER_S)
    return answer.error_code, {
        (topic.name, row.partition_index): row.error_code
        for topic in answer.topics
        for row in topic.partitions
    }


def topic_partitions(
    at: At, names: Sequence[str], cursor: tuple[str, int] | None = None, limit: int = 2_000
) -> Any:
    """Return the answer to DescribeTopicPartitions."""
    position = None
    if cursor is not None:
        position = DescribeTopicPartitionsRequest.Cursor(
            version=0, topic_name=cursor[0], partition_index=cursor[1]
        )
    request = DescribeTopicPartitionsRequest(
        version=0,
        topics=[DescribeTopicPartitionsRequest.TopicRequest(version=0, name=name) for name in names],
        response_partition_limit=limit,
        cursor=position,
    )
    return ask(at, request, ANSWER_S)


def sync_group(at: At, protocol: str | None, version: int) -> int:
    """Return the error number of SyncGroup for a member that nobody knows."""
    request = SyncGroupRequest(
        version=version, group_id="nobodys", generation_id=1, member_id="nobody", group_instance_id=None,
        protocol_type=protocol, protocol_name=protocol, assignments=[],
    )  # fmt: skip
    return int(ask(at, request).error_code)
