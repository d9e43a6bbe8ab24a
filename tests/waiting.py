"""Waiting on a condition with a deadline, and a pace to work at: the one place where tests sleep."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.05

PATIENCE_S = 120.0
"""For what takes a moment on a machine that has nothing else to do. Where others take most of the processor,
as they do on some days where CI runs, a command that starts takes half a minute."""


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


def pause(seconds: float) -> None:
    """Let time pass that is part of what is played, such as the turns of a broker that stops and goes on."""
    time.sleep(max(0.0, seconds))


def paced(interval_s: float) -> Iterator[None]:
    """Yield once per interval, without end; after a delay at once."""
    while True:
        began_s = time.monotonic()
        yield
        time.sleep(max(0.0, began_s + interval_s - time.monotonic()))
