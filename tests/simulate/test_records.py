"""Batches, checksums, and simulated records against kafka-python's own reader."""

import random

import pytest
from kafka.record import MemoryRecords
from kafka.record._crc32c import crc as reference_crc
from kafka.record.default_records import DefaultRecordBatchBuilder

from kview.simulate.codes import ErrorCode
from kview.simulate.crc32c import crc32c
from kview.simulate.log import Log
from kview.simulate.reading import RecordMaker
from kview.simulate.records import decode_batch, encode_batch, header, placed, split


@pytest.mark.parametrize("size", [0, 1, 3, 4, 1023, 1024, 1025, 1027, 2048, 70_001])
def test_crc_is_castagnolis(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == reference_crc(data)


def test_crc_of_the_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_batch_reads_back_here_and_there() -> None:
    records = [(b"k", b"v" * 200, 1000), (None, b"w", 900), (b"x", None, 70_000_000)]
    batch = encode_batch(records, base_offset=40, leader_epoch=3)
    assert [(r.key, r.value, r.timestamp_ms) for r in decode_batch(batch)] == records
    read = next(iter(MemoryRecords(batch)))
    assert read.validate_crc()
    assert [(r.offset, r.key, r.value, r.timestamp) for r in read] == [
        (40 + n, *record) for n, record in enumerate(records)
    ]
    assert header(batch).max_time_ms == 70_000_000


def test_a_clients_batch_is_taken_and_placed() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, False, 7, 1, 5, 10_000)
    for n in range(3):
        builder.append(n, 1000 + n, b"k", b"v", [])
    data = bytes(builder.build())
    error, batches = split(data + data)
    assert error is ErrorCode.NONE and len(batches) == 2
    head = batches[0][0]
    assert (head.producer_id, head.producer_epoch, head.base_sequence, head.records) == (7, 1, 5, 3)
    there = next(iter(MemoryRecords(placed(data, 90, 4))))
    assert there.validate_crc() and there.base_offset == 90


@pytest.mark.parametrize("where", [16, 17, 30, 60])
def test_damage_is_found(where: int) -> None:
    data = bytearray(encode_batch([(None, b"value", 1)]))
    data[where] ^= 1
    assert split(bytes(data))[0] is not ErrorCode.NONE
    assert split(bytes(data[:-1]))[0] is not ErrorCode.NONE


def test_simulated_records_are_valid_repeatable_and_of_their_size() -> None:
    log = Log()
    stream = log.begin_epoch(2)
    stream.append_run(500, 1_000_000_000, 2_272, 220, 0)
    log.end = stream.end

    def made() -> bytes:
        maker = RecordMaker(b"abcdefgh" * 512)
        maker.register("client", lambda topic, partition: [b"one", b"two"])
        return maker.read("t", 3, log, 0, 500, 1 << 20)

    data = made()
    assert data == made()
    records = [record for read in MemoryRecords(data) if read.validate_crc() for record in read]
    assert [r.offset for r in records] == list(range(500))
    assert [r.timestamp for r in records] == [(1_000_000_000 + n * 2_272) // 1000 for n in range(500)]
    assert {r.key for r in records} == {b"one", b"two"}
    assert b"client t-3@7 " in records[7].value
    assert abs(len(data) - log.size_between(0, 500)) < 0.01 * len(data)


def test_reading_gives_whole_batches_one_at_least() -> None:
    log = Log()
    stream = log.begin_epoch(0)
    stream.append_run(1000, 0, 1000, 200, 0)
    log.end = stream.end
    maker = RecordMaker(b"a" * 4096)
    maker.register("c", None)
    first = maker.read("t", 0, log, 100, 1000, 1)
    reads = list(MemoryRecords(first))
    assert len(reads) == 1
    assert reads[0].base_offset <= 100 < reads[0].next_offset
    assert maker.read("t", 0, log, 100, 101, 1 << 20) != b"", "up to a watermark within a batch"
