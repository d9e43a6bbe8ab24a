"""Verdicts need evidence: of groups that are far behind, that read in turns, and that kview cannot hear."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from kview.derive.fold import State, step
from kview.derive.view import Verdict, View
from kview.language import verdicts
from kview.model.events import Severity
from kview.model.states import GroupState
from kview.model.units import UNKNOWN
from kview.plain.blocks import block
from kview.run.printing import OBSERVATIONS_FOR_RATES
from tests.derive.test_verdicts import at, rows, watch
from tests.worlds import World, lean_world, views
from tests.worlds.parts import Consumers

GROUP = "billing"


def said(view: View, name: str = GROUP) -> str:
    """The verdict as a person reads it."""
    return verdicts.VERDICTS[view.groups.verdict[at(view, name)]]


def far_behind(minutes: float, share: float) -> World:
    """A group that is so far behind and reads this share of what is written, committing every 5 s."""
    world = lean_world()
    group = world.group(GROUP)
    group.committed = {key: offset - int(440 * 60 * minutes) for key, offset in group.committed.items()}
    group.read_share, group.commit_every_ms = share, 5_000
    return world


def in_turns(
    world: World, group: Consumers, turn_s: int, per_s: float, stuck: tuple[str, int] | None = None
) -> Callable[[int], None]:
    """Let one member read the group's partitions one after the other, `turn_s` seconds each."""
    group.members, group.read_share, group.commit_every_ms = 1, 1e-12, 5_000
    group.read = {key: float(offset) for key, offset in group.committed.items()}
    keys = [key for key in sorted(group.committed) if key != stuck]

    def read(second: int) -> None:
        key = keys[second // turn_s % len(keys)]
        group.read[key] = min(group.read[key] + per_s, world.log(*key).watermark)

    return read


def changes(made: list[View]) -> int:
    return sum(a != b for a, b in pairwise([said(view) for view in made]))


@pytest.mark.quick(1)
@pytest.mark.parametrize("turn_s", [20, 40])
def test_a_steady_slow_consumer_that_reads_in_turns_falls_behind_and_nothing_else(turn_s: int) -> None:
    world = far_behind(10, 1.0)
    made = watch(world, 300, in_turns(world, world.group(GROUP), turn_s, 440 * 10 * 0.41))
    assert "ok" not in {said(view) for view in made}
    assert {said(view) for view in made[45:]} == {"falling behind"}
    assert changes(made) <= 3


@pytest.mark.slow  # two others read in turns
def test_a_consumer_that_reads_in_turns_and_catches_up_is_ok_once_that_is_seen() -> None:
    world = far_behind(10, 1.0)
    made = watch(world, 200, in_turns(world, world.group(GROUP), 15, 440 * 10 * 3))
    assert {said(view) for view in made[60:]} == {"ok"}
    assert changes(made) <= 2


def test_a_stuck_partition_colours_its_group_although_the_others_are_read() -> None:
    world = lean_world()
    group, key = world.group(GROUP), ("invoice", 3)
    group.read_share = 1 - 1e-9
    held: list[float] = []

    def hold(second: int) -> None:
        if second >= 20:
            held.append(group.read[key])
            group.read[key] = held[0]

    made = watch(world, 75, hold)
    assert said(made[19]) == "ok"
    assert said(made[-1]) == "stuck"
    assert verdicts.of_group(made[-1].groups, at(made[-1], GROUP)) == "1 partition"


@pytest.mark.slow  # a cycle of minutes; others read in turns
def test_a_stuck_partition_of_a_reader_in_turns_is_found_after_its_cycle() -> None:
    world = far_behind(10, 1.0)
    made = watch(world, 400, in_turns(world, world.group(GROUP), 10, 440 * 10 * 0.41, ("invoice", 3)))
    assert said(made[-1]) == "stuck"
    first = rows(made[-1], GROUP)
    assert [int(row - first[0]) for row in first if made[-1].offsets.verdict[row] == Verdict.STUCK] == [3]


def test_a_partition_that_was_idle_for_minutes_is_not_stuck_when_a_record_comes() -> None:
    world = lean_world()
    group, log = world.group(GROUP), world.log("invoice", 3)
    group.commit_every_ms, log.rate = 5_000, 0.0

    def write(second: int) -> None:
        if second == 61:
            log.rate = 5.0

    made = watch(world, 80, write)
    assert {said(view) for view in made[60:]} == {"ok"}


@pytest.mark.parametrize("share", [0.4, 1e-9])
def test_ten_minutes_behind_is_never_ok_while_it_does_not_gain(share: float) -> None:
    made = watch(far_behind(9, share), 90)
    assert "ok" not in {said(view) for view in made}
    assert said(made[0]) == said(made[1]) == "…"
    assert said(made[-1]) in ("falling behind", "stuck")
    assert made[-1].groups.severity[at(made[-1], GROUP)] is Severity.WARN


def test_a_single_block_of_a_group_far_behind_has_no_verdict() -> None:
    """A single block is printed after two observations."""
    world = far_behind(9, 0.4)
    world.groups = [world.group(GROUP)]
    printed = block(watch(world, OBSERVATIONS_FOR_RATES)[-1], "a cluster").splitlines()
    (row,) = [line for line in printed if line.startswith(f"  {GROUP} ")]
    assert row.split()[-1] == "…" and " ≥2 m " in row
    assert "● no verdict yet on 1 group" in printed and not printed[1].endswith("group ok")


def test_far_behind_at_the_rate_of_the_writers_is_not_ok_either() -> None:
    made = watch(far_behind(5, 1 - 1e-9), 90)
    assert "ok" not in {said(view) for view in made}
    assert said(made[-1]) == "falling behind"
    row = rows(made[-1], GROUP)[0]
    assert verdicts.of_offset(made[-1].offsets, row) == "over a minute behind and catching up too slowly"


def test_a_verdict_does_not_get_better_when_the_coordinator_is_silent() -> None:
    world = far_behind(9, 0.4)
    watched = watch(world, 60)
    world.crash(world.group(GROUP).coordinator)
    state = State()
    for view in watched:
        state, _ = step(state, view.snapshot)
    for _ in range(12):
        state, view = step(state, world.tick())
    assert said(view) in ("falling behind", "blocked")


def test_the_verdict_of_a_silent_coordinators_group_is_marked_as_old_and_never_calm() -> None:
    world = lean_world()
    watched = watch(world, 40)
    row = at(watched[-1], "fraud-check")
    assert watched[-1].groups.verdict_age_ms[row] == UNKNOWN
    assert watched[-1].groups.severity[row] is Severity.CALM
    world.crash(world.group("fraud-check").coordinator)
    *_, view = views([*(v.snapshot for v in watched), *(world.tick() for _ in range(12))])
    assert said(view, "fraud-check") == "ok"
    assert view.groups.verdict_age_ms[row] == pytest.approx(12_000, abs=200)
    assert verdicts.name(view.groups.verdict[row], int(view.groups.verdict_age_ms[row])) == "ok 12 s old"
    assert verdicts.of_group(view.groups, row) == ""
    assert view.groups.severity[row] is Severity.WARN


def test_a_group_that_commits_twice_a_minute_is_ok() -> None:
    world = lean_world()
    world.group(GROUP).commit_every_ms = 30_000
    made = watch(world, 200)
    assert {said(view) for view in made[60:]} == {"ok"}


def test_a_members_rebalance_does_not_make_a_verdict() -> None:
    world = far_behind(9, 0.4)

    def rebalance(second: int) -> None:
        if second in (60, 90):
            world.group(GROUP).members = 5 - world.group(GROUP).members

    world.group(GROUP).members = 2
    made = watch(world, 150, rebalance)
    assert {said(view) for view in made[45:]} == {"falling behind"}
    assert world.group(GROUP).state == GroupState.STABLE


def test_a_group_does_not_keep_up_because_its_writers_are_stopped() -> None:
    """While broker 4 is silent, nobody writes to what it leads: lag shrinks, but not by the group's doing."""
    world = far_behind(9, 0.7)
    watched = watch(world, 60)
    world.crash(4)
    seen = [*(view.snapshot for view in watched), *(world.tick() for _ in range(45))]
    after = [said(view) for view in views(seen)][60:]
    assert "ok" not in after and "…" not in after
    assert after[-1] in ("falling behind", "stuck")


def test_a_time_in_which_nobody_could_look_is_not_taken_for_the_groups_own_pause() -> None:
    world = lean_world()
    group, state = world.group(GROUP), State()
    for _ in range(60):
        state, _ = step(state, world.tick())
    group.read_share = 1e-12
    world.skip(50)
    group.read_share = 1.0
    state, view = step(state, world.tick())
    group.read_share = 1e-12
    made = []
    for _ in range(45):
        state, view = step(state, world.tick())
        made.append(view)
    assert {said(view) for view in made[35:]} == {"stuck"}
    assert view.headline.severity is not Severity.CALM


def test_a_time_in_which_nobody_could_read_is_not_taken_for_the_groups_own_pause() -> None:
    world = lean_world()
    group = world.group(GROUP)

    def each(second: int) -> None:
        if second == 60:
            for broker in range(1, 6):
                world.crash(broker)
        if second == 110:
            for broker in range(1, 6):
                world.back(broker)
        group.read_share = 1e-12 if second >= 125 else 1.0

    made = watch(world, 175, each)
    assert {said(view) for view in made[165:]} == {"stuck"}
