"""A reassignment on a real cluster, slowed by a throttle: kview calls it what it is from begin to end."""

import uuid

import numpy as np
from confluent_kafka import Producer

from kview.derive.brokers.throttles import throttle_of, throttles
from kview.derive.partitions.reassignments import Move, move_of
from kview.derive.view import PartitionStatus, View
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from tests.observe.observing import Watched, observing
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.moves import move, throttled

SETTINGS = ObserveSettings(interval_s=0.2, configs_s=1.0)
BYTES, BYTES_PER_S = 2_000_000, 50_000


def status(view: View, topic: str) -> str:
    """The status of the topic's only partition."""
    row = int(np.flatnonzero(view.snapshot.partitions.topic == topic)[0])
    return str(view.partitions.status[row])


def left(view: View, topic: str) -> tuple[int, int, int]:
    """The records and the time in ms that are left of the move, and the throttle in bytes per second."""
    row = int(np.flatnonzero(view.snapshot.partitions.topic == topic)[0])
    limit = throttle_of(view.snapshot, view.partitions, row)
    return int(view.moves.records_left[row]), int(view.moves.time_left_ms[row]), limit


def in_sync(view: View, topic: str) -> tuple[int, int]:
    """How many replicas of the partition are in sync, and how many there are."""
    table = view.snapshot.partitions
    row = int(np.flatnonzero(table.topic == topic)[0])
    return int((table.isr[row] >= 0).sum()), int((table.replicas[row] >= 0).sum())


def test_replicas_that_are_added_do_not_make_it_under_replicated(real_kafka: RealKafka) -> None:
    topic = f"moved-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(topic, [[0]], {"min.insync.replicas": "1"})
    producer = Producer({"bootstrap.servers": real_kafka.bootstrap_servers, "linger.ms": 0})
    for _ in range(BYTES // 50_000):
        producer.produce(topic, b"x" * 50_000, partition=0)
    assert producer.flush(30) == 0
    with observing([real_kafka.address(broker) for broker in real_kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)
        watched.until(lambda view: topic in view.snapshot.partitions.topic, "the topic")
        with throttled(real_kafka, topic, BYTES_PER_S):
            move(real_kafka, topic, [0, 1, 2])
            view = watched.until(lambda view: in_sync(view, topic) == (1, 3), "the move is seen")
            for _ in range(10):
                view = watched.look()
                assert (in_sync(view, topic), status(view, topic)) == ((1, 3), PartitionStatus.REASSIGNING)
            at = view.topics.topic.tolist().index(topic)
            assert int(view.topics.under_replicated[at]) == 0
            row = view.snapshot.partitions.topic.tolist().index(topic)
            assert move_of(view.snapshot.partitions, view.partitions, row) == Move((0,), (0, 1, 2))
            view = watched.until(lambda view: left(view, topic)[2] == BYTES_PER_S, "the throttle is read")
            records = left(view, topic)[0]
            assert 0 < records <= 2 * BYTES // 50_000
            view = watched.until(
                lambda view: left(view, topic)[0] < records and left(view, topic)[1] > 0,
                "the time that is left is known",
            )
            assert 1_000 < left(view, topic)[1] < 10 * 2 * BYTES // BYTES_PER_S * 1_000
            assert int(view.topics.replication[at]) == 3, "the target's"
        watched.until(lambda view: in_sync(view, topic) == (3, 3), "the end of the move")
        view = watched.until(
            lambda view: status(view, topic) == PartitionStatus.OK, "no reassignment is listed"
        )
        assert left(view, topic)[:2] == (UNKNOWN, UNKNOWN), "nothing is moved"
        watched.until(
            lambda view: {"", topic}.isdisjoint(each.topic for each in throttles(view.snapshot)),
            "that the throttle was removed",
        )
    said = {status(view, topic) for view in watched.views if topic in view.snapshot.partitions.topic}
    assert said == {PartitionStatus.OK, PartitionStatus.REASSIGNING}
