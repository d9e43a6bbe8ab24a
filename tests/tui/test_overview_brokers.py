"""The overview's brokers: a sign for each if rows run out, the worst as rows, and the controllers."""

import re

import pytest
from msgspec.structs import replace

from kview.derive.view import View
from kview.language import glyphs
from kview.model.lab import Command, CommandKind
from kview.tui.rows.brokers import ControllerKey
from kview.tui.rows.rack_strips import strips
from kview.tui.text import content, line_width
from kview.tui.widgets.table import Table
from tests.tui.harness import CRASH, HEALTHY, FakeLab, dashboard, press, running, state, text, until
from tests.tui.many import lost_controller, many


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@running
async def test_thirty_brokers_are_all_in_sight_and_the_silent_ones_have_rows(size: tuple[int, int]) -> None:
    async with dashboard(many(crashed=(2, 19)), size=size) as (app, _):
        shown = text(app)
        assert "30 brokers, 2 not OK" in shown
        assert "R1 ●●✕●●●" in shown and "R4 ●✕●●●●" in shown
        table = app.screen.query_one("#brokers", Table)
        assert [key for key in table.in_sight if isinstance(key, int)][:2] == [2, 19]


@running
async def test_a_few_brokers_have_a_row_each_in_order_of_racks() -> None:
    async with dashboard(state(HEALTHY)) as (app, _):
        assert app.screen.query_one("#brokers", Table).keys == [0, 1, 2, 3, 4, 5]
        assert "all OK" not in text(app)


@running
async def test_brokers_out_of_sight_are_said_and_the_active_controller_is_in_sight() -> None:
    async with dashboard(controlled_by(8), size=(80, 24)) as (app, pilot):
        table = app.screen.query_one("#brokers", Table)
        rows = len(table.in_sight)
        assert rows < 9 and f"BROKERS  1–{rows} of 9 " in text(app)
        assert table.keys[0] == 8
        await press(pilot, ["end"])
        assert f"BROKERS  {10 - rows}–9 of 9 " in text(app)


def controlled_by(broker: int) -> View:
    """Nine brokers that are well, one of which is the active controller."""
    view = many(brokers=9)
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


@running
async def test_a_lost_controller_has_a_row_before_the_brokers_and_can_be_hit() -> None:
    lab = FakeLab()
    async with dashboard(lost_controller(), lab=lab, size=(120, 40)) as (app, pilot):
        rows = [
            line for line in text(app).splitlines() if re.search(r" 10[123] ", line) and "kview" not in line
        ]
        assert re.search(r"quorum +103 +✕ silent ≥\d+ s", "\n".join(rows)), text(app)
        assert any("● active" in row for row in rows)
        await press(pilot, ["home", "enter"])
        assert "controller 103 has no screen of its own" in text(app)
        await press(pilot, ["B"])
        await until(pilot, lambda: lab.commands, "a fault")
        assert lab.commands[0] == Command(CommandKind.START, 103)


@running
async def test_healthy_controllers_have_rows_only_on_a_high_screen() -> None:
    async with dashboard(state(HEALTHY), size=(200, 50)) as (app, _):
        table = app.screen.query_one("#brokers", Table)
        assert table.keys[:6] == [0, 1, 2, 3, 4, 5] and len(table.keys) == 9
        assert re.search(r"101 +● active", text(app)) and re.search(r"102 +○ voter", text(app))
    async with dashboard(state(HEALTHY), size=(120, 40)) as (app, _):
        assert len(app.screen.query_one("#brokers", Table).keys) == 6


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
            marked = [line for line in text(app).splitlines() if line.startswith("▸")]
            if not lab.commands:
                assert "needs a broker" in text(app) or "needs a selected broker" in text(app)
                continue
            assert len(marked) >= 1 and f" {lab.commands[0].node} " in marked[0], (size, lab.commands)
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


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
@running
async def test_on_a_small_screen_a_lost_controller_has_one_row_and_pushes_no_broker_out(
    size: tuple[int, int],
) -> None:
    async with dashboard(lost_controller(), size=size) as (app, _):
        shown = text(app)
        table = app.screen.query_one("#brokers", Table)
        assert re.search(r"quorum +103 +✕ silent", shown), shown
        assert not re.search(r"10[12] +[●○] (active|voter)", shown)
        in_sight = [key for key in table.in_sight if isinstance(key, int)]
        assert in_sight == [0, 1, 2, 3, 4, 5] or "6 brokers, all OK" in shown
