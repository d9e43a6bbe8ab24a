"""Theme files: kview's own are complete and readable, a bad one is a failure with its cause and harms no
other."""

from pathlib import Path

import pytest

from kview.config.themes import MAX_THEME_BYTES, Theme, load_themes, read_theme, theme_folders

OWN = theme_folders()[0]


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_kviews_own_themes_load() -> None:
    themes = load_themes([OWN])
    assert set(themes.loaded) == {"dark", "light"}
    assert themes.failed == ()
    assert themes.loaded["dark"].dark and not themes.loaded["light"].dark


@pytest.mark.parametrize("name", ["dark", "light"])
def test_everything_can_be_read(name: str) -> None:
    theme = load_themes([OWN]).loaded[name]
    for behind in (theme.background, theme.mark):
        for key in ("text", "bright", "risk", "warn", "head", "key"):
            assert contrast(getattr(theme, key), behind) >= 4.5, (key, behind)
        for key in ("dim", "good"):
            assert contrast(getattr(theme, key), behind) >= 3.0, (key, behind)
    assert contrast(theme.on_accent, theme.accent) >= 4.5
    for key in ("risk", "warn"):
        assert contrast(getattr(theme, key), theme.accent) >= 4.5, f"{key} in the selected row"
    assert contrast(theme.good, theme.accent) >= 3.0
    for colour in theme.series:
        assert contrast(colour, theme.background) >= 3.0, colour


def test_a_users_theme_joins_and_replaces(tmp_path: Path) -> None:
    text = (OWN / "dark.toml").read_text()
    (tmp_path / "mine.toml").write_text(text.replace('name = "dark"', 'name = "mine"'))
    (tmp_path / "dark.toml").write_text(text.replace('risk = "#ff6b68"', 'risk = "#ff0000"'))
    themes = load_themes([OWN, tmp_path])
    assert list(themes.loaded) == ["dark", "light", "mine"]
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
    assert set(themes.loaded) == {"dark", "light"}
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
    assert set(themes.loaded) == {"dark", "light"}
    assert [(failed.path, failed.why) for failed in themes.failed] == [(folder, "File name too long")]
