"""Retention, which deletes records because of their age, the log's size, or a lack of memory.

Kafka deletes complete segments. Here a log is cut at a batch or record, so only what exceeds the limits is
deleted.
"""

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.partitions import Partitions
from kview.simulate.brokers.replica import Replica
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.kernel import Kernel
from kview.simulate.metadata import TopicPartition
from kview.simulate.stream import Stream
from kview.simulate.touched import Touched


class Retention:
    """Applies the limits of all logs. `client_bytes` is the memory that clients' batches take.

    Above `client_bytes_max` it should be freed with `evict`.
    """

    def __init__(
        self,
        kernel: Kernel,
        configs: EffectiveConfigs,
        metadata: MetadataLog,
        partitions: Partitions,
        touched: Touched,
        client_bytes_max: int,
    ) -> None:
        self.client_bytes = 0
        self.client_bytes_max = client_bytes_max
        self._kernel = kernel
        self._configs = configs
        self._metadata = metadata
        self._partitions = partitions
        self._touched = touched
        self._interval_us = configs.settings.us("log.retention.check.interval.ms")

    def watch(self, broker: Broker) -> None:
        """Check the logs of a broker at intervals, from each start of its process on."""

        def started() -> None:
            phase_us = self._kernel.random("retention").randrange(self._interval_us)
            broker.process.after(phase_us, self._check, broker)

        broker.on_start(started)

    def _check(self, broker: Broker) -> None:
        broker.process.after(self._interval_us, self._check, broker)
        self.retain(broker)

    def retain(self, broker: Broker) -> None:
        """Apply retention.ms and retention.bytes to the partitions that `broker` leads.

        Followers learn the new log start when they fetch.
        """
        settings, now_us = self._configs.settings, self._kernel.now_us
        dynamic = self._configs.of_broker(broker.id)
        for key, replica in broker.replicas.items():
            topic = broker.image.topics.get(key[0])
            if not replica.leading or topic is None:
                continue
            if "delete" not in settings.topic(topic.configs, "cleanup.policy", dynamic):
                continue
            log, watermark = replica.log, replica.high_watermark
            start = log.start
            age_ms = int(settings.topic(topic.configs, "retention.ms", dynamic))
            if age_ms >= 0 and log.end > log.start:
                kept, _ = log.first_at_or_after(now_us - age_ms * 1000, watermark)
                start = max(start, watermark if kept < 0 else kept)
            size_max = int(settings.topic(topic.configs, "retention.bytes", dynamic))
            if size_max >= 0:
                over = log.size_between(start, log.end) - size_max
                while over > 0 and start < watermark:
                    cut = max(log.fit(start, watermark, over), next_batch(replica, start, watermark))
                    over -= log.size_between(start, cut)
                    start = cut
            if start > log.start:
                self.move_start(replica, start)

    def move_start(self, replica: Replica, start: int) -> None:
        """Move a leader's log start, and free what no replica stores any more."""
        replica.advance_start(start)
        self._kernel.trace("log-start", *replica.key, start)
        self._touched.add(replica.key)
        replica.wake_followers()
        self.free(replica)

    def free(self, leader: Replica) -> None:
        """Free the memory of everything that is below the log start of every replica."""
        replicas = self._partitions.replicas(leader.key, leader.topic_id)
        lowest = min(replica.log.start for replica in replicas)
        for stream in {id(span.stream): span.stream for r in replicas for span in r.log.spans}.values():
            self.client_bytes -= stream.drop_before(lowest)

    def evict(self) -> None:
        """Free memory for clients' batches by dropping the older half of the largest logs.

        A log start moves on every replica, including those on brokers that are down.
        """
        sizes: dict[TopicPartition, int] = {}
        topics = self._metadata.image.topics
        for key, _ in self._metadata.image.all_partitions():
            replicas = self._partitions.replicas(key, topics[key[0]].topic_id)
            streams: dict[int, Stream] = {
                id(span.stream): span.stream for r in replicas for span in r.log.spans
            }
            sizes[key] = sum(stream.held_bytes for stream in streams.values())
        self.client_bytes = sum(sizes.values())
        for key in sorted(sizes, key=lambda k: (-sizes[k], k)):
            if self.client_bytes <= self.client_bytes_max * 9 // 10:
                break
            replica = self._partitions.leader(key)
            if replica is None or not sizes[key]:
                continue
            log = replica.log
            start = log.fit(log.start, replica.high_watermark, log.size_between(log.start, log.end) // 2)
            for other in self._partitions.replicas(key, replica.topic_id):
                if other is not replica:
                    if other.log.end < start:
                        other.log.reset(start)
                        other.producers = None
                        other.high_watermark = max(other.high_watermark, start)
                    else:
                        other.advance_start(start)
                        other.high_watermark = max(other.high_watermark, start)
            if start > log.start:
                self.move_start(replica, start)


def next_batch(replica: Replica, offset: int, stop: int) -> int:
    """Return the offset after the batch or record at `offset`."""
    for span, at, start, end in replica.log.entries(offset, stop):
        return end if span.stream.batches[at] is not None else start + 1
    return stop
