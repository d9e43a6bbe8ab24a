"""The engine's clock, which follows the wall clock but does not jump after a pause of this process.

While this process is paused (laptop lid, debugger, overloaded machine), the heartbeats of its clients wait
unread in their sockets. If simulated time then jumped to wall time, every session would expire. So the clock
is held back by the length of the pause, and then runs a little fast until it has caught up with the wall
clock.
"""

from collections.abc import Callable

MAX_BEHIND_US = 500_000
"""The engine may be this far behind before its clock is held back. This is longer than any garbage collection
or disk access, and far shorter than the shortest session timeout a client asks for."""

CATCH_UP = 0.05
"""The fraction by which a clock that was held back runs faster. This is too little to disturb a client that
sends its heartbeat at a third of its session timeout."""


class Clock:
    """The time that the engine should have reached.

    `monotonic_ns` is a clock that never jumps. `start_us` is the engine's first moment, in microseconds since
    the epoch.
    """

    def __init__(self, monotonic_ns: Callable[[], int], start_us: int) -> None:
        self._monotonic_ns = monotonic_ns
        self._origin_us = start_us - monotonic_ns() // 1000
        self._held_us = 0
        self._regained_until_us = start_us

    def skip(self, us: int) -> None:
        """Be ahead of the wall clock by `us` more, from now on."""
        self._origin_us += us
        self._regained_until_us += us

    @property
    def held_us(self) -> int:
        """Microseconds by which this clock is behind the wall clock."""
        return self._held_us

    def now_us(self, engine_us: int) -> int:
        """Return the current time in microseconds since the epoch.

        The time is at most MAX_BEHIND_US after `engine_us`, which is the time that the engine has reached.
        """
        wall_us = self._origin_us + self._monotonic_ns() // 1000
        regained_us = int((wall_us - self._regained_until_us) * CATCH_UP)
        if regained_us:
            self._held_us = max(0, self._held_us - regained_us)
            self._regained_until_us = wall_us
        self._held_us = max(self._held_us, wall_us - engine_us - MAX_BEHIND_US)
        return wall_us - self._held_us
