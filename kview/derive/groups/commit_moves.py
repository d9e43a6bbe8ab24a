"""What committed offsets did: when they moved, fell back or were reset, how much lag was left, and how fast
they were read."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.derive.groups.commits import (
    HISTORY_RULE,
    LATE_FACTOR,
    PAUSE_MS,
    STOPPED_AFTER_MS,
    STUCK_AFTER_MS,
    Commits,
    CommitsThen,
    Reading,
)
from kview.derive.groups.simple import STILL_MS
from kview.derive.history import held_once, thinned
from kview.derive.partitions.rates import LOOK_BACK_MS, STALE_RATE_MS
from kview.derive.view import Floats
from kview.model.snapshot import Longs
from kview.model.units import NO_OFFSET, UNKNOWN

READ_WINDOW_MS = 20_000
"""Reading rates are averaged over this time: four commits at the default interval."""

TURNS_KEPT = 2
"""The rate of a group that is read in turn, because there are thousands, holds for so many times the time
between its last two readings if that is longer than STALE_RATE_MS, and is averaged over as long. It ends
earlier if the history of a minute does not go back to the reading before the last one."""

RESET_FACTOR = 2.0
"""An offset that rested while nobody could commit as a member, and then skips more than this many times what
was written while it rested, was reset. A reader that is not a member would have committed in between."""

GAP_FACTOR, GAP_LEAST_MS = 3, 2_500
"""If the time between two readings is this many times the time before, and at least this long, readings had
stopped: the process was suspended, or the coordinator did not answer."""

PROMPT_MOVES = 3
"""After this many moves, one between two readings without a record waiting at the first is not by chance: a
reader that commits soon after it reads never leaves a record to be seen."""

UNUSUAL_FACTOR = 5.0
"""An offset that passes the log start at this many times its pace has skipped what was deleted."""


class _Moves(Struct, frozen=True):
    """What the offsets did between two readings, as masks."""

    first: NDArray[np.bool_]
    moved: NDArray[np.bool_]
    fell: NDArray[np.bool_]
    overran: NDArray[np.bool_]
    purged: NDArray[np.bool_]
    reset: NDArray[np.bool_]
    nobody: NDArray[np.bool_]


def _moves(before: Commits, now: Reading) -> _Moves:
    has, had = now.committed > NO_OFFSET, before.committed > NO_OFFSET
    moved = now.fresh & had & has & (now.committed != before.committed)
    fell = moved & (now.committed < before.committed)
    start = now.log_start
    crossed = moved & ~fell & (start != UNKNOWN) & (before.committed < start) & (now.committed >= start)
    unusual = _unusual(before, now, crossed)
    overran = crossed & ((before.below == 1) | (unusual & (before.purged_ms == UNKNOWN)))
    nobody = (~now.has_members & ~now.simple) | (now.joining & (before.nobody == 1))
    reset = fell | _leapt(before, now, moved & ~fell & nobody & (before.nobody == 1))
    reset |= moved & (now.beyond > 0)  # there is nothing to read beyond the end of the log
    first = now.fresh & has & ~had
    return _Moves(first, moved, fell, overran, crossed & ~overran & ~unusual, reset, nobody)


def _unusual(before: Commits, now: Reading, moved: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of the rows that moved went much further than they read until then.

    A group may delete what it has read, as Kafka Streams does: its offset passes the log start at its usual
    pace.
    """
    if not moved.any():
        return moved
    rate = read_rate(before, now.now_ms)
    rate = np.nan_to_num(np.where(np.isnan(rate), _pace(before), rate))
    since_ms = np.where(before.moved_ms == UNKNOWN, before.received_ms, before.moved_ms)
    elapsed_ms = np.where(moved, now.received_ms - since_ms, 0)
    usual = rate * elapsed_ms / 1000
    went = np.where(moved, now.committed - before.committed, 0)
    return np.asarray(moved & (rate > 0) & (went > UNUSUAL_FACTOR * usual), np.bool_)


def _pace(commits: Commits) -> Floats:
    """Return records per second read in the whole history, across gaps, NaN where it has no time."""
    if not commits.history:
        return np.full(len(commits.committed), np.nan)
    then = commits.history[0]
    elapsed_ms = np.where(then.committed > NO_OFFSET, commits.received_ms - then.received_ms, 0)
    grown = commits.passed - then.passed
    return np.where(elapsed_ms > 0, grown * 1000.0 / np.maximum(elapsed_ms, 1), np.nan)


def _leapt(before: Commits, now: Reading, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which candidates, offsets that went forward while nobody could commit as a member, were reset.

    A reader that keeps up without being a member commits what was written since its last commit, no more. A
    reader that is behind may go further, but not once only. What was written is known from the log's ends at
    the readings, because rates of the moment say little about the time before.
    """
    if not candidates.any():
        return candidates
    floor = now.now_ms - LOOK_BACK_MS
    known = candidates & (now.end != UNKNOWN) & (before.rest_end != UNKNOWN)
    written = np.maximum(np.where(known, now.end - before.rest_end, 0), 0)
    went = np.where(candidates, now.committed - before.committed, 0)
    was_read = before.moved_ms != UNKNOWN
    rested = now.received_ms - before.still_since_ms >= STOPPED_AFTER_MS
    leapt = known & (was_read | rested) & (went > RESET_FACTOR * written)
    leapt |= candidates & (before.still_since_ms <= floor)
    return np.asarray(leapt & (before.alone_ms == UNKNOWN), np.bool_)


def follow(before: Commits, now: Reading) -> Commits:
    """Add this observation's commits. `before` already has the rows of this observation.

    A cell that was not read again changes nothing.
    """
    floor, received_ms, committed = now.now_ms - LOOK_BACK_MS, now.received_ms, now.committed
    seen = _moves(before, now)
    fresh, moved = now.fresh, seen.moved
    gap = np.where(before.received_ms != UNKNOWN, received_ms - before.received_ms, 0)
    least_ms = np.maximum(GAP_FACTOR * before.gap_ms, GAP_LEAST_MS)
    stopped = fresh & (before.gap_ms != UNKNOWN) & (gap >= least_ms)
    resumed_ms = np.where(stopped, received_ms, before.resumed_ms)
    origin = np.where(seen.fell, np.maximum(before.rewound_from, before.committed), before.rewound_from)
    fell_ms = np.where(seen.fell, received_ms, before.fell_ms)
    recovered = (committed >= origin) | (fell_ms <= floor)
    still = np.where(seen.first | moved, received_ms, before.still_since_ms)
    moved_ms = np.where(moved, received_ms, before.moved_ms)
    waits_ms = _waiting(before, now, seen)
    regular = moved & (before.waits_ms != UNKNOWN) & (before.moves > 0) & ~seen.reset
    regular &= resumed_ms <= before.waits_ms
    prompt = moved & (before.waits_ms == UNKNOWN) & (before.group_lag != UNKNOWN)
    prompt &= (before.moves >= PROMPT_MOVES) & ~seen.reset & ~stopped
    regular |= prompt
    began_ms = np.where(prompt, before.received_ms, before.waits_ms)
    interval_ms = np.where(regular, received_ms - began_ms, before.interval_ms)
    paused = moved & (before.waits_ms != UNKNOWN) & (before.waits_ms == before.moved_ms)
    paused &= before.waits_ms <= received_ms - PAUSE_MS
    paused &= resumed_ms <= before.waits_ms  # nobody saw how long a pause across a gap was the reader's own
    passed = np.where(moved & ~seen.reset & ~seen.overran, committed - before.committed, 0)
    judged = fresh & (committed > NO_OFFSET) & (now.start_then != UNKNOWN)
    group_lag, group_size, group_moved = _group_sums(now, moved)
    # Each column at once: all of them would be 40 MB with 15,000 groups of twelve partitions.
    commits = Commits(
        committed=held_once(np.where(fresh, committed, before.committed)),
        received_ms=held_once(received_ms),
        still_since_ms=held_once(np.where(still == UNKNOWN, UNKNOWN, np.maximum(still, floor))),
        waits_ms=held_once(waits_ms),
        interval_ms=held_once(interval_ms),
        cadence_ms=held_once(np.where(regular, _cadence(before, now, interval_ms), before.cadence_ms)),
        pause_from_ms=held_once(np.where(paused, before.waits_ms, before.pause_from_ms)),
        pause_to_ms=held_once(np.where(paused, received_ms, before.pause_to_ms)),
        moved_ms=held_once(_young(moved_ms, floor)),
        moves=held_once(before.moves + moved),
        passed=held_once(before.passed + passed),
        lag_left=held_once(np.where(moved, now.lag, before.lag_left)),
        rest_end=held_once(np.where(seen.first | moved, now.end, before.rest_end)),
        gap_ms=held_once(np.where(fresh & (before.received_ms != UNKNOWN), gap, before.gap_ms)),
        resumed_ms=held_once(_young(resumed_ms, floor)),
        rewound_from=held_once(np.where(recovered, UNKNOWN, origin)),
        fell_ms=held_once(_young(fell_ms, floor)),
        reset_ms=held_once(_young(np.where(seen.reset, received_ms, before.reset_ms), floor)),
        reset_from=held_once(np.where(seen.reset, before.committed, before.reset_from)),
        overran_ms=held_once(_young(np.where(seen.overran, received_ms, before.overran_ms), floor)),
        overran_from=held_once(np.where(seen.overran, before.committed, before.overran_from)),
        below=held_once(np.where(judged, committed < now.start_then, before.below)),
        purged_ms=held_once(_young(np.where(seen.purged, received_ms, before.purged_ms), floor)),
        nobody=held_once(np.where(fresh, seen.nobody, before.nobody)),
        alone_ms=held_once(_young(np.where(moved & seen.nobody, received_ms, before.alone_ms), floor)),
        group_lag=held_once(group_lag),
        group_size=held_once(group_size),
        group_moves=held_once(before.group_moves + group_moved),
        history=(),
    )
    layer = _layer(commits, before.history, now.now_ms)
    return replace(commits, history=thinned((*before.history, layer), now.now_ms, HISTORY_RULE))


def _layer(commits: Commits, history: Sequence[CommitsThen], at_ms: int) -> CommitsThen:
    """Return the commits of this moment for the history. Columns that have not changed are those of the last
    layer: thirteen layers of nine columns are 170 MB for 15,000 groups of twelve partitions."""
    columns = {}
    for name in CommitsThen.__struct_fields__:
        if name != "at_ms":
            column = getattr(commits, name)
            last = getattr(history[-1], name) if history else None
            columns[name] = last if last is not None and np.array_equal(last, column) else column
    return CommitsThen(at_ms=at_ms, **columns)


def _young(times_ms: Longs, floor: int) -> Longs:
    """Return times without those at or before `floor`."""
    return np.where(times_ms <= floor, UNKNOWN, times_ms)


def _cadence(before: Commits, now: Reading, interval_ms: Longs) -> Longs:
    """Return the longest interval between moves, with the newest one.

    An interval after which a commit was overdue is an outage, unless the one before it was as long: then the
    reader commits less often than it did.
    """
    least_ms = np.where(now.simple, STILL_MS, STUCK_AFTER_MS)
    outage = before.cadence_ms != UNKNOWN
    outage &= interval_ms > np.maximum(LATE_FACTOR * before.cadence_ms, least_ms)
    counted_ms = np.where(outage, np.minimum(interval_ms, before.interval_ms), interval_ms)
    return np.maximum(before.cadence_ms, counted_ms)


def _waiting(before: Commits, now: Reading, seen: _Moves) -> Longs:
    """Return since when records wait that can be read, as nobody can without leader or at a frozen end."""
    waits = (now.lag != UNKNOWN) & (now.lag > 0)
    begins = seen.moved | seen.first | now.held | (before.waits_ms == UNKNOWN)
    since = np.where(waits, np.where(begins, now.received_ms, before.waits_ms), UNKNOWN)
    return np.where(now.fresh, since, before.waits_ms)


def _group_sums(now: Reading, moved: NDArray[np.bool_]) -> tuple[Longs, Longs, NDArray[np.bool_]]:
    """Return for each row the lag of its group, the number of rows in that sum, and whether any of them
    moved."""
    mine = now.group >= 0
    group = np.where(mine, now.group, 0)
    size = int(group.max(initial=0)) + 1
    counted = mine & (now.committed > NO_OFFSET)
    known = counted & (now.lag != UNKNOWN)
    sums = np.zeros(size, np.int64)
    np.add.at(sums, group[known], now.lag[known])
    rows = np.bincount(group[counted], minlength=size)
    whole = np.bincount(group[known], minlength=size) == rows
    any_moved = np.bincount(group[mine & moved], minlength=size) > 0
    sums = np.where(whole & (rows > 0), sums, UNKNOWN)
    return np.where(mine, sums[group], UNKNOWN), np.where(mine, rows[group], 0), mine & any_moved[group]


def read_rate(commits: Commits, now_ms: int) -> Floats:
    """Return records per second read over the last READ_WINDOW_MS, or TURNS_KEPT turns if that is longer.

    What a reset or a deletion skipped does not count. If commits come in jumps, the rate is the rate between
    the jumps, until the next jump is overdue. NaN until there are two jumps or PAUSE_MS of readings, after a
    rewind, and for old cells. After a gap in the readings, only jumps since then count.
    """
    size = len(commits.committed)
    turns_ms = TURNS_KEPT * commits.gap_ms
    longest_ms = int(turns_ms.max(initial=READ_WINDOW_MS))
    within = [then for then in commits.history[:-1] if then.at_ms >= now_ms - longest_ms]
    if not within or not size:
        return np.full(size, np.nan)
    window_ms: Longs | int = READ_WINDOW_MS
    first = np.zeros(size, np.int64)
    if longest_ms > READ_WINDOW_MS:
        window_ms = np.maximum(READ_WINDOW_MS, turns_ms)
        first = np.searchsorted([then.at_ms for then in within], now_ms - window_ms)
    after_gap = commits.resumed_ms > now_ms - window_ms
    then = _since(within, commits, np.minimum(first, len(within) - 1), after_gap)
    known = (first < len(within)) & (then.committed > NO_OFFSET) & (commits.committed > NO_OFFSET)
    both_moved = known & (then.moved_ms != UNKNOWN) & (commits.moves > then.moves)
    both_moved &= ~after_gap | (then.moved_ms > commits.resumed_ms)
    between = np.where(both_moved, commits.moved_ms - then.moved_ms, 0)
    each_ms = between / np.maximum(commits.moves - then.moves, 1)
    idle = np.where(both_moved, commits.received_ms - commits.moved_ms, 0)
    overdue = both_moved & (idle > 1.5 * each_ms)
    elapsed = np.where(
        both_moved, between + np.where(overdue, idle, 0), commits.received_ms - then.received_ms
    )
    grown = np.where(known, commits.passed - then.passed, 0)
    usable = known & (elapsed > 0)
    usable &= commits.received_ms > now_ms - np.maximum(STALE_RATE_MS, turns_ms)
    long_enough = ~after_gap & (commits.received_ms - then.received_ms >= PAUSE_MS)
    usable &= (commits.fell_ms <= then.received_ms) & (both_moved | long_enough)
    return np.where(usable, grown * 1000.0 / np.maximum(elapsed, 1), np.nan)


def _since(
    within: Sequence[CommitsThen], commits: Commits, first: Longs, after_gap: NDArray[np.bool_]
) -> CommitsThen:
    """Return the layer from which to count in each row: the `first` one, or after a gap the first one from
    there on with a move since then."""
    if not first.any() and not after_gap.any():
        return within[0]
    layer = first
    if after_gap.any():
        timed = np.array(
            [(then.moved_ms > commits.resumed_ms) & (first <= at) for at, then in enumerate(within)]
        )
        layer = np.where(after_gap & timed.any(0), timed.argmax(0), first)
    counts = np.bincount(layer)
    usual = within[int(counts.argmax())]
    others = [(then, np.flatnonzero(layer == at)) for at, then in enumerate(within[: len(counts)])]
    others = [(then, rows) for then, rows in others if then is not usual and len(rows)]
    if not others:
        return usual
    picked = {}
    for name in CommitsThen.__struct_fields__:
        if name != "at_ms":
            picked[name] = column = getattr(usual, name).copy()
            for then, rows in others:
                column[rows] = getattr(then, name)[rows]
    return CommitsThen(at_ms=usual.at_ms, **picked)
