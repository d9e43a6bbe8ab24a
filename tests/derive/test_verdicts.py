"""Verdicts of different groups on a healthy cluster."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.align import partition_rows
from kview.derive.fold import State, step
from kview.derive.groups.figures import BehindSeries, trend
from kview.derive.view import Reason, Verdict, View
from kview.model.events import EventKind, Severity
from kview.model.states import GroupState
from kview.model.units import NEVER, NO_OFFSET, UNKNOWN
from tests.worlds import World, lean_world


def watch(world: World, seconds: int, each: Callable[[int], None] = lambda second: None) -> list[View]:
    state, made = State(), []
    for second in range(seconds):
        each(second)
        state, view = step(state, world.tick())
        made.append(view)
    return made


def verdict(view: View, name: str) -> str:
    return str(view.groups.verdict[at(view, name)])


def at(view: View, name: str) -> int:
    names: list[str] = view.snapshot.groups.group.tolist()
    return names.index(name)


def rows(view: View, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero(view.snapshot.offsets.group == name)


def test_a_lag_by_chance_stays_one_when_nobody_writes_any_more() -> None:
    """Commits come half a second later than they did, as kview reads them. Then all writers stop."""
    world = lean_world()
    world.groups = [world.group("billing")]
    state, seen = State(), []
    for second in range(70):
        if second == 60:
            for log in world.logs:
                log.rate = 0.0
        snapshot = world.tick()
        late = replace(snapshot.offsets, committed=snapshot.offsets.committed - (220 if second > 30 else 0))
        state, view = step(state, replace(snapshot, offsets=late))
        seen.append(view)
    assert {verdict(view, "billing") for view in seen[40:]} == {Verdict.OK}
    assert seen[-1].groups.lag[at(seen[-1], "billing")] > 0


def test_groups_that_keep_up_are_ok_at_every_moment() -> None:
    for view in watch(lean_world(), 90):
        assert {verdict(view, name) for name in ("billing", "reporting", "fraud-check")} == {Verdict.OK}
    assert view.groups.reason[at(view, "billing")] is Reason.NONE
    assert view.groups.behind_trend.tolist()[1:] == [0, 0, 0]
    assert (view.offsets.catch_up_ms[rows(view, "reporting")] == UNKNOWN).all()


def test_reading_rates_are_right_whatever_the_commit_interval() -> None:
    views = watch(lean_world(), 60)
    for view in views[25:]:
        assert view.groups.read_rate[at(view, "billing")] == pytest.approx(4400, rel=0.02)
        assert view.groups.read_rate[at(view, "reporting")] == pytest.approx(6800, rel=0.02)
        assert view.groups.write_rate[at(view, "reporting")] == pytest.approx(6800, rel=0.02)


def test_a_member_without_partitions_is_not_active() -> None:
    (view,) = watch(lean_world(), 1)
    row = at(view, "fraud-check")
    assert (view.snapshot.groups.members[row], view.groups.members_active[row]) == (5, 4)


def test_a_group_that_reads_too_slowly_falls_behind() -> None:
    world = lean_world()
    slow = world.group("reporting")
    slow.read_share = 0.8
    views = watch(world, 75)
    assert verdict(views[20], "reporting") == Verdict.OK  # not enough is known yet
    view = views[-1]
    assert verdict(view, "reporting") == Verdict.FALLING_BEHIND
    assert view.groups.severity[at(view, "reporting")] is Severity.WARN
    assert view.groups.reason[at(view, "reporting")] is Reason.PARTITIONS
    assert view.groups.reason_count[at(view, "reporting")] == 16
    assert set(view.offsets.reason[rows(view, "reporting")]) == {Reason.LAG_NOT_FALLING}
    assert view.groups.behind_trend[at(view, "reporting")] == 1
    assert (view.offsets.catch_up_ms[rows(view, "reporting")] == NEVER).all()
    assert view.groups.behind_ms[at(view, "reporting")] == pytest.approx(0.2 * 75_000, rel=0.4)


def test_a_group_that_catches_up_is_ok_and_says_when() -> None:
    world = lean_world()
    group = world.group("billing")
    group.committed = {key: offset - 440 * 60 for key, offset in group.committed.items()}
    group.read_share = 1.5
    view = watch(world, 41)[-1]
    assert verdict(view, "billing") == Verdict.OK
    assert view.groups.behind_trend[at(view, "billing")] == -1
    left_ms = view.offsets.catch_up_ms[rows(view, "billing")]
    assert left_ms == pytest.approx([80_000] * 10, rel=0.03)


def test_members_that_do_not_move_are_stuck() -> None:
    world = lean_world()
    group = world.group("billing")

    def stop(second: int) -> None:
        if second == 10:
            group.read_share = 1e-12

    views = watch(world, 50, stop)
    assert verdict(views[18], "billing") == Verdict.OK
    assert verdict(views[35], "billing") == Verdict.UNDECIDED, "its reader has rested for long"
    assert verdict(views[45], "billing") == Verdict.STUCK
    view = views[45]
    assert view.groups.severity[at(view, "billing")] is Severity.WARN
    first = rows(view, "billing")[0]
    assert view.offsets.reason[first] is Reason.STILL
    assert 30_000 <= view.offsets.reason_ms[first] < 40_000
    assert view.groups.read_rate[at(view, "billing")] == 0


def test_a_reader_that_commits_each_record_at_once_and_stops_is_stuck_after_half_a_minute() -> None:
    world = lean_world()
    world.groups = [world.group("billing")]
    state, views = State(), []
    for second in range(50):
        snapshot = world.tick()
        if second <= 10:
            partition = partition_rows(snapshot.offsets, snapshot.partitions)
            committed = snapshot.partitions.high_watermark[partition]
        state, view = step(state, replace(snapshot, offsets=replace(snapshot.offsets, committed=committed)))
        views.append(view)
    assert verdict(views[10], "billing") == Verdict.OK
    assert verdict(views[30], "billing") == Verdict.UNDECIDED
    assert verdict(views[45], "billing") == Verdict.STUCK


def test_a_group_without_members_is_stopped_once_records_wait() -> None:
    world = lean_world()
    group = world.group("billing")

    def leave(second: int) -> None:
        if second == 20:
            group.members, group.state = 0, GroupState.EMPTY

    views = watch(world, 40, leave)
    assert verdict(views[25], "billing") == Verdict.OK  # somebody may commit for it without being a member
    assert verdict(views[35], "billing") == Verdict.STOPPED
    billing = at(views[35], "billing")
    assert views[35].groups.reason[billing] is Reason.NO_MEMBERS
    assert views[35].groups.reason_ms[billing] == pytest.approx(15_000, abs=5_000)
    (stopped,) = views[20].new_events
    assert (stopped.kind, stopped.group) == (EventKind.GROUP_STATE, "billing")
    assert (stopped.before, stopped.after) == (GroupState.STABLE, GroupState.EMPTY)
    assert verdict(views[0], "audit-export") == Verdict.STOPPED


def test_an_empty_group_at_the_end_is_ok() -> None:
    world = lean_world()
    world.log("invoice", 0).rate = 0.0
    world.group("audit-export").committed = {("invoice", 0): int(world.log("invoice", 0).watermark)}
    views = watch(world, 20)
    assert verdict(views[-1], "audit-export") == Verdict.OK
    assert views[-1].groups.lag[at(views[-1], "audit-export")] == 0


def test_an_offset_that_fell_back_is_rewound_until_it_is_reached_again() -> None:
    world = lean_world()
    group = world.group("billing")
    before: dict[tuple[str, int], float] = {}

    def rewind(second: int) -> None:
        if second == 10:
            before.update(group.read)
            group.read = {key: offset - 2000 for key, offset in group.read.items()}
        if 10 <= second < 13:
            group.read_share = 1e-12

    views = watch(world, 13, rewind)
    view = views[-1]
    assert verdict(view, "billing") == Verdict.REWOUND
    first = rows(view, "billing")[0]
    assert view.offsets.reason[first] is Reason.FELL_BACK
    assert view.offsets.reason_count[first] > view.snapshot.offsets.committed[first]
    assert np.isnan(view.offsets.read_rate[rows(view, "billing")]).all()
    group.read_share = 1.0
    state = State()
    for old in views:
        state, _ = step(state, old.snapshot)
    for _ in range(3):
        state, view = step(state, world.tick())
    assert verdict(view, "billing") == Verdict.OK


def test_no_commit_is_neither_0_nor_everything() -> None:
    world = lean_world()
    group = world.group("audit-export")
    group.members, group.state = 1, GroupState.STABLE
    group.committed = dict.fromkeys(group.committed, NO_OFFSET)
    group.read_share = 0.0
    world._consume = lambda group, seconds: None  # type: ignore[method-assign]
    *_, view = watch(world, 3)
    row = at(view, "audit-export")
    mine = rows(view, "audit-export")
    assert (view.offsets.lag[mine] == UNKNOWN).all() and (view.offsets.behind_ms[mine] == UNKNOWN).all()
    assert set(view.offsets.reason[mine]) == {Reason.NO_COMMIT}
    assert view.groups.lag[row] == UNKNOWN and view.groups.verdict[row] is Verdict.UNKNOWN
    assert not view.groups.lag_is_bound[row]


def test_a_watermark_read_before_the_commit_makes_no_negative_lag() -> None:
    """The leader is silent for kview alone: its group goes on past the last watermark that kview read."""
    world = lean_world()
    views = watch(world, 5)
    old = views[-1].snapshot
    new = world.tick()
    parts = replace(
        new.partitions,
        high_watermark=old.partitions.high_watermark,
        high_watermark_ms=old.partitions.high_watermark_ms,
    )
    _, view = step(State(), replace(new, partitions=parts))
    mine = rows(view, "billing")
    assert (view.offsets.lag[mine] == UNKNOWN).all()
    assert view.groups.lag_is_bound[at(view, "billing")]


def test_partitions_that_are_gone_leave_their_rows_unknown() -> None:
    world = lean_world()
    watch(world, 1)
    world.logs = [log for log in world.logs if log.topic != "audit-log"]
    world._consume = lambda group, seconds: None  # type: ignore[method-assign]
    (view,) = watch(world, 1)
    mine = rows(view, "audit-export")
    assert (view.offsets.partition_row[mine] == -1).all()
    assert (view.offsets.lag[mine] == UNKNOWN).all()
    assert set(view.offsets.verdict[mine]) == {Verdict.UNKNOWN}


def test_trends_need_more_than_a_commit_interval() -> None:
    def shown(*values: float) -> int:
        series = BehindSeries()
        for second, value in enumerate(values):
            behind = np.array([UNKNOWN if np.isnan(value) else int(value)])
            series = series.extended(np.array(["g"], object), behind, 1000 * second)
        return int(trend(series)[0])

    assert shown(*(1000.0 * (second % 5) for second in range(60))) == 0
    assert shown(*(1000.0 * second for second in range(20))) == 1
    assert shown(*(1000.0 * (20 - second) for second in range(20))) == -1
    assert shown(*(20_000 + 250.0 * second for second in range(60))) == 1
    assert shown(5.0) == 0 and shown(*[float("nan")] * 20) == 0


def test_the_trend_of_a_group_stays_its_own_when_other_groups_come_and_go() -> None:
    series = BehindSeries()
    for second in range(20):
        names = ["b", "c"] if second % 3 else ["a", "b", "c"]
        behind = {"a": 0, "b": 1000 * second, "c": 1000 * (20 - second)}
        values = np.array([behind[name] for name in names])
        series = series.extended(np.array(names, object), values, 1000 * second)
    assert trend(series).tolist() == [1, -1]
