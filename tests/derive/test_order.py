"""The order of lists: what is wrong first, then by name, and nothing jumps."""

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.snapshot import Partitions
from kview.plain.blocks import MAX_GROUPS, block
from kview.tui.options import Options
from kview.tui.rows.groups import GroupRows
from tests.worlds import World, default_world
from tests.worlds.parts import Consumers


def keys(table: Partitions) -> list[tuple[str, int]]:
    return list(zip(table.topic.tolist(), table.partition.tolist(), strict=True))


def names(view: View) -> list[tuple[str, int]]:
    listed = keys(view.snapshot.partitions)
    return [listed[row] for row in view.worst_partitions.tolist()]


def run(world: World, state: State, seconds: int) -> tuple[State, list[View]]:
    seen = []
    for _ in range(seconds):
        state, view = step(state, world.tick())
        seen.append(view)
    return state, seen


def quiet_world() -> World:
    """The default world without traffic."""
    world = default_world()
    for log in world.logs:
        log.rate = 0.0
    return world


def test_whatever_the_traffic_equals_stand_in_the_order_of_their_names() -> None:
    world = quiet_world()
    world.log("payment", 4).rate, world.log("invoice", 9).rate = 900.0, 90.0
    state, seen = run(world, State(), 3)
    users = sorted(key for key in keys(seen[-1].snapshot.partitions) if not key[0].startswith("__"))
    assert names(seen[-1]) == users
    world.log("payment", 4).rate, world.log("invoice", 9).rate = 1.0, 900.0
    assert all(names(view) == users for view in run(world, state, 30)[1])


def test_a_partition_off_its_preferred_leader_stays_in_its_place_and_one_without_a_leader_does_not() -> None:
    world = quiet_world()
    for number in range(10):
        world.log("invoice", number).leader = world.log("invoice", number).replicas[1]
    state, seen = run(world, State(), 3)
    assert names(seen[-1])[:2] == [("audit-log", 0), ("audit-log", 1)]
    printed = block(seen[-1], "a cluster").splitlines()
    (head,) = [number for number, line in enumerate(printed) if line.startswith("  TOPIC")]
    assert printed[head + 1].split()[:2] == ["audit-log", "0"] and printed[head + 1].endswith("  ok")
    assert printed[head + 5].endswith("  not on preferred leader")
    world.log("payment", 3).leader = -1
    _, view = step(state, world.tick())
    assert names(view)[:2] == [("payment", 3), ("audit-log", 0)], "at once"


def test_what_cannot_be_seen_stands_before_what_is_well() -> None:
    world = default_world()
    state, _ = run(world, State(), 3)
    world.cut(5)
    _, seen = run(world, state, 8)
    table = seen[-1].snapshot.partitions
    unseen = {key for key, leader in zip(keys(table), table.leader.tolist(), strict=True) if leader == 5}
    users = {key for key in unseen if not key[0].startswith("__")}
    assert set(names(seen[-1])[: len(users)]) == users and len(users) == 2


def test_groups_that_are_as_bad_and_as_far_behind_stand_in_the_order_of_their_names() -> None:
    world = default_world()
    world.groups = [world.group(name) for name in ("audit-export", "billing", "fraud-check")]
    world.log("audit-log", 2).rate = 9_000.0
    _, seen = run(world, State(), 5)
    printed = block(seen[-1], "a cluster").splitlines()
    (head,) = [number for number, line in enumerate(printed) if line.startswith("  GROUP ")]
    shown = [line.split()[0] for line in printed[head + 1 : head + 4]]
    assert shown == ["audit-export", "billing", "fraud-check"]
    assert GroupRows(seen[-1], Options()).keys == shown


def test_a_group_in_trouble_is_not_left_out_of_a_text_block() -> None:
    world = default_world()
    stopped = world.group("audit-export")
    for number in range(MAX_GROUPS):
        world.groups.append(Consumers(f"a-{number:02}", 1, 1, dict(world.group("billing").committed)))
    stopped.name = "z-export"
    world.groups.sort(key=lambda group: group.name)
    _, seen = run(world, State(), 3)
    printed = block(seen[-1], "a cluster").splitlines()
    (head,) = [number for number, line in enumerate(printed) if line.startswith("  GROUP ")]
    assert printed[head + 1].startswith("  z-export ") and "stopped: no members" in printed[head + 1]
