"""TLS between a socket and a connection.

asyncio's own TLS ends a failed handshake without an alert, from which clients learn what is wrong.
"""

import asyncio
import contextlib
import logging
import ssl
from typing import Any, Protocol

from kview.serve.connection import reset_on_close

HANDSHAKE_S = 10.0
"""Limit of a handshake, in seconds."""

NOT_TLS = bytes([21, 3, 3, 0, 2, 2, 80])
"""The alert `internal_error`, which brokers send to clients that do not speak TLS. OpenSSL sends none."""

PUMP_S = 0.002
"""How long the requests that have arrived on one connection are decrypted and handled before others get their
turn."""

log = logging.getLogger(__name__)


class Owner(Protocol):
    """Who knows the sockets whose handshake is not done."""

    def handshake_begun(self, layer: "TlsLayer") -> None: ...

    def handshake_over(self, layer: "TlsLayer", done: bool) -> None:
        """Forget a socket, whose handshake is done, or has failed."""
        ...


class TlsLayer(asyncio.Protocol):
    """Decrypts what a socket receives for `inner`, which is connected once the handshake is done.

    Nothing is read while the connection or its client does not read.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        inner: asyncio.BufferedProtocol,
        loop: asyncio.AbstractEventLoop,
        owner: Owner,
    ) -> None:
        self.session_in, self.session_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.session_in, self.session_out, server_side=True)
        self._inner = inner
        self._loop = loop
        self._owner = owner
        self._connected = False
        self._reads = self._client_reads = True
        self._pump_due = False
        self._socket: asyncio.Transport | None = None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        self._late = self._loop.call_later(HANDSHAKE_S, transport.abort)
        self._owner.handshake_begun(self)

    def freeze(self) -> None:
        """Let the handshake stand still, because the broker hangs."""
        self._stop_clock()
        self.read(False)

    def thaw(self) -> None:
        """Go on with the handshake."""
        if self._socket is not None:
            self._late = self._loop.call_later(HANDSHAKE_S, self._socket.abort)
            self.read(True)

    def close(self) -> None:
        """Close the socket during the handshake."""
        if self._socket is not None:
            self._socket.close()

    def abort(self) -> None:
        """Reset the connection, as the kernel does when a process is killed."""
        if self._socket is not None:
            reset_on_close(self._socket.get_extra_info("socket"))
            self._socket.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket = None
        self._stop_clock()
        if self._connected:
            self._inner.connection_lost(exc)
        else:
            self._owner.handshake_over(self, False)

    def data_received(self, data: bytes) -> None:
        self.session_in.write(data)
        try:
            if self._connected or self._handshake():
                self._pump()
        except ssl.SSLError as error:
            self._refuse(error)

    def pause_writing(self) -> None:
        self._client_reads = False
        self._read_socket()
        if self._connected:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._client_reads = True
        if self._connected:
            self._inner.resume_writing()
        self._pump_soon()

    def read(self, on: bool) -> None:
        """Pass what arrives to the connection, or leave it in the socket."""
        self._reads = on
        if on:
            self._pump_soon()
        else:
            self._read_socket()

    def _pump_soon(self) -> None:
        """Go on to pass what has arrived to the connection, on the event loop."""
        if not self._pump_due:
            self._pump_due = True
            self._loop.call_soon(self._pump_again)
        self._read_socket()

    def _read_socket(self) -> None:
        """Read from the socket, unless something that has arrived is still to be passed on."""
        if self._socket is None:
            return
        if self._reads and self._client_reads and not self._pump_due:
            self._socket.resume_reading()
        else:
            self._socket.pause_reading()

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
        self._stop_clock()
        if self._socket is None:
            return False
        self._connected = True
        self._owner.handshake_over(self, True)
        self._inner.connection_made(TlsTransport(self, self._socket))
        return True

    def _stop_clock(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _pump_again(self) -> None:
        self._pump_due = False
        try:
            if self._connected:
                self._pump()
            self._read_socket()
        except ssl.SSLError as error:
            self._refuse(error)
        except Exception as error:
            log.error("a connection ended, because what it received failed", exc_info=error)
            self.abort()

    def _pump(self) -> None:
        """Decrypt what has arrived, until the connection pauses, or others have waited long enough."""
        late_s = self._loop.time() + PUMP_S
        while self._reads and self._client_reads:
            if self._socket is None or self._socket.is_closing():
                return
            if self._loop.time() > late_s:
                self._pump_soon()
                return
            room: Any = self._inner.get_buffer(-1)
            try:
                size: Any = self.session.read(len(room), room)
            except ssl.SSLWantReadError:
                self.flush()  # reading may answer by itself, such as a wish for another handshake
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
        self._layer.read(False)

    def resume_reading(self) -> None:
        self._layer.read(True)

    def close(self) -> None:
        """Say that no more is sent, and close the socket."""
        if not self._socket.is_closing():
            with contextlib.suppress(ssl.SSLError):  # the client has not said so, too
                self._layer.session.unwrap()
            self._layer.flush()
            self._socket.close()

    def abort(self) -> None:
        self._socket.abort()
