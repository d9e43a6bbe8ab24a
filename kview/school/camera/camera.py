"""The camera, which makes a snapshot of a simulated cluster without sockets."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from kview.model.failures import FailureKind, Part
from kview.model.snapshot import (
    Brokers,
    Failure,
    Groups,
    LogDirs,
    Members,
    Observation,
    Offsets,
    Partitions,
    Quorum,
    Reassignments,
    Replicas,
    ShareOffsets,
    Snapshot,
    TimePoints,
    TopicConfigs,
    Transactions,
)
from kview.model.states import QuorumRole, not_cut_off
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.school.camera.columns import shared, table
from kview.school.camera.readings import Readings, TopicSeen
from kview.school.camera.seen_brokers import SeenBrokers
from kview.school.camera.seen_groups import SeenGroups
from kview.school.camera.seen_transactions import SeenTransactions
from kview.simulate.cluster import Cluster
from kview.simulate.metadata import MetadataImage, PartitionImage, TopicPartition

CAPABILITIES = frozenset({"quorum", "debugging_replica", "topic_ids", "elr", "fenced_brokers"})
ASKED = (
    Part.CONFIGS, Part.GROUPS, Part.LOG_DIRS, Part.METADATA, Part.OFFSETS, Part.QUORUM, Part.REASSIGNMENTS,
)  # fmt: skip
QUORUM_OVERDUE_MS = 3_000
"""How long an answer about the quorum may take before it counts as a failure."""


class Camera:
    """Makes snapshots of a cluster as an observer that asks all of its brokers, at the engine's time.

    It knows only what brokers answer: a broker that is silent keeps its last figures, with their age, and
    the cluster's metadata is that of a broker that answers. Unlike an observation over sockets, a snapshot is
    of a single moment (unless time passes `between`), and costs no requests.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._brokers = SeenBrokers(cluster.nodes, cluster.settings.number("broker.session.timeout.ms"))
        self._groups = SeenGroups(cluster)
        self._readings = Readings(cluster)
        self._transactions = SeenTransactions(cluster)
        self._image: MetadataImage = cluster.metadata.image
        self._source = -1
        self._quorum: tuple[tuple[Any, ...], ...] = ()
        self._controller = (UNKNOWN_ID, UNKNOWN_ID)
        self._quorum_ms = UNKNOWN
        self._quorum_since_ms = UNKNOWN
        self._reassignments: tuple[tuple[Any, ...], ...] = ()
        self._sequence = 0
        self._last: Snapshot | None = None

    def snapshot(self, between: Callable[[], None] | None = None) -> Snapshot:
        """Return what an observer would see now.

        `between` is called between the readings of followers and of leaders. It may let time pass, as it does
        over a network.
        """
        began_ms = self._now_ms
        answering = self._brokers.ask(began_ms)
        fit = not_cut_off(answering, {row[0]: row[3] for row in self._quorum if row[0] in answering})
        if self._source not in fit:
            self._source = min(fit, default=-1)
        if self._source >= 0:
            self._see_metadata()
        read = self._readings
        read.follow(self._image)
        self._groups.ask(answering, self._image, began_ms)
        read.read_followers(self._image, answering, began_ms)
        if between is not None:
            between()
        now_ms = self._now_ms
        serving = frozenset(broker for broker in answering if self._cluster.nodes.serves(broker))
        read.read_leaders(self._image, serving, now_ms)
        self._transactions.ask(self._image, read.partitions, serving, now_ms)
        self._see_quorum(serving, now_ms)
        self._brokers.update(self._image, {row[0]: row[3] for row in self._quorum}, now_ms)
        for broker, size in read.read_sizes(sorted(serving), now_ms).items():
            self._brokers.by_id[broker].disk_bytes = size
        if self._source in serving:
            read.read_settings(self._image, self._source, now_ms)
        committed = {key for known in self._groups.by_name.values() for key in known.committed}
        read.read_points(sorted(committed), self._image, serving, now_ms)
        snapshot = self._snapshot(began_ms, now_ms)
        self._sequence += 1
        self._last = snapshot
        return snapshot

    @property
    def _now_ms(self) -> int:
        return self._cluster.kernel.now_us // 1000

    def _see_metadata(self) -> None:
        """Take the source's metadata, unless it is older than what another broker has told."""
        image = self._cluster.image(self._source)
        if image.offset >= self._image.offset or not self._last:
            self._image = image

    def _see_quorum(self, answering: frozenset[int], now_ms: int) -> None:
        """Ask for the quorum, which a broker forwards to the active controller."""
        quorum = self._cluster.quorum
        if not answering or not quorum.active():
            if self._quorum_since_ms == UNKNOWN:
                self._quorum_since_ms = now_ms
            return
        self._quorum_since_ms, self._quorum_ms = UNKNOWN, now_ms
        self._controller = (quorum.leader, quorum.epoch)
        rows = []
        for node, fetched_us in quorum.fetched_us.items():
            voter = node in quorum.voters
            role = QuorumRole.VOTER if voter else QuorumRole.OBSERVER
            fetched_ms = UNKNOWN if fetched_us < 0 else fetched_us // 1000
            if node == quorum.leader:
                role, fetched_ms = QuorumRole.LEADER, now_ms
            elif fetched_ms == UNKNOWN and not voter:
                continue
            end = quorum.ends[node] if quorum.ends[node] >= 0 else UNKNOWN
            rows.append((node, role.value, end, fetched_ms, fetched_ms))
        self._quorum = tuple(sorted(rows))
        self._reassignments = tuple(
            sorted(
                (*reassignment.key, reassignment.adding, reassignment.removing)
                for reassignment in self._cluster.admin.reassignments()
            )
        )

    def _observation(self, began_ms: int, now_ms: int) -> Observation:
        failures = self._brokers.failures()
        since_ms = self._quorum_since_ms
        if since_ms != UNKNOWN and now_ms - since_ms > QUORUM_OVERDUE_MS:
            late = Failure(Part.QUORUM, NO_BROKER, FailureKind.OVERDUE, UNKNOWN_ID, self._quorum_ms)
            failures = (*failures, late)
        return Observation(
            sequence=self._sequence,
            began_ms=began_ms,
            ended_ms=now_ms,
            cluster_id=self._image.cluster_id,
            controller_id=self._controller[0],
            controller_epoch=self._controller[1],
            quorum_received_ms=self._quorum_ms,
            asked=ASKED,
            failures=failures,
            capabilities=CAPABILITIES,
        )

    def _snapshot(self, began_ms: int, now_ms: int) -> Snapshot:
        failing = {id: seen.failing for id, seen in self._brokers.by_id.items()}
        groups, members, offsets = self._groups.rows(failing, self._image)
        placed = sorted(self._image.all_partitions())
        points = [
            (topic, number, at_ms, offset, received_ms)
            for (topic, number, at_ms), (offset, received_ms) in sorted(self._readings.points.items())
        ]
        configs = [
            (topic, *setting)
            for topic, seen in sorted(self._readings.topics.items())
            for setting in seen.settings
        ]
        snapshot = Snapshot(
            observation=self._observation(began_ms, now_ms),
            brokers=table(Brokers, self._brokers.rows(now_ms)),
            partitions=table(Partitions, [self._partition_row(key, partition) for key, partition in placed]),
            replicas=table(Replicas, self._replica_rows(placed)),
            time_points=table(TimePoints, points),
            groups=table(Groups, groups),
            members=table(Members, members),
            offsets=table(Offsets, offsets),
            share_offsets=table(ShareOffsets, self._groups.share_rows()),
            quorum=table(Quorum, self._quorum),
            reassignments=table(Reassignments, self._reassignments),
            topic_configs=table(TopicConfigs, configs),
            log_dirs=table(LogDirs, self._readings.dir_rows()),
            transactions=table(Transactions, self._transactions.rows()),
        )
        last = self._last
        if last is None:
            return snapshot
        names = [name for name in Snapshot.__struct_fields__ if name != "observation"]
        return replace(
            snapshot, **{name: shared(getattr(snapshot, name), getattr(last, name)) for name in names}
        )

    def _partition_row(self, key: TopicPartition, partition: PartitionImage) -> tuple[object, ...]:
        seen = self._readings.partitions[key]
        topic = self._image.topics[key[0]]
        settings: TopicSeen | None = self._readings.topics.get(key[0])
        min_isr = settings.min_isr() if settings is not None else UNKNOWN_ID
        unled = 5 if partition.leader < 0 else 0  # LEADER_NOT_AVAILABLE, as Metadata answers it
        return (
            *key,
            _uuid(topic.topic_id),
            topic.internal,
            partition.leader,
            partition.leader_epoch,
            partition.replicas,
            partition.isr,
            self._image.offline_replicas(partition),
            partition.elr if len(partition.isr) < min_isr else (),
            *seen.log_start,
            *seen.high_watermark,
            seen.high_watermark[0] if seen.stable_since_ms == UNKNOWN else seen.last_stable[0],
            seen.last_stable[1],
            seen.stable_since_ms,
            *seen.log_end,
            min_isr,
            seen.error_code or unled,
        )

    def _replica_rows(self, placed: list[tuple[TopicPartition, PartitionImage]]) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        for row, (key, partition) in enumerate(placed):
            seen = self._readings.partitions[key]
            for broker in partition.replicas:
                end = seen.replica_ends.get(broker, (UNKNOWN, UNKNOWN))
                rows.append((row, *key, broker, *end, seen.sizes.get(broker, UNKNOWN)))
        return rows


def _uuid(raw: bytes) -> str:
    """Return a topic id as Kafka's tools write it in hexadecimal."""
    digits = raw.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
