"""Theme files, which are TOML with a colour for each meaning. Files that cannot be used are reported and
skipped."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

import msgspec
import platformdirs

import kview

MAX_THEME_FILES = 200
"""Limit of files read per folder, far more than anybody has. It takes effect only if the folder is the wrong
one."""

MAX_THEME_BYTES = 64 * 1024
"""Limit of bytes per file. A theme takes about 1 kB, so anything larger is some other kind of file."""

_HEX = re.compile(r"#[0-9a-fA-F]{6}")


class Theme(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Colours as `#rrggbb`, each named after its meaning.

    `series` has the colours of a plot's curves, in order.
    """

    name: str
    dark: bool
    background: str
    text: str
    dim: str
    bright: str
    head: str
    rule: str
    accent: str
    on_accent: str
    mark: str
    key: str
    risk: str
    warn: str
    good: str
    series: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise ValueError("`name` is empty or not printable")
        if not self.series:
            raise ValueError("`series` needs at least one colour")
        colours = {
            key: getattr(self, key) for key in self.__struct_fields__ if key not in ("name", "dark", "series")
        }
        colours |= {f"series[{index}]": colour for index, colour in enumerate(self.series)}
        for key, colour in colours.items():
            if not _HEX.fullmatch(colour):
                raise ValueError(f"`{key}` is {colour!r}, not a colour like #10141a")


class ThemeFailure(msgspec.Struct, frozen=True):
    """A theme file or folder that cannot be used, and the reason."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class Themes(msgspec.Struct, frozen=True):
    """The themes by name, kview's own first, and the files that could not be used."""

    loaded: dict[str, Theme]
    failed: tuple[ThemeFailure, ...]


def theme_folders() -> tuple[Path, ...]:
    """Return the folders of theme files: kview's own, then `themes/` in the user's configuration folder."""
    package = Path(kview.__file__).parent
    own = package / "themes"
    return (
        own if own.is_dir() else package.parent / "themes",
        platformdirs.user_config_path("kview") / "themes",
    )


def load_themes(folders: Iterable[Path]) -> Themes:
    """Read every `*.toml` in `folders`. A theme replaces a theme of the same name from an earlier folder."""
    loaded: dict[str, Theme] = {}
    failed: list[ThemeFailure] = []
    for folder in folders:
        try:
            paths = sorted(folder.glob("*.toml"))[:MAX_THEME_FILES]
        except OSError as error:
            failed.append(ThemeFailure(folder, _why(error)))
            continue
        for path in paths:
            try:
                theme = read_theme(path)
            except (OSError, ValueError) as error:
                failed.append(ThemeFailure(path, _why(error)))
            else:
                loaded[theme.name] = theme
    return Themes(loaded, tuple(failed))


def read_theme(path: Path) -> Theme:
    """Read a theme file. Raises OSError, or a ValueError that says what is wrong and where in the file."""
    if path.stat().st_size > MAX_THEME_BYTES:
        raise ValueError(f"larger than {MAX_THEME_BYTES} bytes")
    return msgspec.toml.decode(path.read_bytes(), type=Theme)


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    text = str(error)
    unknown = re.search(r"unknown field `([^`]*)`", text)
    if unknown is None:
        return text
    near = get_close_matches(unknown[1], Theme.__struct_fields__, 1)
    return f"unknown key {unknown[1]}" + (f"; did you mean {near[0]}?" if near else "")
