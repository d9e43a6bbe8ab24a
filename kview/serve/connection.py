"""A client's connection to a broker. As in Kafka, requests are answered one at a time and in order."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from functools import partial
from struct import pack
from time import perf_counter
from typing import Protocol

from kview.serve.frames import Garbage, frame_size
from kview.serve.login import ANONYMOUS, Login
from kview.serve.memory import Requests, Unread
from kview.serve.security import principal_of
from kview.serve.slices import Late, Slices

READ_BUFFER_BYTES = 64 * 1024
"""Size of the read buffer. The buffer grows as the bytes of a larger frame arrive, then shrinks again."""

FIRST_BUFFER_BYTES = 2048
"""Size of the read buffer until something fills it. Many clients keep connections that they rarely use."""

GROW_AT_ONCE_BYTES = 8 << 20
"""For a frame up to this size, the complete buffer is allocated at once. For a larger one, it grows as bytes
arrive."""

REQUESTS_PER_TURN = 16
"""Number of pipelined requests that are answered before other connections get their turn."""

MAPPED = "::ffff:"
"""How the address of an IPv4 client begins where one socket takes both families."""

log = logging.getLogger(__name__)


class Broker(Protocol):
    """The methods of a broker that a connection needs."""

    frozen: bool
    unread: Unread
    requests: Requests
    slices: Slices

    @property
    def latency_s(self) -> float: ...

    def new_login(self) -> Login | None:
        """Return the login of a new connection, or None if clients need not log in."""
        ...

    def handle(self, connection: "Connection", frame: memoryview) -> None:
        """Handle a request.

        The answer is passed to `connection.answered` exactly once, now or later.
        """
        ...

    def opened(self, connection: "Connection") -> None: ...
    def closed(self, connection: "Connection") -> None: ...


class Connection(asyncio.BufferedProtocol):
    """Reads frames into one buffer, and passes each to the broker once the previous one is answered.

    While the broker is frozen (hung), nothing is read, handled or written. While the broker is slow, answers
    are delayed.
    """

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop
        self._buffer = bytearray(FIRST_BUFFER_BYTES)
        self._begin = 0
        self._end = 0
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._client_reads = True
        self._reading = True
        self._in_turn = False
        self._turn_due = False
        self._held: list[bytes | None] = []
        self._held_work: list[Iterator[None]] = []
        self._frame_bytes = 0
        self.when_closed: Callable[[], None] | None = None
        """Set by a request that waits, and called if the client disconnects before the answer."""
        self.when_ended: Callable[[], None] | None = None
        """Called when the connection ends, if a request has left something behind."""
        self.host = ""
        self.member: tuple[str, str] | None = None
        """The group and member id of the last heartbeat that came this way."""
        self.login: Login | None = None
        self._principal = ANONYMOUS
        self._ends = False
        self._mutes: set[Callable[[], None]] = set()
        self._worked_s = 0.0
        self._working_since_s: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.host = peer[0].removeprefix(MAPPED) if peer else ""
        self.login = self._broker.new_login()
        session = transport.get_extra_info("ssl_object") if self.login is None else None
        if session is not None:
            self._principal = principal_of(session)
        self._broker.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._buffer, self._begin, self._end = bytearray(), 0, 0
        self._held.clear()
        self._held_work.clear()
        self._broker.closed(self)
        self._broker.unread.resumed(self)
        self._broker.requests.keeps(self, 0)
        if self.when_closed is not None:
            self.when_closed()
            self.when_closed = None
        if self.when_ended is not None:
            self.when_ended()
            self.when_ended = None
        for cancel in self._mutes:
            cancel()
        self._mutes.clear()

    def get_buffer(self, sizehint: int) -> bytearray:
        if self._end == len(self._buffer):
            self._make_room()
        return memoryview(self._buffer)[self._end :]  # type: ignore[return-value]

    def buffer_updated(self, nbytes: int) -> None:
        if self._closing():
            return
        self._end += nbytes
        if not self._busy and not self._mutes:
            self._take_turn()
        elif self._end - self._begin >= READ_BUFFER_BYTES:
            self._read(False)

    def pause_writing(self) -> None:
        self._client_reads = False
        self._broker.unread.paused(self)

    def resume_writing(self) -> None:
        self._client_reads = True
        self._broker.unread.resumed(self)
        self._take_turn()

    def unread_bytes(self) -> int:
        """Return the size of the answers that wait for the client to read them."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def run(self, steps: Iterator[None]) -> None:
        """Do the work of a request, now or in slices."""
        self._broker.slices.begin(partial(self._go_on, steps))

    def _go_on(self, steps: Iterator[None], late: Late) -> bool:
        """Go on with some work until it is late, and return whether it has nothing left to do for now."""
        if self._closing():
            return True
        if self._broker.frozen:
            self._held_work.append(steps)
            return True
        outermost = self._working_since_s is None
        if outermost:
            self._working_since_s = perf_counter()
        try:
            for _ in steps:
                if late():
                    return False
        except Garbage as garbage:
            self._refuse(garbage)
        except Exception as error:
            self.failed(error)
        finally:
            if outermost:
                self._worked_s, self._working_since_s = self.work_s(), None
        return True

    def work_s(self) -> float:
        """Return how long the work on the latest request has taken so far, without waiting, in seconds."""
        since_s = self._working_since_s
        return self._worked_s + (0.0 if since_s is None else perf_counter() - since_s)

    def answered(self, frame: bytes | None) -> None:
        """Send the answer to the latest request.

        The answer is a frame, or None if Kafka sends no response.
        """
        if self._broker.latency_s and frame is not None:
            self._loop.call_later(self._broker.latency_s, self._write, frame)
        else:
            self._write(frame)

    def answered_last(self, frame: bytes) -> None:
        """Send the answer to the latest request, and then close the connection."""
        self._ends = True
        self.answered(frame)

    @property
    def principal(self) -> str:
        """Who the client is, such as `User:alice`."""
        return self._principal if self.login is None else self.login.principal

    def mute(self, cancel: Callable[[], None]) -> None:
        """Handle no further request until `unmute` is called with the same `cancel`.

        That is called if the client disconnects before.
        """
        self._mutes.add(cancel)

    def unmute(self, cancel: Callable[[], None]) -> None:
        """Go on with what has arrived, unless something else mutes the connection, too."""
        self._mutes.discard(cancel)
        self._turn_soon()

    def freeze(self) -> None:
        """Stop reading and writing, because the broker hangs."""
        self._read(False)

    def thaw(self) -> None:
        """Go on with what the broker did before it hung: its work, the answers, what has arrived."""
        work, self._held_work = self._held_work, []
        for steps in work:
            self.run(steps)
        held, self._held = self._held, []
        for frame in held:
            self._write(frame)
        self._turn_soon()

    def close(self) -> None:
        """Close the connection like a process that exits, so that bytes already written are delivered."""
        if self._transport is not None:
            self._transport.close()

    def failed(self, error: Exception) -> None:
        """Close the connection after a bug in how one of its requests was handled, and log the bug."""
        log.error("a connection from %s ended, because its request failed", self.host, exc_info=error)
        self.close()

    def abort(self) -> None:
        """Reset the connection, as the kernel does when a process is killed."""
        if self._transport is not None:
            reset_on_close(self._transport.get_extra_info("socket"))
            self._transport.abort()

    def _write(self, frame: bytes | None) -> None:
        if self._broker.frozen:
            self._held.append(frame)
            return
        if frame is not None and self._transport is not None:
            self._transport.write(frame)
            if self._ends:
                self.close()
                return
        self._busy = False
        self.when_closed = None
        if self._frame_bytes:
            self._frame_bytes = 0
            self._keep()
        if not self._in_turn:
            self._turn_soon()

    def _turn_soon(self) -> None:
        """Schedule the next turn on the event loop.

        The turn cannot run at once, because a delayed answer is sent from within a step of the engine, which
        is not reentrant.
        """
        if not self._turn_due:
            self._turn_due = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Pass complete requests to the broker, up to REQUESTS_PER_TURN, until one is not answered at
        once."""
        self._turn_due = False
        self._in_turn = True
        try:
            for _ in range(REQUESTS_PER_TURN):
                if self._waits() or self._transport is None:
                    return
                frame = self._next_frame()
                if frame is None:
                    self._read(True)
                    return
                self._busy = True
                self._worked_s = 0.0
                self._broker.handle(self, frame)
            self._turn_soon()
        except Garbage as garbage:
            self._refuse(garbage)
        except Exception as error:
            self.failed(error)
        finally:
            self._in_turn = False

    def _waits(self) -> bool:
        """Return whether no request can be handled now."""
        return self._busy or bool(self._mutes) or not self._client_reads or self._broker.frozen

    def _refuse(self, garbage: Garbage) -> None:
        log.info("connection closed: %s", garbage)
        self.close()

    def _next_frame(self) -> memoryview | None:
        have = self._end - self._begin
        if have < 4:
            return None
        size = frame_size(self._buffer, self._begin, self._limit_bytes())
        if have < 4 + size:
            return None
        start = self._begin + 4
        self._begin = start + size
        if size > READ_BUFFER_BYTES:  # a large frame keeps its buffer; the bytes after it move to a new one
            frame = memoryview(self._buffer)[start : self._begin]
            rest = self._buffer[self._begin : self._end]
            self._buffer = bytearray(max(READ_BUFFER_BYTES, 2 * len(rest)))
            self._buffer[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
            self._frame_bytes = size
            self._keep()
            return frame
        return memoryview(bytes(self._buffer[start : self._begin]))

    def _limit_bytes(self) -> int | None:
        return None if self.login is None else self.login.largest_frame

    def _make_room(self) -> None:
        """Move unread bytes to the front of a new buffer that has more room.

        There is room for the complete frame (up to GROW_AT_ONCE_BYTES) or for twice the unread bytes,
        whichever is more. If all connections together keep too much, this one may end.
        """
        if self._closing():
            self._begin = self._end = 0
            return
        unread = self._buffer[self._begin : self._end]
        try:
            wanted = 4 + frame_size(unread, 0, self._limit_bytes()) if len(unread) >= 4 else 0
        except Garbage:  # reported when the frame's turn comes
            wanted = 0
        self._buffer = bytearray(max(READ_BUFFER_BYTES, min(wanted, GROW_AT_ONCE_BYTES), 2 * len(unread)))
        self._buffer[: len(unread)] = unread
        self._begin, self._end = 0, len(unread)
        self._keep()

    def _keep(self) -> None:
        """Report the bytes that this connection keeps for its requests."""
        self._broker.requests.keeps(self, self._frame_bytes + len(self._buffer))

    def _closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def _read(self, on: bool) -> None:
        if self._transport is not None and on != self._reading:
            self._reading = on
            if on:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()


def reset_on_close(sock: socket.socket) -> None:
    """Make the kernel send a reset when `sock` is closed, instead of closing the connection in order."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
