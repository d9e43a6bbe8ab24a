"""Records and settings on demand, over sockets against the simulated cluster, with batches of librdkafka."""

import time
import uuid
from pathlib import Path

import pytest
from kafka.protocol.admin import DeleteRecordsRequest, IncrementalAlterConfigsRequest, ListGroupsRequest

from kview.model.inspection import (
    DirectoriesRequest,
    FirstRecordRequest,
    InspectionFailureKind,
    RecordsAnswer,
    RecordsRequest,
    SettingsAnswer,
    SettingSource,
    SettingsRequest,
    Start,
    StartKind,
    TimeType,
)
from kview.model.units import UNKNOWN
from kview.observe.apis import READ_ONLY, READ_RECORDS
from kview.observe.observer import ObserveSettings
from kview.recording.writer import RecordingWriter
from tests.observe.asking import FETCH, answered, offsets, records, values
from tests.observe.counting_proxy import CountingProxies
from tests.observe.observing import observing, until
from tests.serve.clients import deliver, producer
from tests.served import Served

SETTINGS = ObserveSettings(interval_s=0.3)
SECRET = b"a-secret-that-nobody-may-record"


@pytest.fixture
def topic(simulated_cluster: Served) -> str:
    """A topic of the test's own, with one partition on the brokers 0, 1 and 2."""
    name = f"peek-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[0, 1, 2]])
    return name


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_of_a_client(simulated_cluster: Served, topic: str, codec: str) -> None:
    sent = [b"%d " % n * 200 for n in range(90)]
    deliver(producer(simulated_cluster.bootstrap, compression_type=codec, linger_ms=50), topic, sent)
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        observer.observe()
        last = records(observer, topic, count=30)
        assert values(last) == sent[60:] and offsets(last) == list(range(60, 90))
        assert (last.log_start, last.end, last.leader) == (0, 90, 0) and last.cost.requests >= 3
        assert values(records(observer, topic, start=Start(StartKind.OFFSET, 5), count=3)) == sent[5:8]
        assert values(records(observer, topic, count=500)) == sent


def test_null_keys_tombstones_headers_and_times(simulated_cluster: Served, topic: str) -> None:
    client = producer(simulated_cluster.bootstrap)
    began_ms = int(time.time() * 1000)
    client.produce(topic, value=None, key=b"gone", partition=0, timestamp=began_ms)
    client.produce(topic, value=b"", key=None, partition=0, timestamp=began_ms + 5_000)
    headers: list[tuple[str, str | bytes | None]] = [("trace", b"\x00\xff"), ("none", None)]
    client.produce(topic, value=b"v", key=b"", partition=0, timestamp=began_ms + 9_000, headers=headers)
    assert client.flush(20) == 0
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        observer.observe()
        first, second, third = records(observer, topic).records
        assert (first.key.data, first.value.data) == (b"gone", None)
        assert (second.key.data, second.value.data) == (None, b"")
        assert (third.key.data, third.time_type) == (b"", TimeType.CREATE)
        assert [(h.name.data, h.value.data) for h in third.headers] == [
            (b"trace", b"\x00\xff"),
            (b"none", None),
        ]
        assert [r.timestamp_ms - began_ms for r in (first, second, third)] == [0, 5_000, 9_000]
        by_time = records(observer, topic, start=Start(StartKind.TIME, began_ms + 1))
        assert offsets(by_time) == [1, 2]
        later = records(observer, topic, start=Start(StartKind.TIME, began_ms + 60_000))
        assert not later.records and not later.failure and later.end == 3


def test_an_empty_partition_a_moved_log_start_and_wrong_questions(
    simulated_cluster: Served, topic: str
) -> None:
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        observer.observe()
        empty = records(observer, topic)
        assert not empty.records and not empty.failure and (empty.log_start, empty.end) == (0, 0)
        deliver(producer(simulated_cluster.bootstrap), topic, [b"%d" % n for n in range(20)])
        delete_before(simulated_cluster, topic, 12)
        assert offsets(records(observer, topic, count=100)) == list(range(12, 20))
        for offset in (3, 21, 2**62):
            gone = records(observer, topic, start=Start(StartKind.OFFSET, offset))
            assert gone.failure.kind is InspectionFailureKind.OFFSET_OUT_OF_RANGE
            assert (gone.failure.offset, gone.log_start, gone.end) == (offset, 12, 20)
        at_end = records(observer, topic, start=Start(StartKind.OFFSET, 20))
        assert not at_end.records and not at_end.failure
        for name, partition in ((topic, 7), ("nope", 0)):
            failure = records(observer, name, partition).failure
            assert failure.kind is InspectionFailureKind.UNKNOWN_TOPIC


def delete_before(cluster: Served, topic: str, offset: int) -> None:
    per_topic = DeleteRecordsRequest.DeleteRecordsTopic
    partition = per_topic.DeleteRecordsPartition(version=2, partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        version=2, topics=[per_topic(version=2, name=topic, partitions=[partition])], timeout_ms=10_000
    )
    answer = cluster.ask(cluster.partition(topic).leader_id, request)
    assert answer.topics[0].partitions[0].error_code == 0


def test_a_record_of_10_mb_is_shown_in_part_and_its_size_is_said(simulated_cluster: Served) -> None:
    name = f"large-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[0, 1, 2]], max_message_bytes="20000000")
    client = producer(simulated_cluster.bootstrap, message_max_bytes=20_000_000)
    deliver(client, name, [b"small", b"x" * 10_000_000])
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        observer.observe()
        large = records(observer, name, count=1).records[0].value
        assert large.size == 10_000_000 and large.cut and large.data is not None
        assert large.data == b"x" * len(large.data) and len(large.data) >= 1 << 20
        before = time.monotonic()
        observer.observe()
        assert time.monotonic() - before < 5


def test_a_dead_leader_fails_with_its_reason_and_the_new_one_answers(simulated_cluster: Served) -> None:
    name = f"dead-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[3, 4, 5]])
    deliver(producer(simulated_cluster.bootstrap), name, [b"a", b"b"])
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        until(observer, lambda s: set(s.brokers.state) == {"up"}, "all are up")
        assert values(records(observer, name)) == [b"a", b"b"]
        simulated_cluster.do("crash 3")
        answer = records(observer, name)
        assert answer.failure.kind in (InspectionFailureKind.NO_ANSWER, InspectionFailureKind.NO_LEADER)
        assert not answer.records
        until(
            observer,
            lambda s: (s.partitions.leader[s.partitions.topic == name] == 4).all(),
            "broker 4 leads",
        )
        assert (values(records(observer, name)), records(observer, name).leader) == ([b"a", b"b"], 4)


def test_settings_with_their_defaults_and_sources(simulated_cluster: Served, topic: str) -> None:
    set_config(simulated_cluster, topic, "max.message.bytes", "4242")
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        observer.observe()
        answer: SettingsAnswer = answered(observer, SettingsRequest(topic))
        by_name = {one.name: one for one in answer.settings}
        largest = by_name["max.message.bytes"]
        assert (largest.value, largest.source) == ("4242", SettingSource.TOPIC)
        assert largest.synonyms[-1].source is SettingSource.DEFAULT
        assert largest.synonyms[-1].value == "1048588"
        assert not by_name["cleanup.policy"].differs
        broker: SettingsAnswer = answered(observer, SettingsRequest(broker=4))
        times = {one.name: one for one in broker.settings}["broker.session.timeout.ms"]
        assert (times.value, times.source) == ("1500", SettingSource.STATIC)
        nope: SettingsAnswer = answered(observer, SettingsRequest("nope"))
        assert nope.failure.kind is InspectionFailureKind.UNKNOWN_TOPIC


def set_config(cluster: Served, topic: str, name: str, value: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(version=1, name=name, config_operation=0, value=value)
    request = IncrementalAlterConfigsRequest(
        version=1,
        resources=[resource(version=1, resource_type=2, resource_name=topic, configs=[change])],
        validate_only=False,
    )
    assert cluster.ask(0, request).responses[0].error_code == 0


def test_a_peek_sends_what_only_reads_and_leaves_nothing_behind(
    simulated_cluster: Served, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No group, no commit; Fetch only when asked for; and what was read is neither recorded nor logged."""
    deliver(producer(simulated_cluster.bootstrap), topic, [SECRET] * 3)
    ports = {n: (address.host, address.port) for n, address in enumerate(simulated_cluster.addresses)}
    folder = tmp_path / "recording"
    groups = listed_groups(simulated_cluster)
    writer = RecordingWriter(folder)
    with CountingProxies(ports) as proxies:
        servers = [proxy.address for proxy in proxies.proxies.values()]
        with caplog.at_level("WARNING"), observing(servers, SETTINGS) as observer:
            for _ in range(3):
                writer.append(observer.observe())
            assert FETCH not in {key for _, key, _ in proxies.asked}
            answer: RecordsAnswer = records(observer, topic)
            assert values(answer) == [SECRET] * 3 and SECRET.decode() not in repr(answer)
            for _ in range(3):
                writer.append(observer.observe())
        sent = {key for _, key, _ in proxies.asked}
        assert sent <= READ_RECORDS and FETCH in sent and {FETCH} == READ_RECORDS - READ_ONLY
    writer.close()
    written = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert written and not any(SECRET in data for data in written)
    assert SECRET.decode() not in caplog.text
    assert listed_groups(simulated_cluster) == groups


def listed_groups(cluster: Served) -> set[str]:
    request = ListGroupsRequest(version=2)
    return {group.group_id for broker in range(6) for group in cluster.ask(broker, request).groups}


def test_who_does_not_want_the_answer_any_more_stops_the_requests(
    simulated_cluster: Served, topic: str
) -> None:
    deliver(producer(simulated_cluster.bootstrap), topic, [b"a"])
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        observer.observe()
        simulated_cluster.do("hang 0")
        began_s = time.monotonic()
        ticket = observer.inspect(RecordsRequest(topic, 0), lambda _: None)
        ticket.cancelled = True
        assert answered(observer, SettingsRequest(broker=4)).settings
        assert time.monotonic() - began_s < 10


def test_when_the_first_record_was_written(simulated_cluster: Served, topic: str) -> None:
    client = producer(simulated_cluster.bootstrap)
    began_ms = int(time.time() * 1000)
    for number in range(20):
        client.produce(topic, value=b"v", partition=0, timestamp=began_ms + number)
    assert client.flush(20) == 0
    with observing(simulated_cluster.addresses, SETTINGS, with_records=False) as observer:
        observer.observe()
        first = answered(observer, FirstRecordRequest(topic, 0))
        assert (first.offset, first.timestamp_ms, bool(first.failure)) == (0, began_ms, False)
        assert first.cost.requests <= 2, "and no record is fetched, because that is switched off"
        delete_before(simulated_cluster, topic, 12)
        later = answered(observer, FirstRecordRequest(topic, 0))
        assert later.offset == 12 and later.timestamp_ms == began_ms + 12
        delete_before(simulated_cluster, topic, 20)
        none = answered(observer, FirstRecordRequest(topic, 0))
        assert (none.offset, none.timestamp_ms, bool(none.failure)) == (UNKNOWN, UNKNOWN, False)
        gone = answered(observer, FirstRecordRequest("nope", 0))
        assert gone.failure.kind is InspectionFailureKind.UNKNOWN_TOPIC


def test_the_log_directories_and_listeners_of_a_broker(simulated_cluster: Served, topic: str) -> None:
    deliver(producer(simulated_cluster.bootstrap), topic, [b"x" * 1000] * 20)
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        observer.observe()
        answer = answered(observer, DirectoriesRequest(1))
        (directory,) = answer.directories
        assert directory.path.endswith("broker-1") and not answer.failure and not directory.error
        assert directory.replicas >= 1 and directory.size_bytes > 20_000
        assert directory.usable_bytes == UNKNOWN, "the simulated cluster has no disks"
        settings = answered(observer, SettingsRequest(broker=1)).settings
        listeners = {one.name: one.value for one in settings if one.name.endswith("listeners")}
        assert any(f":{port}" in str(listeners["listeners"]) for _, port in simulated_cluster.addresses)
        assert listeners["advertised.listeners"] == listeners["listeners"]
        unlisted = answered(observer, DirectoriesRequest(99))
        assert unlisted.failure.kind is InspectionFailureKind.NO_ANSWER and not unlisted.directories
