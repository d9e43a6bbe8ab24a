"""Serves the last view as Prometheus metrics over HTTP: `/metrics`, and `/healthz` about kview itself."""

import errno
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kview import __version__
from kview.config.http_server import ASKED_WITHIN_S, REQUEST_WITHIN_S, Handler, HttpServer
from kview.derive.view import View
from kview.errors import BadUse, ErrorKind
from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.plain.metrics import Costs, build_info, metrics, of_kview
from kview.plain.own_series import EVERY_NAME, Names, OwnSeries

MOST_SCRAPES = 8
"""The most requests that are answered at the same time, while others wait. Prometheus sends one."""

STALE_LEAST_S, STALE_INTERVALS = 15.0, 3.0
"""kview is not healthy if its last observation is older than this, and older than so many intervals. What it
saw then is not served any more."""

LEAST_SERVED_S = 1.0
"""A page is served for as long as this at least: who scrapes without a pause does not keep Python from
observing."""

_Last = tuple[View, Costs, float]
"""The last view, the costs until then, and when it came."""


class Exporter(Collector):
    """Answers scrapes from the last view, on threads of its own.

    `take` may be called from any thread, and never waits for a scrape. Before the first view, there are only
    metrics of the process and kview's version. Many scrapes of one view, or within `LEAST_SERVED_S`, cost no
    more than one.
    """

    def __init__(
        self,
        interval_s: float,
        names: Names = EVERY_NAME,
        clock_s: Callable[[], float] = time.monotonic,
        request_within_s: float = REQUEST_WITHIN_S,
        asked_within_s: float = ASKED_WITHIN_S,
    ) -> None:
        self._clock_s = clock_s
        self.request_within_s = request_within_s
        self.asked_within_s = asked_within_s
        self._stale_s = max(STALE_LEAST_S, STALE_INTERVALS * interval_s)
        self._last: _Last | None = None
        self._own = OwnSeries(names)
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        self._writing = threading.Lock()
        self._written: tuple[object, bool, float, bytes] | None = None
        """What the last page was written from, whether that was too old, when that was, and the page."""

    def take(self, snapshot: Snapshot, view: View | None) -> None:
        """Serve this view from now on."""
        if view is None:
            return
        costs = self._last[1] if self._last else Costs()
        self._last = view, costs.plus(view), self._clock_s()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the last view; if it is too old, only those of kview itself."""
        last = self._last
        if last is None or self._is_old(last):
            yield build_info(__version__)
            yield from of_kview(last[0], last[1]) if last else ()
        else:
            yield from metrics(last[0], last[1], __version__, self._own)

    def page(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        with self._writing:
            last = self._last
            is_old = last is not None and self._is_old(last)
            written = self._written
            is_of_last = written is not None and written[0] is last and written[1] == is_old
            if written is None or not (is_of_last or self._clock_s() - written[2] < LEAST_SERVED_S):
                page = generate_latest(self)
                self._written = written = last, is_old, self._clock_s(), page
            return generate_latest(self._process) + written[3]

    def _is_old(self, last: _Last) -> bool:
        return self._clock_s() - last[2] > self._stale_s

    def health(self) -> tuple[bool, str]:
        """Return whether kview is observing the cluster, healthy or not, and what `/healthz` says."""
        last = self._last
        if last is None:
            return False, "no observation yet"
        return not self._is_old(last), f"last observation {self._clock_s() - last[2]:.1f} s ago"

    @property
    def is_stuck(self) -> bool:
        """Whether kview has observed the cluster, and does not any more. A cluster that does not answer is
        observed: that is what kview sees."""
        return self._last is not None and self._is_old(self._last)


class Pages(Protocol):
    """What a server of metrics answers with. Its limits are in seconds."""

    request_within_s: float
    asked_within_s: float

    def page(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        ...

    def health(self) -> tuple[bool, str]:
        """Return whether kview is observing, and what `/healthz` says."""
        ...


class FleetPages:
    """Answers scrapes from the last views of several clusters. Every series of a cluster has the label
    `cluster`; those of the process have not."""

    def __init__(
        self, clusters: Mapping[str, Exporter], clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._clusters, self._clock_s = clusters, clock_s
        self.request_within_s, self.asked_within_s = REQUEST_WITHIN_S, ASKED_WITHIN_S
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        self._writing = threading.Lock()
        self._written: tuple[float, bytes] | None = None

    def page(self) -> bytes:
        """Return all metrics of all clusters in Prometheus' text format."""
        with self._writing:
            if self._written is None or self._clock_s() - self._written[0] >= LEAST_SERVED_S:
                self._written = self._clock_s(), generate_latest(self)
            return generate_latest(self._process) + self._written[1]

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all clusters, each family once."""
        families: dict[str, Metric] = {}
        for cluster, exporter in self._clusters.items():
            for family in exporter.collect():
                known = families.setdefault(
                    family.name, Metric(family.name, family.documentation, family.type)
                )
                known.samples += [
                    sample._replace(labels={"cluster": cluster, **sample.labels}) for sample in family.samples
                ]
        yield from families.values()

    def health(self) -> tuple[bool, str]:
        """Return whether kview observes all clusters that it has reached, and one at least, and what it says
        of each. One that was never reached does not make kview unhealthy: to restart it would not help."""
        each = {cluster: exporter.health() for cluster, exporter in self._clusters.items()}
        said = "; ".join(f"{cluster}: {text}" for cluster, (_, text) in each.items())
        is_stuck = any(exporter.is_stuck for exporter in self._clusters.values())
        return any(healthy for healthy, _ in each.values()) and not is_stuck, said


def serve(pages: Pages, address: Address) -> "Server":
    """Return a server that listens on `address`. Raises BadUse."""
    try:
        server = Server(address, pages)
    except (OSError, UnicodeError) as error:  # the latter if it cannot be a host name
        raise _not_listening(address, error) from error
    server.start("metrics")
    return server


def _not_listening(address: Address, error: OSError | UnicodeError) -> BadUse:
    if isinstance(error, UnicodeError):
        return BadUse(ErrorKind.METRICS_NOT_SERVED, address=str(address), reason="not a host name")
    if error.errno == errno.EADDRINUSE:
        return BadUse(ErrorKind.METRICS_PORT_IN_USE, address=str(address))
    reason = error.strerror or str(error)
    return BadUse(ErrorKind.METRICS_NOT_SERVED, address=str(address), reason=reason)


class Server(HttpServer):
    """Listens for scrapes."""

    def __init__(self, address: Address, pages: Pages) -> None:
        self.pages = pages
        super().__init__(address, _Handler, MOST_SCRAPES, pages.request_within_s, pages.asked_within_s)


class _Handler(Handler):
    """Answers GET and HEAD requests."""

    server: Server

    def do_GET(self) -> None:
        """Answer with the page at the path."""
        pages = self.server.pages
        match self.path.partition("?")[0]:
            case "/metrics":
                self.answer(HTTPStatus.OK, pages.page(), CONTENT_TYPE_PLAIN_0_0_4)
            case "/healthz":
                healthy, said = pages.health()
                status = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
                self.answer(status, f"{'ok' if healthy else 'not ok'}: {said}\n".encode())
            case _:
                self.answer(HTTPStatus.NOT_FOUND, b"try /metrics or /healthz\n")

    do_HEAD = do_GET
