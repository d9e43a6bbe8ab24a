"""What a roll-up is about, its sums, and the figures of them that the screen and reports have in common. The
standard library is enough for this module, which travels to Spark's workers."""

from enum import StrEnum
from typing import Any

BLOCK_S = 60
"""Seconds per block of roll-ups. The block that changes each second is copied, while older blocks are
shared."""

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
"""Kafka's Topic.INTERNAL_TOPICS and its metadata topic. Groups' deltas do not say what is internal."""


class Kind(StrEnum):
    """The subject of a roll-up.

    CLUSTER, BROKER and RACK count the user's topics, and INTERNAL counts internal topics.
    """

    CLUSTER = "cluster"
    INTERNAL = "internal"
    TOPIC = "topic"
    BROKER = "broker"
    """Counted for the partition's leader at the time. The key is the broker id as text."""
    RACK = "rack"
    """Counted for the leader's rack, '' if the broker has no rack."""
    GROUP = "group"


class Sum(StrEnum):
    """The columns of a roll-up that are sums over partitions, in the order of `Block.sums`."""

    RECORDS_IN = "records_in"
    CENTIBYTES_IN = "centibytes_in"
    """Estimated as records × size of the leader's log ÷ number of offsets in it. These are integers in
    hundredths of a byte, so that sums are exact."""
    REPLICATED = "replicated"
    """The number of records by which the followers' logs grew."""
    CROSS_RACK = "cross_rack"
    """The part of `REPLICATED` whose leader and follower are in different racks."""
    RECORDS_OUT = "records_out"
    """Counted from commits, spread over the time since the group's previous commit for that partition."""
    ACTIVE_MS = "active_ms"
    """The time with incoming records in ms, summed over partitions. Divided by 1000, it is the number of
    active partitions in a second."""
    TRUNCATED = "truncated"
    RECORDS_IN_GAP = "records_in_gap"
    """Records that arrived in an interval too long for a rate, or of length zero. They count in the second in
    which they were seen."""
    REWOUND = "rewound"
    RECORDS_OUT_GAP = "records_out_gap"
    OFFLINE_MS = "offline_ms"
    """The time without a leader in ms, summed over partitions. The next three sums are measured in the same
    way."""
    SILENT_MS = "silent_ms"
    UNDER_MIN_ISR_MS = "under_min_isr_ms"
    UNDER_REPLICATED_MS = "under_replicated_ms"


SUMS = tuple(Sum)

PERCENTS = (50, 95, 99)
"""The percentiles of the records in per second."""


def nearest_rank(percent: int, count: int) -> int:
    """Return the place of a percentile among `count` ordered values, from 1 on, by nearest rank."""
    return -(-percent * count // 100)


def skew(hottest: Any, partition_sum: Any, partition_seconds: Any, records: Any) -> Any:
    """Return what came into the hottest partition ÷ the mean per partition, of numbers or of columns.

    `hottest` is the sum of every second's hottest rate, `partition_sum` that of every second's partitions,
    and `partition_seconds` the number of seconds with any.
    """
    return hottest * (partition_sum / partition_seconds) / records
