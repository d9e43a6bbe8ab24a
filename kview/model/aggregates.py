"""What Spark makes of a recording: one-second roll-ups, and how the job that makes them is doing.

A roll-up's figures are whole numbers that add up: over seconds, over partitions, and over the pieces in which
they arrive. Rates, wider windows, skew and percentiles are calculated from them (`kview.derive.windows`).
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from kview.errors import ErrorFacts
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

BLOCK_S = 60
"""Seconds a block of roll-ups holds: what changes in a second is copied, what is older is shared."""

SET_BACK_MS = 2_000
"""An observation that ended so long before an earlier one was made after the clock was set back."""


class Kind(StrEnum):
    """What a roll-up is about. CLUSTER, BROKER and RACK count the user's topics; INTERNAL is the sum of the
    others."""

    CLUSTER = "cluster"
    INTERNAL = "internal"
    TOPIC = "topic"
    BROKER = "broker"
    """By the partitions' leader at the time; its key is the id as text."""
    RACK = "rack"
    """By the leader's rack, '' where a broker has none."""
    GROUP = "group"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Who a roll-up is about; `name` is '' for CLUSTER and INTERNAL."""

    kind: Kind
    name: str = ""


class Sum(StrEnum):
    """A roll-up's columns that are sums over partitions, in the order in which blocks hold them."""

    RECORDS_IN = "records_in"
    CENTIBYTES_IN = "centibytes_in"
    """≈ records × the leader's size ÷ offsets held, in hundredths of a byte, which add up exactly."""
    REPLICATED = "replicated"
    """Records that followers' logs grew by."""
    CROSS_RACK = "cross_rack"
    """The part of it between a leader and a follower of different racks."""
    RECORDS_OUT = "records_out"
    """By commits, spread back over the time since the previous change of each."""
    ACTIVE_MS = "active_ms"
    """Partitions with records in, × milliseconds: ÷ 1000 is how many were active."""
    TRUNCATED = "truncated"
    RECORDS_IN_GAP = "records_in_gap"
    """Records whose interval is too long, or of no length, to have a rate; in the second they were seen."""
    REWOUND = "rewound"
    RECORDS_OUT_GAP = "records_out_gap"
    OFFLINE_MS = "offline_ms"
    """Partitions × milliseconds without a leader; the next three alike."""
    SILENT_MS = "silent_ms"
    UNDER_MIN_ISR_MS = "under_min_isr_ms"
    UNDER_REPLICATED_MS = "under_replicated_ms"


SUMS = tuple(Sum)


@dataclass(frozen=True, slots=True)
class Block:
    """The roll-ups of one minute. Rows are the first of `Rollups.keys`, as many as were known then; a row
    that is not there is 0. Arrays are not to be written to."""

    minute: int
    """Epoch seconds ÷ BLOCK_S."""
    sums: Longs
    """[len(SUMS), rows, BLOCK_S]"""
    hottest_rate: Longs
    """[rows, BLOCK_S]: the greatest rate of one partition in that second, whole records per second; of
    records in, for groups out."""
    hottest: Longs
    """[rows, BLOCK_S]: which partition that is, a place in `Rollups.partitions`; −1 where none is."""
    topic_partitions: Longs
    """[rows, BLOCK_S]: for TOPIC, how many partitions it has, as far as its records said; else 0."""


@dataclass(frozen=True, slots=True)
class Rollups:
    """One-second roll-ups. A later one shares the blocks that did not change."""

    keys: tuple[Key, ...] = ()
    partitions: tuple[tuple[str, int], ...] = ()
    """(topic, partition) that were hottest somewhere."""
    blocks: tuple[Block, ...] = ()
    """Oldest first; a minute without any is left out."""
    from_ms: int = UNKNOWN
    """The first moment that they tell of, UNKNOWN while there is none; what a bound has cut off is not
    before it."""
    until_ms: int = UNKNOWN
    """The end of the last observation in them: later seconds, and that one's own, are not whole yet."""


class SparkState(StrEnum):
    """What the job is doing."""

    OFF = "off"
    """Not wanted (`--no-spark`)."""
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    """It ended; it is started again at `SparkStatus.next_start_ms`, or by key."""


@dataclass(frozen=True, slots=True)
class SparkStatus:
    """How the job is doing."""

    state: SparkState = SparkState.OFF
    error: ErrorFacts | None = None
    """For FAILED: why."""
    since_ms: int = UNKNOWN
    """Since when it is in this state."""
    delay_ms: int = UNKNOWN
    """While RUNNING: from the end of the last observation in the roll-ups to their arrival."""
    next_start_ms: int = UNKNOWN
    """While FAILED: when it is started again; UNKNOWN: by key alone."""


@dataclass(frozen=True, slots=True)
class Aggregates:
    """What a picture carries of Spark's."""

    status: SparkStatus = field(default_factory=SparkStatus)
    rollups: Rollups = field(default_factory=Rollups)


def no_rows(minute: int, rows: int) -> Block:
    """A block in which nothing has happened."""
    shape = (rows, BLOCK_S)
    return Block(
        minute,
        np.zeros((len(SUMS), *shape), np.int64),
        np.zeros(shape, np.int64),
        np.full(shape, -1, np.int64),
        np.zeros(shape, np.int64),
    )
