"""The process that makes a report for the dashboard: `python -m kview.run.report_child`.

This process ends when the process that started it ends. Its JVM ends with it.
"""

import argparse
import contextlib
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path

from msgspec.json import Decoder

from kview.config.messages import encode, messages
from kview.errors import ErrorKind, KviewError
from kview.model.reporting import ReportProgress, ReportScope
from kview.run.log import keep_traceback
from kview.run.report_files import page_of
from kview.run.reporting import Reporting, SparkChoices
from kview.run.saves import FolderSaves

LESS_URGENT = 10
"""How much less urgent this process and its JVM are than the dashboard, whose screen must not stutter."""

MAX_WORDS = 160
"""Limit of characters of an error's text. The log file has the full text."""


def main() -> None:
    """Make the report, send it, and end."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--control-fd", type=int, required=True)
    flags.add_argument("--recording", required=True)
    flags.add_argument("--folder", type=Path, required=True)
    flags.add_argument("--name", required=True)
    given = flags.parse_args()
    # Ignore signals that a terminal sends to all its processes. They are meant for kview, which ends this
    # process when it is ready.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(LESS_URGENT)
    control = socket.socket(fileno=given.control_fd)
    scope = next(messages(control, Decoder(ReportScope)))
    try:
        _make(control, given.recording, scope, FolderSaves(given.folder), given.name)
    except KviewError as error:
        _fail(control, error)
    except Exception as error:
        keep_traceback(error)
        said = f"{type(error).__name__}: {error}".strip().splitlines()[0][:MAX_WORDS]
        _fail(control, KviewError(ErrorKind.REPORT_FAILED, cause=said))


def _make(control: socket.socket, recording: str, scope: ReportScope, saves: FolderSaves, name: str) -> None:
    from kview.pipeline.report import Question

    def tell(progress: ReportProgress) -> None:
        with contextlib.suppress(OSError):  # kview has ended, which ends this process, too
            control.sendall(encode(progress))

    question = Question(topics=_exactly(scope.topics), groups=_exactly(scope.groups))
    reporting = Reporting([recording], question, spark=SparkChoices(own_group=False), on_progress=tell)
    threading.Thread(target=_watch_parent, args=(control, reporting), name="parent", daemon=True).start()
    report = reporting.make()
    tell(ReportProgress("page"))
    # Drawing takes seconds, in which kview can end, and this process with it: no file must be left half-done.
    page = page_of(report)
    saving = saves.begin(name, "html")
    try:
        saving.add(page)
        path = saving.finish()
    except BaseException:
        saving.cancel()
        raise
    control.sendall(encode(pickle.dumps((path, report))))


def _exactly(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return patterns that match these names alone."""
    return tuple("".join(f"[{letter}]" if letter in "*?[" else letter for letter in name) for name in names)


def _watch_parent(control: socket.socket, reporting: Reporting) -> None:
    with contextlib.suppress(OSError):
        while control.recv(1):
            pass
    reporting.kill()
    # Everything that was made here lies in a folder of this process.
    shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)
    os._exit(0)


def _fail(control: socket.socket, error: KviewError) -> None:
    with contextlib.suppress(OSError):
        control.sendall(encode(error.facts))
    sys.exit(1)


if __name__ == "__main__":
    main()
