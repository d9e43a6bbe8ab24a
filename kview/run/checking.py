"""Runs a check: observes a source until it can be judged, and reports what was found."""

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kview.derive.checks.cluster import Limits
from kview.derive.checks.judge import Ignore, Watch, is_deciding, more_tells, step
from kview.derive.checks.outcome import Outcome, Rules, outcome_of
from kview.errors import (
    BadUse,
    CheckUnfinished,
    ClusterUnreachable,
    ErrorFacts,
    ErrorKind,
    KviewError,
    error_of,
)
from kview.language import glyphs
from kview.language.errors import sentence
from kview.model.checks import Judgement
from kview.model.notices import Notice, NoticeKind
from kview.plain.check_documents import check_document
from kview.plain.check_lines import lines
from kview.plain.junit import junit
from kview.run import terminal
from kview.run.log import start_log
from kview.run.observing import Source, new_fold, views
from kview.run.printing import until_nobody_reads
from kview.run.settings import Format

_log = logging.getLogger(__name__)

INTERVAL_S = 1.0
"""The time between the observations of a check."""

LEAST_S = 6.0
"""How long a check observes at least: a slow broker shows after five seconds, and readings are up to one
interval old."""

MOST_S = 75.0
"""How long a check observes at most if something needs more observations, such as a slow group: the trend of
its lag shows after a minute. --for replaces both limits."""

GRACE_S = 5.0
"""How much longer than --for a check observes at most if a broker owes an answer at that very moment."""

HEALTHY, FINDINGS = 0, 1
"""The exit codes of a check that has a result."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to judge and how to report it."""

    rules: Rules = field(default_factory=Rules)
    limits: Limits = field(default_factory=Limits)
    ignore: tuple[Ignore, ...] = ()
    for_s: float | None = None
    """How long to observe; None for as long as it takes, within LEAST_S and MOST_S."""
    format: Format = Format.TEXT
    junit: Path | None = None
    ascii_only: bool = False


def check(source: Source, name: str, options: CheckOptions) -> int:
    """Judge `source`, called `name` in the report, and return the exit code.

    Raises BadUse, ClusterUnreachable, and CheckUnfinished if there is no result or it cannot be written.
    """
    start_log()
    try:
        if options.junit is not None:
            _check_folder(options.junit)
        return _check(source, name, options)
    except (BadUse, ClusterUnreachable):
        raise
    except KviewError as error:
        raise CheckUnfinished.of(error) from error
    finally:
        source.close()


def _check_folder(file: Path) -> None:
    """Raise BadUse if `file` cannot be written, before the time is spent on observing."""
    if not file.name:
        raise BadUse(ErrorKind.FILE_NOT_WRITTEN, file=str(file), reason="no file name")
    folder = file.absolute().parent
    if not folder.is_dir():
        raise BadUse(ErrorKind.FILE_NOT_WRITTEN, file=str(file), reason="no such folder")
    if not file.exists() and not os.access(folder, os.W_OK):
        raise BadUse(ErrorKind.FILE_NOT_WRITTEN, file=str(file), reason="permission denied")


def _check(source: Source, name: str, options: CheckOptions) -> int:
    outcome = observe(source, options)
    unwritten: KviewError | None = None
    if options.junit is not None:
        try:
            write(options.junit, junit({name: outcome}))
        except KviewError as error:
            unwritten = error
    _print(outcome, name, options)
    if unwritten is not None:
        raise unwritten
    return HEALTHY if outcome.healthy else FINDINGS


class Checked(NamedTuple):
    """A cluster to judge. Format, file and the like are as in the options of the first one."""

    source: Source
    name: str
    options: CheckOptions


def check_all(checked: Sequence[Checked]) -> int:
    """Judge several clusters at the same time, print what was found in each, in order, and return the exit
    code: the highest of theirs.

    Why one has no result is printed to standard error. Raises BadUse, and CheckUnfinished if what was found
    cannot be written.
    """
    start_log()
    options = checked[0].options
    try:
        if options.junit is not None:
            _check_folder(options.junit)
        with ThreadPoolExecutor(len(checked)) as pool:
            outcomes = list(pool.map(_outcome, checked))
        codes = []
        for each, outcome in zip(checked, outcomes, strict=True):
            if isinstance(outcome, Outcome):
                _print(outcome, each.name, each.options, is_one_of_several=True)
                codes.append(HEALTHY if outcome.healthy else FINDINGS)
            else:
                print(f"kview: {glyphs.printable(each.name)}: {_why(outcome)}", file=sys.stderr, flush=True)
                codes.append(_code(outcome))
        if options.junit is not None:
            by_name = {
                each.name: outcome if isinstance(outcome, Outcome) else _why(outcome)
                for each, outcome in zip(checked, outcomes, strict=True)
            }
            try:
                write(options.junit, junit(by_name))
            except KviewError as error:
                raise CheckUnfinished.of(error) from error
        return max(codes)
    finally:
        for each in checked:
            each.source.close()


def _outcome(checked: Checked) -> Outcome | Exception:
    try:
        return observe(checked.source, checked.options)
    except Exception as error:
        if not isinstance(error, KviewError):
            _log.exception("%s could not be checked", checked.name)
        return error


def _why(error: Exception) -> str:
    return sentence(error) if isinstance(error, KviewError) else f"bug: {type(error).__name__}: {error}"


def _code(error: Exception) -> int:
    is_expected = isinstance(error, (BadUse, ClusterUnreachable))
    return error.exit_code if isinstance(error, KviewError) and is_expected else CheckUnfinished.exit_code


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def observe(
    source: Source,
    options: CheckOptions,
    wait: Callable[[float], bool] = _sleep,
    clock_s: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Observe `source` until it can be judged, and return the outcome. Raises KviewError.

    `wait` lets some seconds pass on `clock_s`.
    """
    watch = Watch(options.limits, options.ignore)
    began_s: float | None = None
    for item in views(source, new_fold, INTERVAL_S, wait, clock_s):
        if isinstance(item, Notice):
            end_if_lost(item)
            continue
        now_s = clock_s()
        began_s = now_s if began_s is None else began_s
        watched_s = now_s - began_s
        watch, judgement = step(watch, item)
        if _is_over(watched_s, options.for_s, judgement):
            return outcome_of(item, judgement, round(watched_s * 1000), options.rules)
    raise AssertionError("observing ends only by itself")


def _is_over(watched_s: float, for_s: float | None, judgement: Judgement) -> bool:
    if for_s is not None:
        return watched_s >= for_s + (GRACE_S if is_deciding(judgement) else 0.0)
    return watched_s >= (MOST_S if more_tells(judgement) else LEAST_S)


def end_if_lost(notice: Notice) -> None:
    """Raise what ends a check: the cluster's process has ended, or kview has a bug."""
    if notice.kind is NoticeKind.SOURCE_LOST:
        lost = notice.values["lost"]
        assert isinstance(lost, ErrorFacts)
        raise ClusterUnreachable.of(error_of(lost))
    if notice.kind is NoticeKind.OBSERVING_FAILED:
        raise RuntimeError(notice.values["bug"])


def _print(outcome: Outcome, name: str, options: CheckOptions, is_one_of_several: bool = False) -> None:
    if options.format is Format.JSON:
        text = check_document(outcome, name if is_one_of_several else None) + "\n"
    else:
        text = lines(outcome, name) + ("\n" if is_one_of_several else "")
        encoding = getattr(sys.stdout, "encoding", None)
        if terminal.detect(False, os.environ, encoding, options.ascii_only).ascii_only:
            text = "\n".join(map(glyphs.plain, text.split("\n")))
    with until_nobody_reads():
        sys.stdout.write(text)
        sys.stdout.flush()


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises KviewError.

    What is not a regular file, such as a device, is written directly.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        path = path.resolve()  # a link stays, and what it leads to is written
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            part.write_bytes(content)
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise KviewError(ErrorKind.FILE_NOT_WRITTEN, file=str(path), reason=reason) from error
