"""A real unclean election, counted, and what a real cluster says of its features, observers and APIs."""

import pytest
from confluent_kafka import Producer

from kview.derive.brokers.controllers import quorum_nodes
from kview.derive.view import View
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from tests.conftest import ClusterFactory
from tests.observe.observing import Watched, headline, observing
from tests.real_kafka.cluster import START_TIMEOUT_S, RealKafka

LOST = 50
SETTINGS = ObserveSettings(interval_s=0.5)


def produce(kafka: RealKafka, count: int) -> None:
    """Produce records that the leader alone acknowledges."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "1", "linger.ms": 0})
    for number in range(count):
        producer.produce("orders", value=str(number), partition=0)
    assert producer.flush(20) == 0


def isr_of(view: View) -> list[int]:
    table = view.snapshot.partitions
    (row,) = (table.topic == "orders").nonzero()[0].tolist()
    return [broker for broker in table.isr[row].tolist() if broker >= 0]


def unclean(view: View) -> list[Finding]:
    return [one for one in view.headline.findings if one.kind is FindingKind.UNCLEAN_ELECTION]


@pytest.mark.slow  # a cluster of its own
def test_exactly_the_records_that_an_unclean_election_lost_are_counted(
    real_kafka_factory: ClusterFactory,
) -> None:
    kafka = real_kafka_factory(brokers=2)
    kafka.create_topic("orders", [[0, 1]], {"unclean.leader.election.enable": "true"})
    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)
        watched.until(lambda v: "orders" in v.snapshot.partitions.topic, "the topic is seen")
        produce(kafka, 20)
        # At the high watermark, the follower has them, too: acks=1 did not wait for it.
        watched.until(lambda v: v.snapshot.partitions.high_watermark.max() == 20, "both have the records")
        assert isr_of(watched.views[-1]) == [0, 1]
        kafka.pause(1)
        watched.until(lambda v: isr_of(v) == [0], "the follower has left the ISR", START_TIMEOUT_S)
        produce(kafka, LOST)
        watched.until(lambda v: v.snapshot.partitions.log_end.max() >= 20 + LOST, "the records are read")
        kafka.kill(0)
        kafka.resume(1)
        view = watched.until(unclean, "the unclean election is said", START_TIMEOUT_S)  # type: ignore[arg-type]
    (finding,) = unclean(view)
    assert (finding.severity, finding.count, finding.partitions) == (Severity.RISK, LOST, 1)
    assert any(f"≥ {LOST} records lost" in said for said in headline(view))


@pytest.mark.slow  # asks a real cluster
def test_a_real_cluster_tells_its_features_its_observers_and_one_set_of_apis(real_kafka: RealKafka) -> None:
    addresses = [real_kafka.address(broker) for broker in real_kafka.broker_ids]
    with observing(addresses, SETTINGS) as observer:
        view = Watched(observer).until(
            lambda v: (
                len(v.snapshot.features) > 0
                and bool((v.snapshot.brokers.apis != "").all())
                and v.snapshot.observation.controller_id >= 0
            ),
            "features, APIs and the quorum are known",
        )
    features = view.snapshot.features
    levels = dict(zip(features.name.tolist(), features.level.tolist(), strict=True))
    assert levels["metadata.version"] >= 20 and "group.version" in levels
    assert view.snapshot.observation.apis_differ_since_ms == UNKNOWN
    assert {node.node for node in quorum_nodes(view) if not node.votes} == set(real_kafka.broker_ids)
