"""Producers and consumers of real client libraries, with short timeouts and with failures as exceptions."""

from typing import Any

import confluent_kafka
from kafka import KafkaConsumer

DELIVERED_WITHIN_S = 30.0
KAFKA_PYTHON_POLL_MS = 500
"""Long enough for most joins: if a poll of kafka-python 3.0 ends while a join is being answered, the consumer
forgets the join, and the member is lost."""
KAFKA_PYTHON_JOIN_MS = 30_000
"""Long enough for any join: for a first poll that ends with records."""


def producer(bootstrap: str, **settings: Any) -> confluent_kafka.Producer:
    """Create a producer of librdkafka with acks=all. Settings have underscores instead of dots."""
    own = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5, **_dotted(settings)}
    return confluent_kafka.Producer({**own, "log_level": 2})


def deliver(
    client: confluent_kafka.Producer, topic: str, values: list[bytes], partition: int = 0
) -> list[int]:
    """Produce the values, wait until they are delivered, and return their offsets. Raises an error of any of
    them."""
    offsets: list[int] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            raise confluent_kafka.KafkaException(error)
        offsets.append(message.offset())

    for value in values:
        client.produce(topic, value, partition=partition, on_delivery=delivered)
        client.poll(0)
    assert client.flush(DELIVERED_WITHIN_S) == 0, "not delivered in time"
    return offsets


def consumer(bootstrap: str, group: str, **settings: Any) -> confluent_kafka.Consumer:
    """Create a consumer of librdkafka that begins at the earliest offset and commits only on request."""
    own = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
        "log_level": 2,
    }
    return confluent_kafka.Consumer({**own, **_dotted(settings)})


def new_consumer(bootstrap: str, group: str, **settings: Any) -> confluent_kafka.Consumer:
    """Create such a consumer with the consumer protocol (KIP-848), whose times the coordinator sets."""
    own = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 1000,
        "log_level": 2,
    }
    return confluent_kafka.Consumer({**own, **_dotted(settings)})


def kafka_python_consumer(bootstrap: str, group: str | None, **settings: Any) -> KafkaConsumer:
    """Create a consumer of kafka-python that begins at the earliest offset and commits only on request."""
    own = {
        "bootstrap_servers": bootstrap.split(","),
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 500,
        "metadata_max_age_ms": 1000,
    }
    return KafkaConsumer(**{**own, **settings})


def values_of(client: confluent_kafka.Consumer) -> list[bytes]:
    """Return the values that one poll returns."""
    values: list[bytes] = []
    for message in client.consume(500, timeout=0.1):
        error = message.error()
        if error is None:
            values.append(message.value() or b"")
        elif not error.retriable() and error.code() not in HARMLESS:
            raise confluent_kafka.KafkaException(error)
    return values


HARMLESS = (
    confluent_kafka.KafkaError._TRANSPORT,
    confluent_kafka.KafkaError._ALL_BROKERS_DOWN,
    confluent_kafka.KafkaError._RESOLVE,
)
"""Errors that librdkafka reports only for information, because it retries by itself."""


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in settings.items()}
