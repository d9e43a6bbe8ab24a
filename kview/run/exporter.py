"""Serves the last view as Prometheus metrics over HTTP: `/metrics`, and `/healthz` about kview itself."""

import errno
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kview import __version__
from kview.derive.view import View
from kview.errors import BadUse, ErrorKind
from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.plain.metrics import Costs, metrics, of_kview

REQUEST_WITHIN_S = 10.0
"""How long a request may take, from the connection until the client has read the answer: as long as
Prometheus waits."""

ASKED_WITHIN_S = 2.0
"""How long a client may be silent before it has sent its whole request."""

MOST_SCRAPES = 8
"""The most requests that are answered at the same time, while others wait. Prometheus sends one."""

MOST_WAITING = 128
"""The most connections that wait to be accepted."""

LOOK_EVERY_S = 0.2
"""How often a server whose threads are all busy looks whether it is to end."""

STALE_LEAST_S, STALE_INTERVALS = 15.0, 3.0
"""kview is not healthy if its last observation is older than this, and older than so many intervals. What it
saw then is not served any more."""


class Exporter(Collector):
    """Answers scrapes from the last view, on threads of its own.

    `take` may be called from any thread. Before the first view, there are only metrics of the process. Many
    scrapes of one view cost no more than one.
    """

    def __init__(
        self,
        interval_s: float,
        clock_s: Callable[[], float] = time.monotonic,
        request_within_s: float = REQUEST_WITHIN_S,
        asked_within_s: float = ASKED_WITHIN_S,
    ) -> None:
        self._clock_s = clock_s
        self.request_within_s = request_within_s
        self.asked_within_s = asked_within_s
        self._stale_s = max(STALE_LEAST_S, STALE_INTERVALS * interval_s)
        self._last: tuple[View, Costs, float] | None = None
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._writing = threading.Lock()
        self._written: tuple[object, bool, bytes] = None, False, b""
        """What the last page was written from, whether that was too old, and the page."""
        self._server: _Server | None = None

    def take(self, snapshot: Snapshot, view: View | None) -> None:
        """Serve this view from now on."""
        if view is None:
            return
        costs = self._last[1] if self._last else Costs()
        self._last = view, costs.plus(view), self._clock_s()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: what there is to collect depends on the cluster."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the last view; if it is too old, only those of kview itself."""
        last = self._last
        if last is None:
            return ()
        view, costs, _ = last
        if self._is_old(last):
            return of_kview(view, costs, __version__)
        return metrics(view, costs, __version__)

    def page(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        with self._writing:
            last = self._last
            is_old = last is not None and self._is_old(last)
            if self._written[0] is not last or self._written[1] != is_old:
                self._written = last, is_old, generate_latest(self._registry)
            return generate_latest(self._process) + self._written[2]

    def _is_old(self, last: tuple[View, Costs, float]) -> bool:
        return self._clock_s() - last[2] > self._stale_s

    def health(self) -> tuple[bool, str]:
        """Return whether kview is observing the cluster, healthy or not, and what `/healthz` says."""
        last = self._last
        if last is None:
            return False, "no observation yet"
        return not self._is_old(last), f"last observation {self._clock_s() - last[2]:.1f} s ago"

    def start(self, address: Address) -> int:
        """Listen on `address`, and return the port. Raises BadUse."""
        try:
            self._server = _Server(address, self)
        except (OSError, UnicodeError) as error:  # the latter if it cannot be a host name
            raise _not_listening(address, error) from error
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        return int(self._server.server_address[1])

    def stop(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            server.ending = True
            server.shutdown()
            server.server_close()


def _not_listening(address: Address, error: OSError | UnicodeError) -> BadUse:
    if isinstance(error, UnicodeError):
        return BadUse(ErrorKind.METRICS_NOT_SERVED, address=str(address), reason="not a host name")
    if error.errno == errno.EADDRINUSE:
        return BadUse(ErrorKind.METRICS_PORT_IN_USE, address=str(address))
    reason = error.strerror or str(error)
    return BadUse(ErrorKind.METRICS_NOT_SERVED, address=str(address), reason=reason)


class _Server(ThreadingHTTPServer):
    """An HTTP server with a limit of threads."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = MOST_WAITING

    def __init__(self, address: Address, exporter: Exporter) -> None:
        self.exporter = exporter
        self.ending = False
        self._free = threading.BoundedSemaphore(MOST_SCRAPES)
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        super().__init__((str(found[0][4][0]), address.port), _Handler)

    def server_bind(self) -> None:
        """Bind the socket, without asking for this machine's full name, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: object, client_address: object) -> None:
        """Answer on a new thread, as soon as there are not too many."""
        while not self._free.acquire(timeout=LOOK_EVERY_S):
            if self.ending:
                self.shutdown_request(request)  # type: ignore[arg-type]
                return
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Answer a request, or cut the connection if that takes too long."""
        assert isinstance(request, socket.socket)
        cut = threading.Timer(self.exporter.request_within_s, _cut, (request,))
        cut.daemon = True
        cut.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            cut.cancel()
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing about a client that went away: the screen is not a log."""


def _cut(connection: socket.socket) -> None:
    """End a connection, so that the thread that waits for it goes on."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD requests."""

    server: _Server
    server_version = "kview"
    sys_version = ""

    def setup(self) -> None:
        """Limit how long the client may be silent."""
        super().setup()
        self.connection.settimeout(self.server.exporter.asked_within_s)

    def do_GET(self) -> None:
        """Answer with the page at the path."""
        exporter = self.server.exporter
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(HTTPStatus.OK, exporter.page(), CONTENT_TYPE_PLAIN_0_0_4)
            case "/healthz":
                healthy, said = exporter.health()
                status = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, f"{'ok' if healthy else 'not ok'}: {said}\n".encode())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, b"try /metrics or /healthz\n")

    do_HEAD = do_GET

    def _answer(
        self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: standard error belongs to the dashboard."""
