"""The observer against Apache Kafka: what it sees is what Kafka's own answers to others say, and failures
as they are."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaAdminClient, TopicPartition
from kafka.protocol.consumer import OffsetSpec

from kview.derive.brokers.controllers import quorum_nodes
from kview.model.snapshot import Snapshot
from kview.model.units import NO_BROKER, UNKNOWN
from kview.observe.apis import READ_ONLY
from kview.observe.observer import ObserveSettings
from tests.observe.counting_proxy import CountingProxies
from tests.observe.observing import Watched, observing, until
from tests.real_kafka.cluster import RealKafka

RECORDS = 120
SETTINGS = ObserveSettings(interval_s=0.5)


def produce(kafka: RealKafka, topic: str, partition: int, count: int, acks: str = "all") -> None:
    """Produce `count` records, one a batch or more, and wait for their acknowledgement.

    Brokers that hang are not asked for the leader: a client would wait 10 s for each.
    """
    servers = ",".join(str(kafka.address(b)) for b in kafka.broker_ids if not kafka.nodes[b].paused)
    producer = Producer({"bootstrap.servers": servers, "acks": acks, "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, value=b"x" * 50, key=str(number), partition=partition)
    assert producer.flush(20) == 0


@contextmanager
def consuming(kafka: RealKafka, topic: str, group: str, count: int) -> Iterator[Consumer]:
    """A member of `group` that has read `count` records and committed."""
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "client.id": "kview-test",
    })  # fmt: skip
    consumer.subscribe([topic])
    read = 0
    deadline_s = time.monotonic() + 30
    while read < count:
        assert time.monotonic() < deadline_s, f"{read} of {count} records read"
        message = consumer.poll(0.2)
        read += message is not None and message.error() is None
    consumer.commit(asynchronous=False)
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def names() -> tuple[str, str]:
    """A topic and a group of this test alone."""
    return f"invoice-{uuid.uuid4().hex[:8]}", f"billing-{uuid.uuid4().hex[:8]}"


def rows(snapshot: Snapshot, topic: str) -> Any:
    return np.flatnonzero(snapshot.partitions.topic == topic)


def column(snapshot: Snapshot, name: str, topic: str) -> list[Any]:
    values: list[Any] = getattr(snapshot.partitions, name)[rows(snapshot, topic)].tolist()
    return values


def lists(matrix: Any) -> list[list[int]]:
    return [[broker for broker in row if broker != NO_BROKER] for row in matrix.tolist()]


def broker_state(snapshot: Snapshot, broker: int) -> str:
    return str(snapshot.brokers.state[snapshot.brokers.id.tolist().index(broker)])


def test_a_whole_snapshot_is_what_other_clients_get(real_kafka: RealKafka, names: tuple[str, str]) -> None:
    topic, group = names
    real_kafka.create_topic(topic, [[0, 1, 2], [1, 2, 0], [2, 0, 1]], {"min.insync.replicas": "2"})
    for partition in range(3):
        produce(real_kafka, topic, partition, RECORDS // 3)
    addresses = {broker: real_kafka.address(broker) for broker in real_kafka.broker_ids}
    with consuming(real_kafka, topic, group, RECORDS), CountingProxies(addresses) as proxies:
        with observing([proxy.address for proxy in proxies.proxies.values()], SETTINGS) as observer:
            seen = until(
                observer,
                lambda s: (
                    topic in s.topic_configs.topic
                    and len(s.quorum) > 0
                    and bool((s.brokers.disk_bytes > 0).all())
                    and bool((s.offsets.committed[s.offsets.group == group] >= 0).sum() == 3)
                    and topic in s.time_points.topic
                    and bool((s.brokers.session_timeout_ms != UNKNOWN).all())
                ),
                "everything has been answered",
            )
        asked = list(proxies.asked)
        admin = KafkaAdminClient(bootstrap_servers=real_kafka.bootstrap_servers)
        try:
            compare_with_admin(seen, admin, topic, group)
        finally:
            admin.close()
    # Partitions under min.insync.replicas, groups of other kinds, transactions that stay open, and quotas.
    rarely = {75, 69, 77, 89, 90, 61, 65, 66, 48}
    assert READ_ONLY - rarely <= {key for _, key, _ in asked} <= READ_ONLY
    assert {broker for broker, _, _ in asked} == set(real_kafka.broker_ids)


def compare_with_admin(seen: Snapshot, admin: Any, topic: str, group: str) -> None:
    """Every column of `topic` and `group` against kafka-python's admin client."""
    (described,) = admin.describe_topics([topic])
    partitions = sorted(described["partitions"], key=lambda p: p["partition_index"])
    assert column(seen, "partition", topic) == [p["partition_index"] for p in partitions]
    assert column(seen, "leader", topic) == [p["leader_id"] for p in partitions]
    assert column(seen, "leader_epoch", topic) == [p["leader_epoch"] for p in partitions]
    at = rows(seen, topic)
    assert lists(seen.partitions.replicas[at]) == [p["replica_nodes"] for p in partitions]
    assert lists(seen.partitions.isr[at]) == [p["isr_nodes"] for p in partitions]
    assert set(column(seen, "topic_id", topic)) == {str(described["topic_id"])}
    assert column(seen, "min_isr", topic) == [2, 2, 2]
    assert column(seen, "error_code", topic) == [0, 0, 0]

    keys = [TopicPartition(topic, p) for p in range(3)]
    latest = admin.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.LATEST))
    earliest = admin.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.EARLIEST))
    assert column(seen, "high_watermark", topic) == [latest[key].offset for key in keys]
    assert column(seen, "log_end", topic) == [latest[key].offset for key in keys]
    assert column(seen, "log_start", topic) == [earliest[key].offset for key in keys]
    of_topic = seen.replicas.topic == topic
    assert seen.replicas.broker[of_topic].tolist() == [0, 1, 2, 1, 2, 0, 2, 0, 1]
    assert set(seen.replicas.log_end[of_topic].tolist()) == {RECORDS // 3}
    assert (seen.replicas.size_bytes[of_topic] > 0).all()
    assert (seen.replicas.row[of_topic] == np.repeat(at, 3)).all()

    (offsets,) = admin.list_group_offsets([group]).values()
    mine = seen.offsets.group == group
    assert dict(
        zip(seen.offsets.partition[mine].tolist(), seen.offsets.committed[mine].tolist(), strict=True)
    ) == {key.partition: value.offset for key, value in offsets.items()}
    (about,) = admin.describe_groups([group]).values()
    row = seen.groups.group.tolist().index(group)
    assert seen.groups.state[row] == about["group_state"] == "Stable"
    assert seen.groups.type[row] == "classic"
    assert seen.groups.assignment_strategy[row] == about["protocol_data"]
    (member,) = about["members"]
    assert seen.offsets.owner[mine].tolist() == [member["member_id"]] * 3
    assert seen.members.client_id[seen.members.group == group].tolist() == ["kview-test"]
    assert seen.members.assigned[seen.members.group == group].tolist() == [3]

    quorum = admin.describe_metadata_quorum()
    assert seen.observation.controller_id == quorum["topics"][0]["partitions"][0]["leader_id"] == 101
    assert seen.brokers.rack.tolist() == ["R1", "R2", "R2"] or set(seen.brokers.rack) == {"R1", "R2"}
    assert seen.brokers.session_timeout_ms.tolist() == [2000] * 3
    assert set(seen.brokers.state) == {"up"}
    assert (seen.brokers.last_fetch_ms > seen.observation.began_ms - 30_000).all()
    settings = seen.topic_configs.take(seen.topic_configs.topic == topic)
    minimum = settings.name.tolist().index("min.insync.replicas")
    assert (settings.value[minimum], settings.source[minimum]) == ("2", "DYNAMIC_TOPIC_CONFIG")
    assert seen.observation.failures == ()
    points = seen.time_points.take(seen.time_points.topic == topic)
    assert points.offset[points.timestamp_ms < seen.observation.ended_ms - 300_000].tolist()[:1] == [0]


def test_a_hung_follower(real_kafka: RealKafka, names: tuple[str, str]) -> None:
    topic, _ = names
    real_kafka.create_topic(topic, [[0, 1, 2]])
    produce(real_kafka, topic, 0, 20)
    with observing([real_kafka.address(0), real_kafka.address(1)], SETTINGS) as observer:
        until(observer, lambda s: column(s, "high_watermark", topic) == [20], "the watermark is read")
        real_kafka.pause(2)
        try:
            produce(real_kafka, topic, 0, 30, acks="1")
            seen = until(
                observer,
                lambda s: column(s, "log_end", topic) == [50] and replica_ends(s, topic)[1] == 50,
                "the leader's log end and the healthy follower's moved",
            )
            if lists(seen.partitions.isr)[rows(seen, topic)[0]] == [0, 1, 2]:
                assert column(seen, "high_watermark", topic) == [20]
            assert replica_ends(seen, topic) == {0: 50, 1: 50, 2: 20}
            until(
                observer,
                lambda s: (
                    column(s, "high_watermark", topic) == [50]
                    and 2 not in lists(s.partitions.isr)[rows(s, topic)[0]]
                ),
                "the watermark moves when the follower has left the ISR",
            )
        finally:
            real_kafka.resume(2)


def replica_ends(snapshot: Snapshot, topic: str) -> dict[int, int]:
    of_topic = snapshot.replicas.topic == topic
    return dict(
        zip(
            snapshot.replicas.broker[of_topic].tolist(),
            snapshot.replicas.log_end[of_topic].tolist(),
            strict=True,
        )
    )


def test_a_killed_leader(real_kafka: RealKafka, names: tuple[str, str]) -> None:
    topic, _ = names
    real_kafka.create_topic(topic, [[2, 0, 1]])
    produce(real_kafka, topic, 0, 20)
    with observing([real_kafka.address(0), real_kafka.address(2)], SETTINGS) as observer:
        before = until(observer, lambda s: column(s, "log_end", topic) == [20], "offsets are read")
        (epoch,) = column(before, "leader_epoch", topic)
        real_kafka.kill(2)
        silent = until(observer, lambda s: broker_state(s, 2) != "up", "the broker is silent")
        assert broker_state(silent, 2) == "silent"
        assert column(silent, "leader", topic) == [2]
        assert lists(silent.partitions.isr)[rows(silent, topic)[0]] == [2, 0, 1]
        after = until(observer, lambda s: column(s, "leader", topic) != [2], "another broker leads")
        assert column(after, "leader", topic) == [0]
        assert column(after, "leader_epoch", topic) == [epoch + 1]
        assert 2 not in lists(after.partitions.isr)[rows(after, topic)[0]]
        assert broker_state(after, 2) == "fenced"
        assert not after.brokers.answers[2]
        real_kafka.restart(2)
        back = until(observer, lambda s: broker_state(s, 2) == "up", "it is back")
        assert back.brokers.answers[2]


def test_without_a_controller_everything_else_goes_on(real_kafka: RealKafka, names: tuple[str, str]) -> None:
    topic, _ = names
    real_kafka.create_topic(topic, [[0, 1, 2]])
    with observing([real_kafka.address(0)], SETTINGS) as observer:
        until(observer, lambda s: s.observation.controller_id == 101, "the controller is seen")
        real_kafka.pause(101)
        try:
            until(
                observer,
                lambda s: (
                    any(f.part == "quorum" for f in s.observation.failures)
                    and s.observation.quorum_received_ms < s.observation.began_ms - 800
                    and s.observation.ended_ms - s.observation.began_ms < 1000
                    and bool((s.partitions.high_watermark_ms > s.observation.began_ms - 1000).all())
                ),
                "the quorum does not answer, and the rest is asked as quickly as ever",
            )
        finally:
            real_kafka.resume(101)


@pytest.mark.slow  # asks a real cluster
def test_a_real_cluster_tells_its_features_its_observers_and_one_set_of_apis(real_kafka: RealKafka) -> None:
    addresses = [real_kafka.address(broker) for broker in real_kafka.broker_ids]
    with observing(addresses, SETTINGS) as observer:
        view = Watched(observer).until(
            lambda v: (
                len(v.snapshot.features) > 0
                and bool((v.snapshot.brokers.apis != "").all())
                and v.snapshot.observation.controller_id >= 0
            ),
            "features, APIs and the quorum are known",
        )
    features = view.snapshot.features
    levels = dict(zip(features.name.tolist(), features.level.tolist(), strict=True))
    assert levels["metadata.version"] >= 20 and "group.version" in levels
    assert view.snapshot.observation.apis_differ_since_ms == UNKNOWN
    assert {node.node for node in quorum_nodes(view) if not node.votes} == set(real_kafka.broker_ids)
