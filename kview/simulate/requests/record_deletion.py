"""Moves a partition's log start for a client. Source: kafka.server.ReplicaManager.deleteRecords."""

from collections.abc import Callable, Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.partitions import Partitions
from kview.simulate.brokers.replica import Replica
from kview.simulate.brokers.retention import Retention
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.kernel import Kernel
from kview.simulate.results import DeletedRecords

HIGH_WATERMARK = -1
"""The offset that stands for the high watermark."""
LOOK_US = 5_000
"""Interval at which a leader looks whether all replicas have moved their log starts."""

Done = Callable[[DeletedRecords], None]


class RecordDeletion:
    """Answers DeleteRecords as a broker does."""

    def __init__(
        self,
        kernel: Kernel,
        configs: EffectiveConfigs,
        brokers: Mapping[int, Broker],
        partitions: Partitions,
        retention: Retention,
    ) -> None:
        self._kernel = kernel
        self._configs = configs
        self._brokers = brokers
        self._partitions = partitions
        self._retention = retention

    def delete_records(
        self, b: int, topic: str, partition: int, offset: int, timeout_ms: int, done: Done
    ) -> None:
        """Delete a partition's records below `offset`, or below the high watermark if that is −1.

        The answer comes when all live replicas have done it.
        """
        error, replica = self._deletable(b, topic, partition)
        if replica is None:
            done(DeletedRecords(error))
            return
        start = replica.high_watermark if offset == HIGH_WATERMARK else offset
        if not 0 <= start <= replica.high_watermark:
            done(DeletedRecords(ErrorCode.OFFSET_OUT_OF_RANGE))
            return
        if start > replica.log.start:
            self._retention.move_start(replica, start)
        self._answer_when_done(
            self._brokers[b], replica, start, self._kernel.now_us + timeout_ms * 1000, done
        )

    def _deletable(self, b: int, topic: str, partition: int) -> tuple[ErrorCode, Replica | None]:
        topic_image = self._brokers[b].image.topics.get(topic)
        if topic_image is None or not 0 <= partition < len(topic_image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
        if topic_image.internal:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, None
        replica = self._brokers[b].replicas.get((topic, partition))
        if replica is None or not replica.leading:
            return self._brokers[b].refusal((topic, partition)), None
        dynamic = self._configs.of_broker(b)
        if "delete" not in self._configs.settings.topic(topic_image.configs, "cleanup.policy", dynamic):
            return ErrorCode.POLICY_VIOLATION, None
        return ErrorCode.NONE, replica

    def _answer_when_done(
        self, broker: Broker, replica: Replica, start: int, until_us: int, done: Done
    ) -> None:
        if not replica.leading:
            done(DeletedRecords(broker.refusal(replica.key)))
            return
        live = broker.image.live_brokers()
        replicas = self._partitions.replicas(replica.key, replica.topic_id)
        low = min((r.log.start for r in replicas if r.broker.id in live), default=replica.log.start)
        if low >= start:
            done(DeletedRecords(ErrorCode.NONE, low))
        elif self._kernel.now_us >= until_us:
            done(DeletedRecords(ErrorCode.REQUEST_TIMED_OUT))
        else:
            broker.process.after(LOOK_US, self._answer_when_done, broker, replica, start, until_us, done)
