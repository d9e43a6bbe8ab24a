"""Prints views as blocks of text or as JSON documents, until the run ends or nobody reads the output."""

import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import NamedTuple, NoReturn

from kview.derive.view import View
from kview.errors import KviewError
from kview.language import glyphs, notices
from kview.language.errors import sentence
from kview.model.notices import Notice, NoticeKind
from kview.plain.blocks import block
from kview.plain.documents import document
from kview.run.observing import STOP_WITHIN_S, Fold, Source, Taker, new_fold, views
from kview.run.recorder import TEXT_CLOSES_WITHIN_S, Recorder
from kview.run.settings import Display, Format

OBSERVATIONS_FOR_RATES = 2
"""The number of observations that `--once` makes, because a rate needs two."""

AWAITED_OBSERVATIONS = 20
"""After so many observations, `--once` says that it goes on because groups are read in turn."""

MOST_ONCE_S = 300.0
"""How long `--once` goes on until all groups have been read. Brokers before 3.0 are asked about three at a
time."""

INTERNAL_ERROR = 70
"""The exit code after a bug, as of `kview check`."""

_log = logging.getLogger(__name__)

_writing = threading.Lock()
"""Held while a block is written."""

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals on which a recording run closes its last segment and ends, and a run with on-finding logs what was
not sent. Otherwise these signals just kill the run."""


class Printed(NamedTuple):
    """A source to print: `takers` get every snapshot with its view, and `hear` every notice."""

    source: Source
    name: str
    display: Display
    takers: Sequence[Taker] = ()
    hear: Callable[[Notice], None] | None = None


def print_all(printed: Sequence[Printed], clock_s: Callable[[], float] = time.monotonic) -> int:
    """Print a block or document of each source every interval, or with `once` a single one.

    If `display` is quiet, nothing is printed but notices, and a cluster that cannot be reached yet is waited
    for, as are several clusters without `once`. Notices go to standard error. Every source is recorded if its
    `display` names a folder. Returns the exit code: 0, even if nobody reads the output any more, or that of
    the worst error of several clusters. The error of a single one is raised, but only before the first view.
    """
    ending = threading.Event()
    is_several = len(printed) > 1
    recorders = [_recorder(each, is_several) for each in printed]
    printed = [
        each if recorder is None else each._replace(takers=(recorder.offer, *each.takers))
        for each, recorder in zip(printed, recorders, strict=True)
    ]
    try:
        if is_several:
            return _print_each(printed, ending, clock_s)
        _print_source(printed[0], ending, False, clock_s)
        return 0
    finally:
        until_s = time.monotonic() + TEXT_CLOSES_WITHIN_S
        for recorder in recorders:
            if recorder is not None:
                recorder.end()
        for each, recorder in zip(printed, recorders, strict=True):
            if recorder is not None:
                recorder.stop(max(0.0, until_s - time.monotonic()))
                if recorder.unfinished is not None:
                    _say(sentence(recorder.unfinished), each, is_several)


def _recorder(printed: Printed, is_one_of_several: bool) -> Recorder | None:
    """Return what records a source, which has begun, None if nothing does."""
    if printed.display.record.folder is None:
        return None
    recorder = Recorder(printed.display.record)
    recorder.start(lambda notice: _say(notices.text(notice), printed, is_one_of_several))
    return recorder


def _print_each(printed: Sequence[Printed], ending: threading.Event, clock_s: Callable[[], float]) -> int:
    """Print several sources until they end, and return the exit code of the worst error."""
    codes = [0] * len(printed)

    def run(at: int) -> None:
        each = printed[at]
        try:
            _print_source(each, ending, True, clock_s)
        except KviewError as error:
            codes[at] = error.exit_code
            _say(sentence(error), each, True)
        except BaseException:
            codes[at] = INTERNAL_ERROR
            _log.exception("%s is not printed any more", each.name)
            _say("stopped by a bug; the log file says more", each, True)
        if not each.display.once and not codes[at]:
            ending.set()  # nobody reads the output any more

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(len(printed))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        ending.set()
        # One that is connecting may take seconds. Nobody waits for it.
        until_s = time.monotonic() + STOP_WITHIN_S
        for thread in threads:
            thread.join(max(0.0, until_s - time.monotonic()))
    return max(codes)


def _print_source(
    printed: Printed, ending: threading.Event, is_one_of_several: bool, clock_s: Callable[[], float]
) -> None:
    """Print a source until `ending` is set or nobody reads the output."""
    source, name, display, takers, hear = printed
    fold: Callable[[], Fold[View]] = partial(new_fold, display.ignore_groups, takers)
    patient = (display.quiet or is_one_of_several) and not display.once
    interval_s, first_s = display.interval_ms / 1000, math.nan
    fit, seen = _fit(display.ascii_only), 0
    try:
        with until_nobody_reads():
            for item in views(source, fold, interval_s, ending.wait, clock_s, patient):
                if isinstance(item, Notice):
                    _say(notices.text(item), printed, is_one_of_several)
                    if hear is not None:
                        hear(item)
                    continue
                seen += 1
                if display.once:
                    first_s = clock_s() if seen == 1 else first_s
                    unread = _unread(item)
                    is_over = clock_s() - first_s >= MOST_ONCE_S
                    if unread and (is_over or seen == AWAITED_OBSERVATIONS):
                        _say(_of_groups(item, unread, is_over), printed, is_one_of_several)
                    if seen < OBSERVATIONS_FOR_RATES or (unread and not is_over):
                        continue
                if not display.quiet:
                    _print(item, name, display, fit, is_one_of_several)
                if display.once:
                    break
    finally:
        source.close()


def end_on_signals() -> None:
    """Let signals end the run like an error, so that everything is stopped in order."""
    for number in ENDS:
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _unread(view: View) -> int:
    """Return the number of groups that the next observations read for the first time."""
    groups = view.snapshot.groups
    return int((groups.unread & (groups.error == "")).sum())


def _of_groups(view: View, unread: int, is_over: bool) -> str:
    """Return what to say while groups are unread, or when there is no more time for them."""
    kind = NoticeKind.GROUPS_LEFT_OUT if is_over else NoticeKind.GROUPS_AWAITED
    values = {"unread": unread, "groups": len(view.snapshot.groups), "limit_s": MOST_ONCE_S}
    return notices.text(Notice(kind, values))


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


def _print(
    view: View, name: str, display: Display, fit: Callable[[str], str], is_one_of_several: bool = False
) -> None:
    if display.format is Format.JSON:
        text = document(view, name if is_one_of_several else None)
    else:
        text = fit(block(view, name))
    with _writing:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def note(notice: Notice, ascii_only: bool, cluster: str = "") -> None:
    """Print a notice on standard error, with the name of the `cluster` if there are several."""
    _print_error(notices.text(notice), ascii_only, cluster)


def _say(text: str, printed: Printed, is_one_of_several: bool) -> None:
    """Print on standard error what is to be said of a source."""
    _print_error(text, printed.display.ascii_only, printed.name if is_one_of_several else "")


def _print_error(text: str, ascii_only: bool, cluster: str) -> None:
    of = f"{cluster}: " if cluster else ""
    print(_fit(ascii_only)(glyphs.printable(f"kview: {of}{text}")), file=sys.stderr, flush=True)
