"""Where logs ended at moments of the past, which tell how old the oldest unread record of a group is."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment, rows_at, same, take
from kview.derive.history import Thinning, each, thinned
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.view import Floats
from kview.model.snapshot import Longs, Partitions, TimePoints
from kview.model.units import UNKNOWN

TREND_BACK_MS = 60_000
"""How far back a trend of lag in time goes. Readings are kept for the look-back minus this time, so that the
older figures of a trend do not depend on anything beyond the look-back either."""

POINT_RULE = Thinning(((6_000, 1_000), (30_000, 6_000), (LOOK_BACK_MS - TREND_BACK_MS, 60_000)))
"""At most 22 readings per partition: one every second, then every 6 s, then every minute."""

SEEDS = 8
"""The number of answers of ListOffsets by timestamp kept per partition, the youngest ones. Together with the
readings, a partition has at most 30 points."""


class EndsThen(Struct, frozen=True):
    """Where every partition's log ended in one observation. The arrays have the rows of `Partitions`."""

    at_ms: int
    times_ms: Longs
    ends: Longs


class Points(Struct, frozen=True):
    """Points of (time, log end) by partition: seeds from ListOffsets by timestamp, then readings.

    The arrays have the rows of `Partitions`. `seed_ms` and `seed_ends` are (rows, SEEDS) matrices in order of
    time, with UNKNOWN on the left if there are fewer seeds.
    """

    seed_ms: NDArray[np.int64]
    seed_ends: NDArray[np.int64]
    readings: tuple[EndsThen, ...]

    @staticmethod
    def none(rows: int) -> "Points":
        """Return points without any seed or reading."""
        return Points(np.full((rows, SEEDS), UNKNOWN), np.full((rows, SEEDS), UNKNOWN), ())


def carried(points: Points, alignment: Alignment) -> Points:
    """Return `points` in this step's rows."""
    if alignment.rows is None:
        return points

    def move(then: EndsThen) -> EndsThen:
        return EndsThen(
            then.at_ms, alignment.carry(then.times_ms, UNKNOWN), alignment.carry(then.ends, UNKNOWN)
        )

    return Points(
        alignment.carry(points.seed_ms, UNKNOWN),
        alignment.carry(points.seed_ends, UNKNOWN),
        each(points.readings, move),
    )


def capped(points: Points, fell: NDArray[np.bool_], ends: Longs) -> Points:
    """Lower the points from before a truncation to the log's present end, so that none lies above it."""
    if not fell.any():
        return points
    limit = np.where(fell & (ends != UNKNOWN), ends, np.iinfo(np.int64).max)

    def cut(then: EndsThen) -> EndsThen:
        return EndsThen(then.at_ms, then.times_ms, np.minimum(then.ends, limit))

    return Points(points.seed_ms, np.minimum(points.seed_ends, limit[:, None]), each(points.readings, cut))


def with_reading(points: Points, times_ms: Longs, ends: Longs, now_ms: int) -> Points:
    """Add this observation's readings."""
    layer = EndsThen(now_ms, np.where(ends == UNKNOWN, UNKNOWN, times_ms), ends)
    return Points(points.seed_ms, points.seed_ends, thinned((*points.readings, layer), now_ms, POINT_RULE))


def with_seeds(points: Points, table: Partitions, answers: TimePoints, ends: Longs) -> Points:
    """Replace the seeds by the answers of ListOffsets by timestamp in a snapshot.

    Unknown answers are left out. So are answers at the log start of a log whose beginning was removed,
    because what was written before is not known. Answers above the present end of the log (`ends`) are
    lowered to it.
    """
    rows = rows_at(table, answers.topic, answers.partition)
    start, end = take(table.log_start, rows, UNKNOWN), take(ends, rows, UNKNOWN)
    usable = (rows >= 0) & (answers.offset >= 0) & ((answers.offset > start) | (start == 0))
    capped = np.where(end == UNKNOWN, answers.offset, np.minimum(answers.offset, end))
    order = np.lexsort((answers.timestamp_ms, rows))
    order = order[usable[order]]
    rows = rows[order]
    from_right = np.searchsorted(rows, rows, side="right") - 1 - np.arange(len(rows))
    order, rows, from_right = (column[from_right < SEEDS] for column in (order, rows, from_right))
    out = Points.none(len(table))
    out.seed_ms[rows, SEEDS - 1 - from_right] = answers.timestamp_ms[order]
    out.seed_ends[rows, SEEDS - 1 - from_right] = capped[order]
    return Points(out.seed_ms, out.seed_ends, points.readings)


def seed_rate(points: Points, ends: Longs, times_ms: Longs) -> Floats:
    """Return records per second since the youngest seed, NaN if there is no seed.

    This stands in for the rate until there are two readings.
    """
    seed_ms, seed_ends = points.seed_ms[:, -1], points.seed_ends[:, -1]
    known = (seed_ms != UNKNOWN) & (ends != UNKNOWN) & (times_ms > seed_ms)
    elapsed = np.where(known, times_ms - seed_ms, 1)
    return np.where(known, (np.where(known, ends - seed_ends, 0)) * 1000.0 / elapsed, np.nan)


def same_answers(a: TimePoints, b: TimePoints) -> bool:
    """Return whether two observations have the same answers of ListOffsets by timestamp."""
    return a is b or (same(a.received_ms, b.received_ms) and same(a.timestamp_ms, b.timestamp_ms))


def of_rows(points: Points, rows: Longs) -> list[tuple[Longs, Longs]]:
    """Return the points of `rows`, which are all known, as columns of times and log ends: first the seeds."""
    if not len(points.seed_ms):
        return []
    seed_ms, seed_ends = points.seed_ms[rows], points.seed_ends[rows]
    seeds = np.flatnonzero((seed_ms != UNKNOWN).any(0)).tolist()
    return [
        *((seed_ms[:, seed], seed_ends[:, seed]) for seed in seeds),
        *((then.times_ms[rows], then.ends[rows]) for then in points.readings),
    ]
