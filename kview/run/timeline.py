"""Publishes views and notices to the screen: in a live run the observer's or, while paused, earlier ones from
the recording."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kview.derive.incidents.time_marks import time_marks
from kview.derive.view import NO_AGGREGATES, View
from kview.model.aggregates import Aggregates
from kview.model.history import Course, CourseOf, PartitionHistory
from kview.model.notices import Notice, NoticeKind
from kview.model.ports import Moment, TimeMark
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN
from kview.run.history import CourseReader, read_history
from kview.run.observing import ObservingFeed, Source, Taker, new_fold
from kview.run.recorder import DASHBOARD_CLOSES_WITHIN_S, Recorder

if TYPE_CHECKING:
    from kview.recording.replay import Jump, Replay
    from kview.run.player import Command, Player

STOP_WITHIN_S = 0.25
"""How long `stop` waits for a callback in progress."""


WRITTEN_WITHIN_S = 1.0
"""How long the first step back waits until the moment shown has been recorded, which takes milliseconds."""

POLL_S = 0.02

MOST_KEPT = 8
"""Limit of notices that wait until a cluster is shown again. The latest say how things are."""


class Publisher:
    """Publishes views and notices from any thread, one at a time, and publishes nothing after `stop`.

    Every view includes the latest aggregates and marks of the time bar. When the aggregates change, the last
    view is published again.
    """

    def __init__(
        self,
        wall_ms: Callable[[], int],
        clock_s: Callable[[], float] = time.monotonic,
        opening: Sequence[Notice] = (),
    ) -> None:
        """`opening` are notices to begin with."""
        self._kept = deque(opening, MOST_KEPT)
        """What to say at the next start."""
        self._wall_ms = wall_ms
        self._clock_s = clock_s
        self._calling = threading.RLock()
        self._on_view: Callable[[View], None] | None = None
        self._on_notice: Callable[[Notice], None] | None = None
        self._aggregates: Aggregates = NO_AGGREGATES
        self._marks: tuple[TimeMark, ...] = ()
        self._last: tuple[View, float] | None = None

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Publish to these callbacks from now on, first the notices that were kept. Others, and earlier
        views, are lost."""
        with self._calling:
            self._on_view, self._on_notice = on_view, on_notice
            while self._kept:
                on_notice(self._kept.popleft())

    def stop(self) -> None:
        """Stop publishing. No callback starts after this returns."""
        taken = self._calling.acquire(timeout=STOP_WITHIN_S)
        self._on_view = self._on_notice = None
        if taken:
            self._calling.release()

    def publish(self, view: View | None, moment: Moment, wanted: Callable[[], bool] = lambda: True) -> None:
        """Publish a view at `moment` if it is still `wanted` when its turn comes.

        None stands for the last view, of which only the moment is another one.
        """
        with self._calling:
            if view is None and self._last is not None:
                view = self._last[0]
            if view is not None and self._on_view is not None and wanted():
                view = replace(view, aggregates=self._aggregates, moment=replace(moment, marks=self._marks))
                self._last = view, self._clock_s()
                self._on_view(view)

    @property
    def marks(self) -> tuple[TimeMark, ...]:
        """The marks of the time bar."""
        return self._marks

    def set_marks(self, marks: tuple[TimeMark, ...], again: bool = False) -> None:
        """Add these marks of the time bar to every view from now on, and with `again` to the last one."""
        with self._calling:
            self._marks = marks
            if again and self._last is not None and self._on_view is not None:
                view, at_s = self._last
                self._last = replace(view, moment=replace(view.moment, marks=marks)), at_s
                self._on_view(self._last[0])

    def notify(self, notice: Notice) -> None:
        """Publish a notice."""
        with self._calling:
            if self._on_notice is not None:
                self._on_notice(notice)

    def notify_or_keep(self, notice: Notice) -> None:
        """Publish a notice, now or at the next start."""
        with self._calling:
            if self._on_notice is None:
                self._kept.append(notice)
            else:
                self._on_notice(notice)

    def set_aggregates(self, aggregates: Aggregates) -> None:
        """Add these aggregates to every view from now on, and publish the last view again with them."""
        with self._calling:
            self._aggregates = aggregates
            if self._last is not None and self._on_view is not None:
                view, at_s = self._last
                self._last = replace(view, aggregates=aggregates), at_s
                self._on_view(self._last[0])

    def clock_ms(self) -> int:
        """Return the time that belongs to the last view, in epoch ms.

        For a live view, this is the wall clock's time. While paused, it is the moment shown. While a
        recording plays, it advances at the chosen speed, up to the end of what is recorded.
        """
        last = self._last
        if last is None or last[0].moment.live:
            return self._wall_ms()
        view, at_s = last
        moment, at_ms = view.moment, view.snapshot.observation.ended_ms
        if not moment.playing or moment.reading_ms != UNKNOWN:
            return at_ms
        return min(at_ms + int((self._clock_s() - at_s) * 1000 * moment.speed), max(at_ms, moment.last_ms))


class LiveTimeline:
    """Shows a cluster while it is observed. Implements `Feed[View]` and `Timeline` of `kview.model.ports`.

    Observing, folding and recording continue while an earlier moment is shown, so that the live view is ready
    at once.
    """

    replay = False

    def __init__(
        self,
        source: Source,
        recorder: Recorder,
        interval_s: float,
        wall_ms: Callable[[], int],
        ignore: tuple[str, ...] = (),
        opening: Sequence[Notice] = (),
        takers: Sequence[Taker] = (),
        patient: bool = False,
    ) -> None:
        """`ignore` has patterns of the names of groups that count nowhere. `opening` are notices to begin
        with. `takers` get every snapshot and its view. `patient`: after a failure before the first view there
        is another attempt, also after a bug."""
        self.hear: Callable[[Notice], None] = lambda notice: None
        """Gets what there is to say of the source, on the observer's thread."""
        self._said: Notice | None = None
        """Why there is no view, or none that is newer."""
        self._ignore = ignore
        self._recorder = recorder
        if not patient:  # then it is shown at once, and is not one of several
            recorder.hold()
        self._courses = CourseReader(self._recordings)
        fold = partial(new_fold, ignore, (recorder.offer, *takers))
        self._observing = ObservingFeed(source, fold, interval_s, patient)
        self._publisher = Publisher(wall_ms, opening=opening)
        self._player: Player | None = None
        """The player, created at the first step. By then the recorder has imported the libraries that it
        needs."""
        self._changing = threading.Lock()
        self._asked = 0
        """The number of the last command. A view that answers an earlier command comes too late."""
        self._live = True
        self._latest: View | None = None
        self._frozen_ms = 0
        """The moment at which the user paused, in epoch ms."""
        self.clock_ms = self._publisher.clock_ms
        self.set_aggregates: Callable[[Aggregates], None] = self._publisher.set_aggregates

    @property
    def error(self) -> BaseException | None:
        """The error that ended the run before its first view, None if there was none."""
        return self._observing.error

    def on_error(self, call: Callable[[], None]) -> None:
        """Register `call` for an error that ends the run before its first view.

        It is called once, on the observer's thread.
        """
        self._observing.on_end = call

    def begin(self) -> None:
        """Start observing. Returns at once."""
        self._observing.start(self._show_live, self._hear)

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Show it from now on, the newest view first. Returns at once."""
        self._publisher.start(on_view, on_notice)
        if self._said is not None:
            self._publisher.notify(self._said)
        self._recorder.shown()
        self.live()

    def leave(self) -> None:
        """Show nothing until `start`, which begins with the newest view. Observing and recording continue."""
        self._publisher.stop()
        self.live()

    def notify(self, notice: Notice) -> None:
        """Say a notice, or keep it until somebody is shown the cluster."""
        self._publisher.notify_or_keep(notice)

    @property
    def newest(self) -> tuple[View | None, Notice | None]:
        """The newest view, and why there is none that is newer, if that is known."""
        return self._latest, self._said

    def stop(self) -> None:
        """End within a second. No callback starts after this returns."""
        self._recorder.end()
        self._publisher.stop()
        if self._player is not None:
            self._player.stop()
        self._observing.stop()
        self._recorder.stop(DASHBOARD_CLOSES_WITHIN_S)

    # -- time controls, on the screen's thread

    def toggle(self) -> None:
        """Pause, or return to the live moment."""
        if self._live:
            self._freeze()
        else:
            self.live()

    def step(self, by: int) -> None:
        """Pause, and step `by` observations forward (negative: back)."""
        self._ask(lambda replay, now_s: replay.step(by))

    def faster(self, steps: int) -> None:
        """Publish the notice that the speed of a live run cannot be changed."""
        del steps
        self._publisher.notify(Notice(NoticeKind.NO_SPEED))

    def seek(self, ms: int) -> None:
        """Jump to the last observation at or before `ms`, in epoch ms."""
        self._ask(lambda replay, now_s: replay.seek(ms, now_s))

    def seek_event(self, direction: int) -> None:
        """Pause, and jump to the next (1) or previous (−1) observation at which something happened."""
        self._ask(lambda replay, now_s: self._event(replay, direction))

    def live(self) -> None:
        """Return to the newest observation."""
        with self._changing:
            self._asked += 1
            number, self._live, latest = self._asked, True, self._latest
        if self._player is not None:
            self._player.close(number)
        if latest is not None:
            self._publish(latest, number, live=True)

    def keep(self, name: str) -> None:
        """Keep what has been recorded so far under `name`."""
        notice = self._recorder.keep(name)
        if notice is not None:
            self._publisher.notify(notice)

    async def history(self, topic: str, partition: int) -> PartitionHistory:
        """Read the leaders and ISRs that a partition had, as far as the recording goes. Never raises."""
        recorded = self._recorder.first_ms != UNKNOWN
        return await read_history(self._recorder.folder if recorded else None, topic, partition)

    async def course(self, asked: CourseOf) -> Course | None:
        """Read the course of a topic or of groups, from earlier flight recordings of the cluster, too. Never
        raises."""
        return await self._courses.read(asked)

    def _recordings(self) -> list[Path]:
        """Return the folders of this run's recording and of earlier flight recordings of its cluster."""
        folder = self._recorder.folder
        if folder is None or self._recorder.first_ms == UNKNOWN:
            return []
        from kview.recording.names import state_folder
        from kview.recording.ring import of_cluster

        return [folder, *of_cluster(folder, state_folder())]

    # -- views

    def _ask(self, command: "Command") -> None:
        if self._recorder.first_ms == UNKNOWN:
            stopped = self._recorder.stopped
            self._publisher.notify(
                Notice(NoticeKind.NOT_RECORDING_YET)
                if stopped is None
                else Notice(NoticeKind.NOTHING_TO_STEP_TO, {"error": stopped})
            )
        elif self._freeze():
            if self._player is None:
                from kview.run.player import Player

                self._player = Player(
                    self._open_replay,
                    self._show_past,
                    self._publisher.notify,
                    ignore=self._ignore,
                )
                self._player.start()
            self._player.send(self._asked, command)

    def _event(self, replay: "Replay", direction: int) -> "Jump | None":
        return to_event(replay, direction, self._publisher)

    def _freeze(self) -> bool:
        """Pause at the live view. Returns whether there is a live view."""
        with self._changing:
            latest, was_live = self._latest, self._live
            if latest is None:
                return False
            self._asked += 1
            number, self._live = self._asked, False
            if was_live:
                self._frozen_ms = latest.snapshot.observation.ended_ms
        if was_live:
            self._publish(latest, number, live=False)
        return True

    def _hear(self, notice: Notice) -> None:
        self.hear(notice)
        self._said = notice
        self._publisher.notify(notice)

    def _show_live(self, view: View) -> None:
        self._said = None
        self._publisher.set_marks(time_marks(view.incidents))
        with self._changing:
            first, self._latest = self._latest is None, view
            number, live = self._asked, self._live
        if live:
            self._publish(view, number, live=True)
        if first:
            self._recorder.start(self.notify)

    def _show_past(self, view: View | None, moment: Moment, number: int) -> None:
        is_over = view is None and moment.reading_ms == UNKNOWN
        self._publisher.publish(view, moment, lambda: (is_over or number == self._asked) and not self._live)

    def _publish(self, view: View, number: int, live: bool) -> None:
        """Publish a live view, or the view at which the user paused."""
        last_ms = view.snapshot.observation.ended_ms
        moment = Moment(live=live, playing=live, first_ms=self._recorder.first_ms, last_ms=last_ms)
        self._publisher.publish(view, moment, lambda: number == self._asked)

    def _open_replay(self) -> "Replay":
        """Open the recording at the moment at which the user paused. Raises KviewError."""
        from kview.recording.reader import Recording
        from kview.run.player import replay_of

        assert self._recorder.folder is not None and self._player is not None
        recording = Recording.open(self._recorder.folder)
        until_s = time.monotonic() + WRITTEN_WITHIN_S
        while time.monotonic() < until_s and not (
            self._recorder.stopped or _reaches(recording.moments(), self._frozen_ms)
        ):
            time.sleep(POLL_S)
            recording.refresh()
        replay = replay_of(recording, self._player.newer, self._ignore)
        replay.seek(self._frozen_ms, time.monotonic())
        return replay


def _reaches(moments: Longs, ms: int) -> bool:
    return bool(len(moments)) and int(moments[-1]) >= ms


def to_event(replay: "Replay", direction: int, publisher: Publisher) -> "Jump | None":
    """Jump to the nearest observation with an event, or to one that first shows an incident.

    Publishes a notice if there is none in that direction.
    """
    from_ms = replay.at_ms
    jump = replay.seek_event(direction)
    beyond = [mark.shown_ms for mark in publisher.marks if (mark.shown_ms - from_ms) * direction > 0]
    nearest = min(beyond, key=lambda ms: abs(ms - from_ms), default=UNKNOWN)
    is_kept = nearest != UNKNOWN and replay.first_ms <= nearest <= replay.last_ms
    if is_kept and (jump is None or abs(nearest - from_ms) < abs(replay.at_ms - from_ms)):
        return replay.seek(nearest, 0.0)
    if jump is None:
        kind = NoticeKind.NO_LATER_EVENT if direction > 0 else NoticeKind.NO_EARLIER_EVENT
        publisher.notify(Notice(kind))
    return jump
