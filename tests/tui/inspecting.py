"""A cluster's records and settings for the screen's tests, good and hostile."""

import asyncio
from typing import Any, cast

from msgspec.structs import replace

from kview.model.answers import Answer
from kview.model.decoded import DecodeAnswer, DecodedRecord, DecodeRequest
from kview.model.failures import Cause, FailureKind
from kview.model.inspection import (
    NO_INSPECTION_FAILURE,
    NULL,
    A,
    Cost,
    Damage,
    DamageKind,
    DirectoriesAnswer,
    DirectoriesRequest,
    Directory,
    FirstRecordAnswer,
    FirstRecordRequest,
    Header,
    InspectionFailure,
    InspectionFailureKind,
    Payload,
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
    TimeType,
)
from kview.model.search import SearchAnswer, SearchPlan, SearchPlanRequest, SearchRequest, Span, Tally
from kview.model.units import UNKNOWN
from kview.model.where import Candidate

NOW_MS = 1_760_000_049_123
FIRST, COUNT = 1_204_067, 50
DOCUMENT = '{"invoice":4711,"total":19.90,"customer":{"name":"Grüner GmbH","tags":[]},"lines":[{"qty":2}]}'
HOSTILE = b"\x1b[31mred\x07\xff\xfe\x1b]0;owned\x07"


def payload(data: bytes | None) -> Payload:
    """Return a payload that is complete."""
    return NULL if data is None else Payload(data, len(data))


def record(
    offset: int, key: bytes | None, value: bytes | None, *headers: tuple[bytes, bytes | None]
) -> Record:
    """Return a record of a made-up partition."""
    at_ms = NOW_MS + 37 * (offset - FIRST)
    made = tuple(Header(payload(name), payload(data)) for name, data in headers)
    return Record(offset, at_ms, TimeType.CREATE, payload(key), payload(value), made, len(made), 7)


RECORDS = (
    *(
        record(FIRST + n, b"invoice-%d" % (4_000 + 7 * n), DOCUMENT.encode(), (b"trace-id", b"4bf92f35"))
        for n in range(COUNT - 6)
    ),
    record(FIRST + 44, b"invoice-4077", None),
    record(FIRST + 45, b"\x00\x00\x00\x2a", b"\x00\x00\x00\x00\x07\x02\x96\x01\x0c"),
    record(FIRST + 46, None, "日本語 plain text\nsecond line".encode()),
    record(FIRST + 47, b"", b""),
    record(FIRST + 48, HOSTILE, HOSTILE, (HOSTILE, HOSTILE)),
    record(FIRST + 49, b"k" * 249, b"x" * 3_000),
)

DAMAGE = (Damage(FIRST - 1, DamageKind.CORRUPT, 12_345),)

_TOPIC, _CLUSTER, _DEFAULT = SettingSource.TOPIC, SettingSource.CLUSTER, SettingSource.DEFAULT
SETTINGS = (
    Setting(
        "cleanup.policy",
        "delete",
        _DEFAULT,
        synonyms=(SettingValue("delete", _DEFAULT, "log.cleanup.policy"),),
    ),
    Setting("compression.type", "producer", _DEFAULT),
    Setting(
        "min.insync.replicas",
        "2",
        _CLUSTER,
        synonyms=(
            SettingValue("2", _CLUSTER, "min.insync.replicas"),
            SettingValue("1", _DEFAULT, "min.insync.replicas"),
        ),
    ),
    Setting(
        "retention.ms",
        "86400000",
        _TOPIC,
        synonyms=(
            SettingValue("86400000", _TOPIC, "retention.ms"),
            SettingValue("168", _DEFAULT, "log.retention.hours"),
        ),
    ),
    Setting("ssl.keystore.password", None, SettingSource.STATIC, sensitive=True),
    Setting("hostile\x1b[31m", "\x1b]0;owned\x07" + "y" * 2_000, _TOPIC),
)


DIRECTORIES = (
    Directory("/var/lib/kafka/a", 0, 8, 900_000_000, 1, 100_000_000_000, 40_000_000_000),
    Directory("/var/lib/kafka/b", 56),
    Directory("/mnt/hostile\x1b[31m" + "y" * 300, 0, 2, 200_000_000, 0, 100_000_000_000, 4_000_000_000),
)
PRODUCERS = (
    Producer(0, 4_711, 3, 1_041, NOW_MS - 2_000, 32),
    Producer(0, 4_712, 0, 88_204, NOW_MS - 1_000),
    Producer(3, 4_712, 0, 12, UNKNOWN),
)
QUOTAS = (
    Quota((("client-id", None),), (("consumer_byte_rate", 1_000_000.0), ("request_percentage", 50.0))),
    Quota((("client-id", "hostile\x1b[31m"), ("user", None)), (("producer_byte_rate", 2_500.0),)),
    Quota((("ip", "10.0.0.7"),), (("connection_creation_rate", 10.0),)),
    Quota((("user", "alice"),), (("producer_byte_rate", 1_024.0), ("controller_mutation_rate", 2.5))),
)
FIRST_AGE_MS = 600_000


class FakeInspector:
    """Answers with what it is told, and notes what it is asked. With `blocks`, it never answers."""

    def __init__(
        self,
        failure: InspectionFailure = NO_INSPECTION_FAILURE,
        blocks: bool = False,
        reads_records: bool = True,
        quotas: tuple[Quota, ...] = QUOTAS,
    ) -> None:
        self.failure = failure
        self.blocks = blocks
        self.reads_records = reads_records
        self.quotas = quotas
        self.asked: list[Question[Any]] = []
        self.decoded: dict[int, DecodedRecord] = {}
        """What a schema registry's schemas make of records, by offset."""
        self.decode_failure = InspectionFailure()
        self.cancelled = 0
        self.blocks_steps = False
        """Whether the steps of a search are never answered."""

    async def ask(self, question: Question[A]) -> A:
        """Return what it was told."""
        if isinstance(question, DecodeRequest):
            if self.decode_failure:
                return cast(A, DecodeAnswer(question, failure=self.decode_failure))
            made = (self.decoded.get(each.offset, DecodedRecord()) for each in question.records)
            return cast(A, DecodeAnswer(question, tuple(made), cost=Cost(2, 1_200)))
        await self._wait(question)
        return cast(A, self._answer(question))

    def _answer(self, question: object) -> Answer:
        failure = self.failure
        match question:
            case RecordsRequest():
                records, damage = ((), ()) if failure else (RECORDS, DAMAGE)
                return RecordsAnswer(
                    question, records, damage, 201_004, FIRST + COUNT, 2, 3, False, failure, 0,
                    Cost(5, 47_811), NOW_MS,
                )  # fmt: skip
            case SettingsRequest():
                return SettingsAnswer(question, () if failure else SETTINGS, failure, Cost(2, 4_000), NOW_MS)
            case DirectoriesRequest():
                found = () if failure else DIRECTORIES
                return DirectoriesAnswer(question, found, failure, Cost(1, 900), NOW_MS)
            case FirstRecordRequest() if failure:
                return FirstRecordAnswer(question, failure=failure)
            case FirstRecordRequest():  # written FIRST_AGE_MS before the others were asked for
                return FirstRecordAnswer(
                    question, 201_004, NOW_MS - FIRST_AGE_MS, cost=Cost(1, 90), asked_ms=NOW_MS
                )
            case ProducersRequest():
                producers = () if failure else PRODUCERS
                return ProducersAnswer(question, producers, failure, Cost(1, 400), NOW_MS)
            case SearchPlanRequest():
                spans = () if failure else tuple(Span(p, 0, 100, 0, 4_000) for p in (3, 0))
                return SearchPlan(question, spans, (3,), failure, Cost(5, 900), NOW_MS)
            case SearchRequest():
                return self._step(question)
            case QuotasRequest():
                return QuotasAnswer(question, () if failure else self.quotas, failure, Cost(1, 90), NOW_MS)
        raise AssertionError(question)

    def _step(self, request: SearchRequest) -> SearchAnswer:
        """Half of a partition in each step, with some records of every shape."""
        place = next(place for place, span in enumerate(request.spans) if not span.is_over)
        span = request.spans[place]
        spans = list(request.spans)
        if span.at and span.partition == 0:
            why = InspectionFailure(InspectionFailureKind.NO_ANSWER, 4, Cause(FailureKind.SILENT))
            spans[place] = replace(span, failure=why)
            return SearchAnswer(request, (), tuple(spans), cost=Cost(1, 90), asked_ms=NOW_MS)
        spans[place] = replace(span, at=span.at + 50)
        some = RECORDS[42:46] if not span.at else RECORDS[46:]
        found = tuple(Candidate(span.partition, each) for each in some)
        tally = Tally(50, 2_000, undecoded=1)
        return SearchAnswer(request, found, tuple(spans), tally, cost=Cost(1, 2_100), asked_ms=NOW_MS)

    async def _wait(self, request: Question[Any]) -> None:
        self.asked.append(request)
        if self.blocks or (self.blocks_steps and isinstance(request, SearchRequest)):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
