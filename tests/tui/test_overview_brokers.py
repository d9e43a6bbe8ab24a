"""The overview's brokers: a sign for each if rows run out, the worst as rows, and the controllers."""

import re

import pytest
from msgspec.structs import replace
from rich.style import Style

from kview.derive.view import View
from kview.language import glyphs
from kview.model.lab import Command, CommandKind
from kview.tui.rows.brokers import ControllerKey
from kview.tui.rows.rack_strips import strips
from kview.tui.rows.tiles import Box
from kview.tui.text import Role, content, line_width
from kview.tui.widgets.racks import Racks
from kview.tui.widgets.table import Table
from tests.tui.harness import (
    CRASH,
    FENCED,
    HEALTHY,
    FakeLab,
    dashboard,
    drawn_lines,
    lines,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.many import lost_controller, many
from tests.worlds import default_world, views


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
@running
async def test_on_a_small_screen_thirty_brokers_are_signs_and_the_silent_ones_have_rows(
    size: tuple[int, int],
) -> None:
    async with dashboard(many(crashed=(2, 19)), size=size) as (app, _):
        shown = text(app)
        assert "30 brokers, 2 not OK" in shown
        assert "R1 ●●✕●●●" in shown and "R4 ●✕●●●●" in shown
        table = app.screen.query_one("#brokers", Table)
        assert [key for key in table.in_sight if isinstance(key, int)][:2] == [2, 19]


@pytest.mark.parametrize(("size", "keys"), [((60, 15), []), ((200, 50), []), ((120, 40), ["2"])])
@running
async def test_rack_2_is_before_rack_10(size: tuple[int, int], keys: list[str]) -> None:
    async with dashboard(many(brokers=12, racks=12), size=size) as (app, pilot):
        await press(pilot, keys)
        named = re.findall(r"\bR([0-9]+)\b", text(app) if keys else "\n".join(drawn_lines(app)))
        assert list(dict.fromkeys(named)) == [str(rack) for rack in range(1, 13)]


@pytest.mark.parametrize("size", [(120, 40), (200, 50)])
@running
async def test_on_a_large_screen_thirty_brokers_have_a_tile_each(size: tuple[int, int]) -> None:
    async with dashboard(many(crashed=(2, 19)), size=size) as (app, _):
        table = app.screen.query_one("#brokers", Table)
        assert sorted(key for key in table.in_sight if isinstance(key, int)) == list(range(30))
        shown = "\n".join(drawn_lines(app))
        assert "▸0 ●" in shown and re.search(r" 2 ✕ silent \d+ s", shown)
        assert re.search(r"RACK R1 ─+ ✕ 5 of 6 (brokers answer )?─", shown)
        assert re.search(r"RACK R5 ─+ ● 6 (brokers answer )?─", shown)


@running
async def test_a_few_brokers_have_a_tile_each_in_their_racks_and_keep_it_in_a_crash() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        table = app.screen.query_one("#brokers", Table)
        assert [key for key in table.keys if isinstance(key, int)] == [0, 1, 2, 3, 4, 5]

        def found() -> list[tuple[int, int]]:
            places = r"RACK R1|RACK R2|quorum|[0-5] [●✕]"
            drawn = enumerate(drawn_lines(app)[2:8])
            return [(at, found.start()) for at, shown in drawn for found in re.finditer(places, shown)]

        places = found()
        app.session.feed.show(state(CRASH))  # type: ignore[attr-defined]
        await until(pilot, lambda: "4 ✕ silent" in text(app), "the crash")
        assert found() == places and len(places) >= 9
        assert "●●●● ○○○○○○" in text(app) and "✕✕✕✕ ○○○○○○" in text(app)


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (["right"], 1),
        (["right", "right", "right"], 3),
        (["right"] * 9, 5),
        (["down"], ControllerKey(101)),
        (["right", "right", "down"], ControllerKey(103)),
        (["down", "up"], 0),
        (["up"], 0),
        (["left"], 0),
    ],
)
@running
async def test_arrows_go_to_the_next_tile(keys: list[str], selected: object) -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, keys)
        assert app.screen.query_one("#brokers", Table).selected == selected


@pytest.mark.parametrize(
    ("keys", "selected"), [(["down"], 3), (["right", "down"], 4), (["down", "down"], ControllerKey(101))]
)
@running
async def test_racks_above_each_other_are_reached_with_up_and_down(keys: list[str], selected: object) -> None:
    async with dashboard(state(HEALTHY), size=(80, 24)) as (app, pilot):
        await press(pilot, keys)
        assert app.screen.query_one("#brokers", Table).selected == selected


@running
async def test_a_click_selects_a_tile_and_a_double_click_opens_it() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        table = app.screen.query_one("#brokers", Racks)
        placed = table.arranged
        assert placed is not None
        box = placed.tiles[4]
        await pilot.click(table, offset=(box.x + 3, box.y + 2))
        assert table.selected == 4
        await pilot.click(table, offset=(box.x + 3, box.y + 2), times=2)
        await until(pilot, lambda: "REPLICAS" in text(app), "the broker")
        assert "  broker 4  ●" in text(app)


def styles_in(table: Racks, box: Box) -> list[Style]:
    """The styles of what is drawn in a box, line by line."""
    strips = [table.render_line(y).crop(box.x, box.x + box.width) for y in range(box.y, box.y + box.height)]
    return [segment.style for strip in strips for segment in strip if segment.style]


@running
async def test_a_lost_rack_is_one_solid_box() -> None:
    async with dashboard(rack_lost()) as (app, _):
        table, alert = app.screen.query_one("#brokers", Racks), app.palette.style(Role.ALERT)
        placed = table.arranged
        assert placed is not None
        for rack, wanted in ((placed.racks[0], False), (placed.racks[1], True)):
            behind = {style.bgcolor for style in styles_in(table, rack)}
            assert (behind == {alert.bgcolor}) == wanted, behind


@running
async def test_the_tile_of_a_broker_that_needs_attention_is_tinted_also_if_it_is_selected() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        table = app.screen.query_one("#brokers", Racks)
        placed = table.arranged
        assert placed is not None

        def behind(broker: int) -> set[object]:
            return {style.bgcolor for style in styles_in(table, placed.tiles[broker])}

        tint = {app.palette.warned.bgcolor}
        assert behind(4) == tint and behind(3) == {app.palette.marked.bgcolor}
        await press(pilot, ["right"] * 4)
        assert table.selected == 4 and behind(4) == tint | {app.palette.style(Role.MOMENT).bgcolor}, (
            "but for ▸"
        )
        assert "▸4 ✕ fenced" in "".join(drawn_lines(app)), "and the selection has its mark"


@running
async def test_a_solid_tile_is_never_bold_with_16_colours() -> None:
    async with dashboard(state(CRASH), few_colors=True) as (app, pilot):
        await press(pilot, ["right"] * 4)
        table = app.screen.query_one("#brokers", Racks)
        placed = table.arranged
        assert placed is not None and table.selected == 4
        alert = app.palette.style(Role.ALERT)
        mark, *others = styles_in(table, placed.tiles[4])
        assert mark.bgcolor == app.palette.style(Role.MOMENT).bgcolor, "the selection is seen on red, too"
        assert all(style.bgcolor == alert.bgcolor and not style.bold for style in others)


def rack_lost() -> View:
    """The cluster when all brokers of R2 are silent."""
    world = default_world()
    snapshots = [world.tick() for _ in range(3)]
    for broker in (3, 4, 5):
        world.crash(broker)
    snapshots += [world.tick() for _ in range(4)]
    *_, view = views(snapshots)
    return view


@running
async def test_sorted_brokers_are_a_table_and_their_own_order_brings_the_tiles_back() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        table = app.screen.query_one("#brokers", Racks)
        while app.options.sort("brokers").column != "in":
            await press(pilot, ["s"])
        assert table.arranged is None and "in rec/s" in text(app)
        while app.options.sort("brokers").column:
            await press(pilot, ["s"])
        assert table.arranged is not None


@running
async def test_brokers_out_of_sight_are_said_and_the_active_controller_is_in_sight() -> None:
    async with dashboard(controlled_by(28), size=(80, 24)) as (app, pilot):
        table = app.screen.query_one("#brokers", Table)
        rows = len(table.in_sight)
        assert rows < 9 and re.search(rf"BROKERS worst first +1–{rows} of 30$", text(app), re.MULTILINE)
        assert table.keys[0] == 28
        await press(pilot, ["end"])
        assert re.search(rf"BROKERS worst first +{31 - rows}–30 of 30$", text(app), re.MULTILINE)


def controlled_by(broker: int) -> View:
    """Thirty brokers that are well, one of which is the active controller."""
    view = many(brokers=30)
    return replace(view, brokers=replace(view.brokers, is_controller=view.snapshot.brokers.id == broker))


@pytest.mark.parametrize("cells", [40, 60, 78, 116, 200])
@pytest.mark.parametrize(("brokers", "racks"), [(30, 5), (200, 4), (7, 0), (60, 60), (1, 1)])
def test_the_strips_fit_and_no_broker_in_trouble_is_left_out(cells: int, brokers: int, racks: int) -> None:
    view = many(crashed=(0,), brokers=brokers, racks=racks, topics=2)
    for most in (1, 3):
        made = strips(view, cells, most, view.snapshot.observation.ended_ms)
        assert 1 <= len(made) <= most
        assert all(line_width(line) <= cells for line in made)
        said = "".join(content(line) for line in made)
        assert f"{brokers} broker" in said
        if glyphs.ELLIPSIS not in said:
            signs = said.count(glyphs.OK) + said.count(glyphs.DEAD)
            assert signs == brokers or re.search(rf"{glyphs.DEAD}\d", said)
            assert glyphs.DEAD in said


@running
async def test_the_list_of_brokers_stays_at_its_top_until_the_user_scrolls() -> None:
    async with dashboard(many(brokers=30), size=(80, 24)) as (app, pilot):
        table = app.screen.query_one("#brokers", Table)
        await press(pilot, ["2", "1"])
        app.session.feed.show(many(crashed=(2, 19)))  # type: ignore[attr-defined]
        await until(pilot, lambda: table.keys[:2] == [2, 19], "the silent ones at the top")
        assert table.selected == 2
        await press(pilot, ["end"])
        assert table.scroll_offset.y > 0
        selected = table.selected
        app.session.feed.show(many(brokers=30))  # type: ignore[attr-defined]
        await until(pilot, lambda: "2 not OK" not in text(app), "all OK")
        assert table.selected == selected


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@running
async def test_controllers_have_a_tile_each_below_the_brokers_and_can_be_hit(size: tuple[int, int]) -> None:
    lab = FakeLab()
    async with dashboard(lost_controller(), lab=lab, size=size) as (app, pilot):
        shown = next(line for line in lines(app) if re.match(" +quorum ", line))
        assert re.search(r"101 ● active +102 ○ voter +103 ✕ silent ≥", shown), shown
        await press(pilot, ["end", "enter"])
        assert "controller 103 has no screen of its own" in text(app)
        await press(pilot, ["B"])
        await until(pilot, lambda: lab.commands, "a fault")
        assert lab.commands[0] == Command(CommandKind.START, 103)


@running
async def test_a_fault_hits_what_is_marked_after_the_terminal_was_resized() -> None:
    lab, view = FakeLab(), state(HEALTHY)
    async with dashboard(view, lab=lab, size=(200, 50)) as (app, pilot):
        table = app.screen.query_one("#brokers", Table)
        controller = table.rows.key(len(table.rows) - 1)
        assert isinstance(controller, ControllerKey) and table.select(controller)
        for size in [(120, 40), (80, 24), (60, 15), (200, 50), (60, 20), (120, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            lab.commands.clear()
            await press(pilot, ["K"])
            marked = [line for line in text(app).splitlines() if "▸" in line[:-1] and "kview" not in line]
            if not lab.commands:
                assert "needs a broker" in text(app) or "needs a selected broker" in text(app)
                continue
            assert re.search(rf"▸ *{lab.commands[0].node} ", marked[0]), (size, lab.commands, marked)
            await press(pilot, ["X"])
            racks = {
                int(b): str(r)
                for b, r in zip(view.snapshot.brokers.id, view.snapshot.brokers.rack, strict=True)
            }
            hit = lab.commands[0].node
            if len(lab.commands) > 1:
                assert lab.commands[1].name == racks[hit], "the rack of the broker that is marked"
            else:
                assert hit not in racks and f"controller {hit} has no rack" in text(app)


@running
async def test_a_table_without_room_for_its_selected_row_aims_at_nothing() -> None:
    lab = FakeLab()
    async with dashboard(state(CRASH), lab=lab) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.focus()
        table.styles.height = 1
        await until(pilot, lambda: table.size.height <= 1, "no room for rows")
        await press(pilot, ["K"])
        assert lab.commands == [] and "needs a broker" in text(app)


@running
async def test_rows_are_clicked_once_where_brokers_are_a_table() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        table = app.screen.query_one("#brokers", Racks)
        while app.options.sort("brokers").column != "rack":
            await press(pilot, ["s"])
        assert table.arranged is None
        await pilot.click(table, offset=(10, 3))
        assert table.selected == 2
        await pilot.click(table, offset=(10, 3), times=2)
        await until(pilot, lambda: "REPLICAS" in text(app), "the broker")
        assert len(app.screen_stack) == 2, "opened once"
