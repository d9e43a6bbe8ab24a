"""Checks a cluster's invariants while it runs."""

from collections.abc import Iterable, Sequence

from kview.simulate.cluster import Cluster
from kview.simulate.metadata import PartitionImage, TopicPartition
from tests.simulate.partition_invariants import Invariant, Partition, standard

FULL_CHECK_US = 10_000_000
"""Interval between full checks. Between them, only partitions that have changed are checked."""
TOUCHED_CHECK_US = 20_000
"""Interval between checks of changed partitions: half the interval between replication steps."""

CLUSTER_CHECK_US = 100_000
"""Interval between checks of the invariants on the entire cluster."""


class InvariantBroken(AssertionError):
    """Raised when an invariant does not hold, which means that the engine has a bug."""


class ClusterInvariant:
    """An invariant on an entire cluster. Calling it returns what is wrong, or None."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __call__(self) -> str | None:
        """Check the cluster, and return what is wrong, or None."""
        raise NotImplementedError


class ReplicasAreOfLivingTopics(ClusterInvariant):
    """An invariant: a broker stores only replicas that its own metadata assigns to it, of topics with the
    same id."""

    def __call__(self) -> str | None:
        for broker in self.cluster.brokers.values():
            topics = broker.image.topics
            for key, replica in broker.replicas.items():
                topic = topics.get(key[0])
                if topic is None or topic.topic_id != replica.topic_id:
                    return f"broker {broker.id} holds {key[0]}-{key[1]} of a topic that was deleted"
                if broker.id not in topic.partitions[key[1]].replicas:
                    return f"broker {broker.id} holds {key[0]}-{key[1]}, which is assigned to others"
        return None


class Checker:
    """Checks a cluster while it runs.

    Partitions that have changed are checked every TOUCHED_CHECK_US or, with `every_event`, after each event.
    `others` are invariants on the entire cluster, which are checked every CLUSTER_CHECK_US. Everything is
    checked every FULL_CHECK_US.
    """

    def __init__(
        self,
        cluster: Cluster,
        invariants: Sequence[Invariant] | None = None,
        others: Sequence[ClusterInvariant] = (),
        every_event: bool = False,
    ) -> None:
        self.cluster = cluster
        self.invariants = list(standard() if invariants is None else invariants)
        self.others = others
        self.checked = 0
        self._of_replicas = [i for i in self.invariants if not i.of_metadata]
        self._looked_at: dict[TopicPartition, tuple[PartitionImage, object]] = {}
        self._every_event = every_event
        self._next_us = 0
        self._others_us = 0
        self._full_us = 0
        cluster.touched.keys = {}
        cluster.kernel.after_event = self._after_event

    def _after_event(self) -> None:
        now_us = self.cluster.kernel.now_us
        if now_us < self._next_us and not self._every_event:
            return
        self._next_us = now_us + TOUCHED_CHECK_US
        if now_us >= self._full_us:
            self._full_us = now_us + FULL_CHECK_US
            self.check_all()
            return
        if self.cluster.touched.keys:
            touched, self.cluster.touched.keys = self.cluster.touched.keys, {}
            self.check(touched)
        if now_us >= self._others_us:
            self._others_us = now_us + CLUSTER_CHECK_US
            self._check_others()

    def check_all(self) -> None:
        """Check every partition and the entire cluster. Raises InvariantBroken."""
        self.cluster.touched.keys = {}
        self.check(key for key, _ in self.cluster.metadata.image.all_partitions())
        self._check_others()

    def _check_others(self) -> None:
        for other in self.others:
            wrong = other()
            if wrong:
                kernel = self.cluster.kernel
                raise InvariantBroken(
                    f"{type(other).__name__}: at {kernel.now_us} µs, seed {kernel.seed}: {wrong}"
                )

    def check(self, keys: Iterable[TopicPartition]) -> None:
        """Check these partitions. Raises InvariantBroken."""
        cluster = self.cluster
        for key in keys:
            image = cluster.metadata.image.partition(*key)
            if image is None:
                continue
            self.checked += 1
            topic_id = cluster.metadata.image.topics[key[0]].topic_id
            brokers_of = [cluster.brokers[r] for r in image.replicas]
            found = [broker.replicas.get(key) or broker.dirs.offline.get(key) for broker in brokers_of]
            replicas = [r for r in found if r is not None and r.topic_id == topic_id]
            leader = next((r for r in replicas if r.leading and r.broker.id == image.leader), None)
            brokers = cluster.metadata.image.brokers
            partition = Partition(brokers, key, (topic_id, key[1]), image, replicas, leader)
            looked_at = self._looked_at.get(key)
            rules = self._of_replicas
            if looked_at is None or looked_at[0] is not image or looked_at[1] is not brokers:
                self._looked_at[key] = image, brokers
                rules = self.invariants
            for invariant in rules:
                wrong = invariant.check(partition)
                if wrong is not None:
                    name = type(invariant).__name__
                    raise InvariantBroken(
                        f"{name}: {key[0]}-{key[1]} at {cluster.kernel.now_us} µs, "
                        f"seed {cluster.kernel.seed}: {wrong}"
                    )
