"""What Spark calculates from a recording: one-second roll-ups, and the state of the job that calculates them.

All figures of a roll-up are integers that can be summed: over seconds, over partitions, and over the batches
in which they arrive. Rates, wider windows, skew and percentiles are derived from these sums
(`kview.derive.windows`).
"""

from enum import StrEnum

import numpy as np
from msgspec import Struct, field

from kview.errors import ErrorFacts
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

BLOCK_S = 60
"""Seconds per block of roll-ups. The block that changes each second is copied, while older blocks are
shared."""

SET_BACK_MS = 2_000
"""If an observation ends this much before an earlier one, the clock was set back in between."""


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


class Key(Struct, frozen=True, order=True):
    """The kind and the name of a roll-up's subject. The name is '' for CLUSTER and INTERNAL."""

    kind: Kind
    name: str = ""


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


class Block(Struct, frozen=True):
    """The roll-ups of one minute.

    Row i belongs to key i of `Rollups.keys`. A key that became known later has no row, which means 0. Do not
    write to the arrays.
    """

    minute: int
    """The number of the minute: epoch seconds ÷ BLOCK_S."""
    sums: Longs
    """The sums, with the shape [len(SUMS), rows, BLOCK_S]."""
    hottest_rate: Longs
    """The highest rate of a single partition in each second, in whole records per second, with the shape
    [rows, BLOCK_S]. These are incoming records, or for groups the records that they read."""
    hottest: Longs
    """The partition with that rate, as an index into `Rollups.partitions`, −1 if there is none. The shape is
    [rows, BLOCK_S]."""
    topic_partitions: Longs
    """The number of partitions of a TOPIC, as stated in its records, 0 for other kinds. The shape is [rows,
    BLOCK_S]."""


class Rollups(Struct, frozen=True):
    """One-second roll-ups. Later roll-ups share the blocks that did not change."""

    keys: tuple[Key, ...] = ()
    partitions: tuple[tuple[str, int], ...] = ()
    """The (topic, partition) pairs that `Block.hottest` refers to."""
    blocks: tuple[Block, ...] = ()
    """The blocks, oldest first. Minutes without any roll-up are left out."""
    from_ms: int = UNKNOWN
    """The first moment covered, in epoch ms, UNKNOWN if there is none. Roll-ups that the size limit dropped
    are older."""
    until_ms: int = UNKNOWN
    """The end of the last observation covered, in epoch ms. The second in which it ended, and later ones, are
    still incomplete."""


class SparkState(StrEnum):
    """The state of Spark's job."""

    OFF = "off"
    """The job is disabled (`--no-spark`)."""
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    """The job has ended. It starts again at `SparkStatus.next_start_ms`, or when the user asks for it."""


class SparkStatus(Struct, frozen=True):
    """The state of Spark's job, with its reason and times."""

    state: SparkState = SparkState.OFF
    error: ErrorFacts | None = None
    """While FAILED: the reason."""
    since_ms: int = UNKNOWN
    """When the job entered this state, in epoch ms."""
    next_start_ms: int = UNKNOWN
    """While FAILED: when the job starts again, in epoch ms. UNKNOWN if it only starts when the user asks for
    it."""


class Aggregates(Struct, frozen=True):
    """The part of a view that comes from Spark."""

    status: SparkStatus = field(default_factory=SparkStatus)
    rollups: Rollups = field(default_factory=Rollups)


def no_rows(minute: int, rows: int) -> Block:
    """Return a block in which nothing happened, with `rows` rows."""
    shape = (rows, BLOCK_S)
    return Block(
        minute,
        np.zeros((len(SUMS), *shape), np.int64),
        np.zeros(shape, np.int64),
        np.full(shape, -1, np.int64),
        np.zeros(shape, np.int64),
    )
