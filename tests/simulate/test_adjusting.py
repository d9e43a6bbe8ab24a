"""What is adjusted in a running cluster has the consequences that it has in Kafka."""

from collections.abc import Mapping
from typing import Any

import pytest

from kview.errors import BadUse, ErrorKind
from kview.model.lab import Command, CommandKind
from kview.simulate.cluster import Cluster, build
from kview.simulate.world import GroupSpec, ProducerSpec, TopicSpec, World, racked_brokers
from tests.simulate.invariants import Checker

START_MS = 1_700_000_000_000
K = CommandKind


def cluster_of(*groups: GroupSpec, rate: float = 400.0, topic: TopicSpec | None = None) -> Cluster:
    """Three brokers with a topic `t`, a producer `p` and groups."""
    world = World(
        brokers=racked_brokers(3, 1),
        topics=(topic or TopicSpec("t", 2, 3),),
        producers=(ProducerSpec("p", "t", rate, record_bytes=1000),),
        groups=groups,
        settings={"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"},
        warm_ms=60_000,
    )
    cluster = build(world, 1, START_MS)
    Checker(cluster, every_event=True)
    go(cluster, 2)
    return cluster


def go(cluster: Cluster, seconds: float) -> None:
    """Let time pass."""
    cluster.run_until(cluster.kernel.now_us + round(seconds * 1_000_000))


def counted(cluster: Cluster, kind: str, name: str) -> Mapping[str, int]:
    """What the cluster counts of a producer or a group."""
    found: Any = cluster.counters()[kind]
    return dict(found[name])


def created_in(cluster: Cluster, seconds: float) -> int:
    """How many records the producer creates in so many seconds."""
    before = counted(cluster, "producers", "p")["created"]
    go(cluster, seconds)
    return counted(cluster, "producers", "p")["created"] - before


@pytest.mark.parametrize("rate", [0.0, 50.0, 3000.0])
def test_a_producer_has_another_rate_at_once_and_back(rate: float) -> None:
    cluster = cluster_of()
    cluster.adjustments.apply(Command(K.RATE, name="p", amount=rate))
    assert abs(created_in(cluster, 10) - 10 * rate) <= max(2, 0.02 * 10 * rate)
    cluster.adjustments.apply(Command(K.RATE, name="p", amount=400.0))
    assert abs(created_in(cluster, 10) - 4000) <= 80


def test_a_paused_group_reads_nothing_and_stays_a_group() -> None:
    cluster = cluster_of(GroupSpec("g", ("t",), 2, records_per_second=500.0))
    cluster.adjustments.apply(Command(K.PAUSE, name="g"))
    go(cluster, 1)
    before = counted(cluster, "groups", "g")["read"]
    go(cluster, 60)
    assert counted(cluster, "groups", "g")["read"] == before
    assert described(cluster) == ("Stable", 2)
    cluster.adjustments.apply(Command(K.RESUME, name="g"))
    go(cluster, 10)
    read = counted(cluster, "groups", "g")["read"] - before
    assert 9_000 <= read <= 10_600, "it reads at its own rate, and does not make up for the pause at once"


def described(cluster: Cluster) -> tuple[str, int]:
    """The state of the group g and the number of its members."""
    coordinator = cluster.groups(0).find("g")
    found = cluster.groups(coordinator).describe("g")
    return found.state, len(found.members)


def test_a_member_that_leaves_is_gone_at_once_and_one_that_dies_after_its_session() -> None:
    cluster = cluster_of(GroupSpec("g", ("t",), 3))
    cluster.adjustments.apply(Command(K.REMOVE_MEMBER, name="g"))
    go(cluster, 5)
    assert described(cluster) == ("Stable", 2)
    cluster.adjustments.apply(Command(K.KILL_MEMBER, name="g"))
    go(cluster, 40)
    assert described(cluster)[1] == 2
    go(cluster, 15)
    assert described(cluster) == ("Stable", 1)
    cluster.adjustments.apply(Command(K.ADD_MEMBER, name="g"))
    go(cluster, 8)
    assert described(cluster) == ("Stable", 2)


def test_a_member_that_leaves_while_it_joins_is_gone_too() -> None:
    cluster = cluster_of(GroupSpec("g", ("t",), 2))
    cluster.adjustments.apply(Command(K.ADD_MEMBER, name="g"))
    go(cluster, 1)
    cluster.adjustments.apply(Command(K.REMOVE_MEMBER, name="g"))
    go(cluster, 8)
    assert described(cluster) == ("Stable", 2)


def committed(cluster: Cluster) -> dict[int, int]:
    """The committed offset of each partition that the group has read."""
    coordinator = cluster.groups(cluster.groups(0).find("g"))
    return {one.partition: one.offset for one in coordinator.fetch_offsets("g", None).offsets}


@pytest.mark.quick(4)
@pytest.mark.parametrize("at_most_once", [False, True])
@pytest.mark.parametrize("lives_ms", range(11_100, 16_100, 1_250))  # some time in its commit interval
def test_what_a_dead_member_leaves_is_read_again_or_never(at_most_once: bool, lives_ms: int) -> None:
    spec = GroupSpec("g", ("t",), 2, 160.0, warm_lag_seconds=20.0, at_most_once=at_most_once)
    cluster = cluster_of(spec)
    go(cluster, lives_ms / 1000)
    cluster.adjustments.apply(Command(K.KILL_MEMBER, name="g"))
    before = committed(cluster)
    for _ in range(60):
        go(cluster, 1)
        assert all(offset >= before[at] for at, offset in committed(cluster).items()), "it has not rewound"
        before = committed(cluster)
    told = counted(cluster, "groups", "g")
    assert (told["skipped"] > 0, told["reread"] > 0) == (at_most_once, not at_most_once)


def test_a_slow_link_makes_the_follower_leave_the_isr_and_a_fast_one_lets_it_back() -> None:
    cluster = cluster_of(topic=TopicSpec("t", 1, 3))
    cluster.adjustments.apply(Command(K.BANDWIDTH, node=2, amount=100_000))
    go(cluster, 60)
    partition = cluster.metadata.image.partition("t", 0)
    assert partition is not None and partition.isr == (0, 1)
    cluster.adjustments.apply(Command(K.BANDWIDTH, node=2, amount=125_000_000))
    go(cluster, 10)
    partition = cluster.metadata.image.partition("t", 0)
    assert partition is not None and set(partition.isr) == {0, 1, 2}


def test_a_setting_and_an_unclean_election() -> None:
    cluster = cluster_of(topic=TopicSpec("t", 1, 2))
    cluster.adjustments.apply(Command(K.SET, name="t", key="min.insync.replicas", value="2"))
    assert cluster.configs.min_insync_replicas("t") == 2
    cluster.adjustments.apply(Command(K.SET, name="t", key="min.insync.replicas", value="1"))
    cluster.faults.stop(1)
    go(cluster, 5)
    cluster.faults.crash(0)
    go(cluster, 12)
    cluster.faults.start(1)
    go(cluster, 12)
    partition = cluster.metadata.image.partition("t", 0)
    assert partition is not None and partition.leader == -1
    cluster.kernel.after_event = None  # an unclean election loses committed records, which is an invariant
    cluster.adjustments.apply(Command(K.ELECT, name="t"))
    go(cluster, 2)
    partition = cluster.metadata.image.partition("t", 0)
    assert partition is not None and partition.leader == 1


def test_a_setting_needs_a_controller_and_is_undone_once_there_is_one() -> None:
    cluster = cluster_of()
    lab, wanted = cluster.adjustments, Command(K.SET, name="t", key="min.insync.replicas", value="2")
    back = lab.apply(wanted)
    assert back is not None
    for controller in cluster.world.controllers[:2]:
        cluster.faults.crash(controller)
    go(cluster, 5)
    for decided in (back, Command(K.ELECT, name="t")):
        with pytest.raises(BadUse) as raised:
            lab.apply(decided)
        assert raised.value.kind is ErrorKind.NO_CONTROLLER_TO_CHANGE
    lab.apply(Command(K.RATE, name="p", amount=50.0))  # Clients do not ask a controller.
    lab.undo(back)
    assert cluster.configs.min_insync_replicas("t") == 2
    cluster.faults.undo()
    go(cluster, 10)
    assert cluster.configs.min_insync_replicas("t") == 1
    assert lab.apply(wanted) == back


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (Command(K.RATE, name="q", amount=1), ErrorKind.PRODUCER_UNKNOWN),
        (Command(K.RATE, name="p", amount=-1), ErrorKind.AMOUNT_OUT_OF_RANGE),
        (Command(K.PAUSE, name="q"), ErrorKind.GROUP_UNKNOWN),
        (Command(K.BANDWIDTH, node=9, amount=10_000), ErrorKind.BROKER_UNKNOWN),
        (Command(K.BANDWIDTH, node=1, amount=1), ErrorKind.AMOUNT_OUT_OF_RANGE),
        (Command(K.SET, name="t", key="nonsense", value="1"), ErrorKind.ADJUSTMENT_REFUSED),
        (Command(K.ELECT, name="t"), ErrorKind.ADJUSTMENT_REFUSED),
    ],
)
def test_what_cannot_be_adjusted_is_refused(wanted: Command, kind: ErrorKind) -> None:
    with pytest.raises(BadUse) as raised:
        cluster_of().adjustments.apply(wanted)
    assert raised.value.kind is kind
