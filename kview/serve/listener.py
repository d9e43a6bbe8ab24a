"""A broker's port on the loopback interface: its own for life, listening only while the broker's process is
there."""

import asyncio
import errno
import socket
import sys
from collections.abc import Callable

from kview.errors import BadUse, ErrorKind
from kview.serve.connection import reset_on_close

HOST = "127.0.0.1"

BACKLOG = 128
"""Connections the kernel takes for a broker that hangs; Kafka's own is 50, and its clients retry."""

ACCEPTS_PER_TURN = 16
"""So many connections are taken before others have their turn."""


class Port:
    """A TCP port that is kept by a bound socket which does not listen, so that connecting to it is refused
    but nobody else gets it.

    `number` 0 takes a free one. Raises BadUse when the port is taken or not ours to take.
    """

    def __init__(self, number: int = 0) -> None:
        self._holder = _bound(number)
        self.number: int = self._holder.getsockname()[1]
        self._listening: socket.socket | None = None
        self._accepting = False

    def listen(self) -> None:
        """From now on connections are taken by the kernel; `accept` hands them over."""
        self._listening = _bound(self.number)
        try:
            self._listening.listen(BACKLOG)
        except OSError as error:
            raise _taken(self.number, error) from None
        self._listening.setblocking(False)

    def accept(self, loop: asyncio.AbstractEventLoop, taken: Callable[[socket.socket], None]) -> None:
        """Hand each connection to `taken`."""
        if self._listening is not None and not self._accepting:
            self._accepting = True
            loop.add_reader(self._listening, self._accept, self._listening, taken)

    def pause(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave connections to the kernel's backlog, as a process does that hangs."""
        if self._listening is not None and self._accepting:
            self._accepting = False
            loop.remove_reader(self._listening)

    def refuse(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse connections; the port stays reserved."""
        self.pause(loop)
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def give_back(self) -> None:
        """Let anybody have the port: to be called when it refuses, or has never listened."""
        self._holder.close()

    @staticmethod
    def _accept(listening: socket.socket, taken: Callable[[socket.socket], None]) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            connection.setblocking(False)
            taken(connection)


def reset(connection: socket.socket) -> None:
    """Close a connection that has no protocol yet, with a reset."""
    reset_on_close(connection)
    connection.close()


def _bound(number: int) -> socket.socket:
    # Named as TCP, so that asyncio sets TCP_NODELAY on what it accepts: pipelined answers wait 40 ms without.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform != "linux":  # elsewhere two sockets may be bound to one port only with this
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.bind((HOST, number))
    except OSError as error:
        sock.close()
        raise _taken(number, error) from None
    return sock


def _taken(number: int, error: OSError) -> BadUse:
    if error.errno == errno.EADDRINUSE:
        return BadUse(ErrorKind.PORT_IN_USE, port=number)
    return BadUse(ErrorKind.PORT_NOT_ALLOWED, port=number, reason=error.strerror or str(error))
