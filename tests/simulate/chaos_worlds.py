"""Worlds of random size and settings, in which everything that can change does: nodes, topics, partitions,
replicas, leaders and records."""

import random

from kview.simulate.cluster import build
from kview.simulate.world import (
    OFFSETS_TOPIC,
    BrokerSpec,
    GroupSpec,
    Placement,
    ProducerSpec,
    TopicSpec,
    World,
    racked_brokers,
)
from tests.simulate.chaos import QUICK, VARIANTS, change_topics, disturb, heal
from tests.simulate.chaos_clients import CODECS, Clients
from tests.simulate.chaos_members import ChaosMembers
from tests.simulate.engine import START_MS, go
from tests.simulate.group_invariants import of_the_cluster
from tests.simulate.invariants import Checker

PARTITIONS_MAX = 6
"""Of a topic, so that a world that adds partitions for five minutes stays small."""

ADMIN = ("partitions", "reassign", "reassign", "cancel", "prefer", "records")
TOPICS = ("create", "delete", "again")
TIMEOUT_MS = 5_000


class ChaosWorld:
    """A world made of one seed, and its disturbances of the same seed.

    With `members`, a consumer group reads all its topics.
    """

    def __init__(self, seed: int, members: bool = False) -> None:
        self._random = random.Random(seed)
        self.variant = self._random.choice(list(VARIANTS))
        self.cluster = build(self._world(), seed, START_MS)
        self.checker = Checker(self.cluster, others=of_the_cluster(self.cluster), every_event=True)
        self.clients = Clients(self.cluster, self._random, self.variant == "unclean", CODECS)
        self._members = ChaosMembers(self.cluster, seed) if members else None
        self._names = ("made-1", "made-2", *(topic.name for topic in self.cluster.world.topics))

    def _world(self) -> World:
        source = self._random
        brokers: tuple[BrokerSpec, ...] = racked_brokers(source.randrange(3, 7), source.randrange(1, 4))
        topics = tuple(
            TopicSpec(
                f"topic-{number}",
                source.randrange(1, 4),
                source.randrange(1, 4),
                {"min.insync.replicas": str(source.randrange(1, 3))},
            )
            for number in range(source.randrange(1, 4))
        )
        first = topics[0].name
        return World(
            brokers=brokers,
            topics=topics,
            producers=(ProducerSpec("producer", first, 50.0, acks=source.choice((1, -1))),),
            groups=(GroupSpec("group", (first,), source.randrange(1, 4)),),
            placement=source.choice(list(Placement)),
            settings={**QUICK, **VARIANTS[self.variant]},
        )

    def run(self, seconds: float) -> None:
        """Disturb the cluster for so many simulated seconds, while clients are active, then heal it."""
        kernel, source = self.cluster.kernel, self._random
        end_us = kernel.now_us + round(seconds * 1_000_000)
        while kernel.now_us < end_us:
            for _ in range(source.randrange(1, 6)):
                go(self.cluster, source.randrange(5_000, 500_000) / 1e6)
                self.clients.act()
                if self._members is not None:
                    self._members.act()
            kind = source.random()
            if kind < 0.2:
                change_topics(self.cluster, source, source.choice(TOPICS), self._names)
            elif kind < 0.5:
                self._administrate(source.choice(ADMIN))
            else:
                disturb(self.cluster, source)
        heal(self.cluster, self.checker)
        self.clients.check()
        if self._members is not None:
            self._members.check()

    def _administrate(self, kind: str) -> None:
        cluster, source = self.cluster, self._random
        keys = [key for key, _ in cluster.metadata.image.all_partitions()]
        running = [broker for broker in cluster.broker_ids() if cluster.nodes.serves(broker)]
        if not keys or not running or not cluster.controller.ready():
            return
        key = source.choice(keys)
        if kind == "partitions":
            count = len(cluster.metadata.image.topics[key[0]].partitions) + 1
            if count <= PARTITIONS_MAX and key[0] != OFFSETS_TOPIC:
                cluster.admin.create_partitions(key[0], count, None, False)
        elif kind == "reassign":
            brokers = list(cluster.broker_ids())
            target = source.sample(brokers, source.randrange(1, min(4, len(brokers)) + 1))
            cluster.admin.reassign(key, target, True)
        elif kind == "cancel":
            for moving in cluster.admin.reassignments():
                cluster.admin.reassign(moving.key, None, True)
        elif kind == "prefer":
            cluster.admin.elect_leaders(None, False)
        else:
            leader = cluster.image(running[0]).partition(*key)
            if key[0] != OFFSETS_TOPIC and leader is not None and leader.leader in running:
                cluster.deletion.delete_records(leader.leader, *key, -1, TIMEOUT_MS, lambda result: None)
