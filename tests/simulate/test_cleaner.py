"""Compaction: what it leaves of records, simulated ones and clients', on leaders and followers."""

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kview.simulate.alterations import Alteration, Operation
from kview.simulate.brokers.segments import SEGMENTS_MAX, Segments
from kview.simulate.cluster import Cluster, build
from kview.simulate.log import Log
from kview.simulate.records import Record, decode_batch, encode_batch, header
from kview.simulate.requests.records import Acks, Reader
from kview.simulate.results import ProduceResult
from kview.simulate.world import GroupSpec, ProducerSpec, TopicSpec, World, racked_brokers
from tests.simulate.client_batches import recompressed
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, replica
from tests.simulate.invariants import Checker

QUICK = {"log.cleaner.backoff.ms": "1000", "replica.lag.time.max.ms": "2000"}
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
MANY_BYTES = 1 << 24

Key = bytes
Value = bytes | None


def compacted(**more: str) -> Cluster:
    dotted = {name.replace("_", "."): value for name, value in more.items()}
    return cluster_of(settings=QUICK, configs={**COMPACTED, **dotted})


def write(cluster: Cluster, *records: tuple[Key, Value], broker: int = 0, **how: int) -> ProduceResult:
    """Write a batch, whose time is the present, and let a moment pass."""
    results: list[ProduceResult] = []
    now_ms = cluster.kernel.now_us // 1000
    batch = encode_batch([(key, value, now_ms) for key, value in records], **how)
    cluster.records.produce(broker, TOPIC, 0, batch, Acks(1, 1000, results.append))
    go(cluster, 0.1)
    return results[0]


def read(cluster: Cluster, broker: int = 0, start: int = 0) -> Iterator[tuple[int, Record]]:
    """Yield the records of a broker's replica with their offsets."""
    data = cluster.records.read(broker, TOPIC, 0, start, MANY_BYTES, Reader(follower_too=True)).records
    while data:
        head = header(data)
        for record in decode_batch(data[: head.size_bytes]):
            yield head.base_offset + record.offset_delta, record
        data = data[head.size_bytes :]


def values(cluster: Cluster, broker: int = 0) -> list[tuple[int, Key | None, Value]]:
    return [(offset, record.key, record.value) for offset, record in read(cluster, broker)]


def test_tombstones_go_after_their_time() -> None:
    cluster = compacted(delete_retention_ms="60000")
    write(cluster, (b"a", b"1"), (b"b", b"1"))
    write(cluster, (b"a", None))
    write(cluster, (b"c", b"1"))
    go(cluster, 2)
    assert values(cluster) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    go(cluster, 57)
    write(cluster, (b"d", b"1"))
    go(cluster, 1.5)
    assert (2, b"a", None) in values(cluster)
    go(cluster, 3)
    write(cluster, (b"e", b"1"))
    go(cluster, 1.5)
    assert [offset for offset, _ in read(cluster)] == [1, 3, 4, 5]
    assert values(cluster) == values(cluster, 1) == values(cluster, 2)


def test_without_a_cleaner_everything_stays() -> None:
    cluster = cluster_of(settings={**QUICK, "log.cleaner.enable": "false"}, configs=COMPACTED)
    for _ in range(3):
        write(cluster, (b"a", b"1"))
    go(cluster, 60)
    assert [offset for offset, _ in read(cluster)] == [0, 1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_the_last_value_of_each_key_is_there_whatever_was_written(seed: int) -> None:
    cluster, source = compacted(delete_retention_ms="5000"), random.Random(seed)
    last: dict[Key, tuple[int, Value]] = {}
    end = 0
    for _ in range(60):
        records = [
            (b"k%d" % source.randrange(12), source.choice((b"v", b"w" * 300, None)))
            for _ in range(source.randint(1, 20))
        ]
        now_ms = cluster.kernel.now_us // 1000
        batch = recompressed(encode_batch([(*one, now_ms) for one in records]), source.randrange(5))
        leader = cluster.metadata.image.topics[TOPIC].partitions[0].leader
        results: list[ProduceResult] = []
        cluster.records.produce(leader, TOPIC, 0, batch, Acks(-1, 1000, results.append))
        go(cluster, 0.3)
        assert [result.base_offset for result in results] == [end]
        for delta, (key, value) in enumerate(records):
            last[key] = end + delta, value
        end += len(records)
        if source.random() < 0.05:
            cluster.faults.stop(leader)
            go(cluster, 1)
            cluster.faults.start(leader)
            go(cluster, 8)
    go(cluster, 3)
    for broker in range(3):
        there = values(cluster, broker)
        offsets = [offset for offset, _, _ in there]
        assert offsets == sorted(set(offsets)) and len(offsets) < end / 2
        latest = {key: (offset, value) for offset, key, value in there}
        assert {key: one for key, one in latest.items() if one[1] is not None} == {
            key: one for key, one in last.items() if one[1] is not None
        }
        assert replica(cluster, broker).high_watermark == end
        for start in range(end):
            follows = next((at for at in offsets if at >= start), None)
            found = (at for at, _ in read(cluster, broker, start) if at >= start)
            assert next(found, None) == follows
    held = sum(
        stream.held_bytes
        for stream in {
            id(span.stream): span.stream for b in range(3) for span in replica(cluster, b).log.spans
        }.values()
    )
    assert held <= cluster.retention.client_bytes


def test_a_replica_that_was_away_has_what_it_had_until_it_follows_again() -> None:
    cluster = compacted(unclean_leader_election_enable="true")
    write(cluster, (b"a", b"1"))
    write(cluster, (b"b", b"1"))
    cluster.faults.crash(2)
    go(cluster, 12)
    write(cluster, (b"a", b"2"))
    write(cluster, (b"c", b"1"))
    go(cluster, 2)
    assert [offset for offset, _ in read(cluster)] == [1, 2, 3]
    assert replica(cluster, 2).log.missing_records(0, 2) == 0
    cluster.faults.crash(0)
    cluster.faults.crash(1)
    cluster.faults.start(2)
    go(cluster, 20)
    assert [offset for offset, _ in read(cluster, 2)] == [0, 1], "what replaced a is lost, but not a"
    cluster.faults.start(0)
    go(cluster, 20)
    assert values(cluster, 0) == values(cluster, 2)


def test_a_replica_that_comes_back_has_what_its_leader_has() -> None:
    cluster = compacted()
    write(cluster, (b"a", b"1"))
    cluster.faults.crash(2)
    go(cluster, 12)
    write(cluster, (b"a", b"2"))
    write(cluster, (b"b", b"1"))
    go(cluster, 2)
    cluster.faults.start(2)
    go(cluster, 20)
    write(cluster, (b"b", b"2"))
    go(cluster, 2)
    assert values(cluster, 2) == values(cluster, 0) == [(1, b"a", b"2"), (2, b"b", b"1"), (3, b"b", b"2")]


def test_a_replica_that_went_its_own_way_keeps_what_it_wrote() -> None:
    cluster = compacted(unclean_leader_election_enable="true", segment_ms="100000000")
    write(cluster, (b"k", b"1"), (b"b", b"1"))
    cluster.faults.crash(1)
    cluster.faults.crash(2)
    go(cluster, 12)
    write(cluster, *((b"%d" % number, b"1") for number in range(10)))
    cluster.faults.crash(0)
    go(cluster, 10)
    cluster.faults.start(1)
    go(cluster, 12)
    write(cluster, (b"k", b"2"), (b"c", b"1"), broker=1)
    cluster.cleaner.clean_now(cluster.brokers[1], replica(cluster, 1))
    assert [offset for offset, _ in read(cluster, 1)] == [1, 2, 3]
    cluster.faults.crash(1)
    cluster.faults.start(0)
    go(cluster, 12)
    assert len(values(cluster, 0)) == 12 and values(cluster, 0)[0] == (0, b"k", b"1")


def test_a_slow_copy_of_a_cleaned_log_loses_nothing() -> None:
    cluster = compacted(
        unclean_leader_election_enable="true", follower_replication_throttled_replicas="0:2", segment_ms="10"
    )
    rate = [Alteration("follower.replication.throttled.rate", Operation.SET, "3000")]
    assert int(cluster.admin.alter_broker("2", rate, False, False).error_code) == 0
    for number in range(4):
        write(cluster, (b"k%d" % number, b"1"))
    cluster.faults.crash(2)
    go(cluster, 12)
    for number in range(4):
        write(cluster, (b"big%d" % number, bytes(1_000)))
    for number in range(4):
        write(cluster, (b"k%d" % number, b"2"))
    write(cluster, (b"end", b"1"))
    go(cluster, 3)
    assert min(offset for offset, _ in read(cluster)) == 4
    cluster.faults.start(2)
    own = replica(cluster, 2).log
    for _ in range(2_000):
        if own.end > 4:
            break
        go(cluster, 0.01)
    assert own.end == 5 and own.missing_records(0, own.end) == 0
    cluster.faults.crash(0)
    cluster.faults.crash(1)
    go(cluster, 15)
    assert [offset for offset, _ in read(cluster, 2)] == [0, 1, 2, 3, 4]
    assert write(cluster, (b"new", b"1"), broker=2).base_offset == 5
    cluster.faults.start(0)
    go(cluster, 15)
    assert values(cluster, 0) == values(cluster, 2) and own.end == 6


def test_a_leader_that_has_not_heard_of_the_next_goes_on_in_its_own_log() -> None:
    cluster = compacted(segment_ms="100000000")
    write(cluster, (b"a", b"1"))
    cluster.faults.hang(0)
    go(cluster, 12)
    write(cluster, (b"a", b"2"), broker=1)
    cluster.cleaner.clean_now(cluster.brokers[1], replica(cluster, 1))
    assert values(cluster, 1) == [(1, b"a", b"2")]
    cluster.faults.start(0)
    stale, results = replica(cluster, 0), list[ProduceResult]()
    assert stale.leading
    batch = encode_batch([(b"b", b"1", START_MS)])
    cluster.records.produce(0, TOPIC, 0, batch, Acks(1, 1000, results.append))
    assert [result.base_offset for result in results] == [1]
    assert [base for base, _, _ in stale.log.batches(0, 9)] == [0, 1]
    go(cluster, 12)
    assert values(cluster, 0) == values(cluster, 1)


def test_values_that_are_missing_may_stay_for_ever() -> None:
    cluster = compacted(delete_retention_ms=str(2**63 - 1))
    for value in (b"1", None, b"2"):
        write(cluster, (b"a" if value != b"2" else b"b", value))
    go(cluster, 2)
    assert [(offset, record.timestamp_ms - START_MS < 1_000) for offset, record in read(cluster)] == [
        (1, True),
        (2, True),
    ]


def test_a_pass_ends_with_its_broker_even_without_a_cleaner() -> None:
    cluster = cluster_of(
        brokers=1, replication=1, settings={**QUICK, "log.cleaner.enable": "false"}, configs=COMPACTED
    )
    write(cluster, *((b"a", b"1") for _ in range(1_500)))
    own = replica(cluster, 0)
    for _ in range(2):
        cluster.cleaner.clean_now(cluster.brokers[0], own)
        assert own.log.dirty_from == 0, "it takes steps"
        cluster.faults.crash(0)
        cluster.faults.start(0)
        go(cluster, 20)
    cluster.cleaner.clean_now(cluster.brokers[0], own)
    go(cluster, 1)
    assert own.log.dirty_from == own.log.end == 1_500


def test_many_tiny_segments_are_few() -> None:
    log, segments = Log(), Segments(0, 0)
    stream = log.begin_epoch(0)
    for _ in range(3):
        stream.append_run(10 * SEGMENTS_MAX, stream.end * 2_000, 2_000, 100, 0)
        log.end = stream.end
        segments.read(log, 1 << 30, 1_000)
    closed = segments.closed
    assert SEGMENTS_MAX / 4 < len(closed) <= SEGMENTS_MAX + 1 and closed[0].base == 0
    assert all(one.end == other.base for one, other in pairwise([*closed, segments.active]))
    assert sum(one.size_bytes for one in [*closed, segments.active]) == 100 * log.end
    assert max(one.latest_us for one in [*closed, segments.active]) == (log.end - 1) * 2_000


def test_a_pass_cuts_long_runs_into_pieces() -> None:
    world = World(
        brokers=racked_brokers(1, 1),
        topics=(TopicSpec(TOPIC, 1, 1, {"cleanup.policy": "compact"}),),
        producers=(ProducerSpec("p", TOPIC, 100.0, keys=50),),
        settings={"offsets.topic.num.partitions": "1"},
        warm_ms=200_000,
    )
    cluster = build(world, 3, START_MS)
    own = replica(cluster, 0)
    assert own.log.end > 19_000
    cluster.cleaner.clean_now(cluster.brokers[0], own)
    go(cluster, 0.3)
    assert own.log.dirty_from == 0, "40 steps of 10 ms"
    go(cluster, 0.2)
    assert own.log.dirty_from > 19_000
    assert len([offset for offset, _ in read(cluster) if offset < own.log.dirty_from]) == 50


def test_a_producer_goes_on_after_its_batches_were_removed_and_its_leader_changed() -> None:
    cluster = compacted()
    for sequence in range(4):
        write(cluster, (b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=sequence)
    write(cluster, (b"a", b"2"))
    write(cluster, (b"b", b"2"))
    go(cluster, 2)
    assert [offset for offset, _ in read(cluster)] == [4, 5]
    cluster.faults.crash(0)
    go(cluster, 12)
    again = {"producer_id": 7, "producer_epoch": 0, "broker": 1}
    assert write(cluster, (b"a", b"1"), base_sequence=3, **again).base_offset == 3, "a duplicate"
    assert write(cluster, (b"a", b"1"), base_sequence=7, **again).error_code == 45
    assert write(cluster, (b"a", b"3"), base_sequence=4, **again).base_offset == 6


def test_a_large_batch_is_cleaned_in_steps_while_others_are_written() -> None:
    cluster = compacted()
    write(cluster, *((b"%d" % (number % 700), b"1") for number in range(5_000)))
    write(cluster, (b"0", b"2"))
    go(cluster, 0.95)
    for _ in range(20):
        write(cluster, (b"a", b"3"))
    go(cluster, 2)
    offsets = [offset for offset, _ in read(cluster)]
    assert offsets[:699] == [at for at in range(4_300, 5_000) if at % 700]
    assert offsets[699:] == [5_000, 5_019, 5_020]


def test_times_are_found_in_what_is_left() -> None:
    cluster = compacted()
    for number in range(6):
        write(cluster, (b"a", b"1"), (b"b%d" % number, b"1"))
    go(cluster, 2)
    times = {offset: record.timestamp_ms for offset, record in read(cluster)}
    assert list(times) == [1, 3, 5, 7, 9, 10, 11] or list(times) == [1, 3, 5, 7, 8, 9, 10, 11]
    for time_ms in range(START_MS, START_MS + 700, 20):
        found = cluster.records.list_offset(0, TOPIC, 0, time_ms)
        expected = next((offset for offset, at in times.items() if at >= time_ms), -1)
        assert found.offset == expected
    assert cluster.records.list_offset(0, TOPIC, 0, -2).offset == 0
    assert cluster.records.list_offset(0, TOPIC, 0, -1).offset == 12


def test_simulated_records_are_compacted_and_a_group_counts_what_it_reads() -> None:
    world = World(
        brokers=racked_brokers(3, 1),
        topics=(TopicSpec(TOPIC, 1, 3, {**COMPACTED, "segment.ms": "20000"}),),
        producers=(ProducerSpec("p", TOPIC, 100.0, keys=50),),
        groups=(GroupSpec("g", (TOPIC,), 0, stopped_ms=60_000),),
        settings={**QUICK, "offsets.topic.num.partitions": "1"},
        warm_ms=120_000,
    )
    cluster = build(world, 3, START_MS)
    Checker(cluster, every_event=True)
    before = {record.key: offset for offset, record in read(cluster)}
    go(cluster, 1.5)
    log = replica(cluster, 0).log
    there = list(read(cluster))
    clean = [(offset, record) for offset, record in there if offset < log.dirty_from]
    assert len(before) == 50 and log.dirty_from == 6 * 2_001, "six segments of 20 s"
    assert len(clean) <= 50 < len(there)
    assert log.missing_records(0, log.dirty_from) == log.dirty_from - len(clean)
    for offset, record in clean:
        later = [at for at, other in there if other.key == record.key and offset < at < log.dirty_from]
        assert not later
    assert all(b"@%d " % offset in (record.value or b"") for offset, record in there), "bytes do not change"
    took, records, at = 0, 0, 0
    while at < log.dirty_from:
        result = cluster.records.take(0, TOPIC, 0, at, 777)
        took, records, at = took + 1, records + result.records, result.next_offset
    assert records == len([offset for offset, _ in there if offset < at]) and took > 10


def test_a_producer_without_keys_cannot_write_to_a_compacted_topic() -> None:
    world = World(
        brokers=racked_brokers(3, 1),
        topics=(TopicSpec(TOPIC, 1, 3, COMPACTED),),
        producers=(ProducerSpec("p", TOPIC, 100.0),),
        settings={"offsets.topic.num.partitions": "1"},
        warm_ms=0,
    )
    cluster = build(world, 3, START_MS)
    go(cluster, 5)
    assert replica(cluster, 0).log.end == 0


def test_a_log_whose_first_records_were_deleted_is_cleaned() -> None:
    cluster = compacted(cleanup_policy="compact,delete")
    for number in range(4):
        write(cluster, (b"a", b"%d" % number), (b"b", b"%d" % number))
    cluster.retention.move_start(replica(cluster, 0), 3)
    write(cluster, (b"c", b"1"))
    go(cluster, 3)
    for broker in range(3):
        left = [(offset, record.key, record.value) for offset, record in read(cluster, broker, 3)]
        assert left == [(6, b"a", b"3"), (7, b"b", b"3"), (8, b"c", b"1")]
