"""`kview replay`, which shows a recording on the dashboard or as text."""

import logging
import threading
from collections.abc import Callable, Iterator

import numpy as np

from kview.derive.fold import fold_to, step
from kview.derive.view import View
from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.aggregates import Aggregates
from kview.model.history import Course, CourseOf, PartitionHistory
from kview.model.notices import Notice, NoticeKind
from kview.model.ports import Moment
from kview.model.units import UNKNOWN
from kview.recording.damage import damage_in
from kview.recording.incident_marks import incident_marks
from kview.recording.missing import missing
from kview.recording.names import state_folder
from kview.recording.reader import Recording
from kview.recording.replay import Jump, Onward, Replay
from kview.recording.ring import find_recording, keep
from kview.recording.troubles import healths, troubles
from kview.run import terminal
from kview.run.dashboard import Beside, drive, new_session, wall_ms
from kview.run.history import CourseReader, read_history
from kview.run.log import start_log
from kview.run.player import Command, Player, replay_of
from kview.run.printing import note, print_views
from kview.run.settings import DEFAULT_INTERVAL_MS, Display
from kview.run.spark import Spark
from kview.run.timeline import Publisher, to_event


def open_recording(name: str) -> Recording:
    """Open a recording by its path or by the name it was kept under. Raises BadUse if it cannot be shown."""
    folder = find_recording(name, state_folder())
    try:
        recording = Recording.open_readable(folder)
        recording.at_place(recording.place_of(0))  # so that damage is found before a dashboard opens
    except BadUse:
        raise
    except KviewError as error:
        for gone in missing(folder) if error.kind is ErrorKind.NOTHING_RECORDED else ():
            raise BadUse(ErrorKind.FILE_MISSING, file=str(folder / gone[0].folder)) from error
        raise BadUse.of(error) from error
    return recording


def replay(recording: Recording, at_ms: int | None, speed: int, display: Display) -> int:
    """Show a recording from `at_ms` on, or from its beginning if that is None. Returns the exit code."""
    start_log()
    is_dashboard, display = terminal.fitted(display)
    name = f"replay {recording.folder.name}"
    shown = views(recording, at_ms, display.once, display.ignore_groups)
    if not is_dashboard:
        for notice in _notices(recording, at_ms):
            note(notice, display.ascii_only)
        return print_views(shown, name, display)
    run = ReplayTimeline(recording, at_ms, speed, display.ignore_groups)
    spark = None if display.no_spark else Spark(run.set_aggregates, wall_ms)
    from kview.tui.keymap import read_keys

    session = new_session(run, name, interval_ms(recording), display, read_keys())
    if spark is not None:
        spark.read(recording.folder)
    beside = Beside(spark, lambda: recording.folder)
    return drive(run, lambda: beside.added_to(session), lambda: beside.stop(run.stop))


def _notices(recording: Recording, at_ms: int | None) -> Iterator[Notice]:
    """Yield what to say first: that `at_ms` is not in the recording, or what of it is missing or damaged."""
    if (not_there := outside(recording, at_ms)) is not None:
        yield not_there
    for gone in missing(recording.folder):
        folders = gone[0].folder if len(gone) == 1 else f"{gone[0].folder} to {gone[-1].folder}"
        if gone[-1].closed:
            first_ms, last_ms = gone[0].began_ms, gone[-1].ended_ms
            yield Notice(
                NoticeKind.SEGMENTS_MISSING, {"folders": folders, "first_ms": first_ms, "last_ms": last_ms}
            )
        else:
            last_ms = int(recording.moments()[-1])
            yield Notice(NoticeKind.LAST_SEGMENT_MISSING, {"folders": folders, "last_ms": last_ms})
    for error in recording.damaged.values():
        yield Notice(NoticeKind.SEGMENT_DAMAGED, {"error": error.facts})


def outside(recording: Recording, at_ms: int | None) -> Notice | None:
    """Return the notice that `at_ms` is not in the recording, or None if it is."""
    first_ms, last_ms = int(recording.moments()[0]), int(recording.moments()[-1])
    if at_ms is None or first_ms // 1000 <= at_ms // 1000 <= last_ms // 1000:
        return None
    if at_ms < first_ms:
        return Notice(NoticeKind.BEFORE_RECORDING, {"at_ms": at_ms, "first_ms": first_ms})
    return Notice(NoticeKind.AFTER_RECORDING, {"at_ms": at_ms, "last_ms": last_ms})


def views(
    recording: Recording, at_ms: int | None, once: bool, ignore: tuple[str, ...] = ()
) -> Iterator[View]:
    """Yield the views of a recording from `at_ms` on, one per observation.

    With `once`, yield only the view at `at_ms`, or the last view if that is None. `ignore` has patterns of
    the names of groups that count nowhere.
    """
    replay = Replay(recording)
    begin_ms = replay.last_ms if once else None
    if at_ms is not None:
        begin_ms = at_ms
    jump = replay.again() if begin_ms is None else replay.seek(begin_ms, 0.0)
    with damage_in(recording.folder):  # values that no cluster has
        folded = fold_to(jump.snapshot, jump.look_back(), lambda: False, ignore)
    assert folded is not None, "nobody has cancelled it"
    state, view = folded
    yield view
    while not once and not replay.at_end:
        move = replay.step(1)
        assert isinstance(move, Onward)
        for snapshot in move.snapshots:
            with damage_in(recording.folder):
                state, view = step(state, snapshot)
            yield view


def interval_ms(recording: Recording) -> int:
    """Return the median interval between observations, or the default if there is only one observation."""
    between_ms = np.diff(recording.moments())
    return int(np.median(between_ms)) if len(between_ms) else DEFAULT_INTERVAL_MS


MARK_AFTER_S = 0.5
"""How long the search for troubles waits, so that the first view is there first."""

MARK_AGAIN_S = 30.0
"""Time between two searches for troubles in a recording that is still in progress."""

_log = logging.getLogger(__name__)


class ReplayTimeline:
    """Plays a recording, starting at once. Implements `Feed[View]` and `Timeline` of `kview.model.ports`."""

    replay = True
    error: BaseException | None = None

    def __init__(
        self, recording: Recording, at_ms: int | None, speed: int, ignore: tuple[str, ...] = ()
    ) -> None:
        """Begin at `at_ms`, or at the first observation if that is None.

        `speed` is one of SPEEDS. `ignore` has patterns of the names of groups that count nowhere.
        """
        self._recording = recording
        self._courses = CourseReader(lambda: [recording.folder])
        self._at_ms = at_ms
        self._speed = speed
        self._ignore = ignore
        self._publisher = Publisher(wall_ms)
        self._player = Player(self._open, self._show, self._publisher.notify, ignore=ignore)
        self._ending = threading.Event()
        self._marking = threading.Thread(target=self._mark, name="time-marks", daemon=True)
        self._asking = threading.Lock()
        self._asked = 0
        self.clock_ms = self._publisher.clock_ms
        self.set_aggregates: Callable[[Aggregates], None] = self._publisher.set_aggregates

    def on_error(self, call: Callable[[], None]) -> None:
        """Do nothing, because no error ends a replay."""

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Start playing. Returns at once."""
        self._publisher.start(on_view, on_notice)
        self._player.start()
        self._send(self._begin)
        self._marking.start()
        for notice in _notices(self._recording, self._at_ms):
            self._publisher.notify(notice)

    def stop(self) -> None:
        """End within a second. No callback starts after this returns."""
        self._ending.set()
        self._publisher.stop()
        self._player.stop()

    def toggle(self) -> None:
        """Pause, or resume from the moment shown."""
        self._send(self._toggle)

    def step(self, by: int) -> None:
        """Pause, and step `by` observations forward (negative: back)."""
        self._send(lambda replay, now_s: replay.step(by))

    def faster(self, steps: int) -> None:
        """Play faster (1) or slower (−1)."""
        self._send(lambda replay, now_s: replay.faster(now_s, steps))

    def seek(self, ms: int) -> None:
        """Jump to the last observation at or before `ms`, in epoch ms."""
        self._send(lambda replay, now_s: replay.seek(ms, now_s))

    def seek_event(self, direction: int) -> None:
        """Pause, and jump to the next (1) or previous (−1) observation at which something happened."""
        self._send(lambda replay, now_s: self._event(replay, direction))

    def live(self) -> None:
        """Jump to the last observation."""
        self._send(lambda replay, now_s: replay.seek(replay.last_ms, now_s))

    async def history(self, topic: str, partition: int) -> PartitionHistory:
        """Read the leaders and ISRs that a partition had, as far as the recording goes. Never raises."""
        return await read_history(self._recording.folder, topic, partition)

    async def course(self, asked: CourseOf) -> Course | None:
        """Read the course of a topic or of groups. Never raises."""
        return await self._courses.read(asked)

    def keep(self, name: str) -> None:
        """Keep the recording under `name`."""
        self._send(lambda replay, now_s: self._keep(name))

    def _send(self, command: Command) -> None:
        with self._asking:
            self._asked += 1
            self._player.send(self._asked, command)

    def _show(self, view: View | None, moment: Moment, number: int) -> None:
        is_over = view is None and moment.reading_ms == UNKNOWN
        self._publisher.publish(view, moment, lambda: is_over or number == self._asked)

    def _open(self) -> Replay:
        opened = replay_of(self._recording, self._player.newer, self._ignore)
        opened.set_speed(self._speed, 0.0)
        return opened

    def _begin(self, replay: Replay, now_s: float) -> Onward | Jump | None:
        move = replay.due(now_s) if self._at_ms is None else replay.seek(self._at_ms, now_s)
        replay.play(now_s)
        return move

    def _mark(self) -> None:
        """Find the incidents of the recording for the time bar, again and again while it is in progress.

        If the recorder did not write them down, the columns tell of the troubles.
        """
        if self._ending.wait(MARK_AFTER_S):
            return
        try:
            recording = Recording(self._recording.folder, leaves_out_damaged=True)
            while not self._ending.is_set():
                marks = incident_marks(recording, self._ending.is_set)
                if marks is None:
                    marks = troubles(healths(recording, self._ending.is_set))
                self._publisher.set_marks(marks, again=True)
                if not recording.grows() or self._ending.wait(MARK_AGAIN_S):
                    return
                recording.refresh()
        except KviewError as error:
            _log.info("no marks on the time bar: %s", error)

    def _toggle(self, replay: Replay, now_s: float) -> None:
        if replay.playing:
            replay.pause()
        elif replay.ended:
            self._publisher.notify(Notice(NoticeKind.RECORDING_ENDS))
        else:
            replay.play(now_s)

    def _event(self, replay: Replay, direction: int) -> Jump | None:
        return to_event(replay, direction, self._publisher)

    def _keep(self, name: str) -> None:
        try:
            keep(self._recording.folder, name, state_folder())
        except KviewError as error:
            self._publisher.notify(Notice(NoticeKind.NOT_KEPT, {"error": error.facts}))
        except OSError as error:
            failed = KviewError(ErrorKind.KEEPING_FAILED, reason=error.strerror or str(error))
            self._publisher.notify(Notice(NoticeKind.NOT_KEPT, {"error": failed.facts}))
        else:
            self._publisher.notify(Notice(NoticeKind.KEPT, {"name": name}))
