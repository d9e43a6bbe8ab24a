"""The keys in force: those of the table of actions, changed by the user's key file."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from kview.config.key_file import KeyLine, key_file_path, read_key_file
from kview.errors import BadUse, ErrorKind
from kview.tui.actions import Action, Keys, conflict
from kview.tui.key_names import key_name, key_of
from kview.tui.keys import ACTIONS


def read_keys() -> Keys:
    """Return the keys in force with the user's key file. Raises BadUse for the first mistake in it."""
    path = key_file_path()
    return keys_of(read_key_file(path), path)


def keys_of(lines: Sequence[KeyLine], path: Path, actions: Sequence[Action] = ACTIONS) -> Keys:
    """Return the keys in force with the lines of a key file. Raises BadUse."""
    file = str(path)
    known = sorted({action.name for action in actions if not action.fixed})
    chosen: dict[str, tuple[str, ...]] = {}
    for line in lines:
        if line.action not in known:
            near = get_close_matches(line.action, known, 1)
            if near:
                raise BadUse(
                    ErrorKind.KEY_ACTION_MISSPELT,
                    file=file,
                    line=line.number,
                    action=line.action,
                    nearest=near[0],
                )
            raise BadUse(ErrorKind.KEY_ACTION_UNKNOWN, file=file, line=line.number, action=line.action)
        for written in line.keys:
            if not key_of(written):
                raise BadUse(
                    ErrorKind.KEY_UNKNOWN, file=file, line=line.number, action=line.action, key=written
                )
        chosen[line.action] = tuple(key_of(written) for written in line.keys)
    if chosen and (clash := conflict(actions, chosen)):
        key, action, other = clash
        number = next((line.number for line in reversed(lines) if line.action in (action, other)), 1)
        raise BadUse(
            ErrorKind.KEYS_CONFLICT, file=file, line=number, key=key_name(key), action=action, other=other
        )
    return Keys(actions, chosen)
