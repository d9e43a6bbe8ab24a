"""Chaos on the default world with all invariants. Nothing breaks, nothing is lost, and the cluster heals."""

import pytest

from tests.simulate.chaos import VARIANTS, Chaos
from tests.simulate.invariants import ClusterInvariant
from tests.simulate.partition_invariants import Invariant

FOUND_BY_FAULTS = [
    ("unclean", 4),  # an epoch without records hid the older ones
    ("unclean", 11),  # the same, in another partition
    ("elr", 102),  # a controller that came back was still the leader
    ("elr", 113),  # a member never found its coordinator again
]
FOUND_BY_EVERYTHING = [
    ("elr", 2001),  # a topic was placed only on fenced brokers, so no broker could ever lead it
    ("elr", 2002),  # a broker that missed a deletion kept the old log under the new topic
    ("no-elr", 2003),  # offsets committed for a deleted topic remained
    ("no-elr", 2005),  # a follower without the new topic counted as in sync by the old topic's log
    ("no-elr", 2011),  # a consumer of a recreated topic received a record of the deleted topic
]


def everything(seed: int, variant: str) -> None:
    print(f"seed {seed}, {variant}")
    chaos = Chaos(seed, variant)
    chaos.of_everything()
    chaos.heal()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "more_seeds" in metafunc.fixturenames:
        seeds = range(metafunc.config.getoption("--seeds"))
        metafunc.parametrize("more_seeds", [(variant, 1000 + seed) for seed in seeds for variant in VARIANTS])


@pytest.mark.slow  # other seeds run in any case
@pytest.mark.parametrize(("variant", "seed"), FOUND_BY_FAULTS)
def test_faults_that_once_broke_an_invariant_no_longer_do(variant: str, seed: int) -> None:
    print(f"seed {seed}, {variant}")
    chaos = Chaos(seed, variant)
    chaos.of_faults()
    chaos.heal()


@pytest.mark.slow  # other seeds run in any case
@pytest.mark.parametrize(("variant", "seed"), FOUND_BY_EVERYTHING)
def test_faults_and_topics_that_once_broke_something_no_longer_do(variant: str, seed: int) -> None:
    everything(seed, variant)


@pytest.mark.quick(1)
def test_invariants_hold_through_faults_and_topics_and_the_cluster_heals(more_seeds: tuple[str, int]) -> None:
    variant, seed = more_seeds
    everything(seed, variant)


def test_chaos_checks_every_invariant_there_is() -> None:
    checker = Chaos(1, "elr").checker
    assert {type(rule) for rule in checker.invariants} == set(Invariant.__subclasses__())
    assert {type(rule) for rule in checker.others} == set(ClusterInvariant.__subclasses__())
