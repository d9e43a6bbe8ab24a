"""Prints views as blocks of text or as JSON documents, until the run ends or nobody reads the output."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import NoReturn, TextIO

from kview.derive.view import View
from kview.language import glyphs, notices
from kview.language.errors import sentence
from kview.model.notices import Notice
from kview.plain.blocks import block
from kview.plain.documents import document
from kview.run.observing import Fold, Source, Taker, new_fold, views
from kview.run.recorder import TEXT_CLOSES_WITHIN_S, Recorder
from kview.run.settings import Display, Format

OBSERVATIONS_FOR_RATES = 2
"""The number of observations that `--once` makes, because a rate needs two."""

MOST_OBSERVATIONS_ONCE = 20
"""The most observations that `--once` makes until all groups have been read, if they are read in turn."""

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals on which a recording run closes its last segment and ends, and a run with on-finding logs what was
not sent. Otherwise these signals just kill the run."""


def record_and_print(
    source: Source,
    name: str,
    display: Display,
    takers: Sequence[Taker] = (),
    hear: Callable[[Notice], None] = lambda notice: None,
) -> int:
    """Print `source` like `print_source`, and record every observation to the folder that `display` names."""
    recorder = Recorder(display.record)
    end_on_signals()
    recorder.start(lambda notice: _note(notice, _fit(display.ascii_only)))
    try:
        return print_source(source, name, display, (recorder.offer, *takers), hear)
    finally:
        recorder.stop(TEXT_CLOSES_WITHIN_S)
        if recorder.unfinished is not None:
            print(f"kview: {sentence(recorder.unfinished)}", file=sys.stderr)


def end_on_signals() -> None:
    """Let signals end the run like an error, so that everything is stopped in order."""
    for number in ENDS:
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def print_source(
    source: Source,
    name: str,
    display: Display,
    takers: Sequence[Taker] = (),
    hear: Callable[[Notice], None] = lambda notice: None,
) -> int:
    """Print a block or document of `source` every interval, or with `once` a single one.

    If `display` is quiet, nothing is printed but notices, and a cluster that cannot be reached yet is waited
    for. `takers` get every snapshot with its view, and `hear` every notice. Notices go to standard error.
    Returns the exit code 0, even if nobody reads the output any more. Raises KviewError, but only before the
    first view.
    """
    fit = _fit(display.ascii_only)
    fold: Callable[[], Fold[View]] = partial(new_fold, display.ignore_groups, takers)
    seen = 0
    try:
        with until_nobody_reads():
            for item in views(
                source,
                fold,
                display.interval_ms / 1000,
                _sleep,
                patient=display.quiet and not display.once,
            ):
                if isinstance(item, Notice):
                    _note(item, fit)
                    hear(item)
                    continue
                seen += 1
                if display.once and (seen < OBSERVATIONS_FOR_RATES or _waits(item, seen)):
                    continue
                if not display.quiet:
                    _print(item, name, display, fit)
                if display.once:
                    break
    finally:
        source.close()
    return 0


def _waits(view: View, seen: int) -> bool:
    """Return whether the next observations read groups that have not been read yet."""
    groups = view.snapshot.groups
    return seen < MOST_OBSERVATIONS_ONCE and bool((groups.unread & (groups.error == "")).any())


def print_views(shown: Iterable[View], name: str, display: Display) -> int:
    """Print a block or document of each view, and return the exit code 0."""
    fit = _fit(display.ascii_only)
    with until_nobody_reads():
        for view in shown:
            _print(view, name, display, fit)
    return 0


@contextmanager
def until_nobody_reads() -> Iterator[None]:
    """End the block without an error when nobody reads the output any more."""
    try:
        yield
    except BrokenPipeError:
        # Nobody will read what is still buffered. Without this, the interpreter would complain when it
        # flushes the buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fit(ascii_only: bool) -> Callable[[str], str]:
    return glyphs.plain if ascii_only else str


def _print(view: View, name: str, display: Display, fit: Callable[[str], str]) -> None:
    as_json = display.format is Format.JSON
    _write(document(view) if as_json else fit(block(view, name)), sys.stdout)


def note(notice: Notice, ascii_only: bool) -> None:
    """Print a notice on standard error."""
    _note(notice, _fit(ascii_only))


def _note(notice: Notice, fit: Callable[[str], str]) -> None:
    print(fit(glyphs.printable(f"kview: {notices.text(notice)}")), file=sys.stderr, flush=True)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _write(text: str, output: TextIO) -> None:
    output.write(text + "\n")
    output.flush()
