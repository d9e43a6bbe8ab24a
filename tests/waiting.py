"""Waiting on a condition with a deadline, and a pace to work at: the one place where tests sleep."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.05

PATIENCE_S = 30.0
"""For what takes a moment on a machine that has nothing else to do: a test that waits for long has failed."""


def wait_until(probe: Callable[[], T], what: str, timeout_s: float = PATIENCE_S) -> T:
    """Call `probe` until it answers something true, and return that.

    Raises AssertionError naming `what` and the last answer when `timeout_s` have passed.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}; the last answer was {answer!r}")
        time.sleep(POLL_S)


def paced(interval_s: float) -> Iterator[None]:
    """Yield once per interval, without end; after a delay at once."""
    while True:
        began_s = time.monotonic()
        yield
        time.sleep(max(0.0, began_s + interval_s - time.monotonic()))
