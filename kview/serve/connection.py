"""One client's connection to one broker: frames in, answers out, one request at a time and in order, as a
broker does."""

import asyncio
import logging
import socket
from collections.abc import Callable
from struct import pack
from typing import Protocol

from kview.serve.frames import Garbage, frame_size

READ_BUFFER_BYTES = 64 * 1024
"""What a connection keeps for reading; it grows with a larger frame's bytes as they come, and goes back."""

GROW_AT_ONCE_BYTES = 8 << 20
"""A frame up to this size gets its buffer when its size is known, a larger one as its bytes come."""

REQUESTS_PER_TURN = 16
"""So many pipelined requests are answered before other connections have their turn."""

log = logging.getLogger(__name__)


class Broker(Protocol):
    """What a connection needs of the broker that it is made to."""

    frozen: bool

    @property
    def latency_s(self) -> float: ...

    def handle(self, connection: "Connection", frame: memoryview) -> None:
        """Take a request, whose answer is given with `connection.answered` exactly once, now or later."""
        ...

    def opened(self, connection: "Connection") -> None: ...
    def closed(self, connection: "Connection") -> None: ...


class Connection(asyncio.BufferedProtocol):
    """Reads frames into one buffer and hands them to the broker, the next one when the one before is
    answered.

    While the broker is frozen (hung) nothing is read, taken or written; while it is slow an answer is written
    later.
    """

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop
        self._buffer = bytearray(READ_BUFFER_BYTES)
        self._begin = 0
        self._end = 0
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._client_reads = True
        self._reading = True
        self._in_turn = False
        self._turn_due = False
        self._held: list[bytes | None] = []
        self.when_closed: Callable[[], None] | None = None
        """Set by a request that waits: called if the client goes away before the answer."""
        self.host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.host = peer[0] if peer else ""
        self._broker.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._broker.closed(self)
        if self.when_closed is not None:
            self.when_closed()
            self.when_closed = None

    def get_buffer(self, sizehint: int) -> bytearray:
        if self._end == len(self._buffer):
            self._make_room()
        return memoryview(self._buffer)[self._end :]  # type: ignore[return-value]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        if not self._busy:
            self._take_turn()
        elif self._end - self._begin >= READ_BUFFER_BYTES:
            self._read(False)

    def pause_writing(self) -> None:
        self._client_reads = False

    def resume_writing(self) -> None:
        self._client_reads = True
        self._take_turn()

    def answered(self, frame: bytes | None) -> None:
        """The answer to the request taken last: a frame, or None where Kafka answers nothing."""
        if self._broker.latency_s and frame is not None:
            self._loop.call_later(self._broker.latency_s, self._write, frame)
        else:
            self._write(frame)

    def freeze(self) -> None:
        """The broker hangs: read and write nothing."""
        self._read(False)

    def thaw(self) -> None:
        """The broker goes on: what was answered meanwhile is written, what waits is read."""
        held, self._held = self._held, []
        for frame in held:
            self._write(frame)
        self._turn_soon()

    def close(self) -> None:
        """End it as a process does that ends: what is written is delivered."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End it as a killed machine's kernel does: the client sees a reset."""
        if self._transport is not None:
            reset_on_close(self._transport.get_extra_info("socket"))
            self._transport.abort()

    def _write(self, frame: bytes | None) -> None:
        if self._broker.frozen:
            self._held.append(frame)
            return
        if frame is not None and self._transport is not None:
            self._transport.write(frame)
        self._busy = False
        self.when_closed = None
        if not self._in_turn:
            self._turn_soon()

    def _turn_soon(self) -> None:
        """Not at once: an answer that waited is given from within the engine's step, which must not be
        entered again."""
        if not self._turn_due:
            self._turn_due = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Hand over the requests that are complete, while each is answered at once, up to
        REQUESTS_PER_TURN."""
        self._turn_due = False
        self._in_turn = True
        try:
            for _ in range(REQUESTS_PER_TURN):
                if self._busy or not self._client_reads or self._broker.frozen or self._transport is None:
                    return
                frame = self._next_frame()
                if frame is None:
                    self._read(True)
                    return
                self._busy = True
                self._broker.handle(self, frame)
            self._turn_soon()
        except Garbage as garbage:
            log.info("connection closed: %s", garbage)
            self.close()
        finally:
            self._in_turn = False

    def _next_frame(self) -> memoryview | None:
        have = self._end - self._begin
        if have < 4:
            return None
        size = frame_size(self._buffer, self._begin)
        if have < 4 + size:
            return None
        start = self._begin + 4
        self._begin = start + size
        if size > READ_BUFFER_BYTES:  # a large frame keeps its buffer, what follows it moves to a new one
            frame = memoryview(self._buffer)[start : self._begin]
            rest = self._buffer[self._begin : self._end]
            self._buffer = bytearray(max(READ_BUFFER_BYTES, 2 * len(rest)))
            self._buffer[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
            return frame
        return memoryview(bytes(self._buffer[start : self._begin]))

    def _make_room(self) -> None:
        """Move what is unread to the front of a buffer that has room for the rest of its frame, or for twice
        as much."""
        unread = self._buffer[self._begin : self._end]
        try:
            wanted = 4 + frame_size(unread, 0) if len(unread) >= 4 else 0
        except Garbage:  # told when its turn comes
            wanted = 0
        self._buffer = bytearray(max(READ_BUFFER_BYTES, min(wanted, GROW_AT_ONCE_BYTES), 2 * len(unread)))
        self._buffer[: len(unread)] = unread
        self._begin, self._end = 0, len(unread)

    def _read(self, on: bool) -> None:
        if self._transport is not None and on != self._reading:
            self._reading = on
            if on:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()


def reset_on_close(sock: socket.socket) -> None:
    """Make the kernel send a reset instead of an orderly end when `sock` is closed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
