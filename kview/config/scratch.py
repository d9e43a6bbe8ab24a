"""Temporary folders that are removed even if the process that made them was killed: by the next one."""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from kview.errors import ErrorKind, KviewError

REPORTS, LIVE_JOB, SECURED, TWINS = "kview-report-", "kview-spark-", "kview-security-", "kview-twin-"
"""How the names of the folders begin."""

LOCK = "lock"
"""The file in a scratch folder that is locked for as long as a process needs the folder."""

UNLOCKED_S = 3_600.0
"""An empty folder without a lock was made by a process that has been killed at once, unless it is younger."""

_TRIES = 100


class Scratch:
    """A temporary folder, which stays until `remove` is called or no process holds its lock any more."""

    def __init__(self, prefix: str) -> None:
        """Make a folder whose name begins with `prefix`, and remove those that nobody needs any more.

        Raises KviewError.
        """
        try:
            parent = Path(tempfile.gettempdir())
            with suppress(OSError):
                _clean(parent, prefix)
            self.path, self.lock = _made(parent, prefix)
        except OSError as error:
            folder = tempfile.tempdir or "the temporary folder"
            reason = error.strerror or str(error)
            raise KviewError(ErrorKind.SPARK_NO_FOLDER, folder=folder, reason=reason) from error

    @property
    def held_by(self) -> tuple[int, ...]:
        """The descriptor to give to a child, which then needs the folder as long as it runs."""
        return () if self.lock is None else (self.lock,)

    def remove(self) -> None:
        """Remove the folder with all that is in it. May be called again."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.remove()


def _made(parent: Path, prefix: str) -> tuple[Path, int | None]:
    """Make a folder, and return it with its locked file, None if its disk knows no locks. Raises OSError."""
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:  # the disk is full
            folder.rmdir()
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between the two calls another process may have locked the file, and removed it.
            if (folder / LOCK).stat().st_ino == os.fstat(lock).st_ino:
                return folder, lock
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError:
            os.close(lock)
            (folder / LOCK).unlink()
            return folder, None
        os.close(lock)
    raise OSError(f"no folder could be locked in {parent}")


def _clean(parent: Path, prefix: str) -> None:
    """Remove this user's folders that no running process needs. Raises OSError."""
    with os.scandir(parent) as entries:
        folders = [
            entry
            for entry in entries
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)
        ]
    for entry in folders:
        with suppress(OSError):
            about = entry.stat(follow_symlinks=False)
            if about.st_uid != os.getuid():
                continue
            folder = Path(entry.path)
            if (folder / LOCK).exists():
                _remove_unless_held(folder)
            elif time.time() - about.st_mtime > UNLOCKED_S:
                folder.rmdir()  # fails unless it is empty


def _remove_unless_held(folder: Path) -> None:
    """Remove a folder if nobody holds its lock, or that of a scratch folder in it. Raises OSError."""
    locks: list[int] = []
    try:
        for path in (folder / LOCK, *folder.glob(f"*/{LOCK}")):
            locks.append(os.open(path, os.O_RDWR | os.O_NOFOLLOW))
            fcntl.flock(locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        for lock in locks:
            os.close(lock)
