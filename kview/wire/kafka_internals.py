"""All uses of kafka-python beyond its documented interface, each with its reason.

kafka-python is pinned to its minor version because of this file, and `tests/wire/test_kafka_internals.py` has
a test for each use that fails when the library changes it. Message classes (`kafka.protocol`) and error
classes (`kafka.errors`) are documented, and are used elsewhere.
"""

import errno
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.connection import KafkaConnection
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.api_header import ResponseHeader

__all__ = [
    "ConnectTimedOut", "Connection", "Disconnected", "Future", "NetworkSelector", "Transport", "connect",
    "network_error", "request_decoder", "response_header",
]  # fmt: skip

_READ_AT_ONCE_BYTES = 64 * 1024
_FIRST_BYTES = 8
"""Enough bytes to distinguish HTTP and TLS from Kafka."""


class Disconnected(ConnectionError):
    """Raised when the other side has closed the connection."""


class ConnectTimedOut(Exception):
    """Raised when a connection was not established in time."""


class Meter(Protocol):
    """A counter of the bytes on all connections."""

    bytes_sent: int
    bytes_received: int


class Connection(KafkaConnection):
    """kafka-python's connection, which also remembers the first bytes received.

    kview uses kafka-python's connections but not its client, because the client's manager sends requests of
    its own to brokers, and closes a connection when a single request takes too long.
    """

    def __init__(self, net: Any, meter: Meter, **configs: Any) -> None:
        super().__init__(net, **configs)
        self._meter = meter
        self.first_bytes = b""

    def data_received(self, data: bytes) -> None:
        """Process bytes from the broker.

        For bytes that are not a message, the codec raises all kinds of exceptions, but the transport handles
        only KafkaProtocolError. So each exception is turned into a KafkaProtocolError, and garbage closes the
        connection.
        """
        self._meter.bytes_received += len(data)
        if len(self.first_bytes) < _FIRST_BYTES:
            self.first_bytes += bytes(data[:_FIRST_BYTES])
        try:
            super().data_received(data)
        except kafka_errors.KafkaProtocolError:
            raise
        except Exception as error:
            raise kafka_errors.KafkaProtocolError(f"not understood: {error!r}") from error


class Transport(KafkaTCPTransport):
    """kafka-python's transport, which also counts bytes and passes on what arrives just before the end."""

    def __init__(self, net: Any, sock: socket.socket, host: str, meter: Meter) -> None:
        super().__init__(net, sock, host=host)
        self._meter = meter

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._meter.bytes_sent += len(data)
        super().write(data)

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """Return the bytes that have arrived, or the reason why no more will.

        kafka-python's own method drops bytes that arrive just before the end, although only those show what a
        server is that does not speak Kafka's protocol. It also reports the reason for the end only as text.
        """
        received: list[bytes] = []
        try:
            while data := self._sock.recv(_READ_AT_ONCE_BYTES):
                received.append(data)
            ended: OSError = Disconnected()
        except (BlockingIOError, InterruptedError):
            return b"".join(received), None
        except OSError as error:
            ended = error
        # The next call, after the data, meets the same end.
        return (b"".join(received), None) if received else (b"", ended)


async def connect(
    net: Any, resolved: Any, options: Sequence[tuple[int, int, int]], timeout_at: float
) -> socket.socket:
    """Connect to one of getaddrinfo's results before `timeout_at` (monotonic).

    kafka-python's own function reports the error number only as text. Raises OSError or ConnectTimedOut.
    """
    family, kind, protocol, _, address = resolved
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        for option in options:
            sock.setsockopt(*option)
        number = sock.connect_ex(address)
        if number in (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK):
            await net.wait_write(sock, timeout_at=timeout_at)
            number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
    except kafka_errors.KafkaTimeoutError as late:
        sock.close()
        raise ConnectTimedOut from late
    except BaseException:
        sock.close()
        raise
    return sock


def network_error(error: BaseException | None) -> OSError | None:
    """Return the operating system's error of a failed connection, or None if there was none.

    kafka-python's transport passes what `send` raised as the argument of a KafkaConnectionError.
    """
    if isinstance(error, kafka_errors.KafkaConnectionError) and error.args:
        error = error.args[0]
    return error if isinstance(error, OSError) else None


def request_decoder(request: Any, version: int, flexible: bool) -> Callable[[memoryview, int], Any]:
    """Return the function that decodes a request's body: (frame, start of body) → (request, end of body).

    `request.decode` copies the frame and does not report where the message ends, so a frame with bytes left
    over would be accepted.
    """
    decoder: Callable[[memoryview, int], Any] = request._struct.compiled_decode_from(
        version, compact=flexible, tagged=flexible, data_class=request[None]
    )
    return decoder


def response_header(buffer: Any, flexible: bool) -> Any:
    """Read a response's header from `buffer`, and leave the buffer's position after the header.

    kafka-python asks a request for the header of its response. kview's own requests (`kview.wire.message`)
    call this function.
    """
    return ResponseHeader.decode(buffer, flexible=flexible)
