"""Watermarks that stand still although they should move. They are recognised by readings alone."""

import numpy as np
from msgspec import Struct

from kview.derive.align import Alignment
from kview.derive.partitions.rates import LOOK_BACK_MS, SETTLE_MS
from kview.model.snapshot import Flags, Longs, Partitions
from kview.model.units import NO_BROKER, UNKNOWN

FROZEN_AFTER_MS = 1_500
"""If records are waiting and the watermark does not move for this long, it is frozen, because followers fetch
at least every 500 ms."""


class Watermarks(Struct, frozen=True):
    """The last reading of each watermark, and since when the watermark has stood still.

    The arrays have the rows of `Partitions`.
    """

    value: Longs
    before_ms: Longs
    """When the value before `value` was last read, epoch ms; UNKNOWN if the watermark was not seen to move
    within SETTLE_MS."""
    waiting_ms: Longs
    """When the log end was first seen beyond the watermark at this value; UNKNOWN if it is not beyond."""

    @staticmethod
    def none(rows: int) -> "Watermarks":
        """Return the state before any reading."""
        unknown = np.full(rows, UNKNOWN, np.int64)
        return Watermarks(unknown, unknown, unknown)


def follow(
    before: Watermarks, last_read_ms: Longs, alignment: Alignment, table: Partitions, now_ms: int
) -> Watermarks:
    """Add this observation's watermarks.

    `last_read_ms` is when they were read in the previous step, with the rows of that step.
    """
    value = alignment.carry(before.value, UNKNOWN)
    known = table.high_watermark != UNKNOWN
    moved = known & (table.high_watermark != value)
    was = value != UNKNOWN
    previous = alignment.carry(last_read_ms, UNKNOWN)
    beyond = known & (table.log_end != UNKNOWN) & (table.log_end > table.high_watermark)
    waiting = alignment.carry(before.waiting_ms, UNKNOWN)
    waiting = np.where(moved | (waiting == UNKNOWN), table.high_watermark_ms, waiting)
    last = np.where(moved, np.where(was, previous, UNKNOWN), alignment.carry(before.before_ms, UNKNOWN))
    return Watermarks(
        np.where(moved, table.high_watermark, value),
        np.where(last > now_ms - SETTLE_MS, last, UNKNOWN),
        np.where(beyond, _clipped(waiting, now_ms), UNKNOWN),
    )


def _clipped(times_ms: Longs, now_ms: int) -> Longs:
    """Return the times, with times before the look-back moved up to its beginning."""
    return np.where(times_ms == UNKNOWN, UNKNOWN, np.maximum(times_ms, now_ms - LOOK_BACK_MS))


def frozen_since(
    marks: Watermarks, table: Partitions, lost_in_isr_since: Longs, leader_lost_since: Longs, unseen: Flags
) -> Longs:
    """Return since when each watermark has been frozen, UNKNOWN if it is not frozen or nobody can tell.

    There are three cases. In the first, the cluster has lost the leader. In the second, it has lost a replica
    that is still in the ISR, and the watermark was not seen to move since that replica fell silent. In the
    third, the leader answers, and records have waited beyond a watermark that did not move for
    FROZEN_AFTER_MS. The watermark of an `unseen` leader, which only fails to answer us, may well move.
    """
    waits = lost_in_isr_since != UNKNOWN
    moved_since = (marks.before_ms != UNKNOWN) & (marks.before_ms >= lost_in_isr_since)
    held_up = waits & ~moved_since
    waiting = marks.waiting_ms != UNKNOWN
    still = waiting & (table.high_watermark_ms - np.where(waiting, marks.waiting_ms, 0) >= FROZEN_AFTER_MS)
    out = np.where(still, marks.waiting_ms, UNKNOWN)
    out = np.where(held_up, lost_in_isr_since, out)
    out = np.where(unseen | (table.leader == NO_BROKER), UNKNOWN, out)
    return np.where(leader_lost_since != UNKNOWN, leader_lost_since, out)
