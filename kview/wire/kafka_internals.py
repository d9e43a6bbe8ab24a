"""Everything that kview takes from kafka-python beyond its documented interface, each with its reason.

kafka-python is pinned to its minor version for this file's sake, and `tests/wire/test_kafka_internals.py` has
a test for each reach that fails when the library moves. Message classes (`kafka.protocol`) and error classes
(`kafka.errors`) are used elsewhere as they are documented.
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
"""Enough to tell HTTP and TLS from Kafka."""


class Disconnected(ConnectionError):
    """The other side ended the connection."""


class ConnectTimedOut(Exception):
    """No connection came up in time."""


class Meter(Protocol):
    """What counts the bytes on all connections."""

    bytes_sent: int
    bytes_received: int


class Connection(KafkaConnection):
    """kafka-python's connection, which also remembers how the other side began.

    Its own class, not its client: the client's manager asks brokers by itself, and closes a connection when a
    single request takes too long.
    """

    def __init__(self, net: Any, meter: Meter, **configs: Any) -> None:
        super().__init__(net, **configs)
        self._meter = meter
        self.first_bytes = b""

    def data_received(self, data: bytes) -> None:
        """Take in bytes from the broker.

        The codec lets bytes that are not a message raise anything, and the transport takes nothing but a
        KafkaProtocolError: so everything becomes one, and garbage closes the connection.
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
    """kafka-python's transport, which counts bytes, and reads what came right before the end."""

    def __init__(self, net: Any, sock: socket.socket, host: str, meter: Meter) -> None:
        super().__init__(net, sock, host=host)
        self._meter = meter

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._meter.bytes_sent += len(data)
        super().write(data)

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """What has come, or why nothing more will.

        kafka-python's own drops what came right before the end, which is how a server that does not speak
        Kafka's protocol says what it is; and it says how the connection ended in a text alone.
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
        # After the data, the next call meets the same end.
        return (b"".join(received), None) if received else (b"", ended)


async def connect(
    net: Any, resolved: Any, options: Sequence[tuple[int, int, int]], timeout_at: float
) -> socket.socket:
    """Connect to one of getaddrinfo's answers before `timeout_at` (monotonic).

    kafka-python's own function gives the error number in a text alone. Raises OSError, ConnectTimedOut.
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
    """The operating system's error of a failed connection, None if there was none.

    kafka-python's transport hands on what `send` raised as the argument of a KafkaConnectionError.
    """
    if isinstance(error, kafka_errors.KafkaConnectionError) and error.args:
        error = error.args[0]
    return error if isinstance(error, OSError) else None


def request_decoder(request: Any, version: int, flexible: bool) -> Callable[[memoryview, int], Any]:
    """The function that decodes a request's body: (frame, where it begins) → (request, where it ends).

    `request.decode` copies the frame and hides where the message ends, so a frame with bytes left over would
    pass.
    """
    decoder: Callable[[memoryview, int], Any] = request._struct.compiled_decode_from(
        version, compact=flexible, tagged=flexible, data_class=request[None]
    )
    return decoder


def response_header(buffer: Any, flexible: bool) -> Any:
    """The header of an answer, read from `buffer`, which is left behind it.

    A request of kview's own codecs stands in for kafka-python's, and is asked for its answer's header.
    """
    return ResponseHeader.decode(buffer, flexible=flexible)
