"""All topic configurations of Kafka 4.3, with their types, defaults and ranges.

The simulated cluster accepts, checks, stores and returns all of them. Those marked `no_effect` change nothing
here, because it has no files or tiered storage, and never compresses batches that clients sent.
Source: org.apache.kafka.storage.internals.log.LogConfig, and a broker's own answer to DescribeConfigs.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kview.simulate.setting import INT_MAX, LONG_MAX, LONG_MIN, ConfigType, Key, boolean, number


class TopicKey(NamedTuple):
    """A topic configuration, and the broker configuration that sets its default, if there is one."""

    key: Key
    broker_name: str | None = None
    no_effect: bool = False


def _int(default: int, low: int = 0, high: int = INT_MAX) -> Key:
    return number(default, low, high)


def _long(default: int, low: int = 0) -> Key:
    return number(default, low, LONG_MAX)


_THROTTLED = Key("", type=ConfigType.LIST, replicas=True)
_FOREVER = _long(LONG_MAX)

TOPIC_KEYS: Mapping[str, TopicKey] = {
    "cleanup.policy": TopicKey(
        Key("delete", type=ConfigType.LIST, choices=("compact", "delete")), "log.cleanup.policy"
    ),
    "compression.gzip.level": TopicKey(
        Key("-1", 1, 9, type=ConfigType.INT, besides="-1"), "compression.gzip.level", True
    ),
    "compression.lz4.level": TopicKey(_int(9, 1, 17), "compression.lz4.level", True),
    "compression.type": TopicKey(
        Key("producer", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        "compression.type",
        True,
    ),
    "compression.zstd.level": TopicKey(_int(3, -131072, 22), "compression.zstd.level", True),
    "delete.retention.ms": TopicKey(_long(86_400_000), "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": TopicKey(_long(60_000), "log.segment.delete.delay.ms", True),
    "flush.messages": TopicKey(_long(LONG_MAX, 1), "log.flush.interval.messages", True),
    "flush.ms": TopicKey(_FOREVER, "log.flush.interval.ms", True),
    "follower.replication.throttled.replicas": TopicKey(_THROTTLED),
    "index.interval.bytes": TopicKey(_int(4096), "log.index.interval.bytes", True),
    "leader.replication.throttled.replicas": TopicKey(_THROTTLED),
    "local.retention.bytes": TopicKey(_long(-2, -2), "log.local.retention.bytes", True),
    "local.retention.ms": TopicKey(_long(-2, -2), "log.local.retention.ms", True),
    "max.compaction.lag.ms": TopicKey(_long(LONG_MAX, 1), "log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": TopicKey(_int(1048588), "message.max.bytes"),
    "message.timestamp.after.max.ms": TopicKey(_long(3_600_000), "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": TopicKey(_FOREVER, "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": TopicKey(
        Key("CreateTime", choices=("CreateTime", "LogAppendTime")), "log.message.timestamp.type"
    ),
    "min.cleanable.dirty.ratio": TopicKey(
        Key("0.5", 0, 1, type=ConfigType.DOUBLE), "log.cleaner.min.cleanable.ratio"
    ),
    "min.compaction.lag.ms": TopicKey(_long(0), "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": TopicKey(_int(1, 1), "min.insync.replicas"),
    "preallocate": TopicKey(boolean(False), "log.preallocate", True),
    "remote.log.copy.disable": TopicKey(boolean(False), None, True),
    "remote.log.delete.on.disable": TopicKey(boolean(False), None, True),
    # Brokers without tiered storage refuse `true`.
    "remote.storage.enable": TopicKey(Key("false", type=ConfigType.BOOLEAN, choices=("false",)), None, True),
    "retention.bytes": TopicKey(number(-1, LONG_MIN, LONG_MAX), "log.retention.bytes"),
    "retention.ms": TopicKey(_long(604_800_000, -1), "log.retention.ms"),
    "segment.bytes": TopicKey(_int(1_073_741_824, 1_048_576), "log.segment.bytes"),
    "segment.index.bytes": TopicKey(_int(10_485_760, 4), "log.index.size.max.bytes", True),
    "segment.jitter.ms": TopicKey(_long(0), "log.roll.jitter.ms", True),
    "segment.ms": TopicKey(_long(604_800_000, 1), "log.roll.ms"),
    "unclean.leader.election.enable": TopicKey(boolean(False), "unclean.leader.election.enable"),
}
