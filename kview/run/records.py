"""`kview records`: prints records of a topic, or looks for some, and says what it could not read."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TextIO

from msgspec import Struct
from msgspec.structs import replace

from kview.derive.following import POLL_S, Following
from kview.errors import BadUse, ErrorKind, KviewError
from kview.language import glyphs, inspection, tail, where
from kview.language import search as said
from kview.language.payloads import Form
from kview.model.inspection import (
    MOST_RECORDS,
    NO_INSPECTION_FAILURE,
    Cost,
    Damage,
    InspectionFailureKind,
    Isolation,
)
from kview.model.search import (
    MOST_FOUND,
    Begin,
    BeginKind,
    SearchPlan,
    SearchPlanRequest,
    SearchRequest,
    Span,
    Tally,
)
from kview.model.tail import TailAnswer
from kview.model.units import UNKNOWN
from kview.model.where import Candidate, Where
from kview.plain.records import record_document, record_line
from kview.run import terminal
from kview.run.log import start_log
from kview.run.observing import ConnectedSource
from kview.run.printing import until_nobody_reads

RETRIES_S = (2.0, 4.0, 6.0)
"""The pauses before partitions are tried again whose leader has not answered. The session of a dead broker
ends after 9 s by default, and then others lead."""
PASSING = frozenset(
    {InspectionFailureKind.NO_LEADER, InspectionFailureKind.NO_ANSWER, InspectionFailureKind.TIMEOUT}
)
"""The failures that may pass."""
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
            work = _follow(source, options) if options.follow else _Search(source, options).run()
            return asyncio.run(work)
        return COMPLETE  # nobody reads the output any more
    finally:
        source.close()


class _Search:
    """A search and what it has come to so far."""

    def __init__(self, source: ConnectedSource, options: RecordsOptions) -> None:
        self._source = source
        self._options = options
        self._status = _Status(sys.stderr)
        self._output = _Output(options)
        self._tally = Tally()
        self._cost = Cost()
        self._spans: tuple[Span, ...] = ()
        self._damage: list[tuple[int, Damage]] = []

    async def run(self) -> int:
        """Print what there is to print, and return the exit code. Raises BadUse or KviewError."""
        options, status = self._options, self._status
        wanted = SearchPlanRequest(
            options.topic,
            options.partitions,
            options.begin,
            options.isolation,
            options.where,
        )
        plan = await self._source.ask(wanted)
        if plan.failure:
            raise _error(plan, options)
        status.note(said.plan(plan, options.most_bytes))
        self._spans, self._cost = plan.spans, plan.cost
        await self._read()
        for pause_s in RETRIES_S:
            failed = tuple(span.partition for span in self._spans if span.failure.kind in PASSING)
            if not failed or self._is_enough:
                break
            status.show(f"waiting for {said.partitions(failed)}")
            await asyncio.sleep(pause_s)
            self._plan_again(await self._source.ask(replace(wanted, partitions=failed)))
            await self._read()
        status.clear()
        status.note(said.progress(self._spans, self._tally, self._cost, self._output.printed))
        status.note(said.left_out(self._tally))
        stopped = "" if self._is_enough else said.stopped(self._spans, options.most_bytes)
        every = (*said.unread(wanted, self._spans), stopped, *said.notes(self._tally, self._damage))
        lines = [line for line in every if line]
        for line in lines:
            print(glyphs.printable(f"kview: {line}"), file=sys.stderr, flush=True)
        return INCOMPLETE if lines else COMPLETE

    @property
    def _is_enough(self) -> bool:
        """Whether there are as many records as were asked for."""
        return bool(self._options.most) and self._output.printed >= self._options.most

    async def _read(self) -> None:
        """Ask for one step after the other, and print what each has found."""
        options, output = self._options, self._output
        while not all(span.is_over for span in self._spans):
            if self._is_enough:
                return
            answer = await self._source.ask(
                SearchRequest(
                    options.topic,
                    self._spans,
                    options.where,
                    options.isolation,
                    options.begin.value if options.begin.kind is BeginKind.TIME else UNKNOWN,
                    options.until_ms,
                    min(MOST_FOUND, options.most - output.printed) if options.most else MOST_FOUND,
                    max(0, options.most_bytes - self._tally.bytes),
                    options.bytes_per_second,
                )
            )
            if answer.failure:
                self._status.clear()
                reason = inspection.failure(answer.failure, answer)
                raise KviewError(ErrorKind.RECORDS_NOT_READ, reason=reason)
            self._spans = answer.spans
            self._tally += answer.tally
            self._cost += answer.cost
            self._damage += answer.damage[: said.MOST_NUMBERS + 1 - len(self._damage)]
            if answer.found:
                self._status.clear()
                output.print(answer.found)
            self._status.show(said.progress(self._spans, self._tally, self._cost, output.printed))
            if answer.is_spent:
                return

    def _plan_again(self, plan: SearchPlan) -> None:
        """Go on with partitions whose leader could not be asked, where they were left."""
        self._cost += plan.cost
        newer = {span.partition: span for span in plan.spans}
        self._spans = tuple(resumed(span, newer.get(span.partition)) for span in self._spans)


def resumed(span: Span, newer: Span | None) -> Span:
    """Return the span to go on with, given what a newer plan says of a partition."""
    if newer is None:
        return span
    is_planned = span.end > 0
    begin_is_gone = newer.failure.kind is InspectionFailureKind.OFFSET_OUT_OF_RANGE
    if newer.failure and not (is_planned and begin_is_gone):
        return replace(span, failure=newer.failure)
    if not is_planned:
        return newer
    at = min(span.at, newer.end)  # what was deleted meanwhile is counted when it is asked for
    return replace(newer, begin=min(span.begin, at), at=at, failure=NO_INSPECTION_FAILURE)


async def _follow(source: ConnectedSource, options: RecordsOptions) -> int:
    """Print what is written to the topic, until Ctrl-C or the last record that is wanted.

    Returns the exit code: whether something that was written could not be read or judged. What is passed over
    because it is too much does not count.
    """
    followed = Following(
        options.topic,
        options.isolation,
        options.where,
        count=MOST_RECORDS,
        bytes_per_second=options.bytes_per_second,
    )
    status, output = _Status(sys.stderr), _Output(options)
    said_before: list[str] = []
    over, said_ms, is_incomplete = 0, UNKNOWN, False
    while not options.most or output.printed < options.most:
        answer = await source.ask(followed.question())
        if answer.refused is not None or (answer.failure and followed.answer is None):
            raise _error(answer, options)
        followed.take(answer)
        notes = tail.notes(answer)
        lines = notes if notes != said_before else []
        said_before = notes
        is_incomplete |= bool(answer.failure or answer.unread or answer.damage or answer.restarted)
        is_incomplete |= bool(answer.unknown)
        wanted = answer.passed if options.where is None else answer.matched
        over += wanted - len(answer.records) + answer.skipped
        if over and answer.asked_ms >= said_ms + OVER_AGAIN_MS:
            lines = [*lines, tail.passed_over(over, int(MOST_RECORDS / POLL_S))]
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
    return INCOMPLETE if is_incomplete else COMPLETE


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
