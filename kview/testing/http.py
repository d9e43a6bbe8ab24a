"""Serves a cluster over HTTP, for tests in any language: one request a connection, JSON both ways, a token.

Answers are made on threads, which ask the cluster on its own. Pages in browsers are refused, and so are
requests for other hosts, to which such a page might have rebound its name.
"""

import asyncio
import errno
import hmac
import logging
import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from kview.config.http_server import Handler, HttpServer
from kview.errors import BadUse, ErrorKind, KviewError
from kview.lab.messages import Answer, Ask, Request
from kview.lab.serving import Plan
from kview.language import listening as words
from kview.language.errors import sentence
from kview.model.address import Address
from kview.model.lab import Command
from kview.testing.cluster import (
    ANSWERED_WITHIN_S,
    RECORDED_WITHIN_S,
    Cluster,
    ClusterError,
    NotWithin,
    Reach,
    is_cancelled,
    users_of,
)
from kview.testing.routes import MOST_WAITED_S, ROUTES, Failure, Route, command_of

MOST_BODY_BYTES = 64 * 1024
"""Limit of what is given in a request. The longest command has some hundred bytes, a topic with a list of
replicas some thousand."""

MOST_REQUESTS = 64
"""The most requests that are answered at the same time, while others wait."""

MOST_WAITS = 48
"""The most requests that wait for the cluster at the same time. The others are left for what ends that."""

ANSWER_READ_WITHIN_S = 10.0
TOKEN_BYTES = 24
MOST_ANSWERED_S = max(MOST_WAITED_S, RECORDED_WITHIN_S) + ANSWERED_WITHIN_S
QUIT_AFTER_S = 0.1

JSON = "application/json"

_log = logging.getLogger(__name__)


class Loop:
    """The event loop on which a cluster runs, as seen by threads that ask it. Implements `Link`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, answer: Callable[[Request], Answer]) -> None:
        self._loop = loop
        self._answer = answer

    running = True
    pid = os.getpid()

    def end(self) -> None:
        """End the cluster, once this request has been answered."""
        self._loop.call_soon_threadsafe(self._loop.call_later, QUIT_AFTER_S, self._answer, Ask.QUIT)

    def request(self, request: Request, within_s: float) -> Answer:
        """Return the answer to a request. Raises ClusterError."""
        future: Future[Answer] = Future()

        def ask() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._answer(request))
                except BaseException as error:
                    future.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(ask)
            return future.result(within_s)
        except NotYet:
            future.cancel()
            raise ClusterError("the cluster does not answer: it is busy, or stuck") from None
        except RuntimeError:
            raise ClusterError("the cluster has ended") from None


class Face(HttpServer):
    """The HTTP server of a cluster. `hosts` are names of this machine, besides localhost. Without a token it
    makes one, and prints it. Raises BadUse."""

    def __init__(self, kafka: Cluster, address: Address, token: str, hosts: Iterable[str] = ()) -> None:
        self.kafka = kafka
        self._token_is_known = bool(token)
        self._token = token or secrets.token_urlsafe(TOKEN_BYTES)
        self.bearer = f"Bearer {self._token}".encode()
        self.waits = threading.BoundedSemaphore(MOST_WAITS)
        self.hosts = {"localhost", address.host.lower(), *(host.lower() for host in hosts)}
        try:
            super().__init__(address, _Handler, MOST_REQUESTS)
        except UnicodeError:
            raise _not_served(address, "not a host name") from None
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            raise _not_served(address, "it is in use" if in_use else error.strerror or str(error)) from None

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a bug."""
        error = sys.exception()
        if not isinstance(error, OSError):
            _log.error("a request over HTTP failed", exc_info=error)

    @property
    def lines(self) -> tuple[str, ...]:
        """What is printed."""
        token = () if self._token_is_known else (f"http.token={self._token}",)
        return f"http.url={self.url}", *token

    @property
    def warning(self) -> str:
        """Who can reach it from other machines, "" if nobody can."""
        is_loopback = ip_address(str(self.server_address[0])).is_loopback
        return "" if is_loopback else words.HTTP.format(url=self.url)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{Address(str(self.server_address[0]), self.server_port)}"


def _not_served(address: Address, reason: str) -> BadUse:
    return BadUse(ErrorKind.HTTP_NOT_SERVED, address=str(address), reason=reason)


class _Refused(Exception):
    """Raised if a request is refused before the cluster is asked."""

    def __init__(self, status: HTTPStatus, why: str, **headers: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers


class _Handler(Handler):
    server: Face

    def __getattr__(self, name: str) -> Any:
        """Answer requests of every method."""
        if name.startswith("do_"):
            return self._respond
        raise AttributeError(name)

    def _respond(self) -> None:
        headers: dict[str, str] = {}
        try:
            self._check_sender()
            route, given = self._asked()
            status, answer = HTTPStatus.OK, self._called(route, given)
        except _Refused as refused:
            status, answer, headers = refused.status, Failure(refused.why), refused.headers
        except NotWithin as error:
            status, answer = HTTPStatus.GATEWAY_TIMEOUT, Failure(str(error))
        except ClusterError as error:
            status, answer = HTTPStatus.CONFLICT, Failure(str(error))
        except KviewError as error:
            status, answer = HTTPStatus.BAD_REQUEST, Failure(sentence(error))
        except OSError as error:  # of a broker that has gone meanwhile
            status, answer = HTTPStatus.CONFLICT, Failure(f"no broker answers: {error}")
        self.server.allow(self.connection, ANSWER_READ_WITHIN_S)
        self.answer(status, msgspec.json.encode(answer) + b"\n", JSON, **headers)

    def _called(self, route: Route, given: Any) -> Any:
        """Return the cluster's answer. Raises _Refused if too many wait already."""
        waits = route.path.startswith("/wait/")
        if waits and not self.server.waits.acquire(blocking=False):
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_WAITS} requests wait already: try later")
        self.connection.setblocking(False)
        is_cancelled.set(self._is_gone)
        try:
            return route.call(self.server.kafka, given)
        finally:
            if waits:
                self.server.waits.release()

    def _is_gone(self) -> bool:
        """Whether the client has closed the connection, which does not block now."""
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _check_sender(self) -> None:
        """Raise _Refused for a page in a browser, for a request to another host, and for a wrong token."""
        if self.headers.get("Origin") is not None:
            raise _Refused(HTTPStatus.FORBIDDEN, "pages in browsers are refused")
        if not self._is_here(self.headers.get("Host", "")):
            raise _Refused(HTTPStatus.FORBIDDEN, "this is another host: use the address that kview printed")
        given = self.headers.get("Authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, self.server.bearer):
            said = "send the token that kview printed: Authorization: Bearer TOKEN"
            raise _Refused(HTTPStatus.UNAUTHORIZED, said, WWW_Authenticate="Bearer")

    def _is_here(self, host: str) -> bool:
        """Whether a host is a name of this machine, or an IP address, to which no page can rebind a name."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self.server.hosts or bool(ip_address(name))
        except ValueError:
            return False

    def _asked(self) -> tuple[Route, Any]:
        """Return the route, and what is given for it."""
        try:
            url = urlsplit(self.path)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"not understood: {error}") from None
        routes = [(route, given) for route in ROUTES if (given := _in_path(route.path, url.path)) is not None]
        if not routes:
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is no {url.path}: GET / describes what there is")
        for route, in_path in routes:
            if route.method == self.command:
                return route, self._given(route, {**dict(parse_qsl(url.query)), **in_path})
        allowed = ", ".join(route.method for route, _ in routes)
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{url.path} takes {allowed}", Allow=allowed)

    def _given(self, route: Route, in_url: dict[str, str]) -> Any:
        body = self._body()
        self.server.allow(self.connection, MOST_ANSWERED_S)
        try:
            if route.takes is Command:
                return command_of(body)
            if route.method == "GET" or not body:
                return msgspec.convert(in_url, route.takes, strict=False)
            return msgspec.json.decode(body, type=route.takes)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"not understood: {error}") from None

    def _body(self) -> bytes:
        """Read the body. Raises _Refused if it is too long, or its length is not said."""
        if "Transfer-Encoding" in self.headers:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "send the body with Content-Length, not in chunks")
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 9 or int(length) > MOST_BODY_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MOST_BODY_BYTES} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise _Refused(HTTPStatus.BAD_REQUEST, "the body ends early")
        return body


def _in_path(pattern: str, path: str) -> dict[str, str] | None:
    """Return what a path has in place of the names of a pattern, or None if it is another path."""
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    found = {}
    for want, has in zip(wanted, given, strict=True):
        if want.startswith("{") and has:
            found[want[1:-1]] = unquote(has)
        elif want != has:
            return None
    return found


def face_of(
    plan: Plan, address: Address, token: str
) -> Callable[[asyncio.AbstractEventLoop, Callable[[Request], Answer]], Face]:
    """Return what serves a cluster over HTTP at an address, once it runs."""

    def face(loop: asyncio.AbstractEventLoop, answer: Callable[[Request], Answer]) -> Face:
        answer(Ask.REQUESTS)  # They are kept from now on.
        advertised = tuple(port.advertised for port in plan.ports)
        near = tuple(Address(port.interface.near, port.number) for port in plan.ports)
        folder = None if plan.security is None else plan.security.folder
        users = users_of(folder, advertised)
        kafka = Cluster.over(Loop(loop, answer), Reach(advertised, near, users))
        return Face(kafka, address, token, (each.host for each in advertised))

    return face
