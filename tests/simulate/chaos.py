"""Random faults, topics that come and go, and clients at work, on the default world; all from one seed."""

import random

from kview.simulate.cluster import build
from kview.simulate.groups.invariants import of_the_cluster
from kview.simulate.invariants import Checker
from kview.simulate.nodes import ProcessState
from kview.simulate.world import default_world
from tests.simulate.chaos_clients import Clients
from tests.simulate.engine import START_MS, go

FAULTS_SECONDS = 45
EVERYTHING_SECONDS = 32
HEALING_SECONDS = 40
STEP_US = 2_000_000
"""At most so long between two disturbances."""
BREATH_US = 250_000
"""At most so long between two acts of the clients."""
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
TOPICS = ("create", "delete", "again", "again")
MADE = ("made-1", "made-2", "made-3")
OF_THE_WORLD = ("invoice", "payment", "audit-log")


class Chaos:
    """One run: `of_faults` or `of_everything`, then `heal`."""

    def __init__(self, seed: int, variant: str) -> None:
        self.cluster = build(default_world(settings={**QUICK, **VARIANTS[variant]}), seed, START_MS)
        self.checker = Checker(self.cluster, others=of_the_cluster(self.cluster), every_event=True)
        self._random = random.Random(seed)
        self.clients = Clients(self.cluster, self._random, variant == "unclean")

    def of_faults(self) -> None:
        """Disturb the cluster by faults alone."""
        kernel, source = self.cluster.kernel, self._random
        end_us = kernel.now_us + FAULTS_SECONDS * 1_000_000
        while kernel.now_us < end_us:
            go(self.cluster, source.randrange(10_000, 4_000_000) / 1e6)
            self._fault()

    def of_everything(self) -> None:
        """Disturb the cluster by faults and by topics that come and go, with clients at work."""
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
        """End every fault, let time pass, and check everything."""
        self.cluster.undo()
        go(self.cluster, HEALING_SECONDS)
        self.checker.check_all()
        troubled = [
            (key, p)
            for key, p in self.cluster.controller.image.all_partitions()
            if p.leader < 0 or len(p.isr) < len(p.replicas)
        ]
        assert not troubled
        self.clients.check()

    def _fault(self) -> None:
        cluster, source = self.cluster, self._random
        node = source.choice([*cluster.broker_ids(), *cluster.world.controllers])
        match source.choice(FAULTS):
            case "crash":
                cluster.crash(node)
            case "stop":
                cluster.stop(node)
            case "hang":
                cluster.hang(node)
            case "slow":
                cluster.slow(node, source.choice([50, 200, 3000]))
            case "start":
                cluster.start(node)
            case "controller":
                cluster.crash_controller()
            case "rack" if source.random() < 0.2:
                cluster.lose_rack(source.choice(["R1", "R2"]))

    def _topics(self, kind: str) -> None:
        """Create a topic, delete one, or do both under the same name."""
        cluster, source = self.cluster, self._random
        running = [b for b in cluster.broker_ids() if cluster.process(b) is ProcessState.RUNNING]
        if not running:
            return
        broker = source.choice(running)
        name = source.choice(MADE if source.random() < 0.7 else OF_THE_WORLD)
        partitions = source.randrange(1, 5)
        if kind != "create":
            cluster.delete_topic(broker, name, 5000, _heard)
        if kind != "delete":
            if source.random() < 0.5:
                go(cluster, source.choice([0.0005, 0.01, 0.3]))
            configs = source.choice([{}, {"min.insync.replicas": "2"}])
            cluster.create_topic(
                broker, name, partitions, source.randrange(1, 4), None, configs, False, 5000, _heard
            )


def _heard(result: object) -> None:
    """Whether the topic was made or not, chaos goes on."""
