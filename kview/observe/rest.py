"""One GET of a REST API, which is another server than the brokers and may be in any state.

It blocks, with a deadline and a limit of size for the whole answer, so it is called on a thread of its own.
Only GET is ever sent, only to the server that the settings name: redirects are not followed.
"""

import base64
import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from kview.config.secret import Secret
from kview.model.failures import Cause, FailureKind
from kview.observe.causes import LinkError, Refused, cause_of
from kview.observe.loop import Unresolved

UNAUTHORIZED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_TLS = (b"\x15\x03", b"\x16\x03")
_NO_SECRET = Secret("")


class Rest(Struct, frozen=True):
    """A server: its URL, how to log in there (a user with a password, or a token), and the most bytes of an
    answer. `context` is set if the URL is one of TLS."""

    url: str
    most_bytes: int
    user: str = ""
    password: Secret = _NO_SECRET
    token: Secret = _NO_SECRET
    context: ssl.SSLContext | None = None
    accepts: str = "application/json"


class _Answer(io.RawIOBase):
    """The bytes that a socket receives until a moment, however slowly they drip, and at most so many.

    This has what http.client needs of a socket.
    """

    def __init__(self, sock: socket.socket, left_s: Callable[[], float], most_bytes: int) -> None:
        self._sock, self._left_s, self._most_bytes = sock, left_s, most_bytes
        self.bytes = 0
        self.begins = b""
        """The first two bytes or so, which tell TLS from HTTP."""

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file to read the bytes from."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True: io.BufferedReader asks before it reads."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived. Raises TimeoutError or Refused if it is too late or too much."""
        self._sock.settimeout(self._left_s())
        count = self._sock.recv_into(buffer)
        self.begins = self.begins or bytes(buffer[: min(count, 2)])
        self.bytes += count
        if self.bytes > self._most_bytes:
            raise Refused(Cause(FailureKind.TOO_LARGE))
        return count


def get(rest: Rest, path: str, within_s: float) -> bytes:
    """Return the body of the answer to a GET. Raises LinkError or Refused, which name no secret.

    `path` comes behind the URL's own.
    """
    ends_s = time.monotonic() + within_s

    def left_s() -> float:
        left = ends_s - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    try:
        with closing(_connected(rest, left_s)) as sock:
            return _body(rest, path, sock, left_s)
    except TimeoutError:
        raise LinkError(Cause(FailureKind.SILENT)) from None
    except ConnectionError as error:  # also http.client's for an end without an answer
        raise LinkError(cause_of(error) if error.errno else Cause(FailureKind.CLOSED)) from None
    except OSError as error:
        cause = cause_of(error)
        raise LinkError(
            Cause(FailureKind.NOT_TLS) if cause.kind is FailureKind.NOT_KAFKA else cause
        ) from None
    except http.client.IncompleteRead:
        raise Refused(Cause(FailureKind.INCOMPLETE)) from None
    except (http.client.HTTPException, ValueError):
        raise Refused(Cause(FailureKind.MALFORMED)) from None


def _connected(rest: Rest, left_s: Callable[[], float]) -> socket.socket:
    parts = urlsplit(rest.url)
    host = parts.hostname or ""
    port = parts.port or (http.client.HTTPS_PORT if parts.scheme == "https" else http.client.HTTP_PORT)
    try:
        sock = socket.create_connection((host, port), left_s())
    except (socket.gaierror, UnicodeError) as error:  # UnicodeError: IDNA has no such name
        raise LinkError(cause_of(Unresolved(host, error))) from None
    except TimeoutError:
        raise LinkError(Cause(FailureKind.UNREACHABLE)) from None
    if rest.context is None:
        return sock
    try:
        sock.settimeout(left_s())
        return rest.context.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _body(rest: Rest, path: str, sock: socket.socket, left_s: Callable[[], float]) -> bytes:
    """Send the request, and return the answer's body."""
    parts = urlsplit(rest.url)
    headers = {"Accept": rest.accepts, "Connection": "close", "User-Agent": "kview"}
    if rest.token:
        headers["Authorization"] = f"Bearer {rest.token.reveal()}"
    elif rest.user:
        login = f"{rest.user}:{rest.password.reveal()}".encode("utf-8", "surrogateescape")
        headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
    client = http.client.HTTPConnection(parts.netloc)
    client.sock = sock
    sock.settimeout(left_s())
    client.request("GET", parts.path + path, headers=headers)
    answer = _Answer(sock, left_s, rest.most_bytes)
    response = http.client.HTTPResponse(answer)  # type: ignore[arg-type]
    try:
        response.begin()
    except http.client.BadStatusLine:
        if answer.begins in _TLS:
            raise LinkError(Cause(FailureKind.TLS)) from None
        raise
    if response.status != HTTPStatus.OK:
        raise Refused(Cause(FailureKind.HTTP_STATUS, response.status))
    pieces = []
    while piece := response.read(1 << 16):
        pieces.append(piece)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces)
