"""One broker: its copy of the metadata, its replicas, its heartbeats and the ISR changes that it requests."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kview.simulate.kernel import Timer
from kview.simulate.metadata import MetadataImage, TopicPartition
from kview.simulate.nodes import Node, ProcessState
from kview.simulate.replica import Follower, Replica
from kview.simulate.replication import Bucket, Pair
from kview.simulate.retention import retain

if TYPE_CHECKING:
    from kview.simulate.core import ClusterCore

START_UP_US = 2_000_000
"""Time from the start of a broker's process to its first registration."""
RETRY_US = 500_000
"""Wait before a failed request to the controller is sent again."""
SHUTDOWN_LIMIT_US = 300_000_000
"""Longest time a controlled shutdown waits for a controller (Kafka: 5 minutes)."""


class Broker:
    """A broker process and the logs on its disk."""

    def __init__(self, cluster: "ClusterCore", node: Node, image: MetadataImage) -> None:
        settings, link, now_us = cluster.settings, cluster.world.link, cluster.kernel.now_us
        self.cluster = cluster
        self.node = node
        self.id = node.id
        self.image = image
        self.replicas: dict[TopicPartition, Replica] = {}
        self.latency_us = link.latency_us
        self.heartbeat_us = settings.us("broker.heartbeat.interval.ms")
        self.lag_max_us = settings.us("replica.lag.time.max.ms")
        self.fetch_wait_us = settings.us("replica.fetch.wait.max.ms")
        self.out_link = Bucket(link.bytes_per_second, now_us)
        self.in_link = Bucket(link.bytes_per_second, now_us)
        self.disk = Bucket(link.disk_bytes_per_second, now_us)
        self.broker_epoch = -1
        self.clean_shutdown = True
        self._beat: Timer | None = None
        self._isr_asked: dict[Replica, tuple[int, ...]] = {}
        self._isr_timer: Timer | None = None
        self._fetch_timer: Timer | None = None
        # Never longer than the number of timers, because a hung process starts nothing new.
        self._held: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    # --- the process

    def boot(self, first_beat_us: int) -> None:
        """Start the timers of a running broker, with the first heartbeat at `first_beat_us`."""
        kernel = self.cluster.kernel
        self._beat = kernel.at(first_beat_us, self.execute, self.node.incarnation, self._heartbeat)
        phase_us = kernel.random("lag-check").randrange(max(1, self.lag_max_us // 2))
        self.after(phase_us, self._check_lag)
        interval_us = self.cluster.settings.us("log.retention.check.interval.ms")
        self.after(kernel.random("retention").randrange(interval_us), self._retain)

    def after(self, delay_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Start a timer of this process.

        The timer waits while the process hangs, and is dropped when the process dies.
        """
        return self.cluster.kernel.after(delay_us, self.execute, self.node.incarnation, fn, *args)

    def execute(self, incarnation: int, fn: Callable[..., object], *args: object) -> None:
        """Call `fn` if that incarnation of the process is running, or once it resumes if it hangs."""
        node = self.node
        if node.incarnation != incarnation:
            return
        if node.state is ProcessState.RUNNING:
            fn(*args)
        elif node.state is ProcessState.HUNG:
            self._held.append((fn, args))

    def died(self, clean: bool) -> None:
        """Forget what the process had in memory. The logs stay on disk."""
        kernel = self.cluster.kernel
        self.clean_shutdown = clean
        self.node.incarnation += 1
        self._held = []
        for timer in (self._beat, self._isr_timer, self._fetch_timer):
            kernel.cancel(timer)
        self._isr_timer = self._fetch_timer = None
        self._isr_asked.clear()
        for replica in self.replicas.values():
            replica.lose_memory()

    def start(self) -> None:
        """Start the process, which loads its logs and then registers."""
        self.broker_epoch = -1
        self.after(START_UP_US, self._register)

    def resume(self) -> None:
        """Resume after a hang, and run the timers that came due in the meantime."""
        held, self._held = self._held, []
        for fn, args in held:
            self.cluster.kernel.after(0, self.execute, self.node.incarnation, fn, *args)
        self.metadata_changed()

    def _register(self) -> None:
        epoch = self.cluster.controller.register(self.id, self.clean_shutdown)
        if epoch is None:
            self.after(RETRY_US, self._register)
            return
        self.broker_epoch = epoch
        self.clean_shutdown = False
        self.image = self.cluster.controller.image
        self.apply(self.image, None)
        self.boot(self.cluster.kernel.now_us + self.latency_us)

    def _heartbeat(self) -> None:
        node, kernel = self.node, self.cluster.kernel
        self._beat = kernel.after(self.heartbeat_us, self.execute, node.incarnation, self._heartbeat)
        self.after(self.latency_us + node.slow_us, self._beat_arrives, self.image.offset)

    def _beat_arrives(self, offset: int) -> None:
        self.cluster.controller.heartbeat(self.id, self.broker_epoch, offset)

    def shut_down(self, since_us: int) -> None:
        """Shut down cleanly: hand over leaderships and leave ISRs first, then end the process."""
        if not self.node.running or not self.node.stopping:
            return
        waited_us = self.cluster.kernel.now_us - since_us
        if self.cluster.controller.begin_shutdown(self.id):
            # By then every broker knows the new leaders.
            slowest_us = max(broker.node.slow_us for broker in self.cluster.brokers.values())
            self.after(
                4 * self.latency_us + 2 * slowest_us + self.heartbeat_us // 4, self.cluster.stopped, self.id
            )
        elif waited_us >= SHUTDOWN_LIMIT_US or self.broker_epoch < 0:
            self.cluster.stopped(self.id)
        else:
            self.after(RETRY_US, self.shut_down, since_us)

    # --- metadata

    def is_active(self, broker: int) -> bool:
        """Return whether this broker's metadata allows `broker` in an ISR."""
        found = self.image.brokers.get(broker)
        return found is not None and found.active

    def metadata_changed(self) -> None:
        """Fetch the controller's newer metadata after the usual delay."""
        if self._fetch_timer is None and self.broker_epoch >= 0:
            delay_us = self.latency_us + self.node.slow_us + self.cluster.quorum_state.slow_us()
            self._fetch_timer = self.after(delay_us, self._fetch_metadata)

    def _fetch_metadata(self) -> None:
        self._fetch_timer = None
        controller = self.cluster.controller
        if controller.ready() and controller.image.offset > self.image.offset:
            self.apply(controller.image, controller.changed_since(self.image.offset))

    def apply(self, image: MetadataImage, keys: Iterable[TopicPartition] | None) -> None:
        """Switch to `image`, in which the partitions `keys` have changed (None: possibly all).

        Replicas belong to a topic id, so those of a deleted topic are dropped even if a new topic has its
        name.
        """
        before, self.image = self.image, image
        if keys is None:
            keys = dict.fromkeys([*self.replicas, *(key for key, _ in image.all_partitions())])
        now_us, cluster = self.cluster.kernel.now_us, self.cluster
        for key in keys:
            topic, partition = image.topics.get(key[0]), image.partition(*key)
            replica = self.replicas.get(key)
            mine = partition is not None and self.id in partition.replicas
            if replica is not None and (not mine or topic is None or replica.topic_id != topic.topic_id):
                replica.drop()
                del self.replicas[key]
                replica = None
            if topic is None or partition is None or not mine:
                continue
            if replica is None:
                replica = self.replicas[key] = Replica(self, key, topic.topic_id, partition.replicas)
            was_leading, epoch = replica.leading, replica.leader_epoch
            if partition.leader == self.id:
                replica.lead(partition, cluster.min_insync_replicas(key[0]), now_us)
                if not was_leading or epoch != replica.leader_epoch:
                    cluster.kernel.trace("leads", *key, self.id, replica.leader_epoch, replica.log.end)
                self.wake_followers(replica)
                if replica.isr != partition.replicas:
                    self._check_join(replica)
            else:
                replica.follow(partition)
                leader = cluster.brokers.get(partition.leader)
                theirs = leader.replicas.get(key) if leader else None
                if leader and theirs is not None and theirs.leading:
                    cluster.pair(partition.leader, self.id).wake(theirs)
            cluster.touch(key)
        cluster.image_changed(self.id)
        if before.brokers is not image.brokers:
            for replica in self.replicas.values():
                if replica.leading and len(replica.isr) < len(replica.replicas):
                    self.wake_followers(replica)
                    self._check_join(replica)

    # --- replication and ISR

    def wake_followers(self, replica: Replica) -> None:
        """Let the followers' fetches notice that there is something new."""
        pair = self.cluster.pair
        for follower in replica.followers:
            pair(self.id, follower).wake(replica)

    def appended(self, replica: Replica, old_end: int, size_bytes: int) -> None:
        """React to the growth of a leader's log, which ended at `old_end` before."""
        self.disk.take(size_bytes)
        cluster = self.cluster
        cluster.touch(replica.key)
        followers = replica.followers
        if followers:
            now_us = cluster.kernel.now_us
            pairs = cluster.pairs[self.id]
            for follower in followers.values():
                pair = pairs[follower.broker]
                if follower.log_end == old_end and pair.reachable:
                    # Its long poll had nothing to fetch until now, so the follower was caught up all along.
                    follower.caught_up_us = follower.fetch_us = now_us
                    follower.fetch_leader_end = old_end
                pair.wake(replica)
        if len(replica.isr) <= 1:
            replica.advance()

    def follower_fetched(self, replica: Replica, follower: Follower) -> None:
        """React to a follower's fetch.

        The high watermark may rise, and the follower may join the ISR.
        """
        replica.advance()
        if follower.broker not in replica.isr and replica.isr_pending is None and replica.may_join(follower):
            self.ask_isr(replica, (*replica.isr, follower.broker))

    def _check_join(self, replica: Replica) -> None:
        for follower in replica.followers.values():
            if (
                replica.isr_pending is None
                and follower.broker not in replica.isr
                and replica.may_join(follower)
            ):
                self.ask_isr(replica, (*replica.isr, follower.broker))

    def ask_isr(self, replica: Replica, isr: tuple[int, ...]) -> None:
        """Ask the controller for a different ISR (AlterPartition).

        Other requests of the same moment are sent with it.
        """
        replica.isr_pending = tuple(r for r in replica.replicas if r in isr)
        self._isr_asked[replica] = replica.isr_pending
        if self._isr_timer is None:
            self._isr_timer = self.after(self.latency_us + self.node.slow_us, self._alter_partitions)

    def _alter_partitions(self) -> None:
        self._isr_timer = None
        controller = self.cluster.controller
        if not controller.ready():
            self._isr_timer = self.after(RETRY_US, self._alter_partitions)
            return
        asked, self._isr_asked = self._isr_asked, {}
        still = {r.key: r for r in asked if r.leading and r.isr_pending is not None}
        refused = controller.alter_partitions(
            self.id,
            [(key, r.topic_id, r.leader_epoch, r.partition_epoch, asked[r]) for key, r in still.items()],
        )
        for key in refused:
            self.after(RETRY_US, self._refused, still[key])

    def _refused(self, replica: Replica) -> None:
        if replica.leading:
            replica.isr_pending = None
            self._check_join(replica)

    def _check_lag(self) -> None:
        self.after(max(1, self.lag_max_us // 2), self._check_lag)
        now_us = self.cluster.kernel.now_us
        for replica in self.replicas.values():
            if not replica.leading or len(replica.isr) < 2 or replica.isr_pending is not None:
                continue
            followers = replica.followers
            late = [
                r
                for r in replica.isr
                if r != self.id and not replica.in_sync(followers[r], now_us, self.lag_max_us)
            ]
            if late:
                self.cluster.kernel.trace("lagging", *replica.key, *late)
                self.ask_isr(replica, tuple(r for r in replica.isr if r not in late))

    def unreachable(self, other: int) -> None:
        """Note that broker `other` no longer fetches.

        Its followers that had caught up count as caught up until now.
        """
        now_us = self.cluster.kernel.now_us
        for replica in self.replicas.values():
            follower = replica.followers.get(other)
            if follower is not None and follower.log_end == replica.log.end:
                follower.caught_up_us = now_us

    def _retain(self) -> None:
        self.after(self.cluster.settings.us("log.retention.check.interval.ms"), self._retain)
        retain(self.cluster, self)


def connect(brokers: dict[int, Broker]) -> dict[int, dict[int, Pair]]:
    """Return a pair for every leader and follower, keyed by leader, then by follower."""
    return {
        leader: {
            follower: Pair(brokers[leader], brokers[follower]) for follower in brokers if follower != leader
        }
        for leader in brokers
    }
