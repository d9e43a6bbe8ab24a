"""The key file: `keys.toml` in the user's configuration folder, with the keys of actions by name."""

import re
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from kview.config.references import read_file
from kview.errors import BadUse, ErrorKind

MOST_KEYS = 8
"""The most keys of one action: more would be a mistake."""

_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


class KeyLine(msgspec.Struct, frozen=True):
    """A line of the key file: an action's keys, as they are written."""

    number: int
    action: str
    keys: tuple[str, ...]


def key_file_path() -> Path:
    """Return where the key file is."""
    return platformdirs.user_config_path("kview", appauthor=False) / "keys.toml"


def read_key_file(path: Path) -> tuple[KeyLine, ...]:
    """Read the key file. Without a file there are no lines. Raises BadUse."""
    if not path.exists():
        return ()
    data = read_file(path)
    try:
        text = data.decode()
        document: dict[str, Any] = msgspec.toml.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else len(data.splitlines()) if place else 1
        raise BadUse(ErrorKind.KEY_FILE_GARBLED, file=str(path), line=line) from None
    return tuple(_line(path, text, action, value) for action, value in document.items())


def _line(path: Path, text: str, action: str, value: object) -> KeyLine:
    number = _number(text, action)
    if isinstance(value, dict):
        raise BadUse(ErrorKind.KEY_FILE_HEADING, file=str(path), line=number, heading=action)
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        keys = []
    if not 0 < len(keys) <= MOST_KEYS:
        raise BadUse(ErrorKind.KEY_LINE_WRONG, file=str(path), line=number, action=action)
    return KeyLine(number, action, tuple(keys))


def _number(text: str, action: str) -> int:
    """Return the number of the line that begins with an action's name."""
    name = re.compile(rf"\s*\[*\s*[\"']?{re.escape(action)}[\"']?\s*[=.\]]")
    return next((number for number, line in enumerate(text.splitlines(), 1) if name.match(line)), 1)
