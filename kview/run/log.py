"""The log file: what kview does not show on the screen, especially the tracebacks of bugs."""

import errno
import logging
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable
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


REPEATED_WITHIN_S = {"kafka": 600.0, "kview.observe.link": 3.0}
"""Within this time, the same message of such a logger is logged once. kafka-python logs every attempt to
connect to a broker that is down. kview logs when a broker stops and starts answering, on two connections."""

MOST_MESSAGES = 200
"""The most messages remembered."""


class Repeats(logging.Filter):
    """Drops messages that were logged a short time ago, and says how many when the next one comes."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """Logger and message → when it was logged, and how many have been dropped since."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        named = (name for name in REPEATED_WITHIN_S if f"{record.name}.".startswith(f"{name}."))
        name = next(named, None)
        if name is None or record.exc_info:
            return True
        key, now_s = (record.name, record.getMessage()), self._clock_s()
        logged_s, dropped = self._seen.pop(key, (-math.inf, 0))
        if now_s - logged_s < REPEATED_WITHIN_S[name]:
            self._seen[key] = logged_s, dropped + 1
            return False
        self._seen[key] = now_s, 0
        if len(self._seen) > MOST_MESSAGES:
            del self._seen[next(iter(self._seen))]
        if dropped and name == "kafka":
            record.msg, record.args = f"{record.getMessage()} ({dropped:,} more like this)", None
        return True


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
    handler.addFilter(Repeats())
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
