"""Observes a simulated cluster with the camera, and keeps the truth about its elections."""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kview.model.snapshot import Snapshot
from kview.model.states import BrokerState
from kview.school.camera import Camera
from kview.simulate.cluster import Cluster, build
from kview.simulate.world import LinkSpec, ProducerSpec, TopicSpec, World, racked_brokers
from tests.simulate.engine import START_MS

STEP_US = 20_000
"""How often the truth is looked at."""
SESSION_MS = 4_000
READ_MS = 20
"""Between the followers' readings and the leaders' in one observation."""

Key = tuple[str, int]


@dataclass
class Truth:
    """What happened: by partition, the records that an election left behind, and when."""

    losses: dict[Key, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    fenced_ms: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    crashed_ms: dict[int, int] = field(default_factory=dict)

    def lost(self, key: Key, from_ms: int, to_ms: int) -> int:
        """Return the records that one partition lost in a time."""
        return sum(records for at_ms, records in self.losses[key] if from_ms <= at_ms <= to_ms)


class Engine:
    """A cluster with traffic, in which every fault comes from the seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.interval_ms = self.random.choice((300, 1_000, 1_000, 3_000))
        self.cluster = build(self._world(), seed, START_MS)
        self.truth = Truth()
        self.told_fenced_ms: dict[int, list[int]] = defaultdict(list)
        """By broker, the ends of the observations in which metadata first told that it was fenced."""
        self._camera = Camera(self.cluster)
        self._image: Any = None
        self._told: set[int] = set()
        self._leaders: dict[Key, tuple[int, int]] = {}
        self._ends: dict[Key, int] = {}
        self._pending: list[list[Any]] = []
        """Elections that the brokers have not learned of yet: an old leader may still write."""
        self._follow()

    def _world(self) -> World:
        source = self.random
        topics = (
            TopicSpec("orders", 3, 3, {"min.insync.replicas": "2"}),
            TopicSpec("clicks", 4, source.choice((1, 2, 3))),
        )
        return World(
            brokers=racked_brokers(source.choice((3, 4, 6)), source.choice((1, 2, 3))),
            topics=topics,
            producers=(
                ProducerSpec("orders", "orders", source.choice((50.0, 400.0)), acks=-1),
                ProducerSpec("clicks", "clicks", source.choice((200.0, 1_500.0)), acks=1),
            ),
            settings={
                "broker.session.timeout.ms": str(SESSION_MS),
                "broker.heartbeat.interval.ms": "1000",
                "offsets.topic.num.partitions": "2",
                "unclean.leader.election.enable": source.choice(("true", "false")),
                "leader.imbalance.check.interval.seconds": source.choice(("10", "300")),
            },
            link=LinkSpec(latency_us=source.choice((300, 5_000, 40_000))),
            warm_ms=20_000,
        )

    @property
    def now_ms(self) -> int:
        """The engine's time."""
        return self.cluster.kernel.now_us // 1000

    def go(self, ms: int) -> None:
        """Let time pass, and note every election."""
        end_us = self.cluster.kernel.now_us + ms * 1000
        while self.cluster.kernel.now_us < end_us:
            self.cluster.run_until(min(end_us, self.cluster.kernel.now_us + STEP_US))
            self._follow()

    def _follow(self) -> None:
        cluster: Cluster = self.cluster
        image = cluster.metadata.image
        for key, (leader, _) in self._leaders.items():  # what the leader of the last step has written since
            if leader >= 0:
                self._ends[key] = max(self._ends.get(key, 0), cluster.brokers[leader].replicas[key].log.end)
        if image is not self._image:
            for id, broker in image.brokers.items():
                was = self._image.brokers.get(id) if self._image else None
                if broker.fenced and was is not None and not was.fenced:
                    self.truth.fenced_ms[id].append(self.now_ms)
            for key, partition in image.all_partitions():
                old = self._leaders.get(key)
                if old is not None and partition.leader_epoch != old[1] and partition.leader >= 0:
                    end = self._ends.pop(key, 0)
                    self._pending.append([key, partition.leader, partition.leader_epoch, end, old])
                if old is None or partition.leader >= 0:
                    self._leaders[key] = (partition.leader, partition.leader_epoch)
            self._image = image
        left = []
        for election in self._pending:
            key, leader, epoch, _, (before, old_epoch) = election
            replica, earlier = (cluster.brokers[id].replicas.get(key) for id in (leader, before))
            if earlier is not None and earlier.leader_epoch == old_epoch and before != leader:
                election[3] = max(election[3], earlier.log.end)
                if earlier.leading and cluster.nodes.serves(before):
                    left.append(election)
                    continue
            if replica is not None and replica.leading and replica.leader_epoch == epoch:
                self.truth.losses[key].append((self.now_ms, max(0, election[3] - replica.epoch_start)))
            else:
                left.append(election)
        self._pending = left

    def observe(self) -> Snapshot:
        """Return a snapshot, as an observer that asks every broker would see it."""
        snapshot = self._camera.snapshot(lambda: self.go(READ_MS))
        brokers = snapshot.brokers
        told = set(brokers.id[np.asarray(brokers.state == BrokerState.FENCED, np.bool_)].tolist())
        for id in told - self._told:
            self.told_fenced_ms[id].append(self.now_ms)
        self._told = told
        return snapshot

    def watch(self, observations: int) -> Iterator[Snapshot]:
        """Yield snapshots, while faults come and go."""
        source, cluster = self.random, self.cluster
        for _ in range(5):
            yield self.observe()
            self.go(self.interval_ms - READ_MS)
        for _ in range(observations):
            self.disturb(source, cluster)
            yield self.observe()
            rest = self.interval_ms - READ_MS
            first = source.randrange(1, rest)
            self.go(first)
            self.disturb(source, cluster)
            self.go(rest - first)

    def disturb(self, source: random.Random, cluster: Cluster) -> None:
        """Perhaps do something to a broker."""
        chance = min(0.25, 0.05 * self.interval_ms / 1000)
        if source.random() > chance:
            return
        broker = source.choice(cluster.broker_ids())
        what = source.choice(("crash", "crash", "hang", "stop", "slow", "slow", "start", "start", "start"))
        if what == "slow":
            cluster.faults.slow(broker, source.choice((300, 1_500)))
            return
        if what == "crash" and cluster.nodes.serves(broker):
            self.truth.crashed_ms[broker] = self.now_ms
        getattr(cluster.faults, what)(broker)
