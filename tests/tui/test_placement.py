"""The placement screen: ← and → go through all topics, whatever happens to the order of the list, and above
the table stands whether the topic survives the loss of a rack."""

from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from kview.derive.view import View
from kview.language import replicas
from kview.model.snapshot import Reassignments
from kview.model.units import NO_BROKER
from kview.tui.app import KviewApp
from kview.tui.options import Options, Sort
from kview.tui.rows.columns import Column
from kview.tui.rows.common import replica_role
from kview.tui.rows.matrix import CELLS, MatrixRows
from kview.tui.rows.placement import PlaceRows, heading
from kview.tui.text import Role, content, width
from kview.tui.widgets.table import Table
from tests.tui.harness import (
    CRASH,
    FENCED,
    HEALTHY,
    FakeFeed,
    dashboard,
    press,
    running,
    state,
    text,
    until,
)
from tests.worlds import default_world, views
from tests.worlds.parts import Node, topic
from tests.worlds.reassignments import Moving
from tests.worlds.tables import table
from tests.worlds.world import World

BY_NAME = ["audit-log", "invoice", "payment", ""]
"""`` is the row of all topics."""


@cache
def healthy() -> View:
    """A view of a healthy cluster."""
    world = default_world()
    *_, view = views([world.tick(), world.tick()])
    return view


def listed(app: KviewApp) -> list[object]:
    """The topics in the order in which they are listed."""
    rows = app.screen.query_one("#topics", Table).rows
    return [rows.key(index) for index in range(len(rows))]


async def at_placement(app: KviewApp, pilot: Pilot[int]) -> None:
    """Go to the placement."""
    await press(pilot, ["2"])
    await until(pilot, lambda: "leads  copies" in text(app), "the placement")


async def show(app: KviewApp, pilot: Pilot[int], view: View) -> None:
    """Show another view."""
    assert isinstance(app.session.feed, FakeFeed)
    app.session.feed.show(view)
    await until(pilot, lambda: app.view is view, "the view")


async def steps(app: KviewApp, pilot: Pilot[int], key: str, number: int) -> list[object]:
    """Press a key several times, and return the topic that is selected each time."""
    seen = []
    for _ in range(number):
        await press(pilot, [key])
        seen.append(app.screen.query_one("#topics", Table).selected)
    return seen


@running
async def test_every_topic_comes_by_whatever_the_traffic() -> None:
    async with dashboard(healthy()) as (app, pilot):
        await at_placement(app, pilot)
        assert listed(app) == BY_NAME and "audit-log 4 partitions" in text(app)
        assert await steps(app, pilot, "right", 4) == ["invoice", "payment", "", "audit-log"]
        assert await steps(app, pilot, "left", 4) == ["", "payment", "invoice", "audit-log"]


@running
async def test_a_topic_in_trouble_comes_first_also_while_keys_are_pressed() -> None:
    world = default_world()
    world.tick()
    world.log("payment", 0).leader = -1
    *_, broken = views([world.tick(), world.tick()])
    async with dashboard(healthy()) as (app, pilot):
        await at_placement(app, pilot)
        await press(pilot, ["right"])
        await show(app, pilot, broken)
        assert listed(app) == ["payment", "audit-log", "invoice", ""]
        assert app.screen.query_one("#topics", Table).selected == "invoice", "the cursor stays on its topic"


@running
async def test_another_sort_order_is_in_force_at_once() -> None:
    async with dashboard(healthy()) as (app, pilot):
        await at_placement(app, pilot)
        await press(pilot, ["right", "tab", "s"])
        assert listed(app) == ["audit-log", "invoice", "payment", ""]
        await press(pilot, ["s"] * 4)
        assert "in rec/s ▼" in text(app)
        assert listed(app) == ["invoice", "payment", "audit-log", ""]


def cells_of(view: View, topic: str, broker: int) -> list[str]:
    """The cells of a broker in the placement table, without its rack, id and state."""
    rows = PlaceRows(view, Options(), topic)
    found = rows.find(broker)
    assert found is not None
    return [content(cell) for cell in rows.row(found, 0).cells[3:]]


def test_the_leader_is_marked_wherever_it_stands() -> None:
    view = state(FENCED)
    assert cells_of(view, "invoice", 0) == ["P0●  P6●", "P5", "P4"]
    assert cells_of(view, "invoice", 2) == ["P4●", "P3●  P9●", "P2  P8"], "moved there from broker 4"
    assert cells_of(view, "invoice", 4) == ["P3✕  P9✕", "P2✕  P8✕", "P1✕  P7✕"]


def test_a_cell_of_many_partitions_counts_them_and_names_those_in_trouble() -> None:
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    world = World(nodes, topic("many", 90, 3, 10.0, size=1_000), [])
    world.tick()
    moved = world.log("many", 0)
    moved.leader = moved.replicas[1]
    *_, view = views([world.tick(), world.tick()])
    first, second = moved.replicas[:2]
    assert cells_of(view, "many", first)[0] == "15, leads 14  P0"
    led = [cell for cell in cells_of(view, "many", second) if "leads 1 " in cell]
    assert len(led) == 1 and led[0].endswith(", leads 1  P0●")
    world.crash(first)
    *_, crashed = views([world.tick(), world.tick()])
    assert cells_of(crashed, "many", first)[0] == "15, leads 14  15✕", "all of them are in trouble"


WIDTH = 118
"""The width of the table at 120 columns."""


def drawn(view: View, topic: str, cells: int = WIDTH) -> dict[int, str]:
    """The cells of partitions by broker."""
    rows = MatrixRows(view, Options(), topic, cells)
    return {broker: content(rows.row(at, 0).cells[3]) for at, broker in enumerate(rows.keys)}


def head(view: View, topic: str, cells: int = WIDTH) -> str:
    """What stands above these cells."""
    columns: list[Column] = [*MatrixRows(view, Options(), topic, cells).columns]
    (column,) = (column for column in columns if column.key == CELLS)
    return column.title


@pytest.mark.parametrize("name", [HEALTHY, CRASH, FENCED, "moving"])
def test_a_cell_has_the_sign_and_the_role_that_the_replica_has_in_lists(name: str) -> None:
    view = Moving().look() if name == "moving" else state(name)
    table, figures = view.snapshot.partitions, view.partitions
    for name in set(table.topic.tolist()):
        rows = MatrixRows(view, Options(internal=True), name, WIDTH)
        numbers = np.flatnonzero(table.topic == name).tolist()
        for at, broker in enumerate(rows.keys):
            cells = rows.row(at, 0).cells[3]
            signs = [(sign, span.role) for span in cells for sign in span.text if sign != " "]
            for row, (sign, role) in zip(numbers, signs, strict=True):
                position = np.flatnonzero(table.replicas[row] == broker)
                if not len(position):
                    assert sign == "·"
                    continue
                expected = replicas.sign(table, figures, row, int(position[0]))
                if table.leader[row] == NO_BROKER:
                    assert (sign, role) == ("✕", Role.RISK) or expected == "✕", "it cannot be read"
                    continue
                leads = broker == table.leader[row]
                member = bool(figures.in_isr[row, position[0]]) or bool(leads)
                assert sign == expected
                if sign == "●":
                    assert role is (Role.BRIGHT if position[0] else Role.TEXT)
                elif sign == "○":
                    assert role is (Role.DIM if position[0] else Role.PREFERRED)
                else:
                    assert role is replica_role(sign, member)


def test_racks_are_bands_and_a_rack_is_named_once() -> None:
    rows = MatrixRows(state(HEALTHY), Options(), "invoice", WIDTH)
    seen = [(content(row.cells[0]), row.is_tinted) for row in (rows.row(at, 0) for at in range(6))]
    assert seen == [("R1", False), ("", False), ("", False), ("R2", True), ("", True), ("", True)]
    by_state = Options(sorts={"matrix": Sort("state", False)})
    rows = MatrixRows(state(CRASH), by_state, "invoice", WIDTH)
    seen = [(content(row.cells[0]), row.is_tinted) for row in (rows.row(at, 0) for at in range(6))]
    assert seen[:2] == [("R2", False), ("R1", False)] and len({tinted for _, tinted in seen}) == 1


def test_many_partitions_share_cells_and_the_worst_one_is_drawn() -> None:
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    world = World(nodes, topic("many", 600, 3, 1.0), [])
    *_, view = views([world.tick(), world.tick()])
    cells = drawn(view, "many")
    assert {len(line) for line in cells.values()} == {90} and set("".join(cells.values())) <= set("●○·")
    assert head(view, "many").split()[0] == "0" and width(head(view, "many")) <= 90
    world.log("many", 599).leader, world.log("many", 599).isr = -1, []
    *_, view = views([world.tick(), world.tick()])
    copies = world.log("many", 599).replicas
    assert {broker for broker, line in drawn(view, "many").items() if line.endswith("✕")} == set(copies)
    rows = MatrixRows(view, Options(), "many", WIDTH)
    assert {rows.partition_at(broker, 89) for broker in copies} == {("many", 599)}, (
        "the worst one of its cell"
    )
    others = [broker for broker in rows.keys if broker not in copies]
    assert ("many", 599) not in {rows.partition_at(broker, 89) for broker in others}, "they have none of it"
    assert rows.partition_at(copies[0], 90) is None and rows.partition_at(0, 0) == ("many", 0)


def test_numbers_of_partitions_stand_above_their_cells() -> None:
    assert head(state(HEALTHY), "invoice").split() == [str(number) for number in range(10)]
    assert head(state(HEALTHY), "invoice").index("9") == drawn(state(HEALTHY), "invoice")[5].rindex("○")
    assert head(state(HEALTHY), "").split() == ["audit-log", "invoice", "payment"], "of all topics, names"


@running
async def test_a_click_on_a_cell_selects_the_partition_and_a_second_one_opens_it() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        await at_placement(app, pilot)
        await press(pilot, ["right"])
        grid = app.screen.query_one("#grid", Table)
        await pilot.click(grid, offset=(13 + 7 * 3, 4))
        placed = app.screen.query_one("#placed", Table)
        assert grid.selected == 3 and placed.selected == ("invoice", 7)
        await pilot.click(grid, offset=(13 + 7 * 3, 4), times=2)
        await until(pilot, lambda: "invoice-7" in text(app), "the partition")


@running
async def test_below_are_the_partitions_of_the_topic_or_of_the_selected_broker() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        await at_placement(app, pilot)
        assert "PARTITIONS 4 of audit-log" in text(app)
        await press(pilot, ["right"])
        assert "PARTITIONS 10 of invoice\n" in text(app)
        await press(pilot, ["down"] * 4)
        assert "PARTITIONS 6 of invoice on broker 4" in text(app)
        await press(pilot, ["left", "left"])
        assert "PARTITIONS 20  1–" in text(app), "of all topics"


def said_to_be_rack_safe(view: View, topic: str) -> str:
    """What the placement says above its table about racks."""
    said = content(heading(view, Options(), topic, 118)).split(" · ")
    return next(each for each in said if "rack-safe" in each)


def test_rack_safe_has_three_answers() -> None:
    snapshot = default_world().tick()
    table = snapshot.partitions
    replicas = table.replicas.copy()
    replicas[np.flatnonzero(table.topic == "invoice")[0]] = [0, 1, 2]
    (view,) = views([replace(snapshot, partitions=replace(table, replicas=replicas))])
    assert said_to_be_rack_safe(view, "payment") == "rack-safe ●"
    assert said_to_be_rack_safe(view, "invoice") == "not rack-safe ✕ 1 partition"
    assert said_to_be_rack_safe(view, "audit-log") == "rack-safe –", "one replica"
    for racks in ([""] * 6, ["R1"] * 6):
        brokers = replace(snapshot.brokers, rack=np.array(racks, object))
        (view,) = views([replace(snapshot, brokers=brokers)])
        assert said_to_be_rack_safe(view, "payment") == "rack-safe –", racks


def test_replicas_that_are_added_and_removed_are_told_from_the_others() -> None:
    scene = Moving()
    rows = PlaceRows(scene.look(), Options(), "orders")
    cells = {
        broker: [content(cell) for cell in rows.row(at, 0).cells][3:] for at, broker in enumerate(rows.keys)
    }
    assert (cells[1], cells[2]) == (["P0⊕", "P1", ""], ["", "P0⊕", ""])
    assert cells[0] == ["", "", "P0●"], "it leads until it is removed"
    assert "⊕ 2 being added, ⊖ 1 being removed" in content(heading(scene.look(), Options(), "orders", 140))
    scene.log.leader, scene.log.isr = 1, [0, 1]
    rows = PlaceRows(scene.look(), Options(), "orders")
    assert content(rows.row(list(rows.keys).index(0), 0).cells[5]) == "P0⊖"
    scene.log.isr, scene.log.stalled = [1], frozenset({0, 2})
    rows = PlaceRows(scene.look(), Options(), "orders")
    assert content(rows.row(list(rows.keys).index(0), 0).cells[5]) == "P0◌", "out of sync is worse"


@pytest.mark.parametrize(("change", "sign"), [("adding", "⊕"), ("removing", "⊖")])
def test_many_replicas_that_are_moved_are_counted_apart(change: str, sign: str) -> None:
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    world = World(nodes, topic("many", 120, 3, 1.0), ())
    keys = [log for log in world.logs if 5 in log.replicas]
    if change == "adding":
        for log in keys:
            log.isr, log.stalled = [id for id in log.replicas if id != 5], frozenset({5})
    moved = {"topic": "many", "adding": [], "removing": []}
    moves = [{**moved, "partition": log.partition, change: [5]} for log in keys]
    (view,) = views([replace(world.tick(), reassignments=table(Reassignments, moves))])
    rows = PlaceRows(view, Options(), "many")
    cells = " ".join(content(cell) for cell in rows.row(list(rows.keys).index(5), 0).cells)
    assert f"20{sign}" in cells and "◌" not in cells


def test_a_broker_that_is_in_replica_lists_only_has_a_row() -> None:
    snapshot = default_world().tick()
    kept = snapshot.brokers.id != 4
    brokers = replace(
        snapshot.brokers,
        **{name: getattr(snapshot.brokers, name)[kept] for name in type(snapshot.brokers).__struct_fields__},
    )
    (view,) = views([replace(snapshot, brokers=brokers)])
    rows = MatrixRows(view, Options(), "invoice", WIDTH)
    assert 4 in list(rows.keys)
    row = rows.row(list(rows.keys).index(4), 0)
    assert content(row.cells[2]) == "✕" and content(row.cells[-1]) == "not listed"
    assert content(row.cells[3]).split().count("·") == 4


def test_the_words_of_the_state_go_after_wide_cells() -> None:
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    *_, view = views([World(nodes, topic("many", 40, 1, 1.0), []).tick()])
    columns = MatrixRows(view, Options(), "many", WIDTH).columns
    (cells,) = (column for column in columns if column.key == CELLS)
    assert cells.width == 40, "one cell each leaves room for the words"
