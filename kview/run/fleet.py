"""The clusters that a run of kview observes. Each is observed until kview ends, also while another is
shown."""

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kview.derive.view import View
from kview.errors import ErrorFacts, KviewError
from kview.language.errors import sentence
from kview.model.notices import Notice, NoticeKind
from kview.model.units import UNKNOWN
from kview.recording.names import saved_folder, state_folder
from kview.run import terminal
from kview.run.dashboard import Beside, drive, new_session, teaching_of, wall_ms
from kview.run.memory import ChoiceFiles
from kview.run.observing import observing_failed
from kview.run.recorder import Recorder
from kview.run.saves import FolderSaves
from kview.run.show import Others, Shown, hooked
from kview.run.spark import Spark
from kview.run.timeline import LiveTimeline

if TYPE_CHECKING:
    from kview.tui.actions import Keys
    from kview.tui.session import Opened, Session
    from kview.tui.widgets.header import Member

_log = logging.getLogger(__name__)


class Kept:
    """A cluster that is observed and recorded until `end`. Implements `Feed` for the times in which it is
    shown.

    Spark runs only while it is shown: a JVM takes half a gigabyte.
    """

    def __init__(
        self,
        shown: Shown,
        patient: bool,
        on_error: Callable[["Kept"], None],
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        """`later` carries out what takes some time: one thing after the other, on another thread."""
        self._later = later
        self._stack = ExitStack()
        shown, hooks = hooked(replace(shown, display=terminal.fitted(shown.display)[1]), self._stack)
        self.shown = shown
        display = shown.display
        self._recorder = Recorder(display.record, with_screen=True)
        self.timeline = LiveTimeline(
            shown.source,
            self._recorder,
            display.interval_ms / 1000,
            wall_ms,
            display.ignore_groups,
            shown.opening,
            shown.takers,
            patient,
        )
        self.timeline.on_error(lambda: on_error(self))
        if hooks is not None:
            hooks.on_notice, self.timeline.hear = self.timeline.notify, hooks.hear
        self._began_ms = wall_ms()
        self._opened: Opened | None = None
        self._beside: Beside | None = None

    @property
    def name(self) -> str:
        return self.shown.name

    @property
    def unfinished(self) -> ErrorFacts | None:
        """What of its recording could not be completed."""
        return self._recorder.unfinished

    @property
    def recording(self) -> Path | None:
        """The folder of its recording, None until something was recorded."""
        return self._recorder.folder if self._recorder.first_ms != UNKNOWN else None

    @property
    def opened(self) -> "Opened":
        """What somebody has opened of it."""
        if self._opened is None:
            from kview.tui.session import Opened

            self._opened = Opened()
        return self._opened

    def member(self) -> "Member":
        """Return the cluster as it is now."""
        from kview.tui.widgets.header import Member, SourceInfo

        display = self.shown.display
        source = SourceInfo(self.name, display.interval_ms, display.production, display.colour)
        view, notice = self.timeline.newest
        return Member(source, self._began_ms, view, notice, self.opened.incidents)

    def session(self, keys: "Keys") -> "Session":
        """Return its dashboard."""
        shown, display = self.shown, self.shown.display
        self._beside = beside = Beside(
            None if display.no_spark else Spark(self.timeline.set_aggregates, wall_ms),
            lambda: self.recording,
        )
        session = new_session(self.timeline, self.name, display.interval_ms, display, keys)
        return replace(
            beside.added_to(session),
            feed=self,
            opened=self.opened,
            lab=shown.lab,
            attention=shown.source,
            inspector=shown.source,
            # A simulated cluster is another one every time.
            memory=ChoiceFiles(state_folder() / "choices", display.fresh) if shown.lab is None else None,
            teaching=teaching_of(shown),
        )

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Show it from now on."""
        spark = self._beside.spark if self._beside is not None else None
        if spark is not None:
            self._later(partial(self._begin_spark, spark))
        self.timeline.start(on_view, on_notice)

    def _begin_spark(self, spark: Spark) -> None:
        self._recorder.on_folder, self._recorder.on_stopped = spark.read, spark.nothing_to_read
        if self._recorder.folder is not None:
            spark.read(self._recorder.folder)
        elif self._recorder.stopped is not None:
            spark.nothing_to_read(self._recorder.stopped)

    def stop(self) -> None:
        """Show nothing of it, and let it run on."""
        self.timeline.leave()
        beside, self._beside = self._beside, None
        if beside is not None:
            self._later(partial(beside.stop, self._leave_spark))

    def _leave_spark(self) -> None:
        self._recorder.on_folder, self._recorder.on_stopped = lambda folder: None, lambda why: None

    def end(self) -> None:
        """End within a second."""
        beside, self._beside = self._beside, None
        if beside is None:
            self.timeline.stop()
        else:
            beside.stop(self.timeline.stop)
        self._stack.close()


def not_shown(name: str, error: BaseException) -> Notice:
    """Return the notice that a cluster cannot be shown."""
    if not isinstance(error, KviewError):
        return observing_failed(error)
    return Notice(NoticeKind.PROFILE_NOT_SHOWN, {"name": name, "error": error.facts})


class Fleet:
    """The clusters of a run. Implements `Clusters`.

    With several clusters to begin with, there is a screen of all of them, and one that cannot be reached or
    observed is tried again. A cluster that is opened later and cannot be reached leads back to the one
    before.
    """

    def __init__(self, begin_with: Sequence[Shown], others: Others | None) -> None:
        """Begin to observe all clusters. Raises BadUse if the keys' file is wrong.

        The first answers arrive while what draws them is imported.
        """
        self._others = others
        self.is_several = len(begin_with) > 1
        self._kept: dict[str, Kept] = {}
        self._of_fleet: tuple[str, ...] = tuple(shown.name for shown in begin_with)
        self._path: list[str] = []
        """The clusters shown, the last one at the end."""
        self._failed: set[str] = set()
        self._sparks = ThreadPoolExecutor(1, "sparks")
        """Ends a cluster's Spark before it starts that of another, and what could not be shown."""
        self._end: Callable[[], None] = lambda: None
        self.error: BaseException | None = None
        """The error that ended the only cluster before its first view."""
        try:
            for shown in begin_with:
                self._keep(shown, self.is_several)
            from kview.tui.keymap import read_keys

            self._keys = read_keys()
        except BaseException:
            self.stop()
            raise

    def _keep(self, shown: Shown, patient: bool) -> Kept:
        kept = self._kept[shown.name] = Kept(shown, patient, self._on_error, self._later)
        kept.timeline.begin()
        return kept

    def _later(self, call: Callable[[], None]) -> None:
        def carried_out() -> None:
            try:
                call()
            except Exception:
                _log.exception("a cluster was not begun or ended in order")

        self._sparks.submit(carried_out)

    def first(self) -> "Session":
        """Return what to show first."""
        return self.fleet() or self.open(self._of_fleet[0])

    @property
    def kept(self) -> Sequence[Kept]:
        """The clusters that are observed."""
        return tuple(self._kept.values())

    # -- Clusters

    def names(self) -> Sequence[str]:
        """Return the names of the clusters besides the one shown."""
        known = {*self._kept, *(self._others.names() if self._others is not None else ())}
        return sorted(known - set(self._path[-1:]))

    def open(self, name: str) -> "Session":
        """Return the session of a cluster, which is observed from now on. Raises KviewError."""
        kept = self._kept.get(name)
        if kept is None:
            assert self._others is not None
            kept = self._keep(self._others.shown(name), patient=False)
        session = kept.session(self._keys)
        self._path = [*(each for each in self._path if each != name), name]
        return replace(session, clusters=self, has_fleet=self.is_several)

    def fleet(self) -> "Session | None":
        """Return the session of the screen with all clusters, None if kview was begun with one."""
        if not self.is_several:
            return None
        last, self._path = self._path[-1:], []
        display = self._kept[self._of_fleet[0]].shown.display
        display = replace(display, production=False, colour="")
        session = new_session(None, "fleet", display.interval_ms, display, self._keys)
        return replace(
            session,
            clusters=self,
            has_fleet=True,
            members=self._members,
            selected="".join(last),
            saves=FolderSaves(saved_folder(state_folder())),
        )

    def instead(self) -> "Session | None":
        """Return the session of the cluster before, if the one shown could never be shown."""
        name = self._path[-1] if self._path else ""
        if name not in self._failed or (len(self._path) == 1 and not self.is_several):
            return None
        self._failed.discard(name)
        if name in self._of_fleet:
            return None
        failed = self._kept.pop(name)
        assert failed.timeline.error is not None
        self._path.pop()
        notice = not_shown(name, failed.timeline.error)
        failed.stop()
        self._later(failed.end)
        if not self.is_several and set(self._kept) <= self._failed:
            self._end_by(self._kept[self._path[-1]])
            return None
        session = self.open(self._path[-1]) if self._path else self.fleet()
        return None if session is None else replace(session, opening=notice)

    def _members(self) -> "Sequence[Member]":
        return [self._kept[name].member() for name in self._of_fleet]

    # -- the end

    def on_error(self, call: Callable[[], None]) -> None:
        """Register `call` for an error that leaves nothing to show, and call it if there was one already."""
        self._end = call
        if self.error is not None:
            call()

    def _on_error(self, kept: Kept) -> None:
        self._failed.add(kept.name)
        if len(self._kept) == 1:
            self._end_by(kept)

    def _end_by(self, kept: Kept) -> None:
        self.error = kept.timeline.error
        self._end()

    def stop(self) -> None:
        """End all clusters within a second."""
        ending = [threading.Thread(target=kept.end, daemon=True) for kept in self._kept.values()]
        for thread in ending:
            thread.start()
        self._sparks.shutdown(wait=True)
        for thread in ending:
            thread.join()

    def unfinished(self) -> list[ErrorFacts]:
        """Return what of the recordings could not be completed."""
        return [kept.unfinished for kept in self._kept.values() if kept.unfinished is not None]


def run_dashboard(shown: Sequence[Shown], others: Others | None = None) -> int:
    """Show clusters until the user ends it, and return the exit code.

    Raises the error that ended the only one before its first view, once the terminal has been restored.
    """
    fleet = Fleet(shown, others)
    code = drive(fleet, fleet.first, fleet.stop)
    for error in fleet.unfinished():
        print(f"kview: {sentence(error)}", file=sys.stderr)
    return code
