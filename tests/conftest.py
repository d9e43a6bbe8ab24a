"""Fixtures of the whole suite: real Kafka clusters."""

import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.real_kafka import archive
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import KAFKA_4, Release, Unavailable, fetch_jars, find_java
from tests.real_kafka.nodes import free_ports
from tests.served import Served, ServedFactory

pytest_plugins = ["pytester", "tests.retries", "tests.tiers"]

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
"""Modules are kept compiled, also where images of containers forbid it: a run starts kview hundreds of times,
and without that each of them compiles all of it."""

hypothesis.settings.register_profile("kview", deadline=None)
hypothesis.settings.load_profile("kview")
"""Without a deadline for an example: the machine may stand still for a second."""

ClusterFactory = Callable[..., RealKafka]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite's own options."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/tui/golden and tests/tui/pictures from what is drawn, and"
        " tests/differential/recorded from what a real cluster does",
    )
    parser.addoption(
        "--seeds", type=int, default=2, help="more seeds to try random faults with, three ways each"
    )
    parser.addoption(
        "--incident-seeds", type=int, default=60, help="how many simulated clusters' incidents to check"
    )
    parser.addoption(
        "--recordings", type=int, default=300, help="how many recordings a report on a fleet of them has"
    )
    parser.addoption("--worlds", type=int, default=20, help="how many random worlds live through chaos")
    parser.addoption(
        "--world-seconds", type=float, default=60, help="simulated seconds of chaos in each of them"
    )
    parser.addoption(
        "--fuzz-frames", type=int, default=20_000, help="how many mutated requests to send, 5,000 per seed"
    )
    parser.addoption(
        "--restarts", type=int, default=1, help="how many times a real broker crashes and comes back"
    )
    parser.addoption(
        "--soak-minutes",
        type=int,
        default=10,
        help="how many minutes of data the soak of the live Spark job has",
    )
    parser.addoption(
        "--truth-minutes",
        type=float,
        default=0,
        help="minutes of faults in tests/truth instead of the short schedule; 50 is all there is",
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
    jars = jars_of(java, KAFKA_4)
    archive.make(java, jars, free_ports(2))
    return java, jars


def jars_of(java: Path, release: Release) -> Path:
    """Return the folder with a release's jars. Without them the test is skipped, or fails under CI."""
    try:
        return fetch_jars(java, release)
    except Unavailable as error:
        why = str(error)
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
    """Starts clusters of the module's own: `factory(brokers=6, overrides=KAFKA_DEFAULT_TIMES)`.

    With `release=KAFKA_3` they run another release than the newest.
    """
    java, newest = kafka_runtime
    with ExitStack() as stack:

        def start(release: Release = KAFKA_4, **options: Any) -> RealKafka:
            jars = newest if release is KAFKA_4 else jars_of(java, release)
            options["zookeeper"] = release.zookeeper
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


CHAINS = {
    "spark": r"tests/pipeline/(?!test_report_truth\.py::test_so_does)|tests/e2e/test_spark\.py",
    "kafka": r"tests/real_kafka/|tests/truth/test_never_lies\.py"
    r"|tests/differential/test_scripts\.py::test_the_real_cluster"
    r"|tests/observe/test_(real_cluster|records_real_kafka|returning_brokers|lost_controllers)\.py"
    r"|tests/observe/test_coordinators\.py::\w*real"
    r"|tests/serve/.*\[real\b|tests/serve/test_java_tools\.py"
    r"|tests/secured/test_real_broker\.py|tests/e2e/test_(failover|versions)\.py"
    r"|tests/e2e/test_recording\.py::test_an_incident_of_real_kafka",
    "scripts": r"tests/differential/test_scripts\.py::test_it_does_the_same_behind_its_sockets",
}
"""Tests that one worker takes one after the other, by the beginnings of their ids. Those that start Spark's
JVMs take all processors of a small machine, but most of a report's hour is the simulation's time. Those with
real Kafka share a cluster, and mostly wait for sessions to end. The scripts behind sockets are played side by
side."""


BY_FILE = ("tests/language/", "tests/wire/", "tests/model/", "tests/config/")
"""A thousand tests that take milliseconds: handing them out one by one would take longer than they do."""


class Chains(LoadScopeScheduling):
    """Any worker takes any test, but those of a chain are all for one of them, as are those of some files."""

    def _split_scope(self, nodeid: str) -> str:
        for name, ids in CHAINS.items():
            if re.match(ids, nodeid):
                return name
        return nodeid.split("::", maxsplit=1)[0] if nodeid.startswith(BY_FILE) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Chains:
    """By node id, because that is all that this process knows of a test."""
    return Chains(config, log)


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
