"""The run on a terminal: the dashboard, and its ends by keys, signals and errors."""

import asyncio
import os
import signal
import sys
import threading
import time
from typing import Any

from kview.model.ports import Faults
from kview.run.folding import new_fold
from kview.run.observing import ObservingFeed, Source
from kview.run.settings import Display

END_WITHIN_S = {signal.SIGINT: 3.0, signal.SIGTERM: 3.0, signal.SIGHUP: 0.9}
"""After a signal kview is gone by then, whatever hinders it: a terminal that has gone away, or does not take
what is written, blocks whoever writes to it. Where it is still there, restoring it may take its time on a
busy machine."""


def run_dashboard(
    source: Source, faults: Faults | None, name: str, display: Display, ascii_only: bool
) -> int:
    """Show `source` until the user ends it. Returns the exit code.

    Raises what ended the run before its first picture, after the terminal is as it was.
    """
    from kview.tui.app import KviewApp
    from kview.tui.widgets.header import SourceInfo

    _draw_only_what_fits(ascii_only)
    feed = ObservingFeed(source, new_fold, display.interval_ms / 1000)
    app = KviewApp(
        feed=feed,
        faults=faults,
        source=SourceInfo(name, display.interval_ms),
        clock_ms=lambda: time.time_ns() // 1_000_000,
        theme=display.theme,
        ascii_only=ascii_only,
    )
    try:
        code = asyncio.run(_drive(app, feed))
    finally:
        feed.stop()
    if feed.error is not None:
        raise feed.error
    return code


async def _drive(app: Any, feed: ObservingFeed[Any]) -> int:
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

    feed.on_end = end_by_error
    await app.run_async()
    if app.bug is not None:
        raise app.bug
    return code


def _draw_only_what_fits(ascii_only: bool) -> None:
    """Whatever has no stand-in becomes a `?`, never an exception in the thread that draws, nor a byte the
    terminal cannot show."""
    screen = sys.__stderr__
    if screen is not None:
        screen.reconfigure(encoding="ascii" if ascii_only else None, errors="replace")
