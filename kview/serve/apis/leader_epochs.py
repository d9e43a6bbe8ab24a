"""OffsetForLeaderEpoch (23), versions 2–4: returns the end offset of a leader epoch.

Consumers use it to detect truncation (KIP-320). v3 adds the replica that asks, v4 is flexible.
"""

from typing import Any

from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.results import EpochEndResult

REFUSED = EpochEndResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def offset_for_leader_epoch(call: Call) -> Steps:
    """Answer from this broker's own log, for the partitions it leads."""
    version = call.version
    per_topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    topics = []
    for entry in call.request.topics:
        partitions = []
        may = call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, entry.topic)
        for p in entry.partitions:
            result = _epoch_end(call, entry.topic, p) if may else REFUSED
            partitions.append(_partition(call, per_topic, result, p))
            yield
        topics.append(per_topic(version=version, topic=entry.topic, partitions=partitions))
        yield
    call.answer(OffsetForLeaderEpochResponse(version=version, topics=topics))


def _partition(call: Call, per_topic: Any, result: EpochEndResult, asked: Any) -> Any:
    return per_topic.EpochEndOffset(
        version=call.version,
        error_code=result.error_code,
        partition=asked.partition,
        leader_epoch=result.leader_epoch,
        end_offset=result.end_offset,
    )


def _epoch_end(call: Call, topic: str, asked: Any) -> EpochEndResult:
    partition = call.image.partition(topic, asked.partition)
    if partition is None:
        return EpochEndResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if 0 <= asked.current_leader_epoch < partition.leader_epoch:
        return EpochEndResult(ErrorCode.FENCED_LEADER_EPOCH)
    if asked.current_leader_epoch > partition.leader_epoch:
        return EpochEndResult(ErrorCode.UNKNOWN_LEADER_EPOCH)
    return call.cluster.records.epoch_end(call.broker, topic, asked.partition, asked.leader_epoch)


APIS = (Api(23, OffsetForLeaderEpochRequest, (2, 4), offset_for_leader_epoch),)
