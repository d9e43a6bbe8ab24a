"""What a damaged file of a recording becomes: an error that names the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kview.errors import BadUse, ErrorKind, KviewError


@contextmanager
def damage_in(path: Path) -> Iterator[None]:
    """Raise BadUse that names `path` if its content cannot be read.

    FileNotFoundError passes, because a ring drops its oldest segments. Damaged bytes fail in any way: in the
    libraries, in shapes and in look-ups. So every other exception counts.
    """
    try:
        yield
    except (KviewError, FileNotFoundError):
        raise
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise damaged(path, reason.partition("\n")[0] or type(error).__name__) from error


def damaged(path: Path, reason: str) -> BadUse:
    """Return the error for a damaged file."""
    return BadUse(ErrorKind.FILE_DAMAGED, file=str(path), reason=reason)
