"""Two client libraries produce, and consume in a group, while a broker crashes. No acknowledged record is
lost."""

import threading
from collections import Counter
from collections.abc import Callable

import confluent_kafka
import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.serve.clients import KAFKA_PYTHON_JOIN_MS, consumer, kafka_python_consumer, values_of
from tests.served import Served
from tests.waiting import wait_until

TOPIC_PARTITIONS = [[4, 2, 1], [1, 4, 2], [2, 5, 0], [4, 5, 3]]
RECORDS_PER_STEP = 20
STEPS_BEFORE, STEPS_AFTER = 40, 40
POLL_MS = 50


class Ledger:
    """Records which of a producer's records were acknowledged, and which failed."""

    def __init__(self) -> None:
        self.acknowledged: set[bytes] = set()
        self.failed: list[object] = []
        self.sent = 0
        self._lock = threading.Lock()

    def next(self) -> bytes:
        """Return the next record's value."""
        self.sent += 1
        return b"%d" % self.sent

    def told(self, value: bytes, error: object) -> None:
        """Record the outcome of sending one record."""
        with self._lock:
            if error is None:
                self.acknowledged.add(value)
            else:
                self.failed.append(error)


def confluent_producer(
    cluster: Served, topic: str, ledger: Ledger
) -> tuple[Callable[[], None], Callable[[], None]]:
    client = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "socket.timeout.ms": 3000,
            "log_level": 2,
        }
    )

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        ledger.told(message.value() or b"", error)

    def step() -> None:
        for _ in range(RECORDS_PER_STEP):
            value = ledger.next()
            client.produce(topic, value, on_delivery=delivered)
        client.poll(0.02)

    def finish() -> None:
        assert client.flush(60) == 0

    return step, finish


def kafka_python_producer(
    cluster: Served, topic: str, ledger: Ledger
) -> tuple[Callable[[], None], Callable[[], None]]:
    client = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","),
        acks="all",
        enable_idempotence=True,
        linger_ms=5,
        request_timeout_ms=3000,
        delivery_timeout_ms=60_000,
    )

    def step() -> None:
        for _ in range(RECORDS_PER_STEP):
            value = ledger.next()
            future = client.send(topic, value)
            future.add_callback(lambda metadata, value=value: ledger.told(value, None))
            future.add_errback(lambda error, value=value: ledger.told(value, error))

    def finish() -> None:
        client.flush(60)
        client.close()

    return step, finish


@pytest.mark.quick(1)
@pytest.mark.parametrize("library", ["confluent", "kafka-python"])
def test_nothing_acknowledged_is_lost_and_nothing_comes_twice(
    simulated_cluster: Served, library: str
) -> None:
    topic = f"failover-{library}"
    simulated_cluster.create(topic, TOPIC_PARTITIONS)
    ledger = Ledger()
    make = confluent_producer if library == "confluent" else kafka_python_producer
    step, finish = make(simulated_cluster, topic, ledger)

    read: Counter[bytes] = Counter()
    if library == "confluent":
        client = consumer(simulated_cluster.bootstrap, f"{topic}-group")
        client.subscribe([topic])

        def poll(wait_ms: int = POLL_MS) -> None:
            read.update(values_of(client))
    else:
        reader = kafka_python_consumer(simulated_cluster.bootstrap, f"{topic}-group", request_timeout_ms=8000)
        reader.subscribe([topic])

        def poll(wait_ms: int = POLL_MS) -> None:
            try:
                for batch in reader.poll(wait_ms).values():
                    read.update(record.value for record in batch)
            except KafkaError as error:
                assert error.retriable, error

    def reading() -> bool:
        poll(KAFKA_PYTHON_JOIN_MS)
        return sum(read.values()) > 0

    step()
    wait_until(reading, "the group reads")
    for _ in range(STEPS_BEFORE):
        step()
        poll()
    before_the_crash = len(ledger.acknowledged)
    simulated_cluster.do("crash 4")
    for _ in range(STEPS_AFTER):
        step()
        poll()
    wait_until(lambda: simulated_cluster.partition(topic).leader_id == 2, "another replica leads")
    for _ in range(STEPS_AFTER):
        step()
        poll()
    finish()
    assert ledger.failed == []
    assert len(ledger.acknowledged) == ledger.sent > before_the_crash

    def all_read() -> bool:
        poll()
        return ledger.acknowledged <= set(read)

    wait_until(all_read, "everything acknowledged is read")
    assert {value: n for value, n in read.items() if n > 1} == {}, "in the group, nothing twice"
    ends = sum(
        simulated_cluster.offset(leader, topic, p).offset for p, leader in leaders(simulated_cluster, topic)
    )
    assert ends == ledger.sent, "in the logs, nothing twice"
    (client if library == "confluent" else reader).close()


def leaders(cluster: Served, topic: str) -> list[tuple[int, int]]:
    return [(p.partition_index, p.leader_id) for p in cluster.metadata(topic).partitions]
