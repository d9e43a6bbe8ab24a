"""The fold as a whole: pure, bounded, with a look-back, blind to rows that come and go elsewhere."""

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import LOOK_BACK_MS, State, fold_on, step
from kview.derive.groups.commits import HISTORY_RULE
from kview.derive.groups.past_ends import POINT_RULE, SEEDS
from kview.derive.partitions.rates import Ends, advance
from kview.derive.view import View
from kview.language.events import sentence
from kview.model.events import EventKind, Severity
from kview.model.failures import FailureKind, Part
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Failure, Snapshot, TimePoints, empty
from kview.model.states import GroupState
from kview.model.units import NO_BROKER, UNKNOWN
from tests.derive.limits import at_most
from tests.worlds import crash_script, lean_world, views, views_at
from tests.worlds.compare import forgetful, frozen, unlike
from tests.worlds.parts import Log, topic
from tests.worlds.world import World


def long_script(world: World) -> list[Snapshot]:
    """Fifteen minutes, an observation every 5 s: billing stops after 200 s, broker 4 crashes and returns."""
    world.interval_ms = 5000
    made = []
    for number, snapshot in enumerate(crash_script(4, healthy_s=90, silent_s=8, after_s=82, world=world)):
        if number == 40:
            world.group("billing").members, world.group("billing").state = 0, GroupState.EMPTY
        made.append(snapshot)
    return made


@pytest.mark.parametrize("seeded", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_view_depends_on_the_look_back_alone(seeded: bool) -> None:
    world = lean_world()
    world.time_points = None if seeded else empty(TimePoints)
    snapshots = [frozen(snapshot) for snapshot in long_script(world)]
    back = LOOK_BACK_MS // 5000
    moments = (back, 135, 150, len(snapshots) - 1)
    for last, whole in zip(moments, views_at(snapshots, *moments), strict=True):
        _, part = fold_on(State(), snapshots[last - back : last + 1])
        assert not list(unlike(forgetful(whole), forgetful(part))), last


def test_many_at_once_are_the_same_as_one_after_another() -> None:
    state, one_by_one = State(), []
    snapshots = [frozen(each) for each in crash_script(4, healthy_s=5, silent_s=12, after_s=6)]
    for snapshot in snapshots:
        state, view = step(state, snapshot)
        one_by_one.append(view)
    for begin in (0, 8):
        before, _ = fold_on(State(), snapshots[:begin]) if begin else (State(), None)
        carried, last = fold_on(before, snapshots[begin:-2])
        assert not list(unlike(one_by_one[-3], last))
        for snapshot, expected in zip(snapshots[-2:], one_by_one[-2:], strict=True):
            carried, view = step(carried, snapshot)
            assert not list(unlike(expected, view)), "what is carried on is the same, too"


def test_less_than_the_look_back_is_not_enough() -> None:
    """The test above can fail: without the crash in the window its events are missing."""
    snapshots = long_script(lean_world())
    _, whole = fold_on(State(), snapshots[:120])
    _, part = fold_on(State(), snapshots[100:120])
    assert list(unlike(whole, part))


def test_a_step_changes_neither_state_nor_snapshot_and_can_be_repeated() -> None:
    state = State()
    for snapshot in crash_script(4, healthy_s=5, silent_s=12, after_s=3):
        frozen(snapshot)
        first_state, first = step(state, snapshot)
        frozen(first_state)
        _, second = step(state, snapshot)
        assert not list(unlike(first, second))
        state = first_state


def figures_of(view: View, name: str) -> tuple[object, ...]:
    rows = np.flatnonzero(view.snapshot.partitions.topic == name)
    figures = view.partitions
    return (
        figures.status[rows],
        figures.in_rate[rows],
        figures.uncommitted[rows],
        figures.frozen_since_ms[rows],
        figures.changed_ms[rows],
        view.topics.in_series[view.topics.topic.tolist().index(name)],
    )


def test_a_topic_that_comes_and_goes_changes_no_other_topics_figures() -> None:
    plain, busy = lean_world(), lean_world()
    extra: list[Log] = topic("checkout", 5, 2, 20.0)
    state, other = State(), State()
    for second in range(30):
        if second == 10:
            busy.logs = sorted([*busy.logs, *extra], key=lambda log: log.key)
            busy._by_key.update({log.key: log for log in extra})
        if second == 20:
            busy.logs = [log for log in busy.logs if log.topic != "checkout"]
        if second == 15:
            plain.crash(4)
            busy.crash(4)
        state, view = step(state, plain.tick())
        other, busy_view = step(other, busy.tick())
        for name in ("invoice", "payment", "audit-log", "__consumer_offsets"):
            assert not list(unlike(figures_of(view, name), figures_of(busy_view, name))), (second, name)
        assert not list(unlike(view.offsets.behind_ms, busy_view.offsets.behind_ms))
        created = [(e.kind, e.after) for e in busy_view.new_events if e.topic == "checkout"]
        expected = {10: [(EventKind.TOPIC_CREATED, 5)], 20: [(EventKind.TOPIC_DELETED, None)]}
        assert created == expected.get(second, [])


def test_a_topic_that_kview_may_no_longer_see_is_not_said_to_be_deleted() -> None:
    """Kafka leaves such topics out without an error. `Part.TOPICS` fails if it may do so."""
    world = lean_world()
    state = State()
    for _ in range(5):
        state, _ = step(state, world.tick())
    denied = (Failure(Part.TOPICS, NO_BROKER, FailureKind.KAFKA_ERROR, 29, UNKNOWN),)
    logs, made = world.logs, []
    for visible in (False, False, True, True):
        world.logs = [log for log in logs if visible or log.topic != "invoice"]
        snapshot = world.tick()
        failures = () if visible else denied
        state, view = step(
            state, replace(snapshot, observation=replace(snapshot.observation, failures=failures))
        )
        made += [sentence(event) for event in view.new_events if event.topic == "invoice"]
        assert view.headline.topics_are_bound is not visible
    assert made == [
        "topic invoice is no longer listed: it was deleted, or kview is no longer authorized to see it",
        "topic invoice is listed now, with 10 partitions: it was created, or kview is now"
        " authorized to see it",
    ]


def test_a_gap_between_observations_makes_no_spike_and_no_negative_lag() -> None:
    world = lean_world()
    state = State()
    for _ in range(30):
        state, view = step(state, world.tick())
    calm = view.partitions.in_rate.copy()
    world.skip(45)
    state, view = step(state, world.tick())
    assert np.allclose(view.partitions.in_rate, calm, rtol=0.02, atol=1.1)
    assert (view.offsets.lag[view.offsets.lag != UNKNOWN] >= 0).all()
    assert view.new_events == ()


def test_cells_that_were_not_read_again_keep_their_rate_for_a_while_then_have_none() -> None:
    world = lean_world()
    snapshots = [world.tick() for _ in range(5)]
    old = snapshots[-1]
    state = State()
    for snapshot in snapshots:
        state, view = step(state, snapshot)
    rates = view.partitions.in_rate
    for later_s, known in ((1, True), (10, True), (20, False)):
        ended = old.observation.ended_ms + later_s * 1000
        stale = replace(old, observation=replace(old.observation, ended_ms=ended))
        state, view = step(state, stale)
        if known:
            assert np.array_equal(view.partitions.in_rate, rates)
        assert np.isfinite(view.partitions.in_rate).all() == known


def test_a_topic_that_was_created_again_starts_from_nothing() -> None:
    world = lean_world()
    state = State()
    for _ in range(5):
        state, _ = step(state, world.tick())
    for log in world.logs:
        if log.topic == "audit-log":
            log.topic_id, log.start, log.watermark = "another-id", 0, 10.0
            log.ends = dict.fromkeys(log.ends, 10.0)
    state, view = step(state, world.tick())
    rows = np.flatnonzero(view.snapshot.partitions.topic == "audit-log")
    assert np.isnan(view.partitions.in_rate[rows]).all()
    assert [e.kind for e in view.new_events if e.topic == "audit-log"] == [
        EventKind.TOPIC_DELETED,
        EventKind.TOPIC_CREATED,
    ]
    assert not [e for e in view.new_events if e.kind is EventKind.LOG_CUT]
    state, view = step(state, world.tick())
    assert view.partitions.in_rate[rows] == pytest.approx([250] * 4, rel=0.02)


def test_a_clock_that_jumps_back_starts_from_nothing() -> None:
    world = lean_world()
    snapshots = [world.tick() for _ in range(4)]
    state = State()
    for snapshot in snapshots:
        state, _ = step(state, snapshot)
    state, view = step(state, snapshots[0])
    assert np.isnan(view.partitions.in_rate).all()
    assert view.throughput.at_ms == (snapshots[0].observation.ended_ms,)


def test_before_anything_is_known_nothing_is_called_well() -> None:
    empty = Snapshot(lean_world().tick().observation)
    _, view = step(State(), empty)
    assert view.headline.findings == (Finding(FindingKind.NOTHING_KNOWN, Severity.CALM),)
    assert len(view.worst_partitions) == 0


def test_without_the_debugging_replica_there_is_no_uncommitted_and_no_replica_lag() -> None:
    world = lean_world()
    world.capabilities -= {"debugging_replica"}
    *_, view = views(world.tick() for _ in range(5))
    assert (view.partitions.uncommitted == UNKNOWN).all()
    assert (view.partitions.replica_lag == UNKNOWN).all()
    assert view.partitions.in_rate[view.snapshot.partitions.topic == "invoice"] == pytest.approx(
        [440] * 10, rel=0.02
    )
    billing = view.snapshot.groups.group.tolist().index("billing")
    assert 0 <= view.groups.behind_ms[billing] < 1000


def test_kviews_own_requests_are_counted_by_the_second() -> None:
    world = lean_world()
    world.interval_ms = 2000
    *_, view = views(world.tick() for _ in range(2))
    assert view.headline.requests_per_second == pytest.approx(20.5)


def test_points_and_commits_kept_are_as_few_as_documented() -> None:
    assert (at_most(POINT_RULE), at_most(POINT_RULE) + SEEDS) == (22, 30)
    assert at_most(HISTORY_RULE) == 13


def test_rates_of_nothing() -> None:
    ends, fell = advance(Ends.none(0), np.empty(0, np.int64), np.empty(0, np.int64), 0)
    assert len(ends.value) == len(fell) == 0


def test_another_observer_s_snapshots_are_another_cluster_s() -> None:
    """A simulated cluster that is started again has the same names and ids, and nothing was cut off its
    logs."""
    first, second = lean_world(), lean_world()
    state = State()
    for _ in range(30):
        state, _ = step(state, first.tick())
    second.skip(35)
    again = second.tick()
    _, view = step(state, again)
    _, fresh = step(State(), again)
    assert [*unlike(view, fresh)] == []
    assert [
        *unlike(step(state, replace(again, observation=replace(again.observation, sequence=99)))[1], fresh)
    ]
