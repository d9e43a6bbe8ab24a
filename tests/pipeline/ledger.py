"""A simulated cluster that is recorded at the engine's speed, and a ledger of what happened in it.

The ledger reads the engine itself, ten times a second: the controllers' metadata, the processes, the logs on
the brokers' disks and the groups' commits. It shares no code with the camera, the fold or the pipeline.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kview.derive.facts import Facts
from kview.derive.fold import State, step
from kview.recording.writer import RecordingWriter
from kview.school.camera import Camera
from kview.simulate.cluster import Cluster, build
from kview.simulate.metadata import PartitionImage, TopicPartition
from kview.simulate.nodes import ProcessState
from kview.simulate.world import OFFSETS_TOPIC, World

START_MS = 1_767_265_200_000
"""A whole minute."""

SEED = 7
SEGMENT_S = 60
"""Short, so that a figure of minutes is made of several segments."""

STEP_MS, INTERVAL_MS = 100, 1_000
"""How often the ledger looks, and how often the camera does."""

OFFLINE, SILENT, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "silent", "under_min_isr", "under_replicated"


@dataclass(frozen=True, slots=True)
class Act:
    """What happens, seconds after the start."""

    at_s: int
    do: Callable[[Cluster], object]


@dataclass(frozen=True, slots=True)
class Loss:
    """A broker that was lost, in seconds after the start: when its process stopped working, when it was
    fenced, when all that it led was led again, and when every ISR was full again (−1 if never)."""

    broker: int
    lost_s: float
    fenced_s: float = -1.0
    led_s: float = -1.0
    full_s: float = -1.0


@dataclass
class Ledger:
    """What happened since START_MS. Second s is the time from s to s + 1 seconds after it."""

    records_in: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    """Records that leaders' logs grew by, by partition and second, like the next ones. If no leader could be
    asked for some seconds, each of them has an equal part: nobody outside can know when the records came, and
    when followers copied them."""
    cut: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    replicated: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    cross_rack: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    bytes_in: Counter[tuple[TopicPartition, int]] = field(default_factory=Counter)
    led: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Records in of the user's topics, by the broker that led, and second."""
    read: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Records that a group committed, by second, like the next ones."""
    rewound: Counter[tuple[str, int]] = field(default_factory=Counter)
    lag: Counter[tuple[str, int]] = field(default_factory=Counter)
    """A group's lag at the end of a second."""
    lag_of_worst: Counter[tuple[str, int]] = field(default_factory=Counter)
    """The same of the partition with the greatest one."""
    unread: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Records deleted before a group had read them."""
    state_ms: Counter[tuple[str, TopicPartition]] = field(default_factory=Counter)
    episodes: Counter[tuple[str, TopicPartition]] = field(default_factory=Counter)
    """How often a partition got into a state."""
    elected: Counter[tuple[str, int]] = field(default_factory=Counter)
    """New leaders by topic and second."""
    lost_leader: Counter[tuple[str, int]] = field(default_factory=Counter)
    gone: int = 0
    """Records that only the old leader had when another one was elected."""
    sizes: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The sizes that all replicas of a topic had together at whole seconds."""
    losses: list[Loss] = field(default_factory=list)


def spread(
    book: Counter[tuple[TopicPartition, int]], key: TopicPartition, number: int, since_s: int, until_s: int
) -> None:
    """Add whole numbers that are as equal as possible to these seconds, the larger ones first."""
    each, more = divmod(number, max(1, until_s - since_s))
    for at, second in enumerate(range(since_s, until_s)):
        book[key, second] += each + (at < more)


class Bookkeeper:
    """Keeps the ledger of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._racks = {broker.id: broker.rack for broker in cluster.world.brokers}
        self._ends: dict[TopicPartition, int] = {}
        self._seen_s: dict[TopicPartition, int] = {}
        self._waiting: dict[TopicPartition, Counter[str]] = {}
        """What followers copied since the leader was last seen."""
        self._copied: dict[tuple[TopicPartition, int], int] = {}
        self._led_by: dict[TopicPartition, tuple[int, int]] = {}
        self._in_state: set[tuple[str, TopicPartition]] = set()
        self._committed: dict[tuple[str, TopicPartition], int] = {}
        self._lost: dict[int, Loss] = {}
        self.ledger = Ledger()
        self.look(0.0)
        self.count(0)
        self.ledger = Ledger()

    def _runs(self, broker: int) -> bool:
        return self._cluster.nodes.by_id[broker].state is ProcessState.RUNNING

    def look(self, at_s: float) -> None:
        """Note in which state everything is, for the STEP_MS until `at_s`."""
        image, book = self._cluster.metadata.image, self.ledger
        is_full, led_by_lost = True, set()
        for key, partition in image.all_partitions():
            least = int(image.topics[key[0]].configs.get("min.insync.replicas", "1"))
            is_silent = partition.leader >= 0 and not self._runs(partition.leader)
            states = {
                OFFLINE: partition.leader < 0,
                SILENT: is_silent,
                UNDER_MIN_ISR: len(partition.isr) < least,
                UNDER_REPLICATED: len(partition.isr) < len(partition.replicas),
            }
            is_full = is_full and not states[UNDER_REPLICATED] and not states[OFFLINE]
            led_by_lost |= {partition.leader} if is_silent else set()
            for state, holds in states.items():
                if holds:
                    book.state_ms[state, key] += STEP_MS
                    book.episodes[state, key] += (state, key) not in self._in_state
                    self._in_state.add((state, key))
                else:
                    self._in_state.discard((state, key))
            self._note_leader(key, partition, max(0, math.ceil(at_s) - 1))
        for broker in self._cluster.broker_ids():
            self._note_loss(broker, at_s, is_full, broker in led_by_lost)

    def _note_leader(self, key: TopicPartition, partition: PartitionImage, second: int) -> None:
        leader, epoch = self._led_by.get(key, (partition.leader, partition.leader_epoch))
        if partition.leader_epoch != epoch:
            self.ledger.elected[key[0], second] += partition.leader >= 0
            self.ledger.lost_leader[key[0], second] += partition.leader < 0
        if 0 <= partition.leader != leader and leader >= 0:
            old, new = (self._cluster.brokers[one].replicas[key] for one in (leader, partition.leader))
            self.ledger.gone += max(0, old.log.end - max(new.epoch_start, new.high_watermark))
        if partition.leader >= 0 or leader < 0:
            self._led_by[key] = partition.leader, partition.leader_epoch
        else:
            self._led_by[key] = leader, partition.leader_epoch

    def _note_loss(self, broker: int, at_s: float, is_full: bool, leads: bool) -> None:
        loss = self._lost.get(broker)
        is_lost = not self._runs(broker)
        if loss is None and is_lost:
            self._lost[broker] = Loss(broker, at_s)
        elif loss is not None:
            if loss.fenced_s < 0 and self._cluster.metadata.image.brokers[broker].fenced:
                loss = replace(loss, fenced_s=at_s)
            if loss.led_s < 0 and loss.fenced_s >= 0 and not leads:
                loss = replace(loss, led_s=at_s)
            if not is_lost and is_full:
                self.ledger.losses.append(replace(loss, full_s=at_s))
                del self._lost[broker]
            else:
                self._lost[broker] = loss

    def count(self, until_s: int) -> None:
        """Count what the logs and the commits have grown by in the second before `until_s`."""
        second, book = max(0, until_s - 1), self.ledger
        sizes: Counter[str] = Counter()
        for key, partition in self._cluster.metadata.image.all_partitions():
            leader = self._leads(key, partition)
            since_s = self._seen_s.get(key, second)
            for broker in partition.replicas:
                replica = self._cluster.brokers[broker].replicas.get(key)
                if replica is None:
                    continue
                sizes[key[0]] += replica.log.size_between(replica.log.start, replica.log.end)
                if not self._runs(broker):
                    continue
                end = replica.log.end
                if broker == leader and replica.leading:
                    grown = end - self._ends.get(key, end)
                    if grown >= 0:
                        spread(book.records_in, key, grown, since_s, until_s)
                        book.bytes_in[key, second] += replica.log.size_between(end - grown, end)
                        book.led[broker, second] += grown if key[0] != OFFSETS_TOPIC else 0
                    else:
                        book.cut[key, second] -= grown
                    self._ends[key], self._seen_s[key] = end, until_s
                elif broker != leader:
                    grown = max(0, end - self._copied.get((key, broker), end))
                    waiting = self._waiting.setdefault(key, Counter())
                    waiting["replicated"] += grown
                    if leader >= 0 and self._racks[leader] != self._racks[broker]:
                        waiting["cross_rack"] += grown
                self._copied[key, broker] = end
            if self._seen_s.get(key) == until_s:
                for name, grown in self._waiting.pop(key, {}).items():
                    spread(getattr(book, name), key, grown, since_s, until_s)
        for topic, size in sizes.items():
            book.sizes[topic].add(size)
        self._count_groups(second)

    def _leads(self, key: TopicPartition, partition: PartitionImage) -> int:
        """Return who leads: until a leader that was just elected has heard of it, the one before goes on."""
        leading = [
            broker
            for broker in filter(self._runs, partition.replicas)
            if (replica := self._cluster.brokers[broker].replicas.get(key)) and replica.leading
        ]
        return leading[0] if partition.leader >= 0 and len(leading) == 1 else partition.leader

    def _count_groups(self, second: int) -> None:
        book = self.ledger
        for broker in filter(self._runs, self._cluster.broker_ids()):
            coordinator = self._cluster.groups(broker)
            for name in [group.name for group in coordinator.groups()]:
                for one in coordinator.fetch_offsets(name, None).offsets:
                    key = (one.topic, one.partition)
                    before = self._committed.get((name, key), one.offset)
                    book.read[name, second] += max(0, one.offset - before)
                    book.rewound[name, second] += max(0, before - one.offset)
                    self._committed[name, key] = one.offset
        for (group, key), offset in self._committed.items():
            lag = max(0, self._ends[key] - offset)
            book.lag[group, second] += lag
            book.lag_of_worst[group, second] = max(book.lag_of_worst[group, second], lag)
            leader = self._cluster.partitions.leader(key)
            if leader is not None:
                book.unread[group, second] += max(0, leader.log.start - offset)


def record_played(folder: Path, world: World, seconds: int, acts: Sequence[Act]) -> Ledger:
    """Let a cluster run with these acts, record what the camera sees once a second, and return the ledger.

    Observations are at whole seconds, so that the growth between two of them is that of a second.
    """
    cluster = build(world, SEED, START_MS)
    camera, state = Camera(cluster), State()
    writer = RecordingWriter(folder, segment_s=SEGMENT_S, small_segment_bytes=0)
    book = Bookkeeper(cluster)
    todo = sorted(acts, key=lambda one: one.at_s)
    for second in range(seconds + 1):
        if second:
            for at_ms in range(INTERVAL_MS * (second - 1) + STEP_MS, INTERVAL_MS * second + 1, STEP_MS):
                cluster.run_until((START_MS + at_ms) * 1000)
                book.look(at_ms / 1000)
            book.count(second)
        state, view = step(state, camera.snapshot())
        writer.append(view.snapshot, Facts.of(view))
        while todo and todo[0].at_s == second:
            todo.pop(0).do(cluster)
    writer.close()
    return book.ledger
