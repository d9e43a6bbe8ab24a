"""Requests that get an error, wait or lose their connection, and the log of those that came."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka import KafkaProducer
from kafka.protocol.consumer import ListOffsetsRequest

from kview.serve.apis import all_apis
from kview.serve.error_answers import LISTED, PARTITIONED, READS, can_fail, response_class, whole
from kview.testing import Cluster, ClusterError
from tests.real_kafka.asking import ask

API_VERSIONS = 18
"""kafka-python reads its answer with the header."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def kafka(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.heal()


def write(kafka: Cluster, topic: str, partition: int, value: bytes, **options: object) -> str:
    """Write a record with librdkafka. Return the error, "" if there was none."""
    told: list[str] = []
    client = Producer({"bootstrap.servers": kafka.bootstrap_servers, "retry.backoff.ms": 10, **options})
    client.produce(
        topic, value, partition=partition, on_delivery=lambda error, _: told.append(str(error or ""))
    )
    client.flush(30)
    return told[0]


def end(kafka: Cluster, topic: str, partition: int = 0) -> int:
    """The partition's high watermark."""
    client = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "nobody"})
    try:
        return client.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)[1]
    finally:
        client.close()


def test_an_error_that_passes_is_tried_again_and_the_record_is_written_once(kafka: Cluster) -> None:
    topic = kafka.new_topic()
    kafka.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2, topic=topic)
    assert write(kafka, topic, 0, b"x") == ""
    assert end(kafka, topic) == 1
    assert [request.rule for request in kafka.requests("Produce", topic)] == ["fail", "fail", ""]


def test_an_error_that_is_final_reaches_the_client_and_nothing_is_written(kafka: Cluster) -> None:
    topic = kafka.new_topic(partitions=2)
    kafka.fail("Produce", 29, topic=topic, partition=0)
    assert "authorization" in write(kafka, topic, 0, b"x").lower()
    assert write(kafka, topic, 1, b"x") == "", "another partition"
    assert (end(kafka, topic, 0), end(kafka, topic, 1)) == (0, 1)
    kafka.undo()
    assert write(kafka, topic, 0, b"x") == ""


def test_of_a_request_about_several_partitions_those_that_are_not_meant_are_handled(kafka: Cluster) -> None:
    topic = kafka.new_topic(partitions=3, assignment=[[0], [0], [0]])
    kafka.fail("Produce", "NOT_ENOUGH_REPLICAS", times=1, topic=topic, partition=1)
    client = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=200, retry_backoff_ms=10)
    for sent in [client.send(topic, b"x", partition=partition) for partition in range(3)]:
        sent.get(30)
    client.close()
    assert [end(kafka, topic, partition) for partition in range(3)] == [1, 1, 1]
    places = [set(request.partitions) for request in kafka.requests("Produce")]
    assert places == [{f"{topic}-{n}" for n in range(3)}, {f"{topic}-1"}], "only that one is sent again"


def test_a_batch_whose_answer_is_lost_is_sent_twice_and_written_once_if_idempotent(kafka: Cluster) -> None:
    for idempotent, copies in ((True, 1), (False, 2)):
        topic = kafka.new_topic()
        kafka.drop("Produce", after=True, times=1, topic=topic)
        assert write(kafka, topic, 0, b"x", **{"enable.idempotence": idempotent}) == ""
        assert end(kafka, topic) == copies
        first, second = (request.batches[0] for request in kafka.requests("Produce", topic))
        assert first.producer_id == second.producer_id and (first.producer_id >= 0) == idempotent
        assert (first.sequence, first.records) == (second.sequence, second.records)


def test_a_request_whose_connection_is_lost_before_took_no_effect(kafka: Cluster) -> None:
    topic = kafka.new_topic()
    kafka.drop("Produce", times=3, topic=topic)
    assert write(kafka, topic, 0, b"x", **{"enable.idempotence": False}) == ""
    assert end(kafka, topic) == 1 and len(kafka.requests("Produce", topic)) == 4


def test_every_api_is_logged_in_every_version_that_clients_send(kafka: Cluster) -> None:
    """Also where the decoder of an API makes something else of a request than the codec does."""
    topic = kafka.new_topic()
    assert write(kafka, topic, 0, b"x") == ""
    host, port = kafka.bootstrap(kafka.leader(topic)).split(":")
    for version in range(1, 11):
        of_topic = ListOffsetsRequest.ListOffsetsTopic
        asked = of_topic.ListOffsetsPartition(version=version, partition_index=0, timestamp=-1)
        entry = of_topic(version=version, name=topic, partitions=[asked])
        request = ListOffsetsRequest(version=version, replica_id=-1, topics=[entry])
        assert ask((host, int(port)), request).topics[0].partitions[0].offset == 1
    logged = kafka.requests("ListOffsets", topic)
    assert [request.version for request in logged] == list(range(1, 11))


def test_what_is_listed_in_a_request_fails_with_a_row_each(kafka: Cluster) -> None:
    kafka.fail("CreateTopics", "POLICY_VIOLATION", times=1)
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for made in client.create_topics([NewTopic("a", 1), NewTopic("b", 1)]).values():
        with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
            made.result(10)


def test_without_an_answer_an_error_ends_the_connection(kafka: Cluster) -> None:
    topic = kafka.new_topic()
    kafka.drop("Produce", times=1, topic=topic)
    kafka.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=1, topic=topic)
    for _ in range(3):
        write(kafka, topic, 0, b"x", acks=0)
    kafka.wait(lambda: end(kafka, topic) == 1, "the third one")


def test_a_delay_is_the_clusters_time(kafka: Cluster) -> None:
    topic = kafka.new_topic()
    kafka.delay("Produce", 20_000, times=1)
    client = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    client.produce(topic, b"x")
    kafka.wait(lambda: client.poll(0.01) or kafka.requests("Produce"), "the request")
    assert end(kafka, topic) == 0 and kafka.requests("Produce")[0].rule == "delay"
    kafka.advance(20)
    assert client.flush(10) == 0 and end(kafka, topic) == 1


def test_a_share_of_the_requests(kafka: Cluster) -> None:
    topic = kafka.new_topic()
    kafka.fail("Produce", "REQUEST_TIMED_OUT", percent=50)
    for _ in range(20):
        assert write(kafka, topic, 0, b"x") == ""
    met = [request.rule for request in kafka.requests("Produce")]
    assert met.count("") == 20 and 5 < met.count("fail") < 60


def test_a_whole_answer_and_one_of_rows_fail_too(kafka: Cluster) -> None:
    topic, group = kafka.new_topic(), kafka.new_group()
    assert write(kafka, topic, 0, b"x") == ""
    for api in (
        "FindCoordinator",
        "JoinGroup",
        "Heartbeat",
        "Metadata",
        "ApiVersions",
        "Fetch",
        "ListOffsets",
    ):
        kafka.fail(api, "REQUEST_TIMED_OUT", times=1)
    client = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
         "retry.backoff.ms": 10, "fetch.error.backoff.ms": 10}
    )  # fmt: skip
    client.subscribe([topic])
    found = None
    while found is None or found.error():
        found = client.poll(1)
    assert found.value() == b"x"
    client.close()
    met = {request.api for request in kafka.requests() if request.rule}
    assert met >= {"FindCoordinator", "JoinGroup", "Metadata", "Fetch"}


def test_an_error_of_a_commit_is_that_partitions(kafka: Cluster) -> None:
    topic, group = kafka.new_topic(), kafka.new_group()
    kafka.fail("OffsetCommit", "OFFSET_METADATA_TOO_LARGE", times=1, topic=topic)
    client = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    with pytest.raises(KafkaException, match="OFFSET_METADATA_TOO_LARGE"):
        client.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    client.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    client.close()
    assert [request.group for request in kafka.requests("OffsetCommit")] == [group, group]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda kafka: kafka.fail("Produze", 6), "there is no API 'Produze': available APIs: Produce, Fetch"),
        (lambda kafka: kafka.fail("Produce", "NOT_LEADER"), "did you mean NOT_LEADER_OR_FOLLOWER"),
        (lambda kafka: kafka.fail("Produce", 0), "'0' is not one of Kafka's errors"),
        (lambda kafka: kafka.fail("Produce", 6, topc="x"), "'topc=x' does not say which requests"),
        (lambda kafka: kafka.fail("Produce", 6, partition=1), "without topic="),
        (lambda kafka: kafka.fail("DescribeAcls", 6, topic="t"), "cannot be told apart by topic"),
        (lambda kafka: kafka.fail("Produce", 99_999), "'99999' is not one of Kafka's errors"),
        (lambda kafka: kafka.delay("Produce", -5), "-5 is not a time to wait"),
        (lambda kafka: kafka.delay("Produce", float("inf")), "inf is not a time to wait"),
        (lambda kafka: kafka.advance(1e9), "is not a time to let pass"),
        (lambda kafka: kafka.fail("Produce", 6, topic="x" * 5_000), "too long: it has"),
        (lambda kafka: kafka.film() or kafka.record("a\0b"), "cannot be a folder"),
        (lambda kafka: kafka.bootstrap(7), "there is no broker 7"),
        (lambda kafka: kafka.do("drop Produce sometime all"), "write before or after"),
    ],
)
def test_what_is_wrong_is_a_sentence(kafka: Cluster, wrong: object, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        wrong(kafka)  # type: ignore[operator]


@pytest.mark.parametrize("api", [api for api in all_apis() if api not in READS and api not in PARTITIONED])
def test_an_error_alone_is_a_whole_answer_of_every_version(api: int) -> None:
    first, last = all_apis()[api].versions
    for version in range(first, last + 1):
        if api not in (API_VERSIONS, *LISTED) and can_fail(api, version):
            body = bytes(whole(api, version, None, 29).encode(version=version))
            assert response_class(api, version).decode(body).error_code == 29
