"""A log directory that fails: a real 4.3.1 and the simulated cluster answer the same."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kafka.protocol.admin import (
    AlterReplicaLogDirsRequest,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
)
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from kview.simulate.records import encode_batch
from tests.conftest import ClusterFactory
from tests.real_kafka.asking import Address, ask
from tests.real_kafka.log_dirs import TWO_DIRS, lose
from tests.served import QUICK_TIMES, ServedFactory
from tests.waiting import wait_until

DUO, SOLO, EACH = "duo", "solo", 6
STORAGE_ERROR = 56
LATEST, DEBUGGING = -1, -2


def described(address: Address, version: int) -> list[tuple[int, dict[str, list[int]]]]:
    """The error of each log directory, and the partitions in it."""
    answer = ask(address, DescribeLogDirsRequest(version=version, topics=None))
    return [
        (found.error_code, {t.name: sorted(p.partition_index for p in t.partitions) for t in found.topics})
        for found in sorted(answer.results, key=lambda found: found.log_dir)
    ]


def produced(address: Address, topic: str, partition: int, acks: int) -> tuple[int, int]:
    data = ProduceRequest.TopicProduceData
    batch = encode_batch([(None, b"v", 1_795_000_000_000)])
    part = data.PartitionProduceData(version=9, index=partition, records=batch)
    topics = [data(version=9, name=topic, partition_data=[part])]
    request = ProduceRequest(version=9, transactional_id=None, acks=acks, timeout_ms=3_000, topic_data=topics)
    (answer,) = ask(address, request).responses[0].partition_responses
    return answer.error_code, answer.base_offset


def listed(address: Address, topic: str, partition: int, replica_id: int) -> tuple[int, int]:
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    wanted = of_topic.ListOffsetsPartition(
        version=6, partition_index=partition, current_leader_epoch=-1, timestamp=LATEST
    )
    topics = [of_topic(version=6, name=topic, partitions=[wanted])]
    request = ListOffsetsRequest(version=6, replica_id=replica_id, isolation_level=0, topics=topics)
    (answer,) = ask(address, request).topics[0].partitions
    return answer.error_code, answer.offset


def fetched(address: Address, topic: str, partition: int) -> tuple[int, int]:
    of_topic = FetchRequest.FetchTopic
    wanted = of_topic.FetchPartition(
        version=11, partition=partition, current_leader_epoch=-1, fetch_offset=0, log_start_offset=-1,
        partition_max_bytes=1_000,
    )  # fmt: skip
    request = FetchRequest(
        version=11, replica_id=-1, max_wait_ms=100, min_bytes=1, max_bytes=1_000, isolation_level=0,
        session_id=0, session_epoch=-1, topics=[of_topic(version=11, topic=topic, partitions=[wanted])],
        forgotten_topics_data=[], rack_id="",
    )  # fmt: skip
    (answer,) = ask(address, request).responses[0].partitions
    return answer.error_code, answer.high_watermark


def deleted(address: Address, topic: str, partition: int) -> int:
    of_topic = DeleteRecordsRequest.DeleteRecordsTopic
    wanted = of_topic.DeleteRecordsPartition(version=2, partition_index=partition, offset=0)
    topics = [of_topic(version=2, name=topic, partitions=[wanted])]
    (answer,) = (
        ask(address, DeleteRecordsRequest(version=2, topics=topics, timeout_ms=3_000)).topics[0].partitions
    )
    return int(answer.error_code)


def producers(address: Address, topic: str, partition: int) -> int:
    topics = [DescribeProducersRequest.TopicRequest(version=0, name=topic, partition_indexes=[partition])]
    (answer,) = ask(address, DescribeProducersRequest(version=0, topics=topics)).topics[0].partitions
    return int(answer.error_code)


def moved(address: Address, directory: int, topic: str) -> int:
    """Move a replica into one of a broker's log directories, in the order of their paths."""
    found = ask(address, DescribeLogDirsRequest(version=4, topics=None)).results
    path = sorted(one.log_dir for one in found)[directory]
    into = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topics = [into.AlterReplicaLogDirTopic(version=2, name=topic, partitions=[0])]
    dirs = [into(version=2, path=path, topics=topics)]
    (answer,) = ask(address, AlterReplicaLogDirsRequest(version=2, dirs=dirs)).results[0].partitions
    return int(answer.error_code)


def seen(address: Address, topic: str, partition: int) -> tuple[Any, ...]:
    """A partition in a broker's metadata: error, leader, its epoch, ISR and offline replicas."""
    by_name = MetadataRequest.MetadataRequestTopic(version=9, name=topic)
    request = MetadataRequest(version=9, topics=[by_name], allow_auto_topic_creation=False)
    found = next(
        one for one in ask(address, request).topics[0].partitions if one.partition_index == partition
    )
    isr, offline = sorted(found.isr_nodes), list(found.offline_replicas)
    return found.error_code, found.leader_id, found.leader_epoch, isr, offline


def eligible(address: Address, topic: str, partition: int) -> tuple[Any, ...]:
    """The same of DescribeTopicPartitions, with the replicas that are eligible to lead (KIP-966)."""
    request = DescribeTopicPartitionsRequest(
        version=0,
        topics=[DescribeTopicPartitionsRequest.TopicRequest(version=0, name=topic)],
        response_partition_limit=100,
        cursor=None,
    )
    found = ask(address, request).topics[0].partitions[partition]
    elr, last_known = list(found.eligible_leader_replicas or ()), list(found.last_known_elr or ())
    return found.error_code, found.leader_id, sorted(found.isr_nodes), elr, last_known, found.offline_replicas


def after_a_loss(addresses: Sequence[Address], lose_it: Callable[[], object]) -> dict[str, Any]:
    """Lose the second directory of broker 0, and return what the brokers say."""
    first, second = addresses[0], addresses[1]
    wait_until(
        lambda: (
            sum(len(topics.get(t, ())) for _, topics in described(first, 4) for t in (DUO, SOLO)) == 2 * EACH
        ),
        "every replica is there",
    )
    (_, kept), (_, lost) = described(first, 4)
    duo, solo = lost[DUO][0], lost[SOLO][0]
    said: dict[str, Any] = {
        "spread": [len(kept[t]) for t in (DUO, SOLO)] + [len(lost[t]) for t in (DUO, SOLO)]
    }
    for topic, partition in ((DUO, duo), (SOLO, solo), (SOLO, kept[SOLO][0])):
        assert produced(first, topic, partition, -1) == (0, 0)
    lose_it()
    wait_until(lambda: seen(second, DUO, duo)[1] == 1, "another broker leads what was lost")
    wait_until(lambda: seen(first, SOLO, solo)[1] == -1, "broker 0 knows that, too")
    for version in (1, 3, 4, 5):
        said[f"dirs v{version}"] = [(error, bool(topics)) for error, topics in described(first, version)]
    for name, topic, partition in (("duo", DUO, duo), ("solo", SOLO, solo)):
        said[name] = [seen(address, topic, partition) for address in (first, second)]
        said[f"{name} eligible"] = eligible(second, topic, partition)
        said[f"{name} produced"] = [produced(first, topic, partition, acks) for acks in (1, -1)]
        said[f"{name} listed"] = [listed(first, topic, partition, who) for who in (-1, DEBUGGING)]
        said[f"{name} fetched"] = fetched(first, topic, partition)
        said[f"{name} deleted"] = deleted(first, topic, partition)
        said[f"{name} producers"] = producers(first, topic, partition)
    said["moved"] = [moved(first, at, topic) for at in (0, 1) for topic in (SOLO, "unknown")]
    said["the new leader"] = produced(second, DUO, duo, -1)
    said["the other disk"] = produced(first, SOLO, kept[SOLO][0], 1)
    return said


@pytest.mark.slow
def test_a_failed_directory_is_what_it_is_on_a_real_cluster(
    real_kafka_factory: ClusterFactory, simulated_cluster_factory: ServedFactory
) -> None:
    real = real_kafka_factory(brokers=3, overrides=TWO_DIRS)
    simulated = simulated_cluster_factory(
        "--brokers", "3", "--racks", "1", "--no-traffic", settings=(*QUICK_TIMES, "log.dirs=data,more")
    )
    for cluster in (real.create_topic, simulated.create):
        cluster(DUO, [[0, 1, 2]] * EACH)
        cluster(SOLO, [[0]] * EACH)
    there = after_a_loss([real.address(broker) for broker in real.broker_ids], lambda: lose(real.nodes[0]))
    here = after_a_loss(simulated.addresses, lambda: simulated.do("lose-disk 0"))
    assert here == there
    assert there["solo listed"] == [(STORAGE_ERROR, -1)] * 2
    assert there["solo deleted"] == there["duo producers"] == STORAGE_ERROR
    assert there["moved"][1:] == [3, STORAGE_ERROR, STORAGE_ERROR], "the directory counts before the topic"
