"""Whether groups keep up: the evidence of lag over the last minute, and what was last shown.

A trend that was shown holds for a while without new evidence, so that a verdict never gets better because
less is known.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment, first_that_holds
from kview.derive.groups.commits import Commits, CommitsThen, Reading
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.view import Floats
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

NONE, KEEPS_UP, FALLS_BEHIND = range(3)
"""What the evidence shows."""

MIN_MOVES = 2
"""The fewest moves that show a trend, because a single commit after a pause shows none."""

TREND_MIN_SPAN_MS = 30_000
"""A shorter history does not show a lag trend."""

MIN_GROWTH_S = 1.0
"""Lag growth is noise if it is less than what is written in this time plus twice the time between readings,
because each commit is read at a random moment after it was made."""

WHOLE_SPAN_MS = 50_000
"""A shorter history does not show that a lag does not grow slowly. The history has a minute at most."""

NEAR_MS = 10_000
"""A group that is behind by less than this keeps up, unless its lag grows: two default commit intervals."""

FALLING_MS = 5_000
"""A group that is behind by less than this right after its commits does not fall behind: its lag is that of
one default commit interval, and a slow broker can cause it for a while."""

FAR_MS = 60_000
"""A group that is behind by this or more keeps up only if it gains."""

TURN_MS = 20_000
"""If a row rests for this long while records wait, its own lag does not show a trend: its reader may be busy
with other partitions. The group's lag shows it."""

LONGEST_TURN_MS = 240_000
"""A pause that began longer ago is forgotten. Together with KEPT_MS it is within the look-back."""

KEPT_MS = {KEEPS_UP: 60_000, FALLS_BEHIND: 300_000}
"""For how long a trend holds without new evidence."""


class Trends(Struct, frozen=True):
    """The last trend of each row. The arrays have the rows of `Offsets`."""

    shown: Longs
    """KEEPS_UP or FALLS_BEHIND, NONE before the first evidence."""
    shown_ms: Longs
    level: NDArray[np.bool_]
    """Whether the lag is a minute or more, and the last minute shows that it neither grows nor shrinks."""

    @staticmethod
    def none(rows: int) -> "Trends":
        """Return the state before any evidence."""
        return Trends(np.full(rows, NONE), np.full(rows, UNKNOWN), np.zeros(rows, np.bool_))

    def carried(self, alignment: Alignment) -> "Trends":
        """Return the same trends in this step's rows."""
        return Trends(
            alignment.carry(self.shown, NONE),
            alignment.carry(self.shown_ms, UNKNOWN),
            alignment.carry(self.level, False),
        )


def follow(before: Trends, commits: Commits, now: Reading) -> Trends:
    """Add the evidence of this observation. `commits` includes its readings."""
    sums = _sums(commits, now.group)
    rate = np.nan_to_num(now.write_rate)
    traffic = sums.traffic(np.maximum(rate, _written(commits, now)), now.group)
    noise = np.maximum(traffic * _chance_s(commits), 1.0)
    grew = sums.known & (sums.growth > noise)
    gained = sums.known & (sums.gain > noise)
    waits = (now.lag != UNKNOWN) & (now.lag > 0)
    lag_ms = np.where(rate > 0, now.lag * 1000.0 / np.where(rate > 0, rate, 1.0), np.inf)
    left = (commits.lag_left != UNKNOWN) & (commits.lag_left * 1000.0 < rate * NEAR_MS)
    left |= commits.lag_left == 0
    left &= commits.moved_ms > now.received_ms - FAR_MS
    kept = _kept(before, commits, left, now.now_ms)
    falling = kept & (before.shown == FALLS_BEHIND)
    falls = waits & grew & (sums.least * 1000.0 >= traffic * FALLING_MS)
    calm = sums.known & (sums.growth <= noise / 2)
    up = gained | (left & np.where(falling, calm, True))
    up |= sums.known & (sums.growth <= 0) & sums.whole & (lag_ms < FAR_MS) & ~falling
    up |= (now.lag != UNKNOWN) & ~waits
    held = _any_of_group(now.held, now.group)  # some lag may shrink only because nobody can write
    evidence = first_that_holds([falls, up], [FALLS_BEHIND, KEEPS_UP], NONE)
    evidence = np.where((now.lag == UNKNOWN) | held, NONE, evidence)
    shown = np.where(evidence != NONE, evidence, np.where(kept, before.shown, NONE))
    return Trends(
        shown,
        np.where(evidence != NONE, now.now_ms, np.where(kept, before.shown_ms, UNKNOWN)),
        sums.known & ~grew & ~gained & waits & (lag_ms >= FAR_MS),
    )


def _kept(before: Trends, commits: Commits, near: NDArray[np.bool_], now_ms: int) -> NDArray[np.bool_]:
    """Return for which rows the trend that was shown still holds without new evidence.

    What was shown before an offset leapt does not. After a leap, being `near` the end is no more than a
    beginning: it counts only while it lasts.
    """
    kept = np.zeros(len(near), np.bool_)
    for kind, kept_ms in KEPT_MS.items():
        kept |= (before.shown == kind) & (before.shown_ms > now_ms - kept_ms)
    leapt_lately = commits.leapt_ms > now_ms - FAR_MS
    kept &= ~leapt_lately | near | (before.shown != KEEPS_UP)
    return kept & (before.shown_ms > commits.leapt_ms)


def _written(commits: Commits, now: Reading) -> Floats:
    """Return records per second written since the history began, 0 if not known.

    What lag was by chance depends on the traffic of its own time, also if nobody writes any more.
    """
    then = commits.history[0]
    known = (then.lag_left != UNKNOWN) & (now.end != UNKNOWN) & (now.end_ms > then.moved_ms)
    written = np.where(known, now.end - then.committed - then.lag_left, 0)
    elapsed_ms = np.where(known, now.end_ms - then.moved_ms, 1)
    return np.maximum(written, 0) * 1000.0 / elapsed_ms


def _chance_s(commits: Commits) -> Floats:
    return MIN_GROWTH_S + 2 * np.where(commits.gap_ms == UNKNOWN, 0, commits.gap_ms) / 1000


class _Sums(Struct, frozen=True):
    """By how much lag grew without falling back, and by how much it shrank without growing again.

    Of the row itself; or of its group if the row moved too rarely, or if its reader reads partitions in turn.
    """

    known: NDArray[np.bool_]
    growth: Longs
    gain: Longs
    least: Longs
    """The least lag of the last third of the minute."""
    whole: bool
    """Whether the history is long enough to show slow growth, too."""
    of_group: NDArray[np.bool_]

    def traffic(self, rate: Floats, group: Longs) -> Floats:
        """Return the records per second of the row or of its group. `group` is as for `_sums`."""
        mine = np.where(group >= 0, group, 0)
        total = np.bincount(mine, np.where(group >= 0, rate, 0.0), minlength=1)
        return np.where(self.of_group, total[mine], rate)


def _sums(commits: Commits, group: Longs) -> _Sums:
    """Return how lag changed in the last minute; of rows that leapt meanwhile, in the time since then.

    What lag was before an offset leapt (a reset, or skipped records) says nothing about how it changes.
    `group` is the row of each row's group, −1 for none.
    """
    whole = _compared(commits, commits.history, group)
    if not len(group) or commits.leapt_ms.max() <= commits.history[0].at_ms:
        return whole
    since_ms = commits.history[-1].at_ms - TREND_MIN_SPAN_MS
    first = sum(layer.at_ms < since_ms for layer in commits.history[1:])  # the last one at or before that
    part = _compared(commits, commits.history[first:], group)
    leapt = commits.leapt_ms >= commits.history[0].at_ms
    leapt |= _any_of_group(leapt, group)
    names = ("known", "growth", "gain", "least", "of_group")
    columns = {name: np.where(leapt, getattr(part, name), getattr(whole, name)) for name in names}
    return _Sums(**columns, whole=whole.whole)


def _compared(commits: Commits, layers: tuple[CommitsThen, ...], group: Longs) -> _Sums:
    """Compare the newest third of these layers with the oldest third."""
    size, third = len(commits.committed), len(layers) // 3
    nothing, zero = np.zeros(size, np.bool_), np.zeros(size, np.int64)
    if not third or layers[-1].at_ms - layers[0].at_ms < TREND_MIN_SPAN_MS:
        return _Sums(nothing, zero, zero, zero, False, nothing)
    now_ms, old, new = layers[-1].at_ms, layers[:third], layers[-third:]
    leapt = commits.leapt_ms >= layers[0].at_ms
    paused = (commits.pause_to_ms > now_ms - FAR_MS) & (commits.pause_from_ms > now_ms - LONGEST_TURN_MS)
    paused &= commits.pause_to_ms - commits.pause_from_ms >= TURN_MS
    waits = (commits.waits_ms != UNKNOWN) & (now_ms - commits.waits_ms >= TURN_MS)
    then = layers[-third - 1]
    own = [np.array([_lag_left(layer, now_ms) for layer in part]) for part in (old, new)]
    known = (own[0] != UNKNOWN).all(0) & (own[1] != UNKNOWN).all(0) & ~leapt
    known &= commits.moves - then.moves >= MIN_MOVES
    of_group = paused | waits | ~known
    sums = [np.array([layer.group_lag for layer in part]) for part in (old, new)]
    sums_known = (sums[0] != UNKNOWN).all(0) & (sums[1] != UNKNOWN).all(0) & ~_any_of_group(leapt, group)
    sums_known &= commits.group_moves - then.group_moves >= MIN_MOVES
    sums_known &= np.all([layer.group_size == commits.group_size for layer in (*old, *new)], 0)
    known = np.where(of_group, sums_known, known)
    was, is_ = (np.where(of_group, a, b) for a, b in zip(sums, own, strict=True))
    growth, gain = is_.min(0) - was.max(0), was.min(0) - is_.max(0)
    return _Sums(
        known,
        np.where(known, growth, 0),
        np.where(known, gain, 0),
        np.where(known, is_.min(0), 0),
        now_ms - layers[0].at_ms >= WHOLE_SPAN_MS,
        of_group,
    )


def _lag_left(then: CommitsThen, now_ms: int) -> Longs:
    """Return the lags that the last moves before a layer left, UNKNOWN if a move is beyond the look-back."""
    return np.where(then.moved_ms > now_ms - LOOK_BACK_MS, then.lag_left, UNKNOWN)


def _any_of_group(mask: NDArray[np.bool_], group: Longs) -> NDArray[np.bool_]:
    """Return which rows belong to a group that has a row in `mask`."""
    mine = group >= 0
    known = np.where(mine, group, 0)
    has_row = np.bincount(known[mine & mask], minlength=int(known.max(initial=0)) + 1) > 0
    return has_row[known] & mine
