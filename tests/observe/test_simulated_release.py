"""The observer against a simulated cluster of Kafka 3.9, of which it learns what a real one tells."""

from confluent_kafka import TopicPartition

from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN_ID
from kview.observe.observer import ObserveSettings
from tests.observe.observing import observing, until
from tests.serve.clients import consumer
from tests.served import Served


def test_it_has_features_of_its_own_a_simple_group_and_no_eligible_replicas() -> None:
    flags = ("--release", "3.9", "--brokers", "2", "--racks", "1", "--empty")
    with Served(*flags) as served, observing(served.addresses, ObserveSettings(interval_s=0.3)) as observer:
        served.create("orders", [[0, 1]], min_insync_replicas="2")
        client = consumer(served.bootstrap, "billing")
        client.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        client.close()
        served.do("crash 1")

        def told(seen: Snapshot) -> bool:
            at = seen.partitions
            orders = at.topic == "orders"
            isrs = [isr[isr >= 0].tolist() for isr in at.isr[orders]]
            elr_is_told = not (at.elr[orders] == UNKNOWN_ID).any()
            known = len(seen.features) > 0 and "billing" in seen.groups.group
            return isrs == [[0]] and elr_is_told and known

        seen = until(observer, told, "the ISR is under its minimum, and the group is known")
        levels = dict(zip(seen.features.name.tolist(), seen.features.level.tolist(), strict=True))
        assert levels == {"kraft.version": 1, "metadata.version": 21}
        assert seen.groups.type.tolist() == ["simple"]
        assert not (seen.partitions.elr[seen.partitions.topic == "orders"] >= 0).any()
