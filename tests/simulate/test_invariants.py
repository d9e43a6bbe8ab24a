"""Each invariant detects a cluster that was broken on purpose."""

from collections.abc import Callable

import pytest

from kview.simulate.cluster import Cluster
from kview.simulate.groups.results import CommitRequest, OffsetToCommit
from kview.simulate.records import TRANSACTIONAL, encode_batch, header
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, partition, produce, replica
from tests.simulate.group_invariants import of_the_cluster
from tests.simulate.invariants import Checker, InvariantBroken


def healthy() -> Cluster:
    cluster = cluster_of()
    go(cluster, 3)
    produce(cluster, 0, [b"a"] * 10)
    go(cluster, 1)
    return cluster


def decide(cluster: Cluster, **how: object) -> None:
    """Make the controller decide something that its rules forbid."""
    cluster.metadata.commit({(TOPIC, 0): partition(cluster)._replace(**how)})  # type: ignore[arg-type]


def cut(cluster: Cluster) -> None:
    replica(cluster, 1).log.truncate(5)
    replica(cluster, 1).high_watermark = 5


def second_leader(cluster: Cluster) -> None:
    replica(cluster, 2).leading = True


def fall(cluster: Cluster) -> None:
    replica(cluster, 0).high_watermark = 3


def beyond(cluster: Cluster) -> None:
    replica(cluster, 2).high_watermark = 99


def fence(cluster: Cluster) -> None:
    known = cluster.metadata.image.brokers[0]
    cluster.metadata.commit({}, {0: known._replace(fenced=True)})


def written(cluster: Cluster, *batches: tuple[int, int]) -> None:
    """Write a record of each (epoch, sequence number) of a transactional producer, which nobody checks."""
    leader = replica(cluster, 0)
    assert leader.stream is not None
    for epoch, sequence in batches:
        records = [(None, b"x", START_MS)]
        data = encode_batch(records, 0, -1, 7, epoch, sequence, attributes=TRANSACTIONAL)
        leader.stream.append_batch(data, header(data))
    leader.log.end = leader.stream.end
    leader.wake_followers()
    go(cluster, 1)


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (lambda c: written(c, (1, 0), (0, 1)), "TransactionsAreWholeAndUnfenced: .* epoch 0"),
        (lambda c: written(c, (0, 0), (0, 1), (0, 1)), "TransactionsAreWholeAndUnfenced: .* number 1, not 2"),
        (lambda c: written(c, (0, 0), (1, 1)), "TransactionsAreWholeAndUnfenced: .* number 1, not 0"),
        (lambda c: decide(c, isr=(0, 1, 1)), "IsrIsAmongReplicas"),
        (lambda c: decide(c, leader=2, isr=(0, 1)), "LeaderIsActive"),
        (fence, "LeaderIsActive"),
        (lambda c: decide(c, leader_epoch=-1), "EpochsNeverFall"),
        (second_leader, "OneLeaderPerEpoch"),
        (beyond, "OffsetsAreInOrder"),
        (fall, "WatermarkNeverFalls"),
        (cut, "CommittedIsOnEveryIsrMember"),
    ],
)
def test_it_is_found(broken: Callable[[Cluster], None], name: str) -> None:
    cluster = healthy()
    checker = Checker(cluster)
    checker.check_all()
    with pytest.raises(InvariantBroken, match=name):
        broken(cluster)
        checker.check_all()


def test_what_the_cleaner_has_removed_is_not_missing() -> None:
    cluster = healthy()
    replica(cluster, 0).log.cleaned_to = 99
    written(cluster, (0, 0), (0, 2))
    Checker(cluster).check_all()
    replica(cluster, 0).log.cleaned_to = 0
    with pytest.raises(InvariantBroken, match="number 2, not 1"):
        Checker(cluster).check_all()


def test_a_follower_with_other_records_is_found() -> None:
    cluster = healthy()
    checker = Checker(cluster)
    checker.check_all()
    log = replica(cluster, 1).log
    log.truncate(5)
    stream = log.begin_epoch(0)
    stream.append_run(5, 0, 1, 100, 0)
    log.end = stream.end
    with pytest.raises(InvariantBroken, match="CommittedIsOnEveryIsrMember"):
        checker.check_all()


def test_a_replica_of_a_deleted_topic_is_found() -> None:
    cluster = healthy()
    checker = Checker(cluster, invariants=[], others=of_the_cluster(cluster))
    checker.check_all()
    replica(cluster, 1).topic_id = bytes(16)
    with pytest.raises(InvariantBroken, match="ReplicasAreOfLivingTopics"):
        checker.check_all()


def test_an_offset_of_a_deleted_topic_is_found() -> None:
    cluster = healthy()
    checker = Checker(cluster, others=of_the_cluster(cluster))
    coordinator = cluster.groups(cluster.groups(0).find("g"))
    coordinator.commit(CommitRequest("g", (OffsetToCommit(TOPIC, 0, 3),)), lambda result: None)
    go(cluster, 1)
    checker.check_all()
    (group,) = coordinator.groups()
    group.offsets[TOPIC, 0] = group.offsets[TOPIC, 0]._replace(topic_id=bytes(16))
    with pytest.raises(InvariantBroken, match="CommittedOffsetsAreOfLivingTopics"):
        checker.check_all()
