"""A link to one broker on one lane, which connects by itself and knows since when the broker is silent."""

import socket
from collections.abc import Callable
from itertools import count
from typing import Any

from kview.model.address import Address
from kview.model.failures import NO_FAILURE, Cause, FailureKind
from kview.model.units import UNKNOWN
from kview.observe.apis import READ_ONLY, Versions
from kview.observe.causes import LinkError, Silence, cause_of, cause_of_end, is_silence
from kview.observe.loop import CLIENT_ID, Loop
from kview.wire.kafka_internals import Connection, ConnectTimedOut, Transport, connect

SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
]
MOST_BYTES_AN_ANSWER = 256 * 1024 * 1024
"""Limit of a frame. A larger frame is not a broker's answer: metadata of 100,000 partitions takes 10 MB."""
MOST_WAITING = 8
"""Limit of requests in flight per link. An observation sends at most six, and more would pile up at a slow
broker."""
SOFTWARE_NAME = "kview-tui"
"""The name sent with ApiVersions. It has nine letters so that the length byte in front of it is a line feed.
A server that reads lines, such as an HTTP server, then replies at once that it did not understand."""


class Link:
    """The connection to one broker on one lane.

    `failing_since_ms` is when the first unanswered request was sent, or UNKNOWN while the broker answers.
    `answered_ms` is when the broker last answered. `cause` is why the broker does not answer. After a refused
    or reset connection, a second connection is tried at once. Only if that attempt fails does the link count
    as failing, and further attempts follow with growing pauses.
    """

    def __init__(
        self, loop: Loop, address: Address, silence_s: float, retry_first_s: float, retry_most_s: float
    ) -> None:
        self.address = address
        self.versions: Versions = {}
        self.answered_ms = UNKNOWN
        self.failing_since_ms = UNKNOWN
        self.cause = NO_FAILURE
        self.on_up: Callable[[], None] = lambda: None
        """Called when a connection is established."""
        self._loop = loop
        self._silence_s = silence_s
        self._retry_first_s = retry_first_s
        self._retry_most_s = retry_most_s
        self._connection: Connection | None = None
        self._waiting: dict[int, tuple[float, int]] = {}
        """The time each request in flight was sent, oldest first, in monotonic seconds and in epoch ms."""
        self._numbers = count()
        self._progress_s = 0.0
        self._watching = False
        self._spare_attempt = True
        self._suspect_ms = UNKNOWN
        self._failures = 0
        self._retry_at_s = 0.0

    @property
    def connected(self) -> bool:
        """Whether the broker has answered on the current connection."""
        return self._connection is not None and self._connection.connected

    @property
    def failing(self) -> bool:
        """Whether the broker fails to answer."""
        return self.failing_since_ms != UNKNOWN

    @property
    def connecting(self) -> bool:
        """Whether a connection attempt is in progress."""
        return self._connection is not None and not self._connection.connected

    @property
    def waiting(self) -> int:
        """The number of requests in flight."""
        return len(self._waiting)

    @property
    def owed_s(self) -> float:
        """Seconds for which the oldest request in flight has waited for its answer, or 0 if there is none."""
        oldest = next(iter(self._waiting.values()), None)
        return 0.0 if oldest is None else self._loop.monotonic() - oldest[0]

    def open(self) -> None:
        """Connect, unless the link is connected, connecting, or pausing after a failure."""
        if self._connection is None and self._loop.monotonic() >= self._retry_at_s:
            self._begin()

    def retry_now(self) -> None:
        """End the pause after a failure, because there is news about the broker."""
        self._retry_at_s = 0.0
        self.open()

    def close(self) -> None:
        """Close the connection. The link can be opened again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def ask(self, request: Any) -> tuple[Any, int]:
        """Send a read-only request, and return its answer and when it was received (epoch ms).

        If the connection is lost, the request is sent once more on a new connection. Raises LinkError.
        """
        if request.API_KEY not in READ_ONLY:
            raise AssertionError(f"API {request.API_KEY} is not one that only reads")
        for last in (False, True):
            connection = self._connection
            if connection is None or self.failing:
                raise LinkError(self.cause if self.failing else Cause(FailureKind.NOT_CONNECTED))
            now_s = self._loop.monotonic()
            number = next(self._numbers)
            if not self._waiting:
                self._progress_s = now_s
            self._waiting[number] = (now_s, self._loop.clock_ms())
            self._loop.meter.requests += 1
            self._watch()
            try:
                answer = await connection.send_request(
                    request, request_timeout_ms=self._silence_s * 1000 * MOST_WAITING
                )
            except Exception as error:
                if last or connection is self._connection or is_silence(error):
                    raise LinkError(self.cause if self.failing else cause_of(error)) from error
            else:
                self._answered()
                return answer, self.answered_ms
            finally:
                self._waiting.pop(number, None)
        raise AssertionError("unreachable")

    def _begin(self) -> None:
        connection = Connection(
            self._loop.net,
            self._loop.meter,
            client_id=CLIENT_ID,
            client_software_name=SOFTWARE_NAME,
            client_software_version="1",
            max_in_flight_requests_per_connection=2 * MOST_WAITING,
            receive_message_max_bytes=MOST_BYTES_AN_ANSWER,
        )
        self._connection = connection
        began_ms = self._loop.clock_ms()
        connection.close_future.add_callback(lambda _: self._lost(connection, None, began_ms))
        connection.close_future.add_errback(lambda error: self._lost(connection, error, began_ms))
        connection.init_future.add_callback(lambda _: self._came_up(connection))
        self._loop.net.call_soon(lambda: self._connect(connection))

    async def _connect(self, connection: Connection) -> None:
        deadline_s = self._loop.monotonic() + self._silence_s
        give_up = self._loop.net.call_at(deadline_s, lambda: connection.close(ConnectTimedOut()))
        try:
            transport = await self._transport(deadline_s)
        except Exception as error:
            if not connection.close_future.is_done:
                connection.connection_lost(error)
            return
        finally:
            self._loop.net.cancel(give_up)
        if connection.close_future.is_done:
            transport.close()
            return
        self._loop.meter.requests += 1
        connection.connection_made(transport)
        await connection.initialize(timeout_at=deadline_s)

    async def _transport(self, deadline_s: float) -> Transport:
        error: Exception = ConnectTimedOut()
        for resolved in await self._loop.addresses(*self.address):
            try:
                sock = await connect(self._loop.net, resolved, SOCKET_OPTIONS, deadline_s)
            except (OSError, ConnectTimedOut) as failed:
                error = failed
            else:
                return Transport(self._loop.net, sock, self.address.host, self._loop.meter)
        raise error

    def _came_up(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        data = connection.broker_version_data
        self.versions = dict(data.api_versions)
        self._answered()
        if self._waiting:
            self._watch()
        self.on_up()

    def _answered(self) -> None:
        self.answered_ms = self._loop.clock_ms()
        self._progress_s = self._loop.monotonic()
        self.failing_since_ms = self._suspect_ms = UNKNOWN
        self.cause = NO_FAILURE
        self._failures = 0
        self._retry_at_s = 0.0
        self._spare_attempt = True

    def _watch(self) -> None:
        """Check later whether the broker has owed an answer for too long."""
        if not self._watching:
            self._watching = True
            self._loop.net.call_later(self._silence_s, self._check)

    def _check(self) -> None:
        self._watching = False
        connection = self._connection
        if not self._waiting or connection is None or not connection.connected:
            return
        left_s = self._progress_s + self._silence_s - self._loop.monotonic()
        if left_s > 0:
            self._watching = True
            self._loop.net.call_later(left_s, self._check)
        else:
            connection.close(Silence())

    def _lost(self, connection: Connection, error: Exception | None, began_ms: int) -> None:
        """Handle the end of a connection, unless the link has already dropped the connection."""
        if connection is not self._connection:
            return
        self._connection = None
        if self._suspect_ms == UNKNOWN:
            oldest = next(iter(self._waiting.values()), None)
            came_up = connection.init_future.succeeded()
            self._suspect_ms = oldest[1] if oldest else self._loop.clock_ms() if came_up else began_ms
        if self._spare_attempt and not is_silence(error):
            self._spare_attempt = False
            self._begin()
            return
        self._failures += 1
        if not self.failing:
            self.failing_since_ms = self._suspect_ms
        self.cause = cause_of_end(error, connection.first_bytes)
        pause_s = min(self._retry_most_s, self._retry_first_s * 2.0 ** min(self._failures - 1, 16))
        self._retry_at_s = self._loop.monotonic() + pause_s
