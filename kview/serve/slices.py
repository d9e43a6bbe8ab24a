"""Shares the event loop between requests that take long and everybody else."""

from collections import deque
from collections.abc import Callable

FIRST_SLICE_S = 0.002
"""What takes no longer than this is done at once, as almost every request is."""

SLICE_S = 0.01
"""The rest is done in slices of this length. It is the time that another client waits at most per turn."""

Late = Callable[[], bool]
Work = Callable[[Late], bool]
"""Goes on with some work until it is late, and returns whether it has nothing left to do."""


class Slices:
    """Does work in slices, one between two turns of the event loop, however many requests take long.

    `call_soon` schedules a function on the event loop. `now_s` is a clock in seconds. `after` is called after
    each slice on the event loop.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        now_s: Callable[[], float],
        after: Callable[[], None],
    ) -> None:
        self._call_soon = call_soon
        self._now_s = now_s
        self._after = after
        self._waiting: deque[Work] = deque()

    def begin(self, work: Work) -> None:
        """Do work, at once if it is short. Otherwise the rest of it takes turns with the work of others."""
        if not work(self._late_after(FIRST_SLICE_S)):
            self._waiting.append(work)
            if len(self._waiting) == 1:
                self._call_soon(self._turn)

    def _turn(self) -> None:
        work = self._waiting[0]
        done = work(self._late_after(SLICE_S))
        self._waiting.popleft()
        if not done:
            self._waiting.append(work)
        self._after()
        if self._waiting:
            self._call_soon(self._turn)

    def _late_after(self, seconds: float) -> Late:
        now_s = self._now_s
        end_s = now_s() + seconds
        return lambda: now_s() >= end_s
