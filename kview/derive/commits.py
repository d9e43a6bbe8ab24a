"""Committed offsets over time: when they moved or fell back, and how much lag was left each time."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from kview.derive.align import Alignment
from kview.derive.history import Thinning, each, thinned
from kview.derive.rates import LOOK_BACK_MS, STALE_RATE_MS
from kview.derive.view import Floats
from kview.model.snapshot import Longs
from kview.model.units import NO_OFFSET, UNKNOWN

HISTORY_RULE = Thinning(((60_000, 5_000),))
"""A layer every 5 s (the default auto.commit.interval.ms) over the minute that verdicts consider: 13 at
most."""

READ_WINDOW_MS = 20_000
"""Reading rates are averaged over this time: four commits at the default interval."""

MIN_MOVES = 2
"""The fewest moves that show a trend, because a single commit after a pause shows none."""

TREND_MIN_SPAN_MS = 30_000
"""A shorter history does not show a lag trend."""


@dataclass(frozen=True, slots=True)
class CommitsThen:
    """The committed offsets at a moment of the past. The arrays have the rows of `Offsets`."""

    at_ms: int
    committed: Longs
    received_ms: Longs
    moved_ms: Longs
    moves: Longs
    lag_left: Longs


@dataclass(frozen=True, slots=True)
class Commits:
    """What is known about the past of each committed offset.

    The arrays have the rows of `Offsets`, with UNKNOWN for what was not seen.
    """

    committed: Longs
    received_ms: Longs
    still_since_ms: Longs
    """When the offset was first read with this value."""
    moved_ms: Longs
    """When the offset was last seen to change, UNKNOWN if it was never seen to change."""
    moves: Longs
    lag_left: Longs
    """The lag when the offset was last seen to have moved."""
    gap_ms: Longs
    """The time between the offset's last two readings. The traffic of that time is the error of
    `lag_left`."""
    rewound_from: Longs
    """The offset from which the group fell back, until the group reaches that offset again."""
    fell_ms: Longs
    """When the offset last fell back."""
    history: tuple[CommitsThen, ...]

    @staticmethod
    def none(rows: int) -> "Commits":
        """Return the state before any reading."""
        columns = {
            f.name: np.full(rows, UNKNOWN) for f in fields(Commits) if f.name not in ("history", "moves")
        }
        return Commits(**columns, moves=np.zeros(rows, np.int64), history=())


def carried(commits: Commits, alignment: Alignment) -> Commits:
    """Return `commits` in this step's rows."""
    if alignment.rows is None:
        return commits

    def columns(of: Commits | CommitsThen) -> dict[str, Any]:
        names = [f.name for f in fields(of) if f.name not in ("history", "at_ms")]
        return {name: alignment.carry(getattr(of, name), 0 if name == "moves" else UNKNOWN) for name in names}

    history = each(commits.history, lambda then: replace(then, **columns(then)))
    return Commits(**columns(commits), history=history)


def follow(before: Commits, committed: Longs, received_ms: Longs, lag: Longs, now_ms: int) -> Commits:
    """Add this observation's commits. `before` already has the rows of this observation.

    A cell that was not read again changes nothing.
    """
    floor = now_ms - LOOK_BACK_MS
    fresh = received_ms != before.received_ms
    had = before.committed > NO_OFFSET
    gap = np.where(before.received_ms != UNKNOWN, received_ms - before.received_ms, 0)
    first = fresh & ~had & (committed > NO_OFFSET)
    moved = fresh & had & (committed != before.committed)
    fell = moved & (committed < before.committed)
    origin = np.where(fell, np.maximum(before.rewound_from, before.committed), before.rewound_from)
    fell_ms = np.where(fell, received_ms, before.fell_ms)
    recovered = (committed >= origin) | (fell_ms <= floor)
    still = np.where(first | moved, received_ms, before.still_since_ms)
    moved_ms = np.where(moved, received_ms, before.moved_ms)
    now = Commits(
        committed=np.where(fresh, committed, before.committed),
        received_ms=received_ms,
        still_since_ms=np.where(still == UNKNOWN, UNKNOWN, np.maximum(still, floor)),
        moved_ms=np.where(moved_ms <= floor, UNKNOWN, moved_ms),
        moves=before.moves + moved,
        lag_left=np.where(moved, lag, before.lag_left),
        gap_ms=np.where(fresh & (before.received_ms != UNKNOWN), gap, before.gap_ms),
        rewound_from=np.where(recovered, UNKNOWN, origin),
        fell_ms=np.where(fell_ms <= floor, UNKNOWN, fell_ms),
        history=(),
    )
    layer = CommitsThen(now_ms, now.committed, received_ms, now.moved_ms, now.moves, now.lag_left)
    return replace(now, history=thinned((*before.history, layer), now_ms, HISTORY_RULE))


def read_rate(commits: Commits, now_ms: int) -> Floats:
    """Return offsets per second over the last READ_WINDOW_MS.

    NaN until there are two readings, after a rewind, and for old cells. If commits come in jumps, the rate is
    the rate between the jumps, until the next jump is overdue.
    """
    size = len(commits.committed)
    within = [then for then in commits.history[:-1] if then.at_ms >= now_ms - READ_WINDOW_MS]
    if not within:
        return np.full(size, np.nan)
    then = within[0]
    known = (then.committed > NO_OFFSET) & (commits.committed > NO_OFFSET)
    both_moved = known & (then.moved_ms != UNKNOWN) & (commits.moves > then.moves)
    between = np.where(both_moved, commits.moved_ms - then.moved_ms, 0)
    each_ms = between / np.maximum(commits.moves - then.moves, 1)
    idle = np.where(both_moved, commits.received_ms - commits.moved_ms, 0)
    overdue = both_moved & (idle > 1.5 * each_ms)
    elapsed = np.where(
        both_moved, between + np.where(overdue, idle, 0), commits.received_ms - then.received_ms
    )
    grown = np.where(known, commits.committed - then.committed, 0)
    usable = known & (elapsed > 0) & (commits.received_ms > now_ms - STALE_RATE_MS)
    usable &= commits.fell_ms <= then.received_ms
    return np.where(usable, grown * 1000.0 / np.maximum(elapsed, 1), np.nan)


def lag_growth(commits: Commits, now_ms: int) -> Longs:
    """Return by how much lag grew without falling back.

    That is the least lag left by the commits of the newest third of the last minute − the most lag left by
    those of the oldest third. It is at most 0 if lag did fall. UNKNOWN if less than TREND_MIN_SPAN_MS is
    known, or if the newest third has fewer than MIN_MOVES moves.
    """
    layers = commits.history
    size = len(commits.committed)
    third = len(layers) // 3
    if not third or now_ms - layers[0].at_ms < TREND_MIN_SPAN_MS:
        return np.full(size, UNKNOWN)
    old = np.array([then.lag_left for then in layers[:third]])
    new = np.array([then.lag_left for then in layers[-third:]])
    known = (old != UNKNOWN).all(0) & (new != UNKNOWN).all(0)
    known &= commits.moves - layers[-third - 1].moves >= MIN_MOVES
    return np.where(known, np.where(known, new.min(0), 0) - np.where(known, old.max(0), 0), UNKNOWN)
