"""What an observer would have read of the partitions: leaders, logs, sizes, settings and older offsets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import MetadataImage, PartitionImage, TopicPartition

EARLIEST, LATEST, CONSUMER, DEBUGGING = -2, -1, -1, -2
"""Timestamps and replica ids of ListOffsets."""
LOG_DIRS_MS, CONFIGS_MS, LAST_STABLE_MS = 30_000, 60_000, 5_000
"""How often sizes, settings and last stable offsets are asked for, the latter each time while one is held."""
POINT_AGES_S = (600, 300, 120, 60, 30, 10)
"""For which moments in the past the observer asks where a log ended, in seconds before the first question."""
MIN_ISR = "min.insync.replicas"
TOPIC_KEYS = (
    "cleanup.policy", "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    MIN_ISR, "retention.bytes", "retention.ms", "unclean.leader.election.enable",
)  # fmt: skip
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}


@dataclass(slots=True)
class PartitionSeen:
    """The last readings of one partition, each pair being (value, epoch ms when it was received)."""

    log_start: tuple[int, int] = (UNKNOWN, UNKNOWN)
    high_watermark: tuple[int, int] = (UNKNOWN, UNKNOWN)
    log_end: tuple[int, int] = (UNKNOWN, UNKNOWN)
    last_stable: tuple[int, int] = (UNKNOWN, UNKNOWN)
    stable_since_ms: int = UNKNOWN
    """Since when a transaction has held the last stable offset where it is, UNKNOWN if none does."""
    error_code: int = 0
    replica_ends: dict[int, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    @property
    def held_ms(self) -> int:
        """How long a transaction has held the last stable offset, 0 if none does."""
        return 0 if self.stable_since_ms == UNKNOWN else self.last_stable[1] - self.stable_since_ms

    def read_stable(self, offset: int, now_ms: int) -> None:
        """Store the last stable offset, which was read right after the high watermark."""
        if offset >= self.high_watermark[0]:
            self.stable_since_ms = UNKNOWN
        elif offset != self.last_stable[0] or self.stable_since_ms == UNKNOWN:
            self.stable_since_ms = now_ms
        self.last_stable = (offset, now_ms)


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """A topic's settings as (name, value, source), of the topic with this id."""

    topic_id: bytes
    settings: tuple[tuple[str, str, str], ...]
    received_ms: int

    def min_isr(self) -> int:
        """Return min.insync.replicas, UNKNOWN_ID if it is not known."""
        return next((int(value) for name, value, _ in self.settings if name == MIN_ISR), UNKNOWN_ID)


class Readings:
    """All readings of partitions and topics."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ids: dict[str, bytes] = {}
        self._sizes_ms: dict[int, int] = {}
        self._log_dirs: dict[int, list[tuple[str, int, int]]] = {}
        """Broker → its log directories: path, error code, and epoch ms when it was received."""
        self.partitions: dict[TopicPartition, PartitionSeen] = {}
        self.topics: dict[str, TopicSeen] = {}
        self.points: dict[tuple[str, int, int], tuple[int, int]] = {}
        """(topic, partition, timestamp) → (offset, when it was received)."""
        self._asked_points: set[TopicPartition] = set()

    def follow(self, image: MetadataImage) -> None:
        """Drop what was read of topics that are gone, or were created again."""
        for name, topic_id in list(self._ids.items()):
            topic = image.topics.get(name)
            if topic is None or topic.topic_id != topic_id:
                del self._ids[name]
                self.partitions = {key: seen for key, seen in self.partitions.items() if key[0] != name}
                self.points = {key: seen for key, seen in self.points.items() if key[0] != name}
                self._asked_points = {key for key in self._asked_points if key[0] != name}
                self.topics.pop(name, None)
        for name, topic in image.topics.items():
            self._ids[name] = topic.topic_id
            for number in range(len(topic.partitions)):
                self.partitions.setdefault((name, number), PartitionSeen())

    def read_followers(self, image: MetadataImage, answering: frozenset[int], now_ms: int) -> None:
        """Read the log ends of followers."""
        for key, partition in image.all_partitions():
            for broker in partition.replicas:
                if broker in answering and broker != partition.leader:
                    self._read_end(key, broker, now_ms, self.partitions[key])

    def read_leaders(self, image: MetadataImage, answering: frozenset[int], now_ms: int) -> None:
        """Read the offsets of leaders."""
        for key, partition in image.all_partitions():
            if partition.leader in answering:
                self._read_leader(key, partition, now_ms, self.partitions[key])

    def _read_end(self, key: TopicPartition, broker: int, now_ms: int, seen: PartitionSeen) -> None:
        answer = self._cluster.records.list_offset(broker, *key, LATEST, DEBUGGING)
        if answer.error_code is ErrorCode.NONE and answer.offset >= 0:
            seen.replica_ends[broker] = (answer.offset, now_ms)

    def _read_leader(
        self, key: TopicPartition, partition: PartitionImage, now_ms: int, seen: PartitionSeen
    ) -> None:
        """Store watermark and log end, or neither: a new leader knows its end first (KIP-207)."""
        ask = self._cluster.records.list_offset
        watermark = ask(partition.leader, *key, LATEST, CONSUMER)
        end = ask(partition.leader, *key, LATEST, DEBUGGING)
        start = ask(partition.leader, *key, EARLIEST, CONSUMER)
        seen.error_code = int(watermark.error_code)
        if start.error_code is ErrorCode.NONE:
            seen.log_start = (start.offset, now_ms)
        if watermark.error_code is ErrorCode.NONE and end.error_code is ErrorCode.NONE:
            seen.high_watermark = (watermark.offset, now_ms)
            seen.log_end = seen.replica_ends[partition.leader] = (end.offset, now_ms)
        due = seen.stable_since_ms != UNKNOWN or now_ms - seen.last_stable[1] >= LAST_STABLE_MS
        if due and watermark.error_code is ErrorCode.NONE:
            stable = ask(partition.leader, *key, LATEST, CONSUMER, committed=True)
            seen.read_stable(stable.offset, now_ms)

    def read_sizes(self, answering: Iterable[int], now_ms: int) -> dict[int, int]:
        """Read the sizes of logs if they are due, and return the bytes on disk of the brokers asked."""
        total = {}
        for broker in answering:
            if now_ms - self._sizes_ms.get(broker, UNKNOWN) < LOG_DIRS_MS:
                continue
            self._sizes_ms[broker] = now_ms
            found = self._cluster.descriptions.log_dirs(broker)
            self._log_dirs[broker] = [(each.path, int(each.error_code), now_ms) for each in found]
            rows = [row for each in found for row in each.rows]
            total[broker] = sum(row.size_bytes for row in rows)
            for row in rows:
                seen = self.partitions.get((row.topic, row.partition))
                if seen is not None:
                    seen.sizes[broker] = row.size_bytes
        return total

    def dir_rows(self) -> list[tuple[object, ...]]:
        """Return the log directories of the brokers that have told them, whose volumes are not known."""
        return [
            (broker, path, error, UNKNOWN, UNKNOWN, received_ms)
            for broker, dirs in sorted(self._log_dirs.items())
            for path, error, received_ms in sorted(dirs)
        ]

    def read_settings(self, image: MetadataImage, source: int, now_ms: int) -> None:
        """Read the settings of new topics, and of all topics once a minute."""
        for name, topic in image.topics.items():
            known = self.topics.get(name)
            fresh = known is not None and now_ms - known.received_ms < CONFIGS_MS
            if known is not None and fresh and known.topic_id == topic.topic_id:
                continue
            if name not in self._cluster.image(source).topics:
                continue
            entries = self._cluster.descriptions.topic_configs(source, name)
            rows = sorted(
                (entry.name, entry.value or "", SOURCES.get(entry.source, "UNKNOWN"))
                for entry in entries
                if entry.name in TOPIC_KEYS
            )
            self.topics[name] = TopicSeen(topic.topic_id, tuple(rows), now_ms)

    def read_points(
        self, keys: Sequence[TopicPartition], image: MetadataImage, answering: frozenset[int], now_ms: int
    ) -> None:
        """Ask once where the logs of `keys` ended some time ago. Answers are kept for ten minutes."""
        oldest_ms = now_ms - 1000 * POINT_AGES_S[0]
        if any(received_ms < oldest_ms for _, received_ms in self.points.values()):
            self.points = {key: seen for key, seen in self.points.items() if seen[1] >= oldest_ms}
        for key in keys:
            partition = image.partition(*key)
            if key in self._asked_points or partition is None or partition.leader not in answering:
                continue
            self._asked_points.add(key)
            for age_s in POINT_AGES_S:
                at_ms = now_ms - 1000 * age_s
                answer = self._cluster.records.list_offset(partition.leader, *key, at_ms, DEBUGGING)
                if answer.error_code is ErrorCode.NONE:
                    end = self.partitions[key].log_end
                    offset = answer.offset if answer.offset >= 0 else end[0] if end[1] >= at_ms else UNKNOWN
                    self.points[(*key, at_ms)] = (offset, now_ms)
