"""Transactions in the engine: what is committed is read, what is aborted is not, whoever dies in between."""

import random
from collections.abc import Callable

import pytest

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.features import TRANSACTION_VERSION
from kview.simulate.groups.results import CommitRequest, CommitResult, OffsetToCommit
from kview.simulate.log import Log
from kview.simulate.producers import ProducerStates
from kview.simulate.records import (
    TRANSACTIONAL,
    Marker,
    decode_batch,
    encode_batch,
    encode_marker,
    header,
)
from kview.simulate.requests.feature_updates import SAFE_DOWNGRADE, FeatureUpdate
from kview.simulate.requests.records import Acks, EndedTransaction, Reader
from kview.simulate.results import ProduceResult, ProducerIdResult
from kview.simulate.transactions.records import EPOCH_MAX, TransactionState, TransactionValue
from kview.simulate.transactions.records import decode_batch as decode_states
from kview.simulate.transactions.records import encode_batch as encode_state
from kview.simulate.transactions.results import EndResult
from kview.simulate.world import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kview.wire.primitives import INT16, MalformedBytes, Writer
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, partition
from tests.simulate.reading_committed import taken

NAME, TIMEOUT_MS = "payments", 60_000
SETTINGS = {"transaction.state.log.num.partitions": "1", "broker.session.timeout.ms": "3000"}


class Client:
    """A transactional producer that asks whichever broker coordinates it."""

    def __init__(self, cluster: Cluster, name: str = NAME, version: int = 2) -> None:
        self.cluster, self.name, self.version = cluster, name, version
        self.producer = (-1, -1)
        self.sequence = 0

    @property
    def coordinator(self) -> int:
        """The broker that coordinates it now."""
        alive = [b for b in self.cluster.broker_ids() if self.cluster.nodes.serves(b)]
        for _ in range(600):
            node = self.cluster.transactions(alive[0]).find(self.name)
            if node in alive:
                return node
            self.cluster.topics.create_internal_topic(alive[0], TRANSACTIONS_TOPIC)
            go(self.cluster, 0.1)
        raise AssertionError("no coordinator")

    def begin(self) -> None:
        """Take an id and an epoch, as a producer does when it starts."""
        for _ in range(600):
            answers: list[ProducerIdResult] = []
            self.cluster.transactions(self.coordinator).init_producer_id(
                self.name, TIMEOUT_MS, (-1, -1), answers.append
            )
            go(self.cluster, 0.2)
            if answers and answers[0].error_code is ErrorCode.NONE:
                self.producer = (answers[0].producer_id, answers[0].producer_epoch)
                self.sequence = 0
                return
        raise AssertionError(answers)

    def send(self, value: bytes, partition_: int = 0) -> ErrorCode:
        """Append a record, as Produce v12 does: the partition becomes part of the transaction by itself."""
        for _ in range(100):
            leader = partition(self.cluster, partition_).leader
            if leader >= 0 and self.cluster.nodes.serves(leader):
                break
            go(self.cluster, 0.2)
        batch = encode_batch(
            [(None, value, START_MS)], 0, -1, *self.producer, self.sequence, attributes=TRANSACTIONAL
        )
        self.sequence += 1
        answers: list[ProduceResult] = []

        def admit(producer_id: int, epoch: int, then: object) -> None:
            self.cluster.asking.admit(
                leader,
                self.name,
                (producer_id, epoch),
                (TOPIC, partition_),
                True,
                then,  # type: ignore[arg-type]
            )

        acks = Acks(-1, 30_000, answers.append)
        self.cluster.records.produce(leader, TOPIC, partition_, batch, acks, admit)
        for _ in range(40):
            if answers:
                return answers[0].error_code
            go(self.cluster, 1.0)
        return ErrorCode.REQUEST_TIMED_OUT

    def end(self, is_commit: bool) -> EndResult:
        """Commit or abort, once."""
        answers: list[EndResult] = []
        self.cluster.transactions(self.coordinator).end(
            self.name, self.producer, is_commit, self.version, answers.append
        )
        go(self.cluster, 0.5)
        (result,) = answers or [EndResult(ErrorCode.REQUEST_TIMED_OUT)]
        if result.error_code is ErrorCode.NONE and result.producer_id >= 0:
            self.producer, self.sequence = (result.producer_id, result.producer_epoch), 0
        return result


def values(cluster: Cluster, committed: bool, number: int = 0) -> list[bytes]:
    """What a consumer reads of a partition: all records, or those of committed transactions."""
    leader = partition(cluster, number).leader
    read = cluster.records.read(leader, TOPIC, number, 0, 1 << 20, Reader(committed=committed))
    assert read.error_code is ErrorCode.NONE
    batches = taken(read.records, dict.fromkeys(read.aborted))
    return [record.value or b"" for _, batch in batches for record in decode_batch(batch)]


def stable(cluster: Cluster, number: int = 0) -> int:
    """The last stable offset at the leader."""
    return cluster.brokers[partition(cluster, number).leader].replicas[TOPIC, number].last_stable()


def test_what_is_committed_is_read_and_what_is_aborted_is_not() -> None:
    cluster = cluster_of(partitions=2, settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    assert [client.send(b"a"), client.send(b"b", 1)] == [ErrorCode.NONE] * 2
    assert values(cluster, committed=True) == [] and values(cluster, committed=False) == [b"a"]
    assert stable(cluster) == 0
    assert client.end(is_commit=True).error_code is ErrorCode.NONE
    go(cluster, 2)
    assert values(cluster, committed=True) == [b"a"] and values(cluster, True, 1) == [b"b"]
    assert client.send(b"c") is ErrorCode.NONE
    assert client.end(is_commit=False).error_code is ErrorCode.NONE
    go(cluster, 2)
    assert client.send(b"d") is ErrorCode.NONE
    assert client.end(is_commit=True).error_code is ErrorCode.NONE
    go(cluster, 2)
    assert values(cluster, committed=True) == [b"a", b"d"]
    assert values(cluster, committed=False) == [b"a", b"c", b"d"]
    assert stable(cluster) == 6, "three records, each with its marker"


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_decision_outlives_its_coordinator(is_commit: bool) -> None:
    cluster = cluster_of(brokers=4, settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    assert client.send(b"a") is ErrorCode.NONE
    answers: list[EndResult] = []
    coordinator = client.coordinator
    cluster.transactions(coordinator).end(client.name, client.producer, is_commit, 2, answers.append)
    while not answers:
        go(cluster, 0.001)
    cluster.faults.crash(coordinator)
    go(cluster, 10)
    assert client.coordinator != coordinator
    assert values(cluster, committed=True) == ([b"a"] if is_commit else [])
    state = cluster.transactions(client.coordinator).describe(NAME).state
    assert state == ("CompleteCommit" if is_commit else "CompleteAbort")


def test_an_open_transaction_outlives_its_coordinator_and_goes_on() -> None:
    cluster = cluster_of(brokers=4, settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    assert client.send(b"a") is ErrorCode.NONE
    cluster.faults.crash(client.coordinator)
    go(cluster, 10)
    assert client.send(b"b") is ErrorCode.NONE and stable(cluster) == 0
    assert client.end(is_commit=True).error_code is ErrorCode.NONE
    go(cluster, 2)
    assert values(cluster, committed=True) == [b"a", b"b"]


def test_a_second_producer_of_the_name_aborts_and_fences_the_first() -> None:
    cluster = cluster_of(settings=SETTINGS)
    zombie, successor = Client(cluster), Client(cluster)
    zombie.begin()
    assert zombie.send(b"old") is ErrorCode.NONE
    successor.begin()
    assert successor.producer[0] == zombie.producer[0] and successor.producer[1] > zombie.producer[1]
    assert zombie.send(b"late") in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert zombie.end(is_commit=True).error_code is ErrorCode.PRODUCER_FENCED
    assert successor.send(b"new") is ErrorCode.NONE
    assert successor.end(is_commit=True).error_code is ErrorCode.NONE
    go(cluster, 2)
    assert values(cluster, committed=True) == [b"new"]


def test_a_transaction_that_takes_longer_than_its_timeout_is_aborted() -> None:
    cluster = cluster_of(settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    assert client.send(b"a") is ErrorCode.NONE
    go(cluster, TIMEOUT_MS / 1000 - 5)
    assert stable(cluster) == 0
    go(cluster, 20)
    assert stable(cluster) == 2 and values(cluster, committed=True) == []
    assert client.end(True).error_code is ErrorCode.INVALID_TXN_STATE
    assert client.end(False).error_code is ErrorCode.NONE, "as measured: it gets the new epoch, and goes on"
    assert client.send(b"b") is ErrorCode.NONE and client.end(True).error_code is ErrorCode.NONE
    go(cluster, 2)
    assert values(cluster, committed=True) == [b"b"]


def test_a_new_leader_knows_what_is_open_and_what_was_aborted() -> None:
    cluster = cluster_of(brokers=4, settings=SETTINGS)
    client, other = Client(cluster), Client(cluster, "other")
    client.begin()
    other.begin()
    assert client.send(b"gone") is ErrorCode.NONE
    assert client.end(is_commit=False).error_code is ErrorCode.NONE
    assert other.send(b"open") is ErrorCode.NONE
    go(cluster, 1)
    cluster.faults.crash(partition(cluster).leader)
    go(cluster, 10)
    assert stable(cluster) == 2 and values(cluster, committed=True) == []
    assert values(cluster, committed=False) == [b"gone", b"open"]
    assert other.end(is_commit=True).error_code is ErrorCode.NONE
    go(cluster, 2)
    assert values(cluster, committed=True) == [b"open"]


def test_states_are_written_as_kafka_writes_them() -> None:
    value = TransactionValue(
        4711, 3, 60_000, TransactionState.PREPARE_COMMIT, (("a", 1), ("a", 2), ("b", 0)), 20, 10, 5, 6, 2
    )
    assert decode_states(encode_state(("app", value), 0)) == [("app", value)]
    assert decode_states(encode_state(("app", None), 0)) == [("app", None)]
    assert [state.called for state in TransactionState] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip


class Ledger:
    """What a client knows of its transactions: their values, and how they ended, None if it cannot tell."""

    def __init__(self) -> None:
        self.transactions: list[tuple[list[bytes], bool | None]] = []


def run_transaction(client: Client, ledger: Ledger, source: random.Random, number: int) -> None:
    """Write some records and end the transaction, or start again with a new epoch after an error."""
    values = [b"%s-%d-%d" % (client.name.encode(), number, n) for n in range(source.randint(1, 3))]
    is_commit = source.random() < 0.6
    for value in values:
        if client.send(value, source.randint(0, 1)) is not ErrorCode.NONE:
            ledger.transactions.append((values, False))  # it is never committed
            client.begin()
            return
    for _ in range(100):
        result = client.end(is_commit)
        if result.error_code is ErrorCode.NONE:
            ledger.transactions.append((values, is_commit))
            return
        if result.error_code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE):
            break
    ledger.transactions.append((values, None if is_commit else False))
    client.begin()


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_whoever_dies_transactions_are_whole_or_not_there(seed: int) -> None:
    source = random.Random(seed)
    settings = {**SETTINGS, "min.insync.replicas": "2", "offsets.topic.num.partitions": "1"}
    cluster = cluster_of(brokers=5, partitions=2, settings=settings, seed=seed)
    clients = [Client(cluster, f"app{n}") for n in range(3)]
    ledgers = [Ledger() for _ in clients]
    for client in clients:
        client.begin()
    down: int | None = None
    for number in range(25):
        if down is not None and source.random() < 0.5:
            cluster.faults.start(down)
            go(cluster, 8)
            down = None
        elif down is None and source.random() < 0.5:
            down = source.choice(cluster.broker_ids())
            source.choice((cluster.faults.crash, cluster.faults.hang))(down)
        at = source.randrange(len(clients))
        run_transaction(clients[at], ledgers[at], source, number)
    zombie, successor = clients[0], Client(cluster, clients[0].name)
    zombie.send(b"left open")
    successor.begin()
    assert zombie.send(b"zombie") is not ErrorCode.NONE
    assert zombie.end(is_commit=True).error_code is not ErrorCode.NONE
    if down is not None:
        cluster.faults.start(down)
    go(cluster, 60)
    found = values(cluster, committed=True) + values(cluster, True, 1)
    assert len(found) == len(set(found)), "nothing comes twice"
    assert not {b"left open", b"zombie"} & set(found)
    ends = [stable(cluster, n) for n in (0, 1)]
    logs = [cluster.brokers[partition(cluster, n).leader].replicas[TOPIC, n] for n in (0, 1)]
    assert ends == [log.high_watermark for log in logs] == [log.log.end for log in logs], "nothing is open"
    told = [known for ledger in ledgers for known in ledger.transactions]
    assert (
        sum(is_commit is True for _, is_commit in told)
        >= 5
        <= sum(is_commit is False for _, is_commit in told)
    )
    for written, is_commit in told:
        read = [value in found for value in written]
        assert len(set(read)) == 1, f"a part of {written}"
        assert is_commit is None or read[0] is is_commit, (written, is_commit)


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_of_a_transaction_outlive_the_coordinator_of_the_group(is_commit: bool) -> None:
    cluster = cluster_of(brokers=4, settings=SETTINGS)
    client = Client(cluster)
    client.begin()

    def coordinator() -> int:
        alive = [b for b in cluster.broker_ids() if cluster.nodes.serves(b)]
        return cluster.groups(alive[0]).find("g")

    def fetched(require_stable: bool) -> tuple[int, ErrorCode]:
        (offset,) = cluster.groups(coordinator()).fetch_offsets("g", [(TOPIC, 0)], require_stable).offsets
        return offset.offset, offset.error_code

    codes: list[ErrorCode] = []
    key = (OFFSETS_TOPIC, 0)
    cluster.asking.admit(coordinator(), NAME, client.producer, key, True, codes.append)
    go(cluster, 1)
    offsets = (OffsetToCommit(TOPIC, 0, 7, -1, ""),)
    answers: list[CommitResult] = []
    cluster.groups(coordinator()).commit(
        CommitRequest("g", offsets, producer=client.producer), answers.append
    )
    go(cluster, 1)
    assert codes == [ErrorCode.NONE] and answers == [CommitResult((ErrorCode.NONE,))]
    assert fetched(False) == (-1, ErrorCode.NONE), "it is not in force yet"
    assert fetched(True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    cluster.faults.crash(coordinator())
    go(cluster, 10)
    assert fetched(True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), "the new coordinator knows it"
    assert client.end(is_commit).error_code is ErrorCode.NONE
    go(cluster, 3)
    assert fetched(True) == ((7 if is_commit else -1), ErrorCode.NONE)
    cluster.faults.crash(coordinator())
    cluster.faults.undo()
    go(cluster, 15)
    assert fetched(True) == ((7 if is_commit else -1), ErrorCode.NONE)


def test_a_zombie_that_asks_for_a_newer_epoch_does_not_get_its_successors() -> None:
    cluster = cluster_of(settings=SETTINGS)
    zombie, successor = Client(cluster), Client(cluster)
    zombie.begin()
    successor.begin()

    def asked(expected: tuple[int, int]) -> ProducerIdResult:
        answers: list[ProducerIdResult] = []
        coordinator = cluster.transactions(zombie.coordinator)
        coordinator.init_producer_id(NAME, TIMEOUT_MS, expected, answers.append)
        go(cluster, 1)
        return answers[0]

    assert asked(zombie.producer).error_code is ErrorCode.PRODUCER_FENCED
    producer_id, epoch = successor.producer
    assert asked((producer_id, epoch)) == (ErrorCode.NONE, producer_id, epoch + 1)
    assert asked((producer_id, epoch)) == (ErrorCode.NONE, producer_id, epoch + 1), "it asks again"
    assert asked((producer_id, -1)).error_code is ErrorCode.INVALID_REQUEST


def test_a_batch_that_was_admitted_before_the_end_of_its_transaction_is_refused() -> None:
    cluster = cluster_of(settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    assert client.send(b"a") is ErrorCode.NONE
    leader, answers = partition(cluster).leader, list[ProduceResult]()
    late = encode_batch([(None, b"late", START_MS)], 0, -1, 4711, 0, 0, TRANSACTIONAL)

    def admit(producer_id: int, epoch: int, then: Callable[[ErrorCode], None]) -> None:
        marker = EndedTransaction(producer_id, epoch, Marker(False, 0))
        cluster.records.write_marker(leader, (TOPIC, 0), marker, lambda code: None)
        then(ErrorCode.NONE)

    cluster.records.produce(leader, TOPIC, 0, late, Acks(-1, 1_000, answers.append), admit)
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_TXN_STATE]


def test_a_marker_counts_when_it_is_committed_and_the_log_start_is_the_least() -> None:
    log, states = Log(), ProducerStates(0)
    stream = log.begin_epoch(0)

    def append(batch: bytes) -> None:
        stream.append_batch(batch, header(batch))
        log.end = stream.end
        states.read(log)

    append(encode_batch([(None, b"a", START_MS)], 0, -1, 1, 0, 0, TRANSACTIONAL))
    append(encode_marker(Marker(False, 0), 1, 0, START_MS))
    assert [states.undecided_from(2), states.last_stable(1), states.last_stable(2)] == [2, 0, 2]
    cluster = cluster_of(settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    for value in (b"a", b"b", b"c"):
        assert client.send(value) is ErrorCode.NONE
    leader = cluster.brokers[partition(cluster).leader].replicas[TOPIC, 0]
    leader.advance_start(2)
    assert leader.last_stable() == 2, "the transaction began at 0"


def test_a_decision_that_is_committed_after_everybody_has_given_up_is_carried_out() -> None:
    cluster = cluster_of(settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    assert client.send(b"late") is ErrorCode.NONE
    coordinator = client.coordinator
    followers = [b for b in cluster.broker_ids() if b != coordinator]
    for broker in followers:
        cluster.faults.hang(broker)
    assert client.end(is_commit=True).error_code is ErrorCode.REQUEST_TIMED_OUT
    go(cluster, 70)
    assert cluster.transactions(coordinator).describe(NAME).state == "Ongoing"
    for broker in followers:
        cluster.faults.start(broker)
    go(cluster, 30)
    assert cluster.transactions(client.coordinator).describe(NAME).state == "CompleteCommit"
    assert values(cluster, committed=True) == [b"late"]


def test_what_a_dead_coordinator_was_asked_is_answered_at_once() -> None:
    cluster = cluster_of(brokers=4, settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    node = client.coordinator
    other = next(b for b in cluster.broker_ids() if b != node)
    codes: list[ErrorCode] = []
    cluster.asking.admit(other, NAME, client.producer, (TOPIC, 0), True, codes.append)
    cluster.faults.crash(node)
    cluster.asking.admit(other, NAME, client.producer, (TOPIC, 0), True, codes.append)
    go(cluster, 0.1)
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def test_a_record_that_no_coordinator_wrote_is_skipped() -> None:
    good = TransactionValue(1, 0, 60_000, TransactionState.EMPTY)
    for damaged in (good._replace(producer_epoch=-2), good._replace(producer_id=-5)):
        with pytest.raises(MalformedBytes):
            decode_states(encode_state(("app", damaged), 0))
    key = Writer().int16(0).string("app").done()
    value = Writer().int16(1).int64(1).int16(0).int32(1).int8(99).array_length(0, True).int64(0).int64(0)
    with pytest.raises(MalformedBytes):
        decode_states(encode_batch([(key, value.tagged_fields({}).done(), 0)]))


@pytest.mark.parametrize(("level", "value_version"), [(0, 0), (1, 1)])
def test_states_are_stored_in_the_format_of_the_transaction_version_in_force(
    level: int, value_version: int
) -> None:
    cluster = cluster_of(settings=SETTINGS)
    cluster.features.update([FeatureUpdate(TRANSACTION_VERSION, level, SAFE_DOWNGRADE)], False)
    go(cluster, 1)
    client = Client(cluster)
    client.begin()
    batches = cluster.records.client_batches(client.coordinator, TRANSACTIONS_TOPIC, 0)
    stored = [record.value or b"" for _, batch in batches for record in decode_batch(batch)]
    assert [INT16.unpack_from(value)[0] for value in stored] == [value_version]


def test_after_the_last_epoch_comes_a_new_id_also_for_who_has_not_heard_the_answer() -> None:
    cluster = cluster_of(settings=SETTINGS)
    client = Client(cluster)
    client.begin()
    shard = cluster.transactions(client.coordinator)._shard(NAME)
    assert not isinstance(shard, ErrorCode)
    known = shard.transactions[NAME]
    known.value = known.value._replace(producer_epoch=EPOCH_MAX)
    last = client.producer = client.producer[0], EPOCH_MAX
    client.sequence = 0
    assert client.send(b"last") is ErrorCode.NONE
    first = client.end(is_commit=True)
    assert first.error_code is ErrorCode.NONE and first.producer_id > last[0] and first.producer_epoch == 0
    client.producer = last
    assert client.end(is_commit=False).error_code is ErrorCode.INVALID_TXN_STATE
    assert client.end(is_commit=True) == first, "it asks again"
    assert client.send(b"next") is ErrorCode.NONE and client.end(is_commit=True).producer_epoch == 1
    client.producer = last
    assert client.end(is_commit=True).error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert values(cluster, committed=True) == [b"last", b"next"]
