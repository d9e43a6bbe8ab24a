"""The kernel's figures, compared with what clusters and producers count themselves. They differ by at most
one observation interval."""

import threading
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.observe.observer import Observer
from kview.pipeline.reading import next_rollups
from kview.recording.writer import RecordingWriter
from tests.pipeline.figures import Cell, Figures, of_table
from tests.real_kafka.cluster import RealKafka
from tests.served import ServedFactory
from tests.waiting import paced, wait_until

SECONDS = 8
INTERVAL_MS = 1000
MARGIN_MS = 1500
COUNT_EVERY_S = 0.1
VALUE = b"x" * 100
RECORDS_BEFORE = 3000
PERIODS_OF_PRODUCING_S = (0.002, 0.02)
"""Pauses that alternate between busy and idle, so that no two seconds are alike."""


class Counted:
    """Numbers of records with the moments at which the cluster or the producer counted them."""

    def __init__(self) -> None:
        self._moments: list[tuple[int, int]] = []

    def add(self, at_ms: int, records: int) -> None:
        self._moments.append((at_ms, records))

    def covers(self, ms: int) -> bool:
        """Return whether there is a count from that moment or later."""
        return bool(self._moments) and self._moments[-1][0] >= ms

    def at_least(self, ms: int) -> int:
        """Return the last count before that moment, however old it is."""
        return max(records for at_ms, records in self._moments if at_ms <= ms)

    def at_most(self, ms: int) -> int:
        """Return the first count from that moment on."""
        return min(records for at_ms, records in self._moments if at_ms >= ms)


def recorded(addresses: list[Address], folder: Path) -> list[Snapshot]:
    """Observe once a second for a while, and return the snapshots, which are also in a closed recording."""
    writer, snapshots = RecordingWriter(folder), []
    observer = Observer(addresses)
    observer.connect()
    try:
        while (observer.observe().partitions.log_end == UNKNOWN).any():
            pass  # on a busy machine, wait until the first observation reads everything
        for _ in zip(range(SECONDS), paced(INTERVAL_MS / 1000), strict=False):
            snapshots.append(observer.observe())
            writer.append(snapshots[-1])
    finally:
        observer.close()
    writer.close()
    return snapshots


def records_of(snapshot: Snapshot, topic: str) -> int:
    return int(snapshot.partitions.log_end[snapshot.partitions.topic == topic].sum())


def interval_around(snapshots: list[Snapshot], topic: str, ms: int) -> tuple[int, int]:
    """Return the interval between the last observation before a moment and the first one after it that have
    read the entire topic.

    It extends to at least one observation interval on both sides, because observations are late on a busy
    machine.
    """
    whole = []
    for snapshot in snapshots:
        seen, mine = snapshot.observation, snapshot.partitions.topic == topic
        if (snapshot.partitions.log_end_ms[mine] >= seen.began_ms).all():
            whole.append(seen)
    before = max((seen.began_ms for seen in whole if seen.ended_ms <= ms), default=ms)
    after = min((seen.ended_ms for seen in whole if seen.began_ms >= ms), default=ms)
    return min(before, ms - INTERVAL_MS), max(after, ms + INTERVAL_MS)


def assert_within_an_interval(
    figures: Figures, topic: str, snapshots: list[Snapshot], counted: Counted
) -> None:
    """Check the sum of the roll-ups at the end of each whole second. It must equal the count at some moment
    of the interval around that end."""
    began = snapshots[0].partitions
    first = int(began.log_end_ms[began.topic == topic].min()) // 1000
    last = snapshots[-1].observation.ended_ms // 1000
    reached = records_of(snapshots[0], topic)
    # The last observation may contain readings that are half a second old.
    for second in range(first, last - 1):
        reached += figures.get(Cell(second, "topic", topic), {}).get("records_in", 0)
        since_ms, until_ms = interval_around(snapshots, topic, (second + 1) * 1000)
        assert counted.at_least(since_ms) <= reached <= counted.at_most(until_ms), second
    assert reached > records_of(snapshots[0], topic) + 100


def while_counting(
    count: Callable[[], None], counted: Callable[[], Iterable[Counted]], work: Callable[[], list[Snapshot]]
) -> list[Snapshot]:
    """Count repeatedly, from more than an interval before the work until more than an interval after it."""
    ending = threading.Event()

    def run() -> None:
        for _ in paced(COUNT_EVERY_S):
            count()
            if ending.is_set():
                return

    def covered(ms: int) -> bool:
        return all(one.covers(ms) for one in counted())

    count()
    began_ms = time.time_ns() // 1_000_000
    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_until(lambda: covered(began_ms + MARGIN_MS), "counts before the first observation")
        snapshots = work()
        ended_ms = snapshots[-1].observation.ended_ms
        wait_until(lambda: covered(ended_ms + MARGIN_MS), "counts after the last observation")
    finally:
        ending.set()
        thread.join()
    return snapshots


@pytest.mark.slow
def test_the_simulated_cluster_counts_the_same(
    simulated_cluster_factory: ServedFactory, tmp_path: Path
) -> None:
    cluster = simulated_cluster_factory()
    counted: dict[str, Counted] = {}

    def count() -> None:
        counters = cluster.counters()
        for topic, row in counters["topics"].items():
            counted.setdefault(topic, Counted()).add(counters["time_ms"], row["log_end"])

    snapshots = while_counting(count, counted.values, lambda: recorded(cluster.addresses, tmp_path / "r"))
    figures = of_table(next_rollups(str(tmp_path / "r"), -1))
    for topic in ("invoice", "payment", "audit-log"):
        assert_within_an_interval(figures, topic, snapshots, counted[topic])


@pytest.mark.slow  # the simulated cluster covers this in every run
def test_a_producer_of_the_real_cluster_was_acknowledged_the_same(
    real_kafka: RealKafka, tmp_path: Path
) -> None:
    topic = f"invoice-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(topic, [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    producer = Producer({"bootstrap.servers": real_kafka.bootstrap_servers, "acks": "all", "linger.ms": 5})
    counted, acknowledged = Counted(), 0

    def heard(error: object, message: object) -> None:
        nonlocal acknowledged
        assert error is None
        acknowledged += 1

    def count() -> None:
        """Produce for three tenths of a second."""
        for pause_s in PERIODS_OF_PRODUCING_S:
            for _ in zip(range(int(0.15 / pause_s)), paced(pause_s), strict=False):
                producer.produce(topic, VALUE, on_delivery=heard)
                producer.poll(0)
                counted.add(time.time_ns() // 1_000_000, acknowledged)

    # The observer knows the size of this topic from the start.
    for number in range(RECORDS_BEFORE):
        producer.produce(topic, VALUE, partition=number % 3, on_delivery=heard)
    assert producer.flush(20) == 0
    addresses = [real_kafka.address(broker) for broker in real_kafka.broker_ids]
    snapshots = while_counting(count, lambda: [counted], lambda: recorded(addresses, tmp_path / "r"))
    assert producer.flush(20) == 0
    figures = of_table(next_rollups(str(tmp_path / "r"), -1))
    assert_within_an_interval(figures, topic, snapshots, counted)
    cells = [cell for (_, kind, name), cell in figures.items() if (kind, name) == ("topic", topic)]
    records, centibytes = (sum(cell.get(c, 0) for cell in cells) for c in ("records_in", "centibytes_in"))
    # The limits allow for a record's own overhead and its share of the overhead of its batch.
    assert len(VALUE) < centibytes / 100 / records < len(VALUE) + 80
