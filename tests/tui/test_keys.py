"""Keys: help and palette are made from the bindings; filter, sort, internal topics, screens, ways back."""

import re

import pytest

from kview.model.lab import Command, CommandKind
from kview.tui.actions import Kind, conflict
from kview.tui.faults import FAULTS_BY_KEY
from kview.tui.keys import ACTIONS, APP_BINDINGS, DEFAULT_KEYS
from kview.tui.screens.help import entries
from kview.tui.screens.topic import TopicScreen
from kview.tui.text import content, line_width
from kview.tui.widgets.key_line import key_line
from kview.tui.widgets.table import Table
from tests.tui.harness import (
    CRASH,
    HEALTHY,
    FakeLab,
    FakeTimeline,
    dashboard,
    press,
    press_at_once,
    running,
    state,
    text,
    until,
)
from tests.tui.moments import paused


@pytest.mark.parametrize(
    ("keys", "shows"), [([], "EVENTS"), (["2"], "leads  copies"), (["5"], "write/s"), (["6"], "  cluster")]
)
@running
async def test_help_lists_every_key_of_its_screen(keys: list[str], shows: str) -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab(), size=(99, 150)) as (app, pilot):
        await press(pilot, keys)
        await until(pilot, lambda: shows in text(app), "the screen")
        bindings = [entry.binding for entry in app.screen.active_bindings.values() if entry.enabled]
        await press(pilot, ["question_mark"])
        shown = text(app)
        for binding in bindings:
            assert binding.tooltip or binding.description, binding
            said = (binding.tooltip or binding.description).split()
            assert " ".join(said[:4]) in " ".join(shown.split()), binding
        for fault in FAULTS_BY_KEY.values():
            if not keys or keys == ["2"]:
                assert f"Undo: {DEFAULT_KEYS.said(fault.undo)}" in " ".join(shown.split())


def test_help_is_made_of_the_bindings() -> None:
    made = entries(APP_BINDINGS, DEFAULT_KEYS)
    faults = {DEFAULT_KEYS.name(action.name) for action in ACTIONS if action.kind is Kind.FAULT}
    assert faults <= {entry.key for entry in made}


def test_no_key_has_two_actions_on_a_screen() -> None:
    assert conflict(ACTIONS, {}) is None


@pytest.mark.parametrize("keys", [[], ["2"], ["5"], ["5", "enter"], ["6"]])
@running
async def test_help_explains_signs_words_and_figures_before_keys_without_scrolling(keys: list[str]) -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab(), timeline=FakeTimeline()) as (app, pilot):
        await press(pilot, [*keys, "question_mark"])
        shown = text(app)
        assert not re.search(r"\d+–\d+ of \d+", shown), "all lines are in sight"
        for part in ("SIGNS", "WORDS", "FIGURES on this screen", "KEYS", "TIME", "NAVIGATION"):
            assert part in shown, f"{part}\n{shown}"
        assert "preferred leader  the first broker in the replica list" in shown
        figure = {"6": "× mean  the busiest", "5": "read/s  records that"}.get(
            "".join(keys)[:1], "in rec/s  "
        )
        assert figure in shown


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("cells", [20, 60, 80, 120, 300])
def test_the_key_line_fits_and_keeps_help_and_quit(cells: int, live: bool) -> None:
    one_a_key = {binding.key: binding for binding in APP_BINDINGS if binding.show}
    made = key_line(list(one_a_key.values()), DEFAULT_KEYS, cells, live)
    assert line_width(made) <= cells
    assert content(made).rstrip().endswith("q quit  ? help")


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ([], ["K crash", "Enter open"]),
        (["2"], ["b by place", "←→ topic"]),
        (["3"], ["Enter open", "/ filter"]),
        (["3", "enter"], ["←→ tab", "m records", "e settings", "Enter open"]),
        (["4", "enter"], ["z zoom", "m records", "←→ partition", "Esc back"]),
        (["6"], ["←→ list", "w time"]),
        (["7"], ["v that moment", "Enter open"]),
    ],
)
@running
async def test_a_small_screen_shows_its_own_keys_first_and_help_last(
    keys: list[str], wanted: list[str]
) -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab(), size=(60, 15)) as (app, pilot):
        await press(pilot, keys)
        shown = text(app).splitlines()[-1]
        assert all(key in shown for key in wanted) and shown.endswith("? help"), shown


@running
async def test_later_screens_have_no_keys_yet() -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab(), size=(200, 50)) as (app, pilot):
        last = text(app).splitlines()[-1]
        assert "1–8 screens" in last
        before = text(app).splitlines()
        for key in ("D", "z", "f7"):
            await press(pilot, [key])
            shown = text(app).splitlines()
            assert shown[-2].strip() == f"{key.replace('f7', 'F7')} does nothing here · ? lists the keys"
            assert (shown[:-2], shown[-1]) == (before[:-2], before[-1])


@running
async def test_the_filter_narrows_topics_and_groups() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["slash", *"pay"])
        table = app.screen.query_one("#partitions", Table)
        assert {key[0] for key in table.rows.keys} == {"payment"}  # type: ignore[attr-defined]
        assert "/pay" in text(app)
        groups = app.screen.query_one("#groups", Table)
        offsets = state(HEALTHY).snapshot.offsets
        assert set(groups.keys) == set(offsets.group[offsets.topic == "payment"]), "those that read payment"
        assert text(app).splitlines()[-1].startswith(" Enter keep  Esc clear  ")
        await press(pilot, ["enter"])
        assert app.focused is not None and app.focused.id == "brokers"
        assert {key[0] for key in table.rows.keys} == {"payment"}  # type: ignore[attr-defined]
        for screen in ("2", "5", "6", "1"):
            await press(pilot, [screen])
            assert "filter /pay  Esc clears it" in text(app)
        await press(pilot, ["escape"])
        assert len(table.rows) == 20


@running
async def test_a_screen_without_a_filtered_list_says_nothing_of_the_filter_and_keeps_it() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["3", "slash", *"pay", "enter", "enter"])
        await until(pilot, lambda: isinstance(app.screen, TopicScreen), "the topic")
        assert "filter" not in text(app)
        await press(pilot, ["slash"])
        assert "nothing here is filtered" in text(app)
        await press(pilot, ["escape"])
        await until(pilot, lambda: not isinstance(app.screen, TopicScreen), "the list of topics")
        assert "filter /pay  Esc clears it" in text(app)


@running
async def test_letters_typed_into_the_filter_are_not_commands() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["slash", "K", "X", "q", "t", "1"])
        assert lab.commands == []
        assert app.options.filter == "KXqt1"
        assert app.is_running


@running
async def test_keys_that_arrive_together_mean_what_they_mean_one_by_one() -> None:
    lab, timeline = FakeLab(), FakeTimeline()
    async with dashboard(state(HEALTHY), lab=lab, timeline=timeline) as (app, pilot):
        press_at_once(app, ["slash", *"KXq1", "enter"])
        await until(pilot, lambda: app.options.filter == "KXq1" and isinstance(app.focused, Table), "filter")
        press_at_once(app, ["escape", "ctrl+s", *"KX", "enter"])
        await until(pilot, lambda: timeline.asked == [("keep", "KX")], "a name")
        press_at_once(app, ["question_mark", "K"])
        await until(pilot, lambda: "HELP" in text(app), "help")
        press_at_once(app, ["escape", "ctrl+p", "K"])
        await until(pilot, lambda: "GO TO" in text(app), "commands")
        assert lab.commands == []
        press_at_once(app, ["escape", "5", "2", "down", "K", "1", "K"])
        await until(pilot, lambda: len(lab.commands) > 1, "faults")
        assert [command.node for command in lab.commands] == [1, 0], "in Placement, in the overview"


@running
async def test_sorting_keeps_the_selected_row() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.focus()
        table.select(("invoice", 8))
        for _ in range(4):
            await press(pilot, ["s"])
            assert table.selected == ("invoice", 8)


@running
async def test_internal_topics_show_on_demand() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        assert len(table.rows) == 20
        await press(pilot, ["i"])
        assert len(table.rows) == 70
        await press(pilot, ["i"])
        assert len(table.rows) == 20


@running
async def test_enter_goes_deeper_and_escape_back() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        await press(pilot, ["tab"])
        app.screen.query_one("#partitions", Table).select(("invoice", 8))
        await press(pilot, ["enter"])
        shown = text(app)
        assert "invoice-8  ▮ frozen 3 s" in shown and "log start" in shown
        await press(pilot, ["escape"])
        assert "GROUPS" in text(app)
        await press(pilot, ["tab", "enter"])
        assert "CURRENT-OFFSET" in text(app) and "MEMBERS" in text(app)
        table = app.screen.query_one("#offsets", Table)
        await press(pilot, ["down"])
        assert isinstance(table.selected, tuple)
        assert re.search(rf"^  invoice-{table.selected[1]}  ✕ blocked: [^…]+$", text(app), re.MULTILINE)
        await press(pilot, ["enter"])
        assert re.search(
            r"^  invoice-\d+  ▮ frozen 3 s|^  invoice-\d+  ✕ leader silent", text(app), re.MULTILINE
        )
        await press(pilot, ["escape", "escape"])
        app.screen.query_one("#brokers", Table).focus()
        await press(pilot, ["right", "enter"])
        await until(pilot, lambda: "REPLICAS" in text(app), "the broker")
        assert "  broker 1  ● up" in text(app)


@running
async def test_escape_leaves_the_question_then_the_filter_then_the_screen_then_the_moment() -> None:
    timeline = FakeTimeline()
    async with dashboard(paused(HEALTHY), timeline=timeline) as (app, pilot):
        await press(pilot, ["5", "enter", "slash", *"invoice", "enter", "at", *"14"])
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")

        def stands() -> tuple[bool, str, int, list[tuple[str | int, ...]]]:
            asks = app.screen.has_class("-asking")
            return asks, app.options.filter, len(app.screen_stack), timeline.asked

        assert stands() == (True, "invoice", 2, [])
        await press(pilot, ["escape"])
        assert stands() == (False, "invoice", 2, [])
        await press(pilot, ["escape"])
        assert stands() == (False, "", 2, [])
        await press(pilot, ["escape"])
        assert stands() == (False, "", 1, [])
        await press(pilot, ["escape"])
        assert stands() == (False, "", 1, [("live",)])


@running
async def test_escape_leaves_a_filter_that_is_being_typed_before_the_one_in_force() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["slash", *"pay", "escape"])
        assert app.options.filter == "" and isinstance(app.focused, Table)
        assert not app.screen.has_class("-filtering")


@running
async def test_a_number_shows_its_screen_from_the_top() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["2"])
        await until(pilot, lambda: "leads  copies" in text(app), "the placement")
        await press(pilot, ["enter"])
        await until(pilot, lambda: "REPLICAS" in text(app), "the broker")
        await press(pilot, ["1", "2"])
        await until(pilot, lambda: "leads  copies" in text(app), "the placement")


@running
async def test_the_palette_runs_commands_by_name() -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab()) as (app, pilot):
        await press(pilot, ["ctrl+p"])
        table = app.screen.query_one(Table)
        offered = [content(table.rows.row(at, 0).cells[0]) for at in range(len(table.rows))]
        for name in ("overview", "placement", "groups", "theme dark", "theme light", "restore", "quit"):
            assert name in offered
        await press(pilot, [*"placem", "enter"])
        await until(pilot, lambda: "leads  copies" in text(app), "the placement")


@running
async def test_the_palette_crashes_what_is_selected_below_it() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (_, pilot):
        await press(pilot, ["right", "ctrl+p", *"crash", "enter"])
        await until(pilot, lambda: lab.commands, "the command")
        assert lab.commands[0] == Command(CommandKind.CRASH, 1)


@running
async def test_themes_are_previewed_while_selected() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["ctrl+p", *"theme light"])
        assert app.palette.name == "light"
        await press(pilot, ["escape"])
        assert app.palette.name == "dark"
        await press(pilot, ["ctrl+p", *"theme light", "enter"])
        await until(pilot, lambda: app.palette.name == "light", "the theme")


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
@running
async def test_quit(key: str) -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert app.return_code == 0
    assert app.session.feed.stopped  # type: ignore[attr-defined]


@running
async def test_what_does_nothing_on_one_screen_is_forgotten_on_another() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["d"])
        assert "d does nothing here" in text(app)
        await press(pilot, ["5"])
        await until(pilot, lambda: "write/s" in text(app), "the groups")
        assert "does nothing here" not in text(app)


@running
async def test_the_list_of_places_stays_open_if_nothing_matches() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["colon", *"payment-99", "enter"])
        await until(pilot, lambda: "nothing matches" in text(app), "that nothing matches")
