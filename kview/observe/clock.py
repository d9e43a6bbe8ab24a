"""Notices when the wall clock is set, and moves the times of earlier answers to the new clock."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

JUMP_LEAST_MS = 2_000
"""A smaller difference may be a clock that is adjusted gradually, or a process that had to wait between
reading one clock and the other."""


def system_clock_ms() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def steady_s() -> float:
    """Return seconds that pass evenly, also while the machine is suspended if the system can tell."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Jump(Struct, frozen=True):
    """The clock was set by `by_ms`, and shows `now_ms` now.

    The times from `since_ms` to now are the new clock's, and all others are the old clock's.
    """

    by_ms: int
    now_ms: int
    since_ms: int

    def time(self, at_ms: int) -> int:
        """Return a time as the new clock would have shown it. UNKNOWN stays."""
        return at_ms if at_ms == UNKNOWN or self.since_ms <= at_ms <= self.now_ms else at_ms + self.by_ms

    def times(self, at_ms: Longs) -> Longs:
        """Return the same for an array of times."""
        stay = (at_ms == UNKNOWN) | ((self.since_ms <= at_ms) & (at_ms <= self.now_ms))
        return np.where(stay, at_ms, at_ms + np.where(stay, 0, self.by_ms))

    def move(self, thing: Any, *names: str) -> None:
        """Replace the times in these attributes of `thing`, which are numbers or arrays."""
        for name in names:
            value = getattr(thing, name)
            setattr(thing, name, self.times(value) if isinstance(value, np.ndarray) else self.time(value))


class ClockWatch:
    """Compares the wall clock with a steady one."""

    def __init__(self, clock_ms: Callable[[], int], steady_s: Callable[[], float]) -> None:
        self._clock_ms, self._steady_s = clock_ms, steady_s
        self._seen = (clock_ms(), steady_s())

    def jump(self) -> Jump | None:
        """Return how the clock was set since the last call, None if it was not."""
        before_ms, before_s = self._seen
        now_ms, now_s = self._seen = (self._clock_ms(), self._steady_s())
        elapsed_ms = round((now_s - before_s) * 1000)
        by_ms = now_ms - before_ms - elapsed_ms
        return Jump(by_ms, now_ms, now_ms - elapsed_ms) if abs(by_ms) >= JUMP_LEAST_MS else None
