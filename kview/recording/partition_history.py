"""Reads from a recording who led a partition, and who was in sync."""

import time
from collections.abc import Callable

import numpy as np

from kview.model.history import Led, PartitionHistory
from kview.model.units import UNKNOWN
from kview.recording.columns import Array
from kview.recording.reader import Recording

MOST_CHANGES = 500
"""Limit of the changes returned. A person reads them."""
READS_FOR_S = 5.0
"""Limit of the time for reading, because the segments of an hour of a large cluster take some seconds."""

_COLUMNS = tuple(f"partitions.{name}" for name in ("topic", "partition", "leader", "leader_epoch", "isr"))


def partition_history(
    recording: Recording, topic: str, partition: int, clock_s: Callable[[], float] = time.monotonic
) -> PartitionHistory:
    """Return a partition's leaders and ISRs, the newest first, from the end of a recording back.

    While the partition did not exist, it had none. Raises KviewError if the recording is damaged, or a ring
    has dropped what was to be read.
    """
    until_s = clock_s() + READS_FOR_S
    newest_first: list[Led] = []
    since_ms = UNKNOWN
    for observations in recording.columns(_COLUMNS):
        if newest_first and (len(newest_first) >= MOST_CHANGES or clock_s() >= until_s):
            return PartitionHistory(tuple(_changes(newest_first)[:MOST_CHANGES]), since_ms, complete=False)
        states = [
            Led(at_ms, *state)
            for at_ms, columns in observations
            if (state := _state(columns, topic, partition)) is not None
        ]
        newest_first += reversed(states)
        since_ms = observations[0][0] if observations else since_ms
    return PartitionHistory(tuple(_changes(newest_first)), since_ms)


def _state(columns: list[Array], topic: str, partition: int) -> tuple[int, int, tuple[int, ...]] | None:
    """Return a partition's leader, epoch and ISR, None if it is not among the rows."""
    topics, partitions, leader, epoch, isr = columns
    rows = np.flatnonzero((partitions == partition) & (topics == topic))
    if not len(rows):
        return None
    row = int(rows[0])
    return int(leader[row]), int(epoch[row]), tuple(int(broker) for broker in isr[row] if broker >= 0)


def _changes(states: list[Led]) -> list[Led]:
    """Return those of the states, the newest first, that differ from the one before them in time."""
    befores = [*states[1:], None]
    return [
        state
        for state, before in zip(states, befores, strict=False)
        if before is None or _what(state) != _what(before)
    ]


def _what(state: Led) -> tuple[int, int, frozenset[int]]:
    return state.leader, state.epoch, frozenset(state.isr)
