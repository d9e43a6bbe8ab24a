"""Records that were deleted before a group read them: between its committed offset and the log start."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment
from kview.derive.groups.commits import Commits, Reading
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.model.snapshot import Longs
from kview.model.units import NO_OFFSET, UNKNOWN

PAST_AFTER_MS = 60_000
"""A loss stays a finding until the offset has been at or past the log start for this long."""

_ABOVE, _BELOW = 0, 1


class LogStarts(Struct, frozen=True):
    """The log starts of the offsets' partitions in one observation. The arrays have the rows of `Offsets`."""

    offset: Longs
    received_ms: Longs


class Losses(Struct, frozen=True):
    """What each row's group lost. The arrays have the rows of `Offsets`."""

    gap: Longs
    """The records between the committed offset and the log start, 0 if the offset is not below it."""
    side: Longs
    """Whether the offset was below the log start (1) or not (0) in the last reading, UNKNOWN if not known."""
    fell_below_ms: Longs
    """When the log start was seen to overtake the offset, UNKNOWN if it was not seen."""
    skipped: Longs
    """The records that the group skipped because they were gone, until it has been past them for a while."""
    skipped_ms: Longs
    exact: NDArray[np.bool_]
    """Whether the number of lost records is exact: the log start was read after the offset, which had come to
    rest."""
    new: Longs
    """The records whose loss this observation shows for the first time."""

    @staticmethod
    def none(rows: int) -> "Losses":
        """Return the state before any reading."""
        unknown, zero = np.full(rows, UNKNOWN), np.zeros(rows, np.int64)
        return Losses(zero, unknown, unknown, zero, unknown, np.zeros(rows, np.bool_), zero)

    @property
    def records(self) -> Longs:
        """The number of records lost to the group, a lower bound unless it is `exact`."""
        return np.maximum(self.gap, self.skipped)

    def carried(self, alignment: Alignment) -> "Losses":
        """Return the same losses in this step's rows."""
        return Losses(
            alignment.carry(self.gap, 0),
            alignment.carry(self.side, UNKNOWN),
            alignment.carry(self.fell_below_ms, UNKNOWN),
            alignment.carry(self.skipped, 0),
            alignment.carry(self.skipped_ms, UNKNOWN),
            alignment.carry(self.exact, False),
            alignment.carry(self.new, 0),
        )


def start_then(
    now: LogStarts, then: LogStarts, received_ms: Longs, began_ms: int, then_began_ms: int
) -> Longs:
    """Return the newest log start that is known to be at most as new as each commit, UNKNOWN if none is.

    A group may commit and then delete what it has read, up to the commit. So a log start that was read after
    a commit may lie above it, although nothing was lost. `then` are the log starts in the previous
    observation, which began at `then_began_ms`. A commit that was received before the present observation
    began was asked for in the previous one, and may be as old as that.
    """
    as_of = np.where(received_ms >= began_ms, received_ms, np.minimum(received_ms, then_began_ms))
    old = np.where(then.offset == UNKNOWN, UNKNOWN, np.minimum(then.offset, now.offset))
    old = np.where((then.received_ms != UNKNOWN) & (then.received_ms <= as_of), old, UNKNOWN)
    return np.where((now.received_ms != UNKNOWN) & (now.received_ms <= as_of), now.offset, old)


def follow(before: Losses, commits: Commits, now: Reading) -> Losses:
    """Add this observation's readings. `commits` includes them. A cell that was not read again changes
    nothing."""
    floor = now.now_ms - LOOK_BACK_MS
    has = now.committed > NO_OFFSET
    judged = now.fresh & has & (now.start_then != UNKNOWN)
    gap = np.maximum(np.where(judged, now.start_then - now.committed, before.gap), 0)
    side = np.where(judged, np.where(gap > 0, _BELOW, _ABOVE), before.side)
    gap, side = np.where(has, gap, 0), np.where(has, side, UNKNOWN)
    overtaken = (before.side == _ABOVE) & (side == _BELOW)
    fell_below_ms = np.where(overtaken, now.now_ms, np.where(side == _BELOW, before.fell_below_ms, UNKNOWN))

    just = now.fresh & (commits.overran_ms == now.received_ms) & (commits.overran_ms != UNKNOWN)
    skipped = np.where(just, now.log_start - np.where(just, commits.overran_from, 0), before.skipped)
    skipped_ms = np.where(just, commits.overran_ms, before.skipped_ms)
    passed_ms = np.where(skipped_ms == UNKNOWN, 0, now.received_ms - skipped_ms)
    past = (skipped_ms <= floor) | ((gap == 0) & (passed_ms >= PAST_AFTER_MS))
    known_records = np.maximum(before.gap, before.skipped)
    rested = judged & (gap > 0) & (commits.still_since_ms <= now.log_start_ms)
    rested &= gap == now.log_start - now.committed
    exact = np.where(gap > 0, rested | (before.exact & (gap == before.gap) & ~judged), before.exact)
    exact &= ~just | (skipped == known_records)
    new = np.where(overtaken, gap, np.where(just, np.maximum(skipped - known_records, 0), 0))
    return Losses(
        gap,
        side,
        np.where(fell_below_ms <= floor, UNKNOWN, fell_below_ms),
        np.where(past, 0, skipped),
        np.where(past, UNKNOWN, skipped_ms),
        exact,
        new,
    )


def abandoned(
    losses: Losses, commits: Commits, empty: NDArray[np.bool_], group: Longs, groups: int
) -> NDArray[np.bool_]:
    """Return which rows belong to an abandoned group.

    That is a group without members whose offsets all lie below the log start, were not seen to move, and were
    below it before kview began to watch. `empty` says whether each row's group is Empty, `group` is the row's
    group, −1 for none, and `groups` the number of groups.
    """
    has = (group >= 0) & (commits.committed > NO_OFFSET)
    idle = (losses.side == _BELOW) & (losses.fell_below_ms == UNKNOWN) & (commits.moved_ms == UNKNOWN)
    rows = np.bincount(group[has], minlength=groups)
    gone = np.bincount(group[has & idle & empty], minlength=groups)
    whole = (rows > 0) & (gone == rows)
    return has & whole[np.where(group >= 0, group, 0)] if groups else np.zeros(len(group), np.bool_)
