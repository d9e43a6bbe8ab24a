"""The log file: what kview does not say on the screen, tracebacks of bugs above all."""

import logging
import threading
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path

import platformdirs

MAX_LOG_BYTES = 1 << 20
"""Two files of this size hold thousands of tracebacks; a log nobody reads must not fill a disk."""

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def log_path() -> Path:
    """Where the log file is: under the user's state folder."""
    return Path(platformdirs.user_log_path("kview", appauthor=False)) / "kview.log"


def start_log() -> None:
    """Send every warning of kview and its libraries, and every uncaught exception of a thread, to the log
    file.

    Standard error belongs to the dashboard, so nothing else may write there. Where the folder cannot be
    written the log is dropped: kview must run on a read-only home, too.
    """
    root = logging.getLogger()
    if root.handlers:
        return
    handler: logging.Handler
    try:
        log_path().parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            log_path(), maxBytes=MAX_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
        )
        log_path().open("a").close()
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = _log_thread


def log_file() -> str:
    """The log file that is written to, '' if it cannot be written."""
    return "" if _is_dropped() else str(log_path())


def _is_dropped() -> bool:
    return isinstance(next(iter(logging.getLogger().handlers), None), logging.NullHandler)


def keep_traceback(bug: BaseException) -> str:
    """Write the traceback of `bug` to the log file; says where it is, which is standard error if the file
    cannot be written."""
    start_log()
    if _is_dropped():
        traceback.print_exception(bug)
        return f"standard error, as {log_path()} cannot be written"
    logging.getLogger("kview").error("bug", exc_info=bug)
    return str(log_path())


def _log_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        where = args.thread.name if args.thread else "a thread"
        keep_traceback(args.exc_value)
        logging.getLogger("kview").error("that was in %s", where)
