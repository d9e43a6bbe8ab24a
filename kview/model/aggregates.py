"""What Spark calculates from a recording: one-second roll-ups, and the state of the job that calculates them.

All figures of a roll-up are integers that can be summed: over seconds, over partitions, and over the batches
in which they arrive. Rates, wider windows, skew and percentiles are derived from these sums
(`kview.derive.windows`).
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from kview.errors import ErrorFacts
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

BLOCK_S = 60
"""Seconds per block of roll-ups. The block that changes each second is copied, while older blocks are
shared."""

SET_BACK_MS = 2_000
"""If an observation ends this much before an earlier one, the clock was set back in between."""


class Kind(StrEnum):
    """The subject of a roll-up.

    CLUSTER, BROKER and RACK count the user's topics, and INTERNAL counts the others.
    """

    CLUSTER = "cluster"
    INTERNAL = "internal"
    TOPIC = "topic"
    BROKER = "broker"
    """Counted for the partition's leader at the time. The key is the broker id as text."""
    RACK = "rack"
    """Counted for the leader's rack, '' if the broker has no rack."""
    GROUP = "group"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The subject of a roll-up, with its name; '' for CLUSTER and INTERNAL."""

    kind: Kind
    name: str = ""


class Sum(StrEnum):
    """The columns of a roll-up that are sums over partitions, in the order of `Block.sums`."""

    RECORDS_IN = "records_in"
    CENTIBYTES_IN = "centibytes_in"
    """An estimate: records × the leader's size ÷ offsets held, in hundredths of a byte, so that sums are
    exact."""
    REPLICATED = "replicated"
    """The number of records by which the followers' logs grew."""
    CROSS_RACK = "cross_rack"
    """The part of `REPLICATED` between a leader and a follower in different racks."""
    RECORDS_OUT = "records_out"
    """Counted from commits, spread over the time since the group's previous commit for that partition."""
    ACTIVE_MS = "active_ms"
    """Milliseconds × partitions with incoming records. Divided by 1000, the number of active partitions."""
    TRUNCATED = "truncated"
    RECORDS_IN_GAP = "records_in_gap"
    """Records whose interval is too long, or zero, for a rate. They count in the second in which they were
    seen."""
    REWOUND = "rewound"
    RECORDS_OUT_GAP = "records_out_gap"
    OFFLINE_MS = "offline_ms"
    """Milliseconds × partitions without a leader. The next three sums are counted likewise."""
    SILENT_MS = "silent_ms"
    UNDER_MIN_ISR_MS = "under_min_isr_ms"
    UNDER_REPLICATED_MS = "under_replicated_ms"


SUMS = tuple(Sum)


@dataclass(frozen=True, slots=True)
class Block:
    """The roll-ups of one minute.

    The rows are those of `Rollups.keys` that were known at the time. A later key has no row, which means 0.
    Do not write to the arrays.
    """

    minute: int
    """The number of the minute: epoch seconds ÷ BLOCK_S."""
    sums: Longs
    """The sums: [len(SUMS), rows, BLOCK_S]."""
    hottest_rate: Longs
    """[rows, BLOCK_S]: the highest rate of a single partition in that second, in whole records per second.
    These are incoming records, or outgoing records for groups."""
    hottest: Longs
    """[rows, BLOCK_S]: the partition with that rate, as an index into `Rollups.partitions`; −1 if there is
    none."""
    topic_partitions: Longs
    """[rows, BLOCK_S]: the number of partitions of a TOPIC, as stated in its records; 0 for other kinds."""


@dataclass(frozen=True, slots=True)
class Rollups:
    """One-second roll-ups. Later roll-ups share the blocks that did not change."""

    keys: tuple[Key, ...] = ()
    partitions: tuple[tuple[str, int], ...] = ()
    """The (topic, partition) pairs that `Block.hottest` refers to."""
    blocks: tuple[Block, ...] = ()
    """The blocks, oldest first. Minutes without any roll-up are left out."""
    from_ms: int = UNKNOWN
    """The first moment covered, UNKNOWN if there is none. Everything that the size limit dropped is
    earlier."""
    until_ms: int = UNKNOWN
    """The end of the last observation covered. The second in which it ended, and later ones, are still
    incomplete."""


class SparkState(StrEnum):
    """The state of Spark's job."""

    OFF = "off"
    """The job is disabled (`--no-spark`)."""
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    """The job has ended. It starts again at `SparkStatus.next_start_ms`, or when the user asks for it."""


@dataclass(frozen=True, slots=True)
class SparkStatus:
    """The state of Spark's job, with its reason and times."""

    state: SparkState = SparkState.OFF
    error: ErrorFacts | None = None
    """While FAILED: the reason."""
    since_ms: int = UNKNOWN
    """When the job entered this state."""
    delay_ms: int = UNKNOWN
    """While RUNNING: the time from the end of the last observation in the roll-ups to their arrival."""
    next_start_ms: int = UNKNOWN
    """While FAILED: when the job starts again. UNKNOWN if it only starts when the user asks for it."""


@dataclass(frozen=True, slots=True)
class Aggregates:
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
