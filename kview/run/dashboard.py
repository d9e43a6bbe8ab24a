"""Runs the dashboard on a terminal, until a key, a signal or an error ends it."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from kview.derive.view import View
from kview.model.ports import Feed, Timeline
from kview.model.where import Candidate
from kview.recording.names import saved_folder, state_folder
from kview.run.log import log_file
from kview.run.report_process import ReportMaker
from kview.run.saves import FolderSaves
from kview.run.settings import Display
from kview.run.spark import Spark

if TYPE_CHECKING:
    from kview.run.show import Shown
    from kview.tui.actions import Keys
    from kview.tui.app import KviewApp
    from kview.tui.session import Session
    from kview.tui.teaching import Teaching

END_WITHIN_S = {signal.SIGINT: 3.0, signal.SIGTERM: 3.0, signal.SIGHUP: 0.9}
"""After a signal kview ends within this number of seconds, because a terminal that is closed, or that does
not read what is written, would block it for ever. After SIGHUP the terminal no longer exists. After the other
signals it must be restored, which takes longer on a busy machine."""

SWITCH_INTERVAL_S = 0.001
"""How long a thread may run before another one gets the interpreter, in seconds, so that decoding 100,000
partitions does not make the screen stutter."""


class Driven(Protocol):
    """What a dashboard shows, as far as its end is concerned."""

    @property
    def error(self) -> BaseException | None:
        """The error that ended the run before its first view, None if there was none."""
        ...

    def on_error(self, call: Callable[[], None]) -> None:
        """Register `call`, which is called at least once if an error ends the run before its first view."""
        ...


class Run(Feed[View], Timeline, Driven, Protocol):
    """The parts of a run that the dashboard uses."""

    def clock_ms(self) -> int:
        """Return the time that belongs to the last view published, in epoch ms."""
        ...


class Beside:
    """What works for a dashboard next to it: Spark, and the reports.

    `recording` returns the folder of the recording that reports are about, None if there is none yet.
    """

    def __init__(self, spark: Spark | None, recording: Callable[[], Path | None]) -> None:
        self.spark = spark
        self._saved = saved_folder(state_folder())
        self._reports = ReportMaker(recording, self._saved)

    def added_to(self, session: "Session") -> "Session":
        """Return a session with these."""
        return replace(
            session,
            spark=self.spark,
            saves=FolderSaves(self._saved),
            reports=self._reports,
            record_line=_record_line,
        )

    def stop(self, meanwhile: Callable[[], None]) -> None:
        """End them. They end while `meanwhile` ends everything else."""
        self._reports.cancel()
        if self.spark is not None:
            self.spark.stop()
        meanwhile()
        self._reports.stop()


def teaching_of(shown: "Shown") -> "Callable[[KviewApp], Teaching] | None":
    """Return what makes the demos and the tour of a simulated cluster, None if there are none."""
    if shown.demos is None:
        return None
    from kview.school.first_run import TourMark
    from kview.school.shows.demo_keys import DemoKeys

    mark = TourMark(state_folder(), shown.display.no_tour or shown.demo is not None)
    return partial(DemoKeys, demos=shown.demos, opening=shown.demo, tour=mark)


def wall_ms() -> int:
    """Return the wall clock's time, in epoch ms."""
    return time.time_ns() // 1_000_000


def new_session(run: Run | None, name: str, interval_ms: int, display: Display, keys: "Keys") -> "Session":
    """Return what every dashboard of a source called `name` has, without a `run` only what all have in
    common."""
    from kview.config.profiles import config_path
    from kview.tui.session import NoFeed, Session
    from kview.tui.widgets.header import SourceInfo

    return Session(
        feed=NoFeed() if run is None else run,
        source=SourceInfo(name, interval_ms, display.production, display.colour),
        clock_ms=wall_ms if run is None else run.clock_ms,
        wall_ms=wall_ms,
        timeline=run,
        keys=keys,
        theme=display.theme,
        ascii_only=display.ascii_only,
        mouse=not display.no_mouse,
        config_file=config_path(),
        log_file=log_file(),
    )


def drive(run: Driven, first: Callable[[], "Session"], stop: Callable[[], None]) -> int:
    """Show the first session, and those that the user goes to, until the user ends it. `stop` ends
    everything.

    Returns the exit code. Raises the error that ended the run before its first view, once the terminal has
    been restored.
    """
    try:
        session = first()
        from kview.tui.app import FleetApp, KviewApp
        from kview.tui.textual_internals import draw_only_what_fits, tell_escape_apart

        sys.setswitchinterval(SWITCH_INTERVAL_S)
        draw_only_what_fits(session.ascii_only)
        tell_escape_apart()
        app = (KviewApp if session.members is None else FleetApp)(session)
        code = asyncio.run(_drive(app, run))
    finally:
        stop()
    if run.error is not None:
        raise run.error
    return code


async def _drive(app: Any, run: Driven) -> int:
    loop = asyncio.get_running_loop()
    code = 0

    def end(number: int) -> None:
        nonlocal code
        code = 128 + number
        insist = threading.Timer(END_WITHIN_S[signal.Signals(number)], os._exit, (code,))
        insist.daemon = True
        insist.start()
        # Queued behind the app's own start, because ending the app before its first screen is complete would
        # draw half a screen.
        app.call_later(app.exit)

    for number in END_WITHIN_S:
        loop.add_signal_handler(number, end, number)

    def end_by_error() -> None:
        loop.call_soon_threadsafe(app.call_later, app.exit)

    run.on_error(end_by_error)
    await app.run_async(mouse=app.session.mouse)
    if app.bug is not None:
        raise app.bug
    return code


def _record_line(topic: str, found: Candidate) -> str:
    """Return a record as `kview records --format json` prints it. Few need it, so it is imported late."""
    from kview.plain.records import record_document

    return record_document(topic, found)
