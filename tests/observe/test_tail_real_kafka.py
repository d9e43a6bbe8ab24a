"""The end of a topic of Apache Kafka, followed: each record passes once, whatever its size or transaction."""

import uuid

import pytest
from confluent_kafka import Producer

from kview.model.inspection import Isolation
from kview.observe.observer import ObserveSettings
from tests.observe.observing import observing
from tests.observe.test_tail import Following, values
from tests.real_kafka.cluster import RealKafka
from tests.waiting import wait_until

SETTINGS = ObserveSettings(interval_s=0.5)


def write(kafka: RealKafka, topic: str, *records: tuple[int, bytes | None], **more: object) -> None:
    """Write records to partitions."""
    client = Producer({"bootstrap.servers": kafka.bootstrap_servers, **more})
    for partition, value in records:
        client.produce(topic, value=value, key=b"k", partition=partition)
    assert client.flush(30) == 0


@pytest.mark.slow  # tests/observe/test_tail.py asks the simulated cluster the same
@pytest.mark.real_cluster
def test_every_record_passes_once(real_kafka: RealKafka) -> None:
    topic = f"tail-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(topic, [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    servers = [real_kafka.address(broker) for broker in real_kafka.broker_ids]
    with observing(servers, SETTINGS) as observer:
        observer.observe()
        tail = Following(observer, topic, count=500, most_bytes=1)
        tail.again()
        written = 0
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            write(
                real_kafka,
                topic,
                *((n % 3, b"%d " % n * 20) for n in range(90)),
                **{"compression.type": codec},
            )
            written += 90
            answer = tail.again()
            assert (answer.passed, answer.skipped, answer.unread) == (90, 0, ()), codec
            assert len(answer.records) == 90
        # Batches that are larger than what is asked for come whole, one at a leader each time.
        write(real_kafka, topic, (0, b"small"), (0, b"x" * 900_000), (1, b"y" * 900_000), (2, None))
        first = len(tail.answers)
        wait_until(lambda: sum(each.passed for each in [tail.again(), *tail.answers[first:-1]]) >= 4, "them")
        seen = [value for each in tail.answers[first:] for value in values(each)]
        assert sorted(len(value or b"") for value in seen) == [0, 5, 900_000, 900_000]
        # What does not fit is passed over.
        write(real_kafka, topic, *((0, b"%4d" % n * 500) for n in range(400)), **{"batch.size": 4_000})
        answer = tail.again()
        rest = tail.again()
        assert (
            answer.passed + answer.skipped + rest.passed + rest.skipped == 400 and answer.cost.bytes < 400_000
        )
        # An open transaction holds the end back. If it is aborted, its records do not count.
        uncommitted = Following(observer, topic, isolation=Isolation.READ_UNCOMMITTED)
        uncommitted.again()
        client = Producer({"bootstrap.servers": real_kafka.bootstrap_servers, "transactional.id": topic})
        client.init_transactions(30)
        for end, expected in (
            (client.commit_transaction, [b"in it", b"behind"]),
            (client.abort_transaction, [b"behind"]),
        ):
            client.begin_transaction()
            client.produce(topic, b"in it", partition=1)
            assert client.flush(30) == 0
            write(real_kafka, topic, (1, b"behind"))
            held = tail.again()
            assert held.records == () and [
                (each.partition, each.end - each.offset) for each in held.held
            ] == [(1, 2)]
            assert values(uncommitted.again()) == [b"in it", b"behind"]
            end(30)
            first = len(tail.answers)

            def done(first: int = first, most: int = len(expected)) -> bool:
                tail.again()
                return sum(each.passed for each in tail.answers[first:]) >= most

            wait_until(done, "the end of the transaction")
            answers = tail.answers[first:]
            assert [value for each in answers for value in values(each)] == expected
            assert sum(each.passed for each in answers) == len(expected)
            assert sum(each.skipped for each in answers) == 0
            uncommitted.again()
