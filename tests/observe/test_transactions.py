"""Open transactions on both clusters: what they hold back, and whose they are."""

import time
import uuid
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from kafka.protocol.admin import DescribeProducersRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from kview.derive.groups.verdicts import HELD_MS
from kview.derive.transactions.findings import held_partition
from kview.derive.view import Verdict, View
from kview.language import inspection
from kview.language.findings import abort_command
from kview.model.events import EventKind
from kview.model.inspection import NO_INSPECTION_FAILURE, ProducersAnswer, ProducersRequest
from kview.model.states import TransactionState
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from tests.observe.asking import answered, offsets, records
from tests.observe.observing import Watched, observing
from tests.real_kafka.asking import ask
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.tools import Tools
from tests.served import Served
from tests.waiting import wait_until

SETTINGS = ObserveSettings(interval_s=0.5, last_stable_s=1.0, transactions_s=1.0)
TIMEOUT_MS = 600_000
LOST_PRODUCERS = count(987_654)
"""Producer ids that no coordinator has given to anybody. What one test leaves hanging is not another's."""


class Scene:
    """A topic with one partition and 20 records of an ordinary producer, in a real or a simulated cluster.

    `lost` is the producer of the transaction that hangs.
    """

    def __init__(self, kafka: RealKafka | Served) -> None:
        self.kafka, self.name, self.lost = kafka, uuid.uuid4().hex[:8], next(LOST_PRODUCERS)
        self.topic = f"payments-{self.name}"
        if isinstance(kafka, RealKafka):
            bootstrap = kafka.bootstrap_servers
            self.addresses = [kafka.address(broker) for broker in kafka.broker_ids]
            kafka.create_topic(self.topic, [[0, 1, 2]])
        else:
            bootstrap, self.addresses = kafka.bootstrap, kafka.addresses
            kafka.create(self.topic, [[0, 1, 2]])
        self.servers: dict[str, object] = {"bootstrap.servers": bootstrap}
        write(Producer(self.servers), self.topic, 20)

    def begin(self, transactional_id: str) -> Producer:
        """Begin a transaction with 5 records, and write 10 records after them."""
        producer = Producer(
            self.servers | {"transactional.id": transactional_id, "transaction.timeout.ms": TIMEOUT_MS}
        )
        producer.init_transactions(60)
        producer.begin_transaction()
        write(producer, self.topic, 5)
        write(Producer(self.servers), self.topic, 10)
        return producer

    def hang(self, age_ms: int = 0) -> None:
        """Append a record of a transaction of which no coordinator knows. On a real cluster it is of `age_ms`
        ago."""
        if isinstance(self.kafka, Served):
            self.kafka.do(f"hang-transaction {self.topic}-0")
            (self.lost,) = [
                producer.producer_id
                for producer in self.producers(self.kafka)
                if producer.current_txn_start_offset >= 0
            ]
            return
        leader = self.kafka.partitions(self.topic)[0].leader
        self._verifies(leader, AlterConfigOpType.SET)
        batch = DefaultRecordBatchBuilder(2, 0, 1, self.lost, 0, 0, 10_000)
        batch.append(0, round(time.time() * 1000) - age_ms, None, b"lost", [])
        data = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            version=9,
            transactional_id=f"lost-{self.name}",
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                data(
                    version=9,
                    name=self.topic,
                    partition_data=[
                        data.PartitionProduceData(version=9, index=0, records=bytes(batch.build()))
                    ],
                )
            ],
        )

        def appended() -> bool:
            answer = ask(self.addresses[leader], request)
            return [p.error_code for t in answer.responses for p in t.partition_responses] == [0]

        wait_until(appended, "the broker has heard that it need not verify")
        self._verifies(leader, AlterConfigOpType.DELETE)

    def _verifies(self, broker: int, change: AlterConfigOpType) -> None:
        """Let a real broker accept records of transactions that no coordinator knows, or end that."""
        setting = "transaction.partition.verification.enable"
        value = "false" if change is AlterConfigOpType.SET else None
        entry = ConfigEntry(setting, value, incremental_operation=change)
        of_broker = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": str(self.servers["bootstrap.servers"])})
        for done in admin.incremental_alter_configs([of_broker]).values():
            done.result()

    def producers(self, served: Served) -> list[Any]:
        """The producers of the partition."""
        per_topic = DescribeProducersRequest.TopicRequest
        asked = per_topic(version=0, name=self.topic, partition_indexes=[0])
        leader = served.partition(self.topic).leader_id
        answer = served.ask(leader, DescribeProducersRequest(version=0, topics=[asked]))
        return list(answer.topics[0].partitions[0].active_producers)

    def row(self, view: View) -> int:
        """The partition's row, −1 if it is not listed."""
        found = np.flatnonzero(view.snapshot.partitions.topic == self.topic)
        return int(found[0]) if len(found) else -1

    def held(self, view: View) -> tuple[int, int, bool]:
        """The last stable offset, the high watermark, and whether the first is held back."""
        table, row = view.snapshot.partitions, self.row(view)
        since_ms = int(table.last_stable_since_ms[row])
        return int(table.last_stable[row]), int(table.high_watermark[row]), since_ms != UNKNOWN

    def owners(self, view: View) -> list[tuple[int, str, str, int]]:
        """The producers with an open transaction: id, transactional id, state and where it begins."""
        table = view.snapshot.transactions
        rows = np.flatnonzero(table.topic == self.topic).tolist()
        return [
            (int(table.producer_id[row]), str(table.transactional_id[row]), str(table.state[row]),
             int(table.start_offset[row]))
            for row in rows
        ]  # fmt: skip

    def told(self, watched: Watched) -> list[EventKind]:
        """The events of the transaction that hangs, in all views."""
        events = [event for view in watched.views for event in view.new_events]
        return [event.kind for event in events if event.producer_id == self.lost]


def write(producer: Producer, topic: str, records: int) -> None:
    """Write records and wait until they are there."""
    for _ in range(records):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(30) == 0


@pytest.fixture(
    params=[
        pytest.param("simulated", marks=pytest.mark.slow),
        pytest.param("real", marks=pytest.mark.real_cluster),
    ]
)
def scene(request: pytest.FixtureRequest) -> Scene:
    """The scene in each of the two clusters."""
    cluster = "real_kafka" if request.param == "real" else "simulated_cluster"
    return Scene(request.getfixturevalue(cluster))


def test_a_transaction_that_stays_open_is_named_until_it_ends(scene: Scene) -> None:
    name = f"payments-app-{scene.name}"
    with observing(scene.addresses, SETTINGS) as observer:
        watched = Watched(observer)
        watched.until(
            lambda view: scene.row(view) >= 0 and scene.held(view) == (20, 20, False), "nothing is held"
        )
        producer = scene.begin(name)
        group = {
            "group.id": f"read-{scene.name}",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
        }
        reader = Consumer(scene.servers | group)
        reader.subscribe([scene.topic])

        def waits(view: View) -> bool:
            reader.poll(0.05)
            table = view.snapshot.offsets
            return bool((table.committed[table.topic == scene.topic] == 20).any()) and any(
                owner[1] for owner in scene.owners(view)
            )

        view = watched.until(waits, "the group waits, and the transaction has a name")
        assert scene.held(view) == (20, 35, True)
        ((_, whose, state, start),) = scene.owners(view)
        assert (whose, state, start) == (name, TransactionState.ONGOING, 20)
        table = view.snapshot.transactions
        at = table.topic.tolist().index(scene.topic)
        assert int(table.timeout_ms[at]) == TIMEOUT_MS
        age_ms = view.snapshot.observation.ended_ms - int(table.began_ms[at])
        assert 0 <= age_ms < 60_000
        mine = view.snapshot.offsets.topic == scene.topic
        assert set(view.offsets.verdict[mine].tolist()) == {Verdict.OK}, "it has read all that it can"
        read = records(observer, scene.topic)
        assert offsets(read) == list(range(20)) and (read.end, read.high_watermark) == (20, 35)
        assert inspection.has(read) == "an open transaction holds back offsets 20 to 34"
        told: ProducersAnswer = answered(observer, ProducersRequest(scene.topic))
        (open_one,) = [each for each in told.producers if each.start_offset == 20]
        assert (told.failure, told.unread) == (NO_INSPECTION_FAILURE, ())
        assert (open_one.partition, open_one.last_sequence) == (0, 4), "five records"
        producer.commit_transaction(60)
        view = watched.until(lambda view: scene.held(view) == (36, 36, False), "the end of the transaction")
        watched.until(lambda view: not scene.owners(view), "nobody holds it")
        reader.close()


def test_a_transaction_that_no_coordinator_has_is_hanging(scene: Scene) -> None:
    scene.begin(f"ended-{scene.name}").commit_transaction(60)  # so that there are coordinators
    scene.hang()
    write(Producer(scene.servers), scene.topic, 10)
    with observing(scene.addresses, SETTINGS) as observer:
        hanging = (scene.lost, "", TransactionState.HANGING.value, 36)
        watched = Watched(observer)
        view = watched.until(lambda view: scene.owners(view) == [hanging], "it hangs")
    assert scene.held(view) == (36, 47, True)


@pytest.mark.slow  # Kafka's tool is a JVM
def test_the_command_for_a_hanging_transaction_ends_it(
    real_kafka: RealKafka, kafka_runtime: tuple[Path, Path]
) -> None:
    scene = Scene(real_kafka)
    scene.begin(f"ended-{scene.name}").commit_transaction(60)
    scene.hang(HELD_MS)
    with observing(scene.addresses, SETTINGS) as observer:
        watched = Watched(observer)
        view = watched.until(lambda view: bool(scene.owners(view)), "the leader knows it")
        finding = held_partition(view.snapshot, view.offsets, scene.row(view))
        assert finding is not None and finding.transaction is not None
        watched.until(lambda _: scene.told(watched) == [EventKind.TRANSACTION_HANGS], "it is lost")
        script, *arguments = abort_command(finding.transaction).split()
        assert script == "kafka-transactions.sh"
        assert arguments[0] == "--bootstrap-server"
        Tools(kafka_runtime, arguments[1]).tool("TransactionsCommand", *arguments[2:])
        watched.until(lambda view: not scene.held(view)[2], "nothing holds it any more")
        assert scene.told(watched) == [EventKind.TRANSACTION_HANGS, EventKind.TRANSACTION_ENDED]
