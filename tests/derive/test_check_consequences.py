"""What brokers that are down and open transactions explain, and what they do not."""

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.checks.consequences import Causes
from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.checks import CheckFinding, CheckKind, Judgement, Key
from kview.model.states import GroupType, QuorumRole, TransactionState
from tests.derive.checking import SET_UP, judged, labels, rules
from tests.derive.test_transactions import watched
from tests.worlds import World, default_world
from tests.worlds.parts import Node, topic
from tests.worlds.transactions import APP, PRODUCER

K = CheckKind
FENCED_4, SILENT_4 = (K.BROKER_FENCED, "4"), (K.BROKER_SILENT, "4")


def after_fencing(world: World, *brokers: int, ignore: tuple[str, ...] = ()) -> Judgement:
    """What a check finds that begins with these brokers down, and ends after they were fenced."""
    world.groups = []
    judged(world, 2)
    for broker in brokers:
        world.crash(broker)
    return judged(world, 11, *ignore)


def by_label(found: Judgement) -> dict[str, CheckFinding]:
    return dict(zip(labels(found), found.findings, strict=True))


def unexplained(found: Judgement) -> list[str]:
    """What is wrong now without a cause."""
    return labels(
        Judgement(tuple(f for f in found.findings if not f.explained_by and f.level != "weakness"), ())
    )


def sound() -> World:
    """Three brokers in three racks, three replicas, min.insync.replicas 2: no weakness at all."""
    nodes = [Node(id, f"R{id}") for id in range(3)]
    logs = [*topic("orders", 6, 3, 100.0, min_isr=2), *topic("mails", 6, 3, 100.0, min_isr=2)]
    for log in logs:
        log.replicas = log.isr = [(log.partition + step) % 3 for step in range(3)]
        log.leader, log.ends = log.replicas[0], dict.fromkeys(log.replicas, log.watermark)
    return World(nodes, logs, [])


def test_a_silent_broker_explains_its_partitions_and_the_groups_that_wait_for_them() -> None:
    """Broker 4 leads 12 partitions, of which `billing` and `reporting` read three; `audit-export` stopped
    long before."""
    world, watch, state = default_world(), Watch(), State()
    for second in range(12):
        if second == 8:
            world.crash(4)
        state, view = step(state, world.tick())
        watch, found = judge(watch, view)
    assert unexplained(found) == ["broker_silent:4", "group_stopped:audit-export"]
    explained = [f for f in found.findings if f.explained_by]
    assert {f.explained_by for f in explained} == {(SILENT_4,)}
    assert {f.name for f in explained if f.kind is K.GROUP_BLOCKED} == {"billing", "reporting"}
    assert sum(f.partition_count for f in explained if f.kind is K.SILENT_LEADER) == 12
    assert [(item.names, item.explained_by) for item in found.not_judged] == [
        (("4",), (SILENT_4,)),
        (("fraud-check",), (SILENT_4,)),
    ]


def test_a_fenced_broker_explains_missing_replicas_and_is_as_bad_as_what_it_did() -> None:
    """Only broker 4 has audit-log-3, so a broker that is fenced, by itself a warning, is a risk."""
    found = after_fencing(default_world(), 4)
    assert unexplained(found) == ["broker_fenced:4"]
    assert found.findings[0].key == FENCED_4 and found.findings[0].level == "risk"
    explained = by_label(found)
    assert explained["offline:audit-log"].explained_by == (FENCED_4,)
    assert explained["at_min_isr:payment"].explained_by == (FENCED_4,)
    world = default_world()
    world.log("audit-log", 3).replicas = world.log("audit-log", 3).isr = [5]
    world.log("audit-log", 3).leader, world.log("audit-log", 3).ends = 5, {5: 300_000.0}
    assert after_fencing(world, 4).findings[0].level == "warn"


def test_a_loss_that_only_harms_because_a_broker_is_down_has_it_as_its_cause() -> None:
    """By design any broker may go. With broker 2 down, neither of the others may; all are weaknesses."""
    assert labels(judged(sound(), 8)) == []
    found = by_label(after_fencing(sound(), 2))
    losses = {name: f for name, f in found.items() if f.kind in (K.BROKER_LOSS, K.RACK_LOSS)}
    assert set(losses) == {"broker_loss:0", "broker_loss:1", "rack_loss:R0", "rack_loss:R1"}
    assert {f.explained_by for f in losses.values()} == {((K.BROKER_FENCED, "2"),)}
    assert {(f.level, f.under_min_isr) for f in losses.values()} == {("weakness", 12)}


def test_a_loss_that_harms_by_design_is_a_weakness_of_its_own() -> None:
    """audit-log has one replica: brokers 0, 1 and 3 have its other partitions, whatever broker 4 does."""
    found = by_label(after_fencing(default_world(), 4))
    causes = {name: f.explained_by for name, f in found.items() if f.kind is K.BROKER_LOSS}
    own = {name for name, explained_by in causes.items() if not explained_by}
    assert own == {"broker_loss:0", "broker_loss:1", "broker_loss:3"}
    assert set(causes) - own == {"broker_loss:2", "broker_loss:5"}


def test_a_rack_whose_loss_harms_by_design_is_not_explained_even_if_every_partition_is_short() -> None:
    """Rack R1 has two of three replicas. Without broker 2, its loss takes the last ones, which is worse."""
    world = sound()
    for node in world.nodes.values():
        node.rack = "R2" if node.id == 2 else "R1"
    found = by_label(after_fencing(world, 2))
    assert (found["rack_loss:R1"].leaderless, found["rack_loss:R1"].explained_by) == (12, ())
    assert found["broker_loss:0"].explained_by


def test_a_topic_with_another_cause_is_not_explained() -> None:
    """Broker 0 is up and does not keep up with orders-1: broker 2 explains the rest, but not that topic."""
    world = sound()
    world.log("orders", 1).isr, world.log("orders", 1).stalled = [1, 2], frozenset({0})
    found = after_fencing(world, 2)
    assert "under_replicated:orders" in unexplained(found)
    assert "under_replicated:mails" not in unexplained(found)
    assert by_label(found)["under_replicated:orders"].brokers == (0, 2)


def test_a_topic_with_an_unknown_cause_is_not_explained() -> None:
    """Only broker 4 has audit-log-3. Why nobody leads audit-log-0, no replica list tells."""
    world = default_world()
    world.log("audit-log", 0).leader, world.log("audit-log", 0).isr = -1, []
    found = after_fencing(world, 4)
    assert by_label(found)["offline:audit-log"].brokers == (4,)
    assert "offline:audit-log" in unexplained(found)


def test_brokers_that_are_down_together_explain_together() -> None:
    found = after_fencing(sound(), 1, 2)
    keys = ((K.BROKER_FENCED, "1"), (K.BROKER_FENCED, "2"))
    assert [f.key for f in found.findings[:2]] == [*keys]
    under = by_label(found)["under_min_isr:orders"]
    assert (under.explained_by, under.partition_count) == (keys, 6)


def test_brokers_explain_a_watermark_that_waits_for_a_large_enough_isr() -> None:
    """Nobody in the ISR is silent. The watermark stands still because min.insync.replicas is 2 (KIP-966)."""
    world = sound()
    for log in world.logs:
        log.isr, log.acks_all, log.stalled = [0], False, frozenset({1, 2})
        log.leader, log.epoch = 0, log.epoch + 1
    found = by_label(after_fencing(world, 1, 2))
    frozen = found["frozen:orders"]
    assert (frozen.partition_count, frozen.brokers) == (6, (1, 2))
    assert frozen.explained_by == ((K.BROKER_FENCED, "1"), (K.BROKER_FENCED, "2"))


def test_a_cause_that_is_ignored_explains_nothing() -> None:
    """Otherwise what it did would not be listed anywhere."""
    found = after_fencing(sound(), 2, ignore=("broker_fenced:2",))
    assert not any(f.explained_by for f in found.findings)
    assert {"at_min_isr:mails", "under_replicated:orders"} <= set(unexplained(found))


def test_causes_come_first_and_weaknesses_last() -> None:
    """Broker 1 is up and does not keep up with invoice-0, which is a warning of its own."""
    world = default_world()
    world.groups = []
    judged(world, 2)
    world.crash(4)
    world.log("invoice", 0).isr, world.log("invoice", 0).stalled = [0, 3], frozenset({1})
    found = judged(world, 11)
    levels = [f.level for f in found.findings]
    assert found.findings[0].key == FENCED_4 and "under_replicated:invoice" in unexplained(found)
    assert levels == sorted(levels, key=["risk", "warn", "weakness"].index)


def test_who_only_kview_cannot_reach_explains_what_was_not_judged_and_nothing_else() -> None:
    """Broker 4 is up and does not keep up with invoice-3, which has nothing to do with kview's network."""
    world = default_world()
    world.log("invoice", 3).isr, world.log("invoice", 3).stalled = [2, 5], frozenset({4})
    world.log("invoice", 3).leader = 2
    judged(world, 2)
    world.cut(4)
    found = judged(world, 8)
    assert by_label(found)["under_replicated:invoice"].brokers == (4,)
    assert not any(f.explained_by for f in found.findings)
    assert {item.explained_by for item in found.not_judged if item.brokers == (4,)} == {(SILENT_4,)}


def test_a_group_that_waits_for_a_new_leader_is_explained() -> None:
    """`fraud-check` reads audit-log, of whose partition 3 only broker 4 has a replica. Before Kafka 4.0, the
    cluster no longer lists that broker."""
    world, watch, state = default_world(), Watch(), State()
    world.groups = [world.group("fraud-check")]
    world.group("fraud-check").coordinator = 0
    judged(world, 2)
    world.crash(4)
    judged(world, 11)
    for _ in range(8):
        seen = world.tick()
        listed = seen.brokers.take(seen.brokers.id != 4)
        state, view = step(state, replace(seen, brokers=listed))
        watch, found = judge(watch, view)
    assert by_label(found)["group_blocked:fraud-check"].explained_by == ((K.BROKER_GONE, "4"),)


def test_a_group_that_something_else_blocks_as_well_is_not_explained() -> None:
    """`billing` reads invoice. Nobody leads invoice-0, whose last replica in sync, 0, is up."""
    world, watch, state = default_world(), Watch(), State()
    for second in range(12):
        if second == 8:
            world.crash(4)
            world.log("invoice", 0).leader, world.log("invoice", 0).isr = -1, [0]
        state, view = step(state, world.tick())
        watch, found = judge(watch, view)
    blocked = by_label(found)["group_blocked:billing"]
    assert blocked.explained_by == () and "offline:invoice" in unexplained(found)


def test_a_controller_in_the_same_process_is_explained() -> None:
    """A node's id is unique among brokers and controllers, so broker 4 and controller 4 are one process."""
    world, state = default_world(), State()
    world.groups = []
    judged(world, 2)
    world.crash(4)
    watch = Watch()
    for _ in range(11):
        seen = world.tick()
        seen.quorum.role[seen.quorum.node == 4] = QuorumRole.VOTER
        state, view = step(state, seen)
        watch, found = judge(watch, view)
    assert by_label(found)["voter_lost:4"].explained_by == (FENCED_4,)


HELD = (K.OPEN_TRANSACTION, APP)


def judged_views(views: Sequence[View], *ignore: str) -> Judgement:
    watch = Watch(ignore=rules(*ignore))
    for view in views:
        watch, found = judge(watch, view)
    return found


@pytest.mark.parametrize(
    ("state", "error", "cause"),
    [
        (TransactionState.ONGOING, 0, HELD),
        (TransactionState.HANGING, 0, (K.HANGING_TRANSACTION, f"producer-{PRODUCER}")),
        (TransactionState.ONGOING, 29, (K.OPEN_TRANSACTION, "producer-unknown")),
    ],
)
def test_a_transaction_explains_the_groups_that_wait_for_it(state: str, error: int, cause: Key) -> None:
    found = judged_views(watched(70, GroupType.CLASSIC, 1, state=state, error=error), *SET_UP)
    assert [(f.key, f.explained_by) for f in found.findings] == [
        (cause, ()),
        ((K.GROUP_BLOCKED_BY_TRANSACTION, "billing"), (cause,)),
    ]


def test_a_transaction_that_is_ignored_explains_nothing() -> None:
    views = watched(70, GroupType.CLASSIC, 1)
    (waits,) = judged_views(views, *SET_UP, f"open_transaction:{APP}").findings
    assert (waits.key, waits.explained_by) == ((K.GROUP_BLOCKED_BY_TRANSACTION, "billing"), ())


def test_transactions_explain_only_what_they_hold() -> None:
    one, two = (K.OPEN_TRANSACTION, "one"), (K.OPEN_TRANSACTION, "two")
    ids, flags = np.zeros((0, 0), np.int32), np.zeros((0, 0), np.bool_)
    may_explain = Causes(ids, flags, {}, {}, [(one, np.array([0, 1])), (two, np.array([4]))])
    for rows, causes in (([1], (one,)), ([0, 4], (one, two)), ([1, 2], ()), ([3], ())):
        assert may_explain.of_waiting(np.array(rows)) == causes
