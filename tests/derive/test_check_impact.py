"""What the loss of a broker or a rack takes away, against a count by hand of every partition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.derive.checks.impact import Standing, losses
from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.checks import CheckFinding, CheckKind
from kview.model.snapshot import Snapshot
from tests.derive.checking import judged
from tests.worlds import World, default_world
from tests.worlds.parts import Node, topic

K = CheckKind


@st.composite
def standings(draw: st.DrawFn) -> tuple[Standing, np.ndarray]:
    """A few partitions of any state, and the domain of each replica."""
    rows, width, domains = draw(st.integers(1, 8)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    cells = st.lists(st.booleans(), min_size=rows * width, max_size=rows * width)
    in_sync = np.array(draw(cells)).reshape(rows, width)
    eligible = in_sync | np.array(draw(cells)).reshape(rows, width)
    required = np.array(draw(st.lists(st.integers(-1, 3), min_size=rows, max_size=rows)), np.int64)
    numbers = st.lists(st.integers(-1, domains - 1), min_size=rows * width, max_size=rows * width)
    return Standing(eligible, in_sync, required), np.array(draw(numbers), np.int64).reshape(rows, width)


@settings(max_examples=60)
@given(standings())
def test_every_loss_is_what_counting_partition_by_partition_gives(drawn: tuple[Standing, np.ndarray]) -> None:
    left, domain = drawn
    found = {
        loss.domain: (loss.leaderless.tolist(), loss.under_min.tolist()) for loss in losses(left, domain)
    }
    expected: dict[int, tuple[list[int], list[int]]] = {}
    for lost in sorted(set(domain.ravel().tolist()) - {-1}):
        leaderless, under = [], []
        for row in range(len(domain)):
            survives = [at for at in range(domain.shape[1]) if domain[row, at] != lost]
            may_lead = [at for at in range(domain.shape[1]) if left.eligible[row, at]]
            if may_lead and not set(may_lead) & set(survives):
                leaderless.append(row)
                continue
            now, then = left.in_sync[row].sum(), left.in_sync[row, survives].sum()
            if 0 <= left.required[row] <= now and then < left.required[row]:
                under.append(row)
        if leaderless or under:
            expected[lost] = leaderless, under
    assert found == expected


def of(kind: CheckKind, world: World, *ignore: str) -> dict[str, CheckFinding]:
    return {finding.name: finding for finding in judged(world, 3, *ignore).findings if finding.kind is kind}


def test_a_broker_takes_what_only_it_has_and_what_min_isr_needs() -> None:
    """The topic has three replicas and requires two: with one out of sync, either other broker is one too
    many."""
    world = default_world()
    world.groups = []
    log = world.log("payment", 3)
    assert log.replicas == [4, 2, 5]
    log.isr, log.stalled = [4, 5], frozenset({2})
    found = of(K.BROKER_LOSS, world)
    assert (found["4"].leaderless, found["4"].under_min_isr) == (1, 1)
    assert found["4"].partitions == (("audit-log", 3), ("payment", 3))
    assert (found["5"].leaderless, found["5"].under_min_isr) == (0, 1)
    assert "2" not in found


def test_a_rack_takes_partitions_that_no_single_broker_takes() -> None:
    nodes = [Node(id, "R1" if id < 2 else "R2") for id in range(3)]
    log = topic("orders", 1, 2, 10.0)[0]
    log.replicas, log.isr, log.leader = [0, 1], [0, 1], 0
    log.ends = {0: 10.0, 1: 10.0}
    world = World(nodes, [log], [])
    assert of(K.BROKER_LOSS, world) == {}
    found = of(K.RACK_LOSS, world)
    assert list(found) == ["R1"]
    assert (found["R1"].leaderless, found["R1"].brokers) == (1, (0, 1))


def test_without_racks_no_rack_is_judged() -> None:
    world = default_world()
    for node in world.nodes.values():
        node.rack = ""
    assert of(K.RACK_LOSS, world) == {}


def test_a_topic_whose_single_replica_is_accepted_does_not_count() -> None:
    world = default_world()
    assert set(of(K.BROKER_LOSS, world)) == {"0", "1", "3", "4"}
    assert of(K.BROKER_LOSS, world, "replication_factor_1:audit-*") == {}
    assert set(of(K.BROKER_LOSS, world, "replication_factor_1:other")) == {"0", "1", "3", "4"}


def test_what_is_lost_already_is_not_taken_by_the_next_loss() -> None:
    """With broker 4 down, invoice-3 (4, 2, 5) stands on 2 and 5; audit-log-3 is gone already."""
    world = default_world()
    world.groups = []
    judged(world, 2)
    world.crash(4)
    found = of(K.BROKER_LOSS, world)
    assert "4" not in found
    assert ("payment", 3) in found["2"].partitions and ("payment", 3) in found["5"].partitions
    assert all(("audit-log", 3) not in finding.partitions for finding in found.values())


def test_a_replica_in_the_elr_may_lead() -> None:
    """KIP-966: after the last ISR member left, the replicas in the ELR are still eligible."""
    snapshot = default_world().tick()
    with_elr, without = (loss_of(with_isr(snapshot, elr)) for elr in ([2], []))
    assert (with_elr["4"].leaderless, without["4"].leaderless) == (1, 2)


def with_isr(snapshot: Snapshot, elr: list[int]) -> View:
    """The view of a cluster in which broker 4 is all that is in sync of invoice-3."""
    table = snapshot.partitions
    row = next(at for at in range(len(table)) if (table.topic[at], table.partition[at]) == ("invoice", 3))
    isr, elrs = table.isr.copy(), np.full((len(table), 3), -1, np.int32)
    isr[row], elrs[row, : len(elr)] = [4, -1, -1], elr
    return step(State(), replace(snapshot, partitions=replace(table, isr=isr, elr=elrs)))[1]


def loss_of(view: View) -> dict[str, CheckFinding]:
    _, judgement = judge(Watch(), view)
    return {finding.name: finding for finding in judgement.findings if finding.kind is K.BROKER_LOSS}
