"""The active controller's decisions about sessions, fencing, leaders and ISRs.

Each decision changes the metadata in one atomic step. Source: org.apache.kafka.controller
(ClusterControlManager, BrokerHeartbeatManager, ReplicationControlManager).
"""

from collections.abc import Mapping, Sequence

from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.election import Elections
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.kernel import Kernel
from kview.simulate.metadata import BrokerImage, PartitionImage, TopicPartition
from kview.simulate.network import Connection
from kview.simulate.results import AdminResult
from kview.simulate.settings import Settings

STALE_CHECKS_PER_SESSION = 8
REBALANCES_MAX = 1000
"""Preferred leaders elected per pass (ReplicationControlManager.MAX_ELECTIONS_PER_IMBALANCE)."""

NOTHING: Mapping[TopicPartition, bytes] = {}

Asked = tuple[TopicPartition, bytes, int, int, tuple[int, ...]]
"""A leader's request for an ISR, as (partition, topic id, leader epoch, partition epoch, ISR)."""


class Controller:
    """Makes the decisions that change the metadata, but only while the controller is `ready`."""

    def __init__(
        self,
        kernel: Kernel,
        settings: Settings,
        quorum: Quorum,
        metadata: MetadataLog,
        elections: Elections,
    ) -> None:
        self.kernel = kernel
        self.session_us = settings.us("broker.session.timeout.ms")
        self.contact_us: dict[int, int] = {b: self.kernel.now_us for b in metadata.image.brokers}
        self._quorum = quorum
        self._metadata = metadata
        self._elections = elections
        self._registered_at: dict[int, int] = {}
        self._check_us = max(1, self.session_us // STALE_CHECKS_PER_SESSION)
        self.kernel.after(self._check_us, self._fence_stale)
        if settings.flag("auto.leader.rebalance.enable"):
            self._rebalance_us = settings.number("leader.imbalance.check.interval.seconds") * 1_000_000
            self.kernel.after(self._rebalance_us, self._rebalance)
        self._unclean_us = settings.us("unclean.leader.election.interval.ms")
        self.kernel.after(self._unclean_us, self._elect_unclean)
        quorum.on_election(self._took_over)

    def ready(self) -> bool:
        """Return whether there is an active controller with a majority of voters behind it."""
        return self._quorum.active()

    def reached_by(self, broker: int) -> bool:
        """Return whether a controller is active and answers this broker."""
        return self._quorum.reached_by(broker)

    def slow_us(self) -> int:
        """Return the latency in µs that `Quorum.slow_us` tells."""
        return self._quorum.slow_us()

    # --- sessions

    def _took_over(self) -> None:
        """Restart all broker sessions, because a new controller is active."""
        now_us = self.kernel.now_us
        for broker in self.contact_us:
            self.contact_us[broker] = now_us
        self._metadata.publish()

    def register(self, broker: int, clean_shutdown: bool) -> int | None:
        """Register a started broker and return its new epoch.

        Returns None if the broker reaches no active controller, or while its old session lasts.
        """
        if not self.reached_by(broker):
            return None
        known = self._metadata.image.brokers.get(broker)
        if known is not None and not known.fenced:
            return None
        self.contact_us[broker] = self.kernel.now_us
        changes: dict[TopicPartition, PartitionImage] = {}
        if self._elections.elr_enabled and not clean_shutdown:
            changes = self._elections.without(broker, unclean_shutdown=broker)
        for key, p in self._metadata.image.all_partitions():
            if broker in p.offline:  # Its log directories are all there again.
                offline = tuple(r for r in p.offline if r != broker)
                changes[key] = changes.get(key, p._replace(partition_epoch=p.partition_epoch + 1))._replace(
                    offline=offline
                )
        epoch = self._quorum.log_end + 1
        registered = BrokerImage(broker, self._quorum.nodes.by_id[broker].rack, True, epoch)
        self._metadata.commit(changes, {broker: registered})
        self._registered_at[broker] = self._metadata.image.offset
        return epoch

    def heartbeat(
        self, broker: int, broker_epoch: int, offset: int, offline: Mapping[TopicPartition, bytes] = NOTHING
    ) -> bool:
        """Renew a broker's session. Unfence the broker once its metadata includes its registration.

        `offline` are the partitions in log directories that the broker has lost, with their topics' ids.
        Return whether the broker learns that they are known.
        """
        known = self._metadata.image.brokers.get(broker)
        if known is None or broker_epoch != known.broker_epoch:
            return False
        if not self._quorum.send(broker, Connection.HEARTBEAT):
            return False
        self.contact_us[broker] = self.kernel.now_us  # Renewing a session needs no majority.
        if not self.ready():
            return False
        if offline:
            self._lose_replicas(broker, offline)
        if known.fenced and offset >= self._registered_at.get(broker, 0) and not known.in_controlled_shutdown:
            self.kernel.trace("unfenced", broker)
            brokers = {broker: known._replace(fenced=False)}
            active = self._elections.active(brokers)
            changes = {
                key: new
                for key, p in self._metadata.image.all_partitions()
                if p.leader < 0
                and broker in p.replicas
                and (new := self._elections.rules(key[0], active).elect(p, p.isr))
            }
            self._metadata.commit(changes, brokers)
        return self.reached_by(broker)

    def _lose_replicas(self, broker: int, offline: Mapping[TopicPartition, bytes]) -> None:
        """Take a broker's replicas out of ISRs and leaderships, because their log directories have failed
        (ReplicationControlManager.handleDirectoriesOffline)."""
        active = self._elections.active({})
        changes: dict[TopicPartition, PartitionImage] = {}
        for key, topic_id in offline.items():
            p = self._metadata.image.partition(*key)
            if p is None or self._metadata.image.topics[key[0]].topic_id != topic_id:
                continue
            if broker not in p.replicas or broker in p.offline:
                continue
            lost = p._replace(offline=(*p.offline, broker))
            isr = tuple(r for r in p.isr if r != broker)
            new = self._elections.rules(key[0], active).elect(lost, isr, before=p)
            if new is not None:
                changes[key] = new
        if changes:
            self.kernel.trace("dirs-offline", broker, len(changes))
            self._metadata.commit(changes)

    def _fence_stale(self) -> None:
        self.kernel.after(self._check_us, self._fence_stale)
        if not self.ready():
            return
        deadline_us = self.kernel.now_us - self.session_us
        for broker, at_us in self.contact_us.items():
            if at_us <= deadline_us:
                self.end_session(broker)

    def end_session(self, broker: int) -> None:
        """Fence a broker that is registered and not fenced yet."""
        known = self._metadata.image.brokers.get(broker)
        if known is not None and not known.fenced:
            self.fence(broker)

    def fence(self, broker: int) -> None:
        """Fence a broker by removing it from all ISRs and leaderships in one step."""
        self.kernel.trace("fenced", broker)
        known = self._metadata.image.brokers[broker]
        self._registered_at[broker] = self._quorum.log_end + 1
        self._metadata.commit(
            self._elections.without(broker),
            {broker: known._replace(fenced=True, in_controlled_shutdown=False)},
        )

    def begin_shutdown(self, broker: int) -> bool:
        """Move a stopping broker's leaderships away. Return False if it reaches no active controller."""
        known = self._metadata.image.brokers.get(broker)
        if known is None or not self.reached_by(broker):
            return False
        self.kernel.trace("shutting-down", broker)
        self._metadata.commit(
            self._elections.without(broker), {broker: known._replace(in_controlled_shutdown=True)}
        )
        return True

    def unregister(self, broker: int) -> AdminResult:
        """Remove a broker from the metadata (ReplicationControlManager.unregisterBroker).

        If its process runs, it goes on without being in any ISR, and registers when it starts again.
        """
        if broker not in self._metadata.image.brokers:
            why = f"Broker ID {broker} is not currently registered"
            return AdminResult(ErrorCode.BROKER_ID_NOT_REGISTERED, why)
        self.kernel.trace("unregistered", broker)
        self._metadata.commit(self._elections.without(broker), unregistered=broker)
        return AdminResult(ErrorCode.NONE)

    # --- partitions

    def alter_partitions(self, broker: int, asked: Sequence[Asked]) -> list[TopicPartition] | None:
        """Apply a leader's AlterPartition request, and return the partitions that were refused.

        Returns None if no answer arrives, whether the request was applied or not.
        """
        if not self.ready() or not self._quorum.send(broker, Connection.ALTER_PARTITION):
            return None
        active = self._elections.active({})
        changes: dict[TopicPartition, PartitionImage] = {}
        refused: list[TopicPartition] = []
        for key, topic_id, leader_epoch, partition_epoch, isr in asked:
            p = self._metadata.image.partition(*key)
            if (
                p is None
                or self._metadata.image.topics[key[0]].topic_id != topic_id
                or p.leader != broker
                or p.leader_epoch != leader_epoch
                or p.partition_epoch != partition_epoch
                or not all(active(r) for r in isr)
            ):
                refused.append(key)
                continue
            new = self._elections.rules(key[0], active).elect(p, isr, recovered=True)
            if new is None:
                refused.append(key)
            else:
                changes[key] = new
        if changes:
            self._metadata.commit(changes)
        return refused if self.reached_by(broker) else None

    def _rebalance(self) -> None:
        self.kernel.after(self._rebalance_us, self._rebalance)
        if not self.ready():
            return
        active = self._elections.active({})
        changes: dict[TopicPartition, PartitionImage] = {}
        for key, p in self._metadata.image.all_partitions():
            if p.leader != p.replicas[0] and len(changes) < REBALANCES_MAX:
                new = self._elections.rules(key[0], active).elect(p, p.isr, prefer=True)
                if new is not None:
                    changes[key] = new
        if changes:
            self._metadata.commit(changes)

    def _elect_unclean(self) -> None:
        """Elect leaders where there are none and unclean elections have been allowed in the meantime."""
        self.kernel.after(self._unclean_us, self._elect_unclean)
        if not self.ready():
            return
        active = self._elections.active({})
        changes = {
            key: new
            for key, p in self._metadata.image.all_partitions()
            if p.leader < 0 and (new := self._elections.rules(key[0], active).elect(p, p.isr))
        }
        if changes:
            self._metadata.commit(changes)
