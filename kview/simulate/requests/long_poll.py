"""A long poll, that is, a fetch that waits for records. Source: kafka.server.DelayedFetch."""

from collections.abc import Callable, Sequence

from kview.simulate.brokers.process import BrokerProcess
from kview.simulate.brokers.replica import Replica
from kview.simulate.kernel import Timer

Done = Callable[[], None]


class ReadWait:
    """A long poll, that is, a fetch that waits for records.

    `done` is called once, when enough can be read, when a leader or a log has changed, or when the time is
    over.
    """

    __slots__ = ("_done", "_led", "_min_bytes", "_number", "_positions", "_process", "_timer")

    def __init__(
        self,
        process: BrokerProcess,
        number: int,
        positions: Sequence[tuple[Replica, int]],
        min_bytes: int,
        done: Done,
    ) -> None:
        self._process = process
        self._number = number
        self._positions = positions
        self._led = [replica.leading for replica, _ in positions]
        self._min_bytes = min_bytes
        self._done: Done | None = done
        self._timer: Timer | None = None

    def start(self, max_wait_ms: int) -> None:
        """Start waiting, or finish immediately if enough can be read."""
        self._timer = self._process.after(max_wait_ms * 1000, self._finish)
        for replica, _ in self._positions:
            replica.readers[self._number] = self.look
        self.look()

    def look(self) -> None:
        """Finish if enough can be read now, or if a replica has begun or ceased to lead or no longer contains
        the offset."""
        size = 0
        for (replica, offset), led in zip(self._positions, self._led, strict=True):
            log, watermark = replica.log, replica.high_watermark
            if replica.leading is not led or not log.start <= offset <= log.end:
                self._finish()
                return
            if offset < watermark:
                size += log.size_between(offset, watermark)
                if size >= self._min_bytes:
                    self._finish()
                    return

    def cancel(self) -> None:
        """Stop waiting without calling `done`."""
        self._done = None
        self._process.kernel.cancel(self._timer)
        for replica, _ in self._positions:
            replica.readers.pop(self._number, None)

    def _finish(self) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done()
