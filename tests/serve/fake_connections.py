"""Connections of the simulated cluster without sockets and without an event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from struct import pack
from typing import Any, cast

from kview.serve.connection import Connection
from kview.serve.memory import Requests, Unread
from kview.serve.slices import Slices


class FakeLoop:
    """Runs what is scheduled, one after the other, and has a clock that moves when it is read."""

    def __init__(self, tick_s: float = 0.001) -> None:
        self.scheduled: deque[Callable[[], object]] = deque()
        self.slices = 0
        self._now_s = 0.0
        self._tick_s = tick_s

    def call_soon(self, function: Callable[[], object]) -> None:
        self.scheduled.append(function)

    def time(self) -> float:
        self._now_s += self._tick_s
        return self._now_s

    def turn(self) -> None:
        """Run what is scheduled now, but not what that schedules in turn."""
        for _ in range(len(self.scheduled)):
            self.scheduled.popleft()()

    def until_idle(self) -> None:
        while self.scheduled:
            self.turn()

    def new_slices(self) -> Slices:
        def count() -> None:
            self.slices += 1

        return Slices(self.call_soon, self.time, count)


class FakeTransport(asyncio.Transport):
    """A socket whose client can only be reset or get answers."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.unread_bytes = 0
        self.reset = False
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return _NoSocket() if name == "socket" else default

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.reset = True

    def pause_reading(self) -> None:
        """Do nothing, because a fake client sends what it wants."""

    def resume_reading(self) -> None:
        """Do nothing, as `pause_reading`."""


class _NoSocket:
    def setsockopt(self, *option: object) -> None:
        """Accept the option that makes a close a reset."""


class FakeBroker:
    """Passes each frame to `serve`, which answers it through the connection."""

    latency_s = 0.0

    def __init__(self, loop: FakeLoop, serve: Callable[[Connection, bytes], None], limit_bytes: int) -> None:
        self.frozen = False
        self.unread = Unread()
        self.requests = Requests(limit_bytes)
        self.slices = loop.new_slices()
        self._serve = serve
        self._loop = loop

    def connect(self) -> "FakeClient":
        """Return a client on a connection of its own."""
        return FakeClient(Connection(self, cast(asyncio.AbstractEventLoop, self._loop)))

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self._serve(connection, bytes(frame))

    def new_login(self) -> None:
        """Return None: clients need not log in."""

    def opened(self, connection: Connection) -> None:
        """Do nothing: tests know their connections."""

    def closed(self, connection: Connection) -> None:
        """Do nothing, as `opened`."""


class FakeClient:
    """Sends bytes, as an event loop hands them to a connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.transport = FakeTransport()
        connection.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        """Send bytes until the connection is closed."""
        while data and not self.transport.closed:
            room = self.connection.get_buffer(-1)
            size = min(len(room), len(data))
            room[:size] = data[:size]
            self.connection.buffer_updated(size)
            data = data[size:]


def framed(body: bytes) -> bytes:
    """Return a frame with its size."""
    return pack(">i", len(body)) + body
