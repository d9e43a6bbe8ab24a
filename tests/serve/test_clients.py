"""Real clients produce to the simulated cluster and consume from it."""

import shutil
import subprocess
import uuid
from struct import unpack_from

import confluent_kafka
import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from tests.conftest import missing
from tests.serve.clients import consumer, deliver, kafka_python_consumer, producer, values_of
from tests.served import Served
from tests.waiting import wait_until

THREE = [[0, 3, 1], [3, 1, 4], [1, 4, 2]]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def read_all(cluster: Served, topic: str, partitions: int, count: int) -> dict[int, list[bytes]]:
    """Return all records of a topic by partition, read with librdkafka."""
    found: dict[int, list[bytes]] = {p: [] for p in range(partitions)}
    client = consumer(cluster.bootstrap, "reader")
    client.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in found])

    def read() -> bool:
        for message in client.consume(1000, timeout=0.1):
            assert message.error() is None, message.error()
            partition, value = message.partition(), message.value()
            assert partition is not None and value is not None
            found[partition].append(value)
        return sum(map(len, found.values())) >= count

    wait_until(read, f"{count} records of {topic}")
    client.close()
    return found


def raw_batches(cluster: Served, topic: str, broker: int) -> bytes:
    """Return the batches of partition 0 as a Fetch response contains them."""
    per_topic = FetchRequest.FetchTopic
    partition = per_topic.FetchPartition(version=11, partition=0, fetch_offset=0, partition_max_bytes=1 << 24)
    request = FetchRequest(
        version=11,
        max_wait_ms=0,
        topics=[per_topic(version=11, topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
    )
    answer = cluster.ask(broker, request).responses[0].partitions[0]
    assert answer.error_code == 0
    return bytes(answer.records)


@pytest.mark.parametrize("idempotent", [False, True])
def test_kafka_python_produces_and_consumes(simulated_cluster: Served, idempotent: bool) -> None:
    topic = f"kafka-python-{idempotent}"
    simulated_cluster.create(topic, THREE)
    client = KafkaProducer(
        bootstrap_servers=simulated_cluster.bootstrap.split(","), acks="all", enable_idempotence=idempotent
    )
    sent = [client.send(topic, b"%d" % n, partition=n % 3) for n in range(600)]
    offsets = [future.get(20).offset for future in sent]
    client.close()
    assert offsets == [n // 3 for n in range(600)]
    reader = kafka_python_consumer(simulated_cluster.bootstrap, None)
    partitions = [TopicPartition(topic, p) for p in range(3)]
    reader.assign(partitions)
    assert reader.end_offsets(partitions) == dict.fromkeys(partitions, 200)
    assert reader.beginning_offsets(partitions) == dict.fromkeys(partitions, 0)
    read: list[bytes] = []

    def poll() -> bool:
        for batch in reader.poll(200).values():
            read.extend(record.value for record in batch)
        return len(read) >= 600

    wait_until(poll, "all records")
    reader.close()
    assert sorted(map(int, read)) == list(range(600))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_librdkafka_produces_with_every_acks(simulated_cluster: Served, acks: str) -> None:
    topic = f"librdkafka-acks-{acks}"
    simulated_cluster.create(topic, [[0, 3, 1]])
    values = [b"%d" % n for n in range(1000)]
    deliver(producer(simulated_cluster.bootstrap, acks=acks), topic, values)
    assert read_all(simulated_cluster, topic, 1, 1000)[0] == values


def test_offsets_are_found_by_time(simulated_cluster: Served) -> None:
    simulated_cluster.create("by-time", [[0]])
    client = producer(simulated_cluster.bootstrap)
    start_ms = 1_700_000_000_000
    for n in range(100):
        client.produce("by-time", b"%d" % n, partition=0, timestamp=start_ms + n * 1000)
    assert client.flush(20) == 0
    assert simulated_cluster.offset(0, "by-time", timestamp=start_ms + 41_500).offset == 42
    assert simulated_cluster.offset(0, "by-time", timestamp=start_ms).offset == 0
    assert simulated_cluster.offset(0, "by-time", timestamp=start_ms + 999_000).offset == -1


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_kept_as_they_come(simulated_cluster: Served, codec: str) -> None:
    topic = f"codec-{codec}"
    simulated_cluster.create(topic, [[0, 3]])
    values = [b"%d of the same words again and again" % n for n in range(2000)]
    full = {"linger_ms": 60_000, "batch_num_messages": 500}  # a few records may not get smaller
    deliver(producer(simulated_cluster.bootstrap, compression_codec=codec, **full), topic, values)
    batches = raw_batches(simulated_cluster, topic, 0)
    attributes = unpack_from(">h", batches, 21)[0]
    assert attributes & 7 == CODECS[codec]
    records = MemoryRecords(batches)
    offset = 0
    while (batch := records.next_batch()) is not None:
        assert batch.base_offset == offset
        assert batch.validate_crc()
        offset = batch.next_offset
    assert offset == 2000
    assert read_all(simulated_cluster, topic, 1, 2000)[0] == values


def test_a_batch_with_a_broken_checksum_is_refused(simulated_cluster: Served) -> None:
    from kafka.protocol.producer import ProduceRequest

    simulated_cluster.create("crc", [[0]])
    deliver(producer(simulated_cluster.bootstrap), "crc", [b"whole"])
    batch = bytearray(raw_batches(simulated_cluster, "crc", 0))
    batch[-1] ^= 1
    per_topic = ProduceRequest.TopicProduceData
    data = per_topic.PartitionProduceData(version=9, index=0, records=bytes(batch))
    entry = per_topic(version=9, name="crc", partition_data=[data])
    request = ProduceRequest(version=9, acks=-1, timeout_ms=5000, topic_data=[entry])
    assert simulated_cluster.ask(0, request).responses[0].partition_responses[0].error_code == 2
    assert simulated_cluster.offset(0, "crc").offset == 1


def test_a_topic_is_created_by_producing_to_it(simulated_cluster: Served) -> None:
    topic = f"by-asking-{uuid.uuid4().hex[:8]}"
    deliver(producer(simulated_cluster.bootstrap), topic, [b"first"])
    assert read_all(simulated_cluster, topic, 1, 1) == {0: [b"first"]}


def test_large_records_and_many_of_them(simulated_cluster: Served) -> None:
    simulated_cluster.create("large", [[0, 3]])
    values = [bytes([n]) * 700_000 for n in range(20)]
    deliver(producer(simulated_cluster.bootstrap), "large", values)
    assert read_all(simulated_cluster, "large", 1, 20)[0] == values


@pytest.fixture
def kcat() -> str:
    found = shutil.which("kcat")
    if found is None:
        missing("kcat is not installed")
    assert found is not None
    return found


def test_kcat_lists_produces_and_consumes(simulated_cluster: Served, kcat: str) -> None:
    simulated_cluster.create("kcat", [[0, 3, 1]])

    def run(*arguments: str, given: str = "") -> str:
        command = [kcat, "-b", simulated_cluster.bootstrap, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = run("-L", "-t", "kcat")
    assert " 6 brokers:" in listed
    assert 'topic "kcat" with 1 partitions:' in listed
    assert "partition 0, leader 0, replicas: 0,3,1, isrs: 0,3,1" in listed.replace(", 3, 1", ",3,1")
    run("-P", "-t", "kcat", "-p", "0", given="one\ntwo\n")
    assert run("-C", "-t", "kcat", "-p", "0", "-e", "-q") == "one\ntwo\n"


def test_simulated_traffic_is_read_by_a_real_consumer() -> None:
    with Served("--brokers", "3", "--topic", "orders:3:3") as cluster:
        client = consumer(cluster.bootstrap, "outside")
        client.subscribe(["orders"])
        read: list[bytes] = []

        def poll() -> bool:
            read.extend(values_of(client))
            return len(read) > 2000

        wait_until(poll, "simulated records")
        client.close()
        before = cluster.counters()
        assert set(before["groups"]) == {"orders-group"}

        def going_on() -> bool:
            now = cluster.counters()
            produced = sum(p["acknowledged"] for p in now["producers"].values())
            produced_before = sum(p["acknowledged"] for p in before["producers"].values())
            return bool(produced > produced_before + 500)

        wait_until(going_on, "simulated producers go on")
