"""The event loop of an observer's connections, which is kafka-python's NetworkSelector on a daemon thread."""

import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct, field

from kview.observe.access import Access
from kview.observe.renewal import Renewal
from kview.wire.kafka_internals import ByteMeter, Future, NetworkSelector, QuietSelector

CLIENT_ID = "kview"
T = TypeVar("T")

LOOKUPS_AT_ONCE = 8
"""Limit of simultaneous name look-ups, each of which blocks a thread. More wait for the next attempt to
connect."""


class Meter(ByteMeter):
    """The cost of observing so far."""

    requests: int = 0


class Loop(Struct):
    """The selector, clocks, meter and access to brokers that links share.

    Other threads may call only `run` and `stop`.
    """

    clock_ms: Callable[[], int]
    monotonic: Callable[[], float]
    net: Any = field(
        default_factory=lambda: NetworkSelector(
            client_id=CLIENT_ID, slow_task_threshold_secs=0, selector=QuietSelector
        )
    )
    renewal: Renewal = field(default_factory=Renewal)
    meter: Meter = field(default_factory=Meter)
    bugs: list[BaseException] = field(default_factory=list)
    """Exceptions of tasks that nobody awaited, which the next observation raises."""
    _lookups: int = 0

    @property
    def access(self) -> Access:
        """What links need to get through to brokers, as it is now."""
        return self.renewal.access

    def start(self) -> None:
        self.net.start()

    def stop(self) -> None:
        """End the thread and everything that still waits on it."""
        self.net.stop(timeout_ms=500)
        self.net.close()

    def run(self, task: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run `task` on the loop's thread, and wait for its result on the caller's thread."""
        return self.net.run(task)

    def spawn(self, task: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run `task` in the background, and return a future. An exception in the task is a bug."""
        future = self.begin(task)
        future.add_errback(self.bugs.append)
        return future

    def begin(self, task: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Start `task` on this thread once the current task waits, and return a future of its result."""
        future = Future()

        async def run() -> None:
            try:
                outcome = await task()
            except BaseException as error:
                future.failure(error)
            else:
                future.success(outcome)

        self.net.call_soon(run)
        return future

    async def settle(self, futures: Iterable[Any], timeout_s: float) -> None:
        """Wait until all `futures` are done, or until `timeout_s` have passed."""
        pending = [future for future in futures if not future.is_done]
        if not pending:
            return
        left = len(pending)
        settled = Future()

        def one_done(_: Any) -> None:
            nonlocal left
            left -= 1
            if not left and not settled.is_done:
                settled.success(None)

        def time_is_up() -> None:
            if not settled.is_done:
                settled.success(None)

        timer = self.net.call_later(timeout_s, time_is_up)
        for future in pending:
            future.add_both(one_done)
        await settled
        self.net.cancel(timer)

    async def addresses(self, host: str, port: int) -> list[Any]:
        """Return the addresses of `host` in the form of getaddrinfo.

        Host names are looked up on a separate thread. Raises Unresolved or TooManyLookups.
        """
        try:
            return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
        except (socket.gaierror, UnicodeError):  # UnicodeError: IDNA has no such name
            pass  # not an IP address, so a name
        if self._lookups >= LOOKUPS_AT_ONCE:
            raise TooManyLookups

        def look_up() -> list[Any]:
            try:
                return list(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                raise Unresolved(host, error) from error

        self._lookups += 1
        try:
            return await self.in_thread(look_up, "look-up")
        finally:
            self._lookups -= 1

    async def in_thread(self, work: Callable[[], T], name: str) -> T:
        """Do work that blocks, on a daemon thread called `name`, and return its result or raise its error."""
        done = Future()

        def finish(tell: Callable[[], object]) -> None:
            with suppress(RuntimeError):  # the loop has been stopped, so nobody waits any more
                self.net.call_soon_threadsafe(tell)

        def run() -> None:
            try:
                result = work()
            except Exception as error:
                failed = error  # `error` itself is gone after the block
                finish(lambda: done.failure(failed))
            else:
                finish(lambda: done.success(result))

        threading.Thread(target=run, name=name, daemon=True).start()
        outcome: T = await done
        return outcome


class Unresolved(Exception):
    """Raised for a host name that cannot be resolved."""

    def __init__(self, host: str, error: Exception) -> None:
        super().__init__(host, error)


class TooManyLookups(Exception):
    """Raised while so many names are being looked up that this one must wait for the next attempt."""
