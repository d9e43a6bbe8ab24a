"""The list of settings that are kept for the next time."""

import re
from pathlib import Path
from typing import Any

import pytest

from kview.config.display import DisplayDefaults
from kview.config.profiles import read_config
from tests.tui.harness import HEALTHY, dashboard, press, running, state, text, until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def shown(app: Any, name: str) -> str:
    """The value of a setting on the list."""
    found = re.search(rf"{name}  +(.+?)  +(at once|from the next start on)", text(app))
    assert found, text(app)
    return found[1]


@running
async def test_values_are_changed_and_kept(file: Path) -> None:
    async with dashboard(state(HEALTHY), config_file=file) as (app, pilot):
        await press(pilot, ["comma"])
        await until(pilot, lambda: "SETTINGS" in text(app), "the list")
        assert [shown(app, name) for name in ("theme", "observe every", "mouse", "hidden groups")] == [
            "dark",
            "1s",
            "on",
            "–",
        ]
        await press(pilot, ["right"])
        assert app.palette.name == shown(app, "theme") != "dark", "at once"
        await press(pilot, ["left", "down", "right", "enter"])
        assert shown(app, "observe every") == "5s" and app.palette.name == "dark"
        await press(pilot, ["down", "left"])
        assert shown(app, "mouse") == "left to the terminal"
        assert read_config(file).display == DisplayDefaults(theme="dark", interval="5s", mouse=False)
        await press(pilot, ["escape"])
        await until(pilot, lambda: "SETTINGS" not in text(app), "the screen below")


@running
async def test_hidden_groups_are_typed(file: Path) -> None:
    async with dashboard(state(HEALTHY), config_file=file) as (app, pilot):
        await press(pilot, ["comma", "down", "down", "down", "enter"])
        await until(pilot, lambda: "groups to hide" in text(app), "the question")
        await press(pilot, [*"a*", "space", *"b", "enter"])
        await until(pilot, lambda: "kept in" in text(app), "the answer")
        assert read_config(file).display.ignore_group == ("a*", "b")
        await press(pilot, ["comma"])
        assert shown(app, "hidden groups") == "a* b"


@running
async def test_what_cannot_be_read_or_written_is_said(file: Path) -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["comma"])
        assert "settings are not kept here" in text(app)
    file.write_text("[display\n")
    async with dashboard(state(HEALTHY), config_file=file) as (app, pilot):
        await press(pilot, ["comma"])
        assert "cannot be used (not TOML" in text(app) and "SETTINGS" not in text(app)
    file.write_text("")
    async with dashboard(state(HEALTHY), config_file=file) as (app, pilot):
        await press(pilot, ["comma"])
        file.unlink()
        file.mkdir()
        await press(pilot, ["down", "right"])
        await until(pilot, lambda: "SETTINGS" not in text(app), "the screen below")
        assert "could not be kept" in text(app)


@running
async def test_without_colours_no_theme_is_offered(file: Path) -> None:
    async with dashboard(state(HEALTHY), config_file=file, no_color=True) as (app, pilot):
        await press(pilot, ["comma"])
        assert "observe every" in text(app) and "theme  " not in text(app)
