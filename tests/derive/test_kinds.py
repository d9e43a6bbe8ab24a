"""Verdicts on groups by their kind: by cadence, by backlog, or none."""

from collections.abc import Callable

import pytest

from kview.derive.fold import State, step
from kview.derive.groups.findings import heeded
from kview.derive.view import Reason, Verdict, View
from kview.language import verdicts
from kview.model.states import GroupState, GroupType
from kview.model.units import UNKNOWN
from kview.tui.screens.group import group_lines
from kview.tui.text import content
from tests.worlds import lean_world
from tests.worlds.kinds import CONNECT, CONSUMER, SHARE, STREAMS, of_every_kind
from tests.worlds.parts import Consumers
from tests.worlds.small import ends, reader, small_world, watch
from tests.worlds.world import World

INTERVALS_S = (10, 30, 60, 300)
KINDS = (GroupType.CLASSIC, GroupType.CONSUMER, GroupType.STREAMS, GroupType.SIMPLE)
STEP_MS = 5_000
MINUTE = 60_000 // STEP_MS


def name_of(kind: GroupType, interval_s: int) -> str:
    return f"{kind}-{interval_s}"


def committing() -> World:
    """Groups of all kinds that read all there is and commit every 10, 30, 60 or 300 s."""
    made = []
    for kind in KINDS:
        for interval_s in INTERVALS_S:
            group = reader(name_of(kind, interval_s), *ends(), members=kind != GroupType.SIMPLE, share=1.0)
            group.type, group.commit_every_ms = kind, interval_s * 1000
            made.append(group)
    world = small_world(*made)
    world.interval_ms = STEP_MS
    return world


def stop(group: Consumers) -> None:
    """End what reads, as a job or as members."""
    group.members = 0
    if group.type == GroupType.SIMPLE:
        group.commit_every_ms = 10**12
    else:
        group.state = GroupState.EMPTY


def said(view: View) -> dict[str, str]:
    """The verdict on each group."""
    return dict(zip(view.snapshot.groups.group.tolist(), view.groups.verdict.tolist(), strict=True))


@pytest.mark.slow  # the other tests here take minutes of it
def test_half_an_hour_of_rare_commits_is_ok_or_undecided_and_an_end_is_seen_in_time() -> None:
    world, stopped = committing(), dict[str, int]()

    def each(number: int) -> None:
        if number == 30 * MINUTE:
            for group in world.groups:
                stop(group)

    for number, view in enumerate(watch(world, 48 * MINUTE, each)):
        if number < 30 * MINUTE:
            assert set(said(view).values()) <= {Verdict.OK, Verdict.UNDECIDED}, said(view)
        for group, verdict in said(view).items():
            if verdict == Verdict.STOPPED:
                stopped.setdefault(group, (number - 30 * MINUTE) * STEP_MS // 1000)
    assert set(said(view).values()) == {Verdict.STOPPED}
    for interval_s in INTERVALS_S:
        # Records may have waited for nearly an interval when it stopped.
        least_s = max(120, 3 * interval_s)
        assert least_s - interval_s <= stopped[name_of(GroupType.SIMPLE, interval_s)] <= least_s + interval_s
    row = view.snapshot.groups.group.tolist().index(name_of(GroupType.SIMPLE, 300))
    assert view.groups.reason[row] == Reason.COMMIT_OVERDUE
    assert verdicts.of_group(view.groups, row).startswith("no commit for 2")


def test_a_group_without_two_moves_has_no_verdict_yet() -> None:
    idle = reader("flink", *(end - 5_000 for end in ends()), members=0, share=1e-12)
    idle.type = GroupType.SIMPLE
    assert {said(view)["flink"] for view in watch(small_world(idle), 90)} == {Verdict.UNDECIDED}


@pytest.mark.parametrize("outages", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_an_outage_is_not_how_often_a_group_commits(outages: int) -> None:
    """Commits come every 10 s, and then not for 5 minutes, once or twice in a row."""
    overdue_s = {GroupType.CLASSIC: 30, GroupType.SIMPLE: 120}
    groups = [reader(kind, *ends(), members=kind != GroupType.SIMPLE, share=1.0) for kind in overdue_s]
    for group, kind in zip(groups, overdue_s, strict=True):
        group.type = kind
    world, minute = small_world(*groups), MINUTE
    world.interval_ms = STEP_MS
    begin, again = 2 * minute, [*range(7 * minute, 7 * minute + 2)]  # one commit between two outages
    last = (7 if outages == 1 else 12) * minute + 2 * minute

    def each(number: int) -> None:
        stopped = begin <= number < last - 2 * minute and number not in again[: 2 * (outages - 1)]
        for group in groups:
            group.commit_every_ms = 10**12 if stopped or number >= last else 10_000

    views = watch(world, last + 6 * minute, each)
    for kind, least_s in overdue_s.items():
        bad = Verdict.STUCK if kind == GroupType.CLASSIC else Verdict.STOPPED
        told = [number for number, view in enumerate(views) if said(view)[kind] == bad]
        first = next(number for number in told if number >= begin)
        assert least_s - 10 <= (first - begin) * STEP_MS / 1000 <= least_s + 10
        after = [number - last for number in told if number >= last]
        assert (not after) if outages == 2 else least_s - 10 <= after[0] * STEP_MS / 1000 <= least_s + 10


def test_members_that_nobody_knows_are_not_none() -> None:
    group = reader("billing", *(end - 50_000 for end in ends()), members=0, share=1e-12)
    group.type, group.state = GroupType.CONSUMER, GroupState.STABLE
    world = small_world(group)
    state = State()
    for _ in range(60):
        snapshot = world.tick()
        snapshot.groups.members[:] = -1
        state, view = step(state, snapshot)
        assert said(view)["billing"] not in (Verdict.STOPPED, Verdict.STUCK)


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("backlog", "members", "verdict"),
    [
        (lambda second: 0, 0, Verdict.OK),
        (lambda second: 40 + second % 7, 1, Verdict.OK),
        (lambda second: 40 + 10 * second, 1, Verdict.FALLING_BEHIND),
        (lambda second: 400 - second, 1, Verdict.OK),
        (lambda second: 40, 0, Verdict.STOPPED),
        (lambda second: UNKNOWN, 1, Verdict.UNKNOWN),
    ],
)
def test_a_share_group_is_judged_by_its_backlog(
    backlog: Callable[[int], int], members: int, verdict: Verdict
) -> None:
    world, state = lean_world(), State()
    for second in range(60):
        state, view = step(state, of_every_kind(world.tick(), backlog(second), members))
    row = view.snapshot.groups.group.tolist().index(SHARE)
    assert view.groups.verdict[row] == verdict
    assert view.groups.lag[row] == backlog(59)
    assert view.groups.read_rate[row] != view.groups.read_rate[row], "it commits nothing: not known, never 0"


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("backlog", "falls"),
    [
        (lambda second: 5 if second < 45 else 25 + second % 3, False),
        (lambda second: 400 if second < 45 else 2_000, False),
        (lambda second: 100 * second + 150 * (second % 3), True),
    ],
    ids=["a few records more", "one step", "grows unevenly"],
)
def test_a_backlog_that_was_raised_once_does_not_grow(backlog: Callable[[int], int], falls: bool) -> None:
    """Half a minute after a failover, more records may wait than before, and no more in each second."""
    world, state, verdicts = lean_world(), State(), []
    for second in range(90):
        state, view = step(state, of_every_kind(world.tick(), backlog(second), 2))
        verdicts.append(view.groups.verdict[view.snapshot.groups.group.tolist().index(SHARE)])
    assert (Verdict.FALLING_BEHIND in verdicts) == falls
    assert verdicts[-1] == (Verdict.FALLING_BEHIND if falls else Verdict.OK)


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("backlog", "is_behind"),
    [
        (lambda second: 40 + 120 * (second >= 35) + second % 7, False),  # it waits for less than a second
        (lambda second: 900 * (second >= 35) + second, False),
        (lambda second: 1_000 * (second >= 35) + second, True),
        (lambda second: 40 + 10 * second, False),  # nor for long enough yet
        (lambda second: 40 + 40 * second, True),
    ],
)
def test_a_share_group_that_is_a_few_seconds_behind_does_not_fall_behind(
    backlog: Callable[[int], int], is_behind: bool
) -> None:
    """It reads two partitions with 100 records a second each."""
    world, state = small_world(), State()
    for second in range(60):
        state, view = step(state, of_every_kind(world.tick(), backlog(second)))
    assert (said(view)[SHARE] == Verdict.FALLING_BEHIND) == is_behind


def test_workers_of_connect_have_no_verdict_and_are_not_unjudged() -> None:
    world, state = lean_world(), State()
    world.groups = []
    for _ in range(40):
        state, view = step(state, of_every_kind(world.tick(), 5))
    assert said(view)[CONNECT] == Verdict.NONE
    assert view.groups.severity[view.snapshot.groups.group.tolist().index(CONNECT)] == "calm"
    names = view.snapshot.groups.group
    assert CONNECT not in names[heeded(view.groups)] and STREAMS in names[heeded(view.groups)]


def test_a_group_says_since_when_it_rebalances_and_for_whom_it_waits() -> None:
    world, state, lines = lean_world(), State(), []
    for second in range(40):
        snapshot = of_every_kind(world.tick())
        row = snapshot.groups.group.tolist().index(CONSUMER)
        snapshot.groups.state[row] = GroupState.STABLE if second < 5 else GroupState.RECONCILING
        state, view = step(state, snapshot)
        lines.append("".join(content(span) for span in group_lines(view, CONSUMER, 200)[:1]))
    assert "rebalancing" not in lines[4]
    assert "rebalancing for 34 s" in lines[-1] and "epoch 8, waits for mails-1, mails-2" in lines[-1]
