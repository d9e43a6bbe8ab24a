"""Files that the user saves from the screen: screenshots and tables."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kview.errors import ErrorKind, KviewError

MOST_NUMBERS = 10_000
"""The most files of one name. The name contains the time to the second."""


class FolderSaves:
    """Saves files in a folder, which is made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, name: str, suffix: str) -> "FileSaving":
        """Begin a file, with a number after its name if there is such a file.

        Raises KviewError if that is not possible.
        """
        with _explained(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, MOST_NUMBERS):
            path = self._folder / f"{name}{'' if number == 1 else f'-{number}'}.{suffix}"
            with contextlib.suppress(FileExistsError), _explained(path, but=(FileExistsError,)):
                # Taking the name at once keeps two files of the same second apart.
                os.close(_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
                return FileSaving(path)
        raise KviewError(ErrorKind.FILE_NOT_WRITTEN, file=str(path), reason="too many files of this name")


class FileSaving:
    """A file that is being written, under another name until it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        try:
            with _explained(path):
                self._file = open(  # noqa: SIM115 — closed by finish and cancel
                    self._part, "w", encoding="utf-8", errors="replace", newline="", opener=_private
                )
        except KviewError:
            path.unlink(missing_ok=True)
            raise

    def add(self, text: str) -> None:
        """Write more text. Raises KviewError if that is not possible."""
        with _explained(self._path):
            self._file.write(text)

    def finish(self) -> str:
        """Complete the file, and return its path. Raises KviewError if that is not possible."""
        with _explained(self._path):
            self._file.close()
            self._part.replace(self._path)
        return str(self._path)

    def cancel(self) -> None:
        """Remove what was written."""
        with contextlib.suppress(OSError):  # closing writes the rest, for which there may be no room
            self._file.close()
        for path in (self._part, self._path):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _private(path: str | Path, flags: int) -> int:
    """Open a file that only its owner can read, because figures of a cluster are not for everybody."""
    return os.open(path, flags, 0o600)


@contextmanager
def _explained(path: Path, but: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Turn an error of the file system, except those of type `but`, into one that a user can understand."""
    try:
        yield
    except but:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise KviewError(ErrorKind.FILE_NOT_WRITTEN, file=str(path), reason=reason) from error
