"""What the list of settings says."""

from collections.abc import Mapping

from kview.language import words

NAMES: Mapping[str, str] = {
    "theme": "theme",
    "interval": "observe every",
    "mouse": "mouse",
    "ignore-group": "hidden groups",
}
"""By key of the file."""

NOTES: Mapping[str, str] = {
    "theme": "at once",
    "interval": "from the next start on",
    "mouse": "from the next start on",
    "ignore-group": "from the next start on",
}

CHOOSES = "next value"

KEYS = "←→ change  Esc close"


def value(of: str | bool | tuple[str, ...]) -> str:
    """Return a value: `light`, `on`, `console-* test-*`, `–`."""
    if isinstance(of, bool):
        return "on" if of else "left to the terminal"
    return of if isinstance(of, str) else " ".join(of) or words.NONE


def interval(ms: int) -> str:
    """Return an interval as people type it: `500ms`, `2s`."""
    return f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"


def hint(patterns: tuple[str, ...]) -> str:
    """Return what is said in an empty line for patterns of groups."""
    now = f", now: {' '.join(patterns)}" if patterns else ""
    return f"groups to hide, such as console-* test-?{now}; nothing shows all"


def kept(file: str) -> str:
    """Return that a setting was kept."""
    return f"kept in {file}, from the next start on"


NO_FILE = "settings are not kept here"
