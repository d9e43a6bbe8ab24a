"""Plays a recording on a thread of its own: carries out commands, folds the snapshots and shows the views."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from kview.derive.brokers import slowness
from kview.derive.fold import State, advance, fold_on, fold_to
from kview.derive.view import View
from kview.errors import KviewError
from kview.model.notices import Notice, NoticeKind
from kview.model.ports import Moment
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.recording.reader import AnswerTimes, Recording
from kview.recording.replay import Jump, Onward, Replay

COMMANDS = 64
"""Limit of commands that wait, as many as a key held down for two seconds produces. Further commands are
dropped."""

FRAME_S = 0.1
"""Shortest time between two views, however fast a recording is played. Nobody can see more than ten a
second."""

STOP_WITHIN_S = 0.25

Command = Callable[[Replay, float], Onward | Jump | None]
"""A function of the replay and the clock's time in seconds. It changes the replay, and returns the resulting
move, or None if the replay stays where it is."""

_log = logging.getLogger(__name__)


class Newer(Exception):
    """A newer command arrived while an older one was being carried out."""


class Player:
    """Plays a recording on a thread of its own. `open_replay` opens the recording there at the first command.

    `show` receives a view, its moment, and the number of the command that the view answers. Without a view,
    the last one stays at another moment: the past of a jump is being read, or that has failed.
    """

    def __init__(
        self,
        open_replay: Callable[[], Replay],
        show: Callable[[View | None, Moment, int], None],
        notify: Callable[[Notice], None],
        clock_s: Callable[[], float] = time.monotonic,
        ignore: tuple[str, ...] = (),
    ) -> None:
        """`ignore` has patterns of the names of groups that count nowhere."""
        self._ignore = ignore
        self._open_replay = open_replay
        self._show = show
        self._notify = notify
        self._clock_s = clock_s
        self._commands: queue.Queue[tuple[int, Command | None]] = queue.Queue(COMMANDS)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="player", daemon=True)
        self._number = 0
        self._replay: Replay | None = None
        self._state: State | None = None
        """The fold's state at the replay's position, None while that state is not known."""
        self._jump: Jump | None = None
        """The jump whose past has not been folded yet."""
        self._view: View | None = None
        """The view at the replay's position, None while there is no view."""
        self._shown_s, self._shown_ms = -FRAME_S, UNKNOWN

    def start(self) -> None:
        """Start the thread. Returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait at most STOP_WITHIN_S for it to end."""
        self._ending.set()
        self._put(0, None)
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN_S)

    def send(self, number: int, command: Command) -> None:
        """Carry out a command soon. Returns at once. `number` rises with every command."""
        self._put(number, command)

    def close(self, number: int) -> None:
        """Close the recording. The next command opens it again."""
        self._put(number, None)

    def newer(self) -> bool:
        """Return whether a newer command is waiting, so that the current command is no longer wanted."""
        return self._ending.is_set() or not self._commands.empty()

    def _put(self, number: int, command: Command | None) -> None:
        try:
            self._commands.put_nowait((number, command))
        except queue.Full:
            _log.warning("dropped a command: %d are already waiting", COMMANDS)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._turn()
            except Newer:
                pass
            except KviewError as error:
                self._halt()
                self._notify(Notice(NoticeKind.NOTHING_TO_STEP_TO, {"error": error.facts}))
            except Exception as error:
                _log.exception("the player has failed")
                self._halt()
                self._forget()
                bug = f"{type(error).__name__}: {error}"
                self._notify(Notice(NoticeKind.REPLAY_FAILED, {"bug": bug}))

    def _turn(self) -> None:
        if self._jump is not None and not self.newer():
            self._look_back(self._jump)
            return
        try:
            self._number, command = self._commands.get(timeout=self._wait_s())
        except queue.Empty:
            if self._replay is not None:
                self._go(self._replay, self._replay.due(self._clock_s()))
            return
        if command is None:
            self._forget()
            return
        replay = self._replay
        if replay is None:
            replay = self._replay = self._open_replay()
        else:
            _refresh(replay, self._clock_s())
        self._go(replay, command(replay, self._clock_s()))

    def _wait_s(self) -> float | None:
        now_s = self._clock_s()
        wait_s = self._replay.wait_s(now_s) if self._replay is not None else None
        return None if wait_s is None else max(wait_s, self._shown_s + FRAME_S - now_s, 0.0)

    def _go(self, replay: Replay, move: Onward | Jump | None) -> None:
        if isinstance(move, Onward) and self._state is not None:
            self._state, self._view = fold_on(self._state, move.snapshots)
        elif move is not None:
            self._jump = move if isinstance(move, Jump) else replay.again()
            self._state = self._view = None
        if replay.ended:
            replay.pause()
        if self._jump is not None and not self.newer():
            self._show(None, _moment(replay, self._jump.snapshot.observation.ended_ms), self._number)
        self._publish(replay)

    def _look_back(self, jump: Jump) -> None:
        folded = fold_to(jump.snapshot, jump.look_back(), self.newer, self._ignore)
        if folded is not None and self._replay is not None:
            self._state, self._view = folded
            self._jump = None
            self._publish(self._replay)

    def _publish(self, replay: Replay) -> None:
        if self._view is None:
            return
        self._shown_s, self._shown_ms = self._clock_s(), self._view.snapshot.observation.ended_ms
        self._show(self._view, _moment(replay), self._number)

    def _halt(self) -> None:
        """Stop playing and folding after a failure, until the user tries again."""
        self._jump = None
        if self._replay is None:
            return
        self._replay.pause()
        if self._shown_ms != UNKNOWN:
            with suppress(KviewError):  # so that the next step goes on from what is shown
                self._replay.seek(self._shown_ms, self._clock_s())
        self._show(None, _moment(self._replay), self._number)

    def _forget(self) -> None:
        self._replay = self._state = self._jump = self._view = None


def _moment(replay: Replay, reading_ms: int = UNKNOWN) -> Moment:
    return Moment(
        live=False,
        playing=replay.playing,
        speed=replay.speed,
        first_ms=replay.first_ms,
        last_ms=replay.last_ms,
        reading_ms=reading_ms,
    )


def _refresh(replay: Replay, now_s: float) -> None:
    """Read what was added to a recording that is still being written, and continue playing."""
    playing = replay.playing
    replay.refresh()
    if playing:
        replay.play(now_s)


def replay_of(recording: Recording, newer: Callable[[], bool], ignore: tuple[str, ...] = ()) -> Replay:
    """Return a replay that searches for what the fold calls an event.

    `ignore` has patterns of the names of groups that count nowhere. If `newer` becomes true, such a search
    raises Newer. Raises KviewError if the recording is empty.
    """

    def happened(before: Snapshot, now: Snapshot) -> bool:
        if newer():
            raise Newer
        return bool(advance(advance(State(ignore), before), now).new_events)

    def noticed(recorded: Iterable[tuple[int, AnswerTimes]]) -> Iterator[bool]:
        for is_ in slowness.noticed(recorded):
            if newer():
                raise Newer
            yield is_

    return Replay(recording, happened, noticed)
