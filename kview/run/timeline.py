"""The live run's timeline: the observer's pictures, until somebody pauses and goes back on the tape."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kview.derive.view import View
from kview.model.aggregates import Aggregates
from kview.model.notices import Notice, NoticeKind
from kview.model.ports import Moment
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN
from kview.run.folding import new_fold
from kview.run.handing import Handing
from kview.run.observing import ObservingFeed, Source
from kview.run.tape import DASHBOARD_CLOSES_WITHIN_S, Tape, TapedSource

if TYPE_CHECKING:
    from kview.recording.replay import Jump, Replay
    from kview.run.player import Command, Player

WRITTEN_WITHIN_S = 1.0
"""How long a first step back waits for the moment shown to be on the tape: writing it takes milliseconds."""

POLL_S = 0.02


class LiveTimeline:
    """`kview.model.ports.Feed[View]` and `Timeline` of a cluster that is observed now.

    Observing, folding and recording go on while an earlier moment is shown, so that the live one is there at
    once. `on_end` and `error` are ObservingFeed's.
    """

    replay = False

    def __init__(self, source: Source, tape: Tape, interval_s: float, wall_ms: Callable[[], int]) -> None:
        self._tape = tape
        self._observing = ObservingFeed(TapedSource(source, tape), new_fold, interval_s)
        self._handing = Handing(wall_ms)
        self._player: Player | None = None
        """Made when it is asked for: what it needs is imported by then, by the tape."""
        self._changing = threading.Lock()
        self._asked = 0
        """The number of the last command: a picture that answers an earlier one comes too late."""
        self._live = True
        self._latest: View | None = None
        self._frozen_ms = 0
        """The moment at which the live picture was left."""
        self.clock_ms = self._handing.clock_ms
        self.set_aggregates: Callable[[Aggregates], None] = self._handing.set_aggregates

    @property
    def error(self) -> BaseException | None:
        """What ended the run before its first picture."""
        return self._observing.error

    def on_error(self, call: Callable[[], None]) -> None:
        """Have that called once, on the observer's thread, where the run ends before its first picture."""
        self._observing.on_end = call

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Begin; returns at once."""
        self._handing.start(on_view, on_notice)
        self._observing.start(self._show_live, self._handing.notice)

    def stop(self) -> None:
        """End within a second; no call back after it returns."""
        self._tape.end()
        self._handing.stop()
        if self._player is not None:
            self._player.stop()
        self._observing.stop()
        self._tape.stop(DASHBOARD_CLOSES_WITHIN_S)

    # -- the controls of time, on the screen's thread

    def toggle(self) -> None:
        """Pause; or return to the live moment."""
        if self._live:
            self._freeze()
        else:
            self.live()

    def step(self, by: int) -> None:
        """Pause, and go so many observations on, or back."""
        self._ask(lambda replay, now_s: replay.step(by))

    def faster(self, steps: int) -> None:
        """A live run has no speed."""
        del steps
        self._handing.notice(Notice(NoticeKind.NO_SPEED))

    def seek(self, ms: int) -> None:
        """Go to the last observation at or before a time, epoch ms."""
        self._ask(lambda replay, now_s: replay.seek(ms, now_s))

    def seek_event(self, direction: int) -> None:
        """Pause, and go to the next (1) or the previous (−1) observation at which something happened."""
        self._ask(lambda replay, now_s: self._event(replay, direction))

    def live(self) -> None:
        """Return to the newest observation."""
        with self._changing:
            self._asked += 1
            number, self._live, latest = self._asked, True, self._latest
        if self._player is not None:
            self._player.rest(number)
        if latest is not None:
            self._hand(latest, number, live=True)

    def keep(self, name: str) -> None:
        """Keep what was recorded under a name."""
        notice = self._tape.keep(name)
        if notice is not None:
            self._handing.notice(notice)

    # -- pictures

    def _ask(self, command: "Command") -> None:
        if self._tape.first_ms == UNKNOWN:
            stopped = self._tape.stopped
            self._handing.notice(
                Notice(NoticeKind.NOT_RECORDING_YET)
                if stopped is None
                else Notice(NoticeKind.NOTHING_TO_STEP_TO, {"error": stopped})
            )
        elif self._freeze():
            if self._player is None:
                from kview.run.player import Player

                self._player = Player(self._open_replay, self._show_past, self._handing.notice)
                self._player.start()
            self._player.send(self._asked, command)

    def _event(self, replay: "Replay", direction: int) -> "Jump | None":
        jump = replay.seek_event(direction)
        if jump is None:
            self._handing.notice(no_event(direction))
        return jump

    def _freeze(self) -> bool:
        """Leave the live picture as it is; returns whether there is one."""
        with self._changing:
            latest, was_live = self._latest, self._live
            if latest is None:
                return False
            self._asked += 1
            number, self._live = self._asked, False
            if was_live:
                self._frozen_ms = latest.snapshot.observation.ended_ms
        if was_live:
            self._hand(latest, number, live=False)
        return True

    def _show_live(self, view: View) -> None:
        with self._changing:
            first, self._latest = self._latest is None, view
            number, live = self._asked, self._live
        if live:
            self._hand(view, number, live=True)
        if first:
            self._tape.start(self._handing.notice)

    def _show_past(self, view: View, number: int) -> None:
        self._handing.view(view, lambda: number == self._asked and not self._live)

    def _hand(self, view: View, number: int, live: bool) -> None:
        """Hand on the live picture, or the one that it was when it was left."""
        last_ms = view.snapshot.observation.ended_ms
        moment = Moment(live=live, playing=live, first_ms=self._tape.first_ms, last_ms=last_ms)
        self._handing.view(replace(view, moment=moment), lambda: number == self._asked)

    def _open_replay(self) -> "Replay":
        """The tape, at the moment at which the live picture was left. Raises KviewError."""
        from kview.recording.reader import Recording
        from kview.run.player import replay_of

        assert self._tape.folder is not None and self._player is not None
        recording = Recording.open(self._tape.folder)
        until_s = time.monotonic() + WRITTEN_WITHIN_S
        while time.monotonic() < until_s and not (
            self._tape.stopped or _holds(recording.moments(), self._frozen_ms)
        ):
            time.sleep(POLL_S)
            recording.refresh()
        replay = replay_of(recording, self._player.newer)
        replay.seek(self._frozen_ms, time.monotonic())
        return replay


def _holds(moments: Longs, ms: int) -> bool:
    return bool(len(moments)) and int(moments[-1]) >= ms


def no_event(direction: int) -> Notice:
    """What is said where there is no event in that direction."""
    return Notice(NoticeKind.NO_LATER_EVENT if direction > 0 else NoticeKind.NO_EARLIER_EVENT)
