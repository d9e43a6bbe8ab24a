"""AlterReplicaLogDirs (34) 1–2 and DescribeLogDirs (35) 1–5: where this broker's replicas are on its disk.

AlterReplicaLogDirs: v2 is flexible. Replicas move at once.

DescribeLogDirs: v2 is flexible, v3 adds a top-level error, v4 the bytes of the volume (unknown: −1), v5
whether the volume is cordoned. A broker has one log directory, or those of log.dirs.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kafka.protocol.admin.cluster import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

from kview.serve.apis.gather import by_topic
from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import TopicPartition
from kview.simulate.results import LogDir, LogDirRow

ERROR_FROM = 3


def describe_log_dirs(call: Call) -> None:
    """Answer with the requested replicas, or with all replicas of this broker.

    The lag of a replica is relative to its own high watermark, as in Kafka.
    """
    request, version = call.request, call.version
    if not call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER):
        error = {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED} if version >= ERROR_FROM else {}
        call.answer(DescribeLogDirsResponse(version=version, results=[], **error))
        return
    asked = None if request.topics is None else {t.topic: set(t.partitions) for t in request.topics}
    results = [_described(version, found, asked) for found in call.cluster.descriptions.log_dirs(call.broker)]
    call.answer(DescribeLogDirsResponse(version=version, results=results))


def _described(version: int, found: LogDir, asked: Mapping[str, Collection[int]] | None) -> Any:
    per_dir = DescribeLogDirsResponse.DescribeLogDirsResult
    per_topic = per_dir.DescribeLogDirsTopic
    rows_of: dict[str, list[LogDirRow]] = {}
    for row in found.rows:
        if asked is None or row.partition in asked.get(row.topic, ()):
            rows_of.setdefault(row.topic, []).append(row)
    topics = [
        per_topic(
            version=version,
            name=name,
            partitions=[
                per_topic.DescribeLogDirsPartition(
                    version=version,
                    partition_index=row.partition,
                    partition_size=row.size_bytes,
                    offset_lag=row.offset_lag,
                    is_future_key=False,
                )
                for row in rows
            ],
        )
        for name, rows in rows_of.items()
    ]
    return per_dir(
        version=version, error_code=found.error_code, log_dir=found.path, topics=topics, is_cordoned=False
    )


def alter_replica_log_dirs(call: Call) -> Steps:
    """Answer for each replica whether it can be in its directory. The last directory named for it counts."""
    wanted: dict[TopicPartition, str] = {}
    for directory in call.request.dirs:
        for topic in directory.topics:
            wanted |= {(topic.name, index): directory.path for index in topic.partitions}
            yield
    per_topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    may = call.may(AclOperation.ALTER, ResourceType.CLUSTER)
    rows = []
    for key, path in wanted.items():
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if may:
            error = call.cluster.descriptions.move_replica(call.broker, key, path)
        row = per_topic.AlterReplicaLogDirPartitionResult(
            version=call.version, partition_index=key[1], error_code=error
        )
        rows.append((key[0], row))
        yield
    results = [
        per_topic(version=call.version, topic_name=name, partitions=of_topic)
        for name, of_topic in by_topic(rows).items()
    ]
    call.answer(AlterReplicaLogDirsResponse(version=call.version, results=results))


APIS = (
    Api(34, AlterReplicaLogDirsRequest, (1, 2), alter_replica_log_dirs),
    Api(35, DescribeLogDirsRequest, (1, 5), describe_log_dirs),
)
