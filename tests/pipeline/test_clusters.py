"""Spark's figures against what clusters and producers say of themselves: never more than one observation
interval apart."""

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.observe.observer import Observer
from kview.pipeline.batch import rollups
from kview.recording.writer import RecordingWriter
from tests.pipeline.figures import Cell, Figures, of_table
from tests.real_kafka.cluster import RealKafka
from tests.served import ServedFactory

SECONDS = 12
INTERVAL_MS = 1000
VALUE = b"x" * 100
RECORDS_BEFORE = 3000
PERIODS_OF_PRODUCING_S = (0.002, 0.02)
"""Busy and idle by turns, so that a second is like no other."""


class Counted:
    """How many records there were at which moments, by somebody who knows; linear between two of them."""

    def __init__(self) -> None:
        self._moments: list[tuple[int, int]] = []

    def add(self, at_ms: int, records: int) -> None:
        self._moments.append((at_ms, records))

    def at(self, ms: int) -> float:
        times, counts = np.array(self._moments).T
        assert times[0] <= ms <= times[-1], "counted for too short a time"
        return float(np.interp(ms, times, counts))


def recorded(addresses: list[Address], folder: Path) -> list[Snapshot]:
    """Observations of every second for a while, as a closed recording."""
    writer, snapshots = RecordingWriter(folder), []
    observer = Observer(addresses)
    observer.connect()
    try:
        while (observer.observe().partitions.log_end == UNKNOWN).any():
            pass  # a busy machine: what is recorded begins with everything read
        for _ in range(SECONDS):
            began = time.monotonic()
            snapshots.append(observer.observe())
            writer.append(snapshots[-1])
            time.sleep(max(0.0, INTERVAL_MS / 1000 - (time.monotonic() - began)))
    finally:
        observer.close()
    writer.close()
    return snapshots


def records_of(snapshot: Snapshot, topic: str) -> int:
    return int(snapshot.partitions.log_end[snapshot.partitions.topic == topic].sum())


def interval_around(snapshots: list[Snapshot], topic: str, ms: int) -> tuple[int, int]:
    """From the last observation before a moment to the first after it that have read all of the topic, and
    not less than an interval to both sides: on a busy machine observations come later."""
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
    """What the roll-ups add up to at the end of each whole second was the count at some moment of the
    interval around it."""
    began = snapshots[0].partitions
    first = int(began.log_end_ms[began.topic == topic].min()) // 1000
    last = snapshots[-1].observation.ended_ms // 1000
    reached = records_of(snapshots[0], topic)
    # What the last observation saw may be half a second old.
    for second in range(first, last - 1):
        reached += figures.get(Cell(second, "topic", topic), {}).get("records_in", 0)
        since_ms, until_ms = interval_around(snapshots, topic, (second + 1) * 1000)
        assert counted.at(since_ms) <= reached <= counted.at(until_ms), second
    assert reached > records_of(snapshots[0], topic) + 100


def while_counting(count: Callable[[], None], work: Callable[[], list[Snapshot]]) -> list[Snapshot]:
    """Counts again and again, from a second and a half before the work until as long after it."""
    ending = threading.Event()

    def run() -> None:
        while not ending.is_set():
            count()
            time.sleep(0.1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        time.sleep(1.5)
        snapshots = work()
        time.sleep(1.5)
    finally:
        ending.set()
        thread.join()
    return snapshots


def test_the_simulated_cluster_counts_the_same(
    spark: SparkSession, simulated_cluster_factory: ServedFactory, tmp_path: Path
) -> None:
    cluster = simulated_cluster_factory()
    counted: dict[str, Counted] = {}

    def count() -> None:
        counters = cluster.counters()
        for topic, row in counters["topics"].items():
            counted.setdefault(topic, Counted()).add(counters["time_ms"], row["log_end"])

    snapshots = while_counting(count, lambda: recorded(cluster.addresses, tmp_path / "r"))
    figures = of_table(rollups(spark, tmp_path / "r").toArrow())
    for topic in ("invoice", "payment", "audit-log"):
        assert_within_an_interval(figures, topic, snapshots, counted[topic])


def test_a_producer_of_the_real_cluster_was_acknowledged_the_same(
    spark: SparkSession, real_kafka: RealKafka, tmp_path: Path
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
        """Produces for a tenth of a second or two."""
        for pause_s in PERIODS_OF_PRODUCING_S:
            end_s = time.monotonic() + 0.15
            while time.monotonic() < end_s:
                producer.produce(topic, VALUE, on_delivery=heard)
                producer.poll(0)
                time.sleep(pause_s)
                counted.add(time.time_ns() // 1_000_000, acknowledged)

    # Something whose size the observer is told at its start.
    for number in range(RECORDS_BEFORE):
        producer.produce(topic, VALUE, partition=number % 3, on_delivery=heard)
    assert producer.flush(20) == 0
    addresses = [real_kafka.address(broker) for broker in real_kafka.broker_ids]
    snapshots = while_counting(count, lambda: recorded(addresses, tmp_path / "r"))
    assert producer.flush(20) == 0
    figures = of_table(rollups(spark, tmp_path / "r").toArrow())
    assert_within_an_interval(figures, topic, snapshots, counted)
    cells = [cell for (_, kind, name), cell in figures.items() if (kind, name) == ("topic", topic)]
    records, centibytes = (sum(cell.get(c, 0) for cell in cells) for c in ("records_in", "centibytes_in"))
    # A record's own overhead, and its share of its batch's.
    assert len(VALUE) < centibytes / 100 / records < len(VALUE) + 80
