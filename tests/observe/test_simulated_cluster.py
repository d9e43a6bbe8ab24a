"""The observer against the simulated cluster: a budget, a slow broker, and what kview itself costs."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.observe import budget
from kview.observe.observer import Observer, ObserveSettings
from tests.observe.observing import observing, until
from tests.served import Served
from tests.waiting import wait_until

PARTITIONS = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Served]:
    with Served("--topic", f"big:{PARTITIONS}:3", "--no-traffic") as served:
        yield served


def read_in(snapshot: Snapshot) -> list[int]:
    """The partitions of `big` that were read in the snapshot's own observation."""
    at = snapshot.partitions
    rows = (at.topic == "big") & (at.high_watermark_ms >= snapshot.observation.began_ms)
    return [int(partition) for partition in at.partition[rows]]


def spent_on(observer: Observer, observations: int) -> float:
    """The processor time that so many observations take, in s."""
    spent_s = 0.0
    for _ in range(observations):
        cpu_s = time.process_time()
        observer.observe()
        spent_s += time.process_time() - cpu_s
    return spent_s


def test_a_budget_reads_partitions_in_turn_and_the_preferred_ones_always(cluster: Served) -> None:
    whole = 42 * 5 * PARTITIONS  # both readings of a leader and one of each replica
    settings = ObserveSettings(interval_s=0.5, bytes_per_second=whole // 2)
    with observing(cluster.addresses, settings) as observer:
        observations = [read_in(observer.observe()) for _ in range(8)]
        # A quarter, and at most as many again that are not in sync: on a busy machine some are not.
        assert max(map(len, observations)) < 2 * PARTITIONS / 3
        assert {partition for one in observations for partition in one} == set(range(PARTITIONS))
        seen = observer.observe()
        assert (seen.partitions.log_end[seen.partitions.topic == "big"] != UNKNOWN).all()
    internal = "__consumer_offsets"
    with observing(cluster.addresses, settings) as observer:
        observer.prefer((internal, partition) for partition in range(50))
        for _ in range(4):
            seen = observer.observe()
            mine = seen.partitions.topic == internal
            assert (seen.partitions.high_watermark_ms[mine] >= seen.observation.began_ms).all()
        observer.prefer([("big", 7), ("big", PARTITIONS - 1)])
        assert all({7, PARTITIONS - 1} <= set(read_in(observer.observe())) for _ in range(4))


def test_what_lags_need_of_a_big_cluster_is_read_first_and_the_rest_soon(
    cluster: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "BIG_BYTES", 0)
    with observing(cluster.addresses, ObserveSettings(interval_s=0.5, lags_first=True)) as observer:
        first = observer.observe()
        assert (first.partitions.high_watermark != UNKNOWN).all()
        assert (first.partitions.log_start == UNKNOWN).all() and (
            first.partitions.last_stable == UNKNOWN
        ).all()
        assert (first.partitions.log_end == UNKNOWN).all() and (first.replicas.log_end == UNKNOWN).all()
        until(
            observer,
            lambda s: bool(
                (s.partitions.log_start != UNKNOWN).all()
                and (s.partitions.last_stable != UNKNOWN).all()
                and (s.partitions.log_end != UNKNOWN).all()
                and (s.replicas.log_end != UNKNOWN).all()
                and (s.replicas.size_bytes != UNKNOWN).all()
            ),
            "all is read",
        )


@pytest.mark.slow  # test_latency.py has a slow broker
def test_a_slow_broker_is_up_and_its_cells_are_not_old(cluster: Served) -> None:
    with observing(cluster.addresses, ObserveSettings(interval_s=0.5)) as observer:
        until(observer, lambda s: set(s.brokers.state) == {"up"}, "all are up")
        cluster.do("slow 4 200ms")
        try:
            ages, states = [], set()
            began_s = time.monotonic()
            while time.monotonic() - began_s < 5:
                seen = observer.observe()
                led = seen.partitions.leader == 4
                ages.append(int((seen.observation.ended_ms - seen.partitions.high_watermark_ms[led]).max()))
                states |= set(seen.brokers.state)
            assert states == {"up"}
            assert np.median(ages) < 2000
        finally:
            cluster.do("start 4")


def test_observing_dead_brokers_costs_next_to_nothing(cluster: Served) -> None:
    with observing(cluster.addresses, ObserveSettings(interval_s=1.0)) as observer:
        until(observer, lambda s: set(s.brokers.state) == {"up"}, "all are up")
        healthy_s = spent_on(observer, 10)
        for broker in range(5):
            cluster.do(f"crash {broker}")
        try:
            until(observer, lambda s: (s.brokers.state != "up").sum() == 5, "five are down")
            assert spent_on(observer, 10) < 2 * healthy_s
            cpu_s, wall_s = time.process_time(), time.monotonic()
            wait_until(lambda: time.monotonic() - wall_s > 3, "reconnecting goes on by itself")
            # A loop that never pauses takes a whole core; other tests' threads in this process take some.
            assert (time.process_time() - cpu_s) / 3 < 0.3
        finally:
            cluster.do("undo")
