"""Starts a cluster that seems to have run for a while. The past of its clients is written, not simulated."""

import math
from collections import Counter
from collections.abc import Mapping

from kview.errors import BadUse, ErrorKind
from kview.simulate.alterations import MIN_ISR
from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.partitions import Partitions
from kview.simulate.brokers.replica import Replica
from kview.simulate.brokers.retention import Retention
from kview.simulate.config_entries import ALL_BROKERS
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.features import ELR_VERSION, new_cluster
from kview.simulate.groups.assignors import ASSIGNORS
from kview.simulate.kernel import Kernel
from kview.simulate.log import Log
from kview.simulate.metadata import BrokerImage, MetadataImage, TopicImage
from kview.simulate.partitioner import weights_for_keys
from kview.simulate.placement import place
from kview.simulate.reading import RECORD_BYTES_MIN
from kview.simulate.records import header
from kview.simulate.refusals import TOPIC_NAME_MAX
from kview.simulate.requests.records import RecordRequests
from kview.simulate.saved import Saved
from kview.simulate.settings import Settings, check_topic_configs
from kview.simulate.stream import BATCH_OVERHEAD_BYTES
from kview.simulate.topics import internal_topic, new_topic, new_topic_id, valid_topic_name
from kview.simulate.traffic.keys import keys_of
from kview.simulate.traffic.warm import WarmGroup, warm_group
from kview.simulate.uuids import in_base64, random_uuid
from kview.simulate.world import (
    CLASSIC,
    CONSUMER,
    OFFSETS_TOPIC,
    SHARE,
    SHARE_TOPIC,
    TRANSACTIONS_TOPIC,
    ProducerSpec,
    TopicSpec,
    World,
)

METADATA_RECORDS_PER_MS = 1 / 500
"""Records per millisecond in an idle metadata log, which has a no-op every half second."""
SLICES = 60
"""Number of slices of the past. In each slice the producers of a topic take turns, so that times rise with
offsets."""


def first_image(world: World, settings: Settings, kernel: Kernel) -> MetadataImage:
    """Return the metadata that a world starts with. Raises BadUse if the world cannot be built."""
    check_world(world)
    offset = 1 + round(world.warm_ms * METADATA_RECORDS_PER_MS)
    brokers = {spec.id: BrokerImage(spec.id, spec.rack, False, 1 + n) for n, spec in enumerate(world.brokers)}
    specs = list(world.topics)
    internal = [OFFSETS_TOPIC]
    if world.traffic and any(producer.transaction_ms for producer in world.producers):
        internal.append(TRANSACTIONS_TOPIC)
    if world.traffic and any(group.protocol == SHARE for group in world.groups):
        internal.append(SHARE_TOPIC)
    specs += [
        internal_topic(name, settings, len(brokers))
        for name in internal
        if all(spec.name != name for spec in specs)
    ]
    topics: dict[str, TopicImage] = {}
    for spec in specs:
        placed = spec.replicas or place(
            world.placement,
            list(brokers.values()),
            spec.partitions,
            spec.replication,
            kernel.random("placement"),
        )
        topic_id = new_topic_id(kernel.random("topic-ids"))
        own = check_topic_configs(spec.configs, world.release.topic_config_keys)
        topics[spec.name] = new_topic(spec.name, topic_id, placed, own, brokers.__contains__)
    cluster_id = world.cluster_id or in_base64(random_uuid(kernel.random("cluster-id")))
    names = {topic.topic_id: name for name, topic in topics.items()}
    features = new_cluster(world.release.features, settings.number(ELR_VERSION))
    configs = _broker_configs(settings) if ELR_VERSION in features else {}
    return MetadataImage(
        cluster_id, offset, brokers, topics, names, configs, scram=world.scram, features=features
    )


def _broker_configs(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the brokers' dynamic configurations in a new cluster that has eligible leader replicas.

    Then controllers set the cluster's min.insync.replicas to what their own file
    says, so that all brokers have the same (ConfigurationControlManager.maybeGenerateElrSafetyRecords).
    """
    return {ALL_BROKERS: {MIN_ISR: settings.text(MIN_ISR)}}


def check_world(world: World) -> None:
    """Check that a world can be built. Raises BadUse if it cannot."""
    _check_nodes(world)
    _check_clients(world)
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
        if spec.replicas:
            _check_replicas(spec, frozenset(broker.id for broker in world.brokers))
        check_topic_configs(spec.configs, world.release.topic_config_keys)
    for producer in world.producers:
        if producer.record_bytes < RECORD_BYTES_MIN:
            raise BadUse(
                ErrorKind.RECORDS_TOO_SMALL,
                producer=producer.client_id,
                size_bytes=producer.record_bytes,
                least_bytes=RECORD_BYTES_MIN,
            )


def _check_nodes(world: World) -> None:
    """Check who is in a world, and its links. Raises BadUse."""
    if not world.brokers or not world.controllers:
        raise BadUse(ErrorKind.NODES_MISSING)
    nodes = Counter([*(broker.id for broker in world.brokers), *world.controllers])
    for node, number in nodes.items():
        if node < 0 or number > 1:
            raise BadUse(ErrorKind.NODE_ID_WRONG, node=node)
    for field in ("bytes_per_second", "disk_bytes_per_second", "latency_us"):
        _check_least("link", field, getattr(world.link, field), 0 if field == "latency_us" else 1)
    _check_least("the cluster", "warm_ms", world.warm_ms, 0)


def _check_clients(world: World) -> None:
    """Check the names in a world, and what its clients do. Raises BadUse."""
    for names in ([topic.name for topic in world.topics], [group.name for group in world.groups]):
        for name, number in Counter(names).items():
            if number > 1:
                raise BadUse(ErrorKind.NAME_TWICE, name=name)
    topics = {OFFSETS_TOPIC, *(topic.name for topic in world.topics)}
    read = [(group.name, topic) for group in world.groups for topic in group.topics]
    for name, topic in [*((each.client_id, each.topic) for each in world.producers), *read]:
        if topic not in topics:
            raise BadUse(ErrorKind.CLIENT_WITHOUT_TOPIC, name=name, topic=topic)
    for producer in world.producers:
        for field in ("records_per_second", "keys", "skew", "transaction_ms", "abort_every"):
            _check_least(producer.client_id, field, getattr(producer, field), 0)
    for group in world.groups:
        for field in ("members", "records_per_second", "warm_lag_seconds", "stopped_ms"):
            _check_least(group.name, field, getattr(group, field), 0)
        _check_least(group.name, "commit_interval_ms", group.commit_interval_ms, 1)
        for field, known in (("assignor", ASSIGNORS), ("protocol", (CLASSIC, CONSUMER, SHARE))):
            if (value := getattr(group, field)) not in known:
                raise BadUse(ErrorKind.VALUE_IMPOSSIBLE, name=group.name, field=field, value=value)


def _check_least(name: str, field: str, value: float, least: int) -> None:
    if not least <= value < math.inf:
        raise BadUse(ErrorKind.VALUE_IMPOSSIBLE, name=name, field=field, value=value)


def _check_replicas(spec: TopicSpec, brokers: frozenset[int]) -> None:
    """Check that replica lists can be of these brokers. Raises BadUse if they cannot."""
    for partition, replicas in enumerate(spec.replicas):
        if not replicas or len(set(replicas)) < len(replicas) or not brokers >= set(replicas):
            raise BadUse(ErrorKind.REPLICAS_WRONG, topic=spec.name, partition=partition)
    if len(spec.replicas) != spec.partitions:
        raise BadUse(ErrorKind.REPLICAS_WRONG, topic=spec.name, partition=len(spec.replicas))


class WarmStart:
    """Starts the brokers of a cluster, and writes the past of its clients."""

    def __init__(
        self,
        kernel: Kernel,
        world: World,
        metadata: MetadataLog,
        brokers: Mapping[int, Broker],
        partitions: Partitions,
        records: RecordRequests,
        retention: Retention,
    ) -> None:
        self._kernel = kernel
        self._world = world
        self._metadata = metadata
        self._brokers = brokers
        self._partitions = partitions
        self._records = records
        self._retention = retention

    def boot(self) -> None:
        """Let every broker know the metadata, and start it as if it had been registered for long."""
        image, kernel = self._metadata.image, self._kernel
        keys = [key for key, _ in image.all_partitions()]
        for broker in self._brokers.values():
            broker.node.broker_epoch = image.brokers[broker.id].broker_epoch
            broker.apply(
                image, [key for key in keys if broker.id in image.topics[key[0]].partitions[key[1]].replicas]
            )
            broker.boot(kernel.now_us + kernel.random("heartbeats").randrange(broker.heartbeat_us))

    def restore(self, saved: Saved) -> None:
        """Let every broker have the logs of a cluster that was stopped."""
        for key, (log, watermark, ends) in saved.logs.items():
            topic, partition = self._metadata.image.topics[key[0]], self._metadata.image.partition(*key)
            assert partition is not None
            self._retention.client_bytes += sum(span.stream.held_bytes for span in log.spans)
            for b in partition.replicas:
                broker = self._brokers[b]
                replica = broker.replicas[key] = Replica(broker, key, topic.topic_id, partition.replicas)
                broker.dirs.place(replica)
                replica.log = Log(log.start)
                end = min(ends.get(b, log.start), log.end)
                if end > log.start:
                    replica.log.copy(log, end)
                replica.high_watermark = max(log.start, min(watermark, end))

    def past(self) -> list[WarmGroup]:
        """Write the past of the world's clients into all logs, and return the groups that exist."""
        groups: list[WarmGroup] = []
        if self._world.traffic:
            self._write_records()
            groups = [
                self._group(number)
                for number, group in enumerate(self._world.groups)
                if group.protocol != SHARE
            ]
        self._spread()
        return groups

    def _write_records(self) -> None:
        """Write the producers' past into the leaders' logs."""
        now_us, warm_us = self._kernel.now_us, self._world.warm_ms * 1000
        by_topic: dict[str, list[ProducerSpec]] = {}
        for spec in self._world.producers:
            by_topic.setdefault(spec.topic, []).append(spec)
        numbers: dict[str, int] = {}
        for topic, specs in by_topic.items():
            count = len(self._metadata.image.topics[topic].partitions)
            slices = SLICES if len(specs) > 1 else 1
            share_of: dict[str, list[float]] = {}
            for spec in specs:
                numbers[spec.client_id] = self._records.register_producer(
                    spec.client_id, keys_of(spec, count)
                )
                share_of[spec.client_id] = shares(spec, count)
            for partition in range(count):
                replica = self._partitions.leader((topic, partition))
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

    def _group(self, number: int) -> WarmGroup:
        """Set up group `number` of the world, with its commits in the offsets topic's log."""
        spec = self._world.groups[number]
        topics = self._metadata.image.topics

        def offset_at(topic: str, partition: int, time_ms: int) -> tuple[int, int]:
            replica = self._partitions.leader((topic, partition))
            assert replica is not None
            offset, _ = replica.log.first_at_or_after(time_ms * 1000, replica.log.end)
            return (offset if offset >= 0 else replica.log.end), replica.leader_epoch

        group = warm_group(
            spec,
            {topic: len(topics[topic].partitions) for topic in spec.topics},
            offset_at,
            self._kernel.now_us // 1000,
            self._kernel.random(f"warm/{spec.name}"),
            len(topics[OFFSETS_TOPIC].partitions),
            {topic: topics[topic].topic_id for topic in spec.topics},
        )
        replica = self._partitions.leader((OFFSETS_TOPIC, group.partition))
        assert replica is not None and replica.stream is not None
        replica.stream.append_batch(group.batch, header(group.batch))
        self._retention.client_bytes += len(group.batch) + BATCH_OVERHEAD_BYTES
        replica.log.end = replica.stream.end
        return group

    def _spread(self) -> None:
        """Copy every log completely to its followers, and move the high watermarks to the logs' ends."""
        for key, _ in self._metadata.image.all_partitions():
            leader = self._partitions.leader(key)
            assert leader is not None
            end = leader.log.end
            for follower in leader.followers.values():
                own: Replica = self._brokers[follower.broker].replicas[key]
                if end > 0:
                    own.log.copy(leader.log, end)
                own.reconciled = True
                own.high_watermark = end
                leader.fetched(follower, end, self._kernel.now_us)
            leader.advance()


def shares(spec: ProducerSpec, partitions: int) -> list[float]:
    """Return each partition's share of a producer's records."""
    return weights_for_keys(spec.keys, partitions, spec.skew) if spec.keys else [1 / partitions] * partitions
