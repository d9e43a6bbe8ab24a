"""TLS between a socket and a connection.

asyncio's own TLS ends a failed handshake without an alert, from which clients learn what is wrong.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from typing import Any

HANDSHAKE_S = 10.0
"""Limit of a handshake, in seconds."""

NOT_TLS = bytes([21, 3, 3, 0, 2, 2, 80])
"""The alert `internal_error`, which brokers send to clients that do not speak TLS. OpenSSL sends none."""

log = logging.getLogger(__name__)


class TlsLayer(asyncio.Protocol):
    """Decrypts what a socket receives for `inner`, which is connected once the handshake is done.

    `failed` is called if that never happens.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        inner: asyncio.BufferedProtocol,
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[], None],
    ) -> None:
        self.session_in, self.session_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.session_in, self.session_out, server_side=True)
        self._inner = inner
        self._loop = loop
        self._failed = failed
        self._connected = False
        self._socket: asyncio.Transport | None = None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        self._late = self._loop.call_later(HANDSHAKE_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket = None
        self._handshake_over()
        if self._connected:
            self._inner.connection_lost(exc)
        else:
            self._failed()

    def data_received(self, data: bytes) -> None:
        self.session_in.write(data)
        try:
            if self._connected or self._handshake():
                self._pump()
        except ssl.SSLError as error:
            self._refuse(error)

    def pause_writing(self) -> None:
        if self._connected:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._connected:
            self._inner.resume_writing()

    def pump_soon(self) -> None:
        """Go on to pass what has arrived to the connection, on the event loop."""
        self._loop.call_soon(self._pump_again)

    def flush(self) -> None:
        """Send what is encrypted."""
        if self._socket is not None and self.session_out.pending:
            self._socket.write(self.session_out.read())

    def _handshake(self) -> bool:
        """Go on with the handshake, and return whether it is done."""
        try:
            self.session.do_handshake()
        except ssl.SSLWantReadError:
            self.flush()
            return False
        self.flush()
        self._handshake_over()
        if self._socket is None:
            return False
        self._connected = True
        self._inner.connection_made(TlsTransport(self, self._socket))
        return True

    def _handshake_over(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _pump_again(self) -> None:
        try:
            self._pump()
        except ssl.SSLError as error:
            self._refuse(error)

    def _pump(self) -> None:
        """Decrypt what has arrived, until the connection pauses."""
        while self._socket is not None and not self._socket.is_closing() and self._socket.is_reading():
            room: Any = self._inner.get_buffer(-1)
            try:
                size: Any = self.session.read(len(room), room)
            except ssl.SSLWantReadError:
                return
            if not size:  # the client has said that it sends no more
                self._socket.close()
                return
            self._inner.buffer_updated(size)

    def _refuse(self, error: ssl.SSLError) -> None:
        """Send the alert that belongs to an error, and close the socket."""
        log.info("a connection ended: %s", error)
        silent = not self._connected and not self.session_out.pending
        self.flush()
        if self._socket is not None:
            if silent:
                self._socket.write(NOT_TLS)
            self._socket.close()


class TlsTransport(asyncio.Transport):
    """What a connection sees of its socket and its TLS."""

    def __init__(self, layer: TlsLayer, transport: asyncio.Transport) -> None:
        super().__init__()
        self._layer = layer
        self._socket = transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._layer.session if name == "ssl_object" else self._socket.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data and not self._socket.is_closing():
            self._layer.session.write(data)
            self._layer.flush()

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._socket.is_closing()

    def pause_reading(self) -> None:
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._socket.resume_reading()
        self._layer.pump_soon()

    def close(self) -> None:
        """Say that no more is sent, and close the socket."""
        if not self._socket.is_closing():
            with contextlib.suppress(ssl.SSLError):  # the client has not said so, too
                self._layer.session.unwrap()
            self._layer.flush()
            self._socket.close()

    def abort(self) -> None:
        self._socket.abort()
