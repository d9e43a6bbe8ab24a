"""Worlds of random size and settings, in which everything that can change does: nodes, topics, partitions,
replicas, leaders and records."""

import random

from msgspec.structs import replace

from kview.model.lab import Command, CommandKind
from kview.simulate.cluster import build
from kview.simulate.world import (
    CLASSIC,
    CONSUMER,
    INTERNAL_TOPICS,
    BrokerSpec,
    GroupSpec,
    Placement,
    ProducerSpec,
    TopicSpec,
    World,
    racked_brokers,
)
from tests.simulate.chaos import (
    ALL_FAULTS,
    DISK_FAULTS,
    FAULTS,
    QUICK,
    VARIANTS,
    change_topics,
    disturb,
    heal,
)
from tests.simulate.chaos_clients import CODECS, Clients
from tests.simulate.chaos_members import ChaosMembers
from tests.simulate.engine import START_MS, go
from tests.simulate.group_invariants import of_the_cluster
from tests.simulate.invariants import Checker
from tests.simulate.reading_committed import committed_only

PARTITIONS_MAX = 6
"""Of a topic, so that a world that adds partitions for five minutes stays small."""

ADMIN = ("partitions", "reassign", "reassign", "cancel", "prefer", "records")
TOPICS = ("create", "delete", "again")
TIMEOUT_MS = 5_000


class ChaosWorld:
    """A world made of one seed, and its disturbances of the same seed.

    With `members`, a consumer group reads all its topics. With `transactions`, its producer writes in
    transactions, and is taken over by others now and then. With `parted`, the network is cut, too. With
    `disks`, disks fail besides, of which nothing is lost that two brokers have. Without `traffic`, it has no
    simulated clients.
    """

    def __init__(
        self,
        seed: int,
        members: bool = False,
        transactions: bool = False,
        parted: bool = False,
        disks: bool = False,
        traffic: bool = True,
    ) -> None:
        self._random = random.Random(seed)
        self._transactions = transactions
        self._faults = DISK_FAULTS if disks else ALL_FAULTS if parted else FAULTS
        self._disks = disks
        self._traffic = traffic
        self._protocol = random.Random(f"protocol of {seed}").choice((CLASSIC, CONSUMER))
        self.variant = "elr" if disks else self._random.choice(list(VARIANTS))
        self.cluster = build(self._world(), seed, START_MS)
        self._topic_id = self.cluster.metadata.image.topics["topic-0"].topic_id
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
        producer = ProducerSpec("producer", first, 50.0, acks=source.choice((1, -1)))
        group = GroupSpec("group", (first,), source.randrange(1, 4), protocol=self._protocol)
        if self._transactions:
            producer = replace(producer, acks=-1, transaction_ms=source.randrange(100, 3_000), abort_every=4)
            group = replace(group, read_committed=True)
        settings = {**QUICK, **VARIANTS[self.variant], "transaction.state.log.num.partitions": "2"}
        if self._disks:
            topics = tuple(
                replace(topic, replication=3, configs={"min.insync.replicas": "2"}) for topic in topics
            )
            settings |= {"min.insync.replicas": "2", "log.dirs": source.choice(("", "a,b", "a,b,c"))}
        return World(
            brokers=brokers,
            topics=topics,
            producers=(producer,),
            groups=(group,),
            placement=source.choice(list(Placement)),
            settings=settings,
            traffic=self._traffic,
        )

    def run(self, seconds: float) -> None:
        """Disturb the cluster for so many simulated seconds, while clients are active, then heal it."""
        self.disturb(seconds)
        heal(self.cluster, self.checker)
        self.clients.check()
        if self._members is not None:
            self._members.check()

    def disturb(self, seconds: float) -> None:
        """Disturb the cluster for so many simulated seconds, while clients are active."""
        kernel, source = self.cluster.kernel, self._random
        end_us = kernel.now_us + round(seconds * 1_000_000)
        while kernel.now_us < end_us:
            for _ in range(source.randrange(1, 6)):
                go(self.cluster, source.randrange(5_000, 500_000) / 1e6)
                self.clients.act()
                if self._members is not None:
                    self._members.act()
            kind = source.random()
            if self._transactions and source.random() < 0.1:
                self.cluster.adjustments.apply(Command(CommandKind.TAKE_OVER, name=self._newest()))
            if kind < 0.2:
                change_topics(self.cluster, source, source.choice(TOPICS), self._names)
            elif kind < 0.5:
                self._administrate(source.choice(ADMIN))
            else:
                disturb(self.cluster, source, self._faults)

    def _newest(self) -> str:
        """Return the client id of the producer that took the transactional id over last."""
        return list(self.cluster.traffic.producers)[-1]

    def check_transactions(self) -> None:
        """Check in a healed cluster that what is committed is read, and nothing else, and that the producer
        of the last epoch goes on, and no other one.

        What cannot be delivered keeps a producer from asking its coordinator, and so from being fenced.
        """
        own = {
            name: found
            for name, each in self.cluster.traffic.producers.items()
            if (found := each.transactions)
        }
        last = max(own, key=lambda name: own[name].producer)
        before = {name: each.committed for name, each in own.items()}
        go(self.cluster, 20)
        ahead = {name for name, each in own.items() if each.committed > before[name]}
        assert ahead <= {last}
        for key, image in self.cluster.metadata.image.all_partitions():
            if key[0] not in INTERNAL_TOPICS:
                committed_only(self.cluster, image.leader, key)
        topic = self.cluster.metadata.image.topics.get(self.cluster.world.producers[0].topic)
        if topic is not None and topic.topic_id == self._topic_id:  # else its partitions may be gone
            assert ahead

    def _administrate(self, kind: str) -> None:
        cluster, source = self.cluster, self._random
        keys = [key for key, _ in cluster.metadata.image.all_partitions()]
        running = [broker for broker in cluster.broker_ids() if cluster.nodes.serves(broker)]
        if not keys or not running or not cluster.controller.ready():
            return
        key = source.choice(keys)
        if kind == "partitions":
            count = len(cluster.metadata.image.topics[key[0]].partitions) + 1
            if count <= PARTITIONS_MAX and key[0] not in INTERNAL_TOPICS:
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
            if key[0] not in INTERNAL_TOPICS and leader is not None and leader.leader in running:
                cluster.deletion.delete_records(leader.leader, *key, -1, TIMEOUT_MS, lambda result: None)
