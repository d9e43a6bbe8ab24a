"""Random faults, created and deleted topics, and active clients on the default world, all from one seed."""

import random
from collections.abc import Sequence

from kview.simulate.cluster import Cluster, build
from kview.simulate.topics import CreatableTopic
from kview.simulate.world import default_world
from tests.simulate.chaos_clients import Clients
from tests.simulate.engine import START_MS, go
from tests.simulate.group_invariants import of_the_cluster
from tests.simulate.invariants import Checker

FAULTS_SECONDS = 45
EVERYTHING_SECONDS = 32
HEALING_SECONDS = 40
STEP_US = 2_000_000
"""Longest time between two disturbances."""
BREATH_US = 250_000
"""Longest time between two actions of the clients."""
QUICK = {
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "4000",
    "leader.imbalance.check.interval.seconds": "20",
    "offsets.topic.num.partitions": "5",
    "replica.lag.time.max.ms": "6000",
}
VARIANTS = {
    "elr": {},
    "unclean": {"unclean.leader.election.enable": "true"},
    "no-elr": {"eligible.leader.replicas.version": "0"},
}
FAULTS = ("crash", "stop", "hang", "slow", "start", "start", "start", "controller", "rack")
NETWORK = ("cut", "cut", "cut-one-way", "isolate", "join", "join")
DISKS = ("lose-disk", "fill-disk", "slow-disk", "repair-disk")
ALL_FAULTS = FAULTS + NETWORK
DISK_FAULTS = ("hang", "slow", "start", "start", "start", "controller", *NETWORK, *DISKS, *DISKS)
"""Without crashes: if the other brokers of a partition are killed while one has lost its disk, Kafka elects
the last leader, whose log may be empty (KIP-966)."""
TOPICS = ("create", "delete", "again", "again")
MADE = ("made-1", "made-2", "made-3")
OF_THE_WORLD = ("invoice", "payment", "audit-log")


class Chaos:
    """One run, which consists of `of_faults` or `of_everything`, followed by `heal`."""

    def __init__(self, seed: int, variant: str) -> None:
        self.cluster = build(default_world(settings={**QUICK, **VARIANTS[variant]}), seed, START_MS)
        self.checker = Checker(self.cluster, others=of_the_cluster(self.cluster), every_event=True)
        self._random = random.Random(seed)
        self.clients = Clients(self.cluster, self._random, variant == "unclean")

    def of_faults(self) -> None:
        """Disturb the cluster with faults only."""
        kernel, source = self.cluster.kernel, self._random
        end_us = kernel.now_us + FAULTS_SECONDS * 1_000_000
        while kernel.now_us < end_us:
            go(self.cluster, source.randrange(10_000, 4_000_000) / 1e6)
            self._fault()

    def of_everything(self) -> None:
        """Disturb the cluster with faults, and by creating and deleting topics, while clients are active."""
        kernel, source = self.cluster.kernel, self._random
        end_us = kernel.now_us + EVERYTHING_SECONDS * 1_000_000
        while kernel.now_us < end_us:
            until_us = kernel.now_us + source.randrange(10_000, STEP_US)
            while kernel.now_us < until_us:
                go(self.cluster, source.randrange(5_000, BREATH_US) / 1e6)
                self.clients.act()
            if source.random() < 0.35:
                self._topics(source.choice(TOPICS))
            else:
                self._fault()

    def heal(self) -> None:
        """End every fault, let time pass, and check all invariants and promises."""
        heal(self.cluster, self.checker)
        self.clients.check()

    def _fault(self) -> None:
        disturb(self.cluster, self._random)

    def _topics(self, kind: str) -> None:
        change_topics(self.cluster, self._random, kind)


def disturb(cluster: Cluster, source: random.Random, faults: Sequence[str] = FAULTS) -> None:
    """Do one thing to a node, a rack or the network, or end a fault."""
    nodes = [*cluster.broker_ids(), *cluster.world.controllers]
    node = source.choice(nodes)
    match source.choice(faults):
        case "crash":
            cluster.faults.crash(node)
        case "stop":
            cluster.faults.stop(node)
        case "hang":
            cluster.faults.hang(node)
        case "slow":
            cluster.faults.slow(node, source.choice([50, 200, 3000]))
        case "start":
            cluster.faults.start(node)
        case "controller":
            cluster.faults.crash_controller()
        case "cut" | "cut-one-way" as kind:
            other = source.choice([other for other in nodes if other != node])
            cluster.faults.cut(node, other, kind == "cut-one-way")
        case "lose-disk" if node in cluster.broker_ids() and can_spare_a_disk(cluster, node):
            cluster.faults.lose_disk(node)
        case "fill-disk" if node in cluster.broker_ids() and can_spare_a_disk(cluster, node):
            cluster.faults.fill_disk(node)
        case "slow-disk" if node in cluster.broker_ids():
            cluster.faults.slow_disk(node, source.choice([20, 200, 7_000]))
        case "repair-disk" if node in cluster.broker_ids():
            cluster.faults.repair_disk(node)
        case "isolate":
            cluster.faults.isolate(node)
        case "join":
            cluster.faults.join_all()
        case "rack" if source.random() < 0.2:
            cluster.faults.lose_rack(source.choice(["R1", "R2"]))


def can_spare_a_disk(cluster: Cluster, broker: int) -> bool:
    """Return whether a running broker has a disk that works, and all that is on it is on another one, too."""
    everywhere = all(
        len(p.isr) == len(p.replicas) and (broker not in p.replicas or len(p.replicas) > 1)
        for _, p in cluster.metadata.image.all_partitions()
    )
    others = [each.dirs for each in cluster.brokers.values()]
    works = cluster.nodes.serves(broker) and bool(cluster.brokers[broker].dirs.working())
    known = cluster.controller.ready()
    return (
        known and works and everywhere and not any(dirs.lost or dirs.full or dirs.offline for dirs in others)
    )


def change_topics(
    cluster: Cluster, source: random.Random, kind: str, others: Sequence[str] = OF_THE_WORLD
) -> None:
    """Create a topic, delete one, or delete and create one with the same name."""
    running = [b for b in cluster.broker_ids() if cluster.nodes.serves(b)]
    if not running:
        return
    broker = source.choice(running)
    name = source.choice(MADE if source.random() < 0.7 else others)
    partitions = source.randrange(1, 5)
    if kind != "create":
        cluster.topics.delete_topic(broker, name, 5000, _heard)
    if kind != "delete":
        if source.random() < 0.5:
            go(cluster, source.choice([0.0005, 0.01, 0.3]))
        configs = source.choice([{}, {"min.insync.replicas": "2"}])
        topic = CreatableTopic(name, partitions, source.randrange(1, 4), configs=configs)
        cluster.topics.create_topic(broker, topic, False, 5000, _heard)


def heal(cluster: Cluster, checker: Checker) -> None:
    """End every fault, let time pass, and check all invariants."""
    cluster.faults.undo()
    go(cluster, HEALING_SECONDS)
    checker.check_all()
    troubled = [
        (key, p)
        for key, p in cluster.metadata.image.all_partitions()
        if p.leader < 0 or len(p.isr) < len(p.replicas)
    ]
    assert not troubled


def _heard(result: object) -> None:
    """Ignore the result, because chaos continues whether or not the topic was created."""
