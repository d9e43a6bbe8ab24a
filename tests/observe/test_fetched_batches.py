"""What a broker may answer to a Fetch: transactions, damage, bombs, errors, moved leaders. All become
facts."""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import pack

import pytest

from kview.model.failures import FailureKind
from kview.model.inspection import DamageKind, InspectionFailureKind, Isolation, Start, StartKind, TimeType
from kview.model.units import UNKNOWN
from kview.observe.observer import Observer, ObserveSettings
from kview.observe.peek import ANSWER_BYTES
from kview.simulate.records import encode_batch
from kview.wire.compression import ZSTD
from tests.observe.asking import FETCH, RecordBroker, offsets, records, values
from tests.observe.observing import observing
from tests.simulate.client_batches import client_batch, compressed, raw_batch, with_field
from tests.simulate.engine import START_MS

TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = 0, 1
SETTINGS = ObserveSettings(interval_s=0.2)


def placed(batch: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + batch[8:]


def batch(offset: int, values: list[bytes], producer: int = -1) -> bytes:
    made = encode_batch([(b"k", value, START_MS) for value in values], offset, 3, producer, 0, 0)
    return placed(with_field(made, 21, "h", TRANSACTIONAL) if producer >= 0 else made, offset)


def marker(offset: int, kind: int, producer: int) -> bytes:
    made = encode_batch([(pack(">hh", 0, kind), pack(">hi", 0, 0), START_MS)], offset, 3, producer, 0, -1)
    return placed(with_field(made, 21, "h", TRANSACTIONAL | CONTROL), offset)


def transactions() -> RecordBroker:
    """A broker with an aborted transaction, two committed ones, and a record outside of any."""
    log = [
        (0, batch(0, [b"plain"])),
        (1, batch(1, [b"lost", b"lost too"], producer=7)),
        (3, batch(3, [b"kept"], producer=8)),
        (4, marker(4, ABORT, 7)),
        (5, marker(5, COMMIT, 8)),
        (6, batch(6, [b"again"], producer=7)),
        (7, marker(7, COMMIT, 7)),
    ]
    broker = RecordBroker(log, end=8)
    broker.aborted = [(7, 1)]
    return broker


@contextmanager
def asked(broker: RecordBroker) -> Iterator[Observer]:
    with broker, observing([broker.address], SETTINGS) as observer:
        observer.observe()
        yield observer


def test_transactions_are_left_out_as_by_a_consumer_and_shown_on_request() -> None:
    broker = transactions()
    with asked(broker) as observer:
        for start in (Start(), Start(StartKind.OFFSET, 0)):
            answer = records(observer, "invoice", start=start)
            assert values(answer) == [b"plain", b"kept", b"again"]
            assert (answer.aborted, answer.control, answer.damage) == (1, 3, ())
            assert [r.transactional for r in answer.records] == [False, True, True]
        answer = records(observer, "invoice", isolation=Isolation.READ_UNCOMMITTED)
        assert values(answer) == [b"plain", b"lost", b"lost too", b"kept", b"again"]
        assert (answer.aborted, answer.control) == (0, 3)
    request = broker.fetched[0]
    assert {request.replica_id for request in broker.fetched} == {-1}
    assert (request.max_wait_ms, request.isolation_level) == (0, 1)


def test_damaged_batches_are_named_and_the_others_are_shown() -> None:
    flipped = bytearray(batch(2, [b"bad"]))
    flipped[-2] ^= 1
    log = [
        (0, batch(0, [b"first", b"second"])),
        (2, bytes(flipped)),
        (3, placed(raw_batch(ZSTD, compressed(ZSTD, bytes(1 << 25)), 1), 3)),
        (4, placed(raw_batch(0, b"\x55" * 40, 1), 4)),
        (5, placed(with_field(client_batch(records=1), 21, "h", 6), 5)),
        (6, batch(6, [b"last"])),
    ]
    with asked(RecordBroker(log, end=7)) as observer:
        answer = records(observer, "invoice")
        assert values(answer) == [b"first", b"second", b"last"]
        assert [(d.offset, d.kind) for d in answer.damage] == [
            (2, DamageKind.CORRUPT),
            (3, DamageKind.TOO_LARGE),
            (4, DamageKind.MALFORMED),
            (5, DamageKind.FORMAT),
        ]
        assert not answer.failure and records(observer, "invoice", count=1).records[0].offset == 6


def test_bytes_that_are_no_batch_end_the_reading_and_are_said() -> None:
    with asked(RecordBroker([(0, batch(0, [b"a"])), (1, b"\xff" * 80)], end=2)) as observer:
        answer = records(observer, "invoice", start=Start(StartKind.OFFSET, 0))
        assert values(answer) == [b"a"] and [d.offset for d in answer.damage] == [1]


def test_a_log_of_large_batches_stops_at_the_budget_with_the_newest_records() -> None:
    log = [(n, batch(n, [bytes([n]) * 900_000])) for n in range(40)]
    with asked(RecordBroker(log, end=40)) as observer:
        answer = records(observer, "invoice", count=30)
        assert answer.over_budget and answer.records[-1].offset == 39
        assert offsets(answer) == list(range(answer.records[0].offset, 40))
        assert len(answer.records) >= 4 and answer.cost.bytes < ANSWER_BYTES + 3_000_000
        assert offsets(records(observer, "invoice", start=Start(StartKind.OFFSET, 3), count=2)) == [3, 4]


def test_few_records_in_many_offsets_are_found() -> None:
    """A compacted log: one record in 100 offsets."""
    log = [(n, batch(n, [b"v"])) for n in range(0, 10_000, 100)]
    with asked(RecordBroker(log, end=10_000)) as observer:
        assert offsets(records(observer, "invoice", count=20)) == list(range(8_000, 10_000, 100))


def test_times_say_whose_clock_they_are() -> None:
    appended = with_field(with_field(client_batch(records=1), 21, "h", 8), 35, "q", 5_000)
    timeless = with_field(client_batch(records=1), 27, "q", -1)
    with asked(RecordBroker([(0, appended), (1, placed(timeless, 1))], end=2)) as observer:
        first, second = records(observer, "invoice").records
        assert (first.timestamp_ms, first.time_type) == (5_000, TimeType.APPEND)
        assert (second.timestamp_ms, second.time_type) == (UNKNOWN, TimeType.NONE)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (29, InspectionFailureKind.NOT_AUTHORIZED),
        (1, InspectionFailureKind.OFFSET_OUT_OF_RANGE),
        (2, InspectionFailureKind.NO_ANSWER),
    ],
)
def test_a_refusal_says_why(error: int, kind: InspectionFailureKind) -> None:
    broker = RecordBroker([(0, batch(0, [b"a"]))], end=1)
    with asked(broker) as observer:
        broker.errors = [error]
        answer = records(observer, "invoice", start=Start(StartKind.OFFSET, 17))
        assert answer.failure.kind is kind and (answer.log_start, answer.end) == (0, 1)
        if error == 2:
            assert answer.failure.cause == (FailureKind.KAFKA_ERROR, 2)


def test_retention_that_moves_meanwhile_is_followed_once() -> None:
    broker = RecordBroker([(0, batch(0, [b"a", b"b"]))], end=2)
    with asked(broker) as observer:
        broker.errors = [1]
        assert values(records(observer, "invoice")) == [b"a", b"b"]
        broker.errors = [1, 1]
        answer = records(observer, "invoice")
        assert answer.failure.kind is InspectionFailureKind.OFFSET_OUT_OF_RANGE and not answer.records


def test_a_broker_that_is_not_the_leader_is_asked_who_is_once() -> None:
    broker = RecordBroker([(0, batch(0, [b"a"]))], end=1)
    with asked(broker) as observer:
        broker.errors = [6]
        assert values(records(observer, "invoice")) == [b"a"]
        broker.errors = [6, 6, 6]
        answer = records(observer, "invoice")
        assert answer.failure.cause == (FailureKind.KAFKA_ERROR, 6)


def test_a_hung_broker_fails_the_question_and_no_observation_waits() -> None:
    broker = RecordBroker([(0, batch(0, [b"a"]))], end=1)
    with asked(broker) as observer:
        broker.hang()
        try:
            for _ in range(2):
                observer.observe()
            answer = records(observer, "invoice")
            assert answer.failure.kind in (InspectionFailureKind.NO_ANSWER, InspectionFailureKind.TIMEOUT)
            assert not answer.records
        finally:
            broker.go_on()


def test_without_permission_of_the_user_no_fetch_is_sent() -> None:
    broker = RecordBroker([(0, batch(0, [b"a"]))], end=1)
    with broker:
        observer = Observer([broker.address], SETTINGS, with_records=False)
        observer.connect()
        try:
            observer.observe()
            assert records(observer, "invoice").failure.kind is InspectionFailureKind.SWITCHED_OFF
        finally:
            observer.close()
        assert FETCH not in {key for key, _ in broker.asked}


@pytest.mark.parametrize(
    "garbage", [b"\x7f" * 30 + b"a-secret", b"a-secret", bytes(18) + b"\xff\xff\xff\x00a-secret"]
)
def test_an_answer_that_cannot_be_read_is_said_and_not_logged(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    broker = RecordBroker([(0, batch(0, [b"a"]))], end=1)
    with caplog.at_level("WARNING"), asked(broker) as observer:
        broker.nonsense = garbage
        failure = records(observer, "invoice").failure
        assert failure.cause.kind in (FailureKind.MALFORMED, FailureKind.INCOMPLETE)
    assert "secret" not in caplog.text
