"""Which batches are appended and which are refused, with Kafka's error numbers."""

import random
import tracemalloc
from collections.abc import Callable, Iterable
from struct import pack

import pytest
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.util import decode_varint

from kview.simulate.batch_check import COMPRESSED_RECORDS_MAX, MANY_RECORDS, Rules, check, check_records
from kview.simulate.record_check import Refused
from kview.simulate.records import encode_batch
from kview.wire.compression import GZIP, LZ4, SNAPPY, ZSTD
from tests.simulate.client_batches import (
    client_batch,
    compressed,
    compressed_batch,
    raw_batch,
    record,
    with_field,
)
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, produce, replica

RULES = Rules(now_ms=START_MS, max_bytes=1 << 20)
HOUR_MS = 3_600_000
ATTRIBUTES, LAST_DELTA, BASE_TIME, MAX_TIME, PRODUCER, SEQUENCE, COUNT, BODY = 21, 23, 27, 35, 43, 53, 57, 61
GOOD = client_batch()


def error_of(data: bytes, rules: Rules = RULES) -> int:
    try:
        check(data, rules)
    except Refused as refused:
        return int(refused.code)
    return 0


def at_time(time_ms: int) -> bytes:
    return encode_batch([(b"k", b"v", START_MS), (b"k", b"v", time_ms)])


@pytest.mark.parametrize("records", [1, 2, 3, 200])
@pytest.mark.parametrize("compression", [0, 1])
def test_a_clients_batch_is_taken_as_it_is(records: int, compression: int) -> None:
    data = client_batch(7, 1, 5, records, compression)
    checked = check(data, RULES)
    assert checked.data == data
    head = checked.header
    assert (head.producer_id, head.producer_epoch, head.base_sequence, head.records) == (7, 1, 5, records)


REFUSED = [
    ("nothing", b"", 87),
    ("the start of a header", GOOD[:40], 87),
    ("a batch that is cut off", GOOD[:-1], 87),
    ("two batches", GOOD + GOOD, 87),
    ("a batch and one that is damaged", GOOD + GOOD[:-1] + b"x", 87),
    ("magic 1", GOOD[:16] + b"\1" + GOOD[17:], 87),
    ("a length below a header's", GOOD[:8] + pack(">i", 40) + GOOD[12:], 2),
    ("a wrong checksum", GOOD[:-1] + bytes((GOOD[-1] ^ 1,)), 2),
    ("no records", with_field(GOOD, COUNT, "i", 0), 87),
    ("a negative count", with_field(GOOD, COUNT, "i", -3), 87),
    ("more records than offsets", with_field(GOOD, COUNT, "i", 4), 87),
    ("a last offset delta of 2^31 - 1", with_field(GOOD, LAST_DELTA, "i", 2**31 - 1), 87),
    ("five records without bytes", with_field(with_field(GOOD, COUNT, "i", 5), LAST_DELTA, "i", 4), 87),
    ("a record too few", with_field(with_field(GOOD, COUNT, "i", 2), LAST_DELTA, "i", 1), 87),
    ("a control batch", with_field(GOOD, ATTRIBUTES, "h", 0x20), 87),
    ("a transaction", with_field(client_batch(7, 1, 5), ATTRIBUTES, "h", 0x10), 48),
    ("an unknown codec", with_field(GOOD, ATTRIBUTES, "h", 7), -1),
    ("a producer without a sequence", with_field(client_batch(7, 1, 5), SEQUENCE, "i", -1), 87),
    ("a record of no bytes", with_field(GOOD, BODY, "b", 0), 87),
    ("a record longer than its batch", with_field(GOOD, BODY, "b", 126), 87),
    ("a negative key length", with_field(GOOD, BODY + 4, "b", 3), 87),
    ("an offset delta of 1 at first", with_field(GOOD, BODY + 3, "b", 2), 87),
    ("a number without an end", with_field(GOOD, BODY + 2, "q", -1), 87),
    ("a record's length without an end", with_field(GOOD, BODY, "q", -1), -1),
    ("an hour and a bit in the future", at_time(START_MS + HOUR_MS + 1), 32),
    ("nanoseconds", at_time(START_MS * 1_000_000), 32),
    ("the least time there is", with_field(GOOD, BASE_TIME, "q", -(2**63)), 32),
    ("a first time in nanoseconds", with_field(GOOD, BASE_TIME, "q", START_MS * 1_000_000), 32),
]


@pytest.mark.parametrize(("data", "number"), [pytest.param(d, n, id=name) for name, d, n in REFUSED])
def test_what_is_wrong_has_kafkas_number_and_nothing_is_appended(data: bytes, number: int) -> None:
    cluster = cluster_of()
    assert [answer.error_code for answer in produce(cluster, 0, data=data)] == [number]
    log = replica(cluster, 0).log
    assert (log.end, log.size_between(0, 100)) == (0, 0)
    assert produce(cluster, 0, acks=1)[0].base_offset == 0, "the next batch is taken"


@pytest.mark.parametrize(
    ("data", "rules", "number"),
    [
        (at_time(START_MS + HOUR_MS), RULES, 0),
        (at_time(-1), RULES, 0),
        (at_time(0), RULES, 0),
        (GOOD, RULES._replace(compacted=True), 87),
        (encode_batch([(b"k", None, START_MS)]), RULES._replace(compacted=True), 0),
        (GOOD, RULES._replace(max_bytes=len(GOOD)), 0),
        (GOOD, RULES._replace(max_bytes=len(GOOD) - 1), 10),
    ],
)
def test_limits(data: bytes, rules: Rules, number: int) -> None:
    assert error_of(data, rules) == number


def test_a_latest_time_that_is_not_the_records_is_corrected_as_in_kafka() -> None:
    wrong = with_field(with_field(GOOD, MAX_TIME, "q", 5), ATTRIBUTES, "h", 0x08)
    checked = check(wrong, RULES)
    read = next(iter(MemoryRecords(checked.data)))
    assert read.validate_crc() and read.timestamp_type == 0
    assert checked.header.max_time_ms == START_MS + 14
    assert checked.data == GOOD


THREE = record(0) + record(1) + record(2)
MANY = b"".join(record(n, value=b"") for n in range(2 * MANY_RECORDS))
TWO_HOURS_MS = 2 * HOUR_MS
SENSELESS = b"\xde\xad\xbe\xef" * 20

COMPRESSED = [
    ("three records", lambda c: compressed_batch(c, THREE, 3), 0),
    ("many records", lambda c: compressed_batch(c, MANY, 2 * MANY_RECORDS), 0),
    ("a null key", lambda c: compressed_batch(c, record(0) + record(1, None), 2), 0),
    ("a record too few", lambda c: compressed_batch(c, THREE, 2), 87),
    ("a record too many", lambda c: compressed_batch(c, THREE, 4), 87),
    ("many records and one more", lambda c: compressed_batch(c, MANY, 2 * MANY_RECORDS + 1), 87),
    ("no records", lambda c: compressed_batch(c, b"", 3), 87),
    ("offset deltas of 1 and 2", lambda c: compressed_batch(c, record(1) + record(2), 2), -1),
    ("a gap in many offset deltas", lambda c: compressed_batch(c, MANY[:-9] + record(99, value=b""), 96), -1),
    ("an inner time of the future", lambda c: compressed_batch(c, record(0, after_ms=TWO_HOURS_MS), 1), 32),
    ("bytes that mean nothing", lambda c: raw_batch(c, SENSELESS, 3), -1),
    ("bytes that are not compressed", lambda c: raw_batch(c, THREE, 3), -1),
    ("half of the bytes", lambda c: raw_batch(c, compressed(c, MANY)[:-20], 2 * MANY_RECORDS), -1),
    ("more records than allowed", lambda c: compressed_batch(c, THREE, COMPRESSED_RECORDS_MAX + 1), 10),
]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize(("make", "number"), [pytest.param(m, n, id=name) for name, m, n in COMPRESSED])
def test_the_records_of_a_compressed_batch_are_checked(
    codec: int, make: Callable[[int], bytes], number: int
) -> None:
    assert error_of(make(codec)) == number


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_compacted_topic_takes_no_null_key_within_a_compressed_batch(codec: int) -> None:
    rules = RULES._replace(compacted=True)
    assert error_of(compressed_batch(codec, THREE, 3), rules) == 0
    assert error_of(compressed_batch(codec, THREE + record(3, None), 4), rules) == 87
    assert error_of(compressed_batch(codec, MANY + record(96, None), 97), rules) == 87


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_a_bomb_is_too_large_and_takes_little_memory(codec: int) -> None:
    bomb = compressed_batch(codec, record(0, value=bytes(68_000_000)), 1)
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        assert error_of(bomb) == 10
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150_000_000


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("claimed_ms", [START_MS * 1_000_000, START_MS + TWO_HOURS_MS, 5])
def test_the_latest_time_of_a_compressed_batch_is_that_of_its_records(codec: int, claimed_ms: int) -> None:
    good = with_field(
        compressed_batch(codec, record(0) + record(1, after_ms=40), 2), MAX_TIME, "q", START_MS + 40
    )
    checked = check(with_field(good, MAX_TIME, "q", claimed_ms), RULES)
    assert (checked.data, checked.header.max_time_ms) == (good, START_MS + 40)


@pytest.mark.parametrize("count", [4, 2 * MANY_RECORDS])
def test_every_change_of_a_byte_is_refused_or_read_by_another_codec(count: int) -> None:
    """What this check takes, kafka-python's reader can read.

    That reader takes a record's attributes for a number of any length, so they stay as they are.
    """
    source, taken = random.Random(3), 0
    whole = encode_batch([(b"key" * (n % 4) or None, b"value" * n, START_MS + n) for n in range(count)])
    changeable, at = list[int](), 61
    for _ in range(count):
        length_bytes = 1 if whole[at] < 0x80 else 2
        length = decode_varint(whole, at)[0]
        changeable += [at, *range(at + length_bytes + 1, at + length_bytes + min(length, 14))]
        at += length_bytes + length
    for _ in range(20_000 // count):
        data = with_field(whole, source.choice(changeable), "B", source.randrange(256))
        try:
            checked = check(data, RULES)
        except Refused:
            checked = None
        if checked is not None:
            taken += 1
            records = [r for read in MemoryRecords(checked.data) for r in read]
            assert [r.offset for r in records] == list(range(count))
            assert max(r.timestamp for r in records) == checked.header.max_time_ms
        else:
            with pytest.raises((CorruptRecordError, Different)):
                for read in MemoryRecords(data):
                    if [r.offset for r in read] != list(range(count)):
                        raise Different
                    if max(r.timestamp for r in read) > START_MS + HOUR_MS:
                        raise Different
    assert taken > 20


class Different(Exception):
    """Raised in place of an error that the other codec leaves to its caller."""


def numbered(lengths: Iterable[int]) -> bytes:
    """Return a batch of records with values of these lengths."""
    return encode_batch([(b"k", b"v" * length, START_MS + n) for n, length in enumerate(lengths)])


@pytest.mark.parametrize(
    "lengths",
    [
        [20] * 500,
        [0] * 9_000,
        [1_000] * 300 + [1_001] + [1_000] * 200,
        [5_000] * 60 + [3] * 70 + list(range(100)) * 2,
        [40_000] * 50,
    ],
)
def test_records_of_equal_lengths_are_read_like_others(lengths: list[int]) -> None:
    """Many records are checked together, and few at a time by other code, with the same result."""
    source, whole = random.Random(len(lengths)), numbered(lengths)
    time_deltas = check_records(whole, BODY, len(lengths))
    assert time_deltas[:2] == (0, len(lengths) - 1)
    begins = begins_of(whole, len(lengths))
    for _ in range(60):
        wrong = bytearray(whole)
        wrong[source.choice(begins)] ^= 1 << source.randrange(8)
        with pytest.raises(Refused):
            check_records(bytes(wrong), BODY, len(lengths))
    for records in (len(lengths) - 1, len(lengths) + 1):
        with pytest.raises(Refused):
            check_records(whole, BODY, records)
    with pytest.raises(Refused):
        check_records(whole[:-1], BODY, len(lengths))


def begins_of(batch: bytes, records: int) -> list[int]:
    """Return the position of each record's length, as kafka-python decodes it."""
    begins, at = list[int](), BODY
    for _ in range(records):
        begins.append(at)
        length, at = decode_varint(batch, at)
        at += length
    assert at == len(batch)
    return begins


def test_a_time_long_ago_does_not_tear_the_columns() -> None:
    cluster = cluster_of(settings={"log.retention.check.interval.ms": "1000"})
    long_ago = encode_batch([(b"k", b"v", -(2**62))])
    assert produce(cluster, 0, data=long_ago, acks=1)[0].base_offset == 0
    assert produce(cluster, 0, acks=1)[0].base_offset == 1
    go(cluster, 5)
    assert cluster.records.list_offset(0, TOPIC, 0, START_MS).offset == 1
    assert cluster.records.list_offset(0, TOPIC, 0, -1).offset == 2
