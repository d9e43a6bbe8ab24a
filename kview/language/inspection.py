"""Records and settings as words: what was read, from where, at what cost, and what went wrong."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from kview.language import failures, glyphs, kafka_errors, where, words
from kview.model.answers import Answer
from kview.model.failures import FailureKind
from kview.model.inspection import (
    Cost,
    Damage,
    DamageKind,
    DirectoriesRequest,
    FirstRecordRequest,
    InspectionFailure,
    InspectionFailureKind,
    Isolation,
    ProducersAnswer,
    ProducersRequest,
    Question,
    QuotasRequest,
    Record,
    RecordsAnswer,
    RecordsRequest,
    Setting,
    SettingSource,
    SettingsRequest,
    StartKind,
    TimeType,
)
from kview.model.search import SearchPlanRequest, SearchRequest
from kview.model.tail import TailRequest
from kview.model.units import NO_BROKER, UNKNOWN

RECORDS_FORMS = "an offset (1204117), a time (14:05, -5m) or a number of records (last 200)"
"""Where to read from, as a person types it."""

NO_QUOTAS = "no quotas are set: clients may use as much as the brokers give"
NO_PRODUCERS = "no producer with an id has written to it of late: those without one leave no trace"
NOT_IN_A_RECORDING = (
    "a recording holds no records, settings or quotas: kview reads them only from a live cluster"
)
SWITCHED_OFF = "reading records is switched off (--no-records, or no-records in the profile)"
TOMBSTONE = "null (a tombstone: deletes the key when the log is compacted)"
HIDDEN = "hidden by Kafka"
NO_TIME = "no time"
MOST_NUMBERS = 8
"""The most partitions that are listed."""
MASKED = "masked"
"""A mask of the profile hides something of the records."""
UNCOMMITTED = "read_uncommitted"
COMMITTED = "read_committed"


def failure(failed: InspectionFailure, answer: Answer) -> str:
    """Return why a request was not answered, as a sentence without a full stop."""
    request = answer.request
    of_partition = isinstance(request, RecordsRequest | FirstRecordRequest)
    what = _what(request)
    broker = f"broker {failed.broker}" if failed.broker != NO_BROKER else "the cluster"
    match failed.kind:
        case InspectionFailureKind.NONE:
            return ""
        case InspectionFailureKind.SWITCHED_OFF:
            return SWITCHED_OFF
        case InspectionFailureKind.UNKNOWN_TOPIC:
            return f"the cluster no longer has {what}"
        case InspectionFailureKind.NO_LEADER:
            return f"{what} has no leader: nobody can read it now"
        case InspectionFailureKind.NOT_AUTHORIZED:
            need = _NEEDS[type(request)]
            return f"kview is not authorized to read {what}: it needs {need} ({_code(failed)})"
        case InspectionFailureKind.OFFSET_OUT_OF_RANGE:
            return _out_of_range(failed, answer)
        case InspectionFailureKind.TIMEOUT:
            return f"{broker} has not answered in time; try again"
        case InspectionFailureKind.UNSUPPORTED:
            if isinstance(request, ProducersRequest):
                return f"{broker} cannot tell who writes: brokers from Kafka 2.8 on can"
            if isinstance(request, QuotasRequest):
                return f"{broker} cannot tell quotas: brokers from Kafka 2.6 on can"
            return f"{broker} does not support the versions of Fetch that kview can use"
        case InspectionFailureKind.TOO_LARGE:
            return f"a batch in {what} is too large for kview to read"
        case InspectionFailureKind.TOO_MANY:
            return "a search reads no more partitions at a time: name them with --partition"
        case InspectionFailureKind.NOT_CONNECTED:
            return "no broker answers at the moment"
        case InspectionFailureKind.MASKED:
            condition = getattr(answer, "refused", None)
            return where.masked(condition, what) if condition is not None else ""
        case InspectionFailureKind.NO_ANSWER:
            return _no_answer(failed, what, broker, leads=of_partition)


_NEEDS: Mapping[type, str] = {
    RecordsRequest: "Read on this topic",
    SearchPlanRequest: "Read on this topic",
    SearchRequest: "Read on this topic",
    TailRequest: "Read on this topic",
    FirstRecordRequest: "Describe on this topic",
    SettingsRequest: "DescribeConfigs",
    ProducersRequest: "Read on this topic",
    DirectoriesRequest: "Describe on the cluster",
    QuotasRequest: "DescribeConfigs on the cluster",
}
"""The permissions that questions need."""


def _what(request: Question[Any]) -> str:
    """Return what a question is about."""
    topic = getattr(request, "topic", "")
    if isinstance(request, RecordsRequest | FirstRecordRequest):
        return f"{topic}-{request.partition}"
    if isinstance(request, QuotasRequest):
        return "quotas"
    return topic or f"broker {getattr(request, 'broker', NO_BROKER)}"


def _out_of_range(failed: InspectionFailure, answer: Answer) -> str:
    if failed.offset == UNKNOWN:
        return "the records were deleted while kview read them; try again"
    if not isinstance(answer, RecordsAnswer):
        return f"offset {failed.offset:,} does not exist"
    return f"offset {failed.offset:,} does not exist: {has(answer)}"


def _no_answer(failed: InspectionFailure, what: str, broker: str, leads: bool) -> str:
    why = failures.of(failed.cause.kind, failed.cause.code)
    if not why:
        return f"{what} could not be read; see kview.log"
    if failed.broker == NO_BROKER:
        return f"{what} could not be read: {why}"
    if failed.cause.kind is FailureKind.KAFKA_ERROR:
        return f"{broker} answered {why}"
    return (
        f"{broker} leads {what} but cannot be asked: {why}" if leads else f"{broker} cannot be asked: {why}"
    )


def _code(failed: InspectionFailure) -> str:
    return kafka_errors.name(failed.cause.code)


def is_held(answer: RecordsAnswer) -> bool:
    """Return whether an open transaction holds back records from a reader with read_committed."""
    return answer.high_watermark > answer.end and UNKNOWN not in (answer.log_start, answer.end)


def has(answer: RecordsAnswer) -> str:
    """Return which offsets a partition has: `it has offsets 201,004 to 1,100,870`."""
    if is_held(answer):
        return f"an open transaction holds back offsets {answer.end:,} to {answer.high_watermark - 1:,}"
    if UNKNOWN in (answer.log_start, answer.end):
        return "its offsets are not known"
    if answer.log_start >= answer.end:
        return f"the partition is empty, and its next offset is {answer.end:,}"
    return f"it has offsets {answer.log_start:,} to {answer.end - 1:,}"


def unread(answer: ProducersAnswer) -> str:
    """Return which partitions' leaders did not tell who writes to them, and why, '' if all did."""
    why = failure(answer.failure, answer)
    if not answer.unread:
        return why
    numbers = ", ".join(map(str, answer.unread[:MOST_NUMBERS]))
    more = f" + {len(answer.unread) - MOST_NUMBERS:,} more" if len(answer.unread) > MOST_NUMBERS else ""
    return f"not known of partition {numbers}{more}: {why}"


def damage(damaged: Damage) -> str:
    """Return why a batch cannot be shown."""
    why = {
        DamageKind.CORRUPT: "its checksum is wrong",
        DamageKind.MALFORMED: "its bytes are not records",
        DamageKind.TOO_LARGE: "it is too large to be shown",
        DamageKind.FORMAT: "kview does not know its format or compression",
    }[damaged.kind]
    return f"a batch of {words.size(damaged.size)} cannot be shown: {why}"


def damaged(answer: RecordsAnswer) -> str:
    """Return how many batches cannot be shown, '' if there are none."""
    number = len(answer.damage)
    if not number:
        return ""
    batches = "1 batch" if number == 1 else f"{number:,} batches"
    return f"{batches} cannot be shown: the rows with {glyphs.DEAD} say why"


def cost(answer: RecordsAnswer) -> str:
    """Return how much was read, and at what cost: `37 records, 12 kB fetched`."""
    return f"{words.plural(len(answer.records), 'record')}, {spent(answer.cost)}"


def spent(spent_: Cost) -> str:
    """Return what an answer cost: `12 kB fetched`."""
    return f"{words.size(spent_.bytes)} fetched"


def asked(request: RecordsRequest, zone: tzinfo | None) -> str:
    """Return what was asked for: `last 50`, `from offset 1,204`, `from 2026-03-01 14:05:30`."""
    start = request.start
    match start.kind:
        case StartKind.LATEST:
            return f"last {request.count:,}"
        case StartKind.OFFSET:
            return f"from offset {start.value:,}"
        case StartKind.TIME:
            return f"from {moment(start.value, zone)}"


def moment(at_ms: int, zone: tzinfo | None) -> str:
    """Return a moment with its day, `no time` if a record has none, or the number if no clock shows it."""
    if at_ms == UNKNOWN:
        return NO_TIME
    try:
        return f"{words.day(at_ms, zone)} {words.clock(at_ms, zone, tenths=False)}.{at_ms % 1000:03}"
    except (ValueError, OverflowError, OSError):
        return f"{at_ms:,} ms"


def time_of(record: Record, zone: tzinfo | None) -> str:
    """Return when a record was made, and by whose clock."""
    by = {
        TimeType.CREATE: " (set by the producer)",
        TimeType.APPEND: " (set by the leader when it was appended)",
        TimeType.NONE: " (its message format has none)",
    }[record.time_type]
    return f"{moment(record.timestamp_ms, zone)}{by}"


def producer(record: Record) -> str:
    """Return a record's producer: `producer 4711 epoch 3`, '' if it has no id."""
    if record.producer_id == UNKNOWN:
        return ""
    return f"producer {record.producer_id} epoch {record.producer_epoch}"


def isolation(chosen: Isolation) -> str:
    """Return Kafka's name of an isolation level."""
    return UNCOMMITTED if chosen is Isolation.READ_UNCOMMITTED else COMMITTED


def left_out(answer: RecordsAnswer) -> str:
    """Return what a reader does not see: `2 aborted batches left out`, '' if there is nothing."""
    parts = []
    if answer.aborted:
        batches = "batch" if answer.aborted == 1 else "batches"
        parts.append(f"{answer.aborted:,} aborted {batches} left out")
    if answer.control:
        parts.append(words.plural(answer.control, "transaction marker"))
    if answer.over_budget:
        parts.append("stopped at kview's limit: there are more")
    return f" {glyphs.DOT} ".join(parts)


def nothing(answer: RecordsAnswer) -> str:
    """Return why an answer without a failure has no records."""
    if is_held(answer):
        return f"no records: {has(answer)}"
    if answer.log_start == answer.end:
        return f"the partition is empty: {has(answer)}".replace(": the partition is empty, and", ":")
    if answer.request.start.kind is StartKind.TIME:
        return f"no records at or after that time ({has(answer)})"
    if answer.request.start.kind is StartKind.OFFSET:
        return f"no records from that offset on yet ({has(answer)})"
    return f"no records in the part that was read ({has(answer)})"


_SECOND_MS, _KILOBYTE = 1_000, 1_000
_LONG_MAX = 2**62
_SOURCES = {
    SettingSource.TOPIC: "topic",
    SettingSource.BROKER: "broker",
    SettingSource.CLUSTER: "cluster default",
    SettingSource.STATIC: "server.properties",
    SettingSource.DEFAULT: "default",
    SettingSource.OTHER: "other",
}


def source(kind: SettingSource) -> str:
    """Return where a setting's value comes from."""
    return _SOURCES[kind]


def setting(entry: Setting) -> str:
    """Return the value in force."""
    return value(entry.value, entry.sensitive, entry.name)


def value(text: str | None, sensitive: bool, name: str = "") -> str:
    """Return a setting's value. Kafka hides passwords, and has null for what is not set.

    Long times and sizes are also said in larger units: `86400000 (1 d)`.
    """
    if sensitive:
        return HIDDEN
    if text is None:
        return "null"
    if text.isascii() and text.isdigit() and len(text) < 19 and (number := int(text)) < _LONG_MAX:
        if name.endswith(".ms") and number >= _SECOND_MS:
            return f"{text} ({words.duration(number, tenths=False)})"
        if name.endswith(".bytes") and number >= _KILOBYTE:
            return f"{text} ({words.size(number)})"
    return text or '""'


def default(entry: Setting) -> str:
    """Return the default that a setting's value hides, `–` if the broker does not tell."""
    hidden = next((s for s in reversed(entry.synonyms) if s.source is SettingSource.DEFAULT), None)
    if hidden is None:
        return setting(entry) if entry.source is SettingSource.DEFAULT else words.NONE
    text = value(hidden.value, entry.sensitive, hidden.name or entry.name)
    # A topic's retention.ms has log.retention.hours as its default: another unit, so the name is said.
    other_unit = hidden.name.rpartition(".")[2] != entry.name.rpartition(".")[2]
    return f"{text} ({hidden.name})" if hidden.name and other_unit and not entry.sensitive else text
