"""Answers what somebody asks on demand: records of a partition or at the end of a topic, when a first record
was written, all settings of a topic or a broker, the log directories of a broker, the producers of a topic,
and quotas. It also decodes what was read."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import numpy as np
from kafka.protocol.admin.client_quotas import DescribeClientQuotasRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest
from msgspec.structs import replace

from kview.model import failures
from kview.model.answers import Answer, unanswered
from kview.model.decoded import NOT_DECODED, DecodeRequest
from kview.model.failures import NOT_AUTHORIZED, FailureKind
from kview.model.inspection import (
    MOST_RECORDS,
    DirectoriesAnswer,
    DirectoriesRequest,
    Directory,
    FirstRecordAnswer,
    FirstRecordRequest,
    InspectionFailure,
    Isolation,
    Producer,
    ProducersAnswer,
    ProducersRequest,
    Question,
    Quota,
    QuotasAnswer,
    QuotasRequest,
    Record,
    RecordsAnswer,
    RecordsRequest,
    Setting,
    SettingsAnswer,
    SettingSource,
    SettingsRequest,
    SettingValue,
)
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.masking import refused
from kview.model.search import SearchPlanRequest, SearchRequest
from kview.model.tail import TailAnswer, TailRequest
from kview.model.units import NO_BROKER
from kview.model.where import Candidate
from kview.observe import log_dirs, transactions
from kview.observe import tail as tails
from kview.observe.asking import DEADLINE_S, POLL_S, Asking, Cancelled, OutOfTime, Ticket
from kview.observe.causes import LinkError
from kview.observe.configs import BROKER_RESOURCE, TOPIC_RESOURCE
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.partition import UNKNOWN_TOPIC
from kview.observe.peek import Peek
from kview.observe.registry import Registry
from kview.observe.search import Search
from kview.observe.settings import ObserveSettings
from kview.observe.state import State
from kview.observe.tail import Tail, Troubles
from kview.where.judge import matches

_log = logging.getLogger(__name__)

_SOURCES = {
    1: SettingSource.TOPIC,
    2: SettingSource.BROKER,
    3: SettingSource.CLUSTER,
    4: SettingSource.STATIC,
    5: SettingSource.DEFAULT,
}
"""Kafka's numbers of where a setting comes from."""
DECODE_LATE_S = 2.0
"""How long after its deadline an answer may come, because its records must be decoded to be masked."""


class Inspection:
    """Answers questions one after the other, on connections of its own."""

    def __init__(
        self, loop: Loop, settings: ObserveSettings, state: State, links: Links, with_records: bool
    ) -> None:
        self._loop = loop
        self._state = state
        self._with_records = with_records
        self._asking = Asking(loop, settings, state, links, with_records)
        self._registry = Registry(loop)
        self._troubles = Troubles()
        self._search = Search(Asking(loop, settings, state, links, with_records), self._registry)
        self._busy = self._searching = False

    def close(self) -> None:
        self._asking.close()
        self._search.close()

    async def answer(self, question: Question[Any], ticket: Ticket) -> Answer:
        """Answer a question. A bug in kview becomes a failure, and a traceback in the log.

        What was read is in no exception's text, so that it does not get into the log.
        """
        ticket.deadline_s = self._loop.monotonic() + DEADLINE_S
        if isinstance(question, DecodeRequest):  # which no broker is asked for
            if not self._with_records:
                off: Answer = unanswered(question, Kind.SWITCHED_OFF)
                return off
            try:
                return await self._registry.answer(question, lambda: ticket.cancelled)
            except Exception:
                _log.exception("payloads could not be decoded")
                bug: Answer = unanswered(question, Kind.NO_ANSWER)
                return bug
        if isinstance(question, SearchPlanRequest | SearchRequest):
            return await self._searched(question, ticket)
        while self._busy:
            if ticket.cancelled or self._loop.monotonic() >= ticket.deadline_s:
                late: Answer = unanswered(question, Kind.TIMEOUT)
                return late
            await self._loop.net.sleep(POLL_S)
        self._busy = True
        answer: Answer
        try:
            works: dict[type, Callable[[Any, Ticket], Awaitable[Answer]]] = {
                RecordsRequest: self._records,
                SettingsRequest: self._settings,
                DirectoriesRequest: self._directories,
                FirstRecordRequest: self._first_record,
                ProducersRequest: self._producers,
                QuotasRequest: self._quotas,
                TailRequest: self._tail,
            }
            answer = await works[type(question)](question, ticket)
        except Cancelled:
            answer = unanswered(question, Kind.TIMEOUT)
        except Exception:
            _log.exception("a question could not be answered")
            answer = unanswered(question, Kind.NO_ANSWER)
        finally:
            self._busy = False
            self._asking.idle()
        return answer

    async def _searched(self, question: Question[Any], ticket: Ticket) -> Answer:
        """Answer a question of a search, which has connections of its own, so that others need not wait."""
        if not self._with_records:
            off: Answer = unanswered(question, Kind.SWITCHED_OFF)
            return off
        late: Answer = unanswered(question, Kind.TIMEOUT)
        while self._searching:
            if ticket.cancelled or self._loop.monotonic() >= ticket.deadline_s:
                return late
            await self._loop.net.sleep(POLL_S)
        self._searching = True
        try:
            if isinstance(question, SearchPlanRequest):
                return await self._search.plan(question, ticket)
            assert isinstance(question, SearchRequest)
            return await self._search.step(question, ticket)
        except Cancelled:
            return late
        except Exception:
            _log.exception("a search failed")
            failed: Answer = unanswered(question, Kind.NO_ANSWER)
            return failed
        finally:
            self._searching = False

    async def _records(self, request: RecordsRequest, ticket: Ticket) -> RecordsAnswer:
        if not self._with_records:
            return RecordsAnswer(request, failure=InspectionFailure(Kind.SWITCHED_OFF))
        if not 0 < request.count <= MOST_RECORDS:
            raise ValueError(f"{request.count} records")
        before, asked_ms = self._asking.cost, self._loop.clock_ms()
        peek = Peek(self._asking, request, ticket, self._leader(request.topic, request.partition))
        failure = await peek.run()
        answer = peek.answer(failure, self._asking.spent_since(before), asked_ms)
        if self._loop.access.security.masks.of(request.topic) is None:
            return answer
        # What a mask hides is known only once records are decoded.
        question = DecodeRequest(request.topic, answer.records)
        shown = await self._registry.answer(question, lambda: ticket.cancelled, self._late_s(ticket))
        return replace(answer, records=shown.request.records, decoded=shown)

    def _late_s(self, ticket: Ticket) -> float:
        """Return until when records are decoded and masked (monotonic), a short time after the deadline."""
        return max(self._loop.monotonic(), ticket.deadline_s) + DECODE_LATE_S

    def _leader(self, topic: str, partition: int) -> int:
        """Return the leader as the last observation had it, −1 if it has none."""
        layout = self._state.layout
        start, end = layout.first.get(topic, (0, 0))
        for row in range(start, end):
            if layout.partition[row] == partition:
                return int(layout.leader[row])
        return NO_BROKER

    async def _tail(self, request: TailRequest, ticket: Ticket) -> TailAnswer:
        if not self._with_records:
            return TailAnswer(request, failure=InspectionFailure(Kind.SWITCHED_OFF))
        if not 0 < request.count <= MOST_RECORDS:
            raise ValueError(f"{request.count} records")
        mask, where = self._loop.access.security.masks.of(request.topic), request.where
        condition = refused(where, mask) if where is not None and mask is not None else None
        if condition is not None:
            return TailAnswer(request, refused=condition, failure=InspectionFailure(Kind.MASKED))
        before, asked_ms, layout = self._asking.cost, self._loop.clock_ms(), self._state.layout
        rows = slice(*layout.first.get(request.topic, (0, 0)))
        leaders = dict(zip(layout.partition[rows].tolist(), layout.leader[rows].tolist(), strict=True))
        tail = Tail(self._asking, request, ticket, leaders, self._troubles)
        failure = await tail.run()
        most = request.count if where is None else tails.EXAMINED_RECORDS
        examined = await self._loop.in_thread(
            partial(tails.newest, tail.parts, most, tails.EXAMINED_BYTES, where is not None), "tail"
        )
        # The timestamps of partitions are from several clocks, but nothing else orders them.
        ordered = sorted(examined.records, key=lambda pair: (pair[1].timestamp_ms, pair[0], pair[1].offset))
        if where is None:
            ordered = ordered[-request.count :]
        candidates, unknown, late = await self._candidates(request, ordered, ticket)
        examined.left += late
        is_gone = failure.kind is Kind.UNKNOWN_TOPIC
        return TailAnswer(
            request,
            tuple(candidates[-request.count :]),
            () if is_gone else tail.next_positions() or request.positions,
            sum(map(tails.count, tail.parts.values())) - examined.left,
            tail.skipped + examined.left,
            unknown,
            tuple(tail.held),
            tuple(examined.damage),
            tuple(sorted(tail.unread.items())),
            tuple(tail.restarted),
            None,
            failure,
            self._asking.spent_since(before),
            asked_ms,
            len(candidates),
        )

    async def _candidates(
        self, request: TailRequest, ordered: list[tuple[int, Record]], ticket: Ticket
    ) -> tuple[list[Candidate], int, int]:
        """Decode records, hide what a mask says, and return those that the filter describes.

        Returns also the number of those of which that is not known, and of older ones for which there was no
        time.
        """
        described: list[Candidate] = []
        unknown = 0
        until_s = self._late_s(ticket)
        for end in range(len(ordered), 0, -MOST_RECORDS):
            if end < len(ordered) and self._loop.monotonic() >= until_s:
                return described, unknown, end
            some = ordered[max(0, end - MOST_RECORDS) : end]
            question = DecodeRequest(request.topic, tuple(record for _, record in some))
            answer = await self._registry.answer(question, lambda: ticket.cancelled, until_s)
            if ticket.cancelled:
                raise Cancelled
            made = answer.decoded or (NOT_DECODED,) * len(some)
            triples = zip((number for number, _ in some), answer.request.records, made, strict=True)
            candidates = [Candidate(*triple) for triple in triples]
            if request.where is None:
                described = candidates + described
                continue
            judge = partial(matches, request.where, candidates, lambda: ticket.cancelled)
            answers = await self._loop.in_thread(judge, "filter")
            if ticket.cancelled:
                raise Cancelled
            found = [each for each, holds in zip(candidates, answers, strict=True) if holds]
            described = found + described
            unknown += sum(holds is None for holds in answers)
        return described, unknown, 0

    async def _first_record(self, request: FirstRecordRequest, ticket: Ticket) -> FirstRecordAnswer:
        before, asked_ms = self._asking.cost, self._loop.clock_ms()
        whole = RecordsRequest(request.topic, request.partition, isolation=Isolation.READ_UNCOMMITTED)
        peek = Peek(self._asking, whole, ticket, self._leader(request.topic, request.partition))
        offset, timestamp_ms, failure = await peek.first_record()
        cost = self._asking.spent_since(before)
        return FirstRecordAnswer(request, offset, timestamp_ms, failure, cost, asked_ms)

    async def _settings(self, request: SettingsRequest, ticket: Ticket) -> SettingsAnswer:
        before, asked_ms = self._asking.cost, self._loop.clock_ms()
        settings, failure = await self._described(request, ticket)
        cost = self._asking.spent_since(before)
        return SettingsAnswer(request, settings, failure, cost, asked_ms)

    async def _described(
        self, request: SettingsRequest, ticket: Ticket
    ) -> tuple[tuple[Setting, ...], InspectionFailure]:
        able = self._asking.brokers() if request.topic else [request.broker]
        if not able:
            return (), InspectionFailure(Kind.NOT_CONNECTED)
        broker = able[0]
        answer, failure = await self._answered(broker, settings_request(request), ticket)
        if failure:
            return (), failure
        result = answer.results[0]
        if result.error_code:
            return (), _refusal(broker, result.error_code)
        settings = map(_setting, result.configs)
        return tuple(sorted(settings, key=lambda setting: setting.name)), InspectionFailure()

    async def _directories(self, request: DirectoriesRequest, ticket: Ticket) -> DirectoriesAnswer:
        before, asked_ms = self._asking.cost, self._loop.clock_ms()
        answer, failure = await self._answered(request.broker, log_dirs.request(), ticket)
        directories: tuple[Directory, ...] = ()
        if not failure and answer.error_code:
            failure = _refusal(request.broker, answer.error_code)
        elif not failure:
            directories = log_dirs.directories(answer)
        return DirectoriesAnswer(request, directories, failure, self._asking.spent_since(before), asked_ms)

    async def _producers(self, request: ProducersRequest, ticket: Ticket) -> ProducersAnswer:
        before, asked_ms, layout = self._asking.cost, self._loop.clock_ms(), self._state.layout
        rows = np.arange(*layout.first.get(request.topic, (0, 0)))
        producers: list[Producer] = []
        unread: dict[int, InspectionFailure] = {}
        for leader in np.unique(layout.leader[rows]).tolist():
            led = rows[layout.leader[rows] == leader]
            numbers, failure = layout.partition[led].tolist(), InspectionFailure(Kind.NO_LEADER)
            answer = None
            if leader >= 0:
                asked = transactions.producers_request(layout, led, len(led))
                answer, failure = await self._answered(leader, asked, ticket)
            refusals = dict.fromkeys(numbers, failure) if failure else {}
            if answer is not None:
                led_producers, codes = transactions.all_producers(answer)
                producers += led_producers
                refusals = {partition: _refusal(leader, code) for partition, code in codes.items()}
            unread.update(refusals)
        if not len(rows):
            unread[-1] = InspectionFailure(Kind.UNKNOWN_TOPIC)
        return ProducersAnswer(
            request,
            tuple(sorted(producers, key=lambda each: (each.partition, each.id))),
            next(iter(unread.values()), InspectionFailure()),
            self._asking.spent_since(before),
            asked_ms,
            tuple(sorted(partition for partition in unread if partition >= 0)),
        )

    async def _quotas(self, request: QuotasRequest, ticket: Ticket) -> QuotasAnswer:
        before, asked_ms = self._asking.cost, self._loop.clock_ms()
        able, cluster_quotas = self._asking.brokers(), tuple[Quota, ...]()
        failure = InspectionFailure(Kind.NOT_CONNECTED)
        if able:
            asked = DescribeClientQuotasRequest(components=[], strict=False)
            answer, failure = await self._answered(able[0], asked, ticket)
            if failure.cause.kind is FailureKind.UNSUPPORTED:
                failure = InspectionFailure(Kind.UNSUPPORTED, able[0])
            elif not failure and answer.error_code:
                failure = _refusal(able[0], answer.error_code)
            elif not failure:
                cluster_quotas = quotas(answer)
        return QuotasAnswer(request, cluster_quotas, failure, self._asking.spent_since(before), asked_ms)

    async def _answered(self, broker: int, request: Any, ticket: Ticket) -> tuple[Any, InspectionFailure]:
        """Return a broker's answer, or why there is none."""
        try:
            return await self._asking.ask(broker, lambda _: request, ticket), InspectionFailure()
        except LinkError as error:
            return None, InspectionFailure(Kind.NO_ANSWER, broker, error.cause)
        except OutOfTime:
            return None, InspectionFailure(Kind.TIMEOUT, broker)


def _refusal(broker: int, code: int) -> InspectionFailure:
    if code in NOT_AUTHORIZED:
        return InspectionFailure(Kind.NOT_AUTHORIZED, broker, failures.refused(code))
    if code == UNKNOWN_TOPIC:
        return InspectionFailure(Kind.UNKNOWN_TOPIC, broker)
    return InspectionFailure(Kind.NO_ANSWER, broker, failures.refused(code))


def settings_request(request: SettingsRequest) -> Any:
    """Build the request for all settings of a topic or a broker, with the values that they hide."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE if request.topic else BROKER_RESOURCE,
        resource_name=request.topic or str(request.broker),
        configuration_keys=None,
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True)


def quotas(answer: Any) -> tuple[Quota, ...]:
    """Return the quotas of an answer of DescribeClientQuotas (48)."""
    unsorted = (
        Quota(
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)),
            tuple(sorted((value.key, value.value) for value in entry.values)),
        )
        for entry in answer.entries or ()
    )
    return tuple(sorted(unsorted, key=lambda quota: [(type, name or "") for type, name in quota.entity]))


def _setting(row: Any) -> Setting:
    synonyms = tuple(
        SettingValue(
            None if row.is_sensitive else synonym.value,
            _SOURCES.get(synonym.source, SettingSource.OTHER),
            synonym.name,
        )
        for synonym in row.synonyms or ()
    )
    return Setting(
        row.name,
        None if row.is_sensitive else row.value,
        _SOURCES.get(row.config_source, SettingSource.OTHER),
        bool(row.is_sensitive),
        bool(row.read_only),
        synonyms,
    )
