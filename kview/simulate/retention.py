"""Retention: what logs drop because of age, size, or lack of memory for clients' batches.

Kafka deletes complete segments. Here a log is cut at a batch or record, so it drops exactly what exceeds the
limits.
"""

from typing import TYPE_CHECKING

from kview.simulate.metadata import TopicPartition
from kview.simulate.replica import Replica
from kview.simulate.stream import Stream

if TYPE_CHECKING:
    from kview.simulate.broker import Broker
    from kview.simulate.core import ClusterCore


def retain(cluster: "ClusterCore", broker: "Broker") -> None:
    """Apply retention.ms and retention.bytes to the partitions that `broker` leads.

    Followers learn the new log start when they fetch.
    """
    settings, now_us = cluster.settings, cluster.kernel.now_us
    for key, replica in broker.replicas.items():
        topic = broker.image.topics.get(key[0])
        if not replica.leading or topic is None:
            continue
        if "delete" not in settings.topic(topic.configs, "cleanup.policy"):
            continue
        log, watermark = replica.log, replica.high_watermark
        start = log.start
        age_ms = int(settings.topic(topic.configs, "retention.ms"))
        if age_ms >= 0 and log.end > log.start:
            kept, _ = log.first_at_or_after(now_us - age_ms * 1000, watermark)
            start = max(start, watermark if kept < 0 else kept)
        size_max = int(settings.topic(topic.configs, "retention.bytes"))
        if size_max >= 0:
            over = log.size_between(start, log.end) - size_max
            while over > 0 and start < watermark:
                cut = max(log.fit(start, watermark, over), next_batch(replica, start, watermark))
                over -= log.size_between(start, cut)
                start = cut
        if start > log.start:
            move_start(cluster, replica, start)


def next_batch(replica: Replica, offset: int, stop: int) -> int:
    """Return the offset after the batch or record at `offset`."""
    for span, at, start, end in replica.log.entries(offset, stop):
        return start + 1 if span.stream.record_bytes[at] else end
    return stop


def move_start(cluster: "ClusterCore", replica: Replica, start: int) -> None:
    """Move a leader's log start, and free what no replica stores any more."""
    replica.log.advance_start(start)
    cluster.kernel.trace("log-start", *replica.key, start)
    cluster.touch(replica.key)
    replica.broker.wake_followers(replica)
    free(cluster, replica)


def free(cluster: "ClusterCore", leader: Replica) -> None:
    """Free the memory of everything below the log starts of all replicas."""
    replicas = cluster.all_replicas(leader.key, leader.topic_id)
    lowest = min(replica.log.start for replica in replicas)
    for stream in {id(span.stream): span.stream for r in replicas for span in r.log.spans}.values():
        cluster.client_bytes -= stream.drop_before(lowest)


def evict(cluster: "ClusterCore") -> None:
    """Reduce clients' batches to the limit by advancing the log starts of the largest logs.

    A log start moves on every replica, including those on brokers that are down.
    """
    sizes: dict[TopicPartition, int] = {}
    topics = cluster.controller.image.topics
    for key, _ in cluster.controller.image.all_partitions():
        replicas = cluster.all_replicas(key, topics[key[0]].topic_id)
        streams: dict[int, Stream] = {id(span.stream): span.stream for r in replicas for span in r.log.spans}
        sizes[key] = sum(len(b) for stream in streams.values() for b in stream.batches.values())
    cluster.client_bytes = sum(sizes.values())
    for key in sorted(sizes, key=lambda k: (-sizes[k], k)):
        if cluster.client_bytes <= cluster.world.client_bytes_max * 9 // 10:
            break
        replica = cluster.leader_replica(key)
        if replica is None or not sizes[key]:
            continue
        log = replica.log
        start = log.fit(log.start, replica.high_watermark, log.size_between(log.start, log.end) // 2)
        for other in cluster.all_replicas(key, replica.topic_id):
            if other is not replica:
                if other.log.end < start:
                    other.log.reset(start)
                    other.high_watermark = max(other.high_watermark, start)
                else:
                    other.log.advance_start(start)
                    other.high_watermark = max(other.high_watermark, start)
        if start > log.start:
            move_start(cluster, replica, start)
