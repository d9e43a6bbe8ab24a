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
from kview.model.sums import BLOCK_S, SUMS, Kind
from kview.model.units import UNKNOWN

SET_BACK_MS = 2_000
"""If an observation ends this much before an earlier one, the clock was set back in between."""


class Key(Struct, frozen=True, order=True):
    """The kind and the name of a roll-up's subject. The name is '' for CLUSTER and INTERNAL."""

    kind: Kind
    name: str = ""


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
