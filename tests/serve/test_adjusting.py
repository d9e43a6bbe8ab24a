"""What the lab changes, as a client sees it that nobody here wrote: kafka-python."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import NotEnoughReplicasError
from kafka.protocol.admin import DescribeProducersRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.producer import WriteTxnMarkersRequest

from kview.errors import ErrorKind
from kview.lab.messages import Ask
from kview.model.lab import Command, CommandKind, LabSettings, Reply
from tests.real_kafka.asking import Address, ask
from tests.serve.clients import kafka_python_consumer
from tests.served import Served
from tests.waiting import PATIENCE_S, wait_until

K = CommandKind

TOPIC, PARTITIONS = "invoice", 2

MIN_ISR = "min.insync.replicas"

SPAN_MS = 2_000
"""The time by records' timestamps over which their rate is measured: no matter how slow this machine is."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Served]:
    """Three brokers, with a topic that one producer writes and one group of three members reads."""
    with Served("--brokers", "3", "--racks", "3", "--topic", f"{TOPIC}:{PARTITIONS}:3") as served:
        yield served


@pytest.fixture(scope="module")
def admin(cluster: Served) -> Iterator[KafkaAdminClient]:
    """An administrator."""
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))) as client:
        yield client


def settings(cluster: Served) -> LabSettings:
    """What is set."""
    answer = cluster.request(Ask.SETTINGS)
    assert isinstance(answer, LabSettings)
    return answer


def asked(cluster: Served, wanted: Command) -> Reply:
    """What is answered to an adjustment."""
    answer = cluster.request(wanted)
    assert isinstance(answer, Reply)
    return answer


def adjust(cluster: Served, wanted: Command) -> Command:
    """Carry out an adjustment. Returns what undoes it."""
    reply = asked(cluster, wanted)
    assert reply.refused is None and reply.undone_by is not None, reply
    return reply.undone_by


def records_per_second(consumer: KafkaConsumer) -> float:
    """The rate of the records that are written from now on, by their timestamps, while all partitions are
    read."""
    consumer.seek_to_end()
    times: dict[TopicPartition, list[int]] = {each: [] for each in consumer.assignment()}

    def span() -> tuple[int, int]:
        return max(seen[0] for seen in times.values()), min(seen[-1] for seen in times.values())

    def is_seen() -> bool:
        for partition, records in consumer.poll(timeout_ms=200).items():
            times[partition].extend(record.timestamp for record in records)
        return all(times.values()) and span()[1] - span()[0] > SPAN_MS

    wait_until(is_seen, "records of some seconds")
    begin = span()[0]
    return sum(begin <= time < begin + SPAN_MS for seen in times.values() for time in seen) * 1000 / SPAN_MS


def test_a_producers_rate_is_that_of_the_records_that_come(cluster: Served) -> None:
    (producer,) = settings(cluster).producers
    with closing(kafka_python_consumer(cluster.bootstrap, None)) as consumer:
        consumer.assign([TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
        before = records_per_second(consumer)
        back = adjust(cluster, Command(K.RATE, name=producer.name, amount=producer.rate * 4))
        faster = records_per_second(consumer)
        assert adjust(cluster, back) == Command(K.RATE, name=producer.name, amount=producer.rate * 4)
        after = records_per_second(consumer)
    assert before == pytest.approx(producer.rate, rel=0.15)
    assert faster == pytest.approx(4 * producer.rate, rel=0.15)
    assert after == pytest.approx(producer.rate, rel=0.15)


def test_a_member_joins_and_leaves_the_group_that_is_described(
    cluster: Served, admin: KafkaAdminClient
) -> None:
    (group,) = settings(cluster).groups

    def members() -> int:
        found: dict[str, Any] = admin.describe_groups([group.name])[group.name]
        return len(found["members"]) if found["group_state"] == "Stable" else 0

    wait_until(lambda: members() == group.members, "the members at first")
    back = adjust(cluster, Command(K.ADD_MEMBER, name=group.name))
    wait_until(lambda: members() == group.members + 1, "one member more")
    adjust(cluster, back)
    wait_until(lambda: members() == group.members, "the members at first again")


def test_the_lag_of_a_paused_group_grows_until_it_is_resumed(
    cluster: Served, admin: KafkaAdminClient
) -> None:
    (group,), (producer,) = settings(cluster).groups, settings(cluster).producers
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    with closing(kafka_python_consumer(cluster.bootstrap, None)) as consumer:

        def lag() -> int:
            committed = admin.list_group_offsets({group.name: partitions})[group.name]
            ends = consumer.end_offsets(partitions)
            return sum(ends[each] - committed[each].offset for each in partitions)

        few = round(producer.rate * group.commit_interval_ms / 1000 * 1.5)
        wait_until(lambda: lag() < few, "a group that keeps up")
        back = adjust(cluster, Command(K.PAUSE, name=group.name))
        wait_until(lambda: lag() > 1.3 * few, "a lag that no group has that keeps up")
        adjust(cluster, back)
        wait_until(lambda: lag() < few, "a group that has caught up")


def test_min_insync_replicas_is_described_and_refuses_a_real_producer(
    cluster: Served, admin: KafkaAdminClient
) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, TOPIC)

    def in_force() -> str:
        found = admin.describe_configs([resource], config_filter="all")["topic"][TOPIC]
        return str(found[MIN_ISR]["value"])

    servers = cluster.bootstrap.split(",")
    leads = next(number for number in range(PARTITIONS) if cluster.partition(TOPIC, number).leader_id != 2)
    with closing(KafkaProducer(bootstrap_servers=servers, acks="all", retries=0)) as producer:
        assert in_force() == "1"
        back = adjust(cluster, Command(K.SET, name=TOPIC, key=MIN_ISR, value="3"))
        assert in_force() == "3"
        producer.send(TOPIC, b"all three have it", partition=leads).get(PATIENCE_S)
        cluster.do("stop 2")
        wait_until(lambda: len(cluster.partition(TOPIC, leads).isr_nodes) == 2, "broker 2 has left the ISR")
        with pytest.raises(NotEnoughReplicasError):
            producer.send(TOPIC, b"refused", partition=leads).get(PATIENCE_S)
        adjust(cluster, back)
        assert in_force() == "1"
        producer.send(TOPIC, b"two have it", partition=leads).get(PATIENCE_S)
    cluster.heal()


def test_a_narrow_link_drives_its_broker_out_of_the_isr_and_back(cluster: Served) -> None:
    (producer,) = settings(cluster).producers

    def in_sync() -> set[int]:
        return set(cluster.partition(TOPIC, 0).isr_nodes)

    follower = next(b for b in (1, 2) if cluster.partition(TOPIC, 0).leader_id != b)
    needed = producer.rate * producer.record_bytes
    back = adjust(cluster, Command(K.BANDWIDTH, node=follower, amount=max(1000.0, needed / 20)))
    wait_until(lambda: follower not in in_sync(), "the follower is out of the ISR")
    adjust(cluster, back)
    wait_until(lambda: follower in in_sync(), "the follower is back")


def test_a_hanging_transaction_is_described_and_ended_by_an_admin(cluster: Served) -> None:
    """The requests are those of `kafka-transactions find-hanging` and `abort`."""
    adjust(cluster, Command(K.HANG_TRANSACTION, name=f"{TOPIC}-1"))
    addresses = [(host, int(port)) for host, port in (s.split(":") for s in cluster.bootstrap.split(","))]
    (at,) = [address for address in addresses if last_stable(address) >= 0]  # the leader
    (hanging,) = open_producers(at)
    assert hanging.coordinator_epoch == -1
    held = last_stable(at)
    assert held == hanging.current_txn_start_offset
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    per_topic = marker.WritableTxnMarkerTopic
    abort = marker(
        version=1,
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        transaction_result=False,
        coordinator_epoch=0,
        topics=[per_topic(version=1, name=TOPIC, partition_indexes=[1])],
    )
    answer = ask(at, WriteTxnMarkersRequest(version=1, markers=[abort]))
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    wait_until(lambda: last_stable(at) > held, "the records that were held back")
    assert not open_producers(at)


def last_stable(at: Address) -> int:
    """The last stable offset of partition 1, −1 if the broker does not lead it."""
    per_topic = ListOffsetsRequest.ListOffsetsTopic
    asked = per_topic.ListOffsetsPartition(version=5, partition_index=1, timestamp=-1)
    topics = [per_topic(version=5, name=TOPIC, partitions=[asked])]
    answer = ask(at, ListOffsetsRequest(version=5, replica_id=-1, isolation_level=1, topics=topics))
    return int(answer.topics[0].partitions[0].offset)


def open_producers(at: Address) -> list[Any]:
    """The producers with an open transaction in partition 1."""
    topic = DescribeProducersRequest.TopicRequest
    answer = ask(
        at,
        DescribeProducersRequest(version=0, topics=[topic(version=0, name=TOPIC, partition_indexes=[1])]),
    )
    (partition,) = answer.topics[0].partitions
    return [each for each in partition.active_producers or () if each.current_txn_start_offset >= 0]


def test_without_a_controller_the_lab_changes_traffic_but_no_setting(cluster: Served) -> None:
    for controller in (101, 102):
        cluster.do(f"crash {controller}")
    wanted = Command(K.SET, name=TOPIC, key=MIN_ISR, value="2")
    refused = asked(cluster, wanted).refused
    assert refused is not None and refused.kind is ErrorKind.NO_CONTROLLER_TO_CHANGE
    rate = Command(K.RATE, name=settings(cluster).producers[0].name, amount=100.0)
    assert adjust(cluster, rate), "clients do not ask a controller"
    cluster.do("undo")
    wait_until(lambda: asked(cluster, wanted).refused is None, "a controller that changes it")
    cluster.do("undo")
    assert settings(cluster).topics[0].min_isr == 1
    cluster.heal()
