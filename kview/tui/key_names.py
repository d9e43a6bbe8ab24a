"""Names of keys: as people write them, as Textual calls them, and as the screen shows them.

All functions here are pure.
"""

import re
import unicodedata

from textual.keys import KEY_NAME_REPLACEMENTS

_SHOWN = {
    "delete": "Del",
    "insert": "Ins",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "backspace": "Backspace",
    "space": "space",
}
"""What the keys that type nothing are called on the screen."""

_WITH_CTRL = re.compile(r"ctrl\+[a-z@\\\]^_]")
_FUNCTION = re.compile(r"f([1-9]|1[0-9]|2[0-4])")
_UNICODE = {replaced: name for name, replaced in KEY_NAME_REPLACEMENTS.items()}


def key_of_character(character: str) -> str:
    """Return what Textual calls the key that types a character: `left_square_bracket` for `[`."""
    if character == " ":
        return "space"
    if character.isalnum():
        return character
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def key_of(written: str) -> str:
    """Return what Textual calls a key that somebody wrote, such as `[`, `K`, `ctrl+s`, `PgUp` or `f5`.

    Returns '' if there is no such key.
    """
    arrows = {shown: key for key, shown in _SHOWN.items() if len(shown) == 1}
    if written in arrows:
        return arrows[written]
    if len(written) == 1:
        return key_of_character(written) if written.isprintable() else ""
    low = written.strip().lower().replace("^", "ctrl+", 1) if written.startswith("^") else written.lower()
    if _WITH_CTRL.fullmatch(low) or _FUNCTION.fullmatch(low):
        return low
    shift, _, key = low.rpartition("shift+")
    names = {shown.lower(): key for key, shown in _SHOWN.items()} | {key: key for key in _SHOWN}
    if key in names and low in (key, f"shift+{key}"):
        return f"{shift}shift+{names[key]}" if "shift+" in low else names[key]
    return low if character_of(low) else ""


def character_of(key: str) -> str:
    """Return what a key types, such as `[` for `left_square_bracket`, or '' if it types nothing."""
    if len(key) == 1:
        return key
    name = _UNICODE.get(key, key).replace("_", " ").upper()
    for spelt in (name, name.replace("HYPHEN MINUS", "HYPHEN-MINUS"), name.replace(" THAN ", "-THAN ")):
        try:
            return unicodedata.lookup(spelt)
        except KeyError:
            continue
    return ""


def key_name(key: str) -> str:
    """Return what the screen calls a key: `[`, `K`, `^s`, `Shift-Tab`, `F5`."""
    if key in _SHOWN:
        return _SHOWN[key]
    if key.startswith("shift+"):
        return f"Shift-{key_name(key.removeprefix('shift+'))}"
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+')}"
    if _FUNCTION.fullmatch(key):
        return key.upper()
    return character_of(key) or key
