"""Offsets by time are those of single records, also within compressed batches, on both clusters."""

import time

import confluent_kafka
import pytest

from tests.serve import questions as q
from tests.serve.both import Cluster

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
AFTER_MS = (0, 5_000, 3_000, 9_000, 7_000)
"""The times of a batch's records after its first one, not in order, as several threads of a producer make."""

LATEST_RECORD = -3


def one_batch(cluster: Cluster, topic: str, codec: str, begin_ms: int) -> None:
    """Produce a single batch with librdkafka."""
    client = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "compression.type": codec,
            "linger.ms": 60_000,
            "log_level": 2,
        }
    )
    for after_ms in AFTER_MS:
        client.produce(topic, b"value " * 50, partition=0, timestamp=begin_ms + after_ms)
    assert client.flush(30) == 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_time_finds_the_record_within_its_batch(cluster: Cluster, codec: str) -> None:
    topic = f"timed-{codec}"
    cluster.create(topic, [[0, 1]])
    begin_ms = round(time.time() * 1000) - 60_000
    one_batch(cluster, topic, codec, begin_ms)
    one_batch(cluster, topic, codec, begin_ms + 20_000)
    data = q.fetch(cluster.leader, topic, 0)[2]
    assert bool(data[22] & 7) is (codec != "none"), "the records are compressed as the client sent them"
    asked = {0: 0, 1: 1, 4_000: 1, 6_000: 3, 9_000: 3, 9_001: 5, 24_000: 6, 26_000: 8, 29_001: -1}
    found = {ms: q.list_offset(cluster.leader, topic, begin_ms + ms) for ms in asked}
    assert found == {ms: (0, offset) for ms, offset in asked.items()}
    assert q.list_offset(cluster.leader, topic, LATEST_RECORD) == (0, 8)
