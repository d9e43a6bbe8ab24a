"""[display] in config.toml: what it holds, and that writing a key leaves the rest of the file alone."""

import stat
from pathlib import Path

import pytest

from kview.config.display import DisplayDefaults, keep
from kview.config.profiles import read_config
from kview.errors import BadUse, ErrorKind

FILE = """# my clusters
[display]   # how
theme = "light"  # by day
interval = "2s"

[clusters.prod]
servers = "a:9092"  # the first one
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(FILE)
    return tmp_path / "config.toml"


def test_it_is_read_beside_the_profiles(path: Path) -> None:
    config = read_config(path)
    assert config.display == DisplayDefaults(theme="light", interval="2s")
    assert list(config.clusters) == ["prod"]


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("theme = 3", ErrorKind.DISPLAY_WRONG, "theme"),
        ('mouse = "no"', ErrorKind.DISPLAY_WRONG, "mouse"),
        ('ignore-group = "a*"', ErrorKind.DISPLAY_WRONG, "ignore-group"),
        ("themes = 3", ErrorKind.CONFIG_KEY_UNKNOWN, "themes"),
    ],
)
def test_what_is_wrong_is_named(path: Path, text: str, kind: ErrorKind, named: str) -> None:
    path.write_text(f"[display]\n{text}\n")
    with pytest.raises(BadUse) as raised:
        read_config(path)
    assert raised.value.facts.kind is kind and named in str(raised.value.facts.values)


def test_a_key_is_written_and_the_rest_stays(path: Path) -> None:
    path.chmod(0o640)
    keep(path, "theme", "dark")
    keep(path, "mouse", False)
    keep(path, "ignore-group", ["console-*", "test-?"])
    shown = path.read_text()
    assert "# my clusters" in shown and 'servers = "a:9092"  # the first one' in shown
    expected = DisplayDefaults(theme="dark", interval="2s", mouse=False, ignore_group=("console-*", "test-?"))
    assert read_config(path).display == expected and list(read_config(path).clusters) == ["prod"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    keep(path, "mouse", True)
    keep(path, "ignore-group", [])
    assert "mouse" not in path.read_text() and "ignore-group" not in path.read_text()


def test_a_new_file_is_the_users_own_and_a_link_stays_one(tmp_path: Path) -> None:
    new = tmp_path / "kview" / "config.toml"
    keep(new, "interval", "5s")
    assert read_config(new).display.interval == "5s" and stat.S_IMODE(new.stat().st_mode) == 0o600
    link = tmp_path / "link.toml"
    link.symlink_to(new)
    keep(link, "interval", "10s")
    assert link.is_symlink() and read_config(new).display.interval == "10s"


def test_a_file_that_cannot_be_used_is_left_alone(tmp_path: Path) -> None:
    broken = tmp_path / "config.toml"
    broken.write_text("[display\n")
    with pytest.raises(BadUse) as raised:
        keep(broken, "theme", "dark")
    assert raised.value.facts.kind is ErrorKind.CONFIG_WRONG and broken.read_text() == "[display\n"
    (tmp_path / "folder").write_text("")
    with pytest.raises(BadUse) as raised:
        keep(tmp_path / "folder" / "config.toml", "theme", "dark")
    assert raised.value.facts.kind is ErrorKind.DISPLAY_NOT_KEPT
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("tmp")] == []
