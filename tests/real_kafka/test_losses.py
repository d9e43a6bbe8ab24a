"""What a real cluster loses while it runs: a log directory, as kview says it and as brokers answer, where the
simulated cluster answers the same; and records, when a leader is killed while a producer with acks=1 writes,
and in an unclean election. On a cluster of its own: topics without copies would stay without a leader."""

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
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

from kview.derive.checks.judge import Watch, step
from kview.derive.view import View
from kview.language import checks
from kview.model.address import Address
from kview.model.checks import CheckKind, Judgement
from kview.model.events import Severity
from kview.model.failures import STORAGE_ERROR
from kview.model.findings import Finding, FindingKind
from kview.model.incidents import Incident, PhaseKind
from kview.model.snapshot import Partitions
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from kview.simulate.records import encode_batch
from tests.conftest import ClusterFactory
from tests.observe.observing import Watched, broker_state, headline, observing
from tests.real_kafka.asking import ask
from tests.real_kafka.cluster import START_TIMEOUT_S, RealKafka
from tests.real_kafka.log_dirs import TWO_DIRS, can_fail, lose, repair
from tests.served import QUICK_TIMES, ServedFactory
from tests.waiting import PATIENCE_S, wait_until

PARTITIONS = 3
KILLED = 2
LOST = 50
DUO, SOLO, EACH = "duo", "solo", 6
LATEST, DEBUGGING = -1, -2
SETTINGS = ObserveSettings(interval_s=0.5)


@pytest.fixture(scope="module")
def own_kafka(real_kafka_factory: ClusterFactory) -> RealKafka:
    return real_kafka_factory(overrides=TWO_DIRS)


@pytest.fixture
def real_kafka(own_kafka: RealKafka) -> RealKafka:
    """Three brokers with two log directories each, all up and in sync, whatever the last test left."""
    node = own_kafka.nodes[0]
    if can_fail(node).is_file():
        repair(node)
        if node.process is not None:
            own_kafka.stop(node.id)
    own_kafka.heal()
    return own_kafka


def about(view: View) -> list[Finding]:
    return [one for one in view.headline.findings if one.kind is FindingKind.LOG_DIR_OFFLINE]


def test_a_directory_that_fails_is_named_at_once_and_nobody_is_told_to_start_its_broker(
    real_kafka: RealKafka,
) -> None:
    kafka = real_kafka
    kafka.create_topic("one-copy", [[0]] * 4)
    kafka.create_topic("two-copies", [[0, 1]] * 2 + [[1, 0]] * 2, {"min.insync.replicas": "1"})
    more = can_fail(kafka.nodes[0])
    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched, watch = Watched(observer), Watch()
        view = watched.until(
            lambda view: len(view.snapshot.log_dirs) == 6 and len(view.snapshot.partitions) >= 8,
            "all brokers have told their directories",
        )
        assert bool((view.snapshot.log_dirs.usable_bytes > 0).all()) and not about(view)
        held = len(list(more.glob("one-copy-*")))
        lose(kafka.nodes[0])

        found: list[Judgement] = []

        def is_told(view: View) -> bool:
            nonlocal watch
            watch, judgement = step(watch, view)
            found.append(judgement)
            return bool(about(view)) and bool((view.snapshot.partitions.offline >= 0).any())

        view = watched.until(is_told, "the failed directory is named", 10.0)

        repair(kafka.nodes[0])
        kafka.stop(0)
        watched.until(lambda view: broker_state(view, 0) != BrokerState.UP, "the broker is down")
        watched.views.clear()
        kafka.restart(0)
        watched.until(
            lambda view: (
                not (
                    about(view)
                    or (view.snapshot.partitions.offline >= 0).any()
                    or (view.snapshot.brokers.state != BrokerState.UP).any()
                )
            ),
            "the directory is used again after a restart of the broker",
            60.0,
        )
        assert not any(about(view) for view in watched.views), "what it told before it was restarted"
    (finding,), table = about(view), view.snapshot.log_dirs
    assert (finding.brokers, finding.paths, finding.severity) == ((0,), (str(more),), "risk")
    assert finding.count == held >= 1 and finding.partitions > held
    rows = table.path == str(more)
    assert table.error_code[rows].tolist() == [STORAGE_ERROR] and table.usable_bytes[rows].tolist() == [
        UNKNOWN
    ]
    assert {str(state) for state in view.snapshot.brokers.state} == {"up"}
    said = [checks.sentence(one, 0) for judgement in found for one in judgement.findings]
    assert not [one for one in said if "tart broker" in one]
    (cause,) = [one for one in found[-1].findings if one.kind is CheckKind.LOG_DIR_OFFLINE]
    offline = [
        one for one in found[-1].findings if one.kind in (CheckKind.OFFLINE, CheckKind.UNDER_REPLICATED)
    ]
    assert offline and {one.explained_by for one in offline} == {(cause.key,)}


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
    real_kafka: RealKafka, simulated_cluster_factory: ServedFactory
) -> None:
    simulated = simulated_cluster_factory(
        "--brokers", "3", "--racks", "1", "--no-traffic", settings=(*QUICK_TIMES, "log.dirs=data,more")
    )
    for cluster in (real_kafka.create_topic, simulated.create):
        cluster(DUO, [[0, 1, 2]] * EACH)
        cluster(SOLO, [[0]] * EACH)
    there = after_a_loss(
        [real_kafka.address(broker) for broker in real_kafka.broker_ids], lambda: lose(real_kafka.nodes[0])
    )
    repair(real_kafka.nodes[0])
    real_kafka.stop(0)
    here = after_a_loss(simulated.addresses, lambda: simulated.do("lose-disk 0"))
    assert here == there
    assert there["solo listed"] == [(STORAGE_ERROR, -1)] * 2
    assert there["solo deleted"] == there["duo producers"] == STORAGE_ERROR
    assert there["moved"][1:] == [3, STORAGE_ERROR, STORAGE_ERROR], "the directory counts before the topic"


def of_it(view: View) -> list[Incident]:
    """The incidents of the killed broker: on a busy machine, it may fall silent again while it starts."""
    return [one for one in view.incidents if KILLED in one.brokers]


def is_calm(view: View) -> bool:
    """Whether every broker answers and nothing goes on. A busy machine needs a while for that."""
    up = bool((view.snapshot.brokers.state == BrokerState.UP).all())
    return up and bool(view.snapshot.brokers.answers.all()) and not any(one.is_open for one in view.incidents)


def watermarks(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """Return the first and the last offset, once the leadership has come to rest after the restart."""

    def probe() -> tuple[int, int] | None:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(partition, 20)
        except KafkaException:
            return None
        return found

    found = wait_until(probe, "the leader answers")
    assert found is not None
    return found


def readable(kafka: RealKafka, topic: str) -> set[bytes]:
    """Every value in the topic."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": token_hex(4)})
    found: set[bytes] = set()
    try:
        for number in range(PARTITIONS):
            low, high = watermarks(consumer, TopicPartition(topic, number))
            consumer.assign([TopicPartition(topic, number, low)])
            at = low
            while at < high:
                message = wait_until(lambda: consumer.poll(1), "a record")
                assert message is not None
                if message.error() is not None:  # such as a leader that has just moved
                    continue
                at = (message.offset() or 0) + 1
                found.add(message.value() or b"")
    finally:
        consumer.close()
    return found


@pytest.mark.slow  # tests/derive/test_incident_truth.py has the same on the simulated cluster
def test_a_crash_with_acks_1(real_kafka: RealKafka) -> None:
    topic = f"incident-{token_hex(4)}"
    real_kafka.create_topic(topic, [[0, 1, 2], [1, 2, 0], [2, 0, 1]], {"min.insync.replicas": "1"})
    real_kafka.wait_for_full_isr(topic, PARTITIONS)
    sent: set[bytes] = set()
    refused: set[bytes] = set()

    def told(error: object, message: Message) -> None:
        if error is not None:
            refused.add(message.value() or b"")

    producer = Producer(
        {
            "bootstrap.servers": real_kafka.bootstrap_servers,
            "acks": 1,
            "retries": 0,
            "linger.ms": 0,
            "message.timeout.ms": 30_000,  # so that what waits for a dead leader does not fill the queue
        }
    )
    servers = [Address("127.0.0.1", real_kafka.address(broker).port) for broker in real_kafka.broker_ids]
    with observing(servers, SETTINGS) as observer:
        watched = Watched(observer)

        def write(view: View) -> None:
            for number in range(300):
                value = f"{view.snapshot.observation.sequence}-{number}".encode()
                sent.add(value)
                producer.produce(topic, value=value, partition=number % PARTITIONS, on_delivery=told)
            producer.poll(0)

        watched.until(is_calm, "a calm cluster")
        for _ in range(6):
            write(watched.look())
        watched.until(is_calm, "a calm cluster")
        earlier = {one.key for one in of_it(watched.views[-1])}
        real_kafka.kill(KILLED)
        try:

            def elected(view: View) -> bool:
                write(view)
                found = [one for one in of_it(view) if one.key not in earlier]
                led = found[0].phase(PhaseKind.ELECTED) if found else None
                return led is not None and led.is_complete

            moment = watched.until(elected, "other leaders")
        finally:
            real_kafka.restart(KILLED)
        last = watched.until(is_calm, "a full ISR", 2 * PATIENCE_S)
    producer.flush(30)
    incident, *again = [one for one in of_it(last) if one.key not in earlier]
    kinds = [phase.kind for phase in incident.phases]
    assert kinds[0] is PhaseKind.SILENT
    assert {PhaseKind.FROZEN, PhaseKind.FENCED, PhaseKind.ELECTED, PhaseKind.BACK} <= set(kinds)
    ends = [one.phases[-1].kind for one in (incident, *again)]
    assert ends == [*[PhaseKind.REPEATED] * len(again), PhaseKind.ISR_FULL]
    times = [phase.at_ms for phase in incident.phases]
    assert times == sorted(times)
    then = next(one for one in of_it(moment) if one.key == incident.key)  # an ISR may get smaller later
    hit = {(one.topic, one.partition): one for one in then.hit}
    moved = hit[topic, 2]
    assert (moved.leader_before, KILLED in moved.isr_after) == (KILLED, False)
    assert moved.leader_after in (0, 1), "the first that was in sync"
    assert moved.epoch_after > moved.epoch_before and KILLED not in hit[topic, 0].isr_after
    lost = sent - readable(real_kafka, topic)
    hits = [one for of in (incident, *again) for one in of.hit if one.topic == topic]
    mine = [one.gone for one in hits if one.gone != UNKNOWN]
    assert sum(mine) <= len(lost), f"kview says ≥ {sum(mine)}, and {len(lost)} cannot be read"


def produce(kafka: RealKafka, count: int) -> None:
    """Produce records that the leader alone acknowledges."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "1", "linger.ms": 0})
    for number in range(count):
        producer.produce("orders", value=str(number), partition=0)
    assert producer.flush(20) == 0


def orders(view: View) -> Partitions:
    """The row of the partition in question."""
    return view.snapshot.partitions.take(view.snapshot.partitions.topic == "orders")


def isr_of(view: View) -> list[int]:
    return [broker for broker in orders(view).isr[0].tolist() if broker >= 0]


def unclean(view: View) -> list[Finding]:
    return [one for one in view.headline.findings if one.kind is FindingKind.UNCLEAN_ELECTION]


@pytest.mark.slow
def test_exactly_the_records_that_an_unclean_election_lost_are_counted(real_kafka: RealKafka) -> None:
    kafka = real_kafka
    kafka.create_topic("orders", [[0, 1]], {"unclean.leader.election.enable": "true"})
    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)
        watched.until(lambda v: "orders" in v.snapshot.partitions.topic, "the topic is seen")
        produce(kafka, 20)
        # At the high watermark, the follower has them, too: acks=1 did not wait for it.
        watched.until(lambda v: orders(v).high_watermark[0] == 20, "both have the records")
        assert isr_of(watched.views[-1]) == [0, 1]
        kafka.pause(1)
        watched.until(lambda v: isr_of(v) == [0], "the follower has left the ISR", START_TIMEOUT_S)
        produce(kafka, LOST)
        watched.until(lambda v: orders(v).log_end[0] >= 20 + LOST, "the records are read")
        kafka.kill(0)
        kafka.resume(1)
        view = watched.until(unclean, "the unclean election is said", START_TIMEOUT_S)  # type: ignore[arg-type]
    (finding,) = unclean(view)
    assert (finding.severity, finding.count, finding.partitions) == (Severity.RISK, LOST, 1)
    assert any(f"≥ {LOST} records lost" in said for said in headline(view))
