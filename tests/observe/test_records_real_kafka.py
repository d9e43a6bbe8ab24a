"""Records on demand against Apache Kafka: what a consumer of librdkafka reads, and no trace is left."""

import time
import uuid
from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kview.model.inspection import (
    Isolation,
    Record,
    SettingsAnswer,
    SettingSource,
    SettingsRequest,
    Start,
    StartKind,
)
from kview.observe.apis import READ_RECORDS
from kview.observe.observer import ObserveSettings
from tests.observe.asking import FETCH, answered, offsets, records, values
from tests.observe.counting_proxy import CountingProxies
from tests.observe.observing import observing
from tests.observe.searching import searched
from tests.real_kafka.cluster import RealKafka

SETTINGS = ObserveSettings(interval_s=0.5)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def consumed(kafka: RealKafka, topic: str, isolation: str) -> list[tuple[Any, ...]]:
    """What a consumer reads from the partition's beginning to its end."""
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "not-used",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            break
        pairs: list[tuple[str, bytes | None]] = message.headers() or []  # type: ignore[assignment]
        headers = tuple((name.encode(), value) for name, value in pairs)
        found.append((message.offset(), message.key(), message.value(), message.timestamp()[1], headers))
    consumer.close()
    return found


def peeked(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    """The same of an answer."""
    return [
        (
            r.offset,
            r.key.data,
            r.value.data,
            r.timestamp_ms,
            tuple((h.name.data, h.value.data) for h in r.headers),
        )
        for r in records
    ]


def produce_everything(kafka: RealKafka, topic: str) -> None:
    """Batches in every codec, null keys and values, headers, and transactions of which one is aborted."""
    for codec in CODECS:
        producer = Producer({
            "bootstrap.servers": kafka.bootstrap_servers, "compression.type": codec, "linger.ms": 50,
        })  # fmt: skip
        for n in range(20):
            producer.produce(
                topic,
                value=None if n == 3 else f"{codec} {n} ".encode() * 30,
                key=None if n % 2 else b"key",
                headers=[("trace", b"\x00\x01"), ("none", None)] if n == 5 else None,
                partition=0,
            )
        assert producer.flush(30) == 0
    for number, commits in enumerate((True, False, True)):
        transactional = Producer({
            "bootstrap.servers": kafka.bootstrap_servers,
            "transactional.id": f"{topic}-{number}",
        })  # fmt: skip
        transactional.init_transactions(60)
        transactional.begin_transaction()
        for n in range(5):
            transactional.produce(topic, value=f"transaction {number} {n}".encode(), partition=0)
        transactional.flush(30)
        transactional.commit_transaction(60) if commits else transactional.abort_transaction(60)


@pytest.mark.timeout(400)
def test_a_peek_reads_what_a_consumer_reads(real_kafka: RealKafka) -> None:
    topic = f"peek-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(topic, [[0, 1, 2]])
    produce_everything(real_kafka, topic)
    admin = AdminClient({"bootstrap.servers": real_kafka.bootstrap_servers})
    groups = {group.group_id for group in admin.list_consumer_groups().result(30).valid}
    ports = {broker: real_kafka.address(broker) for broker in real_kafka.broker_ids}
    with CountingProxies(ports) as proxies:
        servers = [proxy.address for proxy in proxies.proxies.values()]
        with observing(servers, SETTINGS) as observer:
            observer.observe()
            for isolation in Isolation:
                truth = consumed(real_kafka, topic, isolation.name.lower())
                answer = records(observer, topic, isolation=isolation, count=500)
                assert not answer.failure and not answer.damage and not answer.over_budget
                assert peeked(answer.records) == truth and len(truth) == (110 if isolation else 115)
                last = records(observer, topic, isolation=isolation, count=7)
                assert peeked(last.records) == truth[-7:]
                middle = records(
                    observer, topic, isolation=isolation, start=Start(StartKind.OFFSET, 33), count=9
                )
                assert peeked(middle.records) == [row for row in truth if row[0] >= 33][:9]
                by_time = records(
                    observer, topic, isolation=isolation, start=Start(StartKind.TIME, truth[40][3])
                )
                assert offsets(by_time)[0] <= truth[40][0] and len(values(by_time)) == 50
                whole = searched(observer, topic, isolation=isolation)
                assert peeked(each.record for each in whole.found) == truth
                assert (whole.tally.aborted, whole.tally.damaged) == (1 if isolation else 0, 0)
                assert all(span.size > 0 for span in whole.plan.spans)
                for where, needle in (("value contains zstd", b"zstd"), ("value ~ /^transaction/", b"trans")):
                    found = searched(observer, topic, where, isolation=isolation)
                    assert peeked(each.record for each in found.found) == [
                        row for row in truth if needle in (row[2] or b"")
                    ]
            settings: SettingsAnswer = answered(observer, SettingsRequest(topic))
            assert {one.name for one in settings.settings} >= {"retention.ms", "min.insync.replicas"}
            broker: SettingsAnswer = answered(observer, SettingsRequest(broker=1))
            sources = {one.source for one in broker.settings}
            assert {SettingSource.STATIC, SettingSource.DEFAULT} <= sources
            hidden = [one for one in broker.settings if one.sensitive]
            assert hidden and all(one.value is None for one in hidden)
        sent = {key for _, key, _ in proxies.asked}
    assert sent <= READ_RECORDS and FETCH in sent
    after = {group.group_id for group in admin.list_consumer_groups().result(30).valid}
    assert after <= groups | {"not-used"}
