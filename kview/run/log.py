"""The log file: what kview does not show on the screen, especially the tracebacks of bugs."""

import logging
import threading
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path

import platformdirs

MAX_LOG_BYTES = 1 << 20
"""Two files of this size hold thousands of tracebacks. The limit keeps a log that nobody reads from filling a
disk."""

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class _LogFile(RotatingFileHandler):
    """The log file. What cannot be written to it, such as on a full disk, is dropped."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: the traceback of a failed write would end up on the screen."""


def log_path() -> Path:
    """Return the path of the log file, in the user's state folder."""
    return Path(platformdirs.user_log_path("kview", appauthor=False)) / "kview.log"


def start_log() -> None:
    """Send warnings of kview and its libraries, and uncaught exceptions of threads, to the log file.

    Standard error belongs to the dashboard, so nothing else may write there. If the folder is not writable,
    nothing is logged, because kview must also run with a read-only home folder.
    """
    root = logging.getLogger()
    if root.handlers:
        return
    handler: logging.Handler
    try:
        log_path().parent.mkdir(parents=True, exist_ok=True)
        handler = _LogFile(log_path(), maxBytes=MAX_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)
        log_path().open("a").close()
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = _log_thread


def log_file() -> str:
    """Return the path of the log file, '' if the file cannot be written."""
    return "" if _is_dropped() else str(log_path())


def _is_dropped() -> bool:
    return isinstance(next(iter(logging.getLogger().handlers), None), logging.NullHandler)


def keep_traceback(bug: BaseException) -> str:
    """Write the traceback of `bug` to the log file, or to standard error if that file cannot be written.

    Returns where the traceback is, in words that follow "the traceback is".
    """
    start_log()
    if _is_dropped():
        traceback.print_exception(bug)
        return f"above, because {log_path()} cannot be written"
    logging.getLogger("kview").error("bug", exc_info=bug)
    return f"in {log_path()}"


def _log_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        where = args.thread.name if args.thread else "(unknown)"
        keep_traceback(args.exc_value)
        logging.getLogger("kview").error("the bug above was in the thread %s", where)
