"""`kview serve --security` as a process of the tests, and clients that log in by hand."""

import socket
from pathlib import Path
from struct import unpack
from typing import Any

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from kview.config.client_properties import read_client_properties
from kview.config.security import Security
from tests.real_kafka.asking import Address
from tests.served import QUICK_TIMES, Served

ADMIN, ALICE = "admin", "alice"
WAIT_S = 15.0


class SecuredServed(Served):
    """A simulated cluster with secured listeners. `folder` has the files for clients."""

    def __init__(self, way: str, *flags: str, settings: tuple[str, ...] = QUICK_TIMES) -> None:
        super().__init__("--security", way, *flags, settings=settings)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().decode().strip()
        path = self.line.removeprefix("command.config=").partition(" ")[0]
        self.folder = Path(path).parent

    def client_file(self, user: str = ADMIN) -> Path:
        """The properties of a client of Java."""
        return self.folder / ("client.properties" if user == ADMIN else f"{user}.properties")

    def security(self, user: str = ADMIN) -> Security:
        """The settings with which kview is this user."""
        return read_client_properties(self.client_file(user), {}).security

    def password(self, user: str = ADMIN) -> str:
        """A user's password."""
        login = self.security(user).login
        assert login is not None
        return login.password.reveal()


class Client:
    """A client on a connection of its own, which sends one request after the other."""

    def __init__(self, address: Address) -> None:
        self.connection = socket.create_connection(address, timeout=WAIT_S)
        self._stream = self.connection.makefile("rb")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *how: object) -> None:
        self._stream.close()
        self.connection.close()

    def send(self, request: Any) -> Any:
        """Return the answer to a request. Raises ConnectionResetError if there is none."""
        request.with_header(7, "tests")
        self.connection.sendall(request.encode(header=True, framed=True))
        return request.header.get_response_class().decode(self.frame(), header=True)

    def frame(self) -> bytes:
        """Return the next frame. Raises ConnectionResetError if the connection ends."""
        size = self._stream.read(4)
        if len(size) < 4:
            raise ConnectionResetError("the broker closed the connection")
        return self._stream.read(unpack(">i", size)[0])

    def bare(self, token: bytes) -> bytes:
        """Return the answer to a token in a frame without a header."""
        self.connection.sendall(len(token).to_bytes(4, "big") + token)
        return self.frame()

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        """Name a mechanism."""
        return self.send(SaslHandshakeRequest(version=version, mechanism=mechanism))

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        """Send a token of the mechanism."""
        return self.send(SaslAuthenticateRequest(version=version, auth_bytes=token))

    def plain(self, user: str, password: str, version: int = 2) -> Any:
        """Log in with PLAIN."""
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(f"\0{user}\0{password}".encode(), version)
