"""Replay: which observation of a recording to show at which moment, and what to fold for it.

Time is passed in as seconds of a clock that only rises. Nothing here waits, draws or calculates a figure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kview.derive.rates import LOOK_BACK_MS
from kview.model.snapshot import Longs, Snapshot
from kview.recording.reader import Recording

SPEEDS = (1, 2, 4, 8, 16, 32, 64)

MAX_PAUSE_MS = 5_000
"""A gap in a recording is waited through no longer than this (at ×1): nobody looks at nothing."""

MOST_AT_ONCE = 16
"""Observations handed out in one go. Where folding cannot keep up with the speed, the replay falls behind its
clock, and never further than this."""


LOOK_AGAIN_S = 0.5
"""How often the end of a recording that is being written is looked at for more."""


@dataclass(frozen=True, slots=True)
class Onward:
    """Fold these, which follow what was folded, and show the last."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class LookBack:
    """The observations of a recording from one place to another, both included; read as they are asked for.

    Raises KviewError there where a ring has forgotten one.
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
    """Show `snapshot` at once, folded from nothing; then fold `look_back` (`derive.fold.fold_to`), whose last
    one it is, and show that."""

    snapshot: Snapshot
    look_back: Callable[[], LookBack]


Happened = Callable[[Snapshot, Snapshot], bool]
"""Whether something happened between an observation and the next that is worth a stop."""


def anything(before: Snapshot, now: Snapshot) -> bool:
    """Every change of brokers' states, leaders, ISRs, groups or the controller is."""
    del before, now
    return True


class Replay:
    """Plays a recording. It stands at one observation, or before the first `due`, at the first."""

    def __init__(self, recording: Recording, happened: Happened = anything) -> None:
        """Raises KviewError where the recording holds nothing."""
        self._recording = recording
        self._happened = happened
        self._place = recording.place_of(-(2**62))
        self._speed = 1
        self._playing_since: tuple[float, float] | None = None
        """The clock, and the recording's own time in ms, that playing counts from; None while it is
        paused."""
        self._jump = True
        self._time_ms = _played_ms(recording.moments())

    @property
    def place(self) -> int:
        """The place in the recording's moments."""
        return self._place

    @property
    def at_ms(self) -> int:
        """The moment that is shown, epoch ms."""
        return int(self._recording.moments()[self._place])

    @property
    def first_ms(self) -> int:
        """The first moment there is, epoch ms."""
        return int(self._recording.moments()[0])

    @property
    def last_ms(self) -> int:
        """The last moment there is, epoch ms."""
        return int(self._recording.moments()[-1])

    @property
    def playing(self) -> bool:
        """Whether it goes on by itself."""
        return self._playing_since is not None

    @property
    def speed(self) -> int:
        """How many recorded seconds pass in one."""
        return self._speed

    @property
    def at_end(self) -> bool:
        """Whether there is nothing after the moment that is shown."""
        return self._place == len(self._time_ms) - 1

    @property
    def ended(self) -> bool:
        """Whether nothing will be after the moment that is shown, either."""
        return self.at_end and not self._recording.grows()

    def refresh(self) -> None:
        """Look whether there is more of a recording that is being written; the moment that is shown stays, or
        where the ring has forgotten it, is the oldest."""
        sequence = int(self._recording.sequences()[self._place])
        self._recording.refresh()
        sequences = self._recording.sequences()
        self._time_ms = _played_ms(self._recording.moments())
        self._place = min(int(np.searchsorted(sequences, sequence)), len(sequences) - 1)
        self._jump |= int(sequences[self._place]) != sequence
        self._playing_since = None

    def play(self, now_s: float) -> None:
        """Go on from here."""
        self._playing_since = (now_s, float(self._time_ms[self._place]))

    def pause(self) -> None:
        """Stay here."""
        self._playing_since = None

    def set_speed(self, speed: int, now_s: float) -> None:
        """Play at one of SPEEDS from here on."""
        if speed not in SPEEDS:
            raise ValueError(speed)
        self._speed = speed
        if self.playing:
            self.play(now_s)

    def faster(self, now_s: float, steps: int = 1) -> None:
        """The next of SPEEDS, or with −1 the one before; the last stays the last."""
        at = min(max(SPEEDS.index(self._speed) + steps, 0), len(SPEEDS) - 1)
        self.set_speed(SPEEDS[at], now_s)

    def step(self, by: int) -> Onward | Jump:
        """Stop, and go so many observations on, or back."""
        self.pause()
        target = min(max(self._place + by, 0), len(self._time_ms) - 1)
        if target == self._place + 1 and not self._jump:
            self._place = target
            return Onward((self._recording.at_place(target),))
        return self._to(target)

    def seek(self, ms: int, now_s: float) -> Jump:
        """Go to the last observation at or before a time; playing goes on from there."""
        jump = self._to(self._recording.place_of(ms))
        if self.playing:
            self.play(now_s)
        return jump

    def seek_event(self, direction: int) -> Jump | None:
        """Stop, and go to the next (1) or the previous (−1) observation at which something happened; None
        where there is none."""
        self.pause()
        for place in self._recording.changes(self._place, direction):
            now, before = self._recording.at_place(place), self._recording.at_place(place - 1)
            if self._happened(before, now):
                return self._to(place)
        return None

    def again(self) -> Jump:
        """The moment that is shown, once more from its look-back: where that one was not folded to its
        end."""
        return self._to(self._place)

    def due(self, now_s: float) -> Onward | Jump | None:
        """What is to be shown by now; None where nothing new is."""
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
        """Seconds until something is due; None where nothing will be without a command."""
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
        """From the last observation at or before the look-back, or from where the clock last jumped back."""
        moments = self._recording.moments()
        first = place
        while (
            first and moments[first - 1] <= moments[first] and moments[first] > moments[place] - LOOK_BACK_MS
        ):
            first -= 1
        return LookBack(self._recording, first, place)


def _played_ms(moments: Longs) -> Longs:
    """The time of each observation in a replay, ms from its beginning: without gaps, and without jumps of the
    clock."""
    return np.cumsum(np.r_[0, np.clip(np.diff(moments), 0, MAX_PAUSE_MS)]) if len(moments) else moments
