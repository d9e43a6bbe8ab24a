"""Worlds of random size live through faults, administration and clients' traffic with all invariants, and
heal."""

import pytest

from tests.simulate.chaos_worlds import ChaosWorld
from tests.simulate.invariants import ClusterInvariant
from tests.simulate.partition_invariants import Invariant

FOUND = [
    (6, 60),  # a producer was refused, because its last batch was deleted before it was looked at
    (7, 60),  # the striped placer never ended when only one broker was unfenced
    (45, 60),  # a reassignment was cancelled when only new replicas were in sync: Kafka loses records, too
    (0, 300),  # a follower whose records were all deleted kept its log's end after an unclean election
]
"""Seeds and simulated seconds."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames and "seconds" not in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--worlds")))
    if "disk_seed" in metafunc.fixturenames:
        worlds = metafunc.config.getoption("--worlds") // 4
        metafunc.parametrize("disk_seed", range(300, 300 + max(1, worlds)))


def live(seed: int, seconds: float, members: bool = False, parted: bool = False) -> None:
    world = ChaosWorld(seed, members, parted=parted)
    print(f"seed {seed}, {world.variant}")
    world.run(seconds)


@pytest.mark.quick(2)
@pytest.mark.parametrize(("seed", "seconds"), FOUND)
def test_what_once_broke_something_no_longer_does(seed: int, seconds: float) -> None:
    live(seed, seconds)


@pytest.mark.quick(4)
def test_invariants_hold_and_the_world_heals(seed: int, request: pytest.FixtureRequest) -> None:
    live(seed, request.config.getoption("--world-seconds"), members=True, parted=True)


FOUND_WITH_CUTS = [
    175,  # a reassignment was cancelled while the ISR was empty: Kafka loses records, too
]


@pytest.mark.slow  # other seeds run in any case
@pytest.mark.parametrize("number", FOUND_WITH_CUTS)
def test_what_once_broke_with_cuts_no_longer_does(number: int) -> None:
    live(number, 60, members=True, parted=True)


FOUND_WITH_DISKS = [
    318,  # an append that a slow disk had not written was never answered when its broker ended
    84,  # a broker with a new disk was in the ISR again before it had fetched
    130,  # records were deleted that a follower with a slow disk had not fetched
]


def live_with_disks(seed: int, seconds: float) -> None:
    world = ChaosWorld(seed, members=True, disks=True)
    print(f"seed {seed}, {world.variant}")
    world.run(seconds)


@pytest.mark.slow  # other seeds run in any case
@pytest.mark.parametrize("number", FOUND_WITH_DISKS)
def test_what_once_broke_with_disks_no_longer_does(number: int) -> None:
    live_with_disks(number, 60)


def test_with_min_insync_replicas_2_no_lost_disk_loses_what_was_acknowledged(
    disk_seed: int, request: pytest.FixtureRequest
) -> None:
    live_with_disks(disk_seed, request.config.getoption("--world-seconds"))


FOUND_IN_TRANSACTIONS = [
    1,  # a producer that was started while no broker answered never learned of its topic's partitions
    16,  # a producer kept the records of a partition that was gone until they expired
    20,  # a batch that is sent again and again was encoded each time
]


@pytest.mark.quick(1)
@pytest.mark.parametrize("number", [*FOUND_IN_TRANSACTIONS, 101, 102, 103])
def test_in_all_that_transactions_are_whole_and_zombies_stay_fenced(number: int) -> None:
    world = ChaosWorld(number, transactions=True)
    print(f"seed {number}, {world.variant}")
    world.run(60)
    world.check_transactions()


def test_every_invariant_is_checked() -> None:
    checker = ChaosWorld(1).checker
    assert {type(rule) for rule in checker.invariants} == set(Invariant.__subclasses__())
    assert {type(rule) for rule in checker.others} == set(ClusterInvariant.__subclasses__())
