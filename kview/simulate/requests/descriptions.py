"""What a broker knows by itself about configurations, logs and producers."""

from collections.abc import Collection, Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.client_metrics import metrics_entries
from kview.simulate.codes import ErrorCode
from kview.simulate.config_entries import (
    broker_entries,
    default_broker_entries,
    group_entries,
    topic_entries,
)
from kview.simulate.loggers import Loggers
from kview.simulate.metadata import TopicPartition
from kview.simulate.results import ActiveProducer, ConfigEntry, LogDir, LogDirRow
from kview.simulate.settings import Settings


class Descriptions:
    """Answers DescribeConfigs, DescribeLogDirs and DescribeProducers as broker `b` would."""

    def __init__(self, settings: Settings, brokers: Mapping[int, Broker]) -> None:
        self._settings = settings
        self._brokers = brokers
        self._loggers = {b: Loggers(broker.node) for b, broker in brokers.items()}

    def topic_configs(self, b: int, topic: str, wanted: Collection[str] = ()) -> list[ConfigEntry]:
        """Return a topic's settings in force, as broker `b` knows them: the `wanted`, or all."""
        image = self._brokers[b].image
        return topic_entries(self._settings, image, b, image.topics[topic].configs, wanted)

    def broker_configs(self, b: int, static: Mapping[str, str]) -> list[ConfigEntry]:
        """Return a broker's effective configurations. `static` are those that only its network side knows."""
        own = {"broker.id": str(b), "broker.rack": self._brokers[b].node.rack, "node.id": str(b)}
        return broker_entries(self._settings, self._brokers[b].image, b, {**own, **static})

    def default_broker_configs(self, b: int) -> list[ConfigEntry]:
        """Return the dynamic configurations of all brokers, as broker `b` knows them."""
        return default_broker_entries(self._settings, self._brokers[b].image)

    def loggers(self, b: int) -> Loggers:
        """Return the loggers of broker `b`."""
        return self._loggers[b]

    def client_metrics(self, b: int, name: str) -> list[ConfigEntry]:
        """Return a subscription of client metrics, as broker `b` knows it. It need not exist."""
        return metrics_entries(self._brokers[b].image.client_metrics.get(name, {}), self._settings.release)

    def group_configs(self, b: int, group: str) -> list[ConfigEntry]:
        """Return a group's settings in force, as broker `b` knows them. The group need not exist."""
        image = self._brokers[b].image
        return group_entries(self._settings, image, b, image.group_configs.get(group, {}))

    def active_producers(
        self, b: int, topic: str, partition: int
    ) -> tuple[ErrorCode, tuple[ActiveProducer, ...]]:
        """Return the idempotent producers that broker b's replica remembers, even if it does not lead."""
        replica = self._brokers[b].replicas.get((topic, partition))
        if replica is not None:
            return ErrorCode.NONE, replica.producer_states().active()
        return self._brokers[b].refusal((topic, partition)), ()

    def log_dirs(self, b: int) -> list[LogDir]:
        """Return broker b's log directories, with one row per replica."""
        broker = self._brokers[b]
        rows: list[list[LogDirRow]] = [[] for _ in broker.dirs.paths]
        for key, replica in broker.replicas.items():
            size = replica.log.size_between(replica.log.start, replica.log.end)
            lag = max(0, replica.high_watermark - replica.log.end)
            rows[replica.directory].append(LogDirRow(*key, size, lag))
        failed, error = broker.dirs.failed, ErrorCode.KAFKA_STORAGE_ERROR
        return [
            LogDir(path, error if at in failed else ErrorCode.NONE, tuple(rows[at]))
            for at, path in enumerate(broker.dirs.paths)
        ]

    def move_replica(self, b: int, key: TopicPartition, path: str) -> ErrorCode:
        """Move broker b's replica into another of its log directories, at once.

        Source: ReplicaManager.alterReplicaLogDirs.
        """
        broker = self._brokers[b]
        if path not in broker.dirs.paths:
            return ErrorCode.LOG_DIR_NOT_FOUND
        directory = broker.dirs.paths.index(path)
        if directory in broker.dirs.failed or key in broker.dirs.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition = broker.image.partition(*key)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        replica = broker.replicas.get(key)
        if replica is None:
            is_new = b in partition.replicas
            return ErrorCode.NONE if is_new else ErrorCode.REPLICA_NOT_AVAILABLE
        broker.dirs.move(replica, directory)
        return ErrorCode.NONE
