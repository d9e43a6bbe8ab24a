"""A jump to a moment: folding its look-back gives the same as one step after another, and as playing from the
beginning."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.derive.fold import LOOK_BACK_MS, State, fold_on, fold_to, step
from kview.derive.groups.commits import HISTORY_RULE
from kview.derive.groups.past_ends import POINT_RULE, SEEDS
from kview.derive.view import SERIES_POINTS, View
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from tests.derive.limits import at_most
from tests.worlds import lean_world, views, views_at
from tests.worlds.compare import forgetful, unlike
from tests.worlds.histories import Plan, plans

INTERVAL_S = 5
BACK = LOOK_BACK_MS // 1000 // INTERVAL_S


def never() -> bool:
    return False


def look_back(snapshots: list[Snapshot], last: int) -> list[Snapshot]:
    """From the last observation at or before the look-back, or from where the clock jumped back."""
    times = [snapshot.observation.ended_ms for snapshot in snapshots]
    first = last
    while first and times[first - 1] <= times[first] and times[first] > times[last] - LOOK_BACK_MS:
        first -= 1
    return snapshots[first : last + 1]


def folded(snapshots: list[Snapshot]) -> tuple[State, View]:
    got = fold_to(snapshots[-1], snapshots, never)
    assert got is not None
    return got


def all_fresh(snapshots: list[Snapshot]) -> bool:
    """Whether every group's cells were read again at each of the observations that series are made of."""
    pairs = pairwise(snapshots[-SERIES_POINTS - 1 :])
    return all(
        (b.offsets.received_ms > a.observation.ended_ms).all()
        and (b.offsets.received_ms <= b.observation.ended_ms).all()
        for a, b in pairs
    )


CRASH_BEFORE_IT = Plan(
    ((56, "nothing"), (4, "crash 1"), (118, "rewind"), (22, "crash 4"), (109, "create again"))
)
"""A watermark freezes just before the look-back begins, where the fold first recognises it later."""


@pytest.mark.slow  # an example takes seconds: none is made smaller
@settings(max_examples=3, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@example(CRASH_BEFORE_IT, 24)
@given(plans(BACK + 50), st.integers(1, 45))
def test_it_equals_playing(plan: Plan, after: int) -> None:
    snapshots = plan.snapshots(INTERVAL_S, BACK + 50)
    last = BACK + after
    part = look_back(snapshots, last)
    state, view = folded(part)

    stepped_state, stepped = fold_on(State(), part)
    assert not list(unlike(view, stepped))
    _, played = fold_on(State(), snapshots[: last + 1])
    # The figures of cells that were not read again depend on what was seen before they were.
    if all_fresh(part):
        assert not list(unlike(forgetful(view), forgetful(played)))
    assert view.events == played.events
    assert not list(unlike(view.partitions, played.partitions))

    for snapshot in snapshots[last + 1 : last + 4]:
        state, view = step(state, snapshot)
        stepped_state, stepped = step(stepped_state, snapshot)
    assert not list(unlike(view, stepped)), "what is carried on is the same too"


def test_what_a_move_beyond_the_look_back_left_is_forgotten() -> None:
    """A group far behind rests for eleven minutes and then reads on: its trend is that of the last minute."""
    world = lean_world()
    world.interval_ms = INTERVAL_S * 1000
    world.groups = [world.group("billing")]
    world.logs = [log for log in world.logs if log.topic == "invoice"]
    (group,) = world.groups
    group.committed = {key: offset - 440 * 60 * 30 for key, offset in group.committed.items()}
    group.commit_every_ms = INTERVAL_S * 1000
    rests = range(3, 3 + 60 * 11 // INTERVAL_S)
    snapshots = []
    for number in range(rests.stop + 8):
        group.read_share = 1e-12 if number in rests else 0.4
        snapshots.append(world.tick())
    moments = range(rests.stop + 1, len(snapshots), 2)
    for last, played in zip(moments, views_at(snapshots, *moments), strict=True):
        assert not list(unlike(forgetful(folded(look_back(snapshots, last))[1]), forgetful(played))), last


@pytest.mark.slow  # test_it_equals_playing and the tests of silent coordinators guard it
def test_figures_of_a_silent_coordinators_groups_stay_as_they_were_read() -> None:
    """Their last reading lies before the moments that are sampled, and is not the last observation's."""
    world = lean_world()
    snapshots = []
    for second in range(150):
        if second == 40:
            world.crash(4)
        if second == 120:
            world.back(4)
        snapshots.append(world.tick())
    moments = (60, 110, 119, 121, 149)
    for last, played in zip(moments, views_at(snapshots, *moments), strict=True):
        assert not list(unlike(folded(snapshots[: last + 1])[1], played)), last
    quiet = folded(snapshots[:111])[1]
    rows = np.flatnonzero(quiet.snapshot.offsets.group == "fraud-check")
    assert (quiet.offsets.behind_ms[rows] != UNKNOWN).all()


def test_observations_closer_than_a_second() -> None:
    """Lag in time is compared over a minute, which then is more moments than a sparkline has."""
    world = lean_world()
    world.interval_ms = 250
    world.group("billing").read_share = 0.92
    snapshots = [world.tick() for _ in range(220)]
    *_, stepped = views(snapshots)
    view = folded(snapshots)[1]
    assert not list(unlike(view, stepped))
    assert view.groups.behind_trend[view.snapshot.groups.group.tolist().index("billing")] == 1


def test_one_observation_and_none() -> None:
    snapshot = lean_world().tick()
    *_, alone = views([snapshot])
    for part in ([snapshot], []):
        got = fold_to(snapshot, part, never)
        assert got is not None and not list(unlike(got[1], alone))


def test_it_can_be_cancelled_at_any_observation() -> None:
    world = lean_world()
    snapshots = [world.tick() for _ in range(10)]
    asked = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) == 4

    assert fold_to(snapshots[-1], snapshots, cancelled) is None and len(asked) == 4


def test_what_is_carried_is_bounded_whatever_the_length() -> None:
    world = lean_world()
    world.logs = [log for log in world.logs if log.topic == "invoice" and log.partition < 2]
    world.groups = [world.group("billing")]
    world.groups[0].committed = {log.key: int(log.watermark) for log in world.logs}
    state, view = folded([world.tick() for _ in range(800)])
    assert len(state.logs.points.readings) <= at_most(POINT_RULE)
    assert state.logs.points.seed_ms.shape[1] == SEEDS
    assert len(state.groups.commits.history) <= at_most(HISTORY_RULE)
    assert len(state.moments) == len(view.throughput.at_ms) == SERIES_POINTS
    assert all(len(series) == SERIES_POINTS for series in state.topic_series.values())
    assert all(len(series) == SERIES_POINTS for series in (*view.topics.in_series, *view.brokers.in_series))
    assert all(len(series) == SERIES_POINTS for series in view.groups.lag_series)


@pytest.mark.slow  # ten minutes; test_what_a_move_beyond_the_look_back_left_is_forgotten is as long
def test_a_lag_in_time_beyond_the_look_back_is_that_of_who_watched_if_it_was_recorded() -> None:
    world = lean_world()
    world.interval_ms = INTERVAL_S * 1000
    for group in world.groups:
        group.commit_every_ms = INTERVAL_S * 1000
    snapshots = [world.tick() for _ in range(12)]
    world.group("billing").read_share = 1e-12
    snapshots += [world.tick() for _ in range(3 * BACK)]
    played = list(views(snapshots))
    recorded = [replace(view.snapshot, oldest_unread=view.oldest_unread) for view in played]
    group = snapshots[-1].groups.group.tolist().index("billing")
    watched = played[-1].groups
    _, view = folded(look_back(recorded, len(recorded) - 1))
    assert int(watched.behind_ms[group]) > 2 * LOOK_BACK_MS and not watched.behind_is_bound[group]
    assert view.groups.behind_ms[group] == watched.behind_ms[group] and not view.groups.behind_is_bound[group]
    _, forgot = folded(look_back(snapshots, len(snapshots) - 1))
    assert forgot.groups.behind_is_bound[group]
