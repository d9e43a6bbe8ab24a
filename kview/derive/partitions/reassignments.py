"""Reassignments: which replicas are added and removed, what is left to copy, and how long that takes."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment, rows_at
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.view import LongMatrix, MoveFigures, PartitionFigures
from kview.model.snapshot import Flags, Longs, Partitions, Reassignments, Snapshot
from kview.model.units import UNKNOWN

FlagMatrix = NDArray[np.bool_]

POINT_EVERY_MS = 10_000
"""How often the records left are kept. The speed of a reassignment is taken over at least this time."""

SPEED_OVER_MS = 60_000
"""The speed is taken over at most this time, unless observations are further apart."""


def reassigning(snapshot: Snapshot) -> Flags:
    """Return the partitions that a reassignment is moving."""
    table, moves = snapshot.partitions, snapshot.reassignments
    moved = np.zeros(len(table), np.bool_)
    rows = rows_at(table, moves.topic, moves.partition)
    moved[rows[rows >= 0]] = True
    return moved


def changing(table: Partitions, moves: Reassignments) -> tuple[FlagMatrix, FlagMatrix]:
    """Return which replicas reassignments add, and which they remove, as matrices of the shape of `replicas`.

    What is no longer among the replicas does not count: the reassignment has ended since it was listed.
    """
    added, removed = np.zeros((2, *table.replicas.shape), np.bool_)
    rows = rows_at(table, moves.topic, moves.partition)
    there = rows >= 0
    replicas = table.replicas[rows[there]]
    for mask, ids in ((added, moves.adding[there]), (removed, moves.removing[there])):
        mask[rows[there]] = (
            (replicas[:, :, None] == ids[:, None, :]) & (replicas >= 0)[:, :, None]
        ).any(2)  # fmt: skip
    return added, removed


class Move(Struct, frozen=True):
    """The reassignment of a partition: the brokers of its replicas before and after."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def move_of(table: Partitions, figures: PartitionFigures, row: int) -> Move:
    """Return where the replicas of a partition are moved from and to."""
    ids = table.replicas[row]
    is_before, is_after = ~figures.being_added[row], ~figures.being_removed[row]
    before, after = (tuple(ids[(ids >= 0) & mask].tolist()) for mask in (is_before, is_after))
    return Move(before, after)


def records_left(table: Partitions, waiting: FlagMatrix, lag: LongMatrix) -> tuple[Longs, Flags]:
    """Return how many records the replicas that are `waiting` have to copy, and whether that is a lower
    bound, because the lag of some of them is not known.

    A new replica begins at the log's start, not at offset 0. UNKNOWN if nothing is known.
    """
    whole = np.where(table.log_start == UNKNOWN, table.log_end, table.log_end - table.log_start)
    known = waiting & (lag != UNKNOWN)
    left = np.where(known, np.clip(lag, 0, np.maximum(whole, 0)[:, None]), 0).sum(1)
    unread = (waiting & ~known).any(1)
    nothing = unread & ~known.any(1)
    return np.where(nothing, UNKNOWN, left), unread & ~nothing


def bytes_left(table: Partitions, waiting: FlagMatrix, sizes: LongMatrix) -> Longs:
    """Return how many bytes these replicas have to copy, by the sizes of the logs, UNKNOWN if one is not
    known."""
    leads = (table.replicas == table.leader[:, None]) & (table.leader >= 0)[:, None]
    leader = np.where(leads, sizes, UNKNOWN).max(1, initial=UNKNOWN)[:, None]
    known = (sizes != UNKNOWN) & (leader != UNKNOWN)
    left = np.where(waiting & known, np.maximum(np.where(known, leader, 0) - sizes, 0), 0).sum(1)
    return np.where((waiting & ~known).any(1), UNKNOWN, left)


class Progress(Struct, frozen=True):
    """The records left at earlier moments, from which the speed follows. Empty if nothing moves.

    Each point has the rows of the partitions, UNKNOWN where nothing is moved or the number is a bound.
    """

    points: tuple[tuple[int, Longs], ...] = ()

    def carried(self, rows: Alignment, now_ms: int) -> "Progress":
        """Return the points that are not too old, with the rows of the next snapshot."""
        if not self.points:
            return self
        kept = [(at, left) for at, left in self.points if now_ms - at <= SPEED_OVER_MS]
        kept = kept or [(at, left) for at, left in self.points[-1:] if now_ms - at <= LOOK_BACK_MS]
        return Progress(tuple((at, rows.carry(left, UNKNOWN)) for at, left in kept))

    def is_due(self, now_ms: int) -> bool:
        """Return whether a point is wanted: the first observation in each POINT_EVERY_MS makes one."""
        return not self.points or now_ms // POINT_EVERY_MS != self.points[-1][0] // POINT_EVERY_MS

    def with_point(self, now_ms: int, left: Longs, is_bound: Flags, moving: Flags) -> "Progress":
        """Return the points with a new one."""
        return Progress((*self.points, (now_ms, np.where(moving & ~is_bound, left, UNKNOWN))))

    def time_left_ms(self, now_ms: int, left: Longs, is_bound: Flags) -> Longs:
        """Return how long the rest takes at the speed of the last minute, UNKNOWN if it does not shrink."""
        then, then_ms = np.full(len(left), UNKNOWN), np.zeros(len(left), np.int64)
        for at_ms, points in self.points[::-1]:
            if now_ms - at_ms >= POINT_EVERY_MS:
                known = points != UNKNOWN
                then, then_ms = np.where(known, points, then), np.where(known, at_ms, then_ms)
        shrinks = (left != UNKNOWN) & ~is_bound & (then > left)
        copied = np.where(shrinks, then - np.where(shrinks, left, 0), 1)
        needed_ms = np.where(shrinks, left, 0) * ((now_ms - then_ms) / copied)
        return np.where(shrinks, np.rint(needed_ms).astype(np.int64), UNKNOWN)


def move_figures(
    snapshot: Snapshot, figures: PartitionFigures, sizes: LongMatrix, progress: Progress
) -> MoveFigures:
    """Return what is left of each reassignment."""
    table, moving = snapshot.partitions, reassigning(snapshot)
    unknown, nowhere = np.full(len(table), UNKNOWN), np.zeros(len(table), np.bool_)
    if not moving.any():
        return MoveFigures(moving, unknown, nowhere, unknown, unknown)
    waiting = figures.being_added & ~figures.in_isr
    left, is_bound = records_left(table, waiting, figures.replica_lag)
    time_left_ms = progress.time_left_ms(snapshot.observation.ended_ms, left, is_bound)
    return MoveFigures(
        moving,
        np.where(moving, left, UNKNOWN),
        is_bound & moving,
        np.where(moving, bytes_left(table, waiting, sizes), UNKNOWN),
        np.where(moving, time_left_ms, UNKNOWN),
    )
