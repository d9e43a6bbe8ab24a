"""Java's own applications count every record exactly once, while three brokers crash one after the other: the
leader of what they read, the coordinator of their group and that of their transactions."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
from confluent_kafka import Consumer, Producer

from kview.testing import Cluster
from tests.conftest import jars_of
from tests.exactly_once.java import END_TIMEOUT_S, Java
from tests.real_kafka.jars import STREAMS_4
from tests.real_kafka.nodes import free_ports
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PART = 150
"""Records that are written before, or while, a broker is down."""

LAST_S = 1.0
"""How long a reader waits for records that there must not be."""


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    one = {name: "1" for name in ("offsets.topic.num.partitions", "transaction.state.log.num.partitions")}
    with Cluster(
        settings={
            **one,
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "group.streams.initial.rebalance.delay.ms": "0",
        }
    ) as cluster:
        yield cluster


class Committed:
    """Reads what is committed in a topic."""

    def __init__(self, kafka: Cluster, topic: str) -> None:
        self._client = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": kafka.new_group(),
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._client.subscribe([topic])
        self.found: list[tuple[str, int]] = []

    def read(self, timeout_s: float = 0.2) -> int:
        """Read what there is now, and return how many records have been read so far."""
        for message in self._client.consume(500, timeout_s):
            assert not message.error(), message.error()
            key, value = message.key() or b"", message.value()
            assert value is not None
            self.found.append((bytes(key).decode(), int(value)))
        return len(self.found)

    def until(self, count: int) -> None:
        """Read until there are so many records."""
        wait_until(lambda: self.read() >= count, f"{count} records that are committed")

    def no_more(self) -> None:
        """Read what has come too much, and close the reader."""
        until_s = time.monotonic() + LAST_S
        while time.monotonic() < until_s:
            self.read()
        self._client.close()


def crash_three(kafka: Cluster, topic: str, goes_on: Callable[[], None]) -> None:
    """Crash three brokers, one after the other. While one is down, the application `goes_on`."""
    for crashing in (topic, "__consumer_offsets", "__transaction_state"):
        broker = kafka.leader(crashing)
        kafka.crash(broker)
        kafka.fence_now(broker)
        goes_on()
        kafka.start(broker)
        kafka.wait_full_isr()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_streams_application_counts_each_record_once(
    kafka: Cluster, kafka_runtime: tuple[Path, Path], tmp_path: Path, protocol: str
) -> None:
    java, jars = kafka_runtime
    counter = Java.compiled("CountOnce.java", java, [jars, jars_of(java, STREAMS_4)], tmp_path)
    for name in ("count-in", "count-out"):
        kafka.create_topic(name, partitions=3)
    client = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    written = 0

    def write(count: int) -> None:
        nonlocal written
        for number in range(written, written + count):
            client.produce("count-in", str(number), partition=number % 3)
        assert client.flush(60) == 0
        written += count

    with counter.running(
        "CountOnce", kafka.bootstrap_servers, "count", protocol, str(tmp_path / "state")
    ) as application:
        counts = Committed(kafka, "count-out")
        write(PART)
        counts.until(PART)

        def goes_on() -> None:
            before = len(counts.found)
            write(PART)
            counts.until(before + PART // 3)

        crash_three(kafka, "count-in", goes_on)
        counts.until(written)
        counts.no_more()
        application.communicate(b"\n", END_TIMEOUT_S)
        assert application.returncode == 0
    by_digit = {digit: [count for key, count in counts.found if key == digit] for digit in "0123456789"}
    assert by_digit == {digit: list(range(1, written // 10 + 1)) for digit in "0123456789"}


def test_a_connect_source_writes_each_number_once(
    kafka: Cluster, kafka_runtime: tuple[Path, Path], tmp_path: Path
) -> None:
    java, jars = kafka_runtime
    connect = Java.compiled("NumberSource.java", java, [jars], tmp_path)
    kafka.create_topic("numbers", partitions=3)
    (port,) = free_ports(1)
    count = 10 * PART
    worker = tmp_path / "worker.properties"
    worker.write_text("".join(f"{key}={value}\n" for key, value in worker_settings(kafka, port).items()))
    with connect.running("org.apache.kafka.connect.cli.ConnectDistributed", str(worker)) as process:
        connector = {
            "connector.class": "NumberSource",
            "tasks.max": "1",
            "topic": "numbers",
            "count": str(count),
        }
        wait_until(lambda: put(port, {**connector, "exactly.once.support": "required"}), "the worker")
        numbers = Committed(kafka, "numbers")
        numbers.until(PART)
        crash_three(kafka, "numbers", lambda: numbers.until(len(numbers.found) + PART // 3))
        numbers.until(count)
        numbers.no_more()
        assert process.poll() is None
    assert sorted(number for _, number in numbers.found) == list(range(count))


def worker_settings(kafka: Cluster, port: int) -> dict[str, str]:
    """A Connect worker's settings, with a REST interface at `port`."""
    topics = {
        key: value
        for name in ("offset", "status", "config")
        for key, value in {
            f"{name}.storage.topic": f"connect-{name}s",
            f"{name}.storage.partitions": "1",
        }.items()
    }
    del topics["config.storage.partitions"]
    converter = "org.apache.kafka.connect.storage.StringConverter"
    return {
        **topics,
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "connect",
        "exactly.once.source.support": "enabled",
        "key.converter": converter,
        "value.converter": converter,
        "listeners": f"http://127.0.0.1:{port}",
        "offset.flush.interval.ms": "500",
        "plugin.discovery": "only_scan",
    }


def put(port: int, connector: dict[str, str]) -> bool:
    """Create a connector. Return whether the worker has."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/numbers/config",
        json.dumps(connector).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bool(answer.status in (200, 201))
    except (URLError, OSError):
        return False
