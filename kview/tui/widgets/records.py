"""The panel of a partition's records, which are read only when a key asks for them."""

import asyncio
import re
from typing import ClassVar

from msgspec.structs import replace
from textual.binding import BindingType
from textual.message import Message

from kview.derive.following import POLL_S, Following
from kview.derive.times import moment_of
from kview.derive.view import View
from kview.language import decoded as schemas
from kview.language import glyphs, tail, words
from kview.language import inspection as said
from kview.language import search as searches
from kview.language.inspection import RECORDS_FORMS
from kview.language.payloads import Form, next_form
from kview.language.where import FORMS as WHERE_FORMS
from kview.language.where import problem
from kview.model.decoded import (
    NOT_DECODED,
    DecodeAnswer,
    DecodedRecord,
    DecodeRequest,
)
from kview.model.events import Severity
from kview.model.inspection import (
    DEFAULT_RECORDS,
    MOST_RECORDS,
    Isolation,
    RecordsAnswer,
    RecordsRequest,
    Start,
    StartKind,
)
from kview.model.ports import Inspector
from kview.model.search import SearchPlanRequest, SearchRequest
from kview.model.tail import TailAnswer
from kview.model.units import UNKNOWN
from kview.model.where import Problem
from kview.model.where import Where as Filter
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows.found import MOST_KEPT, Found, FoundRows, own_cells
from kview.tui.rows.records import RecordDetail, RecordRows
from kview.tui.rows.tail import TailRows
from kview.tui.text import Role, Span
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.inspecting import InspectingTable
from kview.tui.widgets.prompt import Question
from kview.where.parse import parse_with_columns

_OFFSET = re.compile(r"[0-9][0-9,_ ]{0,30}")
_LAST = re.compile(r"last\s+([0-9]{1,9})", re.IGNORECASE)
_READING = frozenset({"latest", "read_from", "partition", "isolation", "search", "follow"})
"""The actions that lead to reading records."""
_LONG_MAX = 2**63 - 1
SEARCH_BYTES = 500_000_000
"""How many bytes of records a search fetches at most. `kview records` may read more."""
SEARCH_RATE = 100_000_000
"""How many of them a second."""
KEPT_BYTES = 32 << 20
"""Limit of the bytes of the records that are kept."""


class RecordsPanel(InspectingTable):
    """The records of a partition of a topic. Nothing is read until a key asks for it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.RECORDS)]

    class Read(Message):
        """Posted when records were read, or decoded."""

    def __init__(
        self, topic: str, partition: int = 0, *, first: RecordsRequest | None = None, id: str = "records"
    ) -> None:
        """Show records of a partition. `first` is read at once, because the key that led here asks for it."""
        super().__init__(id=id)
        self._request = first or RecordsRequest(topic, partition)
        self._first = first
        self._answer: RecordsAnswer | None = None
        self._decoded: DecodeAnswer | None = None
        """What a schema registry's schemas make of the answer's records, None while that is not known."""
        self._found: Found | None = None
        """A search, if that is what is shown."""
        self._form = Form.AUTO
        self._partitions = 0
        self._followed: Following | None = None
        """The topic as it is followed, or was until a key stopped that."""
        self._missed = UNKNOWN
        """How many records have passed since it is paused."""

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return self._request.topic

    @property
    def partition(self) -> int:
        """The partition whose records are shown."""
        return self._request.partition

    def on_mount(self) -> None:
        """Say which keys read records."""
        self._invite()
        self.refill()
        if self._first is not None and self.check_action("latest", ()):
            self._ask(self._first)

    @property
    def answer(self) -> RecordsAnswer | None:
        """What was read last."""
        return self._answer

    def decoded_at(self, offset: int) -> DecodedRecord:
        """Return what was decoded of a record."""
        rows, index = self.rows, self.rows.find(offset)
        return rows.decoded(index) if isinstance(rows, RecordRows) and index is not None else NOT_DECODED

    def show(self, view: View, options: Options) -> None:
        """Take from a view how many partitions the topic has. The records stay as they were read."""
        table = view.snapshot.partitions
        rows = table.topic == self._request.topic
        self._partitions = int(rows.sum())
        followed = self._followed
        if followed is not None and followed.paused and self.asking and view.moment.live:
            ends = dict(zip(table.partition[rows].tolist(), table.high_watermark[rows].tolist(), strict=True))
            key, self._missed = app_of(self).keys.name("pause"), followed.passed_by(ends)
            self.message(tail.paused(self._missed, key), Role.WARN)

    def refill(self) -> None:
        zone, found, followed = app_of(self).zone, self._found, self._followed
        if followed is not None:
            is_over, at_end = not self.asking, self.index >= len(self.rows) - 1
            self.fill(lambda: TailRows(followed, is_over, self._form, zone))
            if at_end and len(self.rows):
                self.action_end(1)
        elif found is not None:
            self.fill(lambda: FoundRows(found, self._form, zone))
        else:
            self.fill(lambda: RecordRows(self._request, self._answer, self._form, zone, self._decoded))

    def _invite(self) -> None:
        what = f"{self._request.topic}-{self._request.partition}"
        inspector = app_of(self).inspector
        if inspector is None:
            self.message(said.NOT_IN_A_RECORDING, Role.DIM)
            return
        if not inspector.reads_records:
            self.message(said.SWITCHED_OFF, Role.WARN)
            return
        names = ("read-latest", "read-from", "read-partition", "filter", "follow")
        latest, place, other, find, follow = map(app_of(self).keys.name, names)
        self.message(
            f"No record is read until you ask for it.\n{latest}  the last {DEFAULT_RECORDS} records of {what}"
            f"\n{place}  {RECORDS_FORMS}\n{other}  another partition"
            f"\n{find}  find some in all partitions: {WHERE_FORMS}"
            f"\n{follow}  follow what is written to all partitions",
            Role.DIM,
        )

    # -- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action works: those that read records, only if records may be read."""
        if action == "hold":
            followed = self._followed
            return followed is not None and self.asking and followed.paused == (parameters == ("on",))
        if action in _READING:
            inspector = app_of(self).inspector
            return inspector is not None and inspector.reads_records
        return super().check_action(action, parameters)

    def action_latest(self) -> None:
        """Read the last records."""
        self._ask(replace(self._request, start=Start(), count=DEFAULT_RECORDS))

    def action_read_from(self) -> None:
        """Ask from where to read."""
        app_of(self).ask(Question("from", RECORDS_FORMS, "read", self._from))

    def _from(self, typed: str) -> None:
        start, count = self._start(typed)
        if start is None:
            app_of(self).say(
                StatusMessage(
                    f"{typed!r} is not a place to read from", f"write {RECORDS_FORMS}", Severity.WARN
                )
            )
            return
        self._ask(replace(self._request, start=start, count=count))

    def _start(self, typed: str) -> tuple[Start | None, int]:
        """Return what was typed, None if it is not understood, and the number of records."""
        if not typed:
            return Start(), DEFAULT_RECORDS
        if match := _LAST.fullmatch(typed):
            return Start(), max(1, min(MOST_RECORDS, int(match[1])))
        if _OFFSET.fullmatch(typed):
            offset = int(re.sub(r"[^0-9]", "", typed))
            return (Start(StartKind.OFFSET, offset) if offset <= _LONG_MAX else None), DEFAULT_RECORDS
        now_ms = app_of(self).wall_ms()
        at_ms = moment_of(
            typed, minus_from_ms=now_ms, plus_from_ms=now_ms, last_ms=now_ms, zone=app_of(self).zone
        )
        if at_ms is None or at_ms < 0:
            return None, DEFAULT_RECORDS
        return Start(StartKind.TIME, at_ms), DEFAULT_RECORDS

    def action_partition(self) -> None:
        """Ask for another partition."""
        last = max(0, self._partitions - 1)
        app_of(self).ask(
            Question("partition", f"a partition of {self._request.topic}, 0 to {last}", "read", self._to)
        )

    def _to(self, typed: str) -> None:
        if not typed:
            return
        if not re.fullmatch(r"[0-9]{1,9}", typed) or (self._partitions and int(typed) >= self._partitions):
            last = max(0, self._partitions - 1)
            app_of(self).say(
                StatusMessage(
                    f"{self._request.topic} has no partition {typed!r}", f"0 to {last}", Severity.WARN
                )
            )
            return
        self.show_partition(int(typed))

    def show_partition(self, partition: int) -> None:
        """Show another partition, whose records are read when a key asks for them."""
        if partition != self._request.partition:
            self._request = replace(self._request, partition=partition, start=Start(), count=DEFAULT_RECORDS)
            self._answer = self._decoded = self._found = self._followed = None
            self.cancel()
            self._invite()
            self.refill()

    def action_isolation(self) -> None:
        """Switch the isolation. What is shown was read with the other one, so it is read again."""
        other = Isolation(1 - self._request.isolation)
        request = replace(self._request, isolation=other)
        if self._followed is not None and self.asking:
            self._request, self._followed.isolation = request, other
            self.refill()
        elif self._found is not None:
            self._request = request
            self._find(self._found.typed)
        elif self._answer is None:
            self._request = request
            self.refill()
        else:
            self._ask(request)

    def action_follow(self) -> None:
        """Show what is written to the topic, as it is written, until Escape, with the filter of a search."""
        inspector = app_of(self).inspector
        if inspector is None:
            self.message(said.NOT_IN_A_RECORDING, Role.WARN)
            return
        typed = self._found.typed if self._found is not None else ""
        typed = self._followed.typed if self._followed is not None else typed
        wanted = parse_with_columns(typed, app_of(self).zone) if typed else (None, ())
        where, columns = (None, ()) if isinstance(wanted, Problem) else wanted  # it was one when it was typed
        if columns:
            typed = typed.rpartition("|")[0].strip()
            app_of(self).say(StatusMessage(tail.NO_COLUMNS))
        self._answer = self._decoded = self._found = None
        followed = self._followed = Following(self.topic, self._request.isolation, where, typed)
        self.start(self._nothing_new(), self._follow(inspector, followed))
        self.refill()

    async def _follow(self, inspector: Inspector, followed: Following) -> None:
        """Ask for what is new, again and again, while it is on the screen."""
        while True:
            if followed.paused or not self.is_shown or self.app.screen is not self.screen:
                await asyncio.sleep(POLL_S)
                continue
            question = followed.question()
            answer = await inspector.ask(question)
            if followed.paused or question != followed.question():
                followed.bytes += answer.cost.bytes
                continue  # what came in between counts as passed
            followed.take(answer)
            self._say(followed, answer)
            self.refill()
            await asyncio.sleep(followed.wait_s())

    def _nothing_new(self) -> str:
        return f"nothing new yet {glyphs.DOT} {app_of(self).keys.name('back')} ends"

    def _say(self, followed: Following, answer: TailAnswer) -> None:
        """Say what is in the way of following, below the rows."""
        notes = tail.notes(answer)
        if notes:
            self.message("\n".join(notes), Role.WARN)
        elif not followed.items:
            self.message(self._nothing_new(), Role.DIM)
        else:
            self.message("", Role.DIM)

    def action_hold(self, what: str) -> None:
        """Pause a topic that is followed, or go on."""
        followed = self._followed
        if followed is None:
            return
        if followed.paused:
            followed.go_on()
            self.message("", Role.DIM)
        else:
            followed.pause()
            self._missed = UNKNOWN
            self.message(tail.paused(UNKNOWN, app_of(self).keys.name("pause")), Role.WARN)
        self.refill()
        self._keys()

    def cancel(self) -> bool:
        """Stop waiting for the answer, or following the topic."""
        if not super().cancel():
            return False
        followed = self._followed
        if followed is not None:
            skipped = followed.skipped + (max(0, self._missed) if followed.paused else 0)
            followed.paused = False
            ended = tail.ended(followed.shown, followed.passed, skipped, followed.bytes)
            self.message(ended, Role.DIM)
            self.refill()
        return True

    def action_form(self) -> None:
        """Show the records as text, JSON or hex."""
        self._form = next_form(self._form)
        self.refill()

    def action_open(self) -> None:
        """Show the selected record in full."""
        index = self.rows.find(self.selected) if self.selected is not None else None
        if index is not None and isinstance(self.rows, TailRows):
            self._open_followed(self.rows, index)
            return
        if index is not None and isinstance(self.rows, FoundRows):
            each = self.rows.candidate(index)
            of = replace(self._request, partition=each.partition)
            app_of(self).go.detail(RecordDetail(of, each.record, app_of(self).zone, each.decoded), self._form)
            return
        if index is None or not isinstance(self.rows, RecordRows):
            return
        record = self.rows.record(index)
        if record is None:
            app_of(self).say(StatusMessage(self.rows.why(index), severity=Severity.WARN))
        else:
            detail = RecordDetail(self._request, record, app_of(self).zone, self.rows.decoded(index))
            app_of(self).go.detail(detail, self._form)

    def _open_followed(self, rows: TailRows, index: int) -> None:
        found = rows.candidate(index)
        if found is None:
            app_of(self).say(StatusMessage(rows.why(index), severity=Severity.WARN))
            return
        request = RecordsRequest(self.topic, found.partition)
        app_of(self).go.detail(
            RecordDetail(request, found.record, app_of(self).zone, found.decoded), self._form
        )

    # -- searching

    def action_search(self) -> None:
        """Ask what to look for."""
        hint = f"reads at most {words.size(SEARCH_BYTES)}: {WHERE_FORMS}"
        app_of(self).ask(Question("find", hint, "find", self._find, self._wrong))

    def _wrong(self, typed: str) -> str:
        wanted = parse_with_columns(typed, app_of(self).zone) if typed else None
        return problem(wanted) if isinstance(wanted, Problem) else ""

    def _find(self, typed: str) -> None:
        wanted, inspector = parse_with_columns(typed, app_of(self).zone), app_of(self).inspector
        if isinstance(wanted, Problem) or inspector is None or not typed:
            return
        where, columns = wanted
        self._answer = self._decoded = self._followed = None
        self._found = Found(typed, self._request.topic, self._request.isolation, columns)
        self.start(
            f"finding {typed} … {app_of(self).keys.name('back')} cancels", self._search(inspector, where)
        )
        self.refill()

    async def _search(self, inspector: Inspector, where: Filter | None) -> None:
        """Ask for one step after the other, and show what each has found."""
        assert self._found is not None
        found = self._found
        request = SearchPlanRequest(found.topic, isolation=found.isolation, where=where)
        plan = await inspector.ask(request)
        if plan.failure:
            self.message(said.failure(plan.failure, plan), Role.WARN)
            return
        found = self._found = replace(found, plan=plan, spans=plan.spans, cost=plan.cost)
        cancels = f"{app_of(self).keys.name('back')} cancels"
        self.message(f"{searches.plan(plan, SEARCH_BYTES)} … {cancels}", Role.TEXT)
        kept, is_spent = 0, False
        while (
            not all(span.is_over for span in found.spans)
            and len(found.candidates) < MOST_KEPT
            and kept < KEPT_BYTES
            and not is_spent
        ):
            answer = await inspector.ask(
                SearchRequest(
                    found.topic,
                    found.spans,
                    where,
                    found.isolation,
                    most=MOST_KEPT - len(found.candidates),
                    most_bytes=max(0, SEARCH_BYTES - found.tally.bytes),
                    bytes_per_second=SEARCH_RATE,
                )
            )
            if answer.failure:
                self.message(said.failure(answer.failure, answer), Role.WARN)
                return
            is_spent = answer.is_spent
            kept += sum(each.record.size for each in answer.found)
            cells: tuple[tuple[Span, ...], ...] = ()
            if found.columns and answer.found:
                cells = await asyncio.to_thread(own_cells, answer.found, found.columns)
            found = self._found = replace(
                found,
                cells=found.cells + cells,
                spans=answer.spans,
                candidates=found.candidates + answer.found,
                tally=found.tally + answer.tally,
                cost=found.cost + answer.cost,
            )
            so_far = searches.progress(found.spans, found.tally, found.cost, len(found.candidates))
            self.message(f"{so_far} … {cancels}", Role.TEXT)
            self.refill()
        is_full = len(found.candidates) >= MOST_KEPT or kept >= KEPT_BYTES
        notes = searches.ended(
            request, found.spans, found.tally, len(found.candidates), is_full, SEARCH_BYTES
        )
        self.message("\n".join(notes), Role.WARN if len(notes) > 1 else Role.DIM)

    def action_export(self) -> None:
        """Save what was found as JSON lines, or else the table."""
        line, found = app_of(self).session.record_line, self._found
        if found is None or line is None or not found.candidates:
            app_of(self).action_save("export")
            return
        app_of(self).save_lines("records", (line(found.topic, each) for each in found.candidates))

    # -- asking

    def _ask(self, request: RecordsRequest) -> None:
        if app_of(self).inspector is None:
            self.message(said.NOT_IN_A_RECORDING, Role.WARN)
            return
        self._request = request
        self._found = self._followed = None
        what = f"{request.topic}-{request.partition}, {said.asked(request, app_of(self).zone)}"
        self.ask(request, what, self._take)

    def _take(self, answer: RecordsAnswer) -> None:
        self._answer, self._decoded = answer, None
        if answer.failure:
            self.message(said.failure(answer.failure, answer), Role.WARN)
        elif not answer.records and not answer.damage:
            self.message(said.nothing(answer), Role.DIM)
        else:
            self.message(said.damaged(answer), Role.WARN)
        self.refill()
        if answer.request.start.kind is StartKind.LATEST:
            self.action_end(1)
        else:
            self.action_end(-1)
        self.post_message(self.Read())
        if answer.decoded is not None:
            self._take_decoded(answer, answer.decoded)
        elif answer.records:
            self.run_worker(self._decode(answer), exclusive=True, group="decode")

    async def _decode(self, answer: RecordsAnswer) -> None:
        """Ask what the schemas of a registry make of the records, which are on the screen meanwhile."""
        inspector = app_of(self).inspector
        if inspector is None:
            return
        decoded = await inspector.ask(DecodeRequest(answer.request.topic, answer.records))
        if self._answer is answer and self.is_attached:
            self._take_decoded(answer, decoded)

    def _take_decoded(self, answer: RecordsAnswer, decoded: DecodeAnswer) -> None:
        if message := schemas.message(decoded):
            self.message("\n".join(filter(None, (said.damaged(answer), message))), Role.WARN)
        if decoded.decoded:
            self._decoded = decoded
            self.refill()
            self.post_message(self.Read())
