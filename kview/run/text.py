"""The run without a dashboard: a block of text or a JSON document each interval, until it is ended or its
reader has gone."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TextIO

from kview.derive.view import View
from kview.language import glyphs, notices
from kview.language.errors import sentence
from kview.model.notices import Notice
from kview.plain.blocks import block
from kview.plain.documents import document
from kview.run.folding import new_fold
from kview.run.observing import Source, pictures
from kview.run.settings import Display, Format
from kview.run.tape import TEXT_CLOSES_WITHIN_S, Tape, TapedSource

OBSERVATIONS_FOR_RATES = 2
"""What `--once` looks at: of one observation alone no rate is known."""


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a run that records, after its last segment is closed; one that does not just dies of them."""


def print_recorded(source: Source, name: str, display: Display, ascii_only: bool) -> int:
    """`print_pictures`, with all that was observed recorded to the folder that `display` names."""
    tape = Tape(display.record)
    for number in ENDS:
        signal.signal(number, _end)
    tape.start(lambda notice: _note(notice, _fit(ascii_only)))
    try:
        return print_pictures(TapedSource(source, tape), name, display, ascii_only)
    finally:
        tape.stop(TEXT_CLOSES_WITHIN_S)
        if tape.unfinished is not None:
            print(f"kview: {sentence(tape.unfinished)}", file=sys.stderr)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def print_pictures(source: Source, name: str, display: Display, ascii_only: bool) -> int:
    """Prints `source`, one block or document an interval; with `once` a single one. Notices go to standard
    error.

    Returns the exit code: 0, also where the reader of a pipe has gone. Raises KviewError before the first
    picture.
    """
    fit = _fit(ascii_only)
    seen = 0
    try:
        with _until_the_reader_goes():
            for picture in pictures(source, new_fold, display.interval_ms / 1000, _sleep):
                if isinstance(picture, Notice):
                    _note(picture, fit)
                    continue
                seen += 1
                if display.once and seen < OBSERVATIONS_FOR_RATES:
                    continue
                _print(picture, name, display, fit)
                if display.once:
                    break
    finally:
        source.close()
    return 0


def print_views(views: Iterable[View], name: str, display: Display, ascii_only: bool) -> int:
    """Prints `views` as they come, a block or document each. Returns the exit code: 0."""
    fit = _fit(ascii_only)
    with _until_the_reader_goes():
        for view in views:
            _print(view, name, display, fit)
    return 0


@contextmanager
def _until_the_reader_goes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # What is still buffered has nobody to read it; the interpreter would complain when it flushes at its
        # end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fit(ascii_only: bool) -> Callable[[str], str]:
    return glyphs.plain if ascii_only else str


def _print(view: View, name: str, display: Display, fit: Callable[[str], str]) -> None:
    as_json = display.format is Format.JSON
    _write(document(view) if as_json else fit(block(view, name)), sys.stdout)


def _note(notice: Notice, fit: Callable[[str], str]) -> None:
    print(fit(f"kview: {notices.text(notice)}"), file=sys.stderr, flush=True)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _write(text: str, output: TextIO) -> None:
    output.write(text + "\n")
    output.flush()
