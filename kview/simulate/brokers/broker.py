"""A simulated broker, with its copy of the metadata, its replicas, its registration and its heartbeats."""

from collections.abc import Callable, Iterable

from kview.simulate.brokers.ack_wait import AckWait
from kview.simulate.brokers.bucket import Bucket
from kview.simulate.brokers.fetch_sessions import FetchSessions
from kview.simulate.brokers.isr_changes import RETRY_US, IsrChanges
from kview.simulate.brokers.log_dirs import METADATA_DIR, LogDirs, paths
from kview.simulate.brokers.process import BrokerProcess
from kview.simulate.brokers.replica import Fetcher, Replica
from kview.simulate.brokers.throttle import Throttle
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.controller import Controller
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.kernel import Kernel, Timer
from kview.simulate.metadata import MetadataImage, TopicPartition
from kview.simulate.nodes import Node, Nodes
from kview.simulate.results import ProduceResult
from kview.simulate.settings import FOLLOWER_THROTTLE, LEADER_THROTTLE
from kview.simulate.touched import Touched
from kview.simulate.world import LinkSpec

START_UP_US = 2_000_000
"""Time from the start of a broker's process to its first registration."""
CHECKPOINT_US = 5_000_000
"""replica.high.watermark.checkpoint.interval.ms: a broker notices within this time that a disk is full, even
if nothing is appended there."""
CATCH_UP_US = 200_000
"""Time from a broker's registration to its first heartbeat, in which it reads the metadata."""


class Broker:
    """A broker process and the logs on its disk.

    `fetchers` are the followers' fetches from this broker, `own_fetchers` are its fetches from leaders, both
    by the other broker. `Replication` connects them.
    """

    def __init__(
        self,
        kernel: Kernel,
        nodes: Nodes,
        node: Node,
        metadata: MetadataLog,
        configs: EffectiveConfigs,
        controller: Controller,
        link: LinkSpec,
        touched: Touched,
    ) -> None:
        settings, now_us = configs.settings, kernel.now_us
        self.kernel = kernel
        self.node = node
        self.id = node.id
        self.image = metadata.image
        self.touched = touched
        self.process = BrokerProcess(kernel, node)
        self.replicas: dict[TopicPartition, Replica] = {}
        self.dirs = LogDirs(paths(settings.text("log.dirs"), node.id))
        self.fetchers: dict[int, Fetcher] = {}
        self.own_fetchers: dict[int, Fetcher] = {}
        self.latency_us = link.latency_us
        self.heartbeat_us = settings.us("broker.heartbeat.interval.ms")
        self.lag_max_us = settings.us("replica.lag.time.max.ms")
        self.fetch_wait_us = settings.us("replica.fetch.wait.max.ms")
        self.out_link = Bucket(link.bytes_per_second, now_us)
        self.in_link = Bucket(link.bytes_per_second, now_us)
        self.disk = Bucket(link.disk_bytes_per_second, now_us)
        self.disk_busy_until_us = now_us
        self.disk_waits: dict[AckWait, None] = {}
        """Appends that a slow disk has not written yet."""
        self.sending = Throttle(self.id, LEADER_THROTTLE, configs)
        self.fetching = Throttle(self.id, FOLLOWER_THROTTLE, configs)
        self.isr_changes = IsrChanges(
            self.process, self.replicas, controller, self.latency_us, self.lag_max_us
        )
        self.fetch_sessions = FetchSessions(
            self.id, kernel, settings.number("max.incremental.fetch.session.cache.slots")
        )
        self.clean_shutdown = True
        self._dir_timeout_us = settings.us("log.dir.failure.timeout.ms")
        self._halt: Callable[[int], None] = lambda broker: None
        self._nodes = nodes
        self._metadata = metadata
        self._configs = configs
        self._controller = controller
        self._unreported: set[int] = set()
        """Failed directories that had leaders, while no controller has said that it knows."""
        self._beat: Timer | None = None
        self._fetch_timer: Timer | None = None
        self._start_listeners: list[Callable[[], None]] = []
        self._metadata_listeners: list[Callable[[int], None]] = []
        metadata.on_step(self.metadata_changed)
        nodes.network.on_change(lambda a, b: self.metadata_changed() if self.id in (a, b) else None)

    def on_start(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the broker has registered and starts its timers."""
        self._start_listeners.append(listener)

    def on_metadata(self, listener: Callable[[int], None]) -> None:
        """Call `listener(broker)` whenever the broker has new metadata."""
        self._metadata_listeners.append(listener)

    def on_halt(self, halt: Callable[[int], None]) -> None:
        """Call `halt(broker)` when the broker cannot go on without a log directory that has failed."""
        self._halt = halt

    # --- the process

    def boot(self, first_beat_us: int) -> None:
        """Start the timers of a running broker, with the first heartbeat at `first_beat_us`."""
        self._beat = self.process.at(first_beat_us, self._heartbeat)
        self.isr_changes.process_started()
        for listener in self._start_listeners:
            listener()

    def died(self, clean: bool) -> None:
        """Drop what the process held in memory, because the process has ended. Its logs stay on disk."""
        self.clean_shutdown = clean
        self.process.ended()
        self._unreported.clear()
        for timer in (self._beat, self._fetch_timer):
            self.kernel.cancel(timer)
        self._fetch_timer = None
        self.isr_changes.process_ended()
        self.fetch_sessions.clear()
        for replica in self.replicas.values():
            replica.lose_memory()
        waits, self.disk_waits = self.disk_waits, {}
        for wait in waits:
            wait.answer(ProduceResult(ErrorCode.BROKER_NOT_AVAILABLE))

    def start(self) -> None:
        """Start the process, which loads its logs and then registers."""
        self.node.broker_epoch = -1
        self.process.after(START_UP_US, self._register)

    def resume(self) -> None:
        """Resume after a hang, and run the timers that came due in the meantime."""
        self.process.resume()
        self.metadata_changed()

    def _register(self) -> None:
        epoch = self._controller.register(self.id, self.clean_shutdown)
        if epoch is None:
            self.process.after(RETRY_US, self._register)
            return
        self.node.broker_epoch = epoch
        self.clean_shutdown = False
        for key, replica in self.dirs.take_back().items():
            replica.lose_memory()
            self.replicas[key] = replica
        self.image = self._metadata.image
        self.apply(self.image, None)
        self.boot(self.kernel.now_us + self.latency_us + CATCH_UP_US)

    def _heartbeat(self) -> None:
        self._beat = self.process.after(self.heartbeat_us, self._heartbeat)
        self.process.after(self.latency_us + self.node.slow_us, self._beat_arrives, self.image.offset)

    def _beat_arrives(self, offset: int) -> None:
        offline = self.dirs.offline_ids()
        if self._controller.heartbeat(self.id, self.node.broker_epoch, offset, offline):
            self._unreported.clear()

    # --- log directories

    def append_fails(self, replica: Replica) -> bool:
        """Return whether nothing can be appended to a replica because its disk is full. Its directory then
        fails."""
        if replica.directory not in self.dirs.full:
            return False
        self.fail_dir(replica.directory)
        return True

    def fill_dir(self, directory: int) -> None:
        """Leave no room in a log directory."""
        self.dirs.full.add(directory)
        due_us = self.kernel.random("checkpoint").randrange(CHECKPOINT_US)

        def checkpoint() -> None:
            if directory in self.dirs.full:
                self.fail_dir(directory)

        self.process.after(due_us, checkpoint)

    def fail_dir(self, directory: int) -> None:
        """Stop serving what is in a log directory, and report it to the controller.

        The broker ends if that had the metadata log, or if no controller answers for
        log.dir.failure.timeout.ms (ReplicaManager.handleLogDirFailure).
        """
        if directory in self.dirs.failed:
            return
        self.kernel.trace("dir-failed", self.id, directory)
        gone = self.dirs.fail(directory, self.replicas)
        has_led = any(replica.leading for replica in gone.values())
        for key, replica in gone.items():
            self.touched.add(key)
            replica.drop(ErrorCode.KAFKA_STORAGE_ERROR)
        if directory == METADATA_DIR:
            self.process.after(0, self._halt, self.id)
            return
        if has_led:
            self._unreported.add(directory)
        self.process.after(self.latency_us + self.node.slow_us, self._beat_arrives, self.image.offset)
        self.process.after(self._dir_timeout_us, self._end_if_unreported, directory)

    def _end_if_unreported(self, directory: int) -> None:
        if directory in self._unreported:
            self._halt(self.id)

    def repair_dirs(self) -> None:
        """Replace lost disks by empty ones and make room on full ones, before the process starts again."""
        self.dirs.repair()
        self.clean_shutdown = False  # What a failed directory had of it is missing.

    # --- metadata

    def refusal(self, key: TopicPartition) -> ErrorCode:
        """Return why this broker does not answer for a partition that it does not lead, or does not have
        (ReplicaManager.getPartitionOrError)."""
        if self.image.partition(*key) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        is_offline = key in self.dirs.offline
        return ErrorCode.KAFKA_STORAGE_ERROR if is_offline else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def is_active(self, broker: int) -> bool:
        """Return whether this broker's metadata allows `broker` in an ISR."""
        broker_image = self.image.brokers.get(broker)
        return broker_image is not None and broker_image.active

    def metadata_changed(self) -> None:
        """Schedule a fetch of the controller's newer metadata, unless one is scheduled already.

        A process that does not run, or has not registered, fetches nothing.
        """
        if self._fetch_timer is None and self.node.running and self.node.broker_epoch >= 0:
            delay_us = self.latency_us + self.node.slow_us + self._controller.slow_us()
            self._fetch_timer = self.process.after(delay_us, self._fetch_metadata)

    def _fetch_metadata(self) -> None:
        self._fetch_timer = None
        metadata = self._metadata
        if self._controller.reached_by(self.id) and metadata.image.offset > self.image.offset:
            self.apply(metadata.image, metadata.changed_since(self.image.offset))

    def apply(self, image: MetadataImage, keys: Iterable[TopicPartition] | None) -> None:
        """Switch to `image`, in which the partitions `keys` have changed (None: possibly all).

        A replica belongs to a topic id. So the replicas of a deleted topic are dropped even if a new topic
        has the same name.
        """
        before, self.image = self.image, image
        if keys is None:
            keys = dict.fromkeys(
                [*self.replicas, *self.dirs.offline, *(key for key, _ in image.all_partitions())]
            )
        now_us = self.kernel.now_us
        for key in keys:
            topic, partition = image.topics.get(key[0]), image.partition(*key)
            replica = self.replicas.get(key)
            mine = partition is not None and self.id in partition.replicas
            if replica is not None and (not mine or topic is None or replica.topic_id != topic.topic_id):
                moved = topic is not None and replica.topic_id == topic.topic_id
                replica.drop(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER if moved else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                self.dirs.removed(self.replicas.pop(key))
                replica = None
            offline = self.dirs.offline.get(key)
            if offline is not None and topic is not None and offline.topic_id == topic.topic_id:
                continue  # Even if it has been moved away: Kafka goes on with it when it starts again.
            if offline is not None:
                self.dirs.removed(self.dirs.offline.pop(key))
            if topic is None or partition is None or not mine:
                continue
            joins = replica is None and self.id not in partition.isr
            if replica is None:
                replica = self.replicas[key] = Replica(self, key, topic.topic_id, partition.replicas)
                self.dirs.place(replica)
            was_leading, epoch = replica.leading, replica.leader_epoch
            if partition.leader == self.id:
                replica.lead(partition, self._configs.min_insync_replicas(key[0]), now_us)
                if not was_leading or epoch != replica.leader_epoch:
                    self.kernel.trace("leads", *key, self.id, replica.leader_epoch, replica.log.end)
                replica.wake_followers()
                if partition.offline:
                    self._wait_for_offline(replica, partition.offline)
            else:
                replica.follow(partition)
                fetcher = self.own_fetchers.get(partition.leader)
                if fetcher is not None and joins:
                    fetcher.join(key)
                elif fetcher is not None:
                    fetcher.follow(key)
            self.touched.add(key)
        for listener in self._metadata_listeners:
            listener(self.id)
        if not self.node.port_open and self._unfenced(image):
            self._nodes.open_port(self.id)
        if before.brokers is not image.brokers:
            for replica in self.replicas.values():
                if replica.leading and len(replica.isr) < len(replica.replicas):
                    replica.wake_followers()

    def _wait_for_offline(self, replica: Replica, offline: Iterable[int]) -> None:
        """Let the high watermark go on once followers in failed directories no longer count as caught up.

        Until then, replica.lag.time.max.ms, a leader waits for them to join the ISR, because their brokers
        are alive. Measured: acks=all waits for 30 s.
        """

        def advance() -> None:
            if replica.leading:
                replica.advance()

        for follower in offline:
            if known := replica.followers.get(follower):
                left_us = known.caught_up_us + self.lag_max_us - self.kernel.now_us
                self.process.after(max(0, left_us) + 1, advance)

    def _unfenced(self, image: MetadataImage) -> bool:
        """Return whether `image` has this process's own registration as unfenced."""
        known = image.brokers.get(self.id)
        return known is not None and known.broker_epoch == self.node.broker_epoch and not known.fenced

    # --- replication

    def appended(self, replica: Replica, old_end: int, size_bytes: int) -> None:
        """Handle an append of `size_bytes` to a leader's log, which ended at `old_end` before."""
        self.disk.take(size_bytes)
        self.touched.add(replica.key)
        followers = replica.followers
        if followers:
            now_us = self.kernel.now_us
            fetchers = self.fetchers
            for follower in followers.values():
                fetcher = fetchers[follower.broker]
                if follower.log_end == old_end and fetcher.reachable:
                    # The follower had fetched everything before this append, so it was caught up until now.
                    follower.caught_up_us = follower.fetch_us = now_us
                    follower.fetch_leader_end = old_end
                fetcher.wake(replica)
        if len(replica.isr) <= 1:
            replica.advance()

    def unreachable(self, other: int) -> None:
        """Record that broker `other` can no longer fetch from this broker.

        A follower on that broker that had caught up counts as caught up until now.
        """
        now_us = self.kernel.now_us
        for replica in self.replicas.values():
            follower = replica.followers.get(other)
            if follower is not None and follower.log_end == replica.log.end:
                follower.caught_up_us = now_us
