"""Time-outs by key, which are restarted far more often than they end."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kview.simulate.coordination.host import MS
from kview.simulate.coordination.shard import Shard
from kview.simulate.kernel import Timer

K = TypeVar("K", bound=Hashable)


class _Timeout:
    __slots__ = ("ended", "ends_us", "timer")

    def __init__(self, ends_us: int, ended: Callable[[], None]) -> None:
        self.ends_us = ends_us
        self.ended = ended
        self.timer: Timer | None = None


class Timeouts(Generic[K]):
    """The time-outs of one shard. A time-out that is restarted keeps its timer, which then waits again."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._open: dict[K, _Timeout] = {}

    def start(self, key: K, delay_ms: int, ended: Callable[[], None]) -> None:
        """Call `ended` after `delay_ms`, unless the time-out is cancelled or started again by then."""
        ends_us = self._shard.host.now_us() + max(0, delay_ms) * MS
        known = self._open.get(key)
        if known is not None and known.timer is not None and known.timer.time_us <= ends_us:
            known.ends_us, known.ended = ends_us, ended
            return
        self.cancel(key)
        self._arm(key, _Timeout(ends_us, ended))

    def hold(self, key: K, longer_us: int) -> None:
        """Let a time-out end later, if it is running."""
        known = self._open.get(key)
        if known is not None:
            known.ends_us += longer_us

    def running(self, key: K) -> bool:
        """Return whether a time-out is running."""
        return key in self._open

    def cancel(self, key: K) -> None:
        """End a time-out without its effect, if it is running."""
        known = self._open.pop(key, None)
        if known is not None:
            self._shard.cancel(known.timer)

    def _arm(self, key: K, timeout: _Timeout) -> None:
        self._open[key] = timeout
        left_us = timeout.ends_us - self._shard.host.now_us()
        timeout.timer = self._shard.time_out(-(-left_us // MS), lambda: self._due(key, timeout))

    def _due(self, key: K, timeout: _Timeout) -> None:
        if self._open.get(key) is not timeout:
            return
        if timeout.ends_us > self._shard.host.now_us():
            self._arm(key, timeout)
            return
        del self._open[key]
        timeout.ended()
