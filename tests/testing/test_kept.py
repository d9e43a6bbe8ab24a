"""Clusters that are kept in a folder, from one process to the next."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kview.testing import Cluster, ClusterError
from tests.real_kafka.tools import tool_java
from tests.serve.both import Cluster as Both
from tests.serve.share_client import Member, Shared, numbers
from tests.serve.test_flags import free_ports
from tests.served import Served
from tests.waiting import wait_until

TIMEOUT_S = 20.0


def read(kafka: Cluster, topic: str, count: int, group: str) -> list[bytes]:
    """The first records of a topic's only partition, as a group reads and commits them."""
    group_settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    client = Consumer({**kafka.librdkafka_conf, **group_settings})
    client.subscribe([topic])
    found: list[bytes] = []

    def is_all() -> bool:
        found.extend(one.value() or b"" for one in client.consume(count - len(found), 0.1))
        return len(found) == count

    wait_until(is_all, f"{count} records")
    client.commit(asynchronous=False)
    client.close()
    return found


def write(kafka: Cluster, topic: str, values: list[bytes], **settings: str) -> None:
    client = Producer({**kafka.librdkafka_conf, "enable.idempotence": True, **settings})
    for value in values:
        client.produce(topic, value, key=value[:1])
    assert client.flush(TIMEOUT_S) == 0


def committed(kafka: Cluster, topic: str, group: str) -> int:
    client = Consumer({**kafka.librdkafka_conf, "group.id": group})
    (found,) = client.committed([TopicPartition(topic, 0)], timeout=TIMEOUT_S)
    client.close()
    return int(found.offset)


def test_topics_records_offsets_and_users_are_there_the_next_time(tmp_path: Path) -> None:
    with Cluster(data=tmp_path / "data", security="sasl_plaintext") as kafka:
        topic = kafka.new_topic("orders", settings={"retention.ms": "-1"})
        group = kafka.new_group("others")
        write(kafka, topic, [b"1", b"2", b"3"])
        assert read(kafka, topic, 2, "readers") == [b"1", b"2"]
        with pytest.raises(ClusterError, match=f"another process uses {tmp_path / 'data'}"):
            Cluster(data=tmp_path / "data")
    with Cluster(data=tmp_path / "data", security="sasl_plaintext") as kafka:
        assert kafka.partition(topic).isr and kafka.new_topic("orders") != topic
        assert kafka.new_group("others") != group
        assert committed(kafka, topic, "readers") == 2
        write(kafka, topic, [b"4"])
        assert read(kafka, topic, 2, "readers") == [b"3", b"4"]
        kafka.heal()
        (tmp_path / "data" / "kview.json.new").mkdir()
        with pytest.raises(ClusterError, match="the cluster's last state was not saved"):
            kafka.close()
    with pytest.raises(ClusterError, match="is of a cluster with 3 brokers, not 2: give --brokers 3"):
        Cluster(data=tmp_path / "data", brokers=2)


@pytest.mark.slow
def test_kafkas_own_tool_reads_the_segments(tmp_path: Path, kafka_runtime: tuple[Path, Path]) -> None:
    with Cluster(data=tmp_path, brokers=1) as kafka:
        topic = kafka.new_topic("orders")
        write(kafka, topic, [b"1" * 500, b"2" * 500], **{"compression.type": "lz4"})
        kafka.stop(0)
        kafka.start(0)
        kafka.wait_full_isr()
        client = Producer({**kafka.librdkafka_conf, "transactional.id": "t"})
        client.init_transactions(TIMEOUT_S)
        client.begin_transaction()
        client.produce(topic, b"three")
        assert client.flush(TIMEOUT_S) == 0
        client.abort_transaction(TIMEOUT_S)
    with Cluster(data=tmp_path, brokers=1) as kafka:  # it writes the marker if there is none yet
        kafka.wait(lambda: kafka.counters().counters["topics"][topic]["log_end"] == 4, "the marker")
    segment = tmp_path / f"{topic}-0" / "00000000000000000000.log"
    asked = ("--deep-iteration", "--print-data-log", "--files", str(segment))
    status, dumped, errors = tool_java(*kafka_runtime).run("org.apache.kafka.tools.DumpLogSegments", *asked)
    assert status == 0, errors
    lines = dumped.splitlines()
    heads = [line.split() for line in lines if line.startswith("baseOffset:")]
    batches = [dict(zip(words[::2], words[1::2], strict=False)) for words in heads]
    assert [(one["baseOffset:"], one["isvalid:"]) for one in batches] == [
        ("0", "true"), ("2", "true"), ("3", "true"),
    ]  # fmt: skip
    assert batches[0]["partitionLeaderEpoch:"] == "0"
    assert int(batches[1]["partitionLeaderEpoch:"]) > 0
    assert batches[0]["compresscodec:"] == "lz4" and batches[2]["isControl:"] == "true"
    payloads = [line.rpartition("payload: ")[2] for line in lines if "payload:" in line]
    assert payloads == ["1" * 500, "2" * 500, "three"]
    assert "endTxnMarker: ABORT" in dumped


@pytest.mark.slow
def test_what_was_saved_before_a_kill_is_there_however_it_was_killed(tmp_path: Path) -> None:
    """What is lost is the end of what was written, never something in the middle."""
    written = [b"%d" % number for number in range(20_000)]
    with pytest.raises(ClusterError, match="not saved"), Cluster(data=tmp_path, brokers=1) as kafka:
        kafka.create_topic("orders")
        write(kafka, "orders", written[:1_000])
        size = tmp_path / "orders-0" / "00000000000000000000.log"
        wait_until(lambda: size.exists() and size.stat().st_size > 1_000, "the first save of records")
        read(kafka, "orders", 1_000, "readers")
        client = Producer(kafka.librdkafka_conf)
        for value in written[1_000:]:
            client.produce("orders", value)
            client.poll(0)
        os.kill(kafka.pid, signal.SIGKILL)
    with Cluster(data=tmp_path, brokers=1) as kafka:
        end = kafka.counters().counters["topics"]["orders"]["log_end"]
        assert 1_000 <= end <= 20_000
        assert read(kafka, "orders", end, "others") == written[:end]


@pytest.mark.slow
def test_what_share_groups_have_acknowledged_is_known_the_next_time(tmp_path: Path) -> None:
    port = str(free_ports(2))
    flags = ("--empty", "--brokers", "2", "--racks", "1", "--port", port, "--data", str(tmp_path))
    with Served(*flags) as served:
        cluster = Both(
            served.bootstrap,
            served.addresses.__getitem__,
            lambda name, placed, _: served.create(name, [list(each) for each in placed]),
        )
        shared = Shared(cluster)
        shared.join("a")
        shared.produce(0, 6)
        with Member(shared, "a") as member:
            wait_until(lambda: member.got((0, ())) == [(0, 5, 1)], "the records")
            assert member.acknowledge(0, (0, 5, [1, 1, 1, 2, 1, 2])) == (0, None)
        before = shared.state()
        assert before[1][-3:] == [(3, 3, 0, 1), (4, 4, 2, 1), (5, 5, 0, 1)]
    with Served(*flags) as served:
        shared.coordinator = shared.find(shared.group, 0)
        assert shared.state() == before
        with Member(shared, "a") as member:
            assert numbers(shared.beat("a", 0, [shared.topic]).assignment) == [0, 1, 2], "as before"
            found: list[Any] = []

            def again() -> bool:
                found.extend(member.got((0, ())) or [])
                return found == [(3, 3, 2), (5, 5, 2)]

            wait_until(again, "what was released comes again, for the second time")
