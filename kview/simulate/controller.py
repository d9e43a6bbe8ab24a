"""The active controller's decisions about sessions, fencing, leaders, ISRs and topics.

Each decision is one atomic step of the metadata. Source: org.apache.kafka.controller (ClusterControlManager,
BrokerHeartbeatManager, ReplicationControlManager).
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kview.simulate.codes import ErrorCode
from kview.simulate.election import changed
from kview.simulate.metadata import (
    BrokerImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicPartition,
)
from kview.simulate.placement import Assignment, place
from kview.simulate.results import CreateTopicResult, DeleteTopicResult
from kview.simulate.topics import inactive, new_topic, refusal

if TYPE_CHECKING:
    from kview.simulate.core import ClusterCore

STALE_CHECKS_PER_SESSION = 8
REBALANCES_MAX = 1000
"""Preferred leaders elected per pass (ReplicationControlManager.MAX_ELECTIONS_PER_IMBALANCE)."""
CHANGES_KEPT = 1000
"""Steps of the metadata whose changes are remembered. A broker further behind checks every partition."""

Asked = tuple[TopicPartition, bytes, int, int, tuple[int, ...]]
"""An ISR that a leader asks for: partition, topic id, leader epoch, partition epoch, ISR."""


class Controller:
    """The metadata and the decisions about it, which are made only while the quorum is `ready`."""

    def __init__(self, cluster: "ClusterCore", image: MetadataImage) -> None:
        settings = cluster.settings
        self.cluster = cluster
        self.kernel = cluster.kernel
        self.image = image
        self.session_us = settings.us("broker.session.timeout.ms")
        self.elr_enabled = settings.number("eligible.leader.replicas.version") > 0
        self.contact_us: dict[int, int] = {b: self.kernel.now_us for b in image.brokers}
        self._changes: deque[tuple[int, tuple[TopicPartition, ...]]] = deque(maxlen=CHANGES_KEPT)
        self._registered_at: dict[int, int] = {}
        self._check_us = max(1, self.session_us // STALE_CHECKS_PER_SESSION)
        self.kernel.after(self._check_us, self._fence_stale)
        if settings.flag("auto.leader.rebalance.enable"):
            self._rebalance_us = settings.number("leader.imbalance.check.interval.seconds") * 1_000_000
            self.kernel.after(self._rebalance_us, self._rebalance)

    def ready(self) -> bool:
        """Return whether there is an active controller with a majority of voters behind it."""
        return self.cluster.quorum_state.active()

    def changed_since(self, offset: int) -> list[TopicPartition] | None:
        """Return the partitions that changed after metadata offset `offset`, or None if that is too old."""
        if self._changes and self._changes[0][0] <= offset + 1:
            keys: dict[TopicPartition, None] = {}
            for at, changes in self._changes:
                if at > offset:
                    keys.update(dict.fromkeys(changes))
            return list(keys)
        return None

    def commit(
        self,
        partitions: Mapping[TopicPartition, PartitionImage],
        brokers: Mapping[int, BrokerImage] | None = None,
        added: Sequence[TopicImage] = (),
        removed: Sequence[str] = (),
    ) -> None:
        """Commit one step of the metadata and let the brokers fetch it."""
        image = self.image
        topics = dict(image.topics)
        names = image.topic_names
        keys = list(partitions)
        if partitions:
            by_topic: dict[str, list[PartitionImage]] = {}
            for (name, number), partition in partitions.items():
                if name not in by_topic:
                    by_topic[name] = list(topics[name].partitions)
                by_topic[name][number] = partition
            for name, rows in by_topic.items():
                topics[name] = replace(topics[name], partitions=tuple(rows))
        if added or removed:
            for topic in added:
                topics[topic.name] = topic
                keys += [(topic.name, number) for number in range(len(topic.partitions))]
            for name in removed:
                keys += [(name, number) for number in range(len(topics[name].partitions))]
                del topics[name]
            names = {topic.topic_id: name for name, topic in topics.items()}
        all_brokers = {**image.brokers, **brokers} if brokers else image.brokers
        records = len(partitions) + len(brokers or ()) + len(added) + len(removed)
        self.cluster.quorum_state.append(max(1, records))
        before = image.offset
        self.image = MetadataImage(
            image.cluster_id, self.cluster.quorum_state.log_end, all_brokers, topics, names
        )
        # Idle no-ops lie in between, so a step covers all offsets since the previous step.
        self._changes.append((before + 1, ()))
        self._changes.append((self.image.offset, tuple(keys)))
        for key, partition in partitions.items():
            self.kernel.trace("partition", *key, *partition)
        self.cluster.metadata_committed(keys)

    # --- sessions

    def took_over(self) -> None:
        """Restart all broker sessions, because a new controller is active."""
        now_us = self.kernel.now_us
        for broker in self.contact_us:
            self.contact_us[broker] = now_us
        self.cluster.publish()

    def register(self, broker: int, clean_shutdown: bool) -> int | None:
        """Register a started broker and return its new epoch.

        Returns None if there is no active controller, or while the broker's old session lasts.
        """
        if not self.ready():
            return None
        known = self.image.brokers[broker]
        if not known.fenced:
            return None
        self.contact_us[broker] = self.kernel.now_us
        changes: dict[TopicPartition, PartitionImage] = {}
        if self.elr_enabled and not clean_shutdown:
            changes = self._without(broker, unclean_shutdown=broker)
        epoch = self.cluster.quorum_state.log_end + 1
        registered = BrokerImage(broker, known.rack, True, epoch)
        self.commit(changes, {broker: registered})
        self._registered_at[broker] = self.image.offset
        return epoch

    def heartbeat(self, broker: int, broker_epoch: int, offset: int) -> None:
        """Renew a broker's session. Unfence the broker once it has the metadata up to its registration."""
        known = self.image.brokers[broker]
        if broker_epoch != known.broker_epoch or not self.cluster.quorum_state.leads():
            return
        self.contact_us[broker] = self.kernel.now_us  # Renewing a session needs no majority.
        if not self.ready():
            return
        if known.fenced and offset >= self._registered_at.get(broker, 0) and not known.in_controlled_shutdown:
            self.kernel.trace("unfenced", broker)
            brokers = {broker: known._replace(fenced=False)}
            active = self._active(brokers)
            changes = {
                key: new
                for key, p in self.image.all_partitions()
                if p.leader < 0 and broker in p.replicas and (new := self._elect(key[0], p, p.isr, active))
            }
            self.commit(changes, brokers)

    def _fence_stale(self) -> None:
        self.kernel.after(self._check_us, self._fence_stale)
        if not self.ready():
            return
        deadline_us = self.kernel.now_us - self.session_us
        for broker, at_us in self.contact_us.items():
            if at_us <= deadline_us and not self.image.brokers[broker].fenced:
                self.fence(broker)

    def fence(self, broker: int) -> None:
        """Fence a broker by removing it from all ISRs and leaderships in one step."""
        self.kernel.trace("fenced", broker)
        known = self.image.brokers[broker]
        self._registered_at[broker] = self.cluster.quorum_state.log_end + 1
        self.commit(
            self._without(broker), {broker: known._replace(fenced=True, in_controlled_shutdown=False)}
        )

    def begin_shutdown(self, broker: int) -> bool:
        """Move a stopping broker's leaderships away. Return False if no controller can do so."""
        if not self.ready():
            return False
        known = self.image.brokers[broker]
        self.kernel.trace("shutting-down", broker)
        self.commit(self._without(broker), {broker: known._replace(in_controlled_shutdown=True)})
        return True

    def _without(
        self, broker: int, unclean_shutdown: int | None = None
    ) -> dict[TopicPartition, PartitionImage]:
        active = self._active({}, without=broker)
        changes: dict[TopicPartition, PartitionImage] = {}
        for key, p in self.image.all_partitions():
            if p.leader == broker or broker in p.isr or (unclean_shutdown is not None and broker in p.elr):
                isr = tuple(r for r in p.isr if r != broker)
                new = self._elect(key[0], p, isr, active, unclean_shutdown=unclean_shutdown)
                if new is not None:
                    changes[key] = new
        return changes

    def _active(self, brokers: Mapping[int, BrokerImage], without: int = -1) -> Callable[[int], bool]:
        live = {b.id for b in {**self.image.brokers, **brokers}.values() if b.active and b.id != without}
        return live.__contains__

    def _elect(
        self,
        topic: str,
        partition: PartitionImage,
        isr: tuple[int, ...],
        active: Callable[[int], bool],
        prefer: bool = False,
        unclean_shutdown: int | None = None,
        recovered: bool = False,
    ) -> PartitionImage | None:
        return changed(
            partition,
            isr=isr,
            active=active,
            min_insync_replicas=self.cluster.min_insync_replicas(topic),
            elr_enabled=self.elr_enabled,
            unclean=self.cluster.unclean_election(topic),
            prefer=prefer,
            unclean_shutdown=unclean_shutdown,
            recovered=recovered,
        )

    # --- partitions

    def alter_partitions(self, broker: int, asked: Sequence[Asked]) -> list[TopicPartition]:
        """Apply a leader's AlterPartition request, and return the partitions that were refused."""
        active = self._active({})
        changes: dict[TopicPartition, PartitionImage] = {}
        refused: list[TopicPartition] = []
        for key, topic_id, leader_epoch, partition_epoch, isr in asked:
            p = self.image.partition(*key)
            if (
                p is None
                or self.image.topics[key[0]].topic_id != topic_id
                or p.leader != broker
                or p.leader_epoch != leader_epoch
                or p.partition_epoch != partition_epoch
                or not all(active(r) for r in isr)
            ):
                refused.append(key)
                continue
            new = self._elect(key[0], p, isr, active, recovered=True)
            if new is None:
                refused.append(key)
            else:
                changes[key] = new
        if changes:
            self.commit(changes)
        return refused

    def _rebalance(self) -> None:
        self.kernel.after(self._rebalance_us, self._rebalance)
        if not self.ready():
            return
        active = self._active({})
        changes: dict[TopicPartition, PartitionImage] = {}
        for key, p in self.image.all_partitions():
            if p.leader != p.replicas[0] and len(changes) < REBALANCES_MAX:
                new = self._elect(key[0], p, p.isr, active, prefer=True)
                if new is not None:
                    changes[key] = new
        if changes:
            self.commit(changes)

    # --- topics

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int,
        assignment: Sequence[Sequence[int]] | None,
        configs: Mapping[str, str],
        validate_only: bool,
    ) -> CreateTopicResult:
        """Create one topic (CreateTopics). Counts of −1 mean the brokers' defaults."""
        settings = self.cluster.settings
        if assignment is not None:
            partitions, replication = len(assignment), len(assignment[0]) if assignment else 0
        elif partitions == -1:
            partitions = settings.number("num.partitions")
        if replication == -1:
            replication = settings.number("default.replication.factor")
        refused = refusal(self.image, name, partitions, replication, assignment, configs)
        if refused is not None:
            return refused
        brokers = list(self.image.brokers.values())
        if assignment is not None:
            placed: Assignment = tuple(tuple(replicas) for replicas in assignment)
        else:
            placed = place(
                self.cluster.world.placement,
                brokers,
                partitions,
                replication,
                self.kernel.random("placement"),
            )
        active = self._active({})
        refused = inactive(placed, active, assignment is not None)
        if refused is not None:
            return refused
        if validate_only:
            return CreateTopicResult(ErrorCode.NONE, None, bytes(16), partitions, replication)
        topic = new_topic(name, self.cluster.new_topic_id(), placed, configs, active)
        self.commit({}, None, added=[topic])
        return CreateTopicResult(ErrorCode.NONE, None, topic.topic_id, partitions, replication)

    def delete_topic(self, name: str) -> DeleteTopicResult:
        """Delete one topic (DeleteTopics)."""
        if name not in self.image.topics:
            return DeleteTopicResult(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )
        self.commit({}, None, removed=[name])
        return DeleteTopicResult(ErrorCode.NONE)
