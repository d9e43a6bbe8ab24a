"""Which screens and panels hold a view: those that are shown. Others look the same when they come back."""

from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType
from typing import Any

import pytest
from msgspec import Struct
from textual.screen import Screen

from kview.derive.view import View
from kview.tui.rows.common import Keyed
from kview.tui.screens.group import GroupScreen
from kview.tui.screens.overview import OverviewScreen
from kview.tui.widgets.drawn import Drawn
from kview.tui.widgets.rack_strips import RackStrips
from kview.tui.widgets.table import Table
from tests.tui.harness import CRASH, FakeLab, dashboard, press, press_at_once, running, state, text
from tests.tui.inspecting import FakeInspector


def views_held(of: object, seen: set[int]) -> int:
    """Count the views that something holds, in its own attributes and in rows, tuples and functions there."""
    if id(of) in seen:
        return 0
    seen.add(id(of))
    if isinstance(of, View):
        return 1
    inner: Iterable[object] = ()
    if isinstance(of, dict):
        inner = of.values()
    elif isinstance(of, tuple | list | set | frozenset):
        inner = of
    elif isinstance(of, partial):
        inner = (of.func, *of.args)
    elif isinstance(of, FunctionType):
        inner = [cell.cell_contents for cell in of.__closure__ or ()]
    elif isinstance(of, Struct):
        inner = [getattr(of, name) for name in of.__struct_fields__]
    elif isinstance(of, Keyed):
        inner = vars(of).values()
    return sum(views_held(each, seen) for each in inner)


def views_of(screen: Screen[Any]) -> dict[str, int]:
    """Return how many views a screen and each of its widgets hold, if any."""
    held = {
        repr(each): sum(views_held(value, set()) for value in vars(each).values())
        for each in (screen, *screen.query(Drawn))
    }
    return {name: count for name, count in held.items() if count}


@pytest.mark.parametrize("key", "12345678")
@running
async def test_a_screen_holds_no_view_while_another_is_shown_and_is_the_same_afterwards(key: str) -> None:
    async with dashboard(state(CRASH), lab=FakeLab()) as (app, pilot):
        await press(pilot, [key, "down", "down"])
        screen, shown = app.screen, text(app)
        selected = [table.selected for table in screen.query(Table)]
        assert views_of(screen)
        await press(pilot, ["1" if key == "6" else "6"])
        assert screen is not app.screen
        assert views_of(screen) == {}
        await press(pilot, [key])
        assert [table.selected for table in screen.query(Table)] == selected
        assert text(app) == shown


@running
async def test_screens_that_lie_on_each_other_hold_no_view_but_the_one_that_is_shown() -> None:
    async with dashboard(state(CRASH), inspector=FakeInspector()) as (app, pilot):
        await press(pilot, ["5", "down"])
        ways: list[Callable[[], None]] = [
            lambda: app.go.group("fraud-check"),
            lambda: app.go.topic("invoice", 3),
            lambda: app.go.broker(1),
            lambda: app.go.partition("invoice", 3),
            lambda: app.go.position("fraud-check", "invoice", 3),
            app.go.help,
        ]
        below: list[tuple[Screen[Any], str, object]] = []
        for go in ways:
            below.append((app.screen, text(app), [table.selected for table in app.screen.query(Table)]))
            go()
            await pilot.pause()
            assert [views_of(screen) for screen in app.screen_stack[:-1]] == [{}] * len(below)
        for screen, shown, selected in reversed(below):
            press_at_once(app, ["escape"])
            await pilot.pause()
            assert app.screen is screen and views_of(screen)
            assert [table.selected for table in screen.query(Table)] == selected
            assert text(app) == shown


@running
async def test_what_comes_for_a_screen_that_is_not_shown_gives_it_no_view() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        app.go.group("fraud-check")
        await pilot.pause()
        group = app.screen
        assert isinstance(group, GroupScreen)
        app.go.topic("invoice")
        await pilot.pause()
        group.update()
        assert views_of(group) == {}


@running
async def test_a_list_over_a_screen_leaves_it_its_view() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        screen = app.screen
        await press(pilot, ["ctrl+p"])
        assert app.screen is not screen and views_of(screen)
        await app.go.to("topics")
        await pilot.pause()
        assert views_of(screen) == {}


@running
async def test_what_is_not_in_sight_on_a_screen_that_is_shown_holds_no_view() -> None:
    async with dashboard(state(CRASH), size=(150, 50)) as (app, pilot):
        for key, id in (("1", "groups"), ("5", "offsets"), ("3", "topic_groups")):
            await press(pilot, [key])
            table = app.screen.query_one(f"#{id}", Table)
            assert table.is_shown and len(table.rows)
            await pilot.resize_terminal(80, 16)
            await pilot.pause()
            assert not table.is_shown and not len(table.rows)
            await pilot.resize_terminal(150, 50)
            await pilot.pause()
            assert table.is_shown and len(table.rows)


@running
async def test_a_resize_moves_no_list_that_has_let_go_of_its_rows() -> None:
    async with dashboard(state(CRASH), size=(120, 16)) as (app, pilot):
        await press(pilot, ["4", *["pagedown"] * 3])
        table = app.screen.query_one("#partitions", Table)
        before = table.selected, table.index, table.scroll_offset.y
        assert table.scroll_offset.y
        await press(pilot, ["6"])
        table.on_resize()
        await press(pilot, ["4"])
        assert (table.selected, table.index, table.scroll_offset.y) == before


@running
async def test_a_screen_that_is_being_taken_away_draws_nothing() -> None:
    async with dashboard(state(CRASH)) as (app, _):
        screen = app.shown()
        assert isinstance(screen, OverviewScreen)
        await screen.query_one(RackStrips).remove()
        screen.display = False  # as of a screen that Textual removes
        screen.refit()
