"""DescribeTopicPartitions (75), version 0: returns topics with eligible leader replicas (KIP-966), in
pages."""

from typing import Any

from kafka.protocol.admin.topics import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

from kview.serve.apis.operations import NOT_ASKED, bits
from kview.serve.call import Api, Call, Steps, no_such_topic, topic_uuid
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import MetadataImage, PartitionImage

MAX_PARTITIONS = 2000
"""Kafka's default of `max.request.partition.size.limit`."""


def describe_topic_partitions(call: Call) -> Steps:
    """Answer with the requested topics, or with all, sorted by name, from the cursor up to the partition
    limit."""
    request, image, version = call.request, call.image, call.version
    cursor = request.cursor
    names = sorted({t.name for t in request.topics} or image.topics)
    if cursor is not None and (
        cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names)
    ):
        wrong = [_error(version, t.name, ErrorCode.INVALID_REQUEST) for t in request.topics]
        call.answer(DescribeTopicPartitionsResponse(version=version, topics=wrong, next_cursor=None))
        return
    hidden: list[Any] = []
    readable = [name for name in names if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)]
    if len(readable) < len(names) and request.topics:
        refused = set(names).difference(readable)
        hidden = [_error(version, n, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for n in sorted(refused)]
    names = readable
    left = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
    topics: list[Any] = []
    next_cursor = None
    for name in names:
        yield
        if cursor is not None and name < cursor.topic_name:
            continue
        begin = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if left == 0:
            next_cursor = DescribeTopicPartitionsResponse.Cursor(
                version=version, topic_name=name, partition_index=begin
            )
            break
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:
                operations = bits(call.operations(ResourceType.TOPIC, name))
                topics.append(_error(version, name, no_such_topic(name), operations))
            continue
        begin = min(begin, len(topic.partitions))
        end = min(len(topic.partitions), begin + left)
        left -= end - begin
        topics.append(
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
                version=version,
                name=name,
                topic_id=topic_uuid(topic.topic_id),
                is_internal=topic.internal,
                topic_authorized_operations=bits(call.operations(ResourceType.TOPIC, name)),
                partitions=[_partition(version, image, p, topic.partitions[p]) for p in range(begin, end)],
            )
        )
        if end < len(topic.partitions):
            next_cursor = DescribeTopicPartitionsResponse.Cursor(
                version=version, topic_name=name, partition_index=end
            )
            break
    topics += hidden
    call.answer(DescribeTopicPartitionsResponse(version=version, topics=topics, next_cursor=next_cursor))


def _error(version: int, name: str, error: ErrorCode, operations: int = NOT_ASKED) -> Any:
    return DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        version=version,
        error_code=error,
        name=name,
        topic_id=None,
        partitions=[],
        topic_authorized_operations=operations,
    )


def _partition(version: int, image: MetadataImage, index: int, partition: PartitionImage) -> Any:
    per_topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return per_topic.DescribeTopicPartitionsResponsePartition(
        version=version,
        error_code=ErrorCode.NONE,  # also without a leader, unlike Metadata
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=image.offline_replicas(partition),
    )


APIS = (Api(75, DescribeTopicPartitionsRequest, (0, 0), describe_topic_partitions),)
