"""The oldest unread record of each group's partition: when it was written, as closely as it was ever known.

The record at the committed offset was not yet written when the log ended at or before it, and it was when the
log ended beyond it. The two closest such moments are kept for as long as they hold, also while the commit
moves between them. So lag in time grows with the clock as long as a commit stands still, and never gets worse
because readings of the past are dropped.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from kview.derive.align import Alignment, align_offsets, take
from kview.derive.groups.past_ends import Points, of_rows
from kview.derive.groups.trends import NEAR_MS
from kview.model.snapshot import Flags, Longs, OldestUnread, Snapshot, empty
from kview.model.units import NO_OFFSET, UNKNOWN

SHARP_MS = 2_000
"""A lag in time is exact if the two moments lie no further apart than this, or than a tenth of the lag."""


KEPT_AFTER_MS = 60_000


class Unread(Struct, frozen=True):
    """Between which two moments each row's oldest unread record was written.

    The arrays have the rows of `Offsets`. UNKNOWN if there is no such moment.
    """

    committed: Longs
    """The offset of the record."""
    after_ms: Longs
    """The last moment at which the log was seen to end at or before the record."""
    after_end: Longs
    """Where the log ended then."""
    by_ms: Longs
    """The first moment at which the log was seen to end beyond the record."""
    by_end: Longs
    guess: Flags
    """Whether the time in between is worth an estimate: the group was seen to read on between the two
    moments, or was near the end. Otherwise the record's time is a bound only."""

    @staticmethod
    def none(rows: int) -> "Unread":
        """Return the state before any reading."""
        unknown = np.full(rows, UNKNOWN)
        return Unread(unknown, unknown, unknown, unknown, unknown, np.zeros(rows, np.bool_))

    @staticmethod
    def recorded(snapshot: Snapshot) -> "Unread":
        """Return what a snapshot that was recorded says of its own offsets."""
        table, offsets = snapshot.oldest_unread, snapshot.offsets
        if not len(table):
            return Unread.none(len(offsets))
        rows = align_offsets(table, offsets)
        return Unread(
            committed=rows.carry(table.committed, UNKNOWN),
            after_ms=rows.carry(table.after_ms, UNKNOWN),
            after_end=rows.carry(table.after_end, UNKNOWN),
            by_ms=rows.carry(table.by_ms, UNKNOWN),
            by_end=rows.carry(table.by_end, UNKNOWN),
            guess=rows.carry(table.may_guess, False),
        )

    def kept(self, snapshot: Snapshot) -> OldestUnread:
        """Return what a recording keeps: the records that have been unread for a minute, because those who
        begin to look later do not see when they were written."""
        offsets = snapshot.offsets
        old = (self.by_ms != UNKNOWN) & (self.by_ms < snapshot.observation.ended_ms - KEPT_AFTER_MS)
        if not old.any():
            return empty(OldestUnread)
        columns = offsets.group, offsets.topic, offsets.partition, *asdict(self).values()
        return OldestUnread(*(columns if old.all() else (column[old] for column in columns)))

    def carried(self, alignment: Alignment) -> "Unread":
        """Return the same state in this step's rows."""
        if alignment.rows is None:
            return self
        columns = {
            name: alignment.carry(column, name != "guess" and UNKNOWN)
            for name, column in asdict(self).items()
        }
        return Unread(**columns)


class Behind(Struct, frozen=True):
    """Lag in time. The arrays have the rows of `Offsets`."""

    ms: Longs
    """How long ago the oldest unread record was written, 0 if everything is read, UNKNOWN if not known."""
    is_bound: Flags
    """Whether the record may be older."""
    is_estimate: Flags
    """Whether the record may be older or younger: nobody looked for a while about when it was written."""
    guess_ms: Longs
    """The interpolated lag, also where `ms` is a bound because a guess would not be good enough."""
    is_open: Flags
    """Whether nothing is known about the time before the record was written."""


def follow(
    before: Unread,
    committed: Longs,
    at_ms: Longs,
    rows: Longs,
    points: Points,
    restarted: Flags,
    answered: bool = False,
) -> Unread:
    """Add this observation's readings, which `points` includes.

    `before` has the rows of this observation. `at_ms` is when the offsets were read, and `rows` are their
    rows of `Partitions`, −1 for none. Of the `restarted` rows nothing earlier holds, because the log was cut
    or created again. `answered` says whether there are new answers of ListOffsets by timestamp.
    """
    newest = points.readings[-1]
    read_ms, end = take(newest.times_ms, rows, UNKNOWN), take(newest.ends, rows, UNKNOWN)
    has = (committed > NO_OFFSET) & (rows >= 0)
    changed = (committed != before.committed) | restarted
    read = has & (read_ms != UNKNOWN) & (end != UNKNOWN)
    at_end = read & (end <= committed)
    first = read & ~at_end & (before.by_ms == UNKNOWN) & ~changed
    after_ms = np.where(at_end, read_ms, before.after_ms)
    after_end = np.where(at_end, end, before.after_end)
    by_ms = np.where(at_end, UNKNOWN, np.where(first, read_ms, before.by_ms))
    by_end = np.where(at_end, UNKNOWN, np.where(first, end, before.by_end))
    for column in (after_ms, after_end, by_ms, by_end):
        column[~has] = UNKNOWN
    guess = before.guess & has & ~at_end & ~changed
    followed = Unread(np.where(has, committed, UNKNOWN), after_ms, after_end, by_ms, by_end, guess)
    again = np.flatnonzero(has & (changed | answered) & ~at_end)
    if len(again):
        _find(followed, before, rows, points, again, restarted)
        moved = changed[again] & ~restarted[again] & (before.committed[again] != UNKNOWN)
        near = behind(followed, at_ms).guess_ms[again] < NEAR_MS
        guess[again] |= (by_ms[again] != UNKNOWN) & (moved | near)
    return followed


def _find(made: Unread, before: Unread, rows: Longs, points: Points, index: Longs, restarted: Flags) -> None:
    """Fill the rows `index` of `made` with the closest moments, of `points` and of `before` if it holds."""
    kept, offsets = ~restarted[index], made.committed[index]
    moments = of_rows(points, rows[index])
    for moment, end in ((before.after_ms, before.after_end), (before.by_ms, before.by_end)):
        moments.append((np.where(kept, moment[index], UNKNOWN), end[index]))
    never = np.iinfo(np.int64).max
    after, after_end = np.full(len(index), UNKNOWN), np.full(len(index), UNKNOWN)
    for times, ends in moments:
        closer = (times > after) & (ends <= offsets) & (ends != UNKNOWN)
        np.copyto(after, times, where=closer)
        np.copyto(after_end, ends, where=closer)
    by, by_end = np.full(len(index), never), np.full(len(index), UNKNOWN)
    for times, ends in moments:
        closer = (ends > offsets) & (times > after) & (times < by)
        np.copyto(by, times, where=closer)
        np.copyto(by_end, ends, where=closer)
    made.after_ms[index], made.after_end[index] = after, after_end
    made.by_ms[index], made.by_end[index] = np.where(by == never, UNKNOWN, by), by_end


def behind(unread: Unread, at_ms: Longs) -> Behind:
    """Return the lag in time at `at_ms`, when the offsets were read.

    If the record's time is only known to lie between two moments far apart, its lag is a bound, or an
    estimate if `Unread.guess` allows it.
    """
    has_after, has_by = unread.after_ms != UNKNOWN, unread.by_ms != UNKNOWN
    known = (has_after | has_by) & (at_ms != UNKNOWN)
    between = has_after & has_by
    width = np.where(between, unread.by_ms - unread.after_ms, 0)
    grown = np.where(between, unread.by_end - unread.after_end, 1)
    part = np.where(between, unread.committed - unread.after_end, 0) / np.maximum(grown, 1)
    by_ms, now_ms = np.where(has_by, unread.by_ms, 0), np.where(known, at_ms, 0)
    when = np.where(between, by_ms - width + np.rint(part * width).astype(np.int64), by_ms)
    guess_ms = np.where(has_by, np.maximum(now_ms - when, 0), 0)
    vague = between & (width > np.maximum(SHARP_MS, guess_ms // 10))
    is_open = known & has_by & ~has_after
    is_bound = is_open | (known & vague & ~unread.guess)
    ms = np.where(is_bound, np.maximum(now_ms - by_ms, 0), guess_ms)
    return Behind(
        np.where(known, ms, UNKNOWN),
        is_bound,
        known & vague & ~is_bound,
        np.where(known, guess_ms, UNKNOWN),
        is_open,
    )
