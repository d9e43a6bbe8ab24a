"""Each script shows the same states on the simulated cluster as on a real one, but for what is explained."""

from collections.abc import Iterator

import pytest

from tests.conftest import ClusterFactory
from tests.differential import controllers, groups, leaders, reading, survivors, topics
from tests.differential.comparing import RECORDED, Difference, differences, record, recorded
from tests.differential.engine_lab import EngineLab
from tests.differential.explained import EXPLAINED
from tests.differential.lab import BROKERS, CONTROLLERS, REAL_SETTINGS, SETTINGS, Lab
from tests.differential.play import Play, Script
from tests.differential.socket_lab import RealMachine, ServedMachine, SocketLab
from tests.served import Served

ROOMS = (leaders, survivors, controllers, groups, topics, reading)

SCRIPTS: dict[str, Script] = {script.__name__: script for room in ROOMS for script in room.SCRIPTS}


@pytest.fixture(scope="module")
def real_lab(real_kafka_factory: ClusterFactory) -> Lab:
    """A real cluster with the settings of the scripts."""
    return SocketLab(
        RealMachine(
            real_kafka_factory(brokers=BROKERS, controllers=len(CONTROLLERS), overrides=REAL_SETTINGS)
        )
    )


@pytest.fixture(scope="module")
def served_lab() -> Iterator[Lab]:
    """The simulated cluster as clients meet it, behind sockets."""
    flags = ("--no-traffic", "--brokers", str(BROKERS), "--racks", "2")
    with Served(*flags, settings=tuple(f"{key}={value}" for key, value in SETTINGS.items())) as served:
        yield SocketLab(ServedMachine(served))


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
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_does_the_same_behind_its_sockets(served_lab: Lab, name: str) -> None:
    play = played(served_lab, name)
    assert differences(recorded(name), play.seen, play.watched) == explained(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_real_cluster_does_what_was_recorded(
    real_lab: Lab, name: str, request: pytest.FixtureRequest
) -> None:
    play = played(real_lab, name)
    if request.config.getoption("--update-golden"):
        record(name, play.seen)
    assert differences(recorded(name), play.seen, play.watched) == []
