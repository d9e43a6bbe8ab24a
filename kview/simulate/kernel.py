"""The engine's clock and event queue, whose order depends on the seed alone."""

import random
from collections.abc import Callable
from heapq import heappop, heappush

Trace = Callable[[str], None]


class Timer:
    """A callback due at `time_us`. `fn` is None once the callback has run or was cancelled."""

    __slots__ = ("args", "fn", "time_us")

    def __init__(self, time_us: int, fn: Callable[..., object], args: tuple[object, ...]) -> None:
        self.time_us = time_us
        self.fn: Callable[..., object] | None = fn
        self.args = args


class Kernel:
    """An event queue ordered by time (µs since the epoch), then by the order of scheduling."""

    def __init__(self, seed: int, start_us: int) -> None:
        self.seed = seed
        self.now_us = start_us
        self.trace_sink: Trace | None = None
        self.after_event: Callable[[], None] | None = None
        self._heap: list[tuple[int, int, Timer]] = []
        self._number = 0
        self._randoms: dict[str, random.Random] = {}

    def at(self, time_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Call `fn(*args)` at `time_us`, or at the start of the next `run_until` if that time has passed."""
        if time_us < self.now_us:
            time_us = self.now_us
        timer = Timer(time_us, fn, args)
        self._number += 1
        heappush(self._heap, (time_us, self._number, timer))
        return timer

    def after(self, delay_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Call `fn(*args)` when `delay_us` microseconds have passed."""
        return self.at(self.now_us + delay_us, fn, *args)

    def cancel(self, timer: Timer | None) -> None:
        """Cancel a timer. Does nothing if the timer is None or has run."""
        if timer is not None:
            timer.fn = None
            timer.args = ()

    def run_until(self, time_us: int) -> None:
        """Run everything due up to `time_us`, and set the clock to that time.

        A time in the past does nothing.
        """
        heap = self._heap
        while heap and heap[0][0] <= time_us:
            due_us, _, timer = heappop(heap)
            fn = timer.fn
            if fn is None:
                continue
            if due_us > self.now_us:
                self.now_us = due_us
            timer.fn = None
            fn(*timer.args)
            if self.after_event is not None:
                self.after_event()
        if time_us > self.now_us:
            self.now_us = time_us

    def next_due_us(self) -> int | None:
        """Return when the next event is due, in µs since the epoch, or None."""
        heap = self._heap
        while heap and heap[0][2].fn is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def random(self, name: str) -> random.Random:
        """Return the random source of this name. Its numbers depend only on the seed and the name."""
        source = self._randoms.get(name)
        if source is None:
            # Python hashes a str seed with SHA-512 and never with hash(), so PYTHONHASHSEED changes nothing.
            source = self._randoms[name] = random.Random(f"{self.seed}/{name}")
        return source

    def trace(self, *words: object) -> None:
        """Send one line to the trace sink, beginning with the time."""
        if self.trace_sink is not None:
            self.trace_sink(" ".join(map(str, (self.now_us, *words))))
