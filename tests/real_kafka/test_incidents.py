"""Records that a real cluster loses: a leader is killed while a producer with acks=1 writes to it, and an
unclean election. On a cluster of its own: topics without copies would stay without a leader."""

from secrets import token_hex

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from kview.derive.view import View
from kview.model.address import Address
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.incidents import Incident, PhaseKind
from kview.model.snapshot import Partitions
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from tests.conftest import ClusterFactory
from tests.observe.observing import Watched, headline, observing
from tests.real_kafka.cluster import START_TIMEOUT_S, RealKafka
from tests.waiting import PATIENCE_S, wait_until

PARTITIONS = 3
KILLED = 2
LOST = 50
SETTINGS = ObserveSettings(interval_s=0.5)


@pytest.fixture(scope="module")
def own_kafka(real_kafka_factory: ClusterFactory) -> RealKafka:
    return real_kafka_factory()


@pytest.fixture
def real_kafka(own_kafka: RealKafka) -> RealKafka:
    """Three brokers, all up and in sync."""
    own_kafka.heal()
    return own_kafka


def of_it(view: View) -> list[Incident]:
    """The incidents of the killed broker: on a busy machine, it may fall silent again while it starts."""
    return [one for one in view.incidents if KILLED in one.brokers]


def is_calm(view: View) -> bool:
    """Whether every broker answers and nothing goes on. A busy machine needs a while for that."""
    up = bool((view.snapshot.brokers.state == BrokerState.UP).all())
    return up and bool(view.snapshot.brokers.answers.all()) and not any(one.is_open for one in view.incidents)


def watermarks(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """Return the first and the last offset, once the leadership has come to rest after the restart."""

    def probe() -> tuple[int, int] | None:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(partition, 20)
        except KafkaException:
            return None
        return found

    found = wait_until(probe, "the leader answers")
    assert found is not None
    return found


def readable(kafka: RealKafka, topic: str) -> set[bytes]:
    """Every value in the topic."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": token_hex(4)})
    found: set[bytes] = set()
    try:
        for number in range(PARTITIONS):
            low, high = watermarks(consumer, TopicPartition(topic, number))
            consumer.assign([TopicPartition(topic, number, low)])
            at = low
            while at < high:
                message = wait_until(lambda: consumer.poll(1), "a record")
                assert message is not None
                if message.error() is not None:  # such as a leader that has just moved
                    continue
                at = (message.offset() or 0) + 1
                found.add(message.value() or b"")
    finally:
        consumer.close()
    return found


@pytest.mark.slow  # tests/derive/test_incident_truth.py has the same on the simulated cluster
def test_a_crash_with_acks_1(real_kafka: RealKafka) -> None:
    topic = f"incident-{token_hex(4)}"
    real_kafka.create_topic(topic, [[0, 1, 2], [1, 2, 0], [2, 0, 1]], {"min.insync.replicas": "1"})
    real_kafka.wait_for_full_isr(topic, PARTITIONS)
    sent: set[bytes] = set()
    refused: set[bytes] = set()

    def told(error: object, message: Message) -> None:
        if error is not None:
            refused.add(message.value() or b"")

    producer = Producer(
        {
            "bootstrap.servers": real_kafka.bootstrap_servers,
            "acks": 1,
            "retries": 0,
            "linger.ms": 0,
            "message.timeout.ms": 30_000,  # so that what waits for a dead leader does not fill the queue
        }
    )
    servers = [Address("127.0.0.1", real_kafka.address(broker).port) for broker in real_kafka.broker_ids]
    with observing(servers, SETTINGS) as observer:
        watched = Watched(observer)

        def write(view: View) -> None:
            for number in range(300):
                value = f"{view.snapshot.observation.sequence}-{number}".encode()
                sent.add(value)
                producer.produce(topic, value=value, partition=number % PARTITIONS, on_delivery=told)
            producer.poll(0)

        watched.until(is_calm, "a calm cluster")
        for _ in range(6):
            write(watched.look())
        watched.until(is_calm, "a calm cluster")
        earlier = {one.key for one in of_it(watched.views[-1])}
        real_kafka.kill(KILLED)
        try:

            def elected(view: View) -> bool:
                write(view)
                found = [one for one in of_it(view) if one.key not in earlier]
                led = found[0].phase(PhaseKind.ELECTED) if found else None
                return led is not None and led.is_complete

            moment = watched.until(elected, "other leaders")
        finally:
            real_kafka.restart(KILLED)
        last = watched.until(is_calm, "a full ISR", 2 * PATIENCE_S)
    producer.flush(30)
    incident, *again = [one for one in of_it(last) if one.key not in earlier]
    kinds = [phase.kind for phase in incident.phases]
    assert kinds[0] is PhaseKind.SILENT
    assert {PhaseKind.FROZEN, PhaseKind.FENCED, PhaseKind.ELECTED, PhaseKind.BACK} <= set(kinds)
    ends = [one.phases[-1].kind for one in (incident, *again)]
    assert ends == [*[PhaseKind.REPEATED] * len(again), PhaseKind.ISR_FULL]
    times = [phase.at_ms for phase in incident.phases]
    assert times == sorted(times)
    then = next(one for one in of_it(moment) if one.key == incident.key)  # an ISR may get smaller later
    hit = {(one.topic, one.partition): one for one in then.hit}
    moved = hit[topic, 2]
    assert (moved.leader_before, KILLED in moved.isr_after) == (KILLED, False)
    assert moved.leader_after in (0, 1), "the first that was in sync"
    assert moved.epoch_after > moved.epoch_before and KILLED not in hit[topic, 0].isr_after
    lost = sent - readable(real_kafka, topic)
    hits = [one for of in (incident, *again) for one in of.hit if one.topic == topic]
    mine = [one.gone for one in hits if one.gone != UNKNOWN]
    assert sum(mine) <= len(lost), f"kview says ≥ {sum(mine)}, and {len(lost)} cannot be read"


def produce(kafka: RealKafka, count: int) -> None:
    """Produce records that the leader alone acknowledges."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "1", "linger.ms": 0})
    for number in range(count):
        producer.produce("orders", value=str(number), partition=0)
    assert producer.flush(20) == 0


def orders(view: View) -> Partitions:
    """The row of the partition in question."""
    return view.snapshot.partitions.take(view.snapshot.partitions.topic == "orders")


def isr_of(view: View) -> list[int]:
    return [broker for broker in orders(view).isr[0].tolist() if broker >= 0]


def unclean(view: View) -> list[Finding]:
    return [one for one in view.headline.findings if one.kind is FindingKind.UNCLEAN_ELECTION]


@pytest.mark.slow
def test_exactly_the_records_that_an_unclean_election_lost_are_counted(real_kafka: RealKafka) -> None:
    kafka = real_kafka
    kafka.create_topic("orders", [[0, 1]], {"unclean.leader.election.enable": "true"})
    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)
        watched.until(lambda v: "orders" in v.snapshot.partitions.topic, "the topic is seen")
        produce(kafka, 20)
        # At the high watermark, the follower has them, too: acks=1 did not wait for it.
        watched.until(lambda v: orders(v).high_watermark[0] == 20, "both have the records")
        assert isr_of(watched.views[-1]) == [0, 1]
        kafka.pause(1)
        watched.until(lambda v: isr_of(v) == [0], "the follower has left the ISR", START_TIMEOUT_S)
        produce(kafka, LOST)
        watched.until(lambda v: orders(v).log_end[0] >= 20 + LOST, "the records are read")
        kafka.kill(0)
        kafka.resume(1)
        view = watched.until(unclean, "the unclean election is said", START_TIMEOUT_S)  # type: ignore[arg-type]
    (finding,) = unclean(view)
    assert (finding.severity, finding.count, finding.partitions) == (Severity.RISK, LOST, 1)
    assert any(f"≥ {LOST} records lost" in said for said in headline(view))
