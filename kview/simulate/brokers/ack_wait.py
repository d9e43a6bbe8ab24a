"""An append that waits for its acknowledgement. Source: kafka.server.DelayedProduce."""

from collections.abc import Callable

from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Timer
from kview.simulate.results import ProduceResult


class AckWait:
    """An acks=all append that waits for the high watermark to pass `offset`."""

    __slots__ = ("done", "offset", "result", "timer")

    def __init__(self, offset: int, result: ProduceResult, done: Callable[[ProduceResult], None]) -> None:
        self.offset = offset
        self.result = result
        self.done: Callable[[ProduceResult], None] | None = done
        self.timer: Timer | None = None

    def answer(self, result: ProduceResult) -> None:
        """Answer the append, unless it has been answered already."""
        done, self.done = self.done, None
        if done is not None:
            done(result)

    def expire(self) -> None:
        """Answer that the request has timed out."""
        self.answer(ProduceResult(ErrorCode.REQUEST_TIMED_OUT))
