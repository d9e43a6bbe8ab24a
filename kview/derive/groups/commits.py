"""Committed offsets over time, as columns that are carried from step to step. `commit_moves` fills them."""

from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.derive.align import Alignment
from kview.derive.history import Thinning, each, held_once
from kview.derive.view import Floats
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

HISTORY_RULE = Thinning(((60_000, 5_000),))
"""A layer every 5 s (the default auto.commit.interval.ms) over the minute that verdicts consider: 13 at
most."""

STOPPED_AFTER_MS = 10_000
"""If a group without members has offsets that moved this recently, something outside any group commits
them."""

PAUSE_MS = 10_000
"""Two default commit intervals: a reader that is at work on a partition moves its offset more often."""

STUCK_AFTER_MS = 30_000
"""If records are waiting, six default commit intervals without a move are not a coincidence."""

LATE_FACTOR = 3
"""A commit is overdue after this many times the longest interval between two that was seen."""

_COUNTERS = ("moves", "passed", "group_moves")
"""Columns of which only differences matter. They start from 0."""


class Reading(Struct, frozen=True):
    """What one observation says about the committed offsets. The arrays have the rows of `Offsets`."""

    committed: Longs
    received_ms: Longs
    fresh: NDArray[np.bool_]
    """Whether the cell was read again since the previous observation."""
    end: Longs
    """The high watermark, the last one known if the partition's leader does not answer."""
    end_ms: Longs
    """When the high watermark was received."""
    lag: Longs
    beyond: Longs
    """How many records the commit lies beyond the leader's log end, 0 if it does not."""
    log_start: Longs
    log_start_ms: Longs
    """When the log start was received."""
    start_then: Longs
    """The newest log start that is known to be at most as new as the commit, UNKNOWN if there is none."""
    write_rate: Floats
    has_members: NDArray[np.bool_]
    """Whether the group has members, as far as is known: also while nobody knows."""
    simple: NDArray[np.bool_]
    """Whether the group never has members: something commits under its name."""
    joining: NDArray[np.bool_]
    """Whether the group is rebalancing. If it had no members before, none of them has read anything yet."""
    held: NDArray[np.bool_]
    """Whether nobody can read on: the partition's watermark is frozen, its leader is silent or missing, or
    the group waits at the last stable offset."""
    stable_since_ms: Longs
    """Since when the last stable offset has stood still at which the group waits, UNKNOWN if it does not."""
    group: Longs
    """The row of each offset's group, −1 if there is no such group."""
    now_ms: int


class CommitsThen(Struct, frozen=True):
    """The committed offsets at a moment of the past. The arrays have the rows of `Offsets`."""

    at_ms: int
    committed: Longs
    received_ms: Longs
    moved_ms: Longs
    moves: Longs
    passed: Longs
    lag_left: Longs
    group_lag: Longs
    group_size: Longs
    group_moves: Longs


class Commits(Struct, frozen=True):
    """What is known about the past of each committed offset.

    The arrays have the rows of `Offsets`, with UNKNOWN for what was not seen.
    """

    committed: Longs
    received_ms: Longs
    still_since_ms: Longs
    """When the offset was first read with this value."""
    waits_ms: Longs
    """When records were first seen to wait beyond this value, UNKNOWN if none wait."""
    interval_ms: Longs
    """The time between the last two moves, of that in which records waited or may have waited unseen; UNKNOWN
    before the second move."""
    cadence_ms: Longs
    """The longest such interval, without one that was an outage, UNKNOWN before there is one."""
    pause_from_ms: Longs
    """When the row's last pause began: the last PAUSE_MS or more between two moves in which records waited
    all along."""
    pause_to_ms: Longs
    moved_ms: Longs
    """When the offset was last seen to change, UNKNOWN if it was never seen to change."""
    moves: Longs
    passed: Longs
    """How far the group has read, as a counter. Unlike the offset, it leaves out what a reset or a deletion
    skipped."""
    lag_left: Longs
    """The lag when the offset was last seen to have moved."""
    rest_end: Longs
    """The high watermark when the offset was first read with this value."""
    gap_ms: Longs
    """The time between the offset's last two readings. The traffic of that time is the error of
    `lag_left`."""
    resumed_ms: Longs
    """When readings resumed after they had last stopped. When a move of that time happened is not known."""
    rewound_from: Longs
    """The offset from which the group fell back, until the group reaches that offset again."""
    fell_ms: Longs
    """When the offset last fell back."""
    reset_ms: Longs
    """When the offset was last reset, forwards or backwards."""
    reset_from: Longs
    overran_ms: Longs
    """When the offset last skipped deleted records, from below the log start to or beyond it."""
    overran_from: Longs
    below: Longs
    """1 if the last reading was below the log start of its time, 0 if not."""
    purged_ms: Longs
    """When the offset and the log start last passed each other at the group's usual pace, because the group
    deletes what it has read."""
    nobody: Longs
    """1 if nobody could commit as a member at the last reading, 0 if somebody could."""
    alone_ms: Longs
    """When the offset last moved while nobody could commit as a member."""
    group_lag: Longs
    """The sum of the lags of the row's group, UNKNOWN if a lag in it is unknown."""
    group_size: Longs
    """The number of rows in that sum."""
    group_moves: Longs
    """A counter of the observations in which an offset of the row's group moved."""
    history: tuple[CommitsThen, ...]

    @property
    def leapt_ms(self) -> Longs:
        """When the offset last went to another place without reading: a reset, or skipped records."""
        return np.maximum(self.reset_ms, self.overran_ms)

    @staticmethod
    def none(rows: int) -> "Commits":
        """Return the state before any reading."""
        columns = {
            name: np.full(rows, _fill(name)) for name in Commits.__struct_fields__ if name != "history"
        }
        return Commits(**columns, history=())


def _fill(name: str) -> int:
    return 0 if name in _COUNTERS else UNKNOWN


def carried(commits: Commits, alignment: Alignment) -> Commits:
    """Return `commits` in this step's rows. A column that several moments share is carried once."""
    if alignment.rows is None:
        return commits
    held: dict[tuple[int, int], NDArray[Any]] = {}

    def column(name: str, then: NDArray[Any]) -> NDArray[Any]:
        of = id(then), _fill(name)
        if of not in held:
            held[of] = held_once(alignment.carry(then, _fill(name)))
        return held[of]

    def columns(of: Commits | CommitsThen) -> dict[str, Any]:
        names = [name for name in of.__struct_fields__ if name not in ("history", "at_ms")]
        return {name: column(name, getattr(of, name)) for name in names}

    history = each(commits.history, lambda then: replace(then, **columns(then)))
    return Commits(**columns(commits), history=history)
