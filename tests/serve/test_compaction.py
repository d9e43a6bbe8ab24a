"""Compacted topics: what a consumer reads after the log cleaner has run, from the simulated cluster and, as
slow tests, from a real one.

Read from Apache Kafka 4.3.1.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import confluent_kafka
import pytest
from kafka.protocol.consumer import FetchRequest

from kview.simulate.records import CONTROL, DELETE_HORIZON, decode_batch, encode_batch, header
from kview.wire.compression import GZIP, LZ4, SNAPPY, ZSTD
from tests.real_kafka.asking import Address, ask, create_topic
from tests.real_kafka.cluster import RealKafka
from tests.serve import questions as q
from tests.served import QUICK_TIMES, Served
from tests.simulate.client_batches import recompressed
from tests.waiting import pause, wait_until

CLEANED_S = 20.0
QUICK_CLEANER = {"log.cleaner.backoff.ms": "200"}
LATER = 1_100_000
"""A time after that of the markers, which are written now."""
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
"""A segment ends with each batch whose time is later."""


class Left(NamedTuple):
    """A batch: its first and last offset, its kind, and its records as (offset, key, value, ms since the test
    began)."""

    base: int
    last: int
    attributes: int
    records: tuple[tuple[int, bytes | None, bytes | None, int], ...]


def of_records(left: list[Left]) -> list[list[int]]:
    """Return the offsets of the records in each batch."""
    return [[record[0] for record in batch.records] for batch in left]


class Topic:
    """A compacted topic of one partition, at its leader. Times of records count from `start_ms`."""

    def __init__(self, bootstrap: str, address: Address, name: str, suffix: str = "", **configs: str) -> None:
        self.bootstrap = bootstrap
        self.address = address
        self.name = name + suffix
        self.start_ms = round(time.time() * 1000) - 1_000_000
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        assert not create_topic(address, self.name, [[0]], {**COMPACTED, **dotted})
        wait_until(lambda: not q.metadata(address, self.name), "the topic is known")
        wait_until(lambda: not self.fetch().error_code, "the leader leads")

    def write(self, after_ms: int, *records: tuple[bytes, bytes | None], codec: int = 0) -> None:
        """Write a batch of records."""
        batch = encode_batch([(key, value, self.start_ms + after_ms) for key, value in records])
        assert q.produce(self.address, self.name, recompressed(batch, codec) if codec else batch) == 0

    def transaction(self, commits: bool, *records: tuple[bytes, bytes], producer: str = "compacted") -> None:
        """Write records, in a batch each, in a transaction."""
        client = confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": f"{self.name}-{producer}"}
        )
        client.init_transactions(q.ANSWER_S)
        client.begin_transaction()
        for key, value in records:
            client.produce(self.name, value, key, timestamp=self.start_ms + 500)
            client.flush()
        if commits:
            client.commit_transaction(q.ANSWER_S)
        else:
            client.abort_transaction(q.ANSWER_S)
        wait_until(self._is_stable, "the marker is written")

    def _is_stable(self) -> bool:
        answer = self.fetch()
        return bool(answer.last_stable_offset == answer.high_watermark)

    def fetch(self, offset: int = 0, isolation: int = 0) -> Any:
        """Return what Fetch says about the partition."""
        per_topic = FetchRequest.FetchTopic
        asked = per_topic.FetchPartition(
            version=11,
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=1 << 24,
        )
        request = FetchRequest(
            version=11,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 24,
            isolation_level=isolation,
            session_id=0,
            session_epoch=-1,
            forgotten_topics_data=[],
            rack_id="",
            topics=[per_topic(version=11, topic=self.name, partitions=[asked])],
        )
        return ask(self.address, request, q.ANSWER_S).responses[0].partitions[0]

    def left(self, offset: int = 0) -> list[Left]:
        """Return the batches from an offset on. A broker of Kafka answers with those of one segment."""
        batches: list[Left] = []
        while True:
            answer = self.fetch(batches[-1].last + 1 if batches else offset)
            if not answer.records:
                return batches
            batches += self._batches(bytes(answer.records))

    def _batches(self, data: bytes) -> Iterator[Left]:
        while data:
            head = header(data)
            batch, data = data[: head.size_bytes], data[head.size_bytes :]
            yield Left(
                head.base_offset,
                head.base_offset + head.last_offset_delta,
                head.attributes,
                tuple(
                    (
                        head.base_offset + one.offset_delta,
                        one.key,
                        one.value,
                        one.timestamp_ms - self.start_ms,
                    )
                    for one in decode_batch(batch)
                )
                if not head.attributes & CONTROL
                else (),
            )

    def settled(self, *records: list[int]) -> list[Left]:
        """Return what is left once the batches have the records with these offsets."""
        left: list[Left] = []

        def is_settled() -> bool:
            left[:] = self.left()
            return of_records(left) == list(records)

        try:
            wait_until(is_settled, "cleaned", CLEANED_S)
        except AssertionError:
            assert of_records(left) == list(records)
        return left


Make = Callable[..., Topic]


def keys(make: Make) -> list[Left]:
    topic = make("keys")
    topic.write(0, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"))
    topic.write(10, (b"a", b"5"))
    topic.write(20, (b"b", b"6"), (b"d", b"7"), codec=GZIP)
    topic.write(30, (b"d", b"8"), (b"e", b"9"), codec=LZ4)
    topic.write(40, (b"e", b"10"), (b"f", b"11"), codec=SNAPPY)
    topic.write(50, (b"f", b"12"), (b"g", b"13"), codec=ZSTD)
    topic.write(60, (b"a", b"14"), (b"g", b"15"))
    left = topic.settled([3], [4], [5], [7], [9], [11, 12], [13, 14])
    assert [batch.base for batch in left] == [0, 4, 5, 7, 9, 11, 13], "batches keep their first offsets, …"
    assert [batch.last for batch in left] == [3, 4, 6, 8, 10, 12, 14], "… and their last ones"
    topic.write(70, (b"h", b"16"))
    left += topic.settled([3], [5], [7], [9], [11], [13, 14], [15])
    assert [topic.left(at)[0].base for at in (0, 1, 4, 5, 6, 15)] == [0, 0, 5, 5, 5, 15], (
        "a fetch from a gap begins with the batch after it"
    )
    answer = topic.fetch()
    assert (answer.log_start_offset, answer.high_watermark) == (0, 16)
    return left


def tombstones(make: Make) -> list[Left]:
    topic = make("tombstones", delete_retention_ms="1000")
    topic.write(0, (b"a", b"1"), (b"b", b"2"))
    topic.write(10, (b"a", None), (b"c", b"3"))
    topic.write(20, (b"d", b"4"))
    left = topic.settled([1], [2, 3], [4])
    assert [bool(batch.attributes & DELETE_HORIZON) for batch in left] == [False, True, False]
    pause(1.1)
    assert topic.left() == left, "there is nothing to clean"
    topic.write(30, (b"e", b"5"))
    return left + topic.settled([1], [3], [4], [5])


def the_last_of_a_round(make: Make) -> list[Left]:
    """The last batch that a cleaning reaches stays, even without records, so that its offsets do."""
    topic = make("last")
    topic.write(0, (b"a", b"1"))
    topic.write(10, (b"b", b"2"))
    topic.write(20, (b"b", None), (b"b", None))
    topic.write(30, (b"b", b"3"))
    left = topic.settled([0], [3], [4])
    topic.write(40, (b"c", b"4"))
    left += topic.settled([0], [4], [5])
    topic.write(50, (b"b", b"5"))
    topic.write(60, (b"d", b"6"))
    return left + topic.settled([0], [5], [6], [7])


def aborted_last(make: Make) -> list[Left]:
    """Of an aborted transaction, the batch with the producer's last sequence number stays without records."""
    topic = make("aborted")
    topic.write(0, (b"a", b"0"))
    topic.transaction(True, (b"a", b"1"), (b"b", b"2"))  # 1, 2 and a marker
    topic.transaction(False, (b"a", b"3"), (b"c", b"4"))  # 4, 5 and a marker
    topic.write(LATER, (b"b", b"5"))
    topic.write(LATER + 10, (b"d", b"6"))
    left = topic.settled([1], [], [], [], [7], [8])
    assert [batch.base for batch in left] == [1, 3, 5, 6, 7, 8]
    (aborted,) = topic.fetch(4, isolation=1).aborted_transactions
    assert aborted.first_offset == 4
    topic.transaction(False, (b"a", b"7"))  # 9 and a marker
    topic.write(LATER + 20, (b"e", b"8"))
    topic.write(LATER + 30, (b"e", b"9"))
    return left + topic.settled([1], [], [], [7], [8], [], [], [11], [12])


def empty_transaction(make: Make) -> list[Left]:
    """The marker of a transaction of which nothing is left goes after delete.retention.ms."""
    topic = make("marker", delete_retention_ms="1000")
    topic.transaction(True, (b"a", b"1"))  # 0 and a marker
    topic.transaction(True, (b"b", b"2"))  # 2 and a marker
    topic.write(LATER, (b"a", b"3"))
    topic.write(LATER + 10, (b"c", b"4"))
    left = topic.settled([], [2], [], [4], [5])
    topic.write(LATER + 20, (b"d", b"5"))
    wait_until(lambda: topic.left()[0].attributes & DELETE_HORIZON, "the marker may go later", CLEANED_S)
    left += topic.settled([], [2], [], [4], [5], [6])
    pause(1.1)
    topic.write(LATER + 30, (b"e", b"6"))
    return left + topic.settled([2], [], [4], [5], [6], [7])


def too_young(make: Make) -> list[Left]:
    topic = make("young", min_compaction_lag_ms="3600000")
    earlier = -6_000_000
    topic.write(earlier, (b"a", b"1"))
    topic.write(earlier + 10, (b"a", b"2"))
    topic.write(0, (b"a", b"3"))
    topic.write(10, (b"a", b"4"))
    topic.write(20, (b"b", b"5"))
    return topic.settled([1], [2], [3], [4])


def too_old(make: Make) -> list[Left]:
    """max.compaction.lag.ms ends segments, and has them cleaned, however little of the log is dirty."""
    topic = make("old", min_cleanable_dirty_ratio="1", segment_ms="604800000", max_compaction_lag_ms="5000")
    topic.write(0, (b"a", b"1"))
    topic.write(10, (b"a", b"2"))
    topic.write(6_000, (b"a", b"3"))
    topic.write(12_000, (b"b", b"4"))
    return topic.settled([2], [3])


def by_size(make: Make) -> list[Left]:
    """A segment of 1 MiB ends before the batch that does not fit."""
    topic = make("size", segment_ms="604800000", segment_bytes="1048576")
    for number in range(9):
        topic.write(number, (b"a", bytes(300_000)))
    return topic.settled([5], [6], [7], [8])


QUICK = [keys, the_last_of_a_round, aborted_last, too_young, too_old, by_size]
SCRIPTS = [*QUICK, tombstones, empty_transaction]


@pytest.fixture(scope="module")
def simulated() -> Iterator[Served]:
    """A simulated cluster whose cleaner does not wait."""
    settings = (*QUICK_TIMES, *(f"{key}={value}" for key, value in QUICK_CLEANER.items()))
    with Served("--no-traffic", "--brokers", "3", "--racks", "1", settings=settings) as served:
        yield served


@pytest.mark.parametrize("script", QUICK)
def test_what_the_cleaner_leaves(simulated: Served, script: Callable[[Make], list[Left]]) -> None:
    script(partial(Topic, simulated.bootstrap, simulated.addresses[0]))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_real_cleaner_leaves_the_same(
    real_kafka: RealKafka, simulated: Served, script: Callable[[Make], list[Left]]
) -> None:
    left = script(partial(Topic, real_kafka.bootstrap_servers, real_kafka.address(0), suffix="-real"))
    here = script(partial(Topic, simulated.bootstrap, simulated.addresses[0], suffix="-too"))
    assert whatever_the_passes(here) == whatever_the_passes(left)


def whatever_the_passes(left: list[Left]) -> list[Left]:
    """Return batches without their delete horizons: how soon one has one depends on the number of passes."""
    return [one._replace(attributes=one.attributes & ~DELETE_HORIZON) for one in left]
