"""Determines which snapshot of a recording to show at a time, and which snapshots to fold for it.

Time is passed in, as seconds of a monotonic clock. Nothing here waits, draws or calculates figures.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.model.snapshot import Longs, Snapshot
from kview.recording.reader import AnswerTimes, Recording

SPEEDS = (1, 2, 4, 8, 16, 32, 64)

MAX_PAUSE_MS = 5_000
"""Longer gaps in a recording are shortened to this (at ×1), so that a replay never seems to have stopped."""

MOST_AT_ONCE = 16
"""Limit of snapshots returned at once. If folding is too slow for the chosen speed, the replay falls behind
its clock, but by no more than this."""


LOOK_AGAIN_S = 0.5
"""Interval between checks for new snapshots at the end of a recording that is still in progress."""


@dataclass(frozen=True, slots=True)
class Onward:
    """A command to fold these snapshots, which follow the ones folded before, and to show the last one."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class LookBack:
    """The snapshots of a recording between two indices of its moments, both included.

    The snapshots are read while iterating, which raises KviewError if a ring has dropped one of them.
    """

    recording: Recording
    first: int
    last: int

    def __len__(self) -> int:
        return self.last + 1 - self.first

    def __iter__(self) -> Iterator[Snapshot]:
        return self.recording.stretch(self.first, self.last)


@dataclass(frozen=True, slots=True)
class Jump:
    """A command to show `snapshot`, for which `look_back`, which ends with it, has to be folded; see
    `derive.fold.fold_to`."""

    snapshot: Snapshot
    look_back: Callable[[], LookBack]


Happened = Callable[[Snapshot, Snapshot], bool]
"""Whether something worth stopping at happened between a snapshot and the next one."""


Noticed = Callable[[Iterable[tuple[int, AnswerTimes]]], Iterator[bool]]
"""Yields for each observation whether something worth stopping at has shown in how long brokers take."""


def nothing(recorded: Iterable[tuple[int, AnswerTimes]]) -> Iterator[bool]:
    """Yield nothing: no answer is worth stopping at."""
    del recorded
    return iter(())


def anything(before: Snapshot, now: Snapshot) -> bool:
    """Return True, to stop at every change of brokers' states, leaders, ISRs, groups or the controller."""
    del before, now
    return True


class Replay:
    """Plays a recording. There is always a current snapshot, which at the start is the recording's first."""

    def __init__(
        self, recording: Recording, happened: Happened = anything, noticed: Noticed = nothing
    ) -> None:
        """Start at the first snapshot. Raises KviewError if the recording is empty."""
        self._recording = recording
        self._happened = happened
        self._noticed = noticed
        self._place = recording.place_of(-(2**62))
        self._speed = 1
        self._playing_since: tuple[float, float] | None = None
        """The clock (s) and the recording's own time (ms) at which playing started; None while paused."""
        self._jump = True
        self._time_ms = _played_ms(recording.moments())

    @property
    def place(self) -> int:
        """The index of the current snapshot in the recording's moments."""
        return self._place

    @property
    def at_ms(self) -> int:
        """The moment shown, in epoch ms."""
        return int(self._recording.moments()[self._place])

    @property
    def first_ms(self) -> int:
        """The first moment of the recording, in epoch ms."""
        return int(self._recording.moments()[0])

    @property
    def last_ms(self) -> int:
        """The last moment of the recording, in epoch ms."""
        return int(self._recording.moments()[-1])

    @property
    def playing(self) -> bool:
        """Whether the replay advances by itself."""
        return self._playing_since is not None

    @property
    def speed(self) -> int:
        """Recorded seconds per second of real time."""
        return self._speed

    @property
    def at_end(self) -> bool:
        """Whether the moment shown is the last one so far."""
        return self._place == len(self._time_ms) - 1

    @property
    def ended(self) -> bool:
        """Whether the moment shown is the last one, and nothing more is being recorded."""
        return self.at_end and not self._recording.grows()

    def refresh(self) -> None:
        """Read what was added to a recording that is still in progress.

        The moment shown stays the same. If the ring has dropped it, the oldest moment takes its place.
        """
        sequence = int(self._recording.sequences()[self._place])
        self._recording.refresh()
        sequences = self._recording.sequences()
        self._time_ms = _played_ms(self._recording.moments())
        self._place = min(int(np.searchsorted(sequences, sequence)), len(sequences) - 1)
        self._jump |= int(sequences[self._place]) != sequence
        self._playing_since = None

    def play(self, now_s: float) -> None:
        """Start playing from the moment shown."""
        self._playing_since = (now_s, float(self._time_ms[self._place]))

    def pause(self) -> None:
        """Stop playing."""
        self._playing_since = None

    def set_speed(self, speed: int, now_s: float) -> None:
        """Play at one of SPEEDS from now on."""
        if speed not in SPEEDS:
            raise ValueError(speed)
        self._speed = speed
        if self.playing:
            self.play(now_s)

    def faster(self, now_s: float, steps: int = 1) -> None:
        """Change the speed by `steps` positions in SPEEDS (negative: slower), but not beyond the first or
        last."""
        at = min(max(SPEEDS.index(self._speed) + steps, 0), len(SPEEDS) - 1)
        self.set_speed(SPEEDS[at], now_s)

    def step(self, by: int) -> Onward | Jump:
        """Pause, and move `by` snapshots forward (negative: back)."""
        self.pause()
        target = min(max(self._place + by, 0), len(self._time_ms) - 1)
        if target == self._place + 1 and not self._jump:
            self._place = target
            return Onward((self._recording.at_place(target),))
        return self._to(target)

    def seek(self, ms: int, now_s: float) -> Jump:
        """Jump to the last snapshot at or before `ms`.

        If the replay was playing, it continues from there.
        """
        jump = self._to(self._recording.place_of(ms))
        if self.playing:
            self.play(now_s)
        return jump

    def seek_event(self, direction: int) -> Jump | None:
        """Pause, and jump to the next (1) or previous (−1) snapshot at which something happened.

        Returns None if there is no such snapshot.
        """
        self.pause()
        place = self._noticed_until(self._changed(direction), direction)
        return None if place is None else self._to(place)

    def _changed(self, direction: int) -> int | None:
        """Return the next or previous snapshot that differs from the one before it in what happened."""
        for place in self._recording.changes(self._place, direction):
            now, before = self._recording.at_place(place), self._recording.at_place(place - 1)
            if self._happened(before, now):
                return place
        return None

    def _noticed_until(self, place: int | None, direction: int) -> int | None:
        """Return the nearest snapshot at which a broker became slow or fast, `place` if there is none before
        that."""
        if direction > 0:
            first, last = self._place + 1, len(self._time_ms) - 1 if place is None else place
        else:
            first, last = place or 0, self._place - 1
        if first > last:
            return place
        begin = self._look_back(first).first
        times = self._recording.answer_times(begin, last)
        noticed = [at for at, is_ in enumerate(self._noticed(times), begin) if is_ and at >= first]
        return noticed[0 if direction > 0 else -1] if noticed else place

    def again(self) -> Jump:
        """Return a jump to the moment shown, to repeat a look-back that was not folded to its end."""
        return self._to(self._place)

    def due(self, now_s: float) -> Onward | Jump | None:
        """Return what to show at `now_s`, or None if nothing changes."""
        if self._jump:
            return self._to(self._place)
        if self._playing_since is None:
            return None
        if self.at_end:
            self.refresh()
            if not self.ended:
                self.play(now_s)
            return None
        until = self._position_ms(now_s)
        last = int(np.searchsorted(self._time_ms, until, "right")) - 1
        target = min(last, self._place + MOST_AT_ONCE)
        if target <= self._place:
            return None
        snapshots = tuple(self._recording.at_place(place) for place in range(self._place + 1, target + 1))
        self._place = target
        if self.ended:
            self.pause()
        elif target < last or self.at_end:
            self.play(now_s)
        return Onward(snapshots)

    def wait_s(self, now_s: float) -> float | None:
        """Return the seconds until the next snapshot is due, or None if none is due without a command."""
        if self._jump:
            return 0.0
        if self._playing_since is None:
            return None
        if self.at_end:
            return max(0.0, self._playing_since[0] + LOOK_AGAIN_S - now_s)
        return max(
            0.0, (float(self._time_ms[self._place + 1]) - self._position_ms(now_s)) / 1000 / self._speed
        )

    def _position_ms(self, now_s: float) -> float:
        assert self._playing_since is not None
        began_s, began_ms = self._playing_since
        return began_ms + (now_s - began_s) * 1000 * self._speed

    def _to(self, place: int) -> Jump:
        self._place, self._jump = place, False
        return Jump(self._recording.at_place(place), lambda: self._look_back(place))

    def _look_back(self, place: int) -> LookBack:
        """Return the snapshots to fold for `place`: the look-back, cut where the clock was set back."""
        moments = self._recording.moments()
        first = place
        while (
            first and moments[first - 1] <= moments[first] and moments[first] > moments[place] - LOOK_BACK_MS
        ):
            first -= 1
        return LookBack(self._recording, first, place)


def _played_ms(moments: Longs) -> Longs:
    """Return the time of each snapshot in a replay, in ms since its start.

    Gaps are shortened, and jumps of the clock removed.
    """
    return np.cumsum(np.r_[0, np.clip(np.diff(moments), 0, MAX_PAUSE_MS)]) if len(moments) else moments
