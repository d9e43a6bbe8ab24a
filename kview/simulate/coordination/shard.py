"""One partition of a coordinators' topic at its leader: what is written to its log, and who waits."""

from collections.abc import Callable

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.host import MS, Host
from kview.simulate.kernel import Timer

CLEAN_AFTER_BATCHES = 2_000
"""Batches that are added to a log before it is cleaned. Loading this many takes about 100 ms. Kafka waits
until a segment of 100 MB is full."""

HUNG_RETRY_MS = 100
"""Interval at which a timer that came due in a hung process checks whether the process has resumed."""

_AS_COORDINATOR = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
}
"""The error a client gets for a failed append (GroupCoordinatorService.handleOperationException,
TransactionStateManager.appendTransactionToLog)."""

Answer = Callable[[ErrorCode], None]


class Shard:
    """A partition while this broker leads it in one leader epoch. `write_ms` limits how long a client waits
    for a write."""

    def __init__(self, host: Host, partition: int, write_ms: int) -> None:
        self.host = host
        self.partition = partition
        self.loading = True
        self.closed = False
        self._write_ms = write_ms
        self._writes: dict[int, Answer] = {}
        self._write_number = 0
        self.batches = 0
        """Batches in the log that have not been cleaned."""

    @property
    def now_ms(self) -> int:
        """The engine's time in ms."""
        return self.host.now_us() // MS

    def after(self, delay_ms: int, fn: Callable[[], None]) -> Timer:
        """Call `fn` later if this shard is still open.

        In a hung process, the call waits until the process resumes.
        """
        return self.host.after(delay_ms * MS, lambda: self._due(fn))

    def time_out(self, delay_ms: int, fn: Callable[[], None]) -> Timer:
        """Do the same for a time-out, which waits while the clock stands."""
        return self.host.tick(delay_ms * MS, lambda: self._due(fn))

    def _due(self, fn: Callable[[], None]) -> None:
        if self.closed:
            return
        if self.host.is_running():
            fn()
        else:
            self.host.after(HUNG_RETRY_MS * MS, lambda: self._due(fn))

    def every(self, interval_ms: int, fn: Callable[[], None]) -> None:
        """Call `fn` again and again, as long as this shard is open."""

        def due() -> None:
            self.every(interval_ms, fn)
            fn()

        self.after(interval_ms, due)

    def load_after(self, delay_ms: int, load: Callable[[], None]) -> None:
        """Call `load` after a delay, which may be 0: now."""
        if delay_ms:
            self.after(delay_ms, load)
        else:
            load()

    def cancel(self, timer: Timer | None) -> None:
        """Cancel a timer, if there is one."""
        if timer is not None:
            self.host.cancel(timer)

    def append(self, batch: bytes, apply: Callable[[int], None] | None, answer: Answer) -> None:
        """Append a batch to the log, and call `apply` with its offset when it is committed, however late.

        `answer` is called once: when the batch is committed, when the append fails, or after `write_ms`.
        """
        number = self._write_number = self._write_number + 1
        self._writes[number] = answer
        timer = self.time_out(
            self._write_ms, lambda: self._answer(number, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        )

        def appended(code: ErrorCode, offset: int) -> None:
            if self.closed:
                return
            if code is ErrorCode.BROKER_NOT_AVAILABLE:
                return  # The process died, so no client is left to answer.
            self.cancel(timer)
            if code is ErrorCode.NONE and apply is not None:
                apply(offset)
            self._answer(number, _AS_COORDINATOR.get(code, ErrorCode.UNKNOWN_SERVER_ERROR))
            if self.batches >= CLEAN_AFTER_BATCHES:
                self.clean()

        self.batches += 1
        self.host.append(self.partition, batch, appended)

    def clean(self) -> None:
        """Shorten the log, which the next coordinator has to read."""
        self.batches = 0
        self.host.clean(self.partition)

    def _answer(self, number: int, code: ErrorCode) -> None:
        answer = self._writes.pop(number, None)
        if answer is not None:
            answer(code)

    def close(self, answer: bool) -> None:
        """Close the shard. Waiting clients get NOT_COORDINATOR, or no answer if the process died."""
        self.closed = True
        writes, self._writes = self._writes, {}
        if answer:
            for waiting in writes.values():
                waiting(ErrorCode.NOT_COORDINATOR)
