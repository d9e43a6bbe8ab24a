"""Groups as a person reads them: hidden ones, abandoned ones, old verdicts, members in a rebalance."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State, fold_to, step
from kview.derive.groups.verdicts import severity
from kview.derive.view import View
from kview.language import findings
from kview.language.lists import GroupList
from kview.model.events import Severity
from kview.model.snapshot import Members, Offsets, empty
from kview.model.states import GroupState
from kview.model.units import UNKNOWN_ID
from kview.plain.blocks import block
from kview.plain.documents import document
from kview.tui.options import Options
from kview.tui.rows.group import MemberRows, OffsetRows
from kview.tui.rows.groups import GroupRows, summary
from kview.tui.text import Role, content
from kview.tui.widgets.table import Table
from tests.tui.harness import HEALTHY, dashboard, lines, press, running, state, text, until
from tests.worlds import World, crash_script, default_world, views
from tests.worlds.kinds import CONNECT, CONSUMER, SHARE, STREAMS, of_every_kind
from tests.worlds.parts import Consumers, Node, topic
from tests.worlds.small import TOPIC, ends, reader, small_world, watch


def abandoned_world() -> World:
    """Every offset of `audit-export`, which is empty, lies below its log's start."""
    world = default_world()
    for key, offset in world.group("audit-export").committed.items():
        world.log(*key).start = offset + 500
    return world


def watched(world: World, seconds: int, ignore: tuple[str, ...] = ()) -> View:
    folded = State(ignore)
    for _ in range(seconds):
        folded, view = step(folded, world.tick())
    return view


def shown(view: View, name: str, options: Options = Options()) -> str:  # noqa: B008
    """A group's row, without runs of spaces."""
    rows = GroupRows(view, options)
    row = rows.find(name)
    assert row is not None
    cells = rows.row(row, view.snapshot.observation.ended_ms).cells
    return " ".join(" ".join(content(cell) for cell in cells).split())


def test_abandoned_groups_stand_last_and_can_be_hidden() -> None:
    view = watched(abandoned_world(), 5)
    rows = GroupRows(view, Options())
    assert rows.keys[-1] == "audit-export"
    assert "● abandoned no members, and everything left to read" in shown(view, "audit-export")
    hidden = GroupRows(view, Options(groups=GroupList.LIVELY))
    assert "audit-export" not in hidden.keys and "1 hidden" in content(hidden.title)


def test_ignored_groups_count_nowhere_and_are_said_to_be_hidden() -> None:
    world = default_world()
    world.log("audit-log", 1).start = world.group("audit-export").committed["audit-log", 1] + 500
    seen = [world.tick() for _ in range(5)]
    *_, view = views(seen, State(("audit-*", "nobody")))
    rows = GroupRows(view, Options())
    assert "audit-export" not in rows.keys and "1 hidden" in content(rows.title)
    assert "audit-export" in GroupRows(view, Options(groups=GroupList.ALL)).keys
    assert view.headline.severity is Severity.CALM
    printed = block(view, "a cluster")
    assert "audit-export" not in printed and "1 group hidden by --ignore-group" in printed
    assert '"group":"audit-export"' in document(view) and '"ignored":true' in document(view)
    jumped = fold_to(seen[-1], seen, lambda: False, ("audit-*",))
    assert jumped is not None and jumped[1].headline.severity is Severity.CALM


def test_events_of_ignored_groups_are_not_said() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(4)]
    world.group("billing").state = GroupState.EMPTY
    snapshots.append(world.tick())
    *_, heard = views(snapshots)
    *_, ignored = views(snapshots, State(("bill*",)))
    assert [event.group for event in heard.new_events] == ["billing"]
    assert ignored.new_events == ()


def test_an_old_verdict_says_how_old_it_is_once() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(30)]
    world.crash(4)
    *_, view = views([*snapshots, *(world.tick() for _ in range(12))])
    row = shown(view, "fraud-check")
    assert "▲ ok 12 s old coordinator 4 silent" in row
    assert row.count("12 s") == 1
    assert '"verdict_age_ms":12' in document(view)
    assert "ok 12 s old" in block(view, "a cluster")


def test_a_lag_whose_leader_is_lost_is_a_bound_and_says_its_age() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(20)]
    world.crash(4)
    *_, view = views([*snapshots, *(world.tick() for _ in range(20))])
    rows = OffsetRows(view, "audit-export", Options())
    row = rows.find(("audit-log", 3))
    assert row is not None
    cells = [content(cell) for cell in rows.row(row, view.snapshot.observation.ended_ms).cells]
    assert cells[4].startswith("≥") and "log end 20 s old" in cells[-1]


def test_a_member_that_rebalances_is_not_idle() -> None:
    world = default_world()
    view = watched(world, 3)

    def owned(view: View) -> list[str]:
        rows = MemberRows(view, "fraud-check", Options())
        return [content(rows.row(row, 0).cells[3]) for row in range(len(rows))]

    assert owned(view)[-1] == "idle: no partition"
    groups = view.snapshot.groups
    states = groups.state.copy()
    states[:] = GroupState.PREPARING_REBALANCE
    rebalancing = replace(view, snapshot=replace(view.snapshot, groups=replace(groups, state=states)))
    assert owned(rebalancing)[-1] == "waits for the rebalance"


@pytest.mark.parametrize(
    ("group", "state", "said", "role"),
    [
        (CONNECT, GroupState.STABLE, "no connectors or tasks", Role.DIM),
        (CONNECT, GroupState.PREPARING_REBALANCE, "waits for the rebalance", Role.WARN),
        (SHARE, GroupState.STABLE, "no partition now", Role.DIM),
        (STREAMS, GroupState.STABLE, "idle: no task", Role.WARN),
        (CONSUMER, GroupState.STABLE, "idle: no partition", Role.WARN),
    ],
)
def test_only_a_member_that_could_own_something_is_idle(
    group: str, state: GroupState, said: str, role: Role
) -> None:
    snapshot = of_every_kind(default_world().tick())
    snapshot.groups.state[:] = state
    snapshot.members.assigned[:], snapshot.members.runs[:] = 0, ""
    rows = MemberRows(step(State(), snapshot)[1], group, Options())
    (cell,) = rows.row(0, 0).cells[3]
    assert (cell.text, cell.role) == (said, role)


def test_workers_have_connectors_and_tasks_and_a_group_without_workers_is_not_read_by_nobody() -> None:
    rows = MemberRows(step(State(), of_every_kind(default_world().tick()))[1], CONNECT, Options())
    assert rows.columns[3].title == "connectors and tasks"
    assert content(rows.row(0, 0).cells[3]).endswith("sink: connector, tasks 0, 1")
    snapshot = of_every_kind(default_world().tick())
    snapshot.groups.members[:] = 0
    gone = replace(snapshot, members=empty(Members))
    assert MemberRows(step(State(), gone)[1], CONNECT, Options()).empty == "no workers"


def test_a_member_whose_assignment_cannot_be_read_is_not_idle() -> None:
    snapshot = default_world().tick()
    snapshot.members.assigned[snapshot.members.group == "fraud-check"] = UNKNOWN_ID
    view = step(State(), replace(snapshot, offsets=empty(Offsets)))[1]
    rows = MemberRows(view, "fraud-check", Options())
    assert [content(cell) for cell in rows.row(0, 0).cells[2:4]] == ["–", ""]
    assert "Stable –/" in shown(view, "fraud-check")


def test_a_member_points_at_its_partitions_and_those_in_trouble_have_a_sign() -> None:
    view = watched(default_world(), 3)
    rows = MemberRows(view, "billing", Options())
    assert content(rows.row(0, 0).cells[3]).startswith("──▶ invoice 0 3 6 9")
    world = default_world()
    snapshots = [world.tick() for _ in range(20)]
    world.crash(4)
    *_, crashed = views([*snapshots, *(world.tick() for _ in range(6))])
    rows = MemberRows(crashed, "billing", Options())
    cells = [rows.row(row, 0).cells[3] for row in range(len(rows))]
    assert any("3✕" in content(cell) for cell in cells), "its leader is silent"
    assert {span.role for cell in cells for span in cell if "✕" in span.text} == {Role.RISK}
    logs = topic("big", 40, 1, 1.0)
    group = Consumers("g", 0, 1, {log.key: 100 for log in logs})
    many = World([Node(id, "") for id in range(6)], logs, [group])
    *_, view = views([many.tick(), many.tick()])
    assert "big 0–39" in content(MemberRows(view, "g", Options()).row(0, 0).cells[3]), "ranges of many"


@running
async def test_a_key_hides_abandoned_groups() -> None:
    view = watched(abandoned_world(), 5)
    async with dashboard(view) as (app, pilot):
        await press(pilot, ["5"])
        await until(pilot, lambda: "audit-export" in text(app), "the group")
        await press(pilot, ["a", "a"])
        await until(pilot, lambda: "audit-export" not in text(app), "the list without it")
        assert "1 hidden" in text(app)
        assert "ignored and abandoned groups are hidden · a: hide only ignored" in text(app)


@running
async def test_groups_that_are_all_hidden_are_not_called_unseen() -> None:
    view = state(HEALTHY)
    groups = replace(view.groups, ignored=np.ones(len(view.snapshot.groups), np.bool_))
    ignored = replace(view, groups=groups)
    async with dashboard(ignored) as (app, pilot):
        await until(pilot, lambda: "no groups to show (4 hidden · a: show all)" in text(app), "the reason")
        await press(pilot, ["a"])
        await until(pilot, lambda: "audit-export" in text(app), "the groups")


@running
async def test_nothing_is_said_about_hidden_groups_without_any() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["5"])
        await until(pilot, lambda: "write/s" in text(app), "the groups")
        assert "hidden" not in text(app)


def lost_and_caught_up() -> View:
    """`billing` lost 24,000 records of invoice-3, and reads faster than is written since then."""
    world = default_world()
    group, key = world.group("billing"), ("invoice", 3)
    group.committed[key] -= 60_000
    group.read_share = 10.0

    def overtake(second: int) -> None:
        if second == 8:
            world.log(*key).start = int(group.read[key]) + 24_000
            group.read[key] = float(world.log(*key).start)

    folded = State()
    for second in range(16):
        overtake(second)
        folded, view = step(folded, world.tick())
    return view


def test_a_group_that_lost_records_is_not_ok_however_well_it_reads_now() -> None:
    view = lost_and_caught_up()
    row = shown(view, "billing")
    assert re.search(r"✕ lost records ≥ [\d,]+ records deleted before being read", row) and "ok" not in row
    assert "lost records: ≥ " in block(view, "a cluster")
    in_a_line = content(summary(view, Options(), 100))
    assert re.match("  GROUPS  ✕ 1 lost records(: [a-z]+)? · ▲ 1 stopped", in_a_line)
    (told,) = [group for group in json.loads(document(view))["groups"] if group["group"] == "billing"]
    assert told["verdict"]["text"].startswith("lost records: ≥ ") and told["severity"] == "risk"
    rows = OffsetRows(view, "billing", Options())
    first = [content(cell) for cell in rows.row(0, view.snapshot.observation.ended_ms).cells]
    assert first[:2] == ["invoice", "3"] and first[-1].startswith("✕ lost records: ≥ ")
    second = [content(cell) for cell in rows.row(1, view.snapshot.observation.ended_ms).cells]
    assert second[-1] == "● ok"


def test_partitions_of_a_group_with_old_figures_are_not_said_to_be_ok() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(30)]
    world.crash(4)
    *_, view = views([*snapshots, *(world.tick() for _ in range(12))])
    rows = OffsetRows(view, "fraud-check", Options())
    last = [content(rows.row(at, view.snapshot.observation.ended_ms).cells[-1]) for at in range(len(rows))]
    assert any(said.startswith("▲ ok: 1") for said in last) and not any("● ok" in said for said in last)
    (told,) = [group for group in json.loads(document(view))["groups"] if group["group"] == "fraud-check"]
    assert told["verdict"]["text"] == "ok 12 s old"


def test_a_group_of_one_partition_keeps_its_lag_when_the_leader_dies_and_when_there_is_none() -> None:
    world = default_world()
    group = world.group("audit-export")
    group.committed = {("audit-log", 3): group.committed["audit-log", 3]}
    snapshots = [world.tick() for _ in range(10)]
    world.crash(4)
    snapshots += [world.tick() for _ in range(20)]
    made = list(views(snapshots))
    before = int(made[9].groups.lag[made[9].snapshot.groups.group == "audit-export"][0])
    for view in made[10:]:
        assert shown(view, "audit-export").startswith(f"audit-export Empty 0/0 ≥{before:,} ")
    rows = OffsetRows(made[-1], "audit-export", Options())
    cells = [content(cell) for cell in rows.row(0, made[-1].snapshot.observation.ended_ms).cells]
    assert cells[4] == f"≥{before:,}" and cells[-1].endswith("log end 20 s old")
    assert made[-1].snapshot.partitions.leader[made[-1].offsets.partition_row[0]] == -1


def test_a_stuck_group_stays_stuck_while_its_coordinator_moves() -> None:
    world = default_world()
    group, folded, said = world.group("billing"), State(), []
    for second in range(100):
        if second == 10:
            group.read_share = 1e-12
        if second == 60:
            world.cut(1)
        if second == 65:
            group.coordinator = 2
        folded, view = step(folded, world.tick())
        (row,) = [line for line in block(view, "a cluster").splitlines() if line.startswith("  billing ")]
        said.append(row)
    assert all(" stuck: 10 partitions" in row or " stuck: 6 partitions" in row for row in said[50:60])
    assert all(" stuck: " in row for row in said[60:]), said[60:]
    assert "judged 4 s ago" in said[63] and "judged" not in said[-1]


def test_an_abandoned_group_is_dim_and_leaves_the_headline_calm() -> None:
    world = abandoned_world()
    world.groups = [world.group("audit-export"), world.group("billing")]
    view = watched(world, 5)
    head = block(view, "a cluster").splitlines()[1]
    assert head.startswith("● all healthy: ") and head.endswith(", 1 group ok")
    rows = GroupRows(view, Options())
    cells = rows.row(len(rows) - 1, view.snapshot.observation.ended_ms).cells
    assert {span.role for span in cells[-2] + cells[-1] if span.text.strip()} == {Role.DIM}


def stopped_groups(**seconds_behind: int) -> World:
    """Groups without members that stopped so long ago, on one partition that is written at 100/s."""
    (end,) = ends(1)
    made = [reader(name, end - 100 * ago, members=0) for name, ago in seconds_behind.items()]
    return small_world(*made, partitions=1)


def test_groups_that_are_equally_bad_stand_in_the_order_of_their_lag_in_time_then_of_their_lag() -> None:
    view = watch(stopped_groups(a=15, b=70, c=300, d=40), 3)[-1]
    rows = GroupRows(view, Options())
    assert rows.keys == ["c", "b", "d", "a"]
    headline = findings.sentence(view.headline.findings[1], view.snapshot.observation.ended_ms)
    assert headline.startswith("c stopped, ")


def test_groups_do_not_jump_with_every_observation() -> None:
    """Two groups commit every ten seconds, five seconds apart: each is further behind half of the time."""
    world = stopped_groups(a=100, b=100)
    (end,) = ends(1)

    def each(second: int) -> None:
        for number, group in enumerate(world.groups):
            ago = 100 + (second + 5 * number) % 10
            group.committed[TOPIC, 0] = end + 100 * (second - ago)

    orders = [GroupRows(view, Options()).keys for view in watch(world, 50, each)[10:]]
    assert sum(a != b for a, b in pairwise(orders)) <= 2


def test_the_row_of_a_stopped_group_does_not_repeat_its_lag_in_time() -> None:
    view = watch(stopped_groups(mailer=70), 3)[-1]
    assert shown(view, "mailer").endswith("▲ stopped no members")
    assert "≥1 m" in shown(view, "mailer")
    assert "stopped: no members, ≥1 m" in block(view, "a cluster")


def test_there_is_no_trend_without_figures() -> None:
    """The topic of a group that falls behind is deleted."""
    (end,) = ends(1)
    world = small_world(reader("mailer", end, share=0.3), partitions=1)

    def each(second: int) -> None:
        if second == 40:
            world.logs = []
            world.groups[0].read_share = 1e-12
            world.groups[0].members = 0

    made = watch(world, 42, each)
    assert "▲" in shown(made[39], "mailer")
    row = shown(made[41], "mailer")
    assert row.startswith("mailer Stable 0/0 – – ")
    assert "▲" not in row and "▼" not in row


def test_a_loss_is_said_instead_of_ok() -> None:
    (end,) = ends(1)
    world = small_world(reader("mailer", end - 900, members=0), partitions=1, rate=0.0)

    def each(second: int) -> None:
        if second == 5:
            world.log(TOPIC, 0).start = end - 400
        if second == 10:
            world.groups[0].committed[TOPIC, 0] = end

    view = watch(world, 20, each)[-1]
    assert shown(view, "mailer").endswith("✕ lost records 500 records deleted before being read")
    assert content(summary(view, Options(), 80)) == "  GROUPS  ✕ 1 lost records: mailer"
    cells = OffsetRows(view, "mailer", Options()).row(0, view.snapshot.observation.ended_ms).cells
    assert content(cells[-1]).startswith("✕ lost records: 500 ")


def test_groups_without_a_verdict_are_counted_as_undecided() -> None:
    (end,) = ends(1)
    world = small_world(reader("mailer", end - 100 * 200, share=0.5), partitions=1)
    view = watch(world, 3)[-1]
    assert content(summary(view, Options(), 80)) == "  GROUPS  1 undecided"


def test_rows_in_trouble_are_those_whose_verdict_is_bad_or_who_lost_records() -> None:
    seen = set()
    for view in views(crash_script()):
        figures = view.offsets
        for group in view.snapshot.groups.group.tolist():
            rows = OffsetRows(view, group, Options())
            found = dict(zip(rows.keys, rows.in_trouble.tolist(), strict=True))
            table = view.snapshot.offsets
            for at in np.flatnonzero(table.group == group).tolist():
                key = str(table.topic[at]), int(table.partition[at])
                bad = severity(figures.verdict[at], int(figures.lost[at]), is_old=False) is not Severity.CALM
                assert found[key] == bad
                assert rows.keys[rows.find(key) or 0] == key
                seen.add(bad)
    assert seen == {True, False}


@running
async def test_below_the_groups_is_the_lag_of_the_selected_one() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        first = app.screen.query_one("#groups", Table).selected
        assert f"LAG of {first}" in text(app)
        app.screen.query_one("#groups", Table).focus()
        await press(pilot, ["down"])
        second = app.screen.query_one("#groups", Table).selected
        assert second != first and f"LAG of {second}" in text(app)
    async with dashboard(state(HEALTHY), size=(80, 24)) as (app, _):
        assert "LAG of" not in text(app), "a low screen has the list"
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["5"])
        names, edges = [], set()
        for _ in range(3):
            await press(pilot, ["down"])
            names.append(app.screen.query_one("#groups", Table).selected)
            edges.add(next(at for at, line in enumerate(lines(app)) if f"LAG of {names[-1]}" in line))
        assert len(set(names)) == 3 and len(edges) == 1, "groups of 4, 6 and 10 partitions: nothing moves"
    nothing = World([Node(0, "")], [], [])
    *_, empty = views([nothing.tick(), nothing.tick()])
    async with dashboard(empty) as (app, _):
        assert "LAG of" not in text(app), "there is no group"
