"""AlterReplicaLogDirs (34) 1–2 and DescribeLogDirs (35) 1–5: where this broker's replicas are on its disk.

AlterReplicaLogDirs: v2 is flexible. Replicas move at once.

DescribeLogDirs: v2 is flexible, v3 adds a top-level error, v4 the bytes of the volume (unknown: −1), v5
whether the volume is cordoned. A broker has one log directory, or those of log.dirs.
"""

from struct import Struct

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
from kview.simulate.results import LogDirRow
from kview.wire.primitives import INT16, INT32, INT64, array_length, string

FLEXIBLE_FROM, ERROR_FROM, VOLUME_FROM, CORDONED_FROM = 2, 3, 4, 5
TOPICS_PER_STEP = 64

_ROW = Struct(">iqq?")  # index, size, offset lag, whether it will take the place of another replica
_UNKNOWN = -1


def describe_log_dirs(call: Call) -> Steps:
    """Answer with the requested replicas, or with all replicas of this broker.

    The lag of a replica is relative to its own high watermark, as in Kafka. The response is packed by hand,
    because an observer asks for every replica.
    """
    request, version = call.request, call.version
    flexible = version >= FLEXIBLE_FROM
    tags = b"\0" if flexible else b""
    if not call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER):
        error = {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED} if version >= ERROR_FROM else {}
        call.answer(DescribeLogDirsResponse(version=version, results=[], **error))
        return
    asked = None if request.topics is None else {t.topic: set(t.partitions) for t in request.topics}
    directories = call.cluster.descriptions.log_dirs(call.broker)
    no_error = INT16.pack(ErrorCode.NONE) if version >= ERROR_FROM else b""
    pieces = [INT32.pack(0), no_error, array_length(len(directories), flexible)]
    for directory in directories:
        pieces += (INT16.pack(directory.error_code), string(directory.path, flexible))
        rows_of: dict[str, list[LogDirRow]] = {}
        for row in directory.rows:
            if asked is None or row.partition in asked.get(row.topic, ()):
                rows_of.setdefault(row.topic, []).append(row)
        pieces.append(array_length(len(rows_of), flexible))
        for number, (name, rows) in enumerate(rows_of.items()):
            pieces += (string(name, flexible), array_length(len(rows), flexible))
            pieces += [_ROW.pack(p, size, offset_lag, False) + tags for _, p, size, offset_lag in rows]
            pieces.append(tags)
            if not number % TOPICS_PER_STEP:
                yield
        pieces.append(INT64.pack(_UNKNOWN) * 2 if version >= VOLUME_FROM else b"")
        pieces.append(b"\0" if version >= CORDONED_FROM else b"")
        pieces.append(tags)
    pieces.append(tags)
    call.answer_packed(pieces)


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
