"""Theme files: kview's own are complete and readable, a bad one is a failure with its cause and harms no
other."""

from itertools import combinations
from pathlib import Path

import pytest
from coloraide import Color
from rich.style import Style

from kview.config.themes import MAX_THEME_BYTES, Theme, load_themes, read_theme, theme_folders
from kview.tui.palette import palette_of
from kview.tui.text import SEVERE, Role

OWN = theme_folders()[0]


OWN_NAMES = {"dark", "light", "high-contrast", "colour-blind"}

MEANINGS = ("risk", "warn", "good")
"""The colours that must be told apart."""

SIMULATIONS = [("deutan", "vienot"), ("deutan", "machado"), ("protan", "vienot"), ("protan", "machado")]
"""Deuteranopia and protanopia, as simulated by Viénot et al. 1999 and by Machado et al. 2009."""


def contrast(one: str, other: str) -> float:
    """WCAG 2.1's contrast ratio."""
    return Color(one).contrast(other, method="wcag21")


def test_kviews_own_themes_load() -> None:
    themes = load_themes([OWN])
    assert set(themes.loaded) == OWN_NAMES
    assert themes.failed == ()
    assert themes.loaded["dark"].dark and not themes.loaded["light"].dark


@pytest.mark.parametrize("name", sorted(OWN_NAMES))
def test_everything_can_be_read(name: str) -> None:
    palette = palette_of(load_themes([OWN]).loaded[name])
    styles = [*((str(role), style) for role, style in palette.styles.items() if role is not Role.RULE)]
    styles += [(f"series {number}", shades[-1]) for number, shades in enumerate(palette.series)]
    for label, style in styles:
        for behind in (Style(), palette.marked, palette.band):
            behind = palette.base + behind
            whole = behind + style
            assert whole.color and whole.bgcolor
            assert contrast(whole.color.name, whole.bgcolor.name) >= 4.5, (label, whole)
    for shades in palette.series:
        shown = [palette.base + shade for shade in shades]
        steps = [contrast(one.color.name, one.bgcolor.name) for one in shown if one.color and one.bgcolor]
        assert steps == sorted(steps) and steps[0] >= 3, "an area is no text, but can be seen"
    for role in (None, *SEVERE):  # All other text takes the selected row's own colour.
        for behind in (palette.selected, palette.warned):
            whole = palette.base + behind + (Style() if role is None else palette.style(role))
            assert whole.color and whole.bgcolor
            assert contrast(whole.color.name, whole.bgcolor.name) >= 4.5, f"{role} in the selected row"


@pytest.mark.parametrize(("kind", "method"), SIMULATIONS)
def test_colour_blind_people_tell_the_meanings_apart(kind: str, method: str) -> None:
    theme = load_themes([OWN]).loaded["colour-blind"]
    for one, other in combinations(MEANINGS, 2):
        seen = [Color(getattr(theme, key)).filter(kind, method=method) for key in (one, other)]
        assert seen[0].delta_e(seen[1], method="2000") >= 20, (one, other)


def test_a_users_theme_joins_and_replaces(tmp_path: Path) -> None:
    text = (OWN / "dark.toml").read_text()
    (tmp_path / "mine.toml").write_text(text.replace('name = "dark"', 'name = "mine"'))
    (tmp_path / "dark.toml").write_text(text.replace('risk = "#ff6b68"', 'risk = "#ff0000"'))
    themes = load_themes([OWN, tmp_path])
    assert list(themes.loaded) == [*sorted(OWN_NAMES), "mine"]
    assert themes.loaded["dark"].risk == "#ff0000"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('risk = "#ff6b68"', 'risk = "red"'), "`risk` is 'red', not a colour like #10141a"),
        (('risk = "#ff6b68"', 'riks = "#ff6b68"'), ": unknown key riks; did you mean risk?"),
        (('risk = "#ff6b68"', ""), "missing required field `risk`"),
        (("dark = true", 'dark = "yes"'), "$.dark"),
        (('name = "dark"', "name = "), "line 1"),
        (('"#b0b7c3"]', '"blue"]'), "`series[5]` is 'blue'"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, change: tuple[str, str], why: str) -> None:
    (tmp_path / "mine.toml").write_text((OWN / "dark.toml").read_text().replace(*change))
    themes = load_themes([OWN, tmp_path])
    assert set(themes.loaded) == OWN_NAMES
    (failure,) = themes.failed
    assert failure.path == tmp_path / "mine.toml"
    assert why in str(failure)


def test_other_bad_files(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "huge.toml").write_bytes(b"#" * (MAX_THEME_BYTES + 1))
    themes = load_themes([tmp_path, tmp_path / "not there"])
    assert themes.loaded == {}
    assert [f.path.name for f in themes.failed] == ["bytes.toml", "folder.toml", "huge.toml"]


def test_a_theme_is_read_as_written() -> None:
    theme = read_theme(OWN / "light.toml")
    assert isinstance(theme, Theme)
    assert theme.background == "#fbfaf7"


def test_a_folder_that_cannot_be_read_is_a_failure_and_harms_no_other(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 300)
    themes = load_themes([folder, OWN])
    assert set(themes.loaded) == OWN_NAMES
    assert [(failed.path, failed.why) for failed in themes.failed] == [(folder, "File name too long")]
