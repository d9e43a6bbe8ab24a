"""The simulated cluster, which puts its parts together, for the network, the lab and the tests.

A request is answered as broker `b` would answer it. Before a request, callers check that the broker's process
runs, and bring the clock up to date with `run_until`. Answers that take time come through callbacks. A
callback is called once, either immediately or during a later `run_until`. It is never called if the request
is cancelled, or if the process of a group coordinator dies first.
"""

from collections.abc import Mapping
from functools import partial

from kview.errors import BadUse, ErrorKind
from kview.simulate.adjusting import Adjustments
from kview.simulate.authorizer import Authorizer
from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.cleaner import Cleaner
from kview.simulate.brokers.controlled_shutdown import ControlledShutdown
from kview.simulate.brokers.gone import gone
from kview.simulate.brokers.partitions import Partitions
from kview.simulate.brokers.replication import Replication
from kview.simulate.brokers.retention import Retention
from kview.simulate.controllers.controller import Controller
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.election import Elections
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.coordination.of_cluster import Coordinators
from kview.simulate.faults import Faults
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.settings import GroupSettings
from kview.simulate.kernel import Kernel
from kview.simulate.metadata import MetadataImage
from kview.simulate.nodes import Nodes
from kview.simulate.reading import RecordMaker
from kview.simulate.releases import Release
from kview.simulate.requests.acl_rules import AclRules
from kview.simulate.requests.admin import Admin
from kview.simulate.requests.batch_rules import BatchRules
from kview.simulate.requests.delegation_tokens import DelegationTokens
from kview.simulate.requests.descriptions import Descriptions
from kview.simulate.requests.feature_updates import FeatureUpdates
from kview.simulate.requests.forwarding import Forwarding
from kview.simulate.requests.quota_changes import QuotaChanges
from kview.simulate.requests.record_deletion import RecordDeletion
from kview.simulate.requests.records import RecordRequests
from kview.simulate.requests.scram_users import ScramUsers
from kview.simulate.requests.topics import TopicRequests
from kview.simulate.requests.voters import VoterChanges
from kview.simulate.saved import Saved, started_again
from kview.simulate.settings import Settings
from kview.simulate.sharing.asking import ShareAsking
from kview.simulate.sharing.coordinator import ShareCoordinator
from kview.simulate.sharing.leader import ShareLeader
from kview.simulate.sharing.leaders import ShareLeaders
from kview.simulate.sharing.settings import ShareSettings
from kview.simulate.touched import Touched
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.traffic import Traffic
from kview.simulate.transactions.asking import Asking
from kview.simulate.transactions.coordinator import TransactionCoordinator
from kview.simulate.transactions.hanging import Hanging
from kview.simulate.transactions.markers import Markers
from kview.simulate.transactions.settings import TransactionSettings
from kview.simulate.warm import WarmStart, first_image
from kview.simulate.world import OFFSETS_TOPIC, SHARE, SHARE_TOPIC, TRANSACTIONS_TOPIC, World

FILLER_CHARACTERS = b"abcdefghijklmnopqrstuvwxyz0123456789 "


SEEDS_APART = 1_000_003
"""Each start of a saved cluster has a seed of its own, or it would give the same ids to other topics."""

_TOPIC_COUNTERS = ("log_end", "high_watermark", "no_leader", "gone", "gone_committed")
"""What is counted for each topic, as sums over its partitions."""


class Cluster:
    """A simulated Kafka cluster, created with `build`.

    `authorizer` says who may do what, and is None if everyone may do everything. `nodes` are the processes,
    and `faults` what can happen to them. `quorum`, `metadata`, `configs` and `controller` are the
    controllers' side; `brokers`, `partitions`, `retention` and `cleaner` are the brokers'
    side.
    Clients' requests go to `records`, `deletion`, `topics`, `descriptions`, `groups` and, forwarded with
    `forwarding`, to `admin`, `acls`, `features`, `quotas`, `scram_users`, `tokens` and `voters`.
    `transactions` are the coordinators of transactional ids, and `asking` is the brokers' way to them.
    `share_leaders` answer for the partitions that share groups read. `traffic` are the clients inside, and
    `adjustments` change the cluster and them while they run. `touched` collects changed partitions for the
    invariants.
    """

    def __init__(
        self, world: World, settings: Settings, kernel: Kernel, image: MetadataImage, voters: tuple[int, ...]
    ) -> None:
        self.world = world
        self.settings = settings
        self.kernel = kernel
        self.touched = Touched()
        self.authorizer = Authorizer.of(settings)
        self.nodes = Nodes(kernel, {spec.id: spec.rack for spec in world.brokers}, world.controllers)
        self.quorum = Quorum(kernel, settings, self.nodes, voters, image.offset)
        self.metadata = MetadataLog(kernel, self.quorum, image, self.touched)
        self.configs = EffectiveConfigs(settings, self.metadata)
        elections = Elections(self.metadata, self.configs)
        self.controller = Controller(kernel, settings, self.quorum, self.metadata, elections)
        self.brokers = {
            b: Broker(
                kernel,
                self.nodes,
                self.nodes.by_id[b],
                self.metadata,
                self.configs,
                self.controller,
                world.link,
                self.touched,
            )
            for b in self.nodes.broker_ids
        }
        replication = Replication(self.nodes, self.brokers)
        self.partitions = Partitions(self.metadata, self.brokers)
        self.retention = Retention(
            kernel, self.configs, self.metadata, self.partitions, self.touched, world.client_bytes_max
        )
        filler = bytes(kernel.random("filler").choices(FILLER_CHARACTERS, k=4096))
        maker = RecordMaker(filler)
        self.cleaner = Cleaner(kernel, self.configs, self.partitions, self.retention, maker)
        for broker in self.brokers.values():
            self.retention.watch(broker)
            self.cleaner.watch(broker)
        shutdown = ControlledShutdown(kernel, self.nodes, self.controller, self.brokers, replication)
        self.faults = Faults(
            kernel, self.nodes, self.quorum, self.brokers, replication, shutdown, self.controller
        )
        rules = BatchRules(kernel, self.metadata, self.configs)
        self.records = RecordRequests(
            self.brokers,
            self.quorum,
            rules,
            self.retention,
            maker,
            settings.text("replica.selector.class") != "",
        )
        self.deletion = RecordDeletion(kernel, self.configs, self.brokers, self.partitions, self.retention)
        self.descriptions = Descriptions(settings, self.brokers)
        self.forwarding = Forwarding(kernel, self.nodes, self.quorum, world.link.latency_us)
        self.topics = TopicRequests(
            kernel, self.nodes, self.metadata, self.configs, elections, self.forwarding, world.placement
        )
        self.scram_users = ScramUsers(self.metadata)
        self.voters = VoterChanges(self.metadata, self.quorum, world.release)
        self.tokens = DelegationTokens(kernel, settings, self.quorum, self.metadata)
        self.acls = AclRules(self.metadata, world.release.last_acl_operation)
        self.quotas = QuotaChanges(self.metadata)
        self.features = FeatureUpdates(self.metadata, self.quorum, world.release)
        self.admin = Admin(kernel, self.metadata, self.configs, elections, world.placement)
        parts = self.nodes, self.brokers, self.records, self.cleaner
        of_groups, of_transactions = GroupSettings.of(settings), TransactionSettings.of(settings)
        of_shares = ShareSettings.of(settings)
        self._shares = Coordinators(SHARE_TOPIC, *parts, lambda b, host: ShareCoordinator(host, of_shares))
        share_asking = ShareAsking(
            self.nodes,
            self.brokers,
            self._shares,
            lambda b: self.topics.create_internal_topic(b, SHARE_TOPIC),
        )
        self.share_leaders = ShareLeaders(self.nodes, self.brokers, self.records, share_asking, of_shares)
        self.coordinators = Coordinators(
            OFFSETS_TOPIC,
            *parts,
            lambda b, host: GroupCoordinator(b, host, of_groups, share_asking.of(b), self._high_watermark),
        )
        markers = Markers(kernel, self.nodes.network, self.brokers, self.records)
        self._transactions = Coordinators(
            TRANSACTIONS_TOPIC,
            *parts,
            lambda b, host: TransactionCoordinator(
                host, of_transactions, partial(self.records.init_producer_id, b), partial(markers.send, b)
            ),
        )
        self.asking = Asking(self.nodes, self.brokers, self._transactions)
        self.traffic = Traffic(
            Connections(
                kernel,
                self.nodes,
                self.brokers,
                self.records,
                self.coordinators,
                self._transactions,
                self.asking,
                self.share_leaders,
            )
        )
        self.adjustments = Adjustments(
            world,
            self.brokers,
            self.configs,
            self.quorum,
            self.admin,
            self.traffic,
            Hanging(self.brokers, self.records, self._transactions, self.topics),
        )
        self.records.on_marker(
            lambda b, key, producer_id, is_commit: (
                self.groups(b).transaction_ended(key[1], producer_id, is_commit)
                if key[0] == OFFSETS_TOPIC
                else None
            )
        )

    def load_coordinators(self) -> None:
        """Let every coordinator load what its broker leads at once, for a warm start."""
        self.coordinators.load()
        self._shares.load()
        self._transactions.load()

    def _high_watermark(self, topic: str, partition: int) -> int | None:
        """Return the high watermark of a partition, None if nobody leads it."""
        replica = self.partitions.leader((topic, partition))
        return None if replica is None else replica.high_watermark

    # --- time

    def run_until(self, time_us: int) -> None:
        """Run everything that is due up to `time_us` (µs since the epoch)."""
        self.kernel.run_until(time_us)

    # --- a broker's view

    def broker_ids(self) -> tuple[int, ...]:
        """Return the broker ids in order."""
        return self.nodes.broker_ids

    def image(self, b: int) -> MetadataImage:
        """Return broker b's copy of the metadata. It stays the same object until the metadata changes."""
        return self.brokers[b].image

    def groups(self, b: int) -> GroupCoordinator:
        """Return the group coordinator of broker b."""
        return self.coordinators.of(b)

    def transactions(self, b: int) -> TransactionCoordinator:
        """Return the transaction coordinator of broker b."""
        return self._transactions.of(b)

    def shares(self, b: int) -> ShareCoordinator:
        """Return the share coordinator of broker b."""
        return self._shares.of(b)

    def share_leader(self, b: int) -> ShareLeader:
        """Return broker b as the leader of partitions that share groups read."""
        return self.share_leaders.of(b)

    # --- the truth

    def healthy(self) -> bool:
        """Return whether no fault is in force, every broker serves and is unfenced, every ISR is full, and
        every broker knows that."""
        image = self.metadata.image
        return (
            not self.faults.active()
            and all(self.nodes.serves(b) and b in image.live_brokers() for b in self.nodes.broker_ids)
            and all(self.image(b).offset == image.offset for b in self.nodes.broker_ids)
            and all(len(partition.isr) == len(partition.replicas) for _, partition in image.all_partitions())
        )

    def counters(self) -> dict[str, object]:
        """Return the true numbers of records by topic, producer, group and member, for comparison with
        observations."""
        topics: dict[str, dict[str, int]] = {}
        for key, _ in self.metadata.image.all_partitions():
            replica = self.partitions.leader(key)
            row = topics.setdefault(key[0], dict.fromkeys(_TOPIC_COUNTERS, 0))
            if replica is None:
                row["no_leader"] += 1
            else:
                row["log_end"] += replica.log.end
                row["high_watermark"] += replica.high_watermark
                lost = gone(replica, self.partitions.replicas(key, replica.topic_id))
                row["gone"] += lost.records
                row["gone_committed"] += lost.committed
        producers = {
            name: {
                "created": sum(p.counters.created),
                "acknowledged": sum(p.counters.acknowledged),
                "expired": sum(p.counters.expired),
                "blocked": p.counters.blocked,
                **(p.transactions.counters() if p.transactions is not None else {}),
            }
            for name, p in self.traffic.producers.items()
        }
        of_groups = self.traffic.all_members()
        groups = {
            name: {
                "read": sum(m.read_records for m in ms),
                "reread": self.traffic.progress[name].reread,
                "skipped": self.traffic.progress[name].skipped,
                "aborted": self.traffic.progress[name].aborted,
            }
            for name, ms in of_groups.items()
        }
        members = {m.client_id: {"read": m.read_records} for ms in of_groups.values() for m in ms}
        return {
            "time_ms": self.kernel.now_us // 1000,
            "topics": topics,
            "producers": producers,
            "groups": groups,
            "members": members,
        }


def _check_features(levels: Mapping[str, int], release: Release) -> None:
    """Check that brokers of a release can start with these features. Raises BadUse."""
    for name, level in levels.items():
        low, high = release.features.get(name, (0, 0))
        if not low <= level <= high:
            raise BadUse(ErrorKind.DATA_OF_NEWER_RELEASE, feature=name, level=level, release=release.name)


def build(world: World, seed: int, start_ms: int, saved: Saved | None = None) -> Cluster:
    """Build a warm cluster from `world`, as if it had run for `world.warm_ms` before `start_ms`.

    With `saved`, it is that cluster, all of which was stopped and has started again. It has no simulated
    clients then. Raises BadUse if a setting is wrong, or if the saved cluster is of a newer release.
    """
    seed += SEEDS_APART * saved.starts if saved is not None else 0
    settings, kernel = Settings(world.settings, world.release), Kernel(seed, start_ms * 1000)
    image, voters = first_image(world, settings, kernel), world.controllers
    if saved is not None:
        _check_features(saved.image.features, world.release)
        image = started_again(saved, image)
        voters = tuple(v for v in voters if v in saved.voters) or voters
    cluster = Cluster(world, settings, kernel, image, voters)
    warm = WarmStart(
        kernel,
        world,
        cluster.metadata,
        cluster.brokers,
        cluster.partitions,
        cluster.records,
        cluster.retention,
    )
    if saved is not None:
        assert not world.traffic
        warm.restore(saved)
        cluster.records.restore_producer_ids(saved.producer_ids)
        warm.boot()
        cluster.load_coordinators()
        return cluster
    warm.boot()
    groups = warm.past()
    cluster.load_coordinators()
    if world.traffic:
        shares = [group for group in world.groups if group.protocol == SHARE]
        cluster.traffic.start(world.producers, groups, shares)
    return cluster
