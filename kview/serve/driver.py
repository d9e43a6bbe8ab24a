"""The driver, which runs the engine at wall-clock pace, in slices so that sockets are served in between."""

import asyncio
from collections.abc import Callable

from kview.serve.clock import Clock
from kview.simulate.kernel import Kernel

SLICE_US = 20_000
"""Limit of how far the engine advances before sockets are served again."""

TICK_S = 0.0005
"""Events closer together than this run in one batch. This saves wake-ups, and clients do not notice."""

LONGEST_SLEEP_S = 0.1
"""The clock is read at least this often even if no event is due, so that a pause of the process is not
mistaken for an idle engine."""


class Driver:
    """Advances the engine as time passes: by a timer when an event is due, and before each request.

    The `clock` has the time that the engine should have reached, and is held back while the engine's own
    stands. When the engine raises an exception (for example because of a broken invariant), the driver stops
    and passes the exception to `failed`.
    """

    def __init__(
        self,
        engine: Kernel,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[Exception], None],
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._loop = loop
        self._failed = failed
        self._timer: asyncio.Handle | None = None
        self._timer_at_s = float("inf")
        self._stopped = False

    def start(self) -> None:
        """Start driving the engine on the running event loop."""
        self._tick()

    def stop(self) -> None:
        """Stop, so that no further event runs."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def advance(self) -> None:
        """Advance the engine to the present, but by no more than SLICE_US."""
        now_us = self._engine.now_us
        target_us = min(self._clock.now_us(now_us), now_us + SLICE_US)
        if target_us <= now_us or self._stopped:
            return
        if self._engine.stands:
            self._clock.skip(now_us - target_us)
            self._engine.work(target_us - now_us)
        else:
            self._engine.run_until(target_us)

    def rearm(self) -> None:
        """Set the timer for the next event. Call this after the engine was given something to do."""
        if self._stopped:
            return
        engine_us, due_us = self._engine.now_us, self._engine.next_due_us()
        behind_us = self._clock.now_us(engine_us) - engine_us
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
