"""DescribeLogDirs (35), versions 1–5: returns the sizes of this broker's replicas on disk.

v2 is flexible, v3 adds a top-level error, v4 the bytes of the volume (unknown: −1), v5 whether the volume is
cordoned. A broker has one log directory.
"""

from kafka.protocol.admin import DescribeLogDirsRequest, DescribeLogDirsResponse

from kview.serve.call import Api, Call
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.results import LogDirRow

ERROR_FROM = 3


def log_dir(broker: int) -> str:
    """Return the path of a broker's log directory."""
    return f"/simulated/broker-{broker}"


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
    by_topic: dict[str, list[LogDirRow]] = {}
    for row in call.cluster.descriptions.log_dirs(call.broker):
        if asked is None or row.partition in asked.get(row.topic, ()):
            by_topic.setdefault(row.topic, []).append(row)
    per_dir = DescribeLogDirsResponse.DescribeLogDirsResult
    per_topic = per_dir.DescribeLogDirsTopic
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
        for name, rows in by_topic.items()
    ]
    directory = per_dir(version=version, log_dir=log_dir(call.broker), topics=topics, is_cordoned=False)
    call.answer(DescribeLogDirsResponse(version=version, results=[directory]))


APIS = (Api(35, DescribeLogDirsRequest, (1, 5), describe_log_dirs),)
