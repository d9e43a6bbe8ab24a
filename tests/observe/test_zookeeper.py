"""A cluster in ZooKeeper mode: what only its controller answers, and which settings are in force."""

from collections.abc import Mapping

import pytest

from kview.model.failures import Part
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.observe.observer import ObserveSettings
from tests.observe.fake_broker import REASSIGNMENTS, VERSIONS, ZOOKEEPER_VERSIONS, FakeBroker
from tests.observe.observing import observing, until

SETTINGS = ObserveSettings(interval_s=0.1, forwarded_rounds=1)
BOTH = {"broker.session.timeout.ms": "9000", "zookeeper.session.timeout.ms": "6000"}
"""Kafka 2.8 and later has both settings, whatever its mode."""


@pytest.mark.parametrize("controller", [3, 5])
def test_reassignments_are_asked_of_the_controller_alone(controller: int) -> None:
    with FakeBroker(3, versions=ZOOKEEPER_VERSIONS) as one, FakeBroker(5, versions=ZOOKEEPER_VERSIONS) as two:
        for broker in (one, two):
            broker.advertised = {3: one.address, 5: two.address}
            broker.controller = controller
        knows = one if controller == one.node else two

        def answered_often(snapshot: Snapshot) -> bool:
            is_answered = Part.REASSIGNMENTS in snapshot.observation.asked
            return is_answered and knows.answered.count(REASSIGNMENTS) >= 5

        with observing([one.address], SETTINGS) as observer:
            seen = until(observer, answered_often, "they are answered again and again", 10)
        assert [failure.part for failure in seen.observation.failures] == []
        asked = {broker.node for broker in (one, two) if (REASSIGNMENTS, 0) in broker.asked}
        assert asked == {controller}


@pytest.mark.parametrize(
    ("versions", "settings", "in_force_ms"),
    [
        (ZOOKEEPER_VERSIONS, BOTH, 6_000),
        ({**VERSIONS, 32: (0, 3)}, BOTH, 9_000),
        (ZOOKEEPER_VERSIONS, {"broker.session.timeout.ms": "9000"}, UNKNOWN),
    ],
)
def test_the_session_timeout_is_that_of_the_mode(
    versions: Mapping[int, tuple[int, int]], settings: Mapping[str, str], in_force_ms: int
) -> None:
    with FakeBroker(0, versions=versions) as broker:
        broker.settings = settings
        with observing([broker.address], SETTINGS) as observer:
            seen = until(observer, lambda s: Part.SESSION_TIMEOUT in s.observation.asked, "it is answered")
        assert seen.brokers.session_timeout_ms.tolist() == [in_force_ms]


@pytest.mark.parametrize("versions", [VERSIONS, ZOOKEEPER_VERSIONS])
def test_the_throttles_of_a_broker_come_with_its_session_timeout(
    versions: Mapping[int, tuple[int, int]],
) -> None:
    leader, follower = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
    with FakeBroker(0, versions={**versions, 32: (0, 3)}) as broker:
        broker.settings = {**BOTH, leader: "50000"}
        with observing([broker.address], SETTINGS) as observer:
            seen = until(observer, lambda s: Part.SESSION_TIMEOUT in s.observation.asked, "it is answered")
        table = seen.broker_configs
        assert table.broker.tolist() == [0, 0]
        assert list(zip(table.name, table.value, strict=True)) == [(follower, ""), (leader, "50000")]
