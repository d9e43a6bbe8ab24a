"""`kview records`: prints records of a topic, or looks for some, and says what it could not read."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TextIO

from msgspec import Struct

from kview.derive.following import Following
from kview.errors import BadUse, ErrorKind, KviewError
from kview.language import glyphs, inspection, tail, where
from kview.language import search as said
from kview.language.payloads import Form
from kview.model.inspection import MOST_RECORDS, InspectionFailureKind, Isolation
from kview.model.search import (
    MOST_FOUND,
    Begin,
    BeginKind,
    SearchPlan,
    SearchPlanRequest,
    SearchRequest,
    Tally,
)
from kview.model.tail import TailAnswer
from kview.model.units import UNKNOWN
from kview.model.where import Candidate, Where
from kview.plain.records import record_document, record_line
from kview.run import terminal
from kview.run.connected import ConnectedSource
from kview.run.log import start_log
from kview.run.printing import until_nobody_reads

COMPLETE, INCOMPLETE = 0, 1
"""Exit codes: whether all that was asked for could be read."""
OVER_AGAIN_MS = 10_000
"""How often it is said how much is passed over, at most."""


class RecordFormat(StrEnum):
    """How records are printed."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"


class RecordsOptions(Struct, frozen=True):
    """What to look for, and where. `most` is 0 for all, and `bytes_per_second` for as fast as it goes."""

    topic: str
    partitions: tuple[int, ...] = ()
    begin: Begin = Begin()
    until_ms: int = UNKNOWN
    where: Where | None = None
    isolation: Isolation = Isolation.READ_COMMITTED
    most: int = 0
    most_bytes: int = 1 << 30
    """Of a search."""
    bytes_per_second: int = 0
    follow: bool = False
    """Whether to print what is written from now on, until somebody stops that."""
    format: RecordFormat = RecordFormat.TEXT
    ascii_only: bool = False


def print_records(source: ConnectedSource, options: RecordsOptions) -> int:
    """Print the records, and return the exit code. Raises BadUse, ClusterUnreachable or KviewError.

    What could not be read is said on standard error. If that is a terminal, progress is, too. What has been
    found is printed at least twice a second, so that Ctrl-C, which ends the process, loses nothing.
    """
    start_log()
    try:
        source.connect()
        with until_nobody_reads():
            return asyncio.run((_follow if options.follow else _search)(source, options))
        return COMPLETE  # nobody reads the output any more
    finally:
        source.close()


async def _search(source: ConnectedSource, options: RecordsOptions) -> int:
    wanted = SearchPlanRequest(
        options.topic,
        options.partitions,
        options.begin,
        options.until_ms,
        options.isolation,
        options.where,
    )
    plan = await source.ask(wanted)
    if plan.failure:
        raise _error(plan, options)
    status = _Status(sys.stderr)
    status.note(said.plan(plan, options.most_bytes))
    output = _Output(options)
    spans, tally, cost = plan.spans, Tally(), plan.cost
    while not all(span.is_over for span in spans):
        left = options.most_bytes - tally.bytes
        most = min(MOST_FOUND, options.most - output.printed) if options.most else MOST_FOUND
        if left <= 0 or most <= 0:
            break
        answer = await source.ask(
            SearchRequest(
                options.topic,
                spans,
                options.where,
                options.isolation,
                options.begin.value if options.begin.kind is BeginKind.TIME else UNKNOWN,
                options.until_ms,
                most,
                left,
                options.bytes_per_second,
            )
        )
        if answer.failure:
            reason = inspection.failure(answer.failure, answer)
            status.clear()
            raise KviewError(ErrorKind.RECORDS_NOT_READ, reason=reason)
        spans, tally = answer.spans, tally + answer.tally
        cost += answer.cost
        if answer.found:
            status.clear()
            output.print(answer.found)
        status.show(said.progress(spans, tally, cost, output.printed))
    status.clear()
    status.note(said.progress(spans, tally, cost, output.printed))
    status.note(said.left_out(tally))
    is_enough = bool(options.most) and output.printed >= options.most
    incomplete = [
        *said.unread(wanted, spans),
        *([] if is_enough else [said.stopped(spans, options.most_bytes)]),
    ]
    lines = [line for line in (*incomplete, *said.notes(tally)) if line]
    for line in lines:
        print(glyphs.printable(f"kview: {line}"), file=sys.stderr, flush=True)
    return INCOMPLETE if lines else COMPLETE


async def _follow(source: ConnectedSource, options: RecordsOptions) -> int:
    """Print what is written to the topic, until Ctrl-C or the last record that is wanted."""
    followed = Following(
        options.topic,
        options.isolation,
        options.where,
        count=MOST_RECORDS,
        bytes_per_second=options.bytes_per_second,
    )
    status, output = _Status(sys.stderr), _Output(options)
    said_before: list[str] = []
    over, said_ms = 0, UNKNOWN
    while not options.most or output.printed < options.most:
        answer = await source.ask(followed.question())
        if answer.refused is not None or (answer.failure and followed.answer is None):
            raise _error(answer, options)
        followed.take(answer)
        notes = tail.notes(answer)
        lines = notes if notes != said_before else []
        said_before = notes
        read_over = answer.passed - len(answer.records) if options.where is None else 0
        over += read_over + answer.skipped
        if over and answer.asked_ms >= said_ms + OVER_AGAIN_MS:
            lines = [*lines, tail.passed_over(over)]
            over, said_ms = 0, answer.asked_ms
        for line in lines:
            status.clear()
            print(glyphs.printable(f"kview: {line}"), file=sys.stderr, flush=True)
        left = options.most - output.printed if options.most else len(answer.records)
        if answer.records:
            status.clear()
            output.print(answer.records[:left])
        if (rates := followed.rates()) is not None:
            shown = tail.rates(rates.shown, rates.passing, rates.is_estimate)
            status.show(f"{shown}, {tail.cost(rates.bytes)}")
        await asyncio.sleep(followed.wait_s())
    status.clear()
    return COMPLETE


def _error(plan: SearchPlan | TailAnswer, options: RecordsOptions) -> KviewError:
    if plan.failure.kind is InspectionFailureKind.UNKNOWN_TOPIC:
        numbers = ", ".join(map(str, options.partitions))
        what = f"topic {options.topic!r}" + (f" with partition {numbers}" if numbers else "")
        return BadUse(ErrorKind.TOPIC_NOT_THERE, what=what)
    if plan.failure.kind is InspectionFailureKind.MASKED and plan.refused is not None:
        return BadUse(ErrorKind.FILTER_MASKED, field=where.in_full(plan.refused.field), topic=options.topic)
    return KviewError(ErrorKind.RECORDS_NOT_READ, reason=inspection.failure(plan.failure, plan))


class _Output:
    """Prints records on standard output."""

    def __init__(self, options: RecordsOptions) -> None:
        self.printed = 0
        encoding = getattr(sys.stdout, "encoding", None)
        output = terminal.detect(False, os.environ, encoding, options.ascii_only)
        self._fit: Callable[[str], str] = glyphs.plain if output.ascii_only else str
        self._topic = options.topic
        self._format = options.format

    def print(self, found: tuple[Candidate, ...]) -> None:
        """Print records at once."""
        self.printed += len(found)
        for each in found:
            sys.stdout.write(f"{self._line(each)}\n")
        sys.stdout.flush()

    def _line(self, found: Candidate) -> str:
        if self._format is RecordFormat.JSON:
            return record_document(self._topic, found)
        form = Form.HEX if self._format is RecordFormat.HEX else Form.AUTO
        return self._fit(record_line(self._topic, found, form, None))


class _Status:
    """A line on a terminal that says how far it is. Elsewhere nothing is said."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._shown_s = 0.0

    def note(self, text: str) -> None:
        """Say something that stays."""
        if self._is_terminal and text:
            print(f"kview: {text}", file=self._stream, flush=True)

    def show(self, text: str) -> None:
        """Say how far it is, in place of what was said before."""
        if self._is_terminal and time.monotonic() - self._shown_s > 0.2:
            self._shown_s = time.monotonic()
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()

    def clear(self) -> None:
        """Make room for other lines."""
        if self._is_terminal and self._shown_s:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
