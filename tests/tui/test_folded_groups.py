"""Groups that do the same share a row on the screen, which opens and closes in place."""

from dataclasses import replace

import pytest

from kview.derive.groups.alike import Alike
from kview.tui.options import Options, Sort
from kview.tui.rows.columns import Column
from kview.tui.rows.groups import PANEL, GroupRows, Unfolding
from kview.tui.screens.groups import GroupsScreen
from kview.tui.text import Role, Span, content, line
from kview.tui.widgets.table import Table, _cell
from tests.tui.harness import dashboard, drawn_text, press, running, text
from tests.tui.test_screens import agrees, update
from tests.worlds.crowd import AUDIT, GROUPS, STOPPED, crowd

__all__ = ("update",)

ROOM = Unfolding(room=30)


def first_row(rows: GroupRows) -> str:
    cells = rows.row(0, 0).cells
    return " ".join(" ".join(content(cell) for cell in cells).split())


def test_the_row_has_the_number_of_groups_their_lag_together_and_the_worst_of_them() -> None:
    view = crowd()
    rows = GroupRows(view, Options(), ROOM)
    lag = int(view.groups.lag[:STOPPED].sum())
    said = first_row(rows)
    assert said.startswith(f"+ {STOPPED} like {AUDIT[0]} – {lag:,} ") and said.endswith(
        "▲ stopped no members"
    )
    assert len(rows) == GROUPS - STOPPED + 1 and rows.in_trouble.tolist() == [True] + [False] * (
        len(rows) - 1
    )


def test_a_row_that_is_opened_is_followed_by_the_groups_that_share_it() -> None:
    rows = GroupRows(crowd(), Options(), ROOM)
    key = rows.key(0)
    assert isinstance(key, Alike) and rows.example(key) == AUDIT[0]
    opened = GroupRows(crowd(), Options(), Unfolding(30, frozenset({key})))
    assert first_row(opened).startswith(f"− {STOPPED} like")
    assert list(opened.keys[1 : STOPPED + 1]) == AUDIT and len(opened) == GROUPS + 1


@pytest.mark.parametrize(
    "options", [Options(filter="audit"), Options(sorts={PANEL: Sort("lag", True)})], ids=["filter", "sort"]
)
def test_a_list_that_is_filtered_or_sorted_has_each_group(options: Options) -> None:
    rows = GroupRows(crowd(), options, ROOM)
    assert all(isinstance(key, str) for key in rows.keys) and set(AUDIT) <= set(rows.keys)


def test_an_export_has_each_group() -> None:
    assert len(GroupRows(crowd(), Options(), ROOM).whole()) == GROUPS


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@running
async def test_the_screens_with_two_thousand_groups(size: tuple[int, int], update: bool) -> None:
    async with dashboard(crowd(), size=size) as (app, pilot):
        agrees(f"folded_overview-{size[0]}x{size[1]}", drawn_text(app), update)
        await press(pilot, ["5"])
        agrees(f"folded_groups-{size[0]}x{size[1]}", drawn_text(app), update)


@running
async def test_enter_opens_the_row_and_escape_closes_it() -> None:
    async with dashboard(crowd()) as (app, pilot):
        await press(pilot, ["5"])
        assert f"+ {STOPPED} like {AUDIT[0]}" in text(app)
        await press(pilot, ["enter"])
        assert f"− {STOPPED} like {AUDIT[0]}" in text(app) and AUDIT[1] in text(app)
        listed = app.screen.query_one("#groups", Table)
        await press(pilot, ["j", "j"])
        assert listed.selected == AUDIT[1]
        await press(pilot, ["escape"])
        assert f"+ {STOPPED - 1} like {AUDIT[0]}" in text(app)
        assert listed.selected == AUDIT[1], "the selected one keeps its row"
        assert isinstance(app.screen, GroupsScreen) and not app.screen.fold_all(), "nothing is left to fold"


@running
async def test_escape_does_something_else_when_the_list_no_longer_has_the_row_that_was_opened() -> None:
    async with dashboard(crowd()) as (app, pilot):
        await press(pilot, ["5", "enter"])
        app.set_options(replace(app.options, sorts={PANEL: Sort("lag", True)}))
        await pilot.pause()
        assert isinstance(app.screen, GroupsScreen) and not app.screen.fold_all()


@running
async def test_a_taller_terminal_has_room_for_each_group() -> None:
    async with dashboard(crowd(40, 20), size=(120, 30)) as (app, pilot):
        await press(pilot, ["5"])
        listed = app.screen.query_one("#groups", Table)
        assert len(listed.rows) == 21
        await pilot.resize_terminal(120, 60)
        await pilot.pause()
        assert len(listed.rows) == 40
        await pilot.resize_terminal(120, 30)
        await pilot.pause()
        assert len(listed.rows) == 21


@running
async def test_a_row_that_groups_share_is_copied_as_the_group_that_they_are_like() -> None:
    async with dashboard(crowd()) as (app, pilot):
        await press(pilot, ["5", "y"])
        assert app.clipboard == AUDIT[0]


def test_a_name_that_is_cut_has_the_colour_of_its_first_part() -> None:
    cell = line(Span("+ 194 like ", Role.DIM), Span("a-group-with-a-long-name", Role.TEXT))
    (cut, *_) = _cell(cell, Column("group", "group", 12, name=True), 12)
    assert cut.role is Role.DIM and cut.text.startswith("+ 194")
