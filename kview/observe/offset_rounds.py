"""What to ask which broker about offsets in an observation: log starts, log ends and high watermarks."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kview.model.snapshot import Flags, Longs, Offsets
from kview.model.units import NO_OFFSET, UNKNOWN
from kview.observe.budget import Budget, Share, Shares
from kview.observe.groups.rounds import Ask
from kview.observe.layout import Layout, same_partitions
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.offsets import OffsetRequests
from kview.observe.state import Readings, State

NEAR_S = 10.0
"""A commit is near the log start if the log or the group moves from one to the other in less than this."""
JUMP = 5.0
"""A commit that moves by this many times what its rate explains has jumped."""
JUMP_LEAST = 10
"""A commit that moves by at most this many records has not jumped, whatever its rate."""
SMOOTHING = 0.3
"""The weight of the newest value in the moving average of a rate."""

Floats = NDArray[np.float64]


class _Track(Struct, frozen=True):
    """Offsets that move, each with the time it was received and its rate in records per second."""

    offset: Longs
    at_ms: Longs
    rate: Floats
    """A moving average, 0 until there are two readings."""

    def next(self, offset: Longs, at_ms: Longs) -> tuple["_Track", Longs]:
        """Return the track after new readings, and by how much each offset moved (0 if that is not known)."""
        seconds = (at_ms - self.at_ms) / 1000
        both = (offset >= 0) & (self.offset >= 0) & (seconds > 0)
        moved = np.where(both, offset - self.offset, 0)
        now = np.maximum(moved, 0) / np.where(both, seconds, 1.0)
        rate = np.where(both, self.rate + SMOOTHING * (now - self.rate), self.rate)
        return _Track(offset, at_ms, rate), moved


def _track(offset: Longs, at_ms: Longs) -> _Track:
    return _Track(offset, at_ms, np.zeros(len(offset)))


class LogStarts(Struct):
    """Finds the partitions whose log start to read at once, as a group may be about to lose records of them.

    Log starts move rarely, so most are read in every few observations. But when records are deleted before a
    group has read them, its consumer jumps to the new log start within a second. Anyone who reads the log
    start later cannot distinguish deleted records from records that were read.

    A group may also delete what it has read, up to its commits. So a commit proves a loss only if the log
    start above it is older. That is why the log starts near commits are read before the commits.
    """

    _columns: tuple[object, ...] = ()
    _near: tuple[Layout | None, Flags] = (None, np.empty(0, np.bool_))
    """The rows that were near a commit in the last observation, and their layout."""
    _jumped: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    _partition: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    _commits: _Track | None = None
    _ends: _Track | None = None

    def before_commits(self, layout: Layout, readings: Readings) -> Flags:
        """Return a mask of the partitions whose log starts to read before the next commits.

        These are the partitions that were near a commit last time, and those without a known log start.
        """
        unknown: Flags = readings.log_start == UNKNOWN
        of, near = self._near
        return unknown | near if of is not None and same_partitions(of, layout) else unknown

    def after_commits(self, readings: Readings, wanted: Flags, began_ms: int) -> Flags:
        """Return the part of `wanted` to read after the commits of the observation that began at `began_ms`.

        What was read before the commits is left out, except where a commit has jumped.
        """
        due: Flags = wanted & (self._jumped | (readings.log_start_ms < began_ms))
        return np.asarray(due | (readings.log_start == UNKNOWN), np.bool_)

    def wanted(self, layout: Layout, readings: Readings, offsets: Offsets) -> Flags:
        """Return a mask over the partitions' rows. `offsets` are the latest committed offsets.

        Wanted are the log starts of partitions in which a group has committed an offset below the log start,
        near it, or far from its last one.
        """
        near_rows: Flags = np.zeros(len(layout), np.bool_)
        jumped_rows = near_rows.copy()
        self._near, self._jumped = (layout, near_rows), jumped_rows
        if not len(layout) or not len(offsets):
            self._columns = ()
            return near_rows
        columns = (offsets.group, offsets.topic, offsets.partition, layout.topic, layout.partition)
        if not self._columns or any(a is not b for a, b in zip(columns, self._columns, strict=True)):
            self._columns, self._commits, self._ends = columns, None, None
            self._partition = layout.rows_at(offsets.topic, offsets.partition)
        at = np.maximum(self._partition, 0)
        jumped, reach = self._follow(offsets, readings.high_watermark[at], readings.high_watermark_ms[at])
        start = readings.log_start[at]
        near = (start != UNKNOWN) & (offsets.committed - start <= reach)
        has = (self._partition >= 0) & (offsets.committed > NO_OFFSET)
        near_rows[at[has & near]] = True
        jumped_rows[at[has & jumped]] = True
        return near_rows | jumped_rows

    def _follow(self, offsets: Offsets, ends: Longs, ends_ms: Longs) -> tuple[Flags, Floats]:
        """Return which commits have jumped, and how many records the log or the group moves in NEAR_S."""
        before, before_ends = self._commits, self._ends
        if before is None or before_ends is None:
            self._commits = _track(offsets.committed, offsets.received_ms)
            self._ends = _track(ends, ends_ms)
            return np.zeros(len(offsets), np.bool_), np.zeros(len(offsets))
        self._commits, moved = before.next(offsets.committed, offsets.received_ms)
        self._ends, _ = before_ends.next(ends, ends_ms)
        seconds = (offsets.received_ms - before.at_ms) / 1000
        jumped: Flags = (moved < 0) | (moved > JUMP_LEAST + JUMP * before.rate * seconds)
        return jumped, NEAR_S * np.maximum(self._commits.rate, self._ends.rate)


class OffsetRounds(Struct):
    """Asks followers and leaders for their shares, and for the log starts that matter now.

    All log starts are asked for in every `log_start_rounds`-th observation, and last stable offsets
    when they are `last_stable_s` old. Those that transactions hold back are asked for each time.
    """

    state: State
    requests: OffsetRequests
    links: Links
    budget: Budget
    log_start_rounds: int
    last_stable_s: float
    _log_starts: LogStarts = field(default_factory=LogStarts)

    def clock_set(self) -> None:
        """Forget what was calculated from times of the old clock."""
        self._log_starts = LogStarts()

    def early_log_starts(self, askable: Mapping[int, Link], sequence: int) -> list[tuple[Link, Ask]]:
        """Return the requests for the log starts that have to be read before commits."""
        layout = self.state.layout
        parts, _ = self.shares(sequence)
        early = self._log_starts.before_commits(layout, self.state.readings)
        rows = {b: share.leads[early[share.leads]] for b, share in parts.items() if not share.briefly}
        return [
            (link, partial(self.requests.log_starts, link, broker, layout, rows[broker]))
            for broker, link in askable.items()
            if len(rows.get(broker, ()))
        ]

    def shares(self, sequence: int) -> tuple[Shares, bool]:
        """Return what to read from which broker, and whether that is everything."""
        failing = [broker for broker, link in self.links.fast.items() if link.failing]
        return self.budget.shares(self.state.layout, sequence, failing)

    def followers(self, shares: tuple[Shares, bool]) -> list[tuple[Link, Ask]]:
        """Return the requests for the log ends of followers."""
        if self.requests.debugging is False:
            return []
        parts, whole = shares
        return [
            (link, partial(self.requests.followers, link, broker, parts[broker], whole))
            for broker, link in self.links.askable().items()
            if broker in parts and len(parts[broker].follows)
        ]

    def starts_near_commits(self, sequence: int) -> Flags:
        """Return a mask of the partitions whose log starts matter, by the commits that have arrived."""
        state = self.state
        state.group_tables.update_offsets(state.groups)
        matters = self._log_starts.wanted(state.layout, state.readings, state.group_tables.offsets)
        if sequence % self.log_start_rounds == 0:
            matters[:] = True
        return matters

    def leaders(self, shares: tuple[Shares, bool], matters: Flags, began_ms: int) -> list[tuple[Link, Ask]]:
        """Return the requests for what leaders know, with the log starts in `matters` that are still due."""
        parts, whole = shares
        due = self._log_starts.after_commits(self.state.readings, matters, began_ms)
        read = self.state.readings
        stable = read.last_stable_since_ms != UNKNOWN
        stable |= read.last_stable_ms <= began_ms - int(self.last_stable_s * 1000)

        def ask(link: Link, broker: int, share: Share) -> Ask:
            starts, stables = (share.leads[rows[share.leads] & (not share.briefly)] for rows in (due, stable))
            return partial(self.requests.leaders, link, broker, share, whole, starts, stables)

        return [
            (link, ask(link, broker, share))
            for broker, link in self.links.askable().items()
            if (share := parts.get(broker)) is not None and len(share.leads)
        ]
