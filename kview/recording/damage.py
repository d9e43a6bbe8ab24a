"""Turns any exception from a damaged file into an error that names the file."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kview.errors import BadUse, ErrorKind, KviewError


@contextmanager
def damage_in(path: Path | str) -> Iterator[None]:
    """Raise a BadUse that names `path`, or a file's URL, if its content cannot be read.

    FileNotFoundError is not changed, because a ring drops its oldest segments. Damaged bytes can cause any
    exception, in the libraries, in shapes and in look-ups. So every other exception is treated as damage.
    """
    try:
        yield
    except (KviewError, FileNotFoundError):
        raise
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise damaged(path, reason.partition("\n")[0] or type(error).__name__) from error


def check_regular(path: Path) -> None:
    """Raise a BadUse if `path` is a folder, or a pipe, for which reading would wait.

    Raises FileNotFoundError.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise damaged(path, "not a regular file")


def damaged(path: Path | str, reason: str) -> BadUse:
    """Return the error for a damaged file."""
    return BadUse(ErrorKind.FILE_DAMAGED, file=str(path), reason=reason)
