"""Promises of applications, tested by the same lines on a simulated cluster and on a real one: a producer
survives the crash of a leader, a group keeps its place, a pipeline in transactions counts everything once.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kview.testing import Cluster
from tests.real_kafka.cluster import RealKafka
from tests.waiting import wait_until

WITHIN_S = 60.0
RECORDS = [b"%d" % number for number in range(300)]
TRY_AGAIN = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


class Kafka(Protocol):
    """What these tests want of a cluster, besides that clients can use it."""

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""

    def crash(self, broker: int) -> None:
        """Crash a broker, and let the others take over soon."""


class Simulated(Cluster):
    """A simulated cluster in which a crash is noticed at once."""

    def crash(self, node: int) -> None:
        """Crash a broker, and end its session."""
        super().crash(node)
        self.fence_now(node)


class Real:
    """A real cluster, which notices a crash after two seconds."""

    def __init__(self, cluster: RealKafka) -> None:
        self.bootstrap_servers = cluster.bootstrap_servers
        self.crash = cluster.kill


@pytest.fixture(scope="module")
def simulated() -> Iterator[Simulated]:
    with Simulated() as cluster:
        yield cluster


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.real_cluster)])
def kafka(request: pytest.FixtureRequest) -> Kafka:
    """A cluster of three brokers, all up."""
    if request.param == "real":
        return Real(request.getfixturevalue("real_kafka"))
    cluster: Simulated = request.getfixturevalue("simulated")
    cluster.heal()
    return cluster


def conf(kafka: Kafka, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap_servers} | {k.replace("_", "."): v for k, v in more.items()}


def create(kafka: Kafka, *topics: str) -> AdminClient:
    """Create topics with one partition and three copies, and return the client that did."""
    admin = AdminClient(conf(kafka))
    made = admin.create_topics(
        [NewTopic(topic, 1, 3, config={"min.insync.replicas": "2"}) for topic in topics]
    )
    for future in made.values():
        future.result(WITHIN_S)
    return admin


def leader(admin: AdminClient, topic: str) -> int:
    """Return the broker that leads the topic's only partition."""
    return int(admin.list_topics(topic, timeout=WITHIN_S).topics[topic].partitions[0].leader)


def coordinator(admin: AdminClient, group: str) -> int:
    """Return the broker that coordinates a group."""
    described = admin.describe_consumer_groups([group])[group].result(WITHIN_S)
    return int(described.coordinator.id)


def write(producer: Producer, topic: str, values: list[bytes]) -> None:
    """Write values in order, and wait until they are written."""
    errors: list[Any] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error) if error else None)
    assert producer.flush(WITHIN_S) == 0 and errors == []


def member(kafka: Kafka, group: str, topic: str, **more: Any) -> Consumer:
    consumer = Consumer(
        conf(kafka, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, **more)
        | {"isolation.level": "read_committed"}
    )
    consumer.subscribe([topic])
    return consumer


def take(consumer: Consumer, number: int) -> list[bytes]:
    """Return the values of the next records."""
    taken: list[bytes] = []

    def enough() -> bool:
        for message in consumer.consume(number - len(taken), timeout=0.1):
            assert message.error() is None, message.error()
            taken.append(message.value() or b"")
        return len(taken) == number

    wait_until(enough, f"{number} records", WITHIN_S)
    return taken


def commit(consumer: Consumer) -> None:
    """Commit as applications do: a coordinator that still loads its groups asks for another attempt."""

    def is_committed() -> bool:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as refused:
            if refused.args[0].code() not in TRY_AGAIN:
                raise
            return False
        return True

    wait_until(is_committed, "the offsets are committed", WITHIN_S)


def everything(kafka: Kafka, topic: str) -> list[bytes]:
    """Return the values of all committed records of a topic, in order."""
    consumer = Consumer(
        conf(kafka, group_id=f"reads-{topic}", enable_auto_commit=False)
        | {"isolation.level": "read_committed", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while (message := consumer.poll(WITHIN_S)) is not None and message.error() is None:
        values.append(message.value() or b"")
    assert message is not None, "the end was reached"
    consumer.close()
    return values


def test_a_producer_survives_the_crash_of_its_leader(kafka: Kafka) -> None:
    admin = create(kafka, "promise-survived")
    producer = Producer(conf(kafka, enable_idempotence=True))
    write(producer, "promise-survived", RECORDS[:100])
    for value in RECORDS[100:200]:
        producer.produce("promise-survived", value)
    kafka.crash(leader(admin, "promise-survived"))
    write(producer, "promise-survived", RECORDS[200:])
    assert everything(kafka, "promise-survived") == RECORDS


def test_a_group_keeps_its_place_when_its_coordinator_crashes(kafka: Kafka) -> None:
    admin = create(kafka, "promise-placed")
    write(Producer(conf(kafka, enable_idempotence=True)), "promise-placed", RECORDS)
    first = member(kafka, "keeps-its-place", "promise-placed")
    taken = take(first, 100)
    commit(first)
    kafka.crash(coordinator(admin, "keeps-its-place"))
    taken += take(first, 100)
    commit(first)
    first.close()
    successor = member(kafka, "keeps-its-place", "promise-placed")
    taken += take(successor, 100)
    successor.close()
    assert taken == RECORDS


def test_a_pipeline_in_transactions_counts_everything_once(kafka: Kafka) -> None:
    admin = create(kafka, "promise-raw", "promise-cooked")
    write(Producer(conf(kafka, enable_idempotence=True)), "promise-raw", RECORDS)

    def cook(commits: int) -> tuple[Consumer, Producer]:
        consumer = member(
            kafka, "cooks", "promise-raw", group_instance_id="cook"
        )  # its successor takes over at once
        producer = Producer(conf(kafka, transactional_id="cook"))
        producer.init_transactions(WITHIN_S)
        for number in range(commits + 1):
            values = take(consumer, 50)
            producer.begin_transaction()
            write(producer, "promise-cooked", values)
            if number == commits:
                break
            position = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), WITHIN_S)
            producer.commit_transaction(WITHIN_S)
        return consumer, producer

    consumer, _ = cook(2)  # and this application dies in its third transaction, with the broker it writes to
    kafka.crash(leader(admin, "promise-cooked"))
    consumer.close()
    consumer, producer = cook(3)
    position = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), WITHIN_S)
    producer.commit_transaction(WITHIN_S)
    consumer.close()
    assert everything(kafka, "promise-cooked") == RECORDS


def test_a_producer_that_waits_for_the_leader_alone_is_seen_to_lose_records(simulated: Simulated) -> None:
    """The first test can fail: here is an application that it would find."""
    simulated.heal()
    admin = create(simulated, "promise-lost")
    producer = Producer(conf(simulated, acks=1))
    write(producer, "promise-lost", RECORDS[:100])
    first = leader(admin, "promise-lost")
    simulated.isolate(first)  # it has not noticed yet, and answers clients
    write(producer, "promise-lost", RECORDS[100:200])
    simulated.crash(first)
    simulated.join_all()
    write(producer, "promise-lost", RECORDS[200:])
    assert everything(simulated, "promise-lost") == RECORDS[:100] + RECORDS[200:]
