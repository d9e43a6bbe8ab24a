"""Looks for the records of a topic that a filter describes, on connections of its own, a step at a time.

A step reads one partition after the other. While it judges an answer, the next one is on its way, also from
one step to the next. Nothing is written, no group is joined, no offset is committed.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from kview.config.decoders import DecoderKind
from kview.model.decoded import NOT_DECODED, DecodedRecord, DecodeFailureKind, DecodeRequest
from kview.model.failures import Cause, FailureKind
from kview.model.inspection import (
    Damage,
    DamageKind,
    InspectionFailure,
    Isolation,
    Record,
)
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.masking import refused
from kview.model.search import (
    MOST_FOUND,
    SearchAnswer,
    SearchPlan,
    SearchPlanRequest,
    SearchRequest,
    Span,
    Tally,
)
from kview.model.units import NO_BROKER, UNKNOWN
from kview.model.where import Candidate, Condition
from kview.observe.asking import DEADLINE_S, POLL_S, Asking, Cancelled, OutOfTime, Ticket
from kview.observe.partition import OFFSET_OUT_OF_RANGE, ErrorCode, Failed, PartitionReader
from kview.observe.record_answers import Keeper
from kview.observe.registry import Registry
from kview.observe.scan import DAMAGE_MAX, Scan
from kview.observe.search_plan import Planner
from kview.where.judge import Answer, about_payloads, matches
from kview.where.needles import has_fields, needle_groups
from kview.wire import list_offsets
from kview.wire.fetch import FetchAnswer
from kview.wire.primitives import MalformedBytes
from kview.wire.records import end_offset

STEP_S = 0.4
"""How long a step takes. Then somebody may want to know how far it is, or to stop."""
SOME_RECORDS = 500
"""Limit of the records that are judged together."""
SOME_BYTES = 2 << 20
"""Limit of their bytes, but for the last one. As JSON, they take up to fifty times as much memory."""
THROTTLED_MOST_S = 5.0
"""Limit of how long a broker that enforces a quota is left alone at a time."""

BEHIND_S = 0.2
"""How often a new leader is asked that does not have yet what the last one had."""


class Place(NamedTuple):
    """What a fetch is for."""

    topic: str
    partition: int
    offset: int
    isolation: Isolation


class Left(NamedTuple):
    """An answer that has not been read to its end, and records of it that have not been judged."""

    scan: Scan
    rest: list[Candidate]


class Search:
    """Answers plans and steps. `asking` has connections for this alone."""

    def __init__(self, asking: Asking, registry: Registry) -> None:
        self.asking = asking
        self.registry = registry
        self.leaders: dict[int, int] = {}
        self.not_before_s = 0.0
        """When the next fetch may be sent (monotonic), to keep the pace."""
        self._ahead: tuple[Place, Any] | None = None
        """A fetch that is on its way, and its future."""
        self._left: tuple[Place, Left] | None = None
        self.behind: tuple[Place, float] | None = None
        """What a leader does not have yet, and since when that is known (monotonic)."""

    def close(self) -> None:
        """Close all connections."""
        self._ahead = self._left = None
        self.asking.close()

    async def plan(self, request: SearchPlanRequest, ticket: Ticket) -> SearchPlan:
        """Return what there is to search. Raises Cancelled."""
        self._ahead = self._left = None
        self.not_before_s = 0.0
        if condition := self._refused(request):
            return SearchPlan(request, refused=condition, failure=InspectionFailure(Kind.MASKED))
        planner = Planner(self.asking, request, ticket)
        plan = await planner.plan(self.asking.cost, self.asking.loop.clock_ms())
        self.leaders = planner.leaders
        self.asking.idle()
        return plan

    async def step(self, request: SearchRequest, ticket: Ticket) -> SearchAnswer:
        """Read on for a while. Raises Cancelled."""
        if condition := self._refused(request):
            return SearchAnswer(request, refused=condition, failure=InspectionFailure(Kind.MASKED))
        before, asked_ms = self.asking.cost, self.asking.loop.clock_ms()
        step = _Step(self, request, ticket)
        try:
            await step.run()
        except Cancelled:  # most likely, nobody asks for the rest
            self._ahead = self._left = None
            raise
        if all(span.is_over for span in step.spans):
            self._ahead = self._left = None
        self.asking.idle()
        return SearchAnswer(
            request,
            tuple(step.found),
            tuple(step.spans),
            step.tally,
            tuple(step.damage),
            is_spent=step.is_spent,
            cost=self.asking.spent_since(before),
            asked_ms=asked_ms,
        )

    def _refused(self, request: SearchPlanRequest | SearchRequest) -> Condition | None:
        """Return a condition about what the topic's mask hides, None if there is none."""
        mask = self.asking.loop.access.security.masks.of(request.topic)
        return refused(request.where, mask) if request.where is not None and mask is not None else None

    def take_left(self, place: Place) -> Left | None:
        """Return the rest of an answer, if it is what comes next."""
        left, self._left = self._left, None
        return left[1] if left is not None and left[0] == place else None

    def leave(self, place: Place, left: Left) -> None:
        """Keep the rest of an answer for the next step."""
        self._left = (place, left)

    def fetch(self, reader: PartitionReader, place: Place, limit: int) -> Any:
        """Return the future of a fetch, which may already be on its way."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == place:
            return ahead[1]
        return self._begin(reader, place, limit)

    def is_ahead(self, place: Place) -> bool:
        """Return whether a fetch is on its way."""
        return self._ahead is not None and self._ahead[0] == place

    def fetch_ahead(self, reader: PartitionReader, place: Place, limit: int) -> None:
        """Begin the next fetch before its answer is needed."""
        self._ahead = (place, self._begin(reader, place, limit))

    def _begin(self, reader: PartitionReader, place: Place, limit: int) -> Any:
        future = self.asking.loop.begin(partial(reader.fetch, place.offset, limit, place.isolation))
        future.add_errback(lambda _: None)  # it is raised where somebody waits for it
        return future


class _Step:
    """One step of a search."""

    def __init__(self, search: Search, request: SearchRequest, ticket: Ticket) -> None:
        self._search = search
        self._asking = search.asking
        self._loop = search.asking.loop
        self._request = request
        self._ticket = ticket
        self._ends_s = self._loop.monotonic() + STEP_S
        self._keeper, self._whole = Keeper(), Keeper(whole=True)
        self._decoders = self._loop.access.security.decoders
        where = request.where
        # With a mask, records are judged as they are shown, which is not what their bytes are.
        masks = self._loop.access.security.masks.of(request.topic) is not None
        self._masks = masks
        self._needles = (
            needle_groups(where) if where is not None and not (masks or self._has_schemas()) else ()
        )
        self._with_schemas = where is not None and has_fields(where)
        self.spans = list(request.spans)
        self.found: list[Candidate] = []
        self.tally = Tally()
        self.is_spent = False
        self.damage: list[tuple[int, Damage]] = []

    def _has_schemas(self) -> bool:
        """Return whether keys or values of the topic may be decoded with schemas."""
        topic, security = self._request.topic, self._loop.access.security
        for decoder in (self._decoders.keys.get(topic), self._decoders.values.get(topic)):
            kind = DecoderKind.REGISTRY if decoder is None else decoder.kind
            if kind is not DecoderKind.PLAIN and (
                kind is not DecoderKind.REGISTRY or security.registry is not None
            ):
                return True
        return False

    async def run(self) -> None:
        """Read until the step is over. Raises Cancelled."""
        for index, span in enumerate(self.spans):
            if span.is_over:
                continue
            # Its fetches may outlive this step, whose ticket ends with it.
            ticket = Ticket(deadline_s=self._loop.monotonic() + DEADLINE_S)
            leader = self._search.leaders.get(span.partition, NO_BROKER)
            reader = PartitionReader(self._asking, self._request.topic, span.partition, ticket, leader)
            try:
                await reader.find()
                while not self.spans[index].is_over and not self._is_over:
                    ticket.deadline_s = self._loop.monotonic() + DEADLINE_S
                    await self._read(reader, index)
            except Failed as failed:
                self._fail(index, failed.failure)
            except OutOfTime:
                self._fail(index, InspectionFailure(Kind.TIMEOUT, reader.leader))
            self._search.leaders[span.partition] = reader.leader
            if self._is_over:
                return

    @property
    def _is_over(self) -> bool:
        return (
            self._loop.monotonic() >= self._ends_s
            or len(self.found) >= min(self._request.most, MOST_FOUND)
            or self._keeper.is_full
            or self.is_spent
        )

    def _fail(self, index: int, failure: InspectionFailure) -> None:
        self.spans[index] = replace(self.spans[index], failure=failure)

    def _place(self, span: Span, offset: int) -> Place:
        return Place(self._request.topic, span.partition, offset, self._request.isolation)

    async def _read(self, reader: PartitionReader, index: int) -> None:
        """Fetch once from a span, if there is no rest of an answer, and read that."""
        span = self.spans[index]
        place = self._place(span, span.at)
        left = self._search.take_left(place)
        if left is None:
            if self.tally.bytes >= self._request.most_bytes:
                self.is_spent = True
                return
            if self._is_too_early and not self._search.is_ahead(place):
                await self._pause(min(self._search.not_before_s, self._ends_s) - self._loop.monotonic())
                return
            try:
                answer = await self._fetched(reader, place)
            except ErrorCode as error:
                if error.code != OFFSET_OUT_OF_RANGE:
                    raise reader.failed(error) from error
                await self._moved(reader, index)
                return
            self.tally += Tally(bytes=len(answer.records))
            if not answer.records:
                await self._without_records(reader, index, answer)
                return
            try:
                beyond = end_offset(answer.records)
            except MalformedBytes:
                beyond = span.end  # the scan says where
            if beyond is None:  # not even one batch is complete
                self._note(span.partition, Damage(span.at, DamageKind.TOO_LARGE, len(answer.records)))
                self._fail(index, InspectionFailure(Kind.TOO_LARGE, reader.leader))
                return
            budget = self._request.most_bytes - self.tally.bytes
            self._keep_pace(len(answer.records))
            if beyond < span.end and budget > 0 and not self._is_too_early:
                self._search.fetch_ahead(
                    reader, self._place(span, beyond), min(self._request.request_bytes, budget)
                )
            committed = self._request.isolation is Isolation.READ_COMMITTED
            aborted = answer.aborted if committed else ()
            scan = Scan(answer.records, aborted, span.at, span.end, self._needles, self._with_schemas)
            left = Left(scan, [])
        await self._judge_all(left, index)

    async def _fetched(self, reader: PartitionReader, place: Place) -> FetchAnswer:
        budget = self._request.most_bytes - self.tally.bytes
        future = self._search.fetch(reader, place, max(1, min(self._request.request_bytes, budget)))
        while not future.is_done:
            if self._ticket.cancelled:
                raise Cancelled
            await self._loop.settle([future], POLL_S)
        answer: FetchAnswer = await future
        return answer

    async def _without_records(self, reader: PartitionReader, index: int, answer: FetchAnswer) -> None:
        """Go on after an answer without records: its broker enforces a quota, has no more, or not yet."""
        span, search, now_s = self.spans[index], self._search, self._loop.monotonic()
        committed = self._request.isolation is Isolation.READ_COMMITTED
        place = self._place(span, span.at)
        if answer.throttle_ms:
            await self._pause(min(answer.throttle_ms / 1000, THROTTLED_MOST_S))
        elif (answer.last_stable if committed else answer.high_watermark) >= span.end:
            self.spans[index] = replace(span, at=span.end)  # compaction has left nothing more
        elif search.behind is None or search.behind[0] != place:
            search.behind = place, now_s
        elif now_s >= search.behind[1] + DEADLINE_S:
            self._fail(index, InspectionFailure(Kind.NO_ANSWER, reader.leader, Cause(FailureKind.INCOMPLETE)))
        else:
            await self._pause(BEHIND_S)

    async def _moved(self, reader: PartitionReader, index: int) -> None:
        """Go on where the log begins now, or stop where it ends now."""
        span = self.spans[index]
        start, _ = await reader.listed_offset(list_offsets.EARLIEST, committed=False)
        if start <= span.at:
            raise Failed(Kind.OFFSET_OUT_OF_RANGE, reader.leader, offset=span.at)
        self.tally += Tally(deleted=min(start, span.end) - span.at)
        self.spans[index] = replace(span, at=min(start, span.end))

    @property
    def _is_too_early(self) -> bool:
        """Whether the next fetch has to wait, to keep the pace."""
        return self._loop.monotonic() < self._search.not_before_s

    def _keep_pace(self, size: int) -> None:
        """Note how long the bytes that were fetched may take."""
        if self._request.bytes_per_second > 0:
            begin_s = max(self._search.not_before_s, self._loop.monotonic() - STEP_S)
            self._search.not_before_s = begin_s + size / self._request.bytes_per_second

    async def _pause(self, seconds: float) -> None:
        ends_s = self._loop.monotonic() + seconds
        while (left_s := ends_s - self._loop.monotonic()) > 0:
            if self._ticket.cancelled:
                raise Cancelled
            await self._loop.net.sleep(min(left_s, POLL_S))

    async def _judge_all(self, left: Left, index: int) -> None:
        """Judge the records of an answer until the step is over, and note how far it came."""
        span, scan, rest = self.spans[index], left.scan, left.rest
        while True:
            some = rest or await self._loop.in_thread(partial(self._some, scan, span.partition), "search")
            rest = await self._judge(some, is_decoded=bool(rest))
            tally, damage = scan.take()
            self.tally += tally
            for each in damage:
                self._note(span.partition, each)
            at = rest[0].record.offset if rest else scan.next
            span = self.spans[index] = replace(span, at=min(max(span.at, at), span.end))
            if scan.is_over and not rest:
                return
            if self._ticket.cancelled:
                raise Cancelled
            if self._is_over:
                self._search.leave(self._place(span, span.at), Left(scan, rest))
                return

    def _some(self, scan: Scan, partition: int) -> list[Candidate]:
        """Return the next records of an answer. This runs on a thread."""
        out: list[Candidate] = []
        size = 0
        for item in scan.items:
            if item is None:
                break
            record = self._whole.record(*item)
            out.append(Candidate(partition, record))
            size += record.size
            if len(out) >= SOME_RECORDS or size >= SOME_BYTES:
                break
        return out

    async def _judge(self, some: Sequence[Candidate], is_decoded: bool) -> list[Candidate]:
        """Add those that are looked for, and return those for which there is no room any more.

        `is_decoded`: they were judged before. With a mask, they could not be decoded again.
        """
        request, where = self._request, self._request.where
        some = [each for each in some if self._is_in_time(each.record)]
        decoded = where is not None and (self._masks or about_payloads(where))
        if decoded and not is_decoded:
            some = await self._decoded(some)
        answers: list[Answer] = [True] * len(some)
        if where is not None:
            answers = await self._loop.in_thread(
                partial(matches, where, some, lambda: self._ticket.cancelled), "search"
            )
            if self._ticket.cancelled:
                raise Cancelled
        room = min(request.most, MOST_FOUND) - len(self.found)
        found: list[Candidate] = []
        undecoded, rest = 0, len(some)
        for place, answer in enumerate(answers):
            if answer and (len(found) == room or self._keeper.is_full):
                rest = place
                break
            undecoded += answer is None
            if answer:
                found.append(some[place]._replace(record=self._keeper.cut(some[place].record)))
        self.tally += Tally(undecoded=undecoded)
        self.found += found if decoded else await self._decoded(found)
        return some[rest:]

    def _is_in_time(self, record: Record) -> bool:
        from_ms, until_ms, at_ms = self._request.from_ms, self._request.until_ms, record.timestamp_ms
        return (from_ms == UNKNOWN or at_ms >= from_ms) and (until_ms == UNKNOWN or at_ms < until_ms)

    async def _decoded(self, some: Sequence[Candidate]) -> list[Candidate]:
        """Return records with what their schemas make of them, and without what a mask hides."""
        out: list[Candidate] = []
        while len(out) < len(some):
            left = some[len(out) :]
            asked = DecodeRequest(self._request.topic, tuple(each.record for each in left))
            answer = await self._search.registry.answer(asked, lambda: self._ticket.cancelled)
            if self._ticket.cancelled:
                raise Cancelled
            decoded = answer.decoded or (NOT_DECODED,) * len(left)
            done = next((place for place, each in enumerate(decoded) if place and _is_full(each)), len(left))
            shown = answer.request.records  # without what a mask hides
            triples = zip(left[:done], shown[:done], decoded[:done], strict=True)
            out += (each._replace(record=record, decoded=made) for each, record, made in triples)
        return out

    def _note(self, partition: int, damage: Damage) -> None:
        if len(self.damage) < DAMAGE_MAX:
            self.damage.append((partition, damage))


def _is_full(decoded: DecodedRecord) -> bool:
    """Return whether a record was not decoded because of those before it."""
    return any(
        part is not None and part.failure.kind is DecodeFailureKind.ANSWER_FULL
        for part in (decoded.key, decoded.value)
    )
