"""A broker's port, reserved while the cluster runs, open while the broker runs."""

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Callable
from ipaddress import ip_address
from typing import NamedTuple

from kview.errors import BadUse, ErrorKind
from kview.model.address import Address, Place
from kview.serve.connection import reset_on_close

HOST = "127.0.0.1"

BACKLOG = 128
"""Limit of connections that the kernel queues while a broker hangs. It is 50 in Kafka, and clients retry."""

FILES_RETRY_S = 0.5
"""Time until the next attempt to accept, when the process has no file descriptor left."""

ACCEPTS_PER_TURN = 16
"""Number of connections that are accepted before other sockets get their turn."""


log = logging.getLogger(__name__)


class Interface(NamedTuple):
    """Where to listen: an IP address, and its family."""

    host: str
    family: socket.AddressFamily

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of this machine can connect to it."""
        return ip_address(self.host).is_loopback

    @property
    def is_every(self) -> bool:
        """Whether it is every address of this machine, to which no client can connect."""
        return ip_address(self.host).is_unspecified

    @property
    def near(self) -> str:
        """The IP address at which this process itself reaches it."""
        if not self.is_every:
            return self.host
        return HOST if self.family is socket.AF_INET else "::1"


LOOPBACK = Interface(HOST, socket.AF_INET)


def interface_of(host: str) -> Interface:
    """Return the interface of a host name or an IP address. Raises BadUse if it cannot be resolved."""
    if host == HOST:
        return LOOPBACK
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:  # it cannot be a host name
        raise BadUse(ErrorKind.LISTEN_HOST_UNKNOWN, host=host, reason="not a host name") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadUse(ErrorKind.LISTEN_HOST_UNKNOWN, host=host, reason=reason) from None
    family, _, _, _, place = found[0]
    return Interface(str(place[0]), family)


class Port:
    """A TCP port, reserved by a socket that is bound but does not listen.

    While the broker is down, connections are refused, and no other process can take the port. `number` 0
    takes a free port. `advertised` is where clients are told to connect: to the port itself, unless somebody
    sets it. Raises BadUse if the port is already taken or this user may not take it.
    """

    def __init__(self, number: int = 0, interface: Interface = LOOPBACK) -> None:
        self.interface = interface
        self._holder = _bound(interface, number)
        self.number: int = self._holder.getsockname()[1]
        self.advertised = Address(interface.host, self.number)
        self._listening: socket.socket | None = None
        self._accepting = False

    def listen(self) -> None:
        """Start listening, so that the kernel queues connections. `accept` takes them from the queue."""
        self._listening = _bound(self.interface, self.number)
        try:
            self._listening.listen(BACKLOG)
        except OSError as error:
            raise _taken(self.interface, self.number, error) from None
        self._listening.setblocking(False)

    def accept(self, loop: asyncio.AbstractEventLoop, taken: Callable[[socket.socket], None]) -> None:
        """Start passing each new connection to `taken`."""
        if self._listening is not None and not self._accepting:
            self._accepting = True
            loop.add_reader(self._listening, self._accept, loop, self._listening, taken)

    def pause(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave connections in the kernel's queue, as a process that hangs does."""
        if self._listening is not None and self._accepting:
            self._accepting = False
            loop.remove_reader(self._listening)

    def refuse(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse connections, while the port stays reserved."""
        self.pause(loop)
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def give_back(self) -> None:
        """Release the port. The port must be refusing connections or never have listened."""
        self._holder.close()

    def _accept(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: socket.socket,
        taken: Callable[[socket.socket], None],
    ) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptor or no memory is left; clients wait in the queue
                log.warning("port %d accepts no connection for now: %s", self.number, error)
                self.pause(loop)
                loop.call_later(FILES_RETRY_S, self.accept, loop, taken)
                return
            connection.setblocking(False)
            taken(connection)


def reset(connection: socket.socket) -> None:
    """Reset a connection that has just been accepted."""
    reset_on_close(connection)
    connection.close()


def _bound(interface: Interface, number: int) -> socket.socket:
    # With IPPROTO_TCP, asyncio sets TCP_NODELAY on accepted sockets. Without it, pipelined answers wait 40
    # ms.
    sock = socket.socket(interface.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform != "linux":  # outside Linux, two sockets can be bound to one port only with this option
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.bind((interface.host, number))
    except OSError as error:
        sock.close()
        raise _taken(interface, number, error) from None
    return sock


def _taken(interface: Interface, number: int, error: OSError) -> BadUse:
    address = str(Place(interface.host, number or None))
    if error.errno == errno.EADDRINUSE:
        return BadUse(ErrorKind.PORT_IN_USE, address=address)
    return BadUse(ErrorKind.PORT_NOT_ALLOWED, address=address, reason=error.strerror or str(error))
