"""The dashboard on a terminal that only notes when something is written to it.

Textual's own pilot sleeps at least 40 ms for each key and encodes no frames, so it cannot measure a key.
"""

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar, NamedTuple

from textual.drivers.headless_driver import HeadlessDriver
from textual.events import Key

from kview.derive.view import View
from kview.tui.app import KviewApp
from kview.tui.session import Session
from kview.tui.widgets.header import SourceInfo
from tests.tui.harness import SEEN_AFTER_MS, FakeClock, FakeFeed, own_themes

QUIET_S = 0.04
"""Nothing more is painted for a key when the app has written nothing and hardly worked for this long."""
BUSY = 0.25
"""The share of a core from which the app counts as working."""


class Painting(HeadlessDriver):
    """A driver for which frames are encoded as for a real one. It notes when the last one was written."""

    made: ClassVar[list["Painting"]] = []
    written_s = 0.0
    written = 0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.made.append(self)

    @property
    def is_headless(self) -> bool:
        """Return False, because Textual encodes nothing for a headless driver."""
        return False

    def write(self, data: str) -> None:
        """Note the time, and count the characters."""
        self.written_s = time.perf_counter()
        self.written += len(data)


class Took(NamedTuple):
    """Milliseconds until the last thing painted, and of the main thread's processor time."""

    wall_ms: float
    cpu_ms: float


class Terminal:
    """What a benchmark does with the dashboard, and how long it takes."""

    def __init__(self, app: KviewApp, feed: FakeFeed, clock: FakeClock, driver: Painting) -> None:
        self.app = app
        self.driver = driver
        self._feed = feed
        self._clock = clock

    async def press(self, key: str) -> Took:
        """Press a key, and wait until everything is painted."""
        character = {"slash": "/"}.get(key, key if len(key) == 1 else None)
        event = Key(key, character)
        event.set_sender(self.app)
        return await self._measured(lambda: self.driver.send_message(event))

    async def show(self, view: View) -> Took:
        """Let a view arrive, and wait until it is painted."""
        self._clock.now_ms = view.snapshot.observation.ended_ms + SEEN_AFTER_MS
        return await self._measured(lambda: self._feed.show(view))

    async def _measured(self, act: Callable[[], None]) -> Took:
        await self._quiet()
        began_s, began_cpu_s = time.perf_counter(), time.thread_time()
        self.driver.written_s = began_s
        act()
        await self._quiet()
        cpu_s = time.thread_time() - began_cpu_s
        return Took((self.driver.written_s - began_s) * 1000, cpu_s * 1000)

    async def _quiet(self) -> None:
        while True:
            began_s, began_cpu_s = time.perf_counter(), time.thread_time()
            written_s = self.driver.written_s
            await asyncio.sleep(QUIET_S)
            share = (time.thread_time() - began_cpu_s) / (time.perf_counter() - began_s)
            if written_s == self.driver.written_s and share < BUSY:
                return


@asynccontextmanager
async def terminal(view: View, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Terminal]:
    """Run the dashboard, which shows `view`."""
    os.environ["COLORTERM"] = "truecolor"
    feed, clock = FakeFeed(view), FakeClock(view.snapshot.observation.ended_ms + SEEN_AFTER_MS)
    source = SourceInfo("simulated")
    session = Session(
        feed=feed, source=source, clock_ms=clock, no_color=False, few_colors=False, themes=own_themes()
    )
    app = KviewApp(session)
    app.driver_class = Painting
    async with app.run_test(headless=False, size=size):
        made = Terminal(app, feed, clock, Painting.made[-1])
        await made.press("f1")  # until the first frame is painted
        gc.freeze()  # as the dashboard does after its first view (kview.run.observing)
        yield made
