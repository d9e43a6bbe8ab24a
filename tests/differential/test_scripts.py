"""Each script shows the same states on the simulated cluster as on a real one, but for what is explained."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

import pytest

from tests.differential import controllers, groups, leaders, reading, survivors, topics
from tests.differential.comparing import RECORDED, Difference, differences, record, recorded
from tests.differential.engine_lab import EngineLab
from tests.differential.explained import EXPLAINED
from tests.differential.lab import BROKERS, SETTINGS, Lab
from tests.differential.play import Play, Script
from tests.differential.socket_lab import RealMachine, ServedMachine, SocketLab
from tests.real_kafka.cluster import RealKafka
from tests.served import Served

ROOMS = (controllers, leaders, survivors, groups, topics, reading)
"""The longest first."""

SCRIPTS: dict[str, Script] = {script.__name__: script for room in ROOMS for script in room.SCRIPTS}


CHOSEN = (
    "controller_crash",
    "clean_stop",
    "hang",
    "from_the_elr",
    "coordinator_loss",
    "created_again_with_a_broker_slow",
    "offsets_by_time",
)
"""Scripts that are played behind sockets without --all-scripts: some of each subject. The engine is held
against what a real cluster did in all scripts, in every run."""

REAL = ("controller_crash", "coordinator_loss", "created_again_with_a_broker_slow", "offsets_by_time")
"""Those that are played on a real cluster, too. It does what it did when it was recorded: they find a change
of how scripts are played."""

CLUSTERS = 6
"""So many simulated clusters take half a processor together."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the scripts that take minutes of clusters. What is to be recorded is played whole."""
    if "script" in metafunc.fixturenames:
        every = any(map(metafunc.config.getoption, ("--all-scripts", "--update-golden")))
        chosen = REAL if "real_lab" in metafunc.fixturenames else CHOSEN
        metafunc.parametrize("script", SCRIPTS if every else chosen)


@pytest.fixture(scope="module")
def real_lab(shared_quorum: RealKafka) -> Lab:
    """A real cluster with the settings of the scripts."""
    return SocketLab(RealMachine(shared_quorum))


class SideBySide:
    """Plays scripts on simulated clusters as clients meet them, behind sockets: several at a time, because
    scripts mostly wait."""

    def __init__(self, names: Iterable[str], clusters: Iterable[Served]) -> None:
        self._idle: SimpleQueue[Lab] = SimpleQueue()
        for cluster in clusters:
            self._idle.put(SocketLab(ServedMachine(cluster)))
        self._threads = ThreadPoolExecutor(max_workers=self._idle.qsize())
        self._begun = {name: self._threads.submit(self._played, name) for name in names}

    def play(self, name: str) -> Play:
        """Return the play of a script."""
        return self._begun[name].result()

    def end(self) -> None:
        """Begin no further script."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _played(self, name: str) -> Play:
        lab = self._idle.get()
        try:
            return played(lab, name)
        finally:
            self._idle.put(lab)


@pytest.fixture(scope="module")
def side_by_side(request: pytest.FixtureRequest) -> Iterator[SideBySide]:
    """All scripts that this run has tests of, on simulated clusters."""
    tests = [item for item in request.session.items if "side_by_side" in getattr(item, "fixturenames", ())]
    names = [str(item.callspec.params["script"]) for item in tests if isinstance(item, pytest.Function)]
    flags = ("--no-traffic", "--brokers", str(BROKERS), "--racks", "2")
    settings = tuple(f"{key}={value}" for key, value in SETTINGS.items())
    with ExitStack() as stack:
        clusters = min(CLUSTERS, len(names))
        scripts = SideBySide(
            names, [stack.enter_context(Served(*flags, settings=settings)) for _ in range(clusters)]
        )
        stack.callback(scripts.end)
        yield scripts


def played(lab: Lab, name: str) -> Play:
    """Play a script in a healthy cluster, leave nothing behind, and return the play with what was seen."""
    lab.heal()
    play = Play(lab, name)
    SCRIPTS[name](play)
    play.clean_up()
    return play


def explained(name: str) -> list[Difference]:
    """Return the differences that are meant."""
    return [difference for difference, _ in EXPLAINED.get(name, ())]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_simulated_cluster_does_what_the_real_one_did(name: str) -> None:
    assert differences(recorded(name), played(EngineLab(), name).seen) == explained(name)


def test_what_is_recorded_and_explained_is_of_a_script() -> None:
    assert {file.stem for file in RECORDED.iterdir()} == set(SCRIPTS)
    assert set(EXPLAINED) <= set(SCRIPTS)


def test_a_difference_is_found_wherever_it_is() -> None:
    real = {"t-0": ["leader 0", "leader -1", "leader 1"], "error": ["0"]}
    assert differences(real, real) == []
    assert differences(real, {**real, "error": ["6"]}) == [Difference("error", ("0",), ("6",))]
    assert differences(real, {**real, "new": ["1"]}) == [Difference("new", (), ("1",))]
    missed = {**real, "t-0": ["leader 0", "leader 1"]}
    assert differences(real, missed) == [Difference("t-0", ("leader -1",), ())]
    assert differences(real, missed, fleeting={"t-0"}) == []
    stalled = {**real, "t-0": [*real["t-0"], "leader 2", "leader 1"]}
    assert differences(real, stalled, fleeting={"t-0"}) == []
    assert differences(real, stalled) == [Difference("t-0", (), ("leader 2", "leader 1"))]
    ended = {**real, "t-0": ["leader 0", "leader -1"]}
    assert differences(real, ended, fleeting={"t-0"}) == [Difference("t-0", ("leader 1",), ())]


@pytest.mark.slow
def test_it_does_the_same_behind_its_sockets(side_by_side: SideBySide, script: str) -> None:
    play = side_by_side.play(script)
    assert differences(recorded(script), play.seen, play.watched) == explained(script)


def test_the_real_cluster_does_what_was_recorded(
    real_lab: Lab, script: str, request: pytest.FixtureRequest
) -> None:
    play = played(real_lab, script)
    if request.config.getoption("--update-golden"):
        record(script, play.seen)
    assert differences(recorded(script), play.seen, play.watched) == []
