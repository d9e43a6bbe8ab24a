"""Colours: themes as files, one notice for bad ones, no colours if the user wants none."""

import re
from pathlib import Path

import pytest

from kview.config.themes import Themes, load_themes, theme_folders
from kview.tui.app import KviewApp
from kview.tui.palette import PLAIN, palette_of
from kview.tui.screens.over import OverScreen
from kview.tui.text import Role
from kview.tui.widgets.table import Table
from tests.tui.harness import (
    CRASH,
    HEALTHY,
    FakeLab,
    dashboard,
    own_themes,
    press,
    press_at_once,
    running,
    state,
    text,
    until,
)
from tests.tui.textual_internals import drawn_strips

COLOUR = re.compile(r"\x1b\[[\d;]*?(?<![\d])(?:3[0-7]|4[0-7]|38|48|9[0-7]|10[0-7])[;m]")


@running
async def test_without_colours_none_gets_out() -> None:
    async with dashboard(state(CRASH), lab=FakeLab(), no_color=True) as (app, pilot):
        assert colours_of(app) == set()
        assert "reverse" in styles_of(app), "the selected row is reversed"
        for key in ("2", "question_mark", "escape", "ctrl+p"):
            await press(pilot, [key])
            assert colours_of(app) == set(), key


@running
async def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(state(CRASH), no_color=None) as (app, pilot):
        assert colours_of(app) == set()
        await press(pilot, ["t"])
        assert "NO_COLOR is set" in text(app)
    monkeypatch.setenv("NO_COLOR", "")
    async with dashboard(state(CRASH), no_color=None) as (app, _):
        assert colours_of(app)


def colours_of(app: object) -> set[str]:
    """The colours that reach the terminal, apart from its own defaults."""
    from kview.tui.app import KviewApp

    assert isinstance(app, KviewApp)
    found = set()
    for strip in drawn_strips(app.screen):
        filtered = strip
        for line_filter in app.get_line_filters():
            filtered = filtered.apply_filter(line_filter, app.screen.background_colors[1])
        for segment in filtered:
            for colour in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                if colour is not None and not colour.is_default:
                    found.add(str(colour))
    return found


def styles_of(app: object) -> str:
    from kview.tui.app import KviewApp

    assert isinstance(app, KviewApp)
    return " ".join(str(s.style) for strip in drawn_strips(app.screen) for s in strip if s.style)


def test_every_role_has_a_style_in_every_palette() -> None:
    for palette in (PLAIN, *(palette_of(theme) for theme in own_themes().loaded.values())):
        assert set(palette.styles) == set(Role)


def test_with_16_colours_nothing_is_tinted_and_a_curve_has_one_colour() -> None:
    for theme in own_themes().loaded.values():
        palette = palette_of(theme, few=True)
        assert palette.selected.bgcolor is None and palette.marked.bgcolor is None and palette.selected.bold
        assert all(len(set(shades)) == 1 for shades in palette.series)


@pytest.mark.parametrize("name", ["mine", PLAIN.name])
@running
async def test_a_theme_of_the_users(tmp_path: Path, name: str) -> None:
    dark = (theme_folders()[0] / "dark.toml").read_text()
    (tmp_path / "mine.toml").write_text(
        dark.replace('name = "dark"', f'name = "{name}"').replace("#10141a", "#201014")
    )
    themes = load_themes([theme_folders()[0], tmp_path])
    async with dashboard(state(HEALTHY), themes=themes, theme=name) as (app, _):
        assert app.palette.name == name
        assert "#201014" in {str(colour) for colour in colours_of(app)} or any(
            "32, 16, 20" in c or "201014" in c for c in colours_of(app)
        )


@running
async def test_bad_theme_files_are_one_notice_and_harm_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("name = ")
    (tmp_path / "worse.toml").write_text('name = "worse"')
    themes = load_themes([theme_folders()[0], tmp_path])
    async with dashboard(state(HEALTHY), themes=themes, theme="bad", size=(300, 40)) as (app, pilot):
        await until(
            pilot,
            lambda: (
                "there is no theme named bad (available themes: colour-blind, dark, high-contrast, light)"
                in text(app)
            ),
            "the notice",
        )
        assert "bad.toml" in text(app) and "(and 1 more)" in text(app)
        assert app.palette.name == "dark"


@running
async def test_a_theme_is_previewed_above_the_screen_until_it_is_chosen() -> None:
    async with dashboard(state(HEALTHY), theme="dark") as (app, pilot):

        def shows(name: str) -> bool:
            is_drawn = own_themes().loaded[name].background in backgrounds(app)
            return app.palette.name == name and is_drawn and "EVENTS" in text(app)

        await press(pilot, ["t"])
        await until(pilot, lambda: "THEMES" in text(app) and "colour-blind" in text(app), "the list")
        assert shows("dark"), "the screen below stays in sight"
        await press(pilot, ["end"])
        await until(pilot, lambda: shows("light"), "the preview, also of the screen below")
        app.session.feed.show(state(CRASH))  # type: ignore[attr-defined]
        await until(pilot, lambda: "✕ silent" in text(app), "what happens meanwhile")
        await press(pilot, ["escape"])
        await until(pilot, lambda: "THEMES" not in text(app) and shows("dark"), "the theme from before")
        await press(pilot, ["t", "t", "enter"])
        await until(pilot, lambda: "THEMES" not in text(app) and shows("high-contrast"), "the next theme")


@pytest.mark.parametrize("opens", [["t"], ["ctrl+p", *"themelight"]], ids=["themes", "commands"])
@running
async def test_of_two_enters_that_come_together_only_the_first_is_the_lists(opens: list[str]) -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, opens)
        await until(pilot, lambda: isinstance(app.screen, OverScreen), "the list")
        press_at_once(app, ["enter", "enter"])
        await until(pilot, lambda: not isinstance(app.screen, OverScreen), "the list is left")
        await press(pilot, ["escape", "2"])
        await until(pilot, lambda: "leads  copies" in text(app), "another screen")


def backgrounds(app: KviewApp) -> set[str]:
    """The background colours of the cells on the screen, as `#rrggbb`."""
    strips = drawn_strips(app.screen)
    colours = (segment.style.bgcolor for strip in strips for segment in strip if segment.style)
    return {colour.get_truecolor().hex for colour in colours if colour is not None}


@running
async def test_without_any_theme_it_is_plain() -> None:
    async with dashboard(state(HEALTHY), themes=Themes({}, ())) as (app, pilot):
        assert app.palette is PLAIN
        await press(pilot, ["t"])
        assert "EVENTS" in text(app)


@pytest.mark.parametrize("theme", sorted(own_themes().loaded))
@running
async def test_what_is_wrong_keeps_its_colour_in_the_selected_row(theme: str) -> None:
    async with dashboard(state(CRASH), theme=theme) as (app, pilot):
        while app.options.sort("brokers").column != "rack":
            await press(pilot, ["s"])
        app.screen.query_one("#brokers", Table).select(4)
        (selected,) = [strip for strip in drawn_strips(app.screen) if re.search("▸ R2 +4 +✕", strip.text)]
        own = own_themes().loaded[theme]
        styles = {segment.text.strip(): segment.style for segment in selected if segment.style}
        silent, replicas = styles["✕ silent 3 s"], styles["10"]
        assert silent.color is not None and silent.color.name == own.risk
        assert replicas.color is not None and replicas.color.name == own.on_accent
        for style in (silent, replicas):
            assert style.bgcolor is not None and style.bgcolor.name == own.accent


@pytest.mark.parametrize(("few", "tinted"), [(True, False), (False, True)])
@running
async def test_only_with_16_colours_nothing_is_tinted(few: bool, tinted: bool) -> None:
    async with dashboard(state(HEALTHY), few_colors=few) as (app, _):
        assert (app.palette.selected.bgcolor is not None) == tinted
