"""kview on older releases of Apache Kafka: 3.9 in KRaft mode, 2.8 with a ZooKeeper; well and in a crash."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from tests.cli.commands import run_kview
from tests.conftest import ClusterFactory
from tests.e2e.pseudo_terminal import kview_on_a_terminal
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import KAFKA_2, KAFKA_3, Release
from tests.waiting import wait_until

SESSION_MS = 6_000
"""The session in force. That of the other mode is set to another time, which must not count."""

SESSIONS = ("broker.session.timeout.ms", "zookeeper.session.timeout.ms")
OTHER_SESSION_MS = 15_000
PLACED = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
RECORDS, READ = 60, 45
THIRD = RECORDS // 3
PATIENCE_S = 120.0
"""Old brokers start in 10 s on a machine of their own, and in a minute on one that has much to do."""


@dataclass(frozen=True)
class Old:
    """A cluster of an older release with three brokers, a topic that is in sync, and a group that lags."""

    release: Release
    kafka: RealKafka

    def document(self) -> dict[str, Any]:
        """What `kview connect --once --format json` says."""
        done = run_kview(
            "connect", self.kafka.bootstrap_servers, "--once", "--format", "json", timeout_s=PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        (line,) = done.stdout.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    def whole_document(self) -> dict[str, Any]:
        """The first document that has everything: a busy machine answers some of it later."""

        def whole() -> dict[str, Any] | None:
            document = self.document()
            known = all(broker["disk_bytes"] is not None for broker in document["brokers"])
            judged = document["partitions"][0]["min_isr"] is not None
            whole = known and judged and not document["failures"]
            return document if whole and document["answering_broker_count"] == 3 else None

        found = wait_until(whole, "everything is answered", PATIENCE_S)
        assert found is not None
        return found


@pytest.fixture(scope="module", params=[KAFKA_3, KAFKA_2], ids=lambda release: str(release.version))
def old(request: pytest.FixtureRequest, real_kafka_factory: ClusterFactory) -> Iterator[Old]:
    """The cluster of each release, started once; all tests of one release come before those of the other."""
    release: Release = request.param
    sessions = dict(zip(SESSIONS, map(str, (SESSION_MS, OTHER_SESSION_MS)), strict=True))
    if release.zookeeper:
        sessions = dict(zip(SESSIONS, map(str, (OTHER_SESSION_MS, SESSION_MS)), strict=True))
    kafka = real_kafka_factory(release=release, overrides=sessions)
    try:
        kafka.create_topic("invoice", PLACED, {"min.insync.replicas": "2"})
        produce_and_read(kafka.bootstrap_servers)
        yield Old(release, kafka)
    finally:
        kafka.close()


def produce_and_read(bootstrap_servers: str) -> None:
    """Write RECORDS records, of which the group `billing` reads READ."""
    with KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all") as producer:
        sent = [producer.send("invoice", b"x" * 50, partition=number % 3) for number in range(RECORDS)]
        assert sorted(one.get(timeout=60).offset for one in sent) == sorted([*range(THIRD)] * 3)
    consumer = KafkaConsumer(
        "invoice",
        bootstrap_servers=bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=READ // 3,
    )
    read: list[int] = []

    def enough() -> bool:
        wanted = min(READ - len(read), READ // 3)
        polled = consumer.poll(timeout_ms=500, max_records=wanted)
        read.extend(record.offset for records in polled.values() for record in records)
        return len(read) == READ

    wait_until(enough, f"{READ} records are read", PATIENCE_S)
    consumer.commit()
    consumer.close()


def by_id(document: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {broker["id"]: broker for broker in document["brokers"]}


def invoice(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in document["partitions"] if row["topic"] == "invoice"]


def test_everything_that_an_old_cluster_can_tell_is_there(old: Old) -> None:
    document = old.whole_document()
    brokers = by_id(document)
    assert {broker: brokers[broker]["port"] for broker in brokers} == {
        broker: old.kafka.nodes[broker].port for broker in old.kafka.broker_ids
    }
    assert [brokers[broker]["rack"] for broker in sorted(brokers)] == ["R1", "R1", "R2"]
    assert {broker["state"] for broker in document["brokers"]} == {"up"}
    rows = invoice(document)
    assert [[replica["broker_id"] for replica in row["replicas"]] for row in rows] == PLACED
    assert [row["leader"] for row in rows] == [0, 1, 2]
    assert [sorted(row["isr"]) for row in rows] == [[0, 1, 2]] * 3
    for row in rows:
        assert (row["log_start"], row["high_watermark"], row["log_end"]) == (0, THIRD, THIRD)
        assert [replica["log_end"] for replica in row["replicas"]] == [THIRD] * 3
    assert {row["min_isr"] for row in rows} == {2}
    (group,) = document["groups"]
    assert (group["group"], group["type"], group["state"]) == ("billing", "classic", "Empty")
    assert (group["lag_records"], group["lag_is_bound"]) == (RECORDS - READ, False)
    assert document["failures"] == []
    unknown_elr = [row["elr"] is None for row in rows]
    assert unknown_elr == [old.release.zookeeper] * 3, "DescribeTopicPartitions is newer than 2.8"
    sized = {
        directory["total_bytes"] is not None
        for broker in brokers.values()
        for directory in broker["log_dirs"]
    }
    assert sized == {not old.release.zookeeper}, "DescribeLogDirs has sizes since Kafka 3.3"


def test_the_controller_is_the_one_that_the_mode_has(old: Old) -> None:
    document = old.document()
    controls = [broker["id"] for broker in document["brokers"] if broker["is_controller"]]
    if old.release.zookeeper:
        assert controls == [document["controller_id"]]
        assert document["controller_id"] == old.kafka.controller
        assert document["controller_epoch"] is None, "no answer has it"
    else:
        assert (document["controller_id"], controls) == (101, [])
        assert document["controller_epoch"] >= 1


def test_a_crash_is_shown_from_the_silence_to_the_return_at_another_port(old: Old, tmp_path: Path) -> None:
    folder, kafka = tmp_path / "crash", old.kafka
    arguments = ("connect", f"127.0.0.1:{kafka.nodes[0].port},127.0.0.1:{kafka.nodes[1].port}")
    with kview_on_a_terminal(*arguments, "--record", str(folder)) as terminal:
        terminal.wait_for_text("● WELL|● cluster healthy", PATIENCE_S)
        kafka.kill(2)
        countdown = terminal.wait_for_text(
            r"broker 2 silent[\s\S]*fenced (?:in )?[━─]+ ≈ ([\d.]+) s", PATIENCE_S
        )
        assert float(countdown[1]) <= SESSION_MS / 1000
        terminal.wait_for_text("broker 2 gone", PATIENCE_S)
        terminal.wait_for_text("3 (partitions )?at min ISR", PATIENCE_S)
        kafka.wait_for_brokers([0, 1])
        kafka.move(2)
        kafka.restart(2)
        terminal.wait_for_text(r" 2 ● \d+ ms", PATIENCE_S)
        terminal.wait_for_text("● WELL|● cluster healthy", PATIENCE_S)
        for key, words in (("2", r"leads  copies"), ("5", "GROUPS worst first"), ("6", "direct rates")):
            terminal.press(key)
            terminal.wait_for_text(words)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    kafka.heal()
    replayed = run_kview("replay", str(folder), "--format", "json", timeout_s=PATIENCE_S)
    assert replayed.returncode == 0, replayed.stderr
    documents = [json.loads(line) for line in replayed.stdout.splitlines()]
    seen = [by_id(document)[2] for document in documents if 2 in by_id(document)]
    assert in_order([broker["state"] for broker in seen], ["up", "silent", "gone", "up"])
    assert seen[-1]["port"] == kafka.nodes[2].port
    assert in_order([invoice(document)[2]["leader"] for document in documents], [2, 0])
    isrs = [sorted(invoice(document)[0]["isr"]) for document in documents]
    assert in_order(isrs, [[0, 1, 2], [0, 1], [0, 1, 2]])
    ends = [
        {replica["broker_id"]: replica["log_end"] for replica in invoice(document)[0]["replicas"]}
        for document in documents
    ]
    assert all(end[2] in (THIRD, None) for end in ends), "what is not known is never another number"
    refused = {
        (failure["part"], failure["cause"]["code"])
        for document in documents
        for failure in document["failures"]
        if failure["cause"]["kind"] == "kafka_error"
    }
    assert not refused & {("reassignments", 41), ("quorum", 35)}


def in_order(seen: list[Any], expected: list[Any]) -> bool:
    """Whether these values came in that order, whatever came between them."""
    values = iter(seen)
    return all(value in values for value in expected)
