"""Settings on a real cluster: those of topics in sight are read again soon, all others once a minute."""

import uuid

import numpy as np
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from kview.derive.partitions.retention import retention
from kview.derive.view import View
from kview.model.units import NO_PARTITION
from kview.observe.observer import ObserveSettings
from tests.observe.observing import Watched, observing
from tests.real_kafka.cluster import RealKafka

SETTINGS = ObserveSettings(interval_s=0.3, configs_s=3_600.0, near_configs_s=1.0)
HOUR_MS = 3_600_000


def keeps_ms(view: View, topic: str) -> int:
    return retention(view.snapshot.topic_configs, topic).ms


def least(view: View, topic: str) -> set[int]:
    table = view.snapshot.partitions
    return set(table.min_isr[np.asarray(table.topic == topic, np.bool_)].tolist())


def test_what_somebody_changes_shows_soon_if_the_topic_is_in_sight(real_kafka: RealKafka) -> None:
    seen, unseen = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("seen", "unseen"))
    admin = AdminClient({"bootstrap.servers": real_kafka.bootstrap_servers})
    for topic in (seen, unseen):
        real_kafka.create_topic(topic, [[0, 1, 2]])
    with observing([real_kafka.address(id) for id in real_kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)
        observer.prefer([(seen, NO_PARTITION)])
        watched.until(lambda view: {1} == least(view, seen) == least(view, unseen), "the settings are known")
        for topic in (unseen, seen):
            values = {"min.insync.replicas": "2", "retention.ms": str(HOUR_MS)}
            entries = [
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in values.items()
            ]
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
            for done in admin.incremental_alter_configs([resource]).values():
                done.result()
        view = watched.until(lambda view: least(view, seen) == {2}, "the change shows")
        assert keeps_ms(view, seen) == HOUR_MS
        assert least(view, unseen) == {1} and keeps_ms(view, unseen) != HOUR_MS, "not in sight"
        observer.prefer([(unseen, 0)])
        watched.until(lambda view: least(view, unseen) == {2}, "it comes into sight")
