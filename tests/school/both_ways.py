"""One simulated cluster, seen by the camera and, over sockets, by an observer at the same moments."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.observe.observer import Observer, ObserveSettings
from kview.school.camera import Camera
from kview.serve.server import Server, reserve_ports
from kview.simulate.cluster import Cluster, build
from kview.simulate.world import World
from tests.waiting import paced

T = TypeVar("T")
INTERVAL_S = 0.5


class BothWays:
    """A served cluster. `act` runs something on its thread, and `look` observes it both ways."""

    def __init__(self, world: World, seed: int) -> None:
        self.cluster: Cluster = build(world, seed, time.time_ns() // 1_000_000)
        self._camera = Camera(self.cluster)
        self._loop = asyncio.new_event_loop()
        self._pace = paced(INTERVAL_S)
        self._bugs: list[Exception] = []
        ports = reserve_ports(len(world.brokers))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._on_loop(lambda: Server(self.cluster, ports, self._bugs.append))
        self._on_loop(self._server.start)
        servers = self._server.bootstrap_servers.split(",")
        self._observer = Observer(list(map(Address.parse, servers)), ObserveSettings(interval_s=INTERVAL_S))
        self._observer.connect()

    def act(self, what: Callable[[], T]) -> T:
        """Run `what` on the cluster's thread, with its clock at the present."""

        def now() -> T:
            self._server.driver.advance()
            given = what()
            self._server.driver.rearm()
            return given

        return self._on_loop(now)

    def look(self) -> tuple[Snapshot, Snapshot, Snapshot]:
        """Return a snapshot of the camera, then one of the observer, then another of the camera."""
        next(self._pace)
        before = self.act(self._camera.snapshot)
        seen = self._observer.observe()
        after = self.act(self._camera.snapshot)
        assert not self._bugs, self._bugs
        return before, seen, after

    def close(self) -> None:
        """End both."""
        self._observer.close()
        self._on_loop(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _on_loop(self, what: Callable[[], T]) -> T:
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(what())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result(30)


@contextmanager
def both_ways(world: World, seed: int = 1) -> Iterator[BothWays]:
    """A cluster that is seen both ways until the block ends."""
    seen = BothWays(world, seed)
    try:
        yield seen
    finally:
        seen.close()


def rows(table: Any, *keys: str) -> dict[tuple[Any, ...], int]:
    """Return the row of each key of a table."""
    columns = [getattr(table, key).tolist() for key in keys]
    return {key: row for row, key in enumerate(zip(*columns, strict=True))}
