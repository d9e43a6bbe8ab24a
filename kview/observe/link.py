"""A link to one broker on one lane, which connects by itself and knows since when the broker is silent."""

import logging
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from kview.model.address import Address
from kview.model.failures import NO_FAILURE, REFUSALS, Cause, FailureKind
from kview.model.units import UNKNOWN
from kview.observe.apis import (
    API_VERSIONS,
    FETCH,
    OFFERED_FROM,
    READ_ONLY,
    Offered,
    Versions,
    highest,
    offered,
)
from kview.observe.brokers import Health
from kview.observe.causes import LinkError, Silence, cause_of, cause_of_end, is_silence
from kview.observe.clock import Jump
from kview.observe.latency import Latency
from kview.observe.loop import Loop
from kview.observe.reaching import CLIENT, reach
from kview.wire import api_versions
from kview.wire.kafka_internals import Connection, ConnectTimedOut, Message
from kview.wire.list_offsets import CONSUMER

_log = logging.getLogger(__name__)

MOST_BYTES_AN_ANSWER = 256 * 1024 * 1024
"""Limit of a frame. A larger frame is not a broker's answer: metadata of 100,000 partitions takes 10 MB."""
STALE_S = 0.9
"""A broker that owes an answer for this long is late. It gets no more requests until the answer arrives."""
A_BYTE_S = 4e-6
MOST_LONGER_S = 1.5
"""How much longer a broker may owe an answer for each byte of the request, and at most. A partition takes 16
bytes and a part of its topic's name: a busy broker that is asked for 9,000 at once is not silent."""
MOST_WAITING = 8
"""Limit of requests in flight per link. An observation sends at most six, and more would pile up at a slow
broker."""
EAGER_RETRY_S = 0.15
"""Pause between attempts to reach a broker that is expected back any moment."""
REFUSED_FIRST_S = 2.0
REFUSED_MOST_S = 30.0
"""Limits of the pause after a refusal, which lasts until somebody changes a password, a certificate or a
setting. Many wrong logins in a row could lock the user out."""


class Link:
    """The connection to one broker on one lane.

    `failing_since_ms` is when the first unanswered request was sent, or UNKNOWN while the broker answers.
    `answered_ms` is when the broker last answered. `cause` is why the broker does not answer. After a refused
    or reset connection, a second connection is tried at once. Only if that attempt fails does the link count
    as failing, and further attempts follow with growing pauses. `mechanisms` are the SASL mechanisms that the
    broker offered at the last login, () if it was not asked. `accepted_ms` is when a port that had refused
    connections accepted one again, UNKNOWN once the broker has answered. `allowed` are the APIs that may be
    sent, and `most_bytes` the size of an answer above which the connection is closed.
    """

    def __init__(
        self,
        loop: Loop,
        address: Address,
        silence_s: float,
        retry_first_s: float,
        retry_most_s: float,
        allowed: frozenset[int] = READ_ONLY,
        most_bytes: int = MOST_BYTES_AN_ANSWER,
    ) -> None:
        self.address = address
        self.versions: Versions = {}
        self.answered_ms = UNKNOWN
        self.failing_since_ms = UNKNOWN
        self.accepted_ms = UNKNOWN
        self.cause = NO_FAILURE
        self.mechanisms: tuple[str, ...] = ()
        self.offered = Offered()
        self._probing: Message[Any] | None = None
        self.latency = Latency()
        self.on_up: Callable[[], None] = lambda: None
        """Called when a connection is established."""
        self._allowed = allowed
        self._most_bytes = most_bytes
        self._loop = loop
        self._silence_s = silence_s
        self._retry_first_s = retry_first_s
        self._retry_most_s = retry_most_s
        self._connection: Connection | None = None
        self._waiting: dict[int, tuple[float, int, float]] = {}
        """The time each request in flight was sent, oldest first, in monotonic seconds and in epoch ms, and
        for how many seconds its answer may be owed."""
        self._numbers = count()
        self._progress_s = 0.0
        self._watching = False
        self._spare_attempt = True
        self._has_answered = False
        """Whether a request has been answered on the current connection."""
        self._doubted = False
        """Whether the last connection came up, but ended at its first request."""
        self._suspect_ms = UNKNOWN
        self._failures = 0
        self._retry_at_s = 0.0
        self._eager_until_s = 0.0

    @property
    def connected(self) -> bool:
        """Whether the broker has answered on the current connection."""
        return self._connection is not None and self._connection.connected

    @property
    def failing(self) -> bool:
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

    def health(self) -> Health:
        """Return what the link knows about its broker."""
        return Health(
            self.failing_since_ms,
            self.answered_ms,
            self.cause.kind,
            self.connected,
            self.accepted_ms,
            self._latency_us(),
            self.owed_s >= STALE_S,
            self.offered.apis,
        )

    def _latency_us(self) -> int:
        """Return the latency. That of a hung broker grows, and a broker without a process has none."""
        if not self.failing:
            return self.latency.us(self.owed_s)
        if self.cause.kind not in (FailureKind.SILENT, FailureKind.UNREACHABLE):
            return UNKNOWN
        return (self._loop.clock_ms() - self.failing_since_ms) * 1000

    def clock_set(self, jump: Jump) -> None:
        """Move the times to the new clock."""
        jump.move(self, "answered_ms", "failing_since_ms", "accepted_ms", "_suspect_ms")
        self._waiting = {
            number: (at_s, jump.time(at_ms), allowed_s)
            for number, (at_s, at_ms, allowed_s) in self._waiting.items()
        }

    def probe(self) -> None:
        """Send a small request and measure how long its answer takes.

        Nothing is sent while a request is in flight, because the wait for that one counts.
        """
        if self.connected and not self._waiting:
            self._loop.spawn(self._probe)

    async def _probe(self) -> None:
        version = OFFERED_FROM if highest(self.versions, API_VERSIONS) >= OFFERED_FROM else 0
        if self._probing is None or version != self._probing.API_VERSION:
            self._probing = api_versions.request(
                version, CLIENT["client_software_name"], CLIENT["client_software_version"]
            )
        began_s = self._loop.monotonic()
        try:
            answer, _ = await self.ask(self._probing)
        except LinkError:
            return  # the link knows why, and since when
        if not answer.error_code:
            self.offered = offered(answer, self.offered)
        self.latency.add(self._loop.monotonic() - began_s)

    def open(self) -> None:
        """Connect, unless the link is connected, connecting, or pausing after a failure."""
        if self._connection is None and self._loop.monotonic() >= self._retry_at_s:
            self._begin()

    def expect(self, within_s: float) -> None:
        """Retry at once, then several times a second for `within_s`: the broker is coming back."""
        self._eager_until_s = self._loop.monotonic() + within_s
        self._retry_at_s = 0.0
        self.open()

    def close(self) -> None:
        """Close the connection. The link can be opened again."""
        self._eager_until_s = 0.0
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def ask(self, request: Any) -> tuple[Any, int]:
        """Send a read-only request, and return its answer and when it was received (epoch ms).

        If the connection is lost, the request is sent once more on a new connection. Raises LinkError.
        """
        if request.API_KEY not in self._allowed:
            raise AssertionError(f"API {request.API_KEY} is not one that only reads")
        if request.API_KEY == FETCH and request.replica_id != CONSUMER:
            raise AssertionError("kview fetches as a consumer only")
        for last in (False, True):
            connection = self._connection
            if connection is None or self.failing:
                raise LinkError(self.cause if self.failing else Cause(FailureKind.NOT_CONNECTED))
            now_s = self._loop.monotonic()
            number = next(self._numbers)
            if not self._waiting:
                self._progress_s = now_s
            size = request.size if isinstance(request, Message) else 0
            allowed_s = self._silence_s + min(MOST_LONGER_S, A_BYTE_S * size)
            self._waiting[number] = (now_s, self._loop.clock_ms(), allowed_s)
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
                self._has_answered, self._doubted = True, False
                self._answered()
                return answer, self.answered_ms
            finally:
                self._waiting.pop(number, None)
        raise AssertionError("unreachable")

    def _begin(self) -> None:
        connection = Connection(
            self._loop.net,
            self._loop.meter,
            credentials=self._credentials,
            doubts_login=self._doubted,
            **CLIENT,
            **self._loop.access.login,
            max_in_flight_requests_per_connection=2 * MOST_WAITING,
            receive_message_max_bytes=self._most_bytes,
        )
        self._connection, self._has_answered = connection, False
        began_ms = self._loop.clock_ms()
        connection.close_future.add_callback(lambda _: self._lost(connection, None, began_ms))
        connection.close_future.add_errback(lambda error: self._lost(connection, error, began_ms))
        connection.init_future.add_callback(lambda _: self._came_up(connection))
        self._loop.net.call_soon(lambda: self._connect(connection))

    async def _connect(self, connection: Connection) -> None:
        deadline_s = self._loop.monotonic() + self._silence_s
        accepted = False

        def on_accept() -> None:
            nonlocal accepted
            accepted = True
            self._accepted()

        def stop() -> None:
            connection.close(Silence() if accepted else ConnectTimedOut())

        give_up = self._loop.net.call_at(deadline_s, stop)
        try:
            if self.cause.kind in REFUSALS:
                await self._loop.renewal.renew(self._loop)
                connection.configure(self._loop.access.login)
            if self.cause.kind is FailureKind.TOKEN_REFUSED and self._loop.access.tokens is not None:
                self._loop.access.tokens.refused()
            transport = await reach(
                self._loop, self.address, deadline_s, on_accept, is_new=self.answered_ms == UNKNOWN
            )
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

    def _accepted(self) -> None:
        """Note that the port accepts connections again, if it had refused them."""
        if self.cause.kind is FailureKind.REFUSED and self.accepted_ms == UNKNOWN:
            self.accepted_ms = self._loop.clock_ms()

    async def _credentials(self) -> Mapping[str, Any]:
        """Return kafka-python's arguments for a login, or for the renewal of one."""
        if self.connected:
            await self._loop.renewal.renew(self._loop)
        if self._loop.access.tokens is not None:
            await self._loop.access.tokens.fresh(self._loop)
        return self._loop.access.login

    def _came_up(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        data = connection.broker_version_data
        self.versions = dict(data.api_versions)
        earlier = self._failures, self._spare_attempt
        self._answered()
        if self._doubted:
            self._failures, self._spare_attempt = earlier
        if self._waiting:
            self._watch()
        self.on_up()

    def _answered(self) -> None:
        if self.failing:
            _log.warning("%s answers again", self.address)
        self.answered_ms = self._loop.clock_ms()
        self._progress_s = self._loop.monotonic()
        self.failing_since_ms = self._suspect_ms = self.accepted_ms = UNKNOWN
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
        _, _, allowed_s = next(iter(self._waiting.values()))
        left_s = self._progress_s + allowed_s - self._loop.monotonic()
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
        came_up = connection.init_future.succeeded()
        if self._suspect_ms == UNKNOWN:
            oldest = next(iter(self._waiting.values()), None)
            self._suspect_ms = oldest[1] if oldest else self._loop.clock_ms() if came_up else began_ms
        self.mechanisms = connection.mechanisms or self.mechanisms
        cause = self._loop.access.told(cause_of_end(error, connection.first_bytes))
        if came_up and self._waiting and not self._has_answered and cause.kind is FailureKind.CLOSED:
            self._doubted = True
        refused = cause.kind in REFUSALS
        if self._spare_attempt and not is_silence(error) and not refused:
            self._spare_attempt = False
            self._begin()
            return
        self._failures += 1
        if not self.failing:
            self.failing_since_ms = self._suspect_ms
        if cause.kind is not self.cause.kind:
            _log.warning("%s does not answer: %s", self.address, cause.kind)
        self.cause = cause
        if self.cause.kind is FailureKind.REFUSED:
            self.accepted_ms = UNKNOWN
        first_s = REFUSED_FIRST_S if refused else self._retry_first_s
        most_s = REFUSED_MOST_S if refused else self._retry_most_s
        pause_s = min(most_s, first_s * 2.0 ** min(self._failures - 1, 16))
        now_s = self._loop.monotonic()
        if now_s < self._eager_until_s and not refused:
            pause_s = EAGER_RETRY_S
            self._loop.net.call_later(pause_s, self._retry_eagerly)
        self._retry_at_s = now_s + pause_s

    def _retry_eagerly(self) -> None:
        if self._loop.monotonic() < self._eager_until_s:
            self._retry_at_s = 0.0
            self.open()
