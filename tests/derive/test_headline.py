"""The headline: its scope, its groups, and leaders that are not where they should be."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.brokers.silence import Answering, answering
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import brokers as broker_words
from kview.language.findings import sentences
from kview.model.events import Severity
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure, Snapshot
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN
from tests.worlds import World, default_world, views


def said(view: View) -> list[str]:
    return sentences(view.headline.findings, view.snapshot.observation.ended_ms)


def one(snapshot: Snapshot) -> View:
    return step(State(), snapshot)[1]


def after(world: World, seconds: int) -> View:
    *_, view = views(world.tick() for _ in range(seconds))
    return view


def test_a_stopped_group_is_said_next_to_a_cluster_that_is_well() -> None:
    view = after(default_world(), 5)
    assert said(view) == ["cluster healthy", "audit-export stopped, ≥ 2 m 3 s behind"]
    assert view.headline.severity is Severity.WARN


def test_all_is_well_only_if_the_groups_are_ok_too() -> None:
    world = default_world()
    world.groups = [world.group("billing"), world.group("fraud-check")]
    view = after(world, 5)
    assert said(view) == [
        "all healthy: 6 brokers up, all partitions have leaders, all replicas in sync, 2 groups ok"
    ]
    assert view.headline.severity is Severity.CALM
    world.groups = []
    assert said(after(world, 1)) == [
        "cluster healthy: 6 brokers up, all partitions have leaders, all replicas in sync"
    ]


def test_the_worst_group_is_named_and_the_others_are_counted() -> None:
    world = default_world()
    world.crash(1)
    view = after(world, 5)
    assert sum(text.startswith("reporting blocked") for text in said(view)) == 1
    assert not any("audit-export" in text for text in said(view))
    (group,) = [text for text in said(view) if "blocked" in text]
    assert group.endswith(" · 3 other groups in trouble")


def test_partitions_off_their_preferred_leader_and_a_broker_that_leads_nothing() -> None:
    world = default_world()
    world.groups = []
    for number in (3, 9):
        world.log("invoice", number).leader = 2
    assert said(after(world, 2)) == ["cluster healthy", "2 partitions not on their preferred leader"]
    world.logs = [log for log in world.logs if log.topic in ("invoice", "payment")]
    world.log("payment", 3).leader = 2
    view = after(world, 2)
    assert said(view) == [
        "cluster healthy",
        "broker 4 leads no partitions",
        "3 partitions not on their preferred leader",
    ]
    assert view.headline.severity is Severity.CALM


def test_fencing_that_is_overdue_says_so_and_so_does_a_missing_controller() -> None:
    world = default_world()
    state, _ = step(State(), world.tick())
    world.crash(4)
    state, _ = step(state, world.tick())
    snapshot = world.tick()
    late = replace(
        snapshot, observation=replace(snapshot.observation, ended_ms=snapshot.observation.ended_ms + 11_000)
    )
    _, view = step(state, late)
    assert "fencing overdue by ≈ 3.2 s" in said(view)
    alone = replace(snapshot, observation=replace(snapshot.observation, controller_id=NO_BROKER))
    _, view = step(state, alone)
    assert not any("fenced in" in text or "overdue" in text for text in said(view))
    now_ms = view.snapshot.observation.ended_ms
    assert broker_words.fencing(view.brokers, 4, now_ms) == "no controller can fence it"
    assert any("no broker can be fenced" in text for text in said(view))


def test_a_broker_that_was_never_seen_may_be_silent_for_longer() -> None:
    snapshot = default_world().tick()
    table = snapshot.brokers
    state, answered = table.state.copy(), table.answered_ms.copy()
    state[4], answered[4] = BrokerState.SILENT, UNKNOWN
    since = np.full(6, snapshot.observation.began_ms - 5_000, np.int64)
    cold = replace(table, state=state, answered_ms=answered, since_ms=since, answers=np.arange(6) != 4)
    lost = np.where(np.arange(6) == 4, snapshot.observation.began_ms - 60_000, table.last_fetch_ms)
    view = one(replace(snapshot, brokers=replace(cold, last_fetch_ms=lost)))
    assert said(view)[0] == "broker 4 silent ≥ 5.1 s, still listed as leader of 4 partitions"
    assert view.brokers.since_is_bound.tolist() == [False] * 4 + [True, False]


def test_a_broker_that_is_gone_counts_while_partitions_still_name_it() -> None:
    snapshot = default_world().tick()
    table, parts = snapshot.brokers, snapshot.partitions
    state = table.state.copy()
    state[4] = BrokerState.GONE
    gone = replace(snapshot, brokers=replace(table, state=state, answers=np.arange(6) != 4))
    last_ms = snapshot.observation.began_ms
    assert answering(one(gone)) == Answering(5, 6, last_ms)
    moved = replace(parts, replicas=np.where(parts.replicas == 4, NO_BROKER, parts.replicas))
    decommissioned = replace(gone, partitions=moved)
    assert answering(one(decommissioned)) == Answering(5, 5, last_ms)


def test_when_nobody_answers_there_is_nothing_to_say_about_groups() -> None:
    world = default_world()
    state, _ = step(State(), world.tick())
    for broker in range(6):
        world.crash(broker, FailureKind.SILENT)
    state, _ = step(state, world.tick())
    _, view = step(state, world.tick())
    assert len(said(view)) == 1 and said(view)[0].startswith(
        "no broker has answered for 1.1 s (all accept connections but do not answer): all figures are at"
    )
    assert answering(view).answer == 0


def test_a_partition_counts_once_as_the_worst_that_is_true_of_it() -> None:
    world = default_world()
    world.groups = []
    state, _ = step(State(), world.tick())
    none, under = world.log("payment", 1), world.log("payment", 2)
    none.leader, none.isr = NO_BROKER, none.isr[:1]
    under.isr, under.stalled = under.isr[:1], frozenset(under.isr[1:])
    state, view = step(state, world.tick())
    assert said(view) == [
        "1 partition has no leader",
        "1 partition under min ISR: acks=all writes are refused",
    ]
    for _ in range(5):  # its watermark stands still, because of that
        state, view = step(state, world.tick())
    assert said(view)[1:2] == ["1 partition under min ISR: acks=all writes are refused"]
    assert not any("frozen" in text for text in said(view))
    assert (view.headline.under_min_isr, view.headline.under_replicated) == (2, 2), "as Kafka's tools count"


def test_partitions_that_an_answering_leader_refuses_are_not_called_healthy() -> None:
    world = default_world()
    world.groups = [world.group("billing")]
    first = world.tick()
    invoice = np.flatnonzero(first.partitions.topic == "invoice")[:2]
    read_ms = first.partitions.high_watermark_ms[invoice]

    def refused(snapshot: Snapshot) -> Snapshot:
        table = snapshot.partitions
        at_ms, error = table.high_watermark_ms.copy(), table.error_code.copy()
        at_ms[invoice], error[invoice] = read_ms, 6
        return replace(snapshot, partitions=replace(table, high_watermark_ms=at_ms, error_code=error))

    *_, soon, late = views([first, *(refused(world.tick()) for _ in range(5))])
    assert said(soon)[0].startswith("all healthy")  # an election takes no longer
    age = f"{(late.snapshot.observation.ended_ms - int(read_ms.min())) / 1000:.1f} s"
    assert said(late) == [f"2 partitions not read for {age}: the leader answers NOT_LEADER_OR_FOLLOWER"]
    assert late.headline.severity is Severity.WARN
    assert late.topics.severity[late.topics.topic == "invoice"] == [Severity.WARN]
    row = late.snapshot.partitions.partition[late.worst_partitions[:2]].tolist()
    assert row == late.snapshot.partitions.partition[invoice].tolist()


def test_records_lost_with_their_leader_stay_in_the_headline_for_two_minutes() -> None:
    world = default_world()
    state, _ = step(State(), world.tick())
    world.crash(4)
    lost: list[tuple[int, list[str]]] = []
    for second in range(150):
        if second == 20:
            world.back(4)
        state, view = step(state, world.tick())
        lost.append((second, [text for text in said(view) if "lost with the old leader" in text]))
    shown = [second for second, found in lost if found]
    assert shown == list(range(shown[0], shown[0] + 120))
    assert dict(lost)[shown[0] + 30] == ["≥ 12 records lost with the old leaders of 3 partitions, 30 s ago"]


def test_a_new_controller_gives_a_silent_broker_a_whole_session() -> None:
    world = default_world()
    state, _ = step(State(), world.tick())
    world.crash(4)
    for _ in range(4):
        state, view = step(state, world.tick())
    assert "fenced in ≈ 5.8 s" in said(view)
    world.controller, world.controller_epoch = 102, 4
    state, view = step(state, world.tick())
    assert "fenced in ≈ 8.9 s" in said(view)


def stuck(world: World) -> None:
    world.group("billing").read_share = 1e-12


def too_slow(world: World) -> None:
    world.group("billing").read_share = 0.4


@pytest.mark.parametrize(
    ("trouble", "begins"), [(stuck, "billing stuck, "), (too_slow, "billing falling behind, ")]
)
def test_a_group_in_trouble_is_said_next_to_a_cluster_that_is_well(
    trouble: Callable[[World], None], begins: str
) -> None:
    world = default_world()
    world.groups = [world.group("billing"), world.group("fraud-check")]
    state = State()
    for second in range(75):
        if second == 5:
            trouble(world)
        state, view = step(state, world.tick())
    calm, said_of_group = said(view)
    assert calm == "cluster healthy"
    assert said_of_group.startswith(begins) and said_of_group.endswith(" behind")
    assert view.headline.severity is Severity.WARN


def test_metadata_that_is_not_believed_is_not_called_healthy() -> None:
    snapshot = default_world().tick()
    seen = snapshot.observation
    failure = Failure(Part.METADATA, 0, FailureKind.OUTDATED, shown_since_ms=seen.ended_ms - 7_000)
    view = one(replace(snapshot, observation=replace(seen, failures=(failure,))))
    assert said(view)[0].startswith("metadata 7.0 s old, so leaders and ISRs may be wrong: ")
    assert not any("healthy" in sentence for sentence in said(view))
    assert view.headline.severity is Severity.WARN


def test_sums_of_traffic_say_what_they_leave_out() -> None:
    world = default_world()
    *_, view = views(world.tick() for _ in range(4))
    flow = view.throughput
    assert not flow.in_is_bound and not flow.out_is_bound
    world.crash(4)
    *_, view = views(world.tick() for _ in range(6))
    assert view.throughput.in_is_bound, "what the silent broker leads is not in the sum"
