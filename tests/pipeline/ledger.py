"""A simulated cluster that is recorded at the engine's speed, and a ledger of what happened in it.

The ledger reads the engine itself, ten times a second: the controllers' metadata, the processes, the logs on
the brokers' disks and the groups' commits. It shares no code with the camera, the fold or the pipeline.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kview.derive.facts import Facts
from kview.derive.fold import State, step
from kview.recording.writer import RecordingWriter
from kview.school.camera import Camera
from kview.simulate.brokers.process import ProcessState
from kview.simulate.cluster import Cluster, build
from kview.simulate.metadata import TopicPartition
from kview.simulate.world import OFFSETS_TOPIC, World

START_MS = 1_767_265_200_000
"""A whole minute."""

STEP_MS, INTERVAL_MS = 100, 1_000
"""How often the ledger looks, and how often the camera does."""

OFFLINE, SILENT, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "silent", "under_min_isr", "under_replicated"


@dataclass(frozen=True, slots=True)
class Act:
    """What happens, seconds after the start."""

    at_s: int
    do: Callable[[Cluster], object]


@dataclass
class Ledger:
    """What happened since START_MS. Records are counted by (topic, partition) and minute."""

    records_in: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    cut: Counter[TopicPartition] = field(default_factory=Counter)
    replicated: Counter[TopicPartition] = field(default_factory=Counter)
    cross_rack: Counter[TopicPartition] = field(default_factory=Counter)
    bytes_in: Counter[TopicPartition] = field(default_factory=Counter)
    led: Counter[int] = field(default_factory=Counter)
    """Records in by the broker that led."""
    by_second: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Records in by (topic, second)."""
    read: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Records that a group committed, by (group, minute)."""
    rewound: Counter[str] = field(default_factory=Counter)
    state_ms: Counter[tuple[str, TopicPartition]] = field(default_factory=Counter)
    episodes: Counter[tuple[str, TopicPartition]] = field(default_factory=Counter)
    """How often a partition got into a state."""
    elected: Counter[str] = field(default_factory=Counter)
    lost_leader: Counter[str] = field(default_factory=Counter)
    lag_most: Counter[str] = field(default_factory=Counter)
    behind_most_ms: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    """Records deleted before a group had read them, the most at once."""
    sizes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """The size of all replicas of a topic at the end."""

    def of_topic(self, counted: Counter[TopicPartition], topic: str) -> int:
        """The sum of a topic's partitions."""
        return sum(number for (name, _), number in counted.items() if name == topic)


class Bookkeeper:
    """Keeps the ledger of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._racks = {broker.id: broker.rack for broker in cluster.world.brokers}
        self._ends: dict[TopicPartition, int] = {}
        self._copied: dict[tuple[TopicPartition, int], int] = {}
        self._led_by: dict[TopicPartition, tuple[int, int]] = {}
        self._in_state: set[tuple[str, TopicPartition]] = set()
        self._committed: dict[tuple[str, TopicPartition], int] = {}
        self.ledger = Ledger()
        self.look()
        self.count(0)
        self.ledger = Ledger()

    def _runs(self, broker: int) -> bool:
        return self._cluster.nodes.by_id[broker].state is ProcessState.RUNNING

    def look(self) -> None:
        """Note in which state every partition is, for the next STEP_MS."""
        for key, partition in self._cluster.metadata.image.all_partitions():
            topic = self._cluster.metadata.image.topics[key[0]]
            least = int(topic.configs.get("min.insync.replicas", "1"))
            states = {
                OFFLINE: partition.leader < 0,
                SILENT: partition.leader >= 0 and not self._runs(partition.leader),
                UNDER_MIN_ISR: len(partition.isr) < least,
                UNDER_REPLICATED: len(partition.isr) < len(partition.replicas),
            }
            for state, holds in states.items():
                if holds:
                    self.ledger.state_ms[state, key] += STEP_MS
                    self.ledger.episodes[state, key] += (state, key) not in self._in_state
                    self._in_state.add((state, key))
                else:
                    self._in_state.discard((state, key))
            before = self._led_by.get(key, (partition.leader, partition.leader_epoch))
            if partition.leader_epoch != before[1]:
                self.ledger.elected[key[0]] += partition.leader >= 0 and partition.leader != before[0]
                self.ledger.lost_leader[key[0]] += partition.leader < 0
            self._led_by[key] = partition.leader, partition.leader_epoch

    def count(self, second: int) -> None:
        """Count what the logs and the commits have grown by until this second."""
        minute, book = max(0, second - 1) // 60, self.ledger
        for key, partition in self._cluster.metadata.image.all_partitions():
            for broker in partition.replicas:
                replica = self._cluster.brokers[broker].replicas.get(key)
                if replica is None or not self._runs(broker):
                    continue
                end = replica.log.end
                if broker == partition.leader and replica.leading:
                    before = self._ends.get(key, end)
                    if end >= before:
                        book.records_in[key, minute] += end - before
                        book.bytes_in[key] += replica.log.size_between(before, end)
                        book.led[broker] += end - before if key[0] != OFFSETS_TOPIC else 0
                        book.by_second[key[0], second - 1] += end - before
                    else:
                        book.cut[key] += before - end
                    self._ends[key] = end
                elif broker != partition.leader:
                    grown = max(0, end - self._copied.get((key, broker), end))
                    book.replicated[key] += grown
                    if partition.leader >= 0 and self._racks[partition.leader] != self._racks[broker]:
                        book.cross_rack[key] += grown
                self._copied[key, broker] = end
        self._count_groups(minute)

    def _count_groups(self, minute: int) -> None:
        lags: Counter[str] = Counter()
        unread: Counter[str] = Counter()
        for broker in self._cluster.broker_ids():
            if not self._runs(broker):
                continue
            coordinator = self._cluster.groups(broker)
            for group in coordinator.groups():
                for one in coordinator.fetch_offsets(group.name, None).offsets:
                    key = (one.topic, one.partition)
                    before = self._committed.get((group.name, key), one.offset)
                    self.ledger.read[group.name, minute] += max(0, one.offset - before)
                    self.ledger.rewound[group.name] += max(0, before - one.offset)
                    self._committed[group.name, key] = one.offset
        for (group, key), offset in self._committed.items():
            lags[group] += max(0, self._ends[key] - offset)
            leader = self._cluster.partitions.leader(key)
            if leader is not None:
                unread[group] += max(0, leader.log.start - offset)
        for group, lag in lags.items():
            self.ledger.lag_most[group] = max(self.ledger.lag_most[group], lag)
            self.ledger.unread[group] = max(self.ledger.unread[group], unread[group])

    def close(self) -> None:
        """Note the sizes at the end."""
        for key, _ in self._cluster.metadata.image.all_partitions():
            for broker in self._cluster.brokers.values():
                replica = broker.replicas.get(key)
                if replica is not None:
                    self.ledger.sizes[key[0]] += replica.log.size_between(replica.log.start, replica.log.end)


def record_played(folder: Path, world: World, seconds: int, acts: Sequence[Act], seed: int = 7) -> Ledger:
    """Let a cluster run with these acts, record what the camera sees once a second, and return the ledger.

    The recording begins one second before START_MS + 1000, which is the first second that a report knows.
    """
    cluster = build(world, seed, START_MS)
    camera, state = Camera(cluster), State()
    writer = RecordingWriter(folder, segment_s=300, small_segment_bytes=0)
    book = Bookkeeper(cluster)
    todo = sorted(acts, key=lambda one: one.at_s)
    for second in range(seconds + 1):
        if second:
            for at_ms in range(INTERVAL_MS * (second - 1) + STEP_MS, INTERVAL_MS * second + 1, STEP_MS):
                cluster.run_until((START_MS + at_ms) * 1000)
                book.look()
            book.count(second)
        state, view = step(state, camera.snapshot())
        writer.append(view.snapshot, Facts.of(view))
        while todo and todo[0].at_s == second:
            todo.pop(0).do(cluster)
    writer.close()
    book.close()
    return book.ledger
