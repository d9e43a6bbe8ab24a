"""Transactions with real clients: both clusters answer alike, and a read_committed reader proves it."""

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaException
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

from kview.simulate.records import TRANSACTIONAL, decode_batch, encode_batch
from kview.simulate.transactions.records import TransactionState, TransactionValue
from kview.simulate.transactions.records import decode_batch as decode_states
from kview.simulate.transactions.records import encode_batch as encode_state
from tests.real_kafka.asking import Address, ask
from tests.serve.both import Cluster
from tests.served import Served
from tests.simulate.client_batches import with_field
from tests.waiting import wait_until

ONE = [[0, 1, 2]]
QUIET = {"linger.ms": 0, "log_level": 2}


def topic_of(cluster: Cluster, partitions: int = 1) -> str:
    """A new topic."""
    name = f"txn-{uuid.uuid4().hex[:8]}"
    cluster.make(name, ONE * partitions, {})
    return name


def librdkafka(cluster: Cluster, name: str, **more: Any) -> confluent_kafka.Producer:
    """A transactional producer of librdkafka that has its epoch."""
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": name, **QUIET, **more}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    return producer


def read(cluster: Cluster, topic: str, isolation: str, enough: Callable[[list[bytes]], bool]) -> list[bytes]:
    """What a new consumer reads of a topic with one partition, until that is enough."""
    client = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    client.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[bytes] = []

    def poll() -> bool:
        for message in client.consume(100, timeout=0.2):
            assert message.error() is None, message.error()
            values.append(message.value() or b"")
        return enough(values)

    wait_until(poll, f"enough of {topic}: {values}")
    client.close()
    return values


def has(*values: bytes) -> Callable[[list[bytes]], bool]:
    return lambda seen: seen[-len(values) :] == list(values)


def test_librdkafka_commits_and_aborts(cluster: Cluster) -> None:
    topic = topic_of(cluster)
    producer = librdkafka(cluster, f"app-{topic}")
    for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(30) == 0  # an abort throws away what is not sent yet
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    assert read(cluster, topic, "read_committed", has(b"c")) == [b"a", b"c"]
    assert read(cluster, topic, "read_uncommitted", has(b"c")) == [b"a", b"b", b"c"]


def test_kafka_python_commits_and_aborts(cluster: Cluster) -> None:
    topic = topic_of(cluster)
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), transactional_id=f"py-{topic}", acks="all"
    )
    producer.init_transactions()
    for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.send(topic, value).get(30)
        producer.commit_transaction() if commits else producer.abort_transaction()
    producer.close()
    assert read(cluster, topic, "read_committed", has(b"c")) == [b"a", b"c"]


def test_a_zombie_is_fenced(cluster: Cluster) -> None:
    topic = topic_of(cluster)
    zombie = librdkafka(cluster, f"app-{topic}")
    zombie.begin_transaction()
    zombie.produce(topic, b"old")
    zombie.flush(30)
    successor = librdkafka(cluster, f"app-{topic}")
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(30)
    assert fenced.value.args[0].fatal()
    successor.begin_transaction()
    successor.produce(topic, b"new")
    successor.commit_transaction(30)
    assert read(cluster, topic, "read_committed", has(b"new")) == [b"new"]


def test_offsets_are_committed_with_the_transaction(cluster: Cluster) -> None:
    topic, group = topic_of(cluster), f"group-{uuid.uuid4().hex[:8]}"
    producer = librdkafka(cluster, f"app-{topic}")
    reader = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    place = confluent_kafka.TopicPartition(topic, 0)
    for offset, commits in ((5, True), (9, False)):
        producer.begin_transaction()
        producer.produce(topic, b"x")
        place.offset = offset
        producer.send_offsets_to_transaction([place], reader.consumer_group_metadata(), 30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
        wait_until(
            lambda: reader.committed([confluent_kafka.TopicPartition(topic, 0)], 10)[0].offset == 5,
            "offset 5",
        )
    reader.close()


def test_a_refusal_ends_the_client_and_does_not_let_it_wait(cluster: Cluster) -> None:
    with pytest.raises((KafkaException, KafkaError)):
        librdkafka(cluster, "slow", **{"transaction.timeout.ms": 1_000_000})


def asked(cluster: Cluster, kind: int, name: str) -> Address:
    """The coordinator of a transactional id (kind 1) or a group (kind 0)."""

    def find() -> Address | None:
        request = FindCoordinatorRequest(version=4, key_type=kind, coordinator_keys=[name])
        (row,) = ask(cluster.at(0), request).coordinators
        return (row.host, row.port) if row.error_code == 0 else None

    found = wait_until(find, f"the coordinator of {name}")
    assert found is not None
    return found


def begun(address: Address, name: str, timeout_ms: int = 60_000, version: int = 5, **expected: int) -> Any:
    """The answer to InitProducerId."""
    return ask(
        address,
        InitProducerIdRequest(
            version=version, transactional_id=name, transaction_timeout_ms=timeout_ms,
            **{"producer_id": -1, "producer_epoch": -1} | expected,
        ),
    )  # fmt: skip


def started(cluster: Cluster, name: str, timeout_ms: int = 60_000) -> tuple[int, int]:
    """A new producer's id and epoch, once its coordinator has loaded its states."""
    at = asked(cluster, 1, name)
    answer = wait_until(
        lambda: found if (found := begun(at, name, timeout_ms)).error_code == 0 else None, "an epoch"
    )
    assert answer is not None and answer.producer_epoch == 0
    return answer.producer_id, 0


def ended(address: Address, name: str, producer: tuple[int, int], commits: bool, version: int) -> int:
    """The error of EndTxn."""
    producer_id, epoch = producer
    answer = ask(
        address,
        EndTxnRequest(
            version=version, transactional_id=name, producer_id=producer_id, producer_epoch=epoch,
            committed=commits,
        ),
    )  # fmt: skip
    return int(answer.error_code)


def added(
    address: Address, name: str, producer: tuple[int, int], topics: dict[str, int], version: int
) -> Any:
    """The errors of AddPartitionsToTxn for partition 0 to n − 1 of topics."""
    per_topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    answer = ask(
        address,
        AddPartitionsToTxnRequest(
            version=version,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                per_topic(version=version, name=topic, partitions=list(range(number)))
                for topic, number in topics.items()
            ],
        ),
    )
    return {
        (row.name, part.partition_index): part.partition_error_code
        for row in answer.results_by_topic_v3_and_below
        for part in row.results_by_partition
    }


def transaction_batch(producer: tuple[int, int], key: bytes | None = None) -> bytes:
    """A batch of one record, as the first of a transaction."""
    now_ms = round(time.time() * 1000)
    return encode_batch([(key, b"v", now_ms)], 0, -1, *producer, 0, attributes=TRANSACTIONAL)


def produced(cluster: Cluster, name: str, topic: str, batch: bytes) -> int:
    """The error of Produce v12, which makes the partition part of the transaction."""
    per_topic = ProduceRequest.TopicProduceData
    data = per_topic.PartitionProduceData(version=12, index=0, records=batch)
    request = ProduceRequest(
        version=12, transactional_id=name, acks=-1, timeout_ms=5_000,
        topic_data=[per_topic(version=12, name=topic, partition_data=[data])],
    )  # fmt: skip
    answer = ask(cluster.at(0), request, 20.0)
    return int(answer.responses[0].partition_responses[0].error_code)


def written(cluster: Cluster, name: str, states: int) -> list[TransactionValue]:
    """The first states of a transactional id in the log, with producer ids less the first one, and whether
    there are times instead of the times."""
    client = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": f"log-{name}", "enable.auto.commit": False}
    )
    partitions = client.list_topics("__transaction_state", 10).topics["__transaction_state"].partitions
    client.assign([confluent_kafka.TopicPartition("__transaction_state", n, 0) for n in partitions])
    seen: list[TransactionValue] = []

    def poll() -> bool:
        for message in client.consume(500, timeout=0.2):
            key, value = message.key(), message.value()
            if key is not None and key.endswith(name.encode()) and value is not None:
                batch = encode_batch([(key, value, 0)])
                ((_, state),) = decode_states(batch)
                assert state is not None
                (again,) = decode_batch(encode_state((name, state), 0))
                assert again.value == value, "byte for byte"
                seen.append(state)
        return len(seen) >= states

    wait_until(poll, f"{states} states of {name}")
    client.close()
    first = seen[0].producer_id
    return [
        state._replace(
            producer_id=state.producer_id - first,
            previous_producer_id=state.previous_producer_id - first,
            updated_ms=int(state.updated_ms > 0),
            began_ms=int(state.began_ms > 0),
        )
        for state in seen[:states]
    ]


def test_a_coordinator_writes_what_kafkas_writes_and_fences_as_it_does(cluster: Cluster) -> None:
    """A commit, asked for twice; a transaction that a successor ends; records that a topic does not take."""
    topic, compacted = topic_of(cluster), f"txn-{uuid.uuid4().hex[:8]}"
    cluster.make(compacted, ONE, {"cleanup.policy": "compact"})
    name = f"app-{topic}"
    producer_id, _ = started(cluster, name)
    at = asked(cluster, 1, name)

    def end(epoch: int, commits: bool) -> int:
        return ended(at, name, (producer_id, epoch), commits, 5)

    assert produced(cluster, name, topic, transaction_batch((producer_id, 0))) == 0
    assert end(0, True) == 0
    wait_until(lambda: end(0, True) == 0, "complete: it answers again")
    assert end(0, False) == 48
    assert produced(cluster, name, topic, transaction_batch((producer_id, 1))) == 0
    successor = wait_until(
        lambda: found if (found := begun(at, name)).error_code == 0 else None, "the other one is aborted"
    )
    assert successor is not None and successor.producer_epoch == 3, "one for the end, one for the successor"
    assert [end(1, commits) for commits in (False, True)] == [90, 90]
    assert produced(cluster, name, compacted, transaction_batch((producer_id, 3))) == 87
    assert end(3, False) == 0, "the partition is part of it all the same"
    wait_until(lambda: end(4, False) == 0, "an abort of nothing")
    state = partial(TransactionValue, 0, timeout_ms=60_000, updated_ms=1, previous_producer_id=0)
    both = partial(state, version=2, began_ms=1)
    own, refused = ((topic, 0),), ((compacted, 0),)
    assert written(cluster, name, 12) == [
        state(0, state=TransactionState.EMPTY, began_ms=0),
        both(0, state=TransactionState.ONGOING, partitions=own),
        both(1, state=TransactionState.PREPARE_COMMIT, partitions=own),
        both(1, state=TransactionState.COMPLETE_COMMIT),
        both(1, state=TransactionState.ONGOING, partitions=own),
        both(2, state=TransactionState.PREPARE_ABORT, partitions=own),
        both(2, state=TransactionState.COMPLETE_ABORT),
        state(3, state=TransactionState.EMPTY, began_ms=0, version=2),
        both(3, state=TransactionState.ONGOING, partitions=refused),
        both(4, state=TransactionState.PREPARE_ABORT, partitions=refused),
        both(4, state=TransactionState.COMPLETE_ABORT),
        both(5, state=TransactionState.PREPARE_ABORT),
    ]


def test_refusals_have_kafkas_numbers(cluster: Cluster) -> None:
    name, topic = f"app-{uuid.uuid4().hex[:8]}", topic_of(cluster)
    at = asked(cluster, 1, name)
    nobody = f"nobody-{name}"
    other = asked(cluster, 1, nobody)
    me = started(cluster, name)
    assert [ended(other, nobody, me, True, v) for v in (1, 3)] == [49, 49]
    assert [begun(at, name, timeout_ms).error_code for timeout_ms in (0, -1, 900_001)] == [50, 50, 50]
    assert begun(at, "").error_code == 42
    assert [ended(at, name, (me[0], 7), True, v) for v in (1, 3)] == [47, 90]
    assert [ended(at, name, (me[0] + 1, 0), True, v) for v in (1, 3)] == [49, 49]
    assert [ended(at, name, me, commits, 3) for commits in (True, False)] == [48, 48], "nothing has begun"
    for zombie in (
        {"producer_id": me[0], "producer_epoch": 9},
        {"producer_id": me[0] + 1, "producer_epoch": 0},
    ):
        assert [begun(at, name, version=v, **zombie).error_code for v in (5, 3)] == [90, 47]
    assert added(at, name, me, {topic: 1, "no-such-topic": 1}, 3) == {
        (topic, 0): 55, ("no-such-topic", 0): 3
    }  # fmt: skip
    assert added(at, name, (me[0], 7), {topic: 1}, 3) == {(topic, 0): 90}
    assert added(at, name, (me[0], 7), {topic: 1}, 1) == {(topic, 0): 47}
    assert added(at, name, me, {topic: 1}, 3) == {(topic, 0): 0}
    assert ended(at, name, me, True, 3) == 0
    wait_until(lambda: state_of(at, name)[:2] == (0, "CompleteCommit"), "the markers are written")
    assert [ended(at, name, me, commits, 3) for commits in (True, False)] == [0, 48]
    assert state_of(other, nobody)[:2] == (105, "")


def test_a_frame_that_is_wrong_begins_no_transaction(cluster: Cluster) -> None:
    """Kafka looks at the frame before it adds the partition, and at the checksum after."""
    name, topic = f"app-{uuid.uuid4().hex[:8]}", topic_of(cluster)
    me = started(cluster, name)
    at, batch = asked(cluster, 1, name), transaction_batch(me)
    for wrong, error, state in (
        (batch + batch, 87, "Empty"),
        (batch[:-1], 87, "Empty"),
        (with_field(batch, 8, "i", 5), 2, "Empty"),
        (batch[:-1] + bytes((batch[-1] ^ 1,)), 2, "Ongoing"),
    ):
        assert produced(cluster, name, topic, wrong) == error
        assert state_of(at, name)[:2] == (0, state)


def state_of(address: Address, name: str) -> tuple[int, str, int]:
    """What DescribeTransactions says: error, state and timeout."""
    request = DescribeTransactionsRequest(version=0, transactional_ids=[name])
    (row,) = ask(address, request).transaction_states
    return row.error_code, row.transaction_state, row.transaction_timeout_ms


def test_transactions_are_listed_by_state_producer_and_name(cluster: Cluster) -> None:
    name, topic = f"app-{uuid.uuid4().hex[:8]}", topic_of(cluster)
    at = asked(cluster, 1, name)
    me = started(cluster, name, 30_000)
    assert added(at, name, me, {topic: 1}, 3) == {(topic, 0): 0}
    assert state_of(at, name) == (0, "Ongoing", 30_000)

    def listed(**filters: Any) -> Any:
        return ask(at, ListTransactionsRequest(version=2, **{**NO_FILTERS, **filters}))

    def names(**filters: Any) -> list[str]:
        states = listed(**filters).transaction_states
        return [row.transactional_id for row in states if row.transactional_id == name]

    assert names(state_filters=["Ongoing"]) == [name] and names(state_filters=["Empty"]) == []
    assert names(producer_id_filters=[me[0]]) == [name]
    assert names(producer_id_filters=[me[0] + 1]) == []
    assert names(duration_filter=100_000) == [] and names(transactional_id_pattern="app-.*") == [name]
    assert names(transactional_id_pattern="b.*") == []
    assert list(listed(state_filters=["Sleeping", "Ongoing"]).unknown_state_filters) == ["Sleeping"]
    assert listed(transactional_id_pattern="(").error_code == 128


def test_a_pattern_that_may_take_for_ever_is_refused(simulated_cluster: Served) -> None:
    for pattern in ("(a+)+b", "a*a*a*b", "(?=a)a", "a" * 300):
        request = ListTransactionsRequest(version=2, **{**NO_FILTERS, "transactional_id_pattern": pattern})
        assert ask(simulated_cluster.addresses[0], request).error_code == 128, pattern


NO_FILTERS: dict[str, Any] = {
    "state_filters": [], "producer_id_filters": [], "duration_filter": -1, "transactional_id_pattern": None,
}  # fmt: skip


@pytest.mark.parametrize("commits", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_transaction_outlives_its_coordinator(commits: bool) -> None:
    """The coordinator is killed when the records are written, and another one ends the transaction."""
    with Served("--no-traffic", "--brokers", "5", "--racks", "1", "--set", SESSION) as served:
        served.create("orders", [[0, 1, 2]])
        cluster = Cluster(served.bootstrap, lambda broker: served.addresses[broker], lambda *made: None)
        producer = librdkafka(cluster, "app")
        for value in (b"before", b"across"):
            producer.begin_transaction()
            producer.produce("orders", value)
            assert producer.flush(30) == 0
            if value == b"before":
                producer.commit_transaction(30)
        ports = {port: broker for broker, (_, port) in enumerate(served.addresses)}
        killed = ports[asked(cluster, 1, "app")[1]]
        served.do(f"crash {killed}")
        producer.commit_transaction(60) if commits else producer.abort_transaction(60)
        producer.begin_transaction()
        producer.produce("orders", b"after")
        producer.commit_transaction(60)
        expected = [b"before", b"across", b"after"] if commits else [b"before", b"after"]
        assert read(cluster, "orders", "read_committed", has(b"after")) == expected


SESSION = "broker.session.timeout.ms=3000"
