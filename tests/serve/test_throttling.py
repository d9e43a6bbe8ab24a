"""Quotas throttle clients: the answer says how long, and until then the connection handles nothing."""

import gc
import time
from typing import Any

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest, CreateTopicsRequest, CreateTopicsResponse
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from kview.serve.call import Call
from kview.serve.throttles import NAME_MAX, Throttles
from kview.simulate.client_quotas import CONSUMER, MUTATIONS, PRODUCER, REQUESTS, Limit, TokenBucket
from kview.simulate.records import encode_batch
from kview.simulate.requests.quota_changes import QuotaChange
from tests.serve.secured import Client
from tests.serve.unwired import Unwired, UnwiredClient
from tests.served import Served
from tests.simulate.engine import TOPIC, cluster_of, go

ME = (("client-id", "tests"),)
LIMIT = 1_000.0


def limited(key: str, limit: float = LIMIT, partitions: int = 1) -> Unwired:
    """A cluster in which clients named `tests` may use so much a second."""
    cluster = cluster_of(partitions=partitions, settings={"min.insync.replicas": "1"})
    cluster.quotas.alter([QuotaChange(ME, ((key, limit),))], False)
    go(cluster, 1)
    return Unwired(cluster)


def produce(wire: Unwired, client: UnwiredClient, size: int, acks: int = 1) -> int:
    """Write a record of so many bytes, and return the throttle time in the answer, −1 without one."""
    batch = encode_batch([(b"", bytes(size), wire.cluster.kernel.now_us // 1000)])
    per_topic = ProduceRequest.TopicProduceData
    data = per_topic.PartitionProduceData(version=9, index=0, records=batch)
    request = ProduceRequest(
        version=9,
        transactional_id=None,
        acks=acks,
        timeout_ms=1000,
        topic_data=[per_topic(version=9, name=TOPIC, partition_data=[data])],
    )
    wire.ask(client, request)
    answer = client.answers[-1]
    if answer is None:
        return -1
    return int(ProduceResponse.decode(answer[9:], version=9).throttle_time_ms)


def fetch(
    wire: Unwired,
    client: UnwiredClient,
    offset: int = 0,
    partitions: int = 1,
    session: tuple[int, int] = (0, -1),
) -> Any:
    """Read, and return the answer. `session` is (id, epoch)."""
    per_topic = FetchRequest.FetchTopic
    rows = [
        per_topic.FetchPartition(
            version=11,
            partition=index,
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=1 << 20,
        )
        for index in range(partitions)
    ]
    request = FetchRequest(
        version=11,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=[per_topic(version=11, topic=TOPIC, partitions=rows)] if rows else [],
        forgotten_topics_data=[],
        rack_id="",
    )
    wire.ask(client, request)
    answer = client.answers[-1]
    assert answer is not None
    return FetchResponse.decode(answer[8:], version=11)


def test_a_producer_above_its_quota_is_muted_for_the_time_that_it_is_told() -> None:
    wire, client = limited(PRODUCER), UnwiredClient(0)
    assert produce(wire, client, 5_000) == 0 and not client.muted
    throttle_ms = produce(wire, client, 15_000)
    assert throttle_ms == pytest.approx(10_000, abs=400), "20,000 bytes at 1,000 a second, less 10 s"
    assert client.muted
    go(wire.cluster, throttle_ms / 1000 - 0.01)
    assert client.muted
    go(wire.cluster, 0.02)
    assert not client.muted
    go(wire.cluster, 12)
    assert produce(wire, client, 5_000) == 0


def test_a_mute_keeps_nothing_of_its_request_and_ends_with_the_connection() -> None:
    wire, client = limited(PRODUCER), UnwiredClient(0)
    produce(wire, client, 200_000)
    assert client.muted
    kept = [each for each in gc.get_objects() if isinstance(each, Call) and each.cluster is wire.cluster]
    assert not kept
    client.leave()
    go(wire.cluster, 1_000)
    assert not client.failures and not wire.event_failures


def test_a_quota_that_is_not_a_number_limits_nothing() -> None:
    wire, client = limited(CONSUMER, float("nan")), UnwiredClient(0)
    for _ in range(2):
        produce(wire, client, 500)
    go(wire.cluster, 1)
    answer = fetch(wire, client)
    assert answer.throttle_time_ms == 0 and answer.responses[0].partitions[0].records
    bucket = TokenBucket()
    bucket.record(1, float("nan"), 1_000)
    bucket.record(11, 1.0, 20_000)
    assert bucket.throttle_ms(1.0, 20_000) == 0 and bucket.throttle_ms(1.0, 20_000) == 0
    bucket.record(1, 1.0, 20_000)
    assert bucket.throttle_ms(1.0, 20_000) == 1_000, "the next quota counts"


def test_long_names_of_clients_are_cut() -> None:
    throttles = Throttles()
    first, second = (Limit(1.0, ("", NAME_MAX * "x" + end)) for end in ("a", "b"))
    assert throttles.rate(PRODUCER, first) is throttles.rate(PRODUCER, second)
    assert throttles.rate(PRODUCER, first) is not throttles.rate(PRODUCER, Limit(1.0, ("", "x")))


def test_a_producer_without_answers_is_muted_too() -> None:
    wire, client = limited(PRODUCER), UnwiredClient(0)
    assert produce(wire, client, 20_000, acks=0) == -1
    assert client.muted


def test_another_client_has_its_own_quota() -> None:
    wire, client = limited(PRODUCER), UnwiredClient(0)
    wire.cluster.quotas.alter([QuotaChange(ME, ((PRODUCER, None),))], False)
    wire.cluster.quotas.alter([QuotaChange((("client-id", "other"),), ((PRODUCER, 1.0),))], False)
    go(wire.cluster, 1)
    assert produce(wire, client, 20_000) == 0


def test_a_consumer_above_its_quota_gets_nothing_and_then_the_records() -> None:
    wire, writer, reader = limited(CONSUMER), UnwiredClient(0), UnwiredClient(0)
    for _ in range(3):
        assert produce(wire, writer, 6_000) == 0
    go(wire.cluster, 1)
    first = fetch(wire, reader)
    assert first.throttle_time_ms == 0
    assert len(first.responses[0].partitions[0].records) < 10_000, "one batch, not to be throttled by itself"
    throttled = fetch(wire, reader, 1)
    assert throttled.responses == [] and 0 < throttled.throttle_time_ms < 4_000
    assert reader.muted
    go(wire.cluster, throttled.throttle_time_ms / 1000 + 0.01)
    assert not reader.muted
    go(wire.cluster, 11)
    assert fetch(wire, reader, 1).responses[0].partitions[0].records


def test_a_session_without_news_uses_only_the_bytes_that_it_gets() -> None:
    wire, client = limited(CONSUMER, partitions=100), UnwiredClient(0)
    began = fetch(wire, client, partitions=100, session=(0, 0))
    assert (began.throttle_time_ms, len(began.responses[0].partitions)) == (0, 100)
    for epoch in range(1, 6):
        answer = fetch(wire, client, partitions=0, session=(began.session_id, epoch))
        assert (answer.error_code, answer.throttle_time_ms, answer.responses) == (0, 0, [])


def test_a_request_that_is_not_limited_is_answered_at_once() -> None:
    wire, client = limited(PRODUCER), UnwiredClient(0)
    wire.ask(client, ApiVersionsRequest(version=0))
    assert len(client.answers) == 1 and not client.muted


def create(wire: Unwired, client: UnwiredClient, name: str, partitions: int, version: int) -> tuple[int, int]:
    """Create a topic, and return its error and the throttle time in the answer."""
    per_topic = CreateTopicsRequest.CreatableTopic
    topic = per_topic(
        version=version,
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=[],
        configs=[],
    )
    request = CreateTopicsRequest(version=version, topics=[topic], timeout_ms=1000, validate_only=False)
    before = len(client.answers)
    wire.ask(client, request)
    go(wire.cluster, 0.1)
    assert len(client.answers) == before + 1
    answer = client.answers[-1]
    assert answer is not None
    decoded = CreateTopicsResponse.decode(answer[8 + (version >= 5) :], version=version)
    return decoded.topics[0].error_code, decoded.throttle_time_ms


def test_changes_above_their_quota_are_refused_or_throttled_by_the_version() -> None:
    wire, client = limited(MUTATIONS, 1.0), UnwiredClient(0)
    assert create(wire, client, "first", 20, 7) == (0, 0), "above the 11 credits, but not at first"
    error, throttle_ms = create(wire, client, "second", 1, 7)
    assert error == 89 and throttle_ms == pytest.approx(9_000, abs=300)
    assert client.muted and "second" not in wire.cluster.metadata.image.topics
    go(wire.cluster, throttle_ms / 1000)
    assert not client.muted
    error, throttle_ms = create(wire, client, "third", 5, 4)
    assert error == 0 and throttle_ms == pytest.approx(5_000, abs=300)
    assert "third" in wire.cluster.metadata.image.topics


@pytest.mark.parametrize("version", [0, 12])
def test_the_time_that_requests_take_is_limited_and_waits_are_short(version: int) -> None:
    wire, client = limited(REQUESTS, 1.0), UnwiredClient(0)
    wire.ask(client, MetadataRequest(version=version, topics=[], allow_auto_topic_creation=False))
    assert not client.muted
    client.worked_s = 0.5
    wire.ask(client, MetadataRequest(version=version, topics=[], allow_auto_topic_creation=False))
    answer = client.answers[-1]
    assert answer is not None and client.muted
    if version:
        assert MetadataResponse.decode(answer[9:], version=version).throttle_time_ms == 1_000
    go(wire.cluster, 1.01)
    assert not client.muted
    client.worked_s = 0.0
    wire.ask(client, ApiVersionsRequest(version=1))
    answer = client.answers[-1]
    assert answer is not None
    assert ApiVersionsResponse.decode(answer[8:], version=1).throttle_time_ms == 1_000, "50 % in 10 s"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_connections_above_the_quota_of_their_address_end(simulated_cluster: Served, host: str) -> None:
    per_entity = AlterClientQuotasRequest.EntryData
    address = per_entity.EntityData(version=1, entity_type="ip", entity_name=host)

    def quota(client: Client, remove: bool) -> None:
        rate = per_entity.OpData(version=1, key="connection_creation_rate", value=1.0, remove=remove)
        entry = per_entity(version=1, entity=[address], ops=[rate])
        answer = client.send(AlterClientQuotasRequest(version=1, entries=[entry], validate_only=False))
        assert [row.error_code for row in answer.entries] == [0]

    with Client(simulated_cluster.addresses[0]) as admin:
        quota(admin, remove=False)
        served = refused = 0
        try:
            while not refused:
                with Client(simulated_cluster.addresses[0]) as client:
                    try:
                        client.send(ApiVersionsRequest(version=0))
                        served += 1
                    except ConnectionResetError:
                        refused += 1
        finally:
            quota(admin, remove=True)
    assert served == 10 or (host == "localhost" and served < 10), "one in each of 10 s, and those of before"
    with Client(simulated_cluster.addresses[0]) as client:
        client.send(ApiVersionsRequest(version=0))


def test_a_muted_connection_handles_its_next_request_later(simulated_cluster: Served) -> None:
    simulated_cluster.create("throttled", [[0]])
    per_entity = AlterClientQuotasRequest.EntryData
    name = per_entity.EntityData(version=1, entity_type="client-id", entity_name="tests")
    rate = per_entity.OpData(version=1, key=PRODUCER, value=10_000.0, remove=False)
    batch = encode_batch([(b"", bytes(103_000), 1_700_000_000_000)])
    per_topic = ProduceRequest.TopicProduceData
    data = per_topic.PartitionProduceData(version=9, index=0, records=batch)
    request = ProduceRequest(
        version=9,
        transactional_id=None,
        acks=1,
        timeout_ms=1000,
        topic_data=[per_topic(version=9, name="throttled", partition_data=[data])],
    )
    with Client(simulated_cluster.addresses[0]) as client:
        entry = per_entity(version=1, entity=[name], ops=[rate])
        client.send(AlterClientQuotasRequest(version=1, entries=[entry], validate_only=False))
        throttle_ms = client.send(request).throttle_time_ms
        assert 200 < throttle_ms < 500, "103,000 bytes are 300 ms too many"
        began_s = time.monotonic()
        client.send(ApiVersionsRequest(version=0))
        waited_ms = (time.monotonic() - began_s) * 1000
        assert waited_ms > throttle_ms - 100
        gone = per_entity.OpData(version=1, key=PRODUCER, value=0.0, remove=True)
        entry = per_entity(version=1, entity=[name], ops=[gone])
        client.send(AlterClientQuotasRequest(version=1, entries=[entry], validate_only=False))
