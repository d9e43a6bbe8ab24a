"""Hands: moving, sorting, the next row in trouble, copying, going anywhere by name, and the mouse."""

import re

import numpy as np
import pytest

from kview.derive.view import View
from kview.model.lab import Command, CommandKind
from kview.tui.fuzzy import Names, rank
from kview.tui.options import HOLD_MS, Options, Sort
from kview.tui.rows.partitions import PartitionRows
from kview.tui.widgets.table import Table
from tests.tui.harness import (
    CRASH,
    HEALTHY,
    FakeClock,
    FakeFeed,
    FakeLab,
    dashboard,
    press,
    running,
    script,
    state,
    text,
    until,
)


@running
async def test_letters_move_as_arrows_do() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        await press(pilot, ["tab", "j", "j", "k"])
        table = app.screen.query_one("#partitions", Table)
        assert table.selected == table.rows.key(1)
        await press(pilot, ["G"])
        assert table.selected == table.rows.key(len(table.rows) - 1)
        await press(pilot, ["g"])
        assert table.selected == table.rows.key(len(table.rows) - 1), "once does nothing"
        await press(pilot, ["g"])
        assert table.selected == table.rows.key(0)
        await press(pilot, ["ctrl+d"])
        at = table.rows.find(table.selected)
        assert at is not None and 1 < at < len(table.rows) - 1
        await press(pilot, ["ctrl+u"])
        assert table.selected == table.rows.key(0)


def by_hand(view: View, column: str, descending: bool) -> list[float]:
    """A column's known values in order."""
    values = {
        "watermark": view.snapshot.partitions.high_watermark,
        "uncommitted": view.partitions.uncommitted,
        "in": view.partitions.in_rate,
    }[column]
    known = [float(v) for v in values[~view.snapshot.partitions.internal] if np.isfinite(v) and v > -(2**62)]
    return sorted(known, reverse=descending)


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("column", ["watermark", "uncommitted", "in"])
def test_a_column_sorts_with_what_is_not_known_last(column: str, descending: bool) -> None:
    view = state(CRASH)
    rows = PartitionRows(view, Options(sorts={"partitions": Sort(column, descending)}))
    table = view.snapshot.partitions
    row_of = {
        (str(t), int(p)): at for at, (t, p) in enumerate(zip(table.topic, table.partition, strict=True))
    }
    values = {"watermark": table.high_watermark, "uncommitted": view.partitions.uncommitted}
    of = values.get(column, view.partitions.in_rate)
    shown = [float(of[row_of[key]]) for key in rows.keys]
    known = [value for value in shown if np.isfinite(value) and value > -(2**62)]
    assert known == by_hand(view, column, descending)
    assert shown[: len(known)] == known
    for index in range(len(rows)):
        assert rows.find(rows.key(index)) == index


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("keys", "table"),
    [([], "brokers"), (["tab"], "partitions"), (["5"], "groups"), (["2"], "grid"), (["2", "tab"], "topics"),
     (["6"], "rates"), (["5", "enter"], "offsets"), (["5", "enter", "shift+tab"], "members")],
)  # fmt: skip
@running
async def test_every_list_sorts_by_every_column_in_sight_and_both_ways(keys: list[str], table: str) -> None:
    async with dashboard(state(CRASH), size=(200, 50)) as (app, pilot):
        for key in keys:
            await press(pilot, [key])
        shown = await until(pilot, lambda: [*app.screen.query(f"#{table}").results(Table)], "the table")
        shown[0].focus()
        await pilot.pause()
        own = shown[0].keys
        wanted, seen = shown[0].sort_stops(), list[str]()
        assert wanted
        for _ in range(30):
            await press(pilot, ["s"])
            column = app.options.sort(shown[0].rows.panel).column
            if not column:
                break
            seen.append(column)
            assert re.search(r"by \S.* [▲▼]", text(app))
            before = shown[0].keys
            await press(pilot, ["r"])
            assert sorted(map(str, shown[0].keys)) == sorted(map(str, before))
        assert seen == wanted
        assert shown[0].keys == own, "the panel's own order is one of the stops"
        await press(pilot, ["r"])
        assert "reversed" in text(app) or shown[0].keys == own[::-1]


@running
async def test_a_sorted_list_keeps_its_order_while_its_figures_change() -> None:
    first, later = script()[50], script()[55]
    clock = FakeClock(first.snapshot.observation.ended_ms)
    async with dashboard(first, wall_ms=clock) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.focus()
        app.sort_by(table, "watermark")
        order = table.keys
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(later)
        await until(pilot, lambda: app.view is later, "the next view")
        assert table.keys == order
        assert app.options.held is first
        much_later = script()[50 + HOLD_MS // 1000]
        app.session.feed.show(much_later)
        await until(pilot, lambda: app.options.held is much_later, "another view holds the order")


@running
async def test_a_click_on_a_head_sorts_and_another_one_reverses() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        line = text(app).splitlines()[table.region.y]
        at = line.index("watermark") + 2 - table.region.x
        for descending in (True, False):
            await pilot.click(table, offset=(at, 0))
            await pilot.pause()
            assert app.options.sort("partitions") == Sort("watermark", descending)
        assert "watermark ▲" in text(app)


@running
async def test_the_next_row_in_trouble_is_selected_and_after_the_last_the_first() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.focus()
        app.sort_by(table, "p")
        troubled = [table.rows.key(int(at)) for at in np.flatnonzero(table.rows.in_trouble)]
        assert 1 < len(troubled) < len(table.rows)
        await press(pilot, ["G", "n"])
        seen = [table.selected]
        for _ in range(len(troubled) - 1):
            await press(pilot, ["n"])
            seen.append(table.selected)
        assert seen == troubled
        await press(pilot, ["n"])
        assert table.selected == troubled[0]
        assert f"row 1 of {len(troubled)} in trouble" in text(app)


@running
async def test_a_list_without_trouble_says_so() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["n"])
        assert "no row of this panel is in trouble" in text(app)


@running
async def test_copying_takes_the_name_and_then_the_row() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.focus()
        table.select(("invoice", 8))
        await press(pilot, ["y"])
        assert app.clipboard == "invoice-8"
        assert "copied invoice-8 · y again copies the whole row" in text(app)
        await press(pilot, ["y"])
        assert app.clipboard.startswith("invoice\t8\t") and "1,234,526" in app.clipboard
        await press(pilot, ["down", "y"])
        assert app.clipboard == "{}-{}".format(*table.selected)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("typed", "found"),
    [("ovr", "overview"), ("invoice-3", "invoice-3"), ("invoice 3", "invoice-3"), ("bill", "billing"),
     ("broker 4", "broker 4"), ("crash broker 0", "crash broker 0"), ("lose r2", "lose rack R2")],
)  # fmt: skip
@running
async def test_anything_is_found_by_part_of_its_name(typed: str, found: str) -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab()) as (app, pilot):
        before = text(app).splitlines()
        await press(pilot, ["colon", *(key.replace(" ", "space") for key in typed)])
        shown = text(app).splitlines()
        assert next(line for line in shown if "▸ " in line and "│▸" in line).split("▸ ")[-1].startswith(found)
        assert shown[0] == before[0] and shown[-4] == before[-4], "the screen below stays in sight"
        assert shown[-1] == " Enter go there  Esc cancel"


@running
async def test_going_to_a_partition_selects_it_and_a_fault_hits_its_broker() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["colon", *"invoice-3", "enter"])
        await until(pilot, lambda: "log start" in text(app), "the topic")
        assert app.screen.query_one("#partitions", Table).selected == ("invoice", 3)
        await press(pilot, ["colon", *"crash", "space", *"broker", "space", "2", "enter"])
        await until(pilot, lambda: lab.commands, "the fault")
        assert lab.commands == [Command(CommandKind.CRASH, 2)]


@running
async def test_the_screen_below_the_list_goes_on() -> None:
    async with dashboard(script()[50]) as (app, pilot):
        await press(pilot, ["colon"])
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(state(CRASH))
        await until(pilot, lambda: "broker 4 silent" in text(app), "the news")
        assert "GO TO" in text(app)


@running
async def test_a_real_cluster_offers_no_faults() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["colon", *"crash"])
        assert "nothing matches" in text(app)


def test_names_are_found_by_their_letters_the_best_first() -> None:
    names = Names(["orders", "order-items", "reorder", "o-r-d", "payments", "a\nb"])
    assert [name for _, name in names.found("order")] == ["orders", "order-items", "reorder"]
    assert [name for _, name in names.found("pmt")] == ["payments"]
    assert rank("overview", "overview") < rank("over", "overview") < rank("ovr", "overview")  # type: ignore[operator]
    assert rank("xyz", "overview") is None
    assert Names(["a" * 249] * 50).found("ab" * 10) == []


@running
async def test_the_wheel_scrolls_and_a_double_click_opens() -> None:
    async with dashboard(state(CRASH), size=(80, 24)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.scroll_rows(3)
        await pilot.pause()
        assert table.scroll_offset.y == 3
        first = table.rows.key(3)
        assert table.selected == first
        await pilot.click(table, offset=(6, 3), times=2)
        await until(pilot, lambda: len(app.screen_stack) == 2, "the topic")


@running
async def test_keys_of_the_key_line_can_be_clicked() -> None:
    async with dashboard(state(HEALTHY), size=(200, 50)) as (app, pilot):
        await press(pilot, ["3"])
        at = text(app).splitlines()[-1].index("5 groups")
        await pilot.click("#keys", offset=(at + 3, 0))
        await until(pilot, lambda: app.current_mode == "groups", "the screen")


@running
async def test_a_click_on_the_screens_offers_them_by_name() -> None:
    async with dashboard(state(HEALTHY), size=(80, 24)) as (app, pilot):
        at = text(app).splitlines()[-1].index("1–7 screens")
        await pilot.click("#keys", offset=(at + 3, 0))
        await until(pilot, lambda: "GO TO" in text(app), "the list of names")
