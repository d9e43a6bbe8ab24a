"""The run on a terminal: the dashboard, and its ends by keys, signals and errors."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kview.derive.view import View
from kview.language.errors import sentence
from kview.model.faults import Faults
from kview.model.ports import Attention, Feed, Timeline
from kview.run.log import log_file
from kview.run.observing import AttentiveSource
from kview.run.settings import Display
from kview.run.spark import Spark
from kview.run.tape import Tape
from kview.run.timeline import LiveTimeline

if TYPE_CHECKING:
    from kview.tui.widgets.header import SourceInfo

END_WITHIN_S = {signal.SIGINT: 3.0, signal.SIGTERM: 3.0, signal.SIGHUP: 0.9}
"""After a signal kview is gone by then, whatever hinders it: a terminal that has gone away, or does not take
what is written, blocks whoever writes to it. Where it is still there, restoring it may take its time on a
busy machine."""


RECORDING_STARTS_AFTER_S = 0.3
"""After the first picture: what recording imports must not be felt while that one is drawn."""


class Run(Feed[View], Timeline, Protocol):
    """What a dashboard needs of a run."""

    @property
    def error(self) -> BaseException | None:
        """What ended the run before its first picture."""
        ...

    def on_error(self, call: Callable[[], None]) -> None:
        """Have that called once where the run ends before its first picture."""
        ...

    def clock_ms(self) -> int:
        """The time at the picture handed last, epoch ms."""
        ...


def run_dashboard(
    source: AttentiveSource, faults: Faults | None, name: str, display: Display, ascii_only: bool
) -> int:
    """Show `source` until the user ends it. Returns the exit code.

    Raises what ended the run before its first picture, after the terminal is as it was.
    """
    from kview.tui.widgets.header import SourceInfo

    tape = Tape(display.record, RECORDING_STARTS_AFTER_S)
    run = LiveTimeline(source, tape, display.interval_ms / 1000, wall_ms)
    spark = None if display.no_spark else Spark(run.set_aggregates, wall_ms, live=True)
    if spark is not None:
        tape.on_folder, tape.on_stopped = spark.read, spark.nothing_to_read
    code = drive(run, faults, SourceInfo(name, display.interval_ms), display, ascii_only, spark, source)
    if tape.unfinished is not None:
        print(f"kview: {sentence(tape.unfinished)}", file=sys.stderr)
    return code


def wall_ms() -> int:
    """The wall clock, epoch ms."""
    return time.time_ns() // 1_000_000


def drive(
    run: Run,
    faults: Faults | None,
    source: "SourceInfo",
    display: Display,
    ascii_only: bool,
    spark: Spark | None,
    attention: Attention | None = None,
) -> int:
    """The dashboard of a run, until the user ends it. Returns the exit code; raises as `run_dashboard`."""
    from kview.tui.app import KviewApp
    from kview.tui.textual_internals import draw_only_what_fits

    draw_only_what_fits(ascii_only)
    app = KviewApp(
        feed=run,
        faults=faults,
        source=source,
        clock_ms=run.clock_ms,
        theme=display.theme,
        ascii_only=ascii_only,
        timeline=run,
        spark=spark,
        wall_ms=wall_ms,
        attention=attention,
        log_file=log_file(),
    )
    try:
        code = asyncio.run(_drive(app, run))
    finally:
        # The job first: it ends while the rest does.
        if spark is not None:
            spark.stop()
        run.stop()
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
        # In its turn: an app that ends before its first screen stands draws on half of one.
        app.call_later(app.exit)

    for number in END_WITHIN_S:
        loop.add_signal_handler(number, end, number)

    def end_by_error() -> None:
        loop.call_soon_threadsafe(app.call_later, app.exit)

    run.on_error(end_by_error)
    await app.run_async()
    if app.bug is not None:
        raise app.bug
    return code
