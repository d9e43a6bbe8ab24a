"""Members of groups of all kinds, as real clients. Those without a client are in `protocol_members`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from confluent_kafka import Consumer, KafkaException, ShareConsumer, TopicPartition

from kview.model.states import GroupType
from tests.real_kafka.cluster import RealKafka

NOT_FOR_SHARE = ("auto.offset.reset", "auto.commit.interval.ms")
RUNS = {"orders-sink": (-1, 0, 1), "audit-source": (0,)}
"""Tasks of a Connect worker by connector."""

Taken = Callable[[int], object]
"""Told how many records a member was given."""


@contextmanager
def polling(step: Callable[[], object], end: Callable[[], object]) -> Iterator[None]:
    """Call `step` again and again meanwhile; a step that the cluster refuses is followed by the next."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            with suppress(KafkaException):  # such as a commit before the coordinator is known
                step()
        end()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def settings_of(kafka: RealKafka, kind: GroupType, group: str) -> dict[str, object]:
    """Return the settings of a member."""
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "log_level": 0,
        "group.id": group,
        "client.id": f"{kind}-app",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
        "fetch.min.bytes": 100_000,  # an answer every half second, not one for each record
    }


def consumer(kafka: RealKafka, kind: GroupType, group: str, topic: str) -> AbstractContextManager[None]:
    """A consumer that subscribes with the classic or the consumer protocol."""
    settings = {"group.protocol": kind.value, "client.rack": "R1"}
    member = Consumer(settings_of(kafka, kind, group) | settings)
    member.subscribe([topic])
    return polling(lambda: member.poll(0.1), member.close)


def simple_job(
    kafka: RealKafka,
    group: str,
    topic: str,
    partitions: int,
    committed: Callable[[int, int], object] = max,
    at_once: int = 10,
) -> AbstractContextManager[None]:
    """A job that assigns partitions to itself and commits after every `at_once` records of each.

    It is in no group's list of members. `committed` is told each partition and offset.
    """
    job = Consumer(settings_of(kafka, GroupType.SIMPLE, group) | {"enable.auto.commit": False})
    job.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])

    def read_and_commit() -> None:
        message = job.poll(0.1)
        if message is None or message.error() is not None or (message.offset() or 0) % at_once:
            return
        for one in job.commit(message=message, asynchronous=False) or []:
            committed(one.partition, one.offset)

    return polling(read_and_commit, job.close)


def share_consumer(
    kafka: RealKafka, group: str, topic: str, taken: Taken = abs
) -> AbstractContextManager[None]:
    """A member of a share group. `taken` is told how many records it was given at a time."""
    settings = settings_of(kafka, GroupType.SHARE, group)
    share = ShareConsumer({key: value for key, value in settings.items() if key not in NOT_FOR_SHARE})
    share.subscribe([topic])
    return polling(lambda: taken(len(share.poll(0.1))), share.close)
