"""Runs the dashboard on a terminal, until a key, a signal or an error ends it."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kview.derive.view import View
from kview.errors import BadUse
from kview.language.errors import sentence
from kview.model.ports import Feed, Timeline
from kview.model.units import UNKNOWN
from kview.model.where import Candidate
from kview.recording.names import saved_folder, state_folder
from kview.run.log import log_file
from kview.run.memory import ChoiceFiles
from kview.run.recorder import Recorder
from kview.run.report_process import ReportMaker
from kview.run.saves import FolderSaves
from kview.run.settings import Display
from kview.run.spark import Spark
from kview.run.timeline import LiveTimeline

if TYPE_CHECKING:
    from kview.run.hooks import Hooks
    from kview.run.show import Shown
    from kview.tui.app import KviewApp
    from kview.tui.session import Session
    from kview.tui.teaching import Teaching

END_WITHIN_S = {signal.SIGINT: 3.0, signal.SIGTERM: 3.0, signal.SIGHUP: 0.9}
"""After a signal kview ends within this number of seconds, because a terminal that is closed, or that does
not read what is written, would block it for ever. After SIGHUP the terminal no longer exists. After the other
signals it must be restored, which takes longer on a busy machine."""

RECORDING_STARTS_AFTER_S = 0.3
"""The time from the first view to the start of recording, so that the imports for recording do not slow down
the drawing of that view."""


class Run(Feed[View], Timeline, Protocol):
    """The parts of a run that the dashboard uses."""

    @property
    def error(self) -> BaseException | None:
        """The error that ended the run before its first view, None if there was none."""
        ...

    def on_error(self, call: Callable[[], None]) -> None:
        """Register `call`, which is called once if an error ends the run before its first view."""
        ...

    def clock_ms(self) -> int:
        """Return the time that belongs to the last view published, in epoch ms."""
        ...


def run_dashboard(shown: "Shown", hooks: "Hooks | None" = None) -> int:
    """Show a source until the user ends it or chooses another cluster, and return the exit code.

    What `hooks` could not send is shown, too. Raises the error that ended the run before its first view, once
    the terminal has been restored.
    """
    source, display, lab = shown.source, shown.display, shown.lab
    recorder = Recorder(display.record, RECORDING_STARTS_AFTER_S)
    run = LiveTimeline(
        source,
        recorder,
        display.interval_ms / 1000,
        wall_ms,
        display.ignore_groups,
        shown.opening,
        shown.takers,
    )
    if hooks is not None:
        hooks.on_notice = run.notify
    try:
        session = new_session(run, shown.name, display.interval_ms, display)
    except BadUse:
        source.close()
        raise
    spark = None if display.no_spark else Spark(run.set_aggregates, wall_ms)
    if spark is not None:
        recorder.on_folder, recorder.on_stopped = spark.read, spark.nothing_to_read
    session = replace(
        session,
        lab=lab,
        attention=source,
        inspector=source,
        profiles=shown.profiles,
        # A simulated cluster is another one every time.
        memory=ChoiceFiles(state_folder() / "choices", display.fresh) if lab is None else None,
        teaching=_teaching(shown),
    )
    code = drive(run, session, spark, lambda: recorder.folder if recorder.first_ms != UNKNOWN else None)
    if recorder.unfinished is not None:
        print(f"kview: {sentence(recorder.unfinished)}", file=sys.stderr)
    return code


def _teaching(shown: "Shown") -> "Callable[[KviewApp], Teaching] | None":
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


def new_session(run: Run, name: str, interval_ms: int, display: Display) -> "Session":
    """Return what every dashboard of a source called `name` has. Raises BadUse if the keys' file is wrong."""
    from kview.config.profiles import config_path
    from kview.tui.keymap import read_keys
    from kview.tui.session import Session
    from kview.tui.widgets.header import SourceInfo

    return Session(
        feed=run,
        source=SourceInfo(name, interval_ms, display.production, display.colour),
        clock_ms=run.clock_ms,
        wall_ms=wall_ms,
        timeline=run,
        keys=read_keys(),
        theme=display.theme,
        ascii_only=display.ascii_only,
        mouse=not display.no_mouse,
        config_file=config_path(),
        log_file=log_file(),
    )


def drive(run: Run, session: "Session", spark: Spark | None, recording: Callable[[], Path | None]) -> int:
    """Show a session until the user ends it.

    `recording` returns the folder of the recording that reports are about, None if there is none yet.
    Returns the exit code and raises the same errors as `run_dashboard`.
    """
    from kview.tui.app import KviewApp
    from kview.tui.textual_internals import draw_only_what_fits, tell_escape_apart

    draw_only_what_fits(session.ascii_only)
    tell_escape_apart()
    saved = saved_folder(state_folder())
    reports = ReportMaker(recording, saved)
    app = KviewApp(
        replace(session, spark=spark, saves=FolderSaves(saved), reports=reports, record_line=_record_line)
    )
    try:
        code = asyncio.run(_drive(app, run))
    finally:
        # Spark is stopped first, so that it ends while everything else ends.
        reports.cancel()
        if spark is not None:
            spark.stop()
        run.stop()
        reports.stop()
    if run.error is not None:
        raise run.error
    return code


async def _drive(app: Any, run: Run) -> int:
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
