"""Runs the engine at the pace of the wall clock, in slices, so that sockets are served while it catches
up."""

import asyncio
from collections.abc import Callable
from typing import Protocol

SLICE_US = 20_000
"""The engine runs this far at most before sockets are looked at again."""

TICK_S = 0.001
"""Events closer together than this are run together: a process that wakes less often costs less, and no
client can tell."""

LONGEST_SLEEP_S = 0.1
"""The clock is looked at this often even if nothing is due, so that a pause of the process is told from an
idle engine."""


class Engine(Protocol):
    """What the driver needs of the simulated cluster."""

    @property
    def now_us(self) -> int: ...
    def run_until(self, now_us: int) -> None: ...
    def next_due_us(self) -> int | None: ...


class Driver:
    """Calls `run_until` as time passes: by a timer when something is due, and before each request.

    `clock_us(engine_us)` is the time that the engine should have reached, see `kview.serve.clock`. `failed`
    is called with an exception that the engine let through, a broken invariant for example; the driver has
    then stopped.
    """

    def __init__(
        self,
        engine: Engine,
        clock_us: Callable[[int], int],
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[Exception], None],
    ) -> None:
        self._engine = engine
        self._clock_us = clock_us
        self._loop = loop
        self._failed = failed
        self._timer: asyncio.Handle | None = None
        self._timer_at_s = float("inf")
        self._stopped = False

    def start(self) -> None:
        """Begin, on the running loop."""
        self._tick()

    def stop(self) -> None:
        """No more events happen."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def advance(self) -> None:
        """Bring the engine to the present, or one slice closer to it."""
        now_us = self._engine.now_us
        target_us = min(self._clock_us(now_us), now_us + SLICE_US)
        if target_us > now_us and not self._stopped:
            self._engine.run_until(target_us)

    def rearm(self) -> None:
        """Look again at what is due next: to be called after the engine was given something to do."""
        if self._stopped:
            return
        engine_us, due_us = self._engine.now_us, self._engine.next_due_us()
        behind_us = self._clock_us(engine_us) - engine_us
        if behind_us >= SLICE_US:
            delay_s = 0.0
        else:
            due_s = LONGEST_SLEEP_S if due_us is None else (due_us - engine_us - behind_us) / 1e6
            delay_s = min(max(due_s, TICK_S), LONGEST_SLEEP_S)
        at_s = self._loop.time() + delay_s
        if at_s < self._timer_at_s - TICK_S / 2:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at_s = at_s
            self._timer = (
                self._loop.call_at(at_s, self._tick) if delay_s else self._loop.call_soon(self._tick)
            )

    def _tick(self) -> None:
        self._timer, self._timer_at_s = None, float("inf")
        try:
            self.advance()
        except Exception as error:
            self.stop()
            self._failed(error)
            return
        self.rearm()
