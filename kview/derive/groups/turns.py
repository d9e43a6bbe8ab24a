"""Which partitions of a group are stuck, although their reader is alive.

A reader that takes its partitions one after the other leaves each of them alone for a cycle. A partition is
stuck only if it has waited for longer than that.
"""

import numpy as np
from numpy.typing import NDArray

from kview.derive.groups.commits import PAUSE_MS, STUCK_AFTER_MS, Commits
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

UNSEEN_TURN_MS = 120_000
"""If a reader is at work on few of its rows, it may come to the others when these are done."""

CYCLE_FACTOR = 1.5
"""Cycles vary, so a partition is stuck only after this many times the longest one seen."""


def cadence(commits: Commits, group: Longs, groups: int) -> Longs:
    """Return for each row the longest time between two moves of a row of its group, while records waited.

    UNKNOWN before two moves were seen. `group` is the row of each offset's group, or −1.
    """
    longest = np.full(groups + 1, UNKNOWN)
    np.maximum.at(longest, group, commits.cadence_ms)
    return np.where(group >= 0, longest[group], commits.cadence_ms)


def stuck(commits: Commits, candidates: NDArray[np.bool_], readers: Longs, now_ms: int) -> NDArray[np.bool_]:
    """Return which of the candidates have waited for too long.

    `candidates` are rows with waiting records whose group has members. `readers` numbers the rows' readers
    from 0: one for each member of a group. If a reader moved none of its rows for STUCK_AFTER_MS and for
    CYCLE_FACTOR × its longest pause, all rows that waited this long are stuck. Otherwise a row is stuck if it
    waited for longer than STUCK_AFTER_MS and CYCLE_FACTOR × the longest pause of the reader's rows. As long
    as no pause has ended and the reader is at work on few of its rows, they may take turns: then a row is
    stuck only after UNSEEN_TURN_MS, and if another row has begun to pause, only after the whole look-back.
    """
    size = len(candidates)
    if not size:
        return np.zeros(0, np.bool_)
    many = int(readers.max()) + 1
    waited = np.where(commits.waits_ms == UNKNOWN, 0, commits.received_ms - commits.waits_ms)
    waited = np.where(candidates, np.minimum(waited, LOOK_BACK_MS), 0)
    rests = _last_move(commits, readers) <= commits.received_ms - STUCK_AFTER_MS
    cycle = _cycle(commits, readers, now_ms)
    seen = commits.moved_ms != UNKNOWN
    paused = candidates & seen & (waited >= PAUSE_MS)
    at_work = seen & (commits.moved_ms > commits.received_ms - PAUSE_MS)
    others = np.bincount(readers, paused, many)[readers] - paused
    few = np.bincount(readers, at_work, many) * 2 <= np.bincount(readers, candidates | at_work, many)
    turning = few[readers] & (cycle == 0)
    limit = np.maximum(STUCK_AFTER_MS, CYCLE_FACTOR * cycle)
    limit = np.where(turning, np.where(others > 0, LOOK_BACK_MS, UNSEEN_TURN_MS), limit)
    resting_limit = np.maximum(STUCK_AFTER_MS, CYCLE_FACTOR * cycle)
    return candidates & (waited >= np.where(rests, resting_limit, limit))


def resting(commits: Commits, readers: Longs, now_ms: int) -> NDArray[np.bool_]:
    """Return the rows whose reader has moved none of its rows for longer than PAUSE_MS and than its cycle."""
    if not len(readers):
        return np.zeros(0, np.bool_)
    limit = np.maximum(PAUSE_MS, CYCLE_FACTOR * _cycle(commits, readers, now_ms))
    last = np.maximum(_last_move(commits, readers), commits.still_since_ms)
    return np.asarray((last != UNKNOWN) & (commits.received_ms - np.where(last == UNKNOWN, 0, last) > limit))


def _last_move(commits: Commits, readers: Longs) -> Longs:
    """Return for each row when its reader last moved any of its rows."""
    last = np.full(int(readers.max()) + 1, UNKNOWN)
    np.maximum.at(last, readers, commits.moved_ms)
    return last[readers]


def _cycle(commits: Commits, readers: Longs, now_ms: int) -> Longs:
    """Return for each row the longest pause of its reader's rows in the look-back, 0 if none has ended."""
    whole = commits.pause_from_ms > now_ms - LOOK_BACK_MS
    longest = np.zeros(int(readers.max()) + 1, np.int64)
    np.maximum.at(longest, readers, np.where(whole, commits.pause_to_ms - commits.pause_from_ms, 0))
    return longest[readers]
