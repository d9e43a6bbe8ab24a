"""An HTTP server on threads, with a limit for everything that a client can use up."""

import socket
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

from kview.model.address import Address

REQUEST_WITHIN_S = 10.0
"""How long a request may take, from the connection until the client has read the answer: as long as
Prometheus waits."""

ASKED_WITHIN_S = 2.0
"""How long a client may be silent before it has sent its whole request."""

MOST_WAITING = 128
"""The most connections that wait to be accepted."""

LOOK_EVERY_S = 0.2
"""How often a server looks whether it is to end, and which connections it has to cut."""


class HttpServer(ThreadingHTTPServer):
    """Answers requests at an address with a handler, `threads` at the same time, while others wait.

    Port 0 is a free one. Raises OSError if it cannot listen there, and UnicodeError if the host cannot be a
    name.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = MOST_WAITING

    def __init__(
        self,
        address: Address,
        handler: "type[Handler]",
        threads: int,
        request_within_s: float = REQUEST_WITHIN_S,
        asked_within_s: float = ASKED_WITHIN_S,
    ) -> None:
        self.asked_within_s = asked_within_s
        self._request_within_s = request_within_s
        self._ending = False
        self._free = threading.BoundedSemaphore(threads)
        self._until_s: dict[socket.socket, float] = {}
        """When connections are cut."""
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        super().__init__((str(found[0][4][0]), address.port), handler)

    def start(self, name: str) -> None:
        """Answer requests on threads of its own, the first of which has this name."""
        threading.Thread(target=self.serve_forever, args=(LOOK_EVERY_S,), name=name, daemon=True).start()

    def stop(self) -> None:
        """Stop listening. Requests that are still answered are left to their threads."""
        self._ending = True
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind the socket, without asking for this machine's full name, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: object, client_address: object) -> None:
        """Answer on a new thread, as soon as there are not too many."""
        while not self._free.acquire(timeout=LOOK_EVERY_S):
            self.service_actions()
            if self._ending:
                self.shutdown_request(request)  # type: ignore[arg-type]
                return
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Answer a request, or cut the connection if that takes too long."""
        assert isinstance(request, socket.socket)
        self.allow(request, self._request_within_s)
        try:
            super().process_request_thread(request, client_address)
        finally:
            del self._until_s[request]
            self._free.release()

    def allow(self, connection: socket.socket, within_s: float) -> None:
        """Let a request take so long, from now on."""
        self._until_s[connection] = time.monotonic() + within_s

    def service_actions(self) -> None:
        """Cut the connections whose time is over, so that the threads that wait for them go on."""
        now_s = time.monotonic()
        for connection, until_s in self._until_s.copy().items():
            if now_s > until_s:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing about a client that went away: the screen is not a log."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request on a connection. Derived classes have `do_GET` and others."""

    server: HttpServer
    server_version = "kview"
    sys_version = ""

    def setup(self) -> None:
        """Limit how long the client may be silent."""
        super().setup()
        self.connection.settimeout(self.server.asked_within_s)

    def answer(
        self,
        status: HTTPStatus,
        body: bytes,
        content_type: str = "text/plain; charset=utf-8",
        **headers: str,
    ) -> None:
        """Send the answer. The client may take all the time that is left to read it."""
        self.connection.settimeout(None)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: standard error belongs to the dashboard."""
