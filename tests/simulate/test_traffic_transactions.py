"""Simulated producers with transactions, and groups that read them: exactly once, whatever dies."""

import pytest

from kview.errors import BadUse
from kview.model.lab import Command, CommandKind
from kview.simulate.cluster import Cluster, build
from kview.simulate.records import CONTROL, TRANSACTIONAL, decode_marker, header
from kview.simulate.traffic.transactions import Phase, Transactions
from kview.simulate.world import (
    TRANSACTIONS_TOPIC,
    GroupSpec,
    ProducerSpec,
    TopicSpec,
    World,
    racked_brokers,
)
from tests.simulate.engine import go
from tests.simulate.invariants import Checker

START_MS = 1_700_000_000_000
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "broker.session.timeout.ms": "3000",
}
PARTITIONS = 3


def at_work(abort_every: int = 0, seed: int = 1) -> Cluster:
    """A topic with a producer of 300 records/s, which ends a transaction each second, and two groups."""
    world = World(
        racked_brokers(3, 1),
        (TopicSpec("t", PARTITIONS, 3, {"min.insync.replicas": "2"}),),
        (ProducerSpec("p", "t", 300.0, transaction_ms=1000, abort_every=abort_every),),
        (GroupSpec("strict", ("t",), 1, read_committed=True), GroupSpec("loose", ("t",), 1)),
        settings=SETTINGS,
        warm_ms=0,
    )
    cluster = build(world, seed, START_MS)
    Checker(cluster, every_event=False)
    go(cluster, 5)
    return cluster


def transactions(cluster: Cluster, name: str = "p") -> Transactions:
    """The transactions of a producer."""
    found = cluster.traffic.producers[name].transactions
    assert found is not None
    return found


def coordinator(cluster: Cluster) -> int:
    """The broker that leads the one partition of `__transaction_state`."""
    return cluster.metadata.image.topics[TRANSACTIONS_TOPIC].partitions[0].leader


def written(cluster: Cluster) -> dict[tuple[int, int], dict[int, list[int]]]:
    """Return the sequence numbers in the log that each epoch of a producer has, by partition, of committed
    transactions only. Epochs are those of the records: a marker has the next one."""
    found: dict[tuple[int, int], dict[int, list[int]]] = {}
    for number in range(PARTITIONS):
        replica = cluster.partitions.leader(("t", number))
        assert replica is not None
        open_: dict[int, list[tuple[int, int]]] = {}
        for _, batch, _ in replica.log.batches(0, replica.high_watermark):
            head = header(batch)
            assert head.attributes & TRANSACTIONAL
            if head.attributes & CONTROL:
                marker = decode_marker(batch)
                if marker is not None and marker.is_commit:
                    for epoch, sequence in open_.pop(head.producer_id, []):
                        key = (head.producer_id, epoch)
                        found.setdefault(key, {}).setdefault(number, []).append(sequence)
                open_.pop(head.producer_id, None)
            else:
                sequences = range(head.base_sequence, head.base_sequence + head.records)
                open_.setdefault(head.producer_id, []).extend((head.producer_epoch, s) for s in sequences)
    return found


def exactly_once(cluster: Cluster) -> int:
    """Check that each committed transaction is in the log whole and once, and return its records."""
    records = 0
    for by_partition in written(cluster).values():
        for sequences in by_partition.values():
            assert sequences == list(range(len(sequences)))
            records += len(sequences)
    return records


def test_committed_transactions_are_read_and_aborted_ones_are_not() -> None:
    cluster = at_work(abort_every=3)
    go(cluster, 20)
    cluster.traffic.producers["p"].set_rate(0.0)
    go(cluster, 5)
    its, groups = transactions(cluster), cluster.counters()["groups"]
    assert its.committed >= 2 * its.aborted >= 10
    assert isinstance(groups, dict)
    strict, loose = groups["strict"], groups["loose"]
    acknowledged = sum(cluster.traffic.producers["p"].counters.acknowledged)
    assert strict["read"] == exactly_once(cluster)
    assert strict["aborted"] == 0
    assert loose["read"] == acknowledged == strict["read"] + loose["aborted"]
    assert loose["aborted"] > 1000


def test_a_program_whose_transaction_took_too_long_starts_again() -> None:
    world = World(
        racked_brokers(3, 1),
        (TopicSpec("t", PARTITIONS, 1),),
        (ProducerSpec("p", "t", 300.0, transaction_ms=1000),),
        settings=SETTINGS,
        warm_ms=0,
    )
    cluster = build(world, 1, START_MS)
    go(cluster, 5)
    leads = next(b for b in cluster.broker_ids() if b != coordinator(cluster))
    cluster.faults.crash(leads)
    go(cluster, 80)
    cluster.faults.start(leads)
    go(cluster, 10)
    its = transactions(cluster)
    before = its.committed
    go(cluster, 20)
    assert its.phase is not Phase.FENCED and its.aborted >= 1 and its.committed - before >= 10


def test_a_reader_of_committed_records_waits_for_the_end_of_a_transaction() -> None:
    cluster = at_work()
    for _ in range(20):
        go(cluster, 0.1)
        for number in range(PARTITIONS):
            replica = cluster.partitions.leader(("t", number))
            assert replica is not None
            strict = cluster.traffic.members["strict"][0]._reader.positions["t", number]
            assert strict <= replica.last_stable() <= replica.high_watermark


@pytest.mark.quick(2)
@pytest.mark.parametrize("victim", ["coordinator", "leader"])
@pytest.mark.parametrize("fault", ["crash", "hang", "stop"])
def test_it_goes_on_when_a_broker_dies_and_nothing_is_written_twice_or_lost(fault: str, victim: str) -> None:
    cluster = at_work(abort_every=7)
    its = transactions(cluster)
    leader = cluster.image(0).topics["t"].partitions[1].leader
    hit = coordinator(cluster) if victim == "coordinator" else leader
    getattr(cluster.faults, fault)(hit)
    go(cluster, 50)
    ended, epoch = its.committed, its.producer[1]
    go(cluster, 20)
    assert its.phase is not Phase.FENCED
    assert its.committed > ended + 5 and its.producer[1] > epoch
    cluster.faults.start(hit)
    go(cluster, 20)
    cluster.traffic.producers["p"].set_rate(0.0)
    go(cluster, 20)
    groups = cluster.counters()["groups"]
    assert isinstance(groups, dict)
    assert groups["strict"]["read"] == exactly_once(cluster)
    assert groups["strict"]["reread"] == groups["strict"]["skipped"] == 0
    counters = cluster.traffic.producers["p"].counters
    if its.aborted * 7 <= its.committed + its.aborted:  # none but those that were due
        assert sum(counters.expired) == 0
    done = zip(counters.acknowledged, counters.expired, strict=True)
    assert counters.created == [acknowledged + expired for acknowledged, expired in done]


def test_a_producer_whose_id_is_taken_over_is_fenced_and_its_last_records_are_not_committed() -> None:
    cluster = at_work()
    old = cluster.traffic.producers["p"]
    fenced_epoch = transactions(cluster).producer
    cluster.adjustments.apply(Command(CommandKind.TAKE_OVER, name="p"))
    created = sum(old.counters.created)
    go(cluster, 5)
    assert transactions(cluster).phase is Phase.FENCED
    assert created < sum(old.counters.created)  # It went on until it was told.
    new = transactions(cluster, "p-2")
    assert new.producer[0] == fenced_epoch[0] and new.producer[1] > fenced_epoch[1]
    assert new.committed >= 2
    assert [each.rate for each in cluster.adjustments.settings().producers] == [0.0, 300.0]
    ended = sum(old.counters.created)
    cluster.traffic.producers["p-2"].set_rate(0.0)
    go(cluster, 5)
    assert sum(old.counters.created) == ended
    assert fenced_epoch not in written(cluster)
    groups = cluster.counters()["groups"]
    assert isinstance(groups, dict)
    assert groups["strict"]["read"] == exactly_once(cluster)
    assert groups["loose"]["aborted"] > 0


def test_nobody_takes_over_from_a_producer_without_transactions() -> None:
    world = World(racked_brokers(3, 1), (TopicSpec("t", 1, 3),), (ProducerSpec("p", "t", 1.0),))
    cluster = build(world, 1, START_MS)
    with pytest.raises(BadUse):
        cluster.adjustments.apply(Command(CommandKind.TAKE_OVER, name="p"))


def stable(cluster: Cluster, number: int = 0) -> int:
    """The last stable offset of a partition."""
    replica = cluster.partitions.leader(("t", number))
    assert replica is not None
    return replica.last_stable()


def test_a_hanging_transaction_holds_readers_of_committed_records_until_it_is_aborted() -> None:
    cluster = at_work()
    back = cluster.adjustments.apply(Command(CommandKind.HANG_TRANSACTION, name="t-0"))
    assert back == Command(CommandKind.ABORT_TRANSACTION, name="t-0")
    go(cluster, 2)
    held = stable(cluster)
    strict, loose = (cluster.traffic.members[name][0] for name in ("strict", "loose"))
    go(cluster, 100)  # longer than transaction.timeout.ms: no coordinator ends it
    assert stable(cluster) == held == strict._reader.positions["t", 0]
    assert loose._reader.positions["t", 0] > held + 5000
    assert strict._reader.positions["t", 1] > held + 5000
    leader = cluster.image(0).topics["t"].partitions[0].leader
    cluster.faults.crash(leader)
    go(cluster, 10)
    assert stable(cluster) == held  # It is in the log.
    cluster.faults.start(leader)
    go(cluster, 10)
    cluster.adjustments.undo(back)
    go(cluster, 5)
    assert stable(cluster) > held + 5000
    cluster.traffic.producers["p"].set_rate(0.0)
    go(cluster, 5)
    groups = cluster.counters()["groups"]
    assert isinstance(groups, dict)
    assert groups["strict"]["read"] == exactly_once(cluster)
    assert groups["loose"]["aborted"] == 1  # the late write
    cluster.adjustments.undo(back)  # for the second time
    with pytest.raises(BadUse):
        cluster.adjustments.apply(back)


def test_an_open_transaction_that_a_coordinator_knows_is_not_aborted_as_hanging() -> None:
    cluster = at_work()
    go(cluster, 0.5)
    assert transactions(cluster).phase is Phase.OPEN
    with pytest.raises(BadUse):
        cluster.adjustments.apply(Command(CommandKind.ABORT_TRANSACTION, name="t-0"))
    cluster.adjustments.apply(Command(CommandKind.HANG_TRANSACTION, name="t-0"))
    cluster.faults.crash(coordinator(cluster))
    with pytest.raises(BadUse):
        cluster.adjustments.apply(Command(CommandKind.ABORT_TRANSACTION, name="t-0"))


@pytest.mark.parametrize("name", ["t", "t-x", "t-3", "u-0", ""])
def test_only_a_partition_that_exists_can_have_a_hanging_transaction(name: str) -> None:
    with pytest.raises(BadUse):
        at_work().adjustments.apply(Command(CommandKind.HANG_TRANSACTION, name=name))
