"""Fixtures of the whole suite: real Kafka clusters."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import Unavailable, fetch_jars, find_java
from tests.served import Served, ServedFactory

pytest_plugins = ["pytester", "tests.retries", "tests.tiers"]

ClusterFactory = Callable[..., RealKafka]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite's own options."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/tui/golden and tests/tui/pictures from what is drawn",
    )
    parser.addoption(
        "--seeds", type=int, default=2, help="more seeds to try random faults with, three ways each"
    )
    parser.addoption(
        "--soak-minutes",
        type=int,
        default=10,
        help="how many minutes of data the soak of the live Spark job has",
    )


def missing(what: str) -> NoReturn:
    """Say that something outside this project is missing: a failure under CI, else a skipped test."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state folder of every kview that a test runs: never the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def kafka_runtime() -> tuple[Path, Path]:
    """A Java and the folder with Apache Kafka's jars."""
    java = find_java()
    try:
        jars = fetch_jars(java)
    except Unavailable as error:
        why = str(error)
    else:
        return java, jars
    missing(why)


@pytest.fixture(scope="session")
def shared_kafka(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealKafka]:
    """Three brokers with quick times for the whole run. Tests ask for `real_kafka`."""
    java, jars = kafka_runtime
    with RealKafka(tmp_path_factory.mktemp("kafka"), java, jars) as cluster:
        yield cluster


@pytest.fixture
def real_kafka(shared_kafka: RealKafka) -> RealKafka:
    """The shared cluster of three brokers with quick times, all up and in sync.

    A test may kill, stop and pause what it likes, and uses topic and group names of its own.
    """
    shared_kafka.heal()
    return shared_kafka


@pytest.fixture(scope="module")
def real_kafka_factory(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterFactory]:
    """Starts clusters of the module's own: `factory(brokers=6, overrides=KAFKA_DEFAULT_TIMES)`."""
    java, jars = kafka_runtime
    with ExitStack() as stack:

        def start(**options: Any) -> RealKafka:
            return stack.enter_context(RealKafka(tmp_path_factory.mktemp("kafka"), java, jars, **options))

        yield start


@pytest.fixture(scope="session")
def shared_simulated() -> Iterator[Served]:
    """A simulated cluster of six brokers in two racks, without traffic. Tests ask for `simulated_cluster`."""
    with Served("--no-traffic") as cluster:
        yield cluster


@pytest.fixture
def simulated_cluster(shared_simulated: Served) -> Served:
    """The shared simulated cluster with quick times, all up and in sync; topic and group names are the test's
    own."""
    shared_simulated.heal()
    return shared_simulated


@pytest.fixture
def simulated_cluster_factory() -> Iterator[ServedFactory]:
    """Starts simulated clusters of the test's own: `factory("--brokers", "3")`."""
    with ExitStack() as stack:
        yield lambda *flags, **options: stack.enter_context(Served(*flags, **options))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a real cluster, so that `-m 'not real_cluster'` leaves it out."""
    for item in items:
        if "kafka_runtime" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real_cluster)


HEAVY = (
    "tests/pipeline/",
    "tests/e2e/test_spark.py",
    "tests/real_kafka/",
    "tests/observe/test_real_cluster.py",
    "tests/e2e/test_failover.py",
    "tests/e2e/test_recording.py::test_an_incident_of_real_kafka",
)
"""What starts Java's machines, Spark's or Kafka's: one of these has all that a small machine can give."""


class OneHeavyTestAtATime(LoadScopeScheduling):
    """Any worker takes any test, but the heavy ones are all for one of them."""

    def _split_scope(self, nodeid: str) -> str:
        return "heavy" if nodeid.startswith(HEAVY) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneHeavyTestAtATime:
    """By node id, because that is all that this process knows of a test."""
    return OneHeavyTestAtATime(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of the brokers' logs with a failed test."""
    report = yield
    if report.when == "call" and report.failed:
        used = {id(value): value for value in getattr(item, "funcargs", {}).values()}
        for cluster in used.values():
            if isinstance(cluster, RealKafka):
                report.sections.append(("ends of the cluster's logs", cluster.log_tails()))
    return report
