"""The engine's time as the wall clock gives it, less the pauses of this process.

A process that was stopped (a laptop's lid, a debugger, a machine with too much to do) finds its clients'
heartbeats waiting in sockets that it has not read yet. If the engine jumped to the wall's time first, it
would expire every session. So its clock is held by the length of the pause, and is brought back to the wall's
time afterwards by running a little fast.
"""

from collections.abc import Callable

MAX_BEHIND_US = 500_000
"""The engine may be this far behind its clock before the clock is held: longer than any collection of garbage
or disk access, far shorter than the shortest session a client asks for."""

CATCH_UP = 0.05
"""How much faster than the wall a held clock runs: a client's heartbeat at a third of its session does not
notice."""


class Clock:
    """`now_us()`: the time the engine should have reached, in microseconds since the epoch.

    `monotonic_ns` is a clock that never jumps, `start_us` the time that the engine starts with.
    """

    def __init__(self, monotonic_ns: Callable[[], int], start_us: int) -> None:
        self._monotonic_ns = monotonic_ns
        self._origin_us = start_us - monotonic_ns() // 1000
        self._held_us = 0
        self._regained_until_us = start_us

    @property
    def held_us(self) -> int:
        """How far this clock is behind the wall's."""
        return self._held_us

    def now_us(self, engine_us: int) -> int:
        """The time now, at most MAX_BEHIND_US after `engine_us`, the time that the engine has reached."""
        wall_us = self._origin_us + self._monotonic_ns() // 1000
        regained_us = int((wall_us - self._regained_until_us) * CATCH_UP)
        if regained_us:
            self._held_us = max(0, self._held_us - regained_us)
            self._regained_until_us = wall_us
        self._held_us = max(self._held_us, wall_us - engine_us - MAX_BEHIND_US)
        return wall_us - self._held_us
