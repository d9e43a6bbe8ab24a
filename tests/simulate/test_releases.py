"""A cluster of an older release: what its engine does otherwise, and which settings and data it takes."""

from dataclasses import replace

import pytest

from kview.errors import BadUse
from kview.simulate.acls import Acl, AclFilter, AclOperation, PatternType, Permission, ResourceType
from kview.simulate.cluster import build
from kview.simulate.codes import ErrorCode
from kview.simulate.features import KRAFT_VERSION
from kview.simulate.releases import KAFKA_3_9, RELEASES
from kview.simulate.requests.feature_updates import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate
from kview.simulate.results import AdminResult, CreateTopicResult
from kview.simulate.saved import Saved
from kview.simulate.settings import Settings
from kview.simulate.topics import CreatableTopic
from kview.simulate.traffic.transactions import Phase
from kview.simulate.world import ProducerSpec, TopicSpec, World, racked_brokers
from tests.errors import raises_saying
from tests.simulate.engine import START_MS, cluster_of, go
from tests.simulate.test_acls import selected

PRODUCER = ProducerSpec("p", "t", 100.0, transaction_ms=500, abort_every=3)


def test_the_last_replica_of_3_9_stays_in_the_isr_and_no_replica_is_eligible_besides() -> None:
    cluster = cluster_of(replication=1, settings={"min.insync.replicas": "1"}, release=KAFKA_3_9)
    assert dict(cluster.metadata.image.features) == {"kraft.version": 1, "metadata.version": 21}
    assert not cluster.metadata.image.broker_configs
    cluster.faults.crash(0)
    go(cluster, 15)
    partition = cluster.metadata.image.partition("t", 0)
    assert partition is not None
    assert (partition.leader, partition.isr, partition.elr) == (-1, (0,), ())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("eligible.leader.replicas.version", "1", "eligible.leader.replicas.version"),
        ("group.streams.max.size", "9", "group.streams.max.size"),
        ("group.coordinator.rebalance.protocols", "classic,streams", "classic, consumer"),
        ("group.coordinator.rebalance.protocols", "consumer", "classic,consumer"),
        ("group.coordinator.rebalance.protocols", "", "classic,consumer"),
        ("controller.quorum.election.timeout.ms", "-1", "controller.quorum.election.timeout.ms"),
        ("group.consumer.assignors", "uniform", "UniformAssignor"),
    ],
)
def test_what_3_9_lacks_cannot_be_set(name: str, value: str, said: str) -> None:
    with raises_saying(BadUse, said):
        Settings({name: value}, KAFKA_3_9)


def test_smaller_segments_are_for_3_9_alone() -> None:
    settings = {"log.segment.bytes": "14"}
    assert Settings(settings, KAFKA_3_9).number("log.segment.bytes") == 14
    with raises_saying(BadUse, "log.segment.bytes"):
        Settings(settings)


def test_a_controller_of_3_9_does_not_change_the_quorums_version_whatever_it_answers() -> None:
    cluster = cluster_of(release=KAFKA_3_9)
    for level, kind in ((0, SAFE_DOWNGRADE), (1, UPGRADE)):
        update = FeatureUpdate(KRAFT_VERSION, level, kind)
        assert [row.error_code for _, row in cluster.features.update([update], False).rows] == [0]
        go(cluster, 1)
        assert cluster.metadata.image.features[KRAFT_VERSION] == 1


@pytest.mark.parametrize(
    ("release", "code", "said"), [("3.9", 42, "Invalid operation UNKNOWN"), ("4.3", 0, "")]
)
def test_rules_about_the_two_phase_commit_are_for_4_3(release: str, code: int, said: str) -> None:
    cluster = cluster_of(release=RELEASES[release])
    rule = Acl(
        ResourceType.TRANSACTIONAL_ID, "t", PatternType.LITERAL, "User:a", "*", AclOperation.TWO_PHASE_COMMIT,
        Permission.ALLOW,
    )  # fmt: skip
    assert cluster.acls.create([rule]) == [(code, said)]
    go(cluster, 1)
    assert selected(cluster, AclFilter(*rule)) == [
        AdminResult(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.") if code else [rule]
    ]


@pytest.mark.parametrize(("release", "epoch_grows"), [("3.9", False), ("4.3", True)])
def test_a_simulated_producer_gets_a_new_epoch_with_each_transaction_since_4_0(
    release: str, epoch_grows: bool
) -> None:
    """And before, it goes on in the same epoch, with sequence numbers that go on, too."""
    world = World(
        brokers=racked_brokers(3, 1),
        topics=(TopicSpec("t", 2, 3),),
        producers=(PRODUCER,),
        warm_ms=1_000,
        release=RELEASES[release],
    )
    cluster = build(world, 1, START_MS)
    go(cluster, 20)
    transactions = cluster.traffic.producers["p"].transactions
    assert transactions is not None and transactions.phase is not Phase.FENCED
    assert transactions.committed > 15 and transactions.aborted > 7
    assert (transactions.producer[1] > 0) is epoch_grows
    cluster.faults.crash(1)
    go(cluster, 20)
    before = transactions.committed
    go(cluster, 10)
    assert transactions.committed > before + 5, "it goes on after a crash"


def test_3_9_does_not_start_with_the_data_of_4_3_and_4_3_goes_on_with_those_of_3_9() -> None:
    newest, older = cluster_of(), cluster_of(release=KAFKA_3_9)
    saved = Saved(newest.metadata.image, {}, 0, 1)
    with raises_saying(BadUse, "which Kafka 3.9 does not support"):
        build(older.world, 1, START_MS, saved)
    kept = replace(saved, image=older.metadata.image)
    again = build(newest.world, 1, START_MS, kept)
    assert again.metadata.image.features["metadata.version"] == 21, "until somebody raises it"


def test_a_topic_can_have_what_only_3_9_knows() -> None:
    answers: list[CreateTopicResult] = []
    for release in RELEASES.values():
        cluster, topic = (
            cluster_of(release=release),
            CreatableTopic("old", 1, 1, configs={"message.format.version": "2.8"}),
        )
        cluster.topics.create_topic(0, topic, False, 1_000, answers.append)
        go(cluster, 2)
    assert [answer.error_code for answer in answers] == [0, 40]
