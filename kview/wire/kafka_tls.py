"""TLS for kafka-python's connections. Like `kafka_internals`, it uses undocumented parts of the library."""

import socket
import ssl
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.transport import KafkaSSLTransport

from kview.wire.kafka_internals import ByteMeter, Transport

__all__ = ["HandshakeTimedOut", "TlsTransport", "secured"]


class HandshakeTimedOut(Exception):
    """Raised when the other side accepts a connection but does not answer the TLS handshake in time."""


class TlsTransport(Transport):
    """A transport over a socket whose handshake is done. It passes on what arrives before the end, too."""

    _not_yet = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
    _sock_send = KafkaSSLTransport._sock_send

    def __init__(self, net: Any, sock: ssl.SSLSocket, host: str, meter: ByteMeter) -> None:
        super().__init__(net, sock, host, meter)
        self._ended: OSError | None = None

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """Return the bytes that have arrived, or the reason why no more will arrive.

        The reason is kept, because a session of TLS says only once why it ended.
        """
        if self._ended is not None:
            return b"", self._ended
        received, self._ended = self._receive()
        return (received, None) if received else (b"", self._ended)


async def secured(
    net: Any, sock: socket.socket, context: ssl.SSLContext, host: str, timeout_at: float
) -> ssl.SSLSocket:
    """Return the socket after a TLS handshake before `timeout_at` (monotonic seconds).

    kafka-python's own handshake waits for ever. `sock` is closed if it fails. Raises OSError, of which
    ssl.SSLError is one, or HandshakeTimedOut.
    """
    try:
        wrapped = context.wrap_socket(
            sock, server_hostname=host.rstrip(".") or None, do_handshake_on_connect=False
        )
    except BaseException:
        sock.close()
        raise
    try:
        while True:
            try:
                wrapped.do_handshake()
            except ssl.SSLWantReadError:
                await net.wait_read(wrapped, timeout_at=timeout_at)
            except ssl.SSLWantWriteError:
                await net.wait_write(wrapped, timeout_at=timeout_at)
            else:
                return wrapped
    except kafka_errors.KafkaTimeoutError as late:
        wrapped.close()
        raise HandshakeTimedOut from late
    except BaseException:
        wrapped.close()
        raise
