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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kview.testing import AsyncCluster, Cluster

USED: "pytest.StashKey[Cluster]" = pytest.StashKey()
"""The cluster that a test has."""

MOST_CLUSTERS = 4
"""So many clusters of different marks a worker keeps; the one that was used longest ago ends first."""


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers",
        "kafka(brokers=3, racks=1, settings={}, seed=1): what the cluster of the fixture `kafka` is like",
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where recordings go."""
    parser.addini(
        "kafka_recordings", "the folder for recordings of failed tests; by default one for temporary files"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record what the cluster did during a test that has failed, before it is healed."""
    report = yield
    cluster = item.stash.get(USED, None)
    if report.when == "call" and report.failed and cluster is not None:
        told = _recorded(cluster, item)
        if told:
            report.sections.append(("what the Kafka cluster did", told))
    return report


def _recorded(cluster: "Cluster", item: pytest.Item) -> str:
    """Return the command that replays what a cluster did, once that is recorded; "" if that cannot be."""
    from kview.testing import ClusterError

    given = item.config.getini("kafka_recordings")
    base = item.config.rootpath / given if given else Path(tempfile.gettempdir(), "kview-recordings")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", item.nodeid)[-150:].strip("-.")
    try:
        base.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=f"{name}-", dir=base)
        cluster.record(folder)
    except (OSError, ClusterError):
        return ""
    return f"kview replay {folder}"


class _Clusters:
    """The clusters that run, by what their mark says, the one used last at the end."""

    def __init__(self) -> None:
        self._running: dict[str, Cluster] = {}

    def like(self, options: dict[str, Any]) -> "Cluster":
        """Return a cluster of that kind, and start it if none runs."""
        from kview.testing import Cluster

        kind = repr(sorted((name, str(value)) for name, value in options.items()))
        cluster = self._running.pop(kind, None)
        if cluster is None or not cluster.running:
            cluster = Cluster(**options)
        self._running[kind] = cluster
        while len(self._running) > MOST_CLUSTERS:
            self._running.pop(next(iter(self._running))).close()
        return cluster

    def close(self) -> None:
        """End all of them."""
        while self._running:
            self._running.popitem()[1].close()


@pytest.fixture(scope="session")
def _kafka_clusters() -> Iterator[_Clusters]:
    clusters = _Clusters()
    yield clusters
    clusters.close()


@pytest.fixture
def kafka(request: pytest.FixtureRequest, _kafka_clusters: _Clusters) -> "Iterator[Cluster]":
    """A simulated Kafka cluster as the test's mark `kafka` says. Afterwards every fault is undone, and what
    the test made with `new_topic`, `create_topic` and `new_group` is deleted."""
    from kview.testing import ClusterError

    mark = request.node.get_closest_marker("kafka")
    if mark is not None and mark.args:
        raise pytest.UsageError(f"{request.node.nodeid}: the mark kafka takes names: kafka(brokers=3)")
    cluster = _kafka_clusters.like(mark.kwargs if mark is not None else {})
    cluster.film()
    request.node.stash[USED] = cluster
    yield cluster
    try:
        cluster.heal()
    except ClusterError:
        cluster.close()  # the next test gets a fresh one


@pytest.fixture
def async_kafka(kafka: "Cluster") -> "AsyncCluster":
    """The cluster of the fixture `kafka`, for asyncio."""
    from kview.testing import AsyncCluster

    return AsyncCluster(kafka)
