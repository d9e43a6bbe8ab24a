"""An incident of a real cluster: a broker is killed while a producer with acks=1 writes to it."""

from secrets import token_hex

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from kview.derive.view import View
from kview.model.address import Address
from kview.model.incidents import Incident, PhaseKind
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from tests.observe.observing import Watched, observing
from tests.real_kafka.cluster import RealKafka
from tests.waiting import wait_until

PARTITIONS = 3
KILLED = 2


def of_it(view: View) -> Incident | None:
    """The incident of the killed broker."""
    return next((one for one in view.incidents if KILLED in one.brokers), None)


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
                message = consumer.poll(20)
                assert message is not None and message.error() is None
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
        {"bootstrap.servers": real_kafka.bootstrap_servers, "acks": 1, "retries": 0, "linger.ms": 0}
    )
    servers = [Address("127.0.0.1", real_kafka.address(broker).port) for broker in real_kafka.broker_ids]
    with observing(servers, ObserveSettings(interval_s=0.5)) as observer:
        watched = Watched(observer)

        def write(view: View) -> None:
            for number in range(300):
                value = f"{view.snapshot.observation.sequence}-{number}".encode()
                sent.add(value)
                producer.produce(topic, value=value, partition=number % PARTITIONS, on_delivery=told)
            producer.poll(0)

        for _ in range(6):
            write(watched.look())
        assert not watched.views[-1].incidents
        real_kafka.kill(KILLED)
        try:

            def elected(view: View) -> bool:
                write(view)
                found = of_it(view)
                led = found.phase(PhaseKind.ELECTED) if found else None
                return led is not None and led.is_complete

            watched.until(elected, "other leaders", 60)
        finally:
            real_kafka.restart(KILLED)
        last = watched.until(lambda view: bool((one := of_it(view)) and not one.is_open), "a full ISR", 120)
    producer.flush(30)
    incident = of_it(last)
    assert incident is not None
    kinds = [phase.kind for phase in incident.phases]
    assert kinds[0] is PhaseKind.SILENT and kinds[-1] is PhaseKind.ISR_FULL
    assert {PhaseKind.FROZEN, PhaseKind.FENCED, PhaseKind.ELECTED, PhaseKind.BACK} <= set(kinds)
    times = [phase.at_ms for phase in incident.phases]
    assert times == sorted(times)
    hit = {(one.topic, one.partition): one for one in incident.hit}
    moved = hit[topic, 2]
    assert (moved.leader_before, moved.leader_after, KILLED in moved.isr_after) == (KILLED, 0, False)
    assert moved.epoch_after > moved.epoch_before and KILLED not in hit[topic, 0].isr_after
    lost = sent - readable(real_kafka, topic)
    mine = [one.gone for one in incident.hit if one.topic == topic and one.gone != UNKNOWN]
    assert sum(mine) <= len(lost), f"kview says ≥ {sum(mine)}, and {len(lost)} cannot be read"
