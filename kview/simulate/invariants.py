"""The invariants: small named classes that state what must hold after every event."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from kview.simulate.cluster import Cluster
from kview.simulate.log import Log
from kview.simulate.metadata import PartitionImage, TopicPartition
from kview.simulate.replica import Replica

FULL_CHECK_US = 10_000_000
"""Interval between checks of everything. In between, only what events touched is checked."""
TOUCHED_CHECK_US = 20_000
"""Interval between checks of touched partitions: half the interval between replication steps."""

CLUSTER_CHECK_US = 100_000
"""Interval between checks of the invariants on the entire cluster."""


class InvariantBroken(AssertionError):
    """Raised when an invariant does not hold, which means that the engine has a bug."""


class Partition(NamedTuple):
    """A partition with the controller's `image`, the brokers' `replicas`, and the `leader` in charge."""

    cluster: Cluster
    key: TopicPartition
    id: tuple[bytes, int]
    image: PartitionImage
    replicas: list[Replica]
    leader: Replica | None


class Invariant:
    """An invariant on one partition, whose `check` returns what is wrong, or None.

    An invariant with `of_metadata` depends on the controller's metadata alone, and is skipped while that
    metadata does not change.
    """

    of_metadata: ClassVar[bool] = False

    def check(self, partition: Partition) -> str | None:
        """Check the partition, and return what is wrong, or None."""
        raise NotImplementedError


class IsrIsAmongReplicas(Invariant):
    """An invariant: ISR and ELR members are replicas, each listed once, and no broker is in both lists."""

    of_metadata = True

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        both = image.isr + image.elr
        if len(set(both)) != len(both) or not set(both) <= set(image.replicas):
            return f"ISR {image.isr}, ELR {image.elr} of replicas {image.replicas}"
        return None


class LeaderIsActive(Invariant):
    """An invariant: in the controller's metadata, a leader is not fenced and is in the ISR."""

    of_metadata = True

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        leader = image.leader
        if leader >= 0 and (
            leader not in image.isr or not partition.cluster.controller.image.brokers[leader].active
        ):
            return f"leader {leader} of ISR {image.isr} is not active"
        return None


class FencedBrokersAreInNoIsr(Invariant):
    """An invariant: a fenced broker is in no ISR, except a leaderless partition's last ISR, without ELR."""

    of_metadata = True

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        brokers = partition.cluster.controller.image.brokers
        fenced = [r for r in image.isr if brokers[r].fenced]
        return f"{fenced} fenced in the ISR {image.isr}" if fenced and image.leader >= 0 else None


class EpochsNeverFall(Invariant):
    """An invariant: a partition's leader epoch and partition epoch never fall."""

    of_metadata = True

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, int], tuple[int, int]] = {}

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        place = partition.id
        now, before = (image.leader_epoch, image.partition_epoch), self._seen.get(place, (-1, -1))
        self._seen[place] = now
        return f"epochs {before} became {now}" if now[0] < before[0] or now[1] < before[1] else None


class OneLeaderPerEpoch(Invariant):
    """An invariant: only one broker leads a partition in any leader epoch."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[bytes, int], tuple[int, int]] = {}

    def check(self, partition: Partition) -> str | None:
        for replica in partition.replicas:
            if replica.leading:
                epoch, broker = replica.leader_epoch, replica.broker.id
                last_epoch, last = self._leaders.get(partition.id, (-1, -1))
                if epoch == last_epoch and broker != last:
                    return f"{last} led in epoch {epoch}, {broker} leads"
                if epoch > last_epoch:
                    self._leaders[partition.id] = epoch, broker
        return None


class OffsetsAreInOrder(Invariant):
    """An invariant: log start ≤ high watermark ≤ log end, on every replica."""

    def check(self, partition: Partition) -> str | None:
        for replica in partition.replicas:
            log, watermark = replica.log, replica.high_watermark
            if watermark > log.end or log.start > log.end or (replica.leading and log.start > watermark):
                return f"broker {replica.broker.id}: {log.start} ≤ {watermark} ≤ {log.end} does not hold"
        return None


class WatermarkNeverFalls(Invariant):
    """An invariant: a broker's high watermark does not fall while the broker leads in one epoch."""

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, int, int], int] = {}

    def check(self, partition: Partition) -> str | None:
        for replica in partition.replicas:
            if replica.leading:
                place = *partition.id, replica.leader_epoch
                before = self._seen.get(place, 0)
                if replica.high_watermark < before:
                    return f"broker {replica.broker.id}: {before} fell to {replica.high_watermark}"
                self._seen[place] = replica.high_watermark
        return None


class CommittedIsOnEveryIsrMember(Invariant):
    """An invariant: committed records are in the log of every ISR member, with the same epochs.

    Records are committed once a leader has shown them as committed. An unclean election, or the return of a
    last known leader, may lose committed records, so the check then starts over.
    """

    def __init__(self) -> None:
        self._committed: dict[tuple[bytes, int], tuple[int, Log]] = {}

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        place = partition.id
        leader = partition.leader
        if image.recovering:
            self._committed.pop(place, None)
        elif leader is not None and leader.leader_epoch == image.leader_epoch:
            known = self._committed.get(place)
            if known is None or leader.high_watermark >= known[0]:
                self._committed[place] = leader.high_watermark, leader.log
        known = self._committed.get(place)
        if known is None or known[0] == 0:
            return None
        committed, log = known
        last = log.span_of(committed - 1)
        held = 0
        for replica in partition.replicas:
            if replica.broker.id not in image.isr:
                continue
            held += 1
            if replica.log.end < committed:
                return f"broker {replica.broker.id} ends at {replica.log.end}, committed is {committed}"
            own = replica.log.span_of(committed - 1)
            if own is not None and last is not None and own.stream is not last.stream:
                return f"broker {replica.broker.id} has record {committed - 1} from elsewhere"
        return None if held == len(image.isr) else f"{held} of ISR {image.isr} have a log"


def standard() -> list[Invariant]:
    """Return all invariants on single partitions."""
    return [
        IsrIsAmongReplicas(),
        LeaderIsActive(),
        FencedBrokersAreInNoIsr(),
        EpochsNeverFall(),
        OneLeaderPerEpoch(),
        OffsetsAreInOrder(),
        WatermarkNeverFalls(),
        CommittedIsOnEveryIsrMember(),
    ]


class ClusterInvariant:
    """An invariant on an entire cluster, which returns what is wrong, or None, when called."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __call__(self) -> str | None:
        """Check the cluster, and return what is wrong, or None."""
        raise NotImplementedError


class ReplicasAreOfLivingTopics(ClusterInvariant):
    """An invariant: a broker has only replicas assigned to it, of topics (by id) that its metadata has."""

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
    """Checks a cluster while it runs: touched partitions soon, everything every FULL_CHECK_US.

    With `every_event`, touched partitions are checked after each event instead of every TOUCHED_CHECK_US.
    `others` are invariants on the entire cluster, which are checked every CLUSTER_CHECK_US.
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
        cluster.touched = {}
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
        if self.cluster.touched:
            touched, self.cluster.touched = self.cluster.touched, {}
            self.check(touched)
        if now_us >= self._others_us:
            self._others_us = now_us + CLUSTER_CHECK_US
            self._check_others()

    def check_all(self) -> None:
        """Check every partition and the entire cluster. Raises InvariantBroken."""
        self.cluster.touched = {}
        self.check(key for key, _ in self.cluster.controller.image.all_partitions())
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
            image = cluster.controller.image.partition(*key)
            if image is None:
                continue
            self.checked += 1
            topic_id = cluster.controller.image.topics[key[0]].topic_id
            found = [cluster.brokers[r].replicas.get(key) for r in image.replicas]
            replicas = [r for r in found if r is not None and r.topic_id == topic_id]
            leader = next((r for r in replicas if r.leading and r.broker.id == image.leader), None)
            partition = Partition(cluster, key, (topic_id, key[1]), image, replicas, leader)
            brokers = cluster.controller.image.brokers
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
