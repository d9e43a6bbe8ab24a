"""The log file: what kview does not show on the screen, especially the tracebacks of bugs."""

import errno
import logging
import sys
import threading
import traceback
from logging.handlers import RotatingFileHandler
from typing import Any

from kview.config.log import log_path
from kview.language.glyphs import printable

MAX_LOG_BYTES = 1 << 20
"""Two files of this size hold thousands of tracebacks. The limit keeps a log that nobody reads from filling a
disk."""

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class _Printable(logging.Formatter):
    """Writes only printable characters.

    Messages and tracebacks may contain names and error texts from a cluster. Lines of a traceback are
    indented, so that no such text looks like another entry of the log.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the first line of an entry."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Return a traceback."""
        return "\n".join(f"  {printable(line)}" for line in super().formatException(ei).split("\n"))


class _LogFile(RotatingFileHandler):
    """The log file. An entry that cannot be written, for example because the disk is full, is dropped."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: the traceback of a failed write would end up on the screen."""


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
    handler.setFormatter(_Printable(_FORMAT))
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
        print(
            "\n".join(map(printable, "".join(traceback.format_exception(bug)).split("\n"))), file=sys.stderr
        )
        return f"above, because {log_path()} cannot be written"
    logging.getLogger("kview").error("bug", exc_info=bug)
    return f"in {log_path()}"


SCREEN_WRITER = "textual-output"
"""The thread in which Textual writes to the terminal."""


def _log_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        name = args.thread.name if args.thread else ""
        if name == SCREEN_WRITER and getattr(args.exc_value, "errno", 0) == errno.EIO:
            return  # the terminal has gone away, which ends kview
        where = args.thread.name if args.thread else "(unknown)"
        keep_traceback(args.exc_value)
        logging.getLogger("kview").error("the bug above was in the thread %s", where)
