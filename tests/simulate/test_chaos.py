"""Random faults on the default world, all invariants on after every event; at the end everything heals."""

import random

import pytest

from kview.simulate.cluster import build
from kview.simulate.invariants import Checker
from kview.simulate.world import default_world
from tests.simulate.engine import START_MS, go

SECONDS = 45
QUICK = {
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "4000",
    "leader.imbalance.check.interval.seconds": "20",
    "offsets.topic.num.partitions": "5",
    "replica.lag.time.max.ms": "6000",
}
FAULTS = ("crash", "stop", "hang", "slow", "start", "start", "start", "controller", "rack")
VARIANTS = {
    "elr": {},
    "unclean": {"unclean.leader.election.enable": "true"},
    "no-elr": {"eligible.leader.replicas.version": "0"},
}
FOUND_SOMETHING = [("unclean", 4), ("unclean", 11), ("elr", 102), ("elr", 113)]
"""An empty epoch hid older ones (4, 11); a controller returned as leader (102); a member lost its
coordinator (113)."""


def chaos(seed: int, variant: str) -> None:
    print(f"seed {seed}, {variant}")
    cluster = build(default_world(settings={**QUICK, **VARIANTS[variant]}), seed, START_MS)
    checker = Checker(cluster, every_event=True)
    source = random.Random(seed)
    end_us = cluster.kernel.now_us + SECONDS * 1_000_000
    while cluster.kernel.now_us < end_us:
        go(cluster, source.randrange(10_000, 4_000_000) / 1e6)
        node = source.choice([*cluster.broker_ids(), *cluster.world.controllers])
        match source.choice(FAULTS):
            case "crash":
                cluster.crash(node)
            case "stop":
                cluster.stop(node)
            case "hang":
                cluster.hang(node)
            case "slow":
                cluster.slow(node, source.choice([50, 200, 3000]))
            case "start":
                cluster.start(node)
            case "controller":
                cluster.crash_controller()
            case "rack" if source.random() < 0.2:
                cluster.lose_rack(source.choice(["R1", "R2"]))
    cluster.undo()
    go(cluster, 40)
    checker.check_all()
    troubled = [
        (key, p)
        for key, p in cluster.controller.image.all_partitions()
        if p.leader < 0 or len(p.isr) < len(p.replicas)
    ]
    assert not troubled


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "variant" in metafunc.fixturenames:
        seeds = range(metafunc.config.getoption("--seeds"))
        cases = [*FOUND_SOMETHING, *((variant, 1000 + seed) for seed in seeds for variant in VARIANTS)]
        metafunc.parametrize(("variant", "seed"), cases)


def test_invariants_hold_through_faults_and_the_cluster_heals(variant: str, seed: int) -> None:
    chaos(seed, variant)
