"""The HTTP server of metrics."""

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from kview import __version__
from kview.derive.view import View
from kview.errors import BadUse, ErrorKind
from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.run.exporter import LEAST_SERVED_S, MOST_SCRAPES, Exporter, FleetPages, Server, serve
from tests.clocks import SetClock
from tests.plain.scraped import problems, read, value
from tests.waiting import PATIENCE_S, wait_until
from tests.worlds import default_world, views


@pytest.fixture
def clock() -> SetClock:
    return SetClock(100.0)


@pytest.fixture
def exporter(clock: SetClock) -> Exporter:
    return Exporter(interval_s=1.0, clock_s=clock)


Listen = Callable[[Exporter], int]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Serves pages until the test ends, and returns the port."""
    servers: list[Server] = []

    def begin(pages: Exporter) -> int:
        servers.append(serve(pages, Address("127.0.0.1", 0)))
        return int(servers[-1].server_address[1])

    yield begin
    for server in servers:
        server.stop()


def get(port: int, path: str) -> tuple[int, str]:
    """The status and the body of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_a_scrape_and_the_health_of_kview(exporter: Exporter, listen: Listen, clock: SetClock) -> None:
    port = listen(exporter)
    assert get(port, "/healthz") == (503, "not ok: no observation yet\n")
    status, page = get(port, "/metrics")
    assert status == 200 and value(read(page), "kview_brokers") is None
    for view in views(default_world().tick() for _ in range(3)):
        exporter.take(view.snapshot, view)
    clock.now_s += LEAST_SERVED_S
    status, page = get(port, "/metrics")
    series = read(page)
    assert status == 200 and problems(page) == []
    assert value(series, "kview_brokers") == 6
    assert value(series, "kview_observations_total") == 3
    assert (value(series, "process_cpu_seconds_total") or 0) > 0
    assert get(port, "/healthz") == (200, "ok: last observation 1.0 s ago\n")
    clock.now_s += 15
    assert get(port, "/healthz") == (503, "not ok: last observation 16.0 s ago\n")
    old = read(get(port, "/metrics")[1])
    assert value(old, "kview_brokers") is None, "what was seen then is not known now"
    assert value(old, "kview_observations_total") == 3
    assert value(old, "kview_observation_timestamp_seconds") is not None
    assert get(port, "/")[0] == 404


def test_a_port_in_use_and_an_address_of_another_machine(exporter: Exporter) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken, pytest.raises(BadUse) as refused:
        serve(exporter, Address("127.0.0.1", taken.getsockname()[1]))
    assert refused.value.kind is ErrorKind.METRICS_PORT_IN_USE
    with pytest.raises(BadUse) as refused:
        serve(exporter, Address("192.0.2.1", 9308))
    assert refused.value.kind is ErrorKind.METRICS_NOT_SERVED
    with pytest.raises(BadUse) as refused:
        serve(exporter, Address("a" * 70, 9308))
    assert refused.value.kind is ErrorKind.METRICS_NOT_SERVED


def test_clients_that_send_half_a_request_keep_nobody_out(listen: Listen) -> None:
    """They have all threads for a moment, in which the others wait."""
    exporter = Exporter(interval_s=1.0, asked_within_s=0.5)
    port = listen(exporter)
    half = [socket.create_connection(("127.0.0.1", port)) for _ in range(2 * MOST_SCRAPES)]
    try:
        for each in half:
            each.sendall(b"GET /metr")
        with ThreadPoolExecutor(10) as pool:
            statuses = {status for status, _ in pool.map(lambda _: get(port, "/metrics"), range(20))}
    finally:
        for each in half:
            each.close()
    assert statuses == {200}


def test_it_ends_while_all_threads_are_busy() -> None:
    exporter = Exporter(interval_s=1.0, asked_within_s=PATIENCE_S)
    server = serve(exporter, Address("127.0.0.1", 0))
    port = server.server_address[1]
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_SCRAPES + 1)]
    try:
        wait_until(lambda: threading.active_count() > MOST_SCRAPES, "all threads are busy")
        server.stop()
    finally:
        for each in silent:
            each.close()


def test_many_scrapes_at_once_and_scrapers_that_never_read(exporter: Exporter, listen: Listen) -> None:
    """A page is written once for all of them, and who does not read it holds up nobody else."""
    view = Counted(next(views((default_world().tick(),))))
    exporter.take(view.snapshot, view)  # type: ignore[arg-type]
    port = listen(exporter)
    get(port, "/metrics")
    once = view.read
    lazy = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_SCRAPES - 4)]
    try:
        for each in lazy:
            each.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        with ThreadPoolExecutor(4) as pool:
            pages = list(pool.map(lambda _: get(port, "/metrics"), range(4)))
    finally:
        for each in lazy:
            each.close()
    assert {status for status, _ in pages} == {200}
    assert all(value(read(page), "kview_brokers") == 6 for _, page in pages)
    assert view.read == once > 0


def test_a_scrape_that_takes_long_holds_up_no_observation(exporter: Exporter, clock: SetClock) -> None:
    first, second = views(default_world().tick() for _ in range(2))
    slow = Blocked(first)
    exporter.take(first.snapshot, slow)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(exporter.page)
        assert slow.is_read.wait(PATIENCE_S)
        exporter.take(second.snapshot, second)
        slow.goes_on.set()
        assert value(read(page.result(PATIENCE_S).decode()), "kview_observations_total") == 1
    clock.now_s += LEAST_SERVED_S - 0.1
    assert value(read(exporter.page().decode()), "kview_observations_total") == 1, "it is young enough"
    clock.now_s += 0.1
    assert value(read(exporter.page().decode()), "kview_observations_total") == 2


def test_a_client_that_sends_its_request_for_ever_is_cut_off(listen: Listen) -> None:
    impatient = Exporter(interval_s=1.0, request_within_s=0.2)
    port = listen(impatient)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as dripping:
        dripping.sendall(b"GET /healthz HTTP/1.0\r\nX-Long: ")
        wait_until(lambda: not sends(dripping), "the connection is cut")


def sends(connection: socket.socket) -> bool:
    """Whether the other side still takes a byte."""
    try:
        return connection.send(b"x") == 1
    except ConnectionError:
        return False


class Blocked:
    """A view that keeps who reads it waiting."""

    def __init__(self, view: View) -> None:
        self._view, self.is_read, self.goes_on = view, threading.Event(), threading.Event()

    @property
    def snapshot(self) -> Snapshot:
        return self._view.snapshot

    def __getattr__(self, name: str) -> object:
        self.is_read.set()
        assert self.goes_on.wait(PATIENCE_S)
        return getattr(self._view, name)


class Counted:
    """A view that counts how often it is read."""

    def __init__(self, view: View) -> None:
        self._view, self.read = view, 0

    def __getattr__(self, name: str) -> object:
        self.read += 1
        return getattr(self._view, name)


def test_several_clusters_are_told_apart_by_a_label(clock: SetClock) -> None:
    clusters = {name: Exporter(interval_s=1.0, clock_s=clock) for name in ("eu", "us", "gone")}
    pages = FleetPages(clusters, clock)
    for name, ticks in (("eu", 3), ("us", 1)):
        for view in views(default_world().tick() for _ in range(ticks)):
            clusters[name].take(view.snapshot, view)
    page = pages.page().decode()
    assert problems(page) == []
    series = read(page)
    assert value(series, "kview_observations_total", cluster="eu") == 3
    assert value(series, "kview_observations_total", cluster="us") == 1
    assert value(series, "kview_brokers", cluster="gone") is None
    assert value(series, "kview_build_info", cluster="gone", version=__version__) == 1
    clusters["gone"].take(view.snapshot, view)
    clock.now_s += LEAST_SERVED_S
    assert value(read(pages.page().decode()), "kview_brokers", cluster="gone") == 6


def test_one_of_several_clusters_that_is_never_reached_restarts_nobody(clock: SetClock) -> None:
    clusters = {name: Exporter(interval_s=1.0, clock_s=clock) for name in ("eu", "us", "gone")}
    pages = FleetPages(clusters, clock)
    assert not pages.health()[0]
    view = next(views((default_world().tick(),)))
    for name in ("eu", "us"):
        clusters[name].take(view.snapshot, view)
    healthy, said = pages.health()
    assert healthy and "gone: no observation yet" in said
    clock.now_s += 16
    clusters["us"].take(view.snapshot, view)
    healthy, said = pages.health()
    assert not healthy and "eu: last observation 16.0 s ago" in said, "it is not observed any more"
