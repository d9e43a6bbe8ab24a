"""Levels of features: part of the metadata, and in force as soon as they change."""

from kview.simulate.features import ELR_VERSION, GROUP_VERSION
from kview.simulate.requests.feature_updates import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate
from kview.simulate.settings import Settings
from tests.simulate.engine import cluster_of, go

KAFKA_4_3 = {
    "metadata.version": 30,
    "kraft.version": 1,
    "transaction.version": 2,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "eligible.leader.replicas.version": 1,
}


def test_a_new_cluster_has_the_features_of_kafka_4_3_and_keeps_changes() -> None:
    cluster = cluster_of()
    assert dict(cluster.metadata.image.features) == KAFKA_4_3
    result = cluster.features.update([FeatureUpdate(GROUP_VERSION, 0, SAFE_DOWNGRADE)], False)
    assert result.result.error_code == 0
    cluster.faults.crash_controller()
    go(cluster, 20)
    off = {name: level for name, level in KAFKA_4_3.items() if name != GROUP_VERSION}
    assert all(dict(cluster.image(b).features) == off for b in cluster.broker_ids())
    cluster.features.update([FeatureUpdate(GROUP_VERSION, 1, UPGRADE)], False)
    assert dict(cluster.metadata.image.features) == KAFKA_4_3


def test_without_eligible_leader_replicas_the_last_replica_stays_in_the_isr() -> None:
    for level, isr, elr in ((1, (), (0,)), (0, (0,), ())):
        cluster = cluster_of(replication=1, settings={"min.insync.replicas": "1"})
        if not level:
            assert Settings({}).number(ELR_VERSION) == 1, "the setting is for new clusters"
            cluster.features.update([FeatureUpdate(ELR_VERSION, 0, SAFE_DOWNGRADE)], False)
        cluster.faults.crash(0)
        go(cluster, 15)
        partition = cluster.metadata.image.partition("t", 0)
        assert partition is not None
        assert (partition.leader, partition.isr, partition.elr) == (-1, isr, elr)
