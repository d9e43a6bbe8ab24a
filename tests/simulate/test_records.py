"""Batches, checksums and simulated records, compared with kafka-python's own reader."""

from kafka.record import MemoryRecords

from kview.simulate.log import Log
from kview.simulate.reading import RecordMaker
from kview.simulate.records import decode_batch, encode_batch, header, placed
from tests.simulate.client_batches import client_batch


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


def test_a_clients_batch_is_placed() -> None:
    data = client_batch(7, 1, 5)
    there = next(iter(MemoryRecords(b"".join(placed(data, 90, 4)))))
    assert there.validate_crc() and there.base_offset == 90


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
