"""The APIs that the observer may use, all of which only read."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

FETCH = 1
LIST_OFFSETS = 2
METADATA = 3
UPDATE_METADATA = 6
OFFSET_FETCH = 9
DESCRIBE_GROUPS = 15
LIST_GROUPS = 16
API_VERSIONS = 18
DESCRIBE_CONFIGS = 32
DESCRIBE_LOG_DIRS = 35
LIST_PARTITION_REASSIGNMENTS = 46
DESCRIBE_CLIENT_QUOTAS = 48
DESCRIBE_QUORUM = 55
DESCRIBE_CLUSTER = 60
DESCRIBE_PRODUCERS = 61
DESCRIBE_TRANSACTIONS = 65
LIST_TRANSACTIONS = 66
CONSUMER_GROUP_DESCRIBE = 69
DESCRIBE_TOPIC_PARTITIONS = 75
SHARE_GROUP_DESCRIBE = 77
STREAMS_GROUP_DESCRIBE = 89
DESCRIBE_SHARE_GROUP_OFFSETS = 90

READ_ONLY = frozenset({
    LIST_OFFSETS, METADATA, OFFSET_FETCH, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS, DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS, LIST_PARTITION_REASSIGNMENTS, DESCRIBE_QUORUM, DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC_PARTITIONS, CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE,
    DESCRIBE_SHARE_GROUP_OFFSETS, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS,
    DESCRIBE_CLIENT_QUOTAS,
})  # fmt: skip
"""What observing may send."""

READ_RECORDS = READ_ONLY | {FETCH}
"""What may be sent when somebody asks for records. Fetch is sent as a consumer without a group, never as a
follower, whose fetches count for the ISR and the high watermark."""

NOT_LEADER = 6
GROUP_ID_NOT_FOUND = 69
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
OFFERED_FROM = 3
"""The first version of ApiVersions that tells finalized features."""
FENCED_BROKERS_FROM = 2
"""The first version of DescribeCluster that lists fenced brokers."""

Versions = Mapping[int, tuple[int, int]]
"""API → lowest and highest version that a broker supports."""


def highest(versions: Versions, api: int) -> int:
    """Return the highest version of `api` that a broker supports, or −1 if it does not know the API."""
    return versions.get(api, (0, -1))[1]


def with_zookeeper(versions: Versions) -> bool:
    """Return whether a broker runs in ZooKeeper mode, in which the controller sends it its metadata.

    A missing DescribeQuorum does not tell that: brokers of Kafka 3.0 to 3.2 without ZooKeeper do not offer it
    to clients either.
    """
    return highest(versions, UPDATE_METADATA) >= 0


def capabilities(versions: Versions) -> frozenset[str]:
    """Return what a cluster can answer, as in `Observation.capabilities`.

    `versions` are those that its broker supports. The controller in Metadata answers is the real one only
    with ZooKeeper.
    """
    named = {
        "quorum": highest(versions, DESCRIBE_QUORUM) >= 0,
        "metadata_controller": with_zookeeper(versions),
        "topic_ids": highest(versions, METADATA) >= 10,
        "elr": highest(versions, DESCRIBE_TOPIC_PARTITIONS) >= 0,
        "fenced_brokers": highest(versions, DESCRIBE_CLUSTER) >= FENCED_BROKERS_FROM,
    }
    return frozenset(name for name, there in named.items() if there)


class Offered(Struct, frozen=True):
    """What a broker says of its APIs and of the cluster's finalized features."""

    apis: str = ""
    """Its APIs as `API:lowest-highest` versions."""
    features: tuple[tuple[str, int], ...] = ()
    epoch: int = -1
    """The epoch of the features, -1 if the broker knows none."""
    ranges: tuple[tuple[int, int, int], ...] = ()


def offered(answer: Any, before: Offered) -> Offered:
    """Return what an answer to ApiVersions says, which is mostly what the last one said."""
    ranges = tuple((api.api_key, api.min_version, api.max_version) for api in answer.api_keys)
    epoch = answer.finalized_features_epoch if answer.API_VERSION >= OFFERED_FROM else -1
    epoch = -1 if epoch is None else int(epoch)
    if ranges == before.ranges and epoch == before.epoch:
        return before
    apis = ",".join(f"{key}:{low}-{high}" for key, low, high in sorted(ranges))
    features: tuple[tuple[str, int], ...] = ()
    if epoch >= 0:
        features = tuple(sorted((f.name, int(f.max_version_level)) for f in answer.finalized_features or ()))
    return Offered(apis, features, epoch, ranges)


def newest_features(offers: Iterable[Offered]) -> tuple[tuple[str, int], ...]:
    """Return the finalized features of the broker that knows the latest ones, () if none knows any."""
    return max(offers, key=lambda each: each.epoch, default=Offered()).features
