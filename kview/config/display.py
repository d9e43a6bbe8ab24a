"""How everything is shown unless a flag or a profile says otherwise: `[display]` in `config.toml`."""

import os
import tempfile
from pathlib import Path

import msgspec

from kview.errors import BadUse, ErrorKind

TABLE = "display"
"""The table's name in the file."""


class DisplayDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """Values for flags of all commands that show a cluster. `interval` is a duration as people type it, ''
    for kview's own; `ignore_group` has patterns."""

    theme: str = ""
    interval: str = ""
    mouse: bool = True
    ignore_group: tuple[str, ...] = ()


def keep(path: Path, key: str, value: str | bool | list[str]) -> None:
    """Write a key of the table, or remove it if the value is the default. The rest of the file stays as it
    is. Raises BadUse."""
    import tomlkit  # reading needs msgspec only
    from tomlkit.exceptions import TOMLKitError

    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        document = tomlkit.parse(before)
        table = document.setdefault(TABLE, tomlkit.table())
        table.pop(key, None)
        if value != _defaults()[key]:
            table[key] = value
        _replace(path, tomlkit.dumps(document))
    except (TOMLKitError, UnicodeDecodeError, AttributeError) as error:
        raise BadUse(ErrorKind.CONFIG_WRONG, file=str(path), reason="not TOML") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadUse(ErrorKind.DISPLAY_NOT_KEPT, file=str(path), reason=reason) from error


def _defaults() -> dict[str, object]:
    defaults: dict[str, object] = msgspec.to_builtins(DisplayDefaults())
    return {key: list(value) if isinstance(value, tuple) else value for key, value in defaults.items()}


def _replace(path: Path, text: str) -> None:
    """Write the file as a whole or not at all, with the permissions that it had."""
    path = path.resolve()  # a link to a file elsewhere stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, mode)
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
