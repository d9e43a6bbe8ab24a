"""What a producer is told about a batch that is refused: the same by the simulated and by a real cluster.

Read from Apache Kafka 4.3.1.
"""

import re
import time
from collections.abc import Callable, Sequence

import pytest
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from kview.simulate.batch_check import RECORD_ERRORS_MAX
from kview.simulate.records import encode_batch
from kview.wire.compression import GZIP
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.client_batches import compressed_batch, raw_batch, record, with_field
from tests.simulate.engine import TOPIC, cluster_of, go

HOUR_MS = 3_600_000
BASE_OFFSET, LENGTH, ATTRIBUTES, LAST_DELTA, PRODUCER, EPOCH, SEQUENCE, COUNT = 0, 8, 21, 23, 43, 51, 53, 57
MAX_TIME = 35
TOPICS = {
    "rb": {},
    "rb-compact": {"cleanup.policy": "compact"},
    "rb-late": {"message.timestamp.before.max.ms": str(HOUR_MS)},
    "rb-append": {"message.timestamp.type": "LogAppendTime"},
    "rb-small": {"max.message.bytes": "1000"},
}
NO_KEY = "Compacted topic cannot accept message without key in topic partition rb-compact-0"
LATE = "Timestamp N of message with offset {} is out of range. The timestamp should be within [N, N]"
APPEND_TIME = (
    "Invalid timestamp type in message DefaultRecord(offset={}, timestamp=N, key={} bytes, value={} bytes). "
    "Producer should not set timestamp type to LogAppendTime."
)
TIMES = "One or more records have been rejected due to invalid timestamp"


def keys(*errors: int) -> str:
    """What is said about so many records without a key."""
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{NO_KEY}')" for index in errors[:3])
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only "
        f"showing the first three errors at most: [{shown}]"
    )


def now_ms() -> int:
    return round(time.time() * 1000)


def batch(*records: tuple[bytes | None, int], value: bytes = b"v") -> bytes:
    """Return a batch of records with these keys, so many milliseconds from now."""
    return encode_batch([(key, value, now_ms() + after_ms) for key, after_ms in records])


def changed(*fields: tuple[int, str, int]) -> Callable[[], bytes]:
    """Return a batch of one record with other fields in its header."""

    def make() -> bytes:
        data = batch((b"k", 0))
        for field in fields:
            data = with_field(data, *field)
        return data

    return make


def of_producer(number: int, epoch: int, sequence: int) -> Callable[[], bytes]:
    return changed((PRODUCER, "q", number), (EPOCH, "h", epoch), (SEQUENCE, "i", sequence))


Errors = Sequence[tuple[int, str]]
Row = tuple[str, str, Callable[[], bytes], tuple[int, int, Errors, str | None]]
"""What is wrong, the topic, the batch; error number, log start offset, errors of records, message."""

SOON, FAR = 0, 2 * HOUR_MS
BEFORE_THE_LOG: list[Row] = [
    ("nothing", "rb", lambda: b"", (87, -1, [], None)),
    ("two batches", "rb", lambda: batch((None, SOON)) * 2, (87, -1, [], None)),
    ("a wrong checksum", "rb", lambda: batch((None, SOON))[:-1] + b"x", (2, -1, [], None)),
    ("a small length", "rb", changed((LENGTH, "i", 20)), (2, -1, [], None)),
    ("too many bytes", "rb-small", lambda: batch((None, SOON), value=b"v" * 2000), (10, -1, [], None)),
    ("a transaction without an id", "rb", changed((ATTRIBUTES, "h", 16)), (53, -1, [], None)),
]
BY_THE_LOG: list[Row] = [
    ("a base offset", "rb", changed((BASE_OFFSET, "q", 5)), (87, 0, [], None)),
    ("no records", "rb", changed((COUNT, "i", 0)), (87, 0, [], None)),
    ("a record too many", "rb", changed((COUNT, "i", 2), (LAST_DELTA, "i", 1)), (87, 0, [], None)),
    ("a control batch", "rb", changed((ATTRIBUTES, "h", 32)), (87, 0, [], None)),
    ("no codec", "rb", changed((ATTRIBUTES, "h", 7)), (-1, 0, [], None)),
    ("no sequence", "rb", of_producer(5, 0, -1), (87, 0, [], None)),
    ("bad gzip", "rb", lambda: raw_batch(GZIP, b"\xde\xad" * 40, 2, now_ms()), (-1, 0, [], None)),
    ("a sequence number that is missing", "rb", of_producer(1 << 40, 0, 9), (45, 0, [], None)),
    ("an epoch that is over", "rb", of_producer(1 << 40, -1, 1), (47, 0, [], None)),
    ("a time", "rb", lambda: batch((None, FAR)), (32, 0, [(0, LATE.format(0))], TIMES)),
    (
        "some times",
        "rb",
        lambda: batch((None, SOON), (None, FAR), (None, FAR)),
        (32, 0, [(1, LATE.format(1)), (2, LATE.format(2))], TIMES),
    ),
    (
        "a time among many",
        "rb",
        lambda: batch(*[(None, SOON)] * 60, (None, FAR)),
        (32, 0, [(60, LATE.format(60))], TIMES),
    ),
    ("the past", "rb-late", lambda: batch((None, -FAR)), (32, 0, [(0, LATE.format(0))], TIMES)),
    (
        "a time in gzip",
        "rb",
        lambda: compressed_batch(GZIP, record(0) + record(1, after_ms=FAR), 2, now_ms()),
        (32, 0, [(1, LATE.format(1))], TIMES),
    ),
    ("a key", "rb-compact", lambda: batch((None, SOON)), (87, 0, [(0, NO_KEY)], keys(0))),
    (
        "some keys",
        "rb-compact",
        lambda: batch((None, SOON), (b"k", SOON), *[(None, SOON)] * 3),
        (87, 0, [(index, NO_KEY) for index in (0, 2, 3, 4)], keys(0, 2, 3, 4)),
    ),
    (
        "keys in gzip",
        "rb-compact",
        lambda: compressed_batch(GZIP, record(0, None) + record(1), 2, now_ms()),
        (87, 0, [(0, NO_KEY)], keys(0)),
    ),
    (
        "a key and a time",
        "rb-compact",
        lambda: batch((None, FAR), (b"k", FAR)),
        (32, 0, [(0, NO_KEY), (1, LATE.format(1))], TIMES),
    ),
    (
        "the type of the time",
        "rb-append",
        lambda: with_field(batch((b"kk", SOON), (None, SOON)), ATTRIBUTES, "h", 8),
        (32, 0, [(0, APPEND_TIME.format(0, 2, 1)), (1, APPEND_TIME.format(1, 0, 1))], TIMES),
    ),
]
TAKEN: list[Row] = [
    ("times of the append", "rb-append", lambda: batch((None, FAR)), (0, 0, [], None)),
    ("epoch −1", "rb", of_producer(5, -1, 0), (0, 0, [], None)),
    ("epoch −1 and a gap", "rb", of_producer(5, -1, 7), (0, 0, [], None)),
]
ROWS = [*BEFORE_THE_LOG, *BY_THE_LOG, *TAKEN]


@pytest.mark.parametrize(
    ("topic", "make", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_refused_batch_is_answered_with_its_records_and_the_log_start(
    cluster: Cluster, topic: str, make: Callable[[], bytes], expected: tuple[int, int, Errors, str | None]
) -> None:
    for name, configs in TOPICS.items():
        cluster.create(name, [[0, 1]], configs)
    q.produce(cluster.leader, "rb", of_producer(1 << 40, 0, 0)())
    answer = q.produce_answer(cluster.leader, topic, make())
    records = [(e.batch_index, numbers_hidden(e.batch_index_error_message)) for e in answer.record_errors]
    said = (answer.error_code, answer.log_start_offset, records, answer.error_message)
    assert said == (expected[0], expected[1], list(expected[2]), expected[3])


def test_a_duplicate_has_the_time_of_the_batch_that_was_appended(cluster: Cluster) -> None:
    cluster.create("rb-twice", [[0, 1]])
    data = of_producer(6, 0, 0)()
    first, second = (q.produce_answer(cluster.leader, "rb-twice", data) for _ in range(2))
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (0, 0, -1)
    appended_ms = int.from_bytes(data[MAX_TIME : MAX_TIME + 8], "big")
    assert (second.error_code, second.base_offset, second.log_append_time_ms) == (0, 0, appended_ms)


@pytest.mark.parametrize("version", range(3, 8))
def test_before_version_8_an_answer_names_no_records(cluster: Cluster, version: int) -> None:
    cluster.create("rb-compact", [[0, 1]], TOPICS["rb-compact"])
    answer = q.produce_answer(cluster.leader, "rb-compact", batch((None, SOON)), version=version)
    assert (answer.error_code, list(answer.record_errors), answer.error_message) == (87, [], None)


def test_an_answer_names_so_many_records_and_no_more() -> None:
    cluster = cluster_of(configs={"cleanup.policy": "compact"})
    go(cluster, 2)
    client = UnwiredClient(cluster.image(0).topics[TOPIC].partitions[0].leader)
    per_topic = ProduceRequest.TopicProduceData
    data = [
        per_topic.PartitionProduceData(version=9, index=0, records=batch(*[(None, 0)] * 600))
        for _ in range(3)
    ]
    request = ProduceRequest(
        version=9, transactional_id=None, acks=-1, timeout_ms=1_000,
        topic_data=[per_topic(version=9, name=TOPIC, partition_data=data)],
    )  # fmt: skip
    Unwired(cluster).ask(client, request)
    go(cluster, 1)
    (frame,) = client.answers
    assert frame is not None
    answer = ProduceResponse.decode(frame[9:], version=9)
    named = [len(row.record_errors) for row in answer.responses[0].partition_responses]
    assert named == [600, RECORD_ERRORS_MAX - 600, 0]


def numbers_hidden(message: str) -> str:
    """Return a message without its times."""
    return re.sub(r"-?\d{11,}", "N", message)
