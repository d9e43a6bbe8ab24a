"""A pytest plugin: the fixture `kafka` is a simulated cluster, healed between tests, one per worker.

    def test_a_leader_crash_loses_nothing(kafka):
        orders = kafka.new_topic("orders", partitions=3)
        ...

    @pytest.mark.kafka(brokers=5, racks=2, settings={"min.insync.replicas": "2"})
    def test_a_rack_may_be_lost(kafka):
        ...

`async_kafka` is the same cluster for asyncio. Tests whose mark says the same share a cluster. When a test
fails, what the cluster did meanwhile is recorded, and the report names the recording, for `kview replay`.
"""

import re
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from typing import Unpack

    from kview.testing import AsyncCluster, Cluster, Options


class Used(NamedTuple):
    """The cluster that a test has, and a folder for recordings."""

    cluster: "Cluster"
    folder: Path


USED = pytest.StashKey[Used]()

MOST_AHEAD_S = 600.0
"""A cluster whose clock is further ahead, or behind, is not used for another test, whose records would be old
to it."""

MOST_CLUSTERS = 4
"""So many clusters of different marks a worker keeps; the one that was used longest ago ends first."""


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers",
        "kafka(brokers=3, racks=1, settings={}, seed=1, security=None, release='4.3'): what the cluster of"
        " `kafka` is like",
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where recordings go."""
    parser.addini("kafka_recordings", "the folder for recordings of failed tests; by default pytest's own")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record what the cluster did during a test that has failed, before it is healed."""
    report = yield
    used = item.stash.get(USED, None)
    if report.when != "teardown" and report.failed and used is not None:
        report.sections.append(("what the Kafka cluster did", _recorded(used, item)))
    return report


def _recorded(used: Used, item: pytest.Item) -> str:
    """Record what a cluster did, and return the command that replays it, or why there is none."""
    given = item.config.getini("kafka_recordings")
    base = item.config.rootpath / given if given else used.folder
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", item.nodeid)[-150:].strip("-.")
    try:
        base.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base))
    except OSError as error:
        return f"not recorded: {error}"
    try:
        used.cluster.record(folder)
    except Exception as error:
        with suppress(OSError):
            folder.rmdir()
        return f"not recorded: {error}"
    return f"kview replay {folder}"


class Clusters:
    """The clusters that run, by what they are like, the one used last at the end."""

    def __init__(self) -> None:
        self._running: dict[str, Cluster] = {}

    def like(self, **options: "Unpack[Options]") -> "Cluster":
        """Return a cluster that is like this. Start one if none runs whose clock is near the machine's."""
        from kview.testing import Cluster

        kind = repr(sorted((name, str(value)) for name, value in options.items()))
        cluster = self._running.pop(kind, None)
        if cluster is not None and (not cluster.running or abs(cluster.ahead_s) > MOST_AHEAD_S):
            cluster.close()
            cluster = None
        cluster = cluster or Cluster(**options)
        self._running[kind] = cluster
        while len(self._running) > MOST_CLUSTERS:
            self._running.pop(next(iter(self._running))).close()
        return cluster

    def close(self) -> None:
        """End all of them."""
        while self._running:
            self._running.popitem()[1].close()


@pytest.fixture(scope="session")
def kafka_clusters() -> Iterator[Clusters]:
    """The clusters of this run, for fixtures of a wider scope: `kafka_clusters.like(brokers=5)`, which nobody
    heals."""
    clusters = Clusters()
    yield clusters
    clusters.close()


@pytest.fixture
def kafka(
    request: pytest.FixtureRequest, kafka_clusters: Clusters, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[Cluster]":
    """A simulated Kafka cluster as the test's marks `kafka` say. Afterwards every fault is undone, and what
    the test made with `new_topic`, `create_topic` and `new_group` is deleted."""
    options: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("kafka"))):
        unknown = mark.kwargs.keys() - {"brokers", "racks", "settings", "seed", "security", "release"}
        if mark.args or unknown:
            what = f"has no {', '.join(sorted(unknown))}" if unknown else "takes names"
            raise pytest.UsageError(f"{request.node.nodeid}: the mark kafka {what}: write kafka(brokers=3)")
        options |= mark.kwargs
    cluster = kafka_clusters.like(**options)
    cluster.film()
    request.node.stash[USED] = Used(cluster, tmp_path_factory.getbasetemp() / "kafka")
    yield cluster
    try:
        cluster.heal()
    except Exception:
        cluster.close()  # the next test gets a fresh one


@pytest.fixture
def async_kafka(kafka: "Cluster") -> "AsyncCluster":
    """The cluster of the fixture `kafka`, for asyncio."""
    from kview.testing import AsyncCluster

    return AsyncCluster(kafka)
