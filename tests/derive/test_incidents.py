"""Incidents: what begins one, how it goes on, and when it ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.derive.brokers.controllers import ControllerState, controllers
from kview.derive.fold import State, fold_to, step
from kview.derive.incidents.following import MAX_INCIDENTS
from kview.derive.incidents.hit import MAX_NAMED
from kview.derive.view import View
from kview.language import incidents as words
from kview.language.findings import sentences
from kview.model.events import EventKind, Severity
from kview.model.failures import FailureKind
from kview.model.incidents import Incident, IncidentKind, PhaseKind
from kview.model.snapshot import Observation, Quorum, Snapshot
from kview.model.states import QuorumRole
from kview.model.units import NO_BROKER, UNKNOWN
from tests.worlds import World, crash_script, default_world, views
from tests.worlds.histories import Plan, plans
from tests.worlds.small import watch
from tests.worlds.tables import table

HEALTHY_S = 30

EXAMPLES = 10
"""Of random histories; an example takes a fifth of a second."""


@pytest.fixture(scope="module")
def crash() -> list[View]:
    """Broker 4 is silent from second 30 on, fenced from 39, back from 50, and in every ISR from 51."""
    return list(views(crash_script(4, healthy_s=HEALTHY_S, silent_s=20, after_s=5)))


def only(view: View) -> Incident:
    (incident,) = view.incidents
    return incident


def stages(incident: Incident) -> dict[PhaseKind, int]:
    """The phases with their times since the beginning."""
    return {phase.kind: phase.at_ms - incident.began_ms for phase in incident.phases}


def test_a_crash_is_one_incident_with_its_stopwatch(crash: list[View]) -> None:
    assert not any(view.incidents for view in crash[:HEALTHY_S])
    incident = only(crash[-1])
    assert (incident.kind, incident.brokers) == (IncidentKind.BROKERS, (4,))
    assert incident.began_ms == crash[HEALTHY_S].snapshot.observation.began_ms
    P = PhaseKind
    assert stages(incident) == {
        P.SILENT: 0,
        P.FROZEN: 0,
        P.NO_LEADER: 9_100,
        P.FENCED: 9_100,
        P.ELECTED: 9_100,
        P.MOVES: 9_100,
        P.BACK: 20_100,
        P.ISR_FULL: 21_100,
    }
    assert incident.severity is Severity.GOOD
    assert (incident.partitions, incident.internal_partitions) == (10, 25)
    assert incident.groups == ("billing", "fraud-check", "reporting")


def test_it_counts_who_is_led_again_and_names_who_moved_where(crash: list[View]) -> None:
    fenced = only(crash[HEALTHY_S + 9])
    led = fenced.phase(PhaseKind.ELECTED)
    assert led and (led.count, led.total, led.internal_count, led.internal_total) == (3, 4, 8, 8)
    assert fenced.leaderless == 1 and fenced.severity is Severity.RISK
    hit = {(one.topic, one.partition): one for one in fenced.hit}
    moved = hit["invoice", 3]
    assert (moved.leader_before, moved.epoch_before, moved.leader_after, moved.epoch_after) == (4, 5, 2, 6)
    assert (moved.isr_before, moved.isr_after) == ((4, 2, 5), (2, 5))
    assert hit["audit-log", 3].leaderless and not hit["audit-log", 3].moved
    led = only(crash[-1]).phase(PhaseKind.ELECTED)
    assert led and led.is_complete and led.last_ms > led.at_ms


@pytest.mark.parametrize("leads", [True, False])
def test_a_lost_broker_is_not_in_the_isr_after_it_although_another_copy_came_back(leads: bool) -> None:
    """A copy is behind when the broker is lost, and has caught up by the first observation without it."""
    world = default_world()
    log = world.log("invoice", 3 if leads else 0)
    lost = log.leader if leads else min(log.replicas[1:])
    back = max(log.replicas[1:])
    assert back > lost, "this world lets brokers rejoin in their order"
    log.isr.remove(back)
    log.stalled = frozenset({back})
    before = tuple(log.isr)
    snapshots = [world.tick() for _ in range(5)]
    world.crash(lost)
    snapshots += [world.tick() for _ in range(9)]
    assert lost in log.isr, "its session has not ended"
    log.stalled = frozenset()
    snapshots += [world.tick() for _ in range(3)]
    found = {(one.topic, one.partition): one for one in only([*views(snapshots)][-1]).hit}
    hit = found[log.topic, log.partition]
    assert (hit.isr_before, set(hit.isr_after)) == (before, {*before, back} - {lost})


@pytest.mark.parametrize("silent_s", [0, 3])
def test_a_partition_that_a_lost_broker_is_elected_to_lead_counts_as_led_by_it(silent_s: int) -> None:
    """Its preferred election comes after the crash, before the controller has noticed that."""
    world = default_world()
    log = world.log("invoice", 3)
    preferred, other = log.leader, log.isr[1]
    world._lead(log, other)
    snapshots = [world.tick() for _ in range(25)]
    world.crash(preferred)
    snapshots += [world.tick() for _ in range(silent_s)]
    world._lead(log, preferred)
    made = [*views([*snapshots, *(world.tick() for _ in range(12))])]
    incident = only(made[-1])
    hit = {(one.topic, one.partition): one for one in incident.hit}["invoice", 3]
    assert (hit.leader_before, hit.leader_after, hit.moved) == (preferred, log.leader, True)
    assert log.leader != preferred and hit.epoch_after == hit.epoch_before + 1 == log.epoch
    elected = incident.phase(PhaseKind.ELECTED)
    assert elected and elected.count == incident.moved == elected.total - incident.leaderless == 3


def test_records_gone_are_known_from_the_election_on(crash: list[View]) -> None:
    assert {only(view).gone for view in crash[HEALTHY_S : HEALTHY_S + 9]} == {UNKNOWN}
    assert {only(view).gone for view in crash[HEALTHY_S + 9 :]} == {12}
    assert only(crash[-1]).gone_partitions == 3


def test_a_bound_of_zero_does_not_show_that_nothing_is_gone() -> None:
    """The old leader may have written more after its last reading. Only if no leader is lost, nothing is."""
    for leads, gone, said in ((4, UNKNOWN, "records gone: not known"), (-1, 0, "no records gone")):
        world = default_world()
        for log in world.logs:
            log.rate = 0.0
        world.logs = [log for log in world.logs if log.leader != leads or len(log.replicas) > 1]
        if leads < 0:
            world.logs = [log for log in world.logs if log.leader != 4]
        snapshots = [world.tick() for _ in range(5)]
        world.crash(4)
        incident = only([*views([*snapshots, *(world.tick() for _ in range(15))])][-1])
        assert incident.phase(PhaseKind.FENCED) and bool(incident.moved) == bool(gone), incident.moved
        assert (incident.gone, incident.gone_partitions) == (gone, 0)
        assert {one.gone for one in incident.hit if one.leader_before == 4} <= {UNKNOWN}
        assert said in words.consequences(incident)


def test_producers_waited_at_most_from_the_last_observation_before_it(crash: list[View]) -> None:
    waits = [only(view).waited_ms for view in crash[HEALTHY_S:]]
    assert waits[:9] == [1_100 + 1_000 * n for n in range(9)]
    assert waits[9:20] == [10_100 + 1_000 * n for n in range(11)], "audit-log-3 has no leader"
    assert set(waits[20:]) == {21_100}
    assert only(crash[HEALTHY_S + 19]).is_waiting and not only(crash[HEALTHY_S + 20]).is_waiting


def test_the_isr_is_not_full_because_metadata_has_not_heard_yet(crash: list[View]) -> None:
    for view in crash[HEALTHY_S : HEALTHY_S + 9]:
        assert (view.partitions.isr_count == view.snapshot.partitions.replicas.shape[1]).any()
        assert only(view).is_open


def test_it_goes_on_until_the_last_partition_hit_is_whole() -> None:
    world = default_world()

    def each(second: int) -> None:
        if second == 5:
            world.crash(4)
        if second == 25:
            world.log("invoice", 3).stalled = frozenset({4})
            world.back(4)
        if second == 40:
            world.log("invoice", 3).stalled = frozenset()

    made = watch(world, 45, each)
    assert only(made[39]).is_open and only(made[39]).severity is Severity.WARN
    assert only(made[42]).phase(PhaseKind.ISR_FULL)


def test_a_partition_without_a_leader_counts_in_the_incident_that_took_its_leader() -> None:
    """First broker 4 is lost, then 2 and 5, which took over what broker 4 had led."""
    world = default_world()

    def each(second: int) -> None:
        for broker in {5: (4,), 25: (2, 5)}.get(second, ()):
            world.crash(broker)

    made = watch(world, 45, each)
    first, second = made[-1].incidents
    assert (first.leaderless, first.internal_leaderless) == (1, 0), "audit-log-3, which only broker 4 has"
    assert words.without_leader(first) == "no leader: audit-log-3"
    assert first.moved == 3 and first.phase(PhaseKind.ELECTED).count == 3  # type: ignore[union-attr]
    none = made[-1].snapshot.partitions.leader == NO_BROKER
    assert second.leaderless == int(none.sum()) - 1 > 1
    internal = int((none & made[-1].snapshot.partitions.internal).sum())
    assert second.internal_leaderless == internal > 0
    mine = second.leaderless - internal
    assert words.waits_for(second) == f"{mine} partitions without a leader"


def test_a_rack_that_is_lost_bit_by_bit_is_one_incident() -> None:
    world = default_world()
    made = watch(world, 20, lambda n: world.crash({5: 3, 7: 4, 9: 5}[n]) if n in (5, 7, 9) else None)
    assert only(made[-1]).brokers == (3, 4, 5)
    silent = only(made[-1]).phases[0]
    assert (silent.kind, silent.count) == (PhaseKind.SILENT, 3)


def test_a_later_loss_is_an_incident_of_its_own_and_so_is_a_second_one_of_the_same_broker() -> None:
    world = default_world()
    made = watch(world, 40, lambda n: world.crash({5: 4, 25: 1}[n]) if n in (5, 25) else None)
    assert [one.brokers for one in made[-1].incidents] == [(4,), (1,)]
    world = default_world()

    def again(second: int) -> None:
        if second in (5, 21):
            world.crash(4)
        if second == 20:
            world.log("invoice", 3).stalled = frozenset({4})
            world.back(4)

    made = watch(world, 40, again)
    first, second = made[-1].incidents
    assert first.phases[-1].kind is PhaseKind.REPEATED and second.is_open
    assert ("invoice", 3) in [(one.topic, one.partition) for one in second.hit], "it was not whole yet"


def test_a_broker_that_only_kview_cannot_reach_is_no_incident() -> None:
    world = default_world()
    made = watch(world, 40, lambda n: world.cut(4) if n == 5 else None)
    assert not any(view.incidents for view in made)


@pytest.mark.parametrize(("why", "until_told_s"), [(FailureKind.REFUSED, 0), (FailureKind.SILENT, 3)])
def test_if_no_broker_answers_only_that_is_said(why: FailureKind, until_told_s: int) -> None:
    world = default_world()

    def each(second: int) -> None:
        for broker in range(6):
            if second == 5:
                world.cut(broker, why)
            if second == 15:
                world.back(broker)

    made = watch(world, 30, each)
    first = next(number for number, view in enumerate(made) if view.incidents)
    assert first == 5 + until_told_s
    lost = only(made[14])
    assert lost.began_ms == made[5].snapshot.observation.began_ms and lost.severity is Severity.RISK
    assert lost.seen_ms == made[first].snapshot.observation.ended_ms
    assert words.title(lost) == "no broker answers"
    assert words.waits_for(lost) == "waiting for any broker to answer"
    over = only(made[-1])
    assert words.title(over) == "no broker answered" and over.phases[-1].kind is PhaseKind.ISR_FULL
    assert (over.brokers, over.moved, over.gone_partitions) == ((0, 1, 2, 3, 4, 5), 0, 0)
    assert not {PhaseKind.FENCED, PhaseKind.ELECTED} & set(stages(over)), "nobody knows of any"


def test_brokers_that_die_one_after_another_all_belong_to_the_incident() -> None:
    """The last ones stop answering when nobody is left who could tell what became of them."""
    world = default_world()
    every_s = 15

    def each(second: int) -> None:
        if second % every_s == 5 and second // every_s < 6:
            world.crash(second // every_s)
        if second == 110:
            for broker in range(6):
                world.back(broker)

    made = watch(world, 125, each)
    last_s = 5 * every_s + 5
    assert len(made[last_s - 1].incidents) == 5
    going = [one for one in made[100].incidents if one.is_open]
    assert [one.brokers for one in going] == [(0, 1, 2, 3, 4, 5)]
    (none,) = [phase for phase in going[0].phases if phase.kind is PhaseKind.NO_ANSWER]
    assert none.at_ms == made[last_s].snapshot.observation.began_ms
    assert words.sentence(going[0], none.at_ms).endswith(
        "no broker answers ▸ waiting for any broker to answer (+1 m 15 s)"
    )
    joined = [one for one in made[100].incidents if not one.is_open]
    assert [one.phases[-1].kind for one in joined] == [PhaseKind.JOINED] * 4
    assert not any(one.is_open for one in made[-1].incidents)
    texts = sentences(made[85].headline.findings, made[85].snapshot.observation.ended_ms)
    assert len(texts) == 1
    assert texts[0].startswith(
        "no broker has answered for 5.1 s (all ports refuse connections): all figures are at least that old"
    )
    assert {one.state for one in controllers(made[last_s - 1])} >= {ControllerState.ACTIVE}
    assert {one.state for one in controllers(made[100])} == {ControllerState.UNKNOWN}
    assert (made[100].brokers.fencing_due_ms == UNKNOWN).all(), "nobody knows who acts as the controller"


def test_a_partition_that_waited_for_its_only_replica_has_not_moved(crash: list[View]) -> None:
    incident = only(crash[-1])
    back = next(one for one in incident.hit if one.topic == "audit-log")
    assert (back.moved, back.leader_before, back.leader_after) == (True, 4, 4)
    mine = [one for one in incident.hit if not one.internal and one.moved]
    assert incident.moved == len(mine) - 1 == 3
    said = words.consequences(incident)
    assert "audit-log-3 back on broker 4" in said
    assert not any("broker 4" in text for text in words.moves(incident))


def test_a_wait_counts_in_one_of_two_incidents() -> None:
    """Some partitions that the first loss hit freeze again because of the second one, while both go on."""
    world = default_world()
    made = watch(world, 60, lambda n: world.crash({5: 4, 16: 5}[n]) if n in (5, 16) else None)
    first, second = made[-1].incidents
    assert (first.brokers, second.brokers) == ((4,), (5,))
    shared = {(one.topic, one.partition) for one in first.hit} & {(o.topic, o.partition) for o in second.hit}
    assert ("payment", 3) in shared, "under min ISR since broker 5 was lost, too"
    assert (first.waited_ms, first.is_waiting) == (55_100, True), "audit-log-3 has no leader"
    assert words.waits_for(first) == "1 partition without a leader"
    assert second.is_waiting and second.waited_ms == made[-1].snapshot.observation.ended_ms - (
        made[15].snapshot.observation.began_ms
    )


def test_a_frozen_watermark_without_a_silent_broker_is_an_incident() -> None:
    world = default_world()
    log = world.log("invoice", 2)

    def each(second: int) -> None:
        if second == 5:
            log.stalled = frozenset({log.replicas[1]})
        if second == 20:
            log.stalled = frozenset()

    made = watch(world, 30, each)
    incident = only(made[15])
    assert (incident.kind, incident.brokers, incident.is_waiting) == (IncidentKind.PARTITIONS, (), True)
    assert [(one.topic, one.partition) for one in incident.hit] == [("invoice", 2)]
    assert only(made[-1]).phases[-1].kind is PhaseKind.ISR_FULL


def test_a_lost_leader_without_a_silent_broker_is_an_incident() -> None:
    world = default_world()
    log = world.log("audit-log", 0)

    def each(second: int) -> None:
        if second == 5:
            log.leader, log.epoch = NO_BROKER, log.epoch + 1
        if second == 15:
            log.leader, log.epoch = log.replicas[0], log.epoch + 1

    made = watch(world, 20, each)
    incident = only(made[10])
    assert incident.kind is IncidentKind.PARTITIONS and incident.leaderless == 1
    assert list(stages(only(made[-1]))) == [PhaseKind.NO_LEADER, PhaseKind.ELECTED, PhaseKind.ISR_FULL]


def test_elections_of_preferred_leaders_and_other_controllers_are_no_incidents() -> None:
    world = default_world()

    def each(second: int) -> None:
        log = world.log("invoice", 1)
        if second == 5:
            log.leader, log.epoch = log.replicas[1], log.epoch + 1
        if second == 8:
            world.controller, world.controller_epoch = 102, 4

    made = watch(world, 15, each)
    assert made[8].new_events and not any(view.incidents for view in made)


def without_majority(snapshot: Snapshot, fetched_ms: int) -> Snapshot:
    """The snapshot as the leader of a quorum tells it, whose other voters fetched at that time."""
    now = snapshot.observation.ended_ms
    nodes = [
        {
            "node": id,
            "role": QuorumRole.LEADER if id == 101 else QuorumRole.VOTER,
            "log_end": 1,
            "last_fetch_ms": now if id == 101 else fetched_ms,
            "last_caught_up_ms": now,
        }
        for id in (101, 102, 103)
    ]
    return replace(snapshot, quorum=table(Quorum, nodes))


def test_a_quorum_without_majority_is_an_incident_and_an_event() -> None:
    world, state = default_world(), State()
    made: list[View] = []
    for second in range(20):
        snapshot = world.tick()
        if 5 <= second < 12:
            snapshot = without_majority(snapshot, made[4].snapshot.observation.ended_ms)
        state, view = step(state, snapshot)
        made.append(view)
    incident = only(made[-1])
    assert (incident.kind, incident.controllers) == (IncidentKind.QUORUM, (101,))
    assert incident.phases[-1].kind is PhaseKind.QUORUM_BACK
    kinds = [event.kind for view in made for event in view.new_events]
    assert kinds == [EventKind.QUORUM_LOST, EventKind.QUORUM_BACK]


def test_while_no_controller_can_act_nobody_is_told_to_wait_for_fencing() -> None:
    """A crashed broker's session ends, but only an active controller can fence the broker."""
    world, state = default_world(), State()
    made: list[View] = []
    for second in range(20):
        if second == 5:
            world.crash(4)
        snapshot = world.tick()
        if 3 <= second < 9:
            snapshot = without_majority(snapshot, made[2].snapshot.observation.ended_ms)
        state, view = step(state, snapshot)
        made.append(view)
    (of_broker,) = [one for one in made[8].incidents if one.brokers == (4,)]
    assert of_broker.unfenced == 1
    assert words.waits_for(of_broker) == "waiting for a majority of controllers"
    (of_broker,) = [one for one in made[10].incidents if one.brokers == (4,)]
    assert "controllers" not in words.waits_for(of_broker)


def test_memory_is_bounded() -> None:
    world, state = default_world(), State()
    world.interval_ms = 3_000
    for number in range(8 * (MAX_INCIDENTS + 3)):
        if number % 8 == 1:
            world.crash(4)
        if number % 8 == 5:
            world.back(4)
        state, view = step(state, world.tick())
    assert len(view.incidents) == MAX_INCIDENTS
    assert all(len(one.hit) <= MAX_NAMED for one in view.incidents)


def test_a_jump_folds_the_same_incidents_as_playing() -> None:
    snapshots = list(crash_script(4, healthy_s=20, silent_s=20, after_s=5))
    played = list(views(snapshots))
    for last in (22, 29, 35, 44):
        folded = fold_to(snapshots[last], snapshots[: last + 1], lambda: False)
        assert folded is not None and folded[1].incidents == played[last].incidents


@settings(max_examples=EXAMPLES)
@given(plans(40))
def test_whatever_happens_phases_are_in_order_and_ends_are_final(plan: Plan) -> None:
    ended: dict[object, Incident] = {}
    for view in views(plan.snapshots(2, 40)):
        if not view.incidents:
            ended.clear()  # the clock was set back, and the fold began again
        for incident in view.incidents:
            times = [phase.at_ms for phase in incident.phases]
            assert times == sorted(times) and incident.gone >= (0 if incident.gone != UNKNOWN else UNKNOWN)
            if not incident.is_open:
                assert ended.setdefault(incident.key, incident) == incident


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_nonsense_is_no_exception(data: st.DataObject) -> None:
    """Brokers, leaders and ISRs that contradict each other, offsets that jump."""
    world, state = default_world(), State()
    world.logs = [log for log in world.logs if log.topic == "invoice" and log.partition < 4]
    world.groups = []
    for second in range(8):
        snapshot = world.tick()
        rows = len(snapshot.partitions)
        chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
        if chance.random() < 0.2:
            keep = np.flatnonzero(chance.random(rows) < 0.7)
            snapshot = Snapshot(
                Observation(second, *_times(snapshot)), snapshot.brokers, snapshot.partitions.take(keep)
            )
            rows = len(keep)
        part = snapshot.partitions
        nonsense = replace(
            part,
            leader=chance.integers(-2, 8, rows).astype(np.int32),
            leader_epoch=chance.integers(-2, 9, rows).astype(np.int32),
            isr=chance.integers(-1, 8, (rows, int(chance.integers(0, 5)))).astype(np.int32),
            log_end=chance.choice([UNKNOWN, 0, 5, 2**62], rows),
            high_watermark=chance.choice([UNKNOWN, 0, 5, 2**62], rows),
        )
        states = chance.choice(
            np.array(["up", "silent", "fenced", "gone", "starting"], object), len(snapshot.brokers)
        )
        brokers = replace(snapshot.brokers, state=states, answers=chance.random(len(states)) < 0.6)
        state, view = step(state, replace(snapshot, partitions=nonsense, brokers=brokers))
        for incident in view.incidents:
            assert incident.phases or incident.is_open


def _times(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.observation.began_ms, snapshot.observation.ended_ms


def test_a_world_that_is_well_has_none() -> None:
    world: World = default_world()
    assert not any(view.incidents for view in watch(world, 30))
