"""The engine's clock and event queue. With the same seed, the same events happen in the same order."""

import random
from collections.abc import Callable
from heapq import heapify, heappop, heappush

CANCELLED_MAX = 1_000
"""So many cancelled timers stay in the queue until their time, or as many as there are others."""

WORK_US = 500_000
"""What is due within this time is work, such as a step of replication, or the answer to a poll. It goes on
while the clock stands. What is due later waits for time to pass: heartbeats, time-outs, retention."""

Trace = Callable[[str], None]
Blame = Callable[[Exception], None]
"""Takes the exception of a failed event, on behalf of the client whose request scheduled the event."""


class Timer:
    """A callback due at `time_us`. `fn` is None once the callback has run or was cancelled.

    `blame` takes an exception of the callback. It is None if no client's request scheduled the callback.
    `is_work` says that it is due even if the clock stands.
    """

    __slots__ = ("args", "blame", "fn", "is_work", "time_us")

    def __init__(
        self,
        time_us: int,
        fn: Callable[..., object],
        args: tuple[object, ...],
        blame: Blame | None,
        is_work: bool,
    ) -> None:
        self.time_us = time_us
        self.is_work = is_work
        self.fn: Callable[..., object] | None = fn
        self.args = args
        self.blame = blame


class Kernel:
    """An event queue ordered by time (µs since the epoch), then by the order of scheduling.

    `blame` is set while a client's request is handled, and applies to the events that the request schedules.
    `unblamed` takes the exceptions of all other events. If it is None, they are raised by `run_until`.

    While the clock stands, which `stands` says, `now_us` stays as it is, and only work is done.
    """

    def __init__(self, seed: int, start_us: int) -> None:
        self.seed = seed
        self.now_us = start_us
        self.trace_sink: Trace | None = None
        self.after_event: Callable[[], None] | None = None
        self.blame: Blame | None = None
        self.unblamed: Blame | None = None
        self.stands = False
        self._stood_us = 0
        """For how long the clock has stood. The queue's times are those of a clock that has never stood."""
        self._heap: list[tuple[int, int, Timer]] = []
        self._parked: list[tuple[int, int, Timer]] = []
        """What waits until the clock goes on, by the clock that stands."""
        self._number = 0
        self._cancelled = 0
        self._randoms: dict[str, random.Random] = {}

    def at(self, time_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Call `fn(*args)` at `time_us`, or at the start of the next `run_until` if that time has passed."""
        if time_us < self.now_us:
            time_us = self.now_us
        return self._add(time_us, fn, args, time_us - self.now_us <= WORK_US)

    def _add(self, time_us: int, fn: Callable[..., object], args: tuple[object, ...], is_work: bool) -> Timer:
        timer = Timer(time_us, fn, args, self.blame, is_work)
        self._number += 1
        if self.stands and not is_work:
            self._parked.append((time_us, self._number, timer))
        else:
            heappush(self._heap, (time_us + self._stood_us, self._number, timer))
        return timer

    def after(self, delay_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Call `fn(*args)` when `delay_us` microseconds have passed."""
        return self.at(self.now_us + delay_us, fn, *args)

    def tick(self, delay_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Do the same for what is not work, however soon it is due."""
        return self._add(self.now_us + max(0, delay_us), fn, args, False)

    def cancel(self, timer: Timer | None) -> None:
        """Cancel a timer. Does nothing if the timer is None or has run."""
        if timer is None:
            return
        self._cancelled += timer.fn is not None
        timer.fn = timer.blame = None
        timer.args = ()
        if self._cancelled > max(CANCELLED_MAX, len(self._heap) // 2):
            self._heap[:] = [entry for entry in self._heap if entry[2].fn is not None]
            heapify(self._heap)
            self._parked[:] = [entry for entry in self._parked if entry[2].fn is not None]
            self._cancelled = 0

    def run_until(self, time_us: int) -> None:
        """Run everything due up to `time_us`, and set the clock to that time.

        Does nothing if that time has passed. An event that fails does not stop the events after it if there
        is somebody to blame.
        """
        assert not self.stands
        self._run(time_us + self._stood_us)
        if time_us > self.now_us:
            self.now_us = time_us

    def work(self, us: int) -> None:
        """Do the work of so many microseconds, while the clock stands."""
        assert self.stands
        until_us = self.now_us + self._stood_us + us
        self._run(until_us)
        self._stood_us = max(self._stood_us, until_us - self.now_us)

    def stand(self) -> None:
        """Let the clock stand."""
        if not self.stands:
            self.stands, stood_us = True, self._stood_us
            self._parked += [
                (due_us - stood_us, number, timer)
                for due_us, number, timer in self._heap
                if not timer.is_work
            ]
            self._heap[:] = [entry for entry in self._heap if entry[2].is_work]
            heapify(self._heap)

    def go_on(self) -> None:
        """Let the clock go on from where it stands."""
        if self.stands:
            self.stands = False
            self._heap += [(due_us + self._stood_us, number, timer) for due_us, number, timer in self._parked]
            self._parked = []
            heapify(self._heap)

    @property
    def working_us(self) -> int:
        """The time for which work has been done, since the epoch, also while the clock stood."""
        return self.now_us + self._stood_us

    def _run(self, until_us: int) -> None:
        """Run what is due, in the queue's time."""
        heap = self._heap
        while heap and heap[0][0] <= until_us:
            due_us, _, timer = heappop(heap)
            fn = timer.fn
            if fn is None:
                self._cancelled -= 1
                continue
            if due_us > self.now_us + self._stood_us:
                if self.stands:
                    self._stood_us = due_us - self.now_us
                else:
                    self.now_us = due_us - self._stood_us
            timer.fn = None
            try:
                fn(*timer.args)
            except Exception as error:
                blame = timer.blame or self.unblamed
                if blame is None:
                    raise
                blame(error)
            if self.after_event is not None:
                self.after_event()

    def next_due_us(self) -> int | None:
        """Return when the next event is due, in µs since the epoch, or None if no event is pending."""
        heap = self._heap
        while heap and heap[0][2].fn is None:
            heappop(heap)
            self._cancelled -= 1
        return heap[0][0] - self._stood_us if heap else None

    def random(self, name: str) -> random.Random:
        """Return the random source of this name. Its numbers depend only on the seed and the name."""
        source = self._randoms.get(name)
        if source is None:
            # Python hashes a str seed with SHA-512 and never with hash(), so PYTHONHASHSEED changes nothing.
            source = self._randoms[name] = random.Random(f"{self.seed}/{name}")
        return source

    def trace(self, *words: object) -> None:
        """Send one line to the trace sink, beginning with the time in µs."""
        if self.trace_sink is not None:
            self.trace_sink(" ".join(map(str, (self.now_us, *words))))
