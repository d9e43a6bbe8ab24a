"""References to secrets in configuration files: `${env:NAME}` and `${file:PATH}`."""

import re
from collections.abc import Mapping
from pathlib import Path

from kview.config.properties import parse_properties
from kview.errors import BadUse, ErrorKind

MOST_BYTES = 1 << 20
"""Limit of a file with a secret. A key store takes some kB, and a larger file is the wrong one."""

_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")


def resolved(text: str, environment: Mapping[str, str], folder: Path) -> str:
    """Return `text` with the values of its references.

    A file's value is its text without the line breaks at its end. As for Kafka's FileConfigProvider,
    `${file:PATH:KEY}` is the value of KEY in a properties file. Relative paths start at `folder`. Other texts
    in `${…}` stay as they are. Raises BadUse.
    """

    def value(reference: re.Match[str]) -> str:
        source, name = reference.groups()
        if source == "env":
            if name not in environment:
                raise BadUse(ErrorKind.VARIABLE_NOT_SET, name=name)
            return environment[name]
        return _of_file(name, folder)

    return _REFERENCE.sub(value, text)


def _of_file(name: str, folder: Path) -> str:
    path = in_folder(name, folder)
    if ":" not in name or _is_there(path):
        return read_file(path).decode("utf-8", "replace").rstrip("\r\n")
    name, _, key = name.rpartition(":")
    path = in_folder(name, folder)
    values = parse_properties(read_file(path).decode("latin-1"))
    if key not in values:
        raise BadUse(ErrorKind.PROPERTY_MISSING, key=key, file=str(path))
    return values[key]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that this user may not enter, or a name that is too long
        return False


def in_folder(name: str, folder: Path) -> Path:
    """Return the path of a file that is named in a configuration file in `folder`."""
    return folder / Path(name).expanduser()


def read_file(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the contents of a file that a configuration names, of `most_bytes` at most. Raises BadUse."""
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # the latter if the path has a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise BadUse(ErrorKind.FILE_NOT_READ, file=str(path), reason=reason) from error
    if len(data) > most_bytes:
        raise BadUse(ErrorKind.FILE_NOT_READ, file=str(path), reason=f"it is larger than {most_bytes} bytes")
    return data
