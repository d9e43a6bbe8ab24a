"""Fake brokers behind TLS and logins."""

import socket
import ssl
from pathlib import Path

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from kview.model.address import Address
from tests.observe.fake_broker import VERSIONS, FakeBroker
from tests.secured.certificates import Issued

VERSIONS_KEY, HANDSHAKE, AUTHENTICATE = 18, 17, 36


def server_context(issued: Issued, folder: Path, highest: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """The TLS context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if highest is not None:
        context.minimum_version = highest
        context.maximum_version = highest
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(issued.write(folder / "server.pem"))
    return context


class TlsBroker(FakeBroker):
    """A fake broker that speaks TLS. `context` is for the connections to come."""

    def __init__(
        self, context: ssl.SSLContext, advertised: dict[int, Address] | None = None, node: int = 0
    ) -> None:
        self.context = context
        self.handshakes = 0
        """The handshakes that were tried."""
        self.dropped = False
        """Whether a proxy in front of it ends each connection at once."""
        super().__init__(node, advertised)

    def _run(self, connection: socket.socket) -> None:
        self.handshakes += 1
        if self.dropped:
            connection.close()
            return
        try:
            wrapped = self.context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        self._connections.append(wrapped)  # the plain socket is detached
        super()._run(wrapped)


class SaslBroker(FakeBroker):
    """A fake broker that wants a login with `mechanism`. Its sessions last `session_ms`, 0 for ever.

    With OAUTHBEARER, the `password` is the token that it accepts.
    """

    def __init__(self, password: str, session_ms: int = 0, mechanism: str = "PLAIN") -> None:
        self.password = password
        self.mechanism = mechanism
        self.session_ms = session_ms
        self.logins: list[bool] = []
        """Whether each login was accepted, in order."""
        self.connections = 0
        super().__init__(versions={**VERSIONS, 17: (0, 1), 36: (0, 1)})

    def _run(self, connection: socket.socket) -> None:
        self.connections += 1
        super()._run(connection)

    def _speak(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        allowed = False
        while length := stream.read(4):
            frame = stream.read(int.from_bytes(length, "big"))
            key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
            if key == HANDSHAKE:
                asked = SaslHandshakeRequest.decode(frame, version=version, header=True).mechanism
                error = 0 if asked == self.mechanism else 33
                answer = SaslHandshakeResponse(version=version, error_code=error, mechanisms=[self.mechanism])
            elif key == AUTHENTICATE:
                token = SaslAuthenticateRequest.decode(frame, version=version, header=True).auth_bytes
                allowed = self._secret(bytes(token)) == self.password.encode()
                self.logins.append(allowed)
                answer = SaslAuthenticateResponse(
                    version=version,
                    error_code=0 if allowed else 58,
                    error_message=None if allowed else "Authentication failed: Invalid username or password",
                    auth_bytes=b"",
                    session_lifetime_ms=self.session_ms,
                )
            elif key == VERSIONS_KEY or allowed:
                self.asked.append((key, version))
                body, flexible = self._answer(key, version, frame)
                self._send(connection, frame, body, flexible)
                continue
            else:
                return  # as Kafka does
            self._send(connection, frame, bytes(answer.encode()), False)
            if answer.error_code:
                return

    def _secret(self, said: bytes) -> bytes:
        """The password or the token in what a client sends."""
        if self.mechanism == "PLAIN":
            return said.rpartition(b"\0")[2]
        return said.partition(b"auth=Bearer ")[2].partition(b"\1")[0]

    @staticmethod
    def _send(connection: socket.socket, frame: bytes, body: bytes, flexible: bool) -> None:
        data = frame[4:8] + (b"\0" if flexible else b"") + body
        connection.sendall(len(data).to_bytes(4, "big") + data)
