"""All uses of kafka-python beyond its documented interface, each with its reason.

`kview.wire.stepwise`, `kafka_requests` and `kafka_responses`, which decode and encode step by step, belong to
this file.

kafka-python is pinned to its minor version because of this file, and `tests/wire/test_kafka_internals.py` has
a test for each use that fails when the library changes it. Message classes (`kafka.protocol`) and error
classes (`kafka.errors`) are documented, and are used elsewhere.
"""

import errno
import os
import selectors
import socket
import struct
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.connection import KafkaConnection
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.api_header import ResponseHeader
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.sasl import SaslHandshakeRequest
from msgspec import Struct

from kview.wire.primitives import INT32, string

__all__ = [
    "ByteMeter", "ConnectTimedOut", "Connection", "Credentials", "Disconnected", "Future", "LoginFailed",
    "Message", "NetworkSelector", "NotABroker", "QuietSelector", "SaslWanted", "Transport", "connect",
    "network_error",
]  # fmt: skip

T = TypeVar("T")

_READ_AT_ONCE_BYTES = 64 * 1024
_FIRST_BYTES = 8
"""Enough bytes to distinguish HTTP and TLS from Kafka."""
RENEWAL_S = 10.0
"""The longest that a renewal of a login may take."""


class QuietSelector(selectors.DefaultSelector):
    """The selector for kafka-python's loop, which asks for a socket before each wait, mostly in vain. The
    standard library formats the socket's repr for each such KeyError, twice: a tenth of the loop's work."""

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """Return the key of what is registered. Raises KeyError."""
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        if number < 0:  # closed, and perhaps registered still
            return super().get_key(fileobj)
        key: selectors.SelectorKey = self._fd_to_key[number]  # type: ignore[attr-defined]
        return key


class Disconnected(ConnectionError):
    """Raised when the other side has closed the connection."""


class ConnectTimedOut(Exception):
    """Raised when a connection was not established in time."""


class ByteMeter(Struct):
    """A counter of the bytes on all connections."""

    bytes_sent: int = 0
    bytes_received: int = 0


class LoginFailed(Exception):
    """Raised when kafka-python could not make what a SASL mechanism sends, such as a Kerberos ticket."""


class SaslWanted(Exception):
    """Raised when a listener turns out to ask for a login although kview has none."""


class NotABroker(Exception):
    """Raised when a server speaks Kafka's protocol but does not answer Metadata, as a controller's."""


Credentials: TypeAlias = Callable[[], Coroutine[Any, Any, Mapping[str, Any]]]
"""Called before each login and each renewal of it; returns the arguments about security."""


class Connection(KafkaConnection):
    """kafka-python's connection, which also remembers the first bytes received and the mechanisms offered.

    kview uses kafka-python's connections but not its client, because the client's manager sends requests of
    its own to brokers, and closes a connection when a single request takes too long.

    With `doubts_login`, the connection asks whether the listener wants a login before it counts as connected.
    Without a login, such a listener answers ApiVersions and then closes the connection on any request.
    """

    def __init__(
        self,
        net: Any,
        meter: ByteMeter,
        credentials: Credentials | None = None,
        doubts_login: bool = False,
        **configs: Any,
    ) -> None:
        super().__init__(net, **configs)
        self._meter = meter
        self._credentials = credentials
        self._doubts_login = doubts_login
        self.first_bytes = b""
        self.mechanisms: tuple[str, ...] = ()
        """The SASL mechanisms that the listener offers, () if it was not asked or has none."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Use other arguments about security from the next login on. The library reads them only then."""
        self.config.update(configs)

    async def _get_api_versions(self, timeout_at: float | None = None) -> None:
        """Ask for the broker's versions, which comes first on each connection."""
        await super()._get_api_versions(timeout_at)
        offered = self.broker_version_data.api_versions
        if MetadataRequest.API_KEY not in offered:
            raise NotABroker
        if self._doubts_login and not self.sasl_enabled and SaslHandshakeRequest.API_KEY in offered:
            request = SaslHandshakeRequest(mechanism="", max_version=1)
            answer = await self._send_request(request, timeout_at=timeout_at)
            if answer.error_code != kafka_errors.IllegalSaslStateError.errno:
                raise SaslWanted

    async def _sasl_authenticate(self, timeout_at: float | None = None) -> None:
        """Log in, or renew the login (KIP-368)."""
        if timeout_at is None:
            timeout_at = time.monotonic() + RENEWAL_S
        if self._credentials is not None:
            self.configure(await self._credentials())
        try:
            await super()._sasl_authenticate(timeout_at)
        except (kafka_errors.KafkaError, OSError):
            raise
        except Exception as error:
            raise LoginFailed from error

    def _send_request(self, request: Any, future: Any = None, timeout_at: float | None = None) -> Any:
        """Send a request. The library drops the list of mechanisms if it does not contain kview's own."""
        sent = super()._send_request(request, future=future, timeout_at=timeout_at)
        if isinstance(request, SaslHandshakeRequest):
            sent.add_callback(self._take_mechanisms)
        return sent

    def _take_mechanisms(self, answer: Any) -> None:
        self.mechanisms = tuple(answer.mechanisms or ())

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

    _not_yet: tuple[type[OSError], ...] = (BlockingIOError, InterruptedError)
    """The errors of a socket that has nothing to read at the moment."""

    def __init__(self, net: Any, sock: socket.socket, host: str, meter: ByteMeter) -> None:
        super().__init__(net, sock, host=host)
        self._meter = meter

    def write(self, data: bytes) -> None:
        """Send bytes, and count them."""
        self._meter.bytes_sent += len(data)
        super().write(data)

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """Return the bytes that have arrived, or the reason why no more will arrive.

        kafka-python's own method drops bytes that arrive just before the end, although they may be the only
        sign of what a server is that does not speak Kafka's protocol. It also reports the reason for the end
        only as text.
        """
        received, ended = self._receive()
        # If bytes have arrived, return them first. The next call finds the connection ended in the same way.
        return (received, None) if received else (b"", ended)

    def _receive(self) -> tuple[bytes, OSError | None]:
        """Return the bytes that have arrived, and the reason why no more will arrive, if so."""
        received: list[bytes] = []
        ended: OSError | None = None
        try:
            while data := self._sock.recv(_READ_AT_ONCE_BYTES):
                received.append(data)
            ended = Disconnected()
        except self._not_yet:
            pass
        except OSError as error:
            ended = error
        return b"".join(received), ended


async def connect(
    net: Any, resolved: Any, options: Sequence[tuple[int, int, int]], timeout_at: float
) -> socket.socket:
    """Connect to one of getaddrinfo's results before `timeout_at` (monotonic seconds).

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


class RequestHeader(Struct, frozen=True):
    """The part of a request header that kafka-python's parser needs."""

    api_key: int
    api_version: int
    correlation_id: int
    response_class: Any

    def get_response_class(self) -> Any:
        """Return the object whose `parse_header` and `decode` read the response."""
        return self.response_class


class Message(Generic[T]):
    """A request with an encoded body, and the function that decodes the response body.

    A message takes the place of kafka-python's request classes in `KafkaConnection.send_request`. It can be
    sent many times, because only the header differs. `decode` receives the response without its header and
    may raise ValueError. With `plain_answer` the response's header has no tags although the request's has.
    """

    def __init__(
        self,
        api_key: int,
        version: int,
        flexible: bool,
        body: bytes,
        decode: Callable[[memoryview], T],
        plain_answer: bool = False,
    ) -> None:
        self.API_KEY = api_key
        self.API_VERSION = version
        self.header: RequestHeader | None = None
        self._flexible = flexible
        self._flexible_answer = flexible and not plain_answer
        self._body = body
        self._decode = decode
        self._client_id = ""

    @property
    def size(self) -> int:
        """The length of the body in bytes."""
        return len(self._body)

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Set the header, before each time the request is sent."""
        self._client_id = client_id
        self.header = RequestHeader(self.API_KEY, self.API_VERSION, correlation_id, self)

    def encode(self, framed: bool = True, header: bool = True) -> bytes:
        """Encode the request with its header. With `framed`, the length of the request comes first."""
        if self.header is None or not header:
            raise ValueError("a request is sent with its header")
        data = b"".join(
            (
                struct.pack(">hhi", self.API_KEY, self.API_VERSION, self.header.correlation_id),
                string(self._client_id),
                b"\x00" if self._flexible else b"",
                self._body,
            )
        )
        return INT32.pack(len(data)) + data if framed else data

    def expect_response(self) -> bool:
        """Return True, because every read-only request has a response."""
        return True

    def parse_header(self, buffer: Any) -> Any:
        """Read the response header from `buffer`, and leave the buffer's position after the header."""
        return ResponseHeader.decode(buffer, flexible=self._flexible_answer)

    def decode(self, buffer: Any) -> T:
        """Decode the response body."""
        return self._decode(memoryview(buffer)[buffer.tell() :])

    def __str__(self) -> str:
        return f"Message(api_key={self.API_KEY}, version={self.API_VERSION}, {len(self._body)} bytes)"
