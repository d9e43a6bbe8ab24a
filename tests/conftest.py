"""What the whole suite has in common: its fixtures, its options, and which tests one worker takes.

    pytest -n3                 all that is quick, on three workers; with CI=true what is marked `slow`, too:
                               whatever needs a real cluster, and what a quick test guards most of
    pytest tests/derive        one folder, in this process

Fixtures. Clusters are shared: a test names topics and groups of its own, and need not undo its faults.

    real_kafka                 three brokers of Apache Kafka with quick times, healed before each test
    shared_quorum              four brokers and three controllers, for tests that lose some of the controllers
    shared_kafka_3             two brokers of 3.9, for the tests of a simulated 3.9, which change no broker
    real_kafka_factory         starts real clusters of other sizes, times and releases, for one module
    kafka_runtime              a Java, and the folder with Kafka's jars
    simulated_cluster          `kview serve`: six brokers, quick times, no traffic, healed before each test
    simulated_cluster_factory  starts `kview serve` with other flags, for one test
    spark_java                 a Java that starts Spark in half the time, for every kview from then on
    state_home                 kview's state folder, never the user's own (every test has it)

Those of one folder are in its own conftest.py: `spark` (pipeline), `cluster` (serve: simulated, then real),
`loop` (secured), `offsets` (simulate). `tests/waiting.py` waits on conditions, `tests/worlds` makes snapshots
without a cluster, and `tests/tui/harness.py` runs the dashboard without a terminal.

Options (`pytest --help` explains them): --update-golden writes what tests compare with; --all-scripts,
--seeds, --incident-seeds, --worlds, --world-seconds, --fuzz-frames, --recordings, --restarts, --soak-minutes
and --truth-minutes make the same tests longer.
"""

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest

from kview.cli import OBJECTS_BETWEEN_COLLECTIONS
from tests.differential.lab import BROKERS, CONTROLLERS, REAL_SETTINGS
from tests.real_kafka import archive
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import KAFKA_3, KAFKA_4, Release, Unavailable, fetch_jars, find_java
from tests.real_kafka.nodes import free_ports
from tests.served import Served, ServedFactory

pytest_plugins = ["tests.costs", "tests.tiers"]

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
"""Modules are kept compiled, also where images of containers forbid it: a run starts kview hundreds of times,
and without that each of them compiles all of it."""

hypothesis.settings.register_profile("kview", deadline=None)
hypothesis.settings.load_profile("kview")
"""Without a deadline for an example: the machine may stand still for a second."""

ClusterFactory = Callable[..., RealKafka]

COUNTS: tuple[tuple[str, int | float, str], ...] = (
    ("--seeds", 1, "more seeds to try random faults with, three ways each"),
    ("--incident-seeds", 10, "how many simulated clusters' incidents to check"),
    ("--recordings", 100, "how many recordings a report on a fleet of them has"),
    ("--worlds", 8, "how many random worlds live through chaos"),
    ("--world-seconds", 60.0, "simulated seconds of chaos in each of them"),
    ("--fuzz-frames", 5_000, "how many mutated requests to send, 5,000 per seed"),
    ("--restarts", 1, "how many times a real broker crashes and comes back"),
    ("--soak-minutes", 10, "how many minutes of data the soak of the live Spark job has"),
    ("--truth-minutes", 0.0, "minutes of faults in tests/truth; 0 is a short schedule, 70 all there is"),
)
"""Options: name, default, help."""

JAVA, KAFKA, OLD_KAFKA, SPARK = "kafka_runtime", "shared_kafka", "shared_kafka_3", "spark"
SHARED = (KAFKA, SPARK, "shared_quorum", OLD_KAFKA)
"""Fixtures. Of those that are shared a run has one each: the tests that use it are all for one worker, one
after another. No test uses two."""

ENDS = pytest.StashKey[ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite's own options."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/tui/golden and tests/tui/pictures from what is drawn, and"
        " tests/differential/recorded from what a real cluster does",
    )
    parser.addoption(
        "--all-scripts",
        action="store_true",
        help="play all scripts of tests/differential behind sockets and on a real cluster",
    )
    for name, default, text in COUNTS:
        parser.addoption(name, type=type(default), default=default, help=f"{text} ({default:g})")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker import another part of all files first. What one has compiled the others read: after a
    fresh checkout, that is most of what a worker needs to begin. There is no garbage until tests run."""
    worker, config = getattr(session.config, "workerinput", None), session.config
    if worker is None:
        return
    gc.disable()
    if config.args != config.getini("testpaths"):
        return
    root = Path(__file__).parent
    files = sorted(root.rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in (*files[first:], *files[:first]):
        with suppress(Exception, pytest.skip.Exception):  # collecting the file says what is wrong with it
            import_module(".".join(file.relative_to(root.parent).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a real cluster, which is slow, and give each worker whole files, or all tests of a
    shared fixture, one after another. What takes long in one piece begins first. The workers read these marks
    in the same hook, hence first."""
    ranks: dict[str, tuple[int, int]] = {}
    for place, item in enumerate(items):
        group, java = group_of(item), JAVA in getattr(item, "fixturenames", ())
        if java or group in (KAFKA, OLD_KAFKA):
            item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.xdist_group(group))
        rank = SHARED.index(group) if group in SHARED else len(SHARED) + (not java)
        ranks[group] = min(ranks.get(group, (rank, place)), (rank, place))
    items.sort(key=lambda item: ranks[group_of(item)])


def group_of(item: pytest.Item) -> str:
    """Return what a test shares with others: a real cluster, Spark, or its file."""
    fixtures = getattr(item, "fixturenames", ())
    marked = item.get_closest_marker("real_cluster")
    if marked is not None:
        return str(marked.kwargs.get("fixture", KAFKA))
    return next((name for name in SHARED if name in fixtures), item.nodeid.split("::")[0])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """End what tests shared after the last of them: a real cluster takes a tenth of a processor at rest."""
    yield
    group = group_of(item)
    if group in SHARED and (nextitem is None or group_of(nextitem) != group):
        item.config.stash.get(ENDS, ExitStack()).close()


@pytest.fixture(scope="session")
def ends(pytestconfig: pytest.Config) -> Iterator[ExitStack]:
    """What is closed after the last test of a group that shares it."""
    with ExitStack() as stack:
        pytestconfig.stash[ENDS] = stack
        yield stack


def pytest_collection_finish() -> None:
    """Set Python's garbage collector as kview does: it would take a fifth of the dashboard's tests."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


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


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state folder of every kview that a test runs: never the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(home))
        yield home


def jars_of(java: Path, release: Release) -> Path:
    """Return the folder with a release's jars, with an archive of their classes beside it. Without them the
    test is skipped, or fails under CI."""
    try:
        jars = fetch_jars(java, release)
    except Unavailable as error:
        why = str(error)
    else:
        if not release.zookeeper and not release.alone:
            archive.make(java, jars, free_ports(2))
        return jars
    missing(why)


def missing(what: str) -> NoReturn:
    """Say that something outside this project is missing: a failure under CI, else a skipped test."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def kafka_java() -> Path:
    """The Java that runs Kafka, found before `spark_java` sets JAVA_HOME. With the archive of Spark's classes
    in place of that of Kafka's, a node's start takes twice as long."""
    return find_java()


@pytest.fixture(scope="session")
def spark_java(kafka_java: Path) -> Iterator[None]:
    """Let every kview start Spark with a Java that has Spark's classes in an archive."""
    from tests.spark_java import home

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(home()))
        yield


@pytest.fixture(scope="session")
def kafka_runtime(kafka_java: Path) -> tuple[Path, Path]:
    """A Java and the folder with Apache Kafka's jars."""
    return kafka_java, jars_of(kafka_java, KAFKA_4)


@pytest.fixture(scope="session")
def shared_kafka(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory, ends: ExitStack
) -> RealKafka:
    """Three brokers with quick times for the whole run. Tests ask for `real_kafka`."""
    java, jars = kafka_runtime
    return ends.enter_context(RealKafka(tmp_path_factory.mktemp("kafka"), java, jars))


@pytest.fixture(scope="session")
def shared_quorum(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory, ends: ExitStack
) -> RealKafka:
    """A cluster with the settings of the scripts in tests/differential. Tests heal it first."""
    java, jars = kafka_runtime
    folder = tmp_path_factory.mktemp("quorum")
    return ends.enter_context(
        RealKafka(folder, java, jars, BROKERS, len(CONTROLLERS), overrides=REAL_SETTINGS)
    )


@pytest.fixture(scope="session")
def shared_kafka_3(
    kafka_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory, ends: ExitStack
) -> RealKafka:
    """Two brokers of Kafka 3.9 in KRaft mode."""
    java, _ = kafka_runtime
    jars = jars_of(java, KAFKA_3)
    folder, of_two = tmp_path_factory.mktemp("kafka-3"), {"transaction.state.log.replication.factor": "2"}
    return ends.enter_context(RealKafka(folder, java, jars, brokers=2, overrides=of_two))


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
