"""The start of a world: topics are placed, and ten minutes of past are constructed, not simulated."""

import base64
from typing import TYPE_CHECKING

from kview.errors import BadUse, ErrorKind
from kview.simulate.groups.host import GroupSettings
from kview.simulate.groups.of_cluster import Coordinators
from kview.simulate.metadata import BrokerImage, MetadataImage, TopicImage
from kview.simulate.partitioner import weights_for_keys
from kview.simulate.placement import place
from kview.simulate.reading import RECORD_BYTES_MIN
from kview.simulate.records import header
from kview.simulate.replica import Replica
from kview.simulate.settings import check_topic_configs
from kview.simulate.topics import TOPIC_NAME_MAX, new_topic, valid_topic_name
from kview.simulate.traffic.producer import keys_of
from kview.simulate.traffic.traffic import Traffic
from kview.simulate.traffic.warm import WarmGroup, warm_group
from kview.simulate.world import OFFSETS_TOPIC, ProducerSpec, TopicSpec

if TYPE_CHECKING:
    from kview.simulate.cluster import Cluster

METADATA_RECORDS_PER_MS = 1 / 500
"""Records per millisecond in an idle metadata log, which has a no-op every half second."""
SLICES = 60
"""Slices of the past in which producers of one topic take turns, so that times rise with offsets."""


def start(cluster: "Cluster") -> None:
    """Set up the world of `cluster` and start it."""
    world, settings, kernel = cluster.world, cluster.settings, cluster.kernel
    check_world(cluster)
    offset = 1 + round(world.warm_ms * METADATA_RECORDS_PER_MS)
    brokers = {spec.id: BrokerImage(spec.id, spec.rack, False, 1 + n) for n, spec in enumerate(world.brokers)}
    specs = list(world.topics)
    if all(spec.name != OFFSETS_TOPIC for spec in specs):
        specs.append(
            TopicSpec(
                OFFSETS_TOPIC,
                settings.number("offsets.topic.num.partitions"),
                min(settings.number("offsets.topic.replication.factor"), len(brokers)),
                {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
            )
        )
    topics: dict[str, TopicImage] = {}
    for spec in specs:
        placed = place(
            world.placement,
            list(brokers.values()),
            spec.partitions,
            spec.replication,
            kernel.random("placement"),
        )
        topics[spec.name] = new_topic(
            spec.name, cluster.new_topic_id(), placed, spec.configs, brokers.__contains__
        )
    raw = kernel.random("cluster-id").getrandbits(128).to_bytes(16, "big")
    cluster_id = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    names = {topic.topic_id: name for name, topic in topics.items()}
    image = MetadataImage(cluster_id, offset, brokers, topics, names)
    cluster.assemble(image)
    cluster.coordinators = Coordinators(cluster, GroupSettings.of(settings))
    cluster.traffic = Traffic(cluster)
    keys = [key for key, _ in image.all_partitions()]
    for broker in cluster.brokers.values():
        broker.broker_epoch = brokers[broker.id].broker_epoch
        broker.apply(
            image, [key for key in keys if broker.id in image.topics[key[0]].partitions[key[1]].replicas]
        )
        broker.boot(kernel.now_us + kernel.random("heartbeats").randrange(broker.heartbeat_us))
    if world.traffic:
        _past(cluster)
        groups = [_warm(cluster, n) for n in range(len(world.groups))]
        _spread(cluster)
        cluster.coordinators.load()
        cluster.traffic.start(world.producers, groups)
    else:
        _spread(cluster)
        cluster.coordinators.load()


def check_world(cluster: "Cluster") -> None:
    """Check that the world is possible. Raises BadUse if it is not."""
    world = cluster.world
    for spec in world.topics:
        if not valid_topic_name(spec.name):
            raise BadUse(ErrorKind.TOPIC_NAME_WRONG, topic=spec.name, longest=TOPIC_NAME_MAX)
        if spec.partitions < 1:
            raise BadUse(ErrorKind.TOPIC_WITHOUT_PARTITIONS, topic=spec.name, partitions=spec.partitions)
        if not 1 <= spec.replication <= len(world.brokers):
            raise BadUse(
                ErrorKind.TOPIC_REPLICAS_TOO_MANY,
                topic=spec.name,
                replicas=spec.replication,
                brokers=len(world.brokers),
            )
        check_topic_configs(spec.configs)
    for producer in world.producers:
        if producer.record_bytes < RECORD_BYTES_MIN:
            raise BadUse(
                ErrorKind.RECORDS_TOO_SMALL,
                producer=producer.client_id,
                size_bytes=producer.record_bytes,
                least_bytes=RECORD_BYTES_MIN,
            )


def _past(cluster: "Cluster") -> None:
    """Write the producers' past into the leaders' logs."""
    now_us, warm_us = cluster.kernel.now_us, cluster.world.warm_ms * 1000
    by_topic: dict[str, list[ProducerSpec]] = {}
    for spec in cluster.world.producers:
        by_topic.setdefault(spec.topic, []).append(spec)
    numbers: dict[str, int] = {}
    for topic, specs in by_topic.items():
        count = len(cluster.controller.image.topics[topic].partitions)
        slices = SLICES if len(specs) > 1 else 1
        share_of: dict[str, list[float]] = {}
        for spec in specs:
            numbers[spec.client_id] = cluster.register_producer(spec.client_id, keys_of(spec, count))
            share_of[spec.client_id] = shares(spec, count)
        for partition in range(count):
            replica = cluster.leader_replica((topic, partition))
            assert replica is not None and replica.stream is not None
            for part in range(slices, 0, -1):
                for spec in specs:
                    rate = spec.records_per_second * share_of[spec.client_id][partition]
                    if rate <= 0:
                        continue
                    step_us = max(1, round(1_000_000 / rate))
                    first, last = (
                        warm_us * part // slices // step_us,
                        warm_us * (part - 1) // slices // step_us,
                    )
                    if first > last:
                        replica.stream.append_run(
                            first - last,
                            now_us - first * step_us,
                            step_us,
                            spec.record_bytes,
                            numbers[spec.client_id],
                        )
            replica.log.end = replica.stream.end


def shares(spec: ProducerSpec, partitions: int) -> list[float]:
    """Return each partition's share of a producer's records."""
    return weights_for_keys(spec.keys, partitions, spec.skew) if spec.keys else [1 / partitions] * partitions


def _warm(cluster: "Cluster", number: int) -> WarmGroup:
    """Set up group `number` of the world, with its commits in the offsets topic's log."""
    spec = cluster.world.groups[number]
    topics = cluster.controller.image.topics

    def offset_at(topic: str, partition: int, time_ms: int) -> tuple[int, int]:
        replica = cluster.leader_replica((topic, partition))
        assert replica is not None
        offset, _ = replica.log.first_at_or_after(time_ms * 1000, replica.log.end)
        return (offset if offset >= 0 else replica.log.end), replica.leader_epoch

    group = warm_group(
        spec,
        {topic: len(topics[topic].partitions) for topic in spec.topics},
        offset_at,
        cluster.kernel.now_us // 1000,
        cluster.kernel.random(f"warm/{spec.name}"),
        len(topics[OFFSETS_TOPIC].partitions),
        {topic: topics[topic].topic_id for topic in spec.topics},
    )
    replica = cluster.leader_replica((OFFSETS_TOPIC, group.partition))
    assert replica is not None and replica.stream is not None
    replica.stream.append_batch(group.batch, header(group.batch))
    cluster.client_bytes += len(group.batch)
    replica.log.end = replica.stream.end
    return group


def _spread(cluster: "Cluster") -> None:
    """Copy everything to every follower, and move the high watermark to the end."""
    for key, _ in cluster.controller.image.all_partitions():
        leader = cluster.leader_replica(key)
        assert leader is not None
        end = leader.log.end
        for follower in leader.followers.values():
            own: Replica = cluster.brokers[follower.broker].replicas[key]
            if end > 0:
                own.log.copy(leader.log, end)
            own.reconciled = True
            own.high_watermark = end
            leader.fetched(follower, end, cluster.kernel.now_us)
        leader.advance()
