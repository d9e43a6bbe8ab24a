"""The engine's clock and queue: what happens next, in an order that a seed alone decides."""

import random
from collections.abc import Callable
from heapq import heappop, heappush

Trace = Callable[[str], None]


class Timer:
    """Something due at `time_us`; `fn` is None once it ran or was cancelled."""

    __slots__ = ("args", "fn", "time_us")

    def __init__(self, time_us: int, fn: Callable[..., object], args: tuple[object, ...]) -> None:
        self.time_us = time_us
        self.fn: Callable[..., object] | None = fn
        self.args = args


class Kernel:
    """A queue ordered by (time in microseconds since the epoch, number of scheduling)."""

    def __init__(self, seed: int, start_us: int) -> None:
        self.seed = seed
        self.now_us = start_us
        self.trace_sink: Trace | None = None
        self.after_event: Callable[[], None] | None = None
        self._heap: list[tuple[int, int, Timer]] = []
        self._number = 0
        self._randoms: dict[str, random.Random] = {}

    def at(self, time_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Call `fn(*args)` at `time_us`, at once in the next `run_until` where that is past."""
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
        """Let `timer` do nothing; harmless when it has run, or is None."""
        if timer is not None:
            timer.fn = None
            timer.args = ()

    def run_until(self, time_us: int) -> None:
        """Run everything due up to `time_us`, which then is the present; a time that is past runs nothing."""
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
        """When the next event is due, in microseconds since the epoch; None when nothing is."""
        heap = self._heap
        while heap and heap[0][2].fn is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def random(self, name: str) -> random.Random:
        """The source of randomness of this name: the same seed and name give the same numbers in every
        process."""
        source = self._randoms.get(name)
        if source is None:
            # A str seed is hashed by SHA-512 inside, never by hash(): PYTHONHASHSEED changes nothing.
            source = self._randoms[name] = random.Random(f"{self.seed}/{name}")
        return source

    def trace(self, *words: object) -> None:
        """Tell the trace sink of a named event, as one line that begins with the time."""
        if self.trace_sink is not None:
            self.trace_sink(" ".join(map(str, (self.now_us, *words))))
