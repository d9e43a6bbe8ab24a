"""A replica, that is, one partition on one broker. If the broker leads, the replica also tracks its
followers.

Source of the rules: kafka.cluster.Partition and Replica.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from kview.simulate.brokers.ack_wait import AckWait
from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Kernel
from kview.simulate.log import Log
from kview.simulate.metadata import PartitionImage, TopicPartition
from kview.simulate.producers import ProducerStates
from kview.simulate.results import ProduceResult
from kview.simulate.stream import Stream
from kview.simulate.touched import Touched

UNKNOWN = -1


class Fetcher(Protocol):
    """A follower's fetches from a leader, which the leader keeps going (Kafka: ReplicaFetcherThread)."""

    reachable: bool

    def wake(self, replica: "Replica") -> None:
        """Schedule a fetch of `replica`, for which the leader has something new."""

    def tell(self, replica: "Replica") -> None:
        """Note that the high watermark of `replica` moved, which the follower learns with its next fetch."""

    def hurry(self) -> None:
        """Make the next fetch soon, whatever the load, because a real client appended."""

    def follow(self, key: TopicPartition) -> None:
        """Schedule the first fetch of a partition that the follower now follows, if the leader leads it."""

    def join(self, key: TopicPartition) -> None:
        """Do the same for a replica that the follower has just created to join the ISR.

        As in Kafka, it is not part of the fetch that waits at the leader for records of other partitions.
        """


class Holder(Protocol):
    """The broker that has a replica on its disk, as the replica uses it."""

    @property
    def id(self) -> int:
        """The broker's id."""

    @property
    def kernel(self) -> Kernel:
        """The engine's clock and event queue."""

    @property
    def touched(self) -> Touched:
        """Where changes are noted for the invariants."""

    @property
    def lag_max_us(self) -> int:
        """The broker's replica.lag.time.max.ms, in µs."""

    @property
    def fetchers(self) -> Mapping[int, Fetcher]:
        """The followers' fetches from this broker, by follower."""

    def is_active(self, broker: int) -> bool:
        """Return whether this broker's metadata allows `broker` in an ISR."""


class Follower:
    """A follower as its leader sees it. Times are in µs."""

    __slots__ = ("broker", "caught_up_us", "fetch_leader_end", "fetch_us", "log_end")

    def __init__(self, broker: int, caught_up_us: int) -> None:
        self.broker = broker
        self.log_end = UNKNOWN
        self.caught_up_us = caught_up_us
        self.fetch_us = 0
        self.fetch_leader_end = UNKNOWN


class Replica:
    """A replica of `key` on `broker`, in the broker's log directory number `directory`.

    `leading` is based on the broker's own metadata, which may be out of date.
    """

    __slots__ = (
        "broker",
        "directory",
        "epoch_start",
        "followers",
        "high_watermark",
        "isr",
        "isr_pending",
        "key",
        "leader",
        "leader_epoch",
        "leading",
        "log",
        "min_isr",
        "offline",
        "partition_epoch",
        "producers",
        "readers",
        "reconciled",
        "replicas",
        "stream",
        "topic_id",
        "waits",
    )

    def __init__(
        self, broker: Holder, key: TopicPartition, topic_id: bytes, topic_replicas: tuple[int, ...]
    ) -> None:
        self.broker = broker
        self.key = key
        self.topic_id = topic_id
        self.directory = 0
        self.log = Log()
        self.stream: Stream | None = None
        self.high_watermark = 0
        self.leader = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.leading = False
        self.replicas = topic_replicas
        self.isr: tuple[int, ...] = ()
        self.isr_pending: tuple[int, ...] | None = None
        self.offline: tuple[int, ...] = ()
        self.min_isr = 1
        self.epoch_start = 0
        self.followers: dict[int, Follower] = {}
        self.reconciled = False
        self.waits: deque[AckWait] = deque()
        self.readers: dict[int, Callable[[], None]] = {}  # callbacks that wait for records, by number
        self.producers: ProducerStates | None = None

    def lead(self, image: PartitionImage, min_isr: int, now_us: int) -> None:
        """Become or stay the leader, because `image` says so."""
        self.min_isr = min(min_isr, len(image.replicas))
        if not self.leading or image.leader_epoch != self.leader_epoch:
            self.leading = True
            self.leader = image.leader
            self.leader_epoch = image.leader_epoch
            self.stream = self.log.begin_epoch(image.leader_epoch)
            self.epoch_start = self.log.end
            self.reconciled = False
            self.followers = {
                r: Follower(r, now_us if r in image.isr else 0) for r in image.replicas if r != image.leader
            }
        elif image.replicas != self.replicas:
            self.followers = {
                r: self.followers.get(r) or Follower(r, 0) for r in image.replicas if r != image.leader
            }
        self.isr = image.isr
        self.isr_pending = None
        self.offline = image.offline
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        self.advance()

    def follow(self, image: PartitionImage) -> None:
        """Follow the image's leader, or no broker if the leader is −1."""
        if image.leader_epoch != self.leader_epoch or self.leading:
            self.reconciled = False
        self.leading = False
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        self.isr = image.isr
        self.isr_pending = None
        self.stream = None
        self.followers = {}
        self.fail_waits(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.wake_readers()

    def in_sync(self, follower: Follower, now_us: int, lag_max_us: int) -> bool:
        """Return whether the follower is in sync by the rule of replica.lag.time.max.ms."""
        return follower.log_end == self.log.end or now_us - follower.caught_up_us <= lag_max_us

    def fetched(self, follower: Follower, log_end: int, now_us: int) -> None:
        """Record the fetch of a follower whose log ends at `log_end`."""
        end = self.log.end
        if log_end >= end:
            follower.caught_up_us = now_us
        elif log_end >= follower.fetch_leader_end >= 0:
            follower.caught_up_us = max(follower.caught_up_us, follower.fetch_us)
        follower.log_end = log_end
        follower.fetch_leader_end = end
        follower.fetch_us = now_us

    def advance(self) -> bool:
        """Advance the high watermark as far as the ISR's log ends allow, and return whether it moved."""
        isr = self.isr
        if len(isr) < self.min_isr:
            return False
        new = self.log.end
        if new <= self.high_watermark:
            return False
        for follower in self.followers.values():
            if follower.log_end < new and (follower.broker in isr or self._joining(follower)):
                new = follower.log_end
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        holder = self.broker
        holder.touched.add(self.key)
        if self.followers:
            fetchers = holder.fetchers
            for broker in self.followers:
                fetchers[broker].tell(self)
        if self.waits:
            self._answer_waits()
        if self.readers:
            self.wake_readers()
        return True

    def _joining(self, follower: Follower) -> bool:
        """Return whether the high watermark must wait for this follower, which is about to join the ISR."""
        if self.isr_pending is not None and follower.broker in self.isr_pending:
            return True
        broker = self.broker
        return self.in_sync(follower, broker.kernel.now_us, broker.lag_max_us) and broker.is_active(
            follower.broker
        )

    def may_join(self, follower: Follower) -> bool:
        """Return whether a follower outside the ISR has caught up enough to join."""
        return (
            follower.broker not in self.offline
            and follower.log_end >= self.high_watermark
            and follower.log_end >= self.epoch_start
            and self.broker.is_active(follower.broker)
        )

    def _answer_waits(self) -> None:
        waits, kernel = self.waits, self.broker.kernel
        while waits and waits[0].offset <= self.high_watermark:
            wait = waits.popleft()
            kernel.cancel(wait.timer)
            wait.answer(wait.result)

    def fail_waits(self, error: ErrorCode) -> None:
        """Answer every append that waits for an acknowledgement with `error`."""
        waits, self.waits = self.waits, deque()
        for wait in waits:
            self.broker.kernel.cancel(wait.timer)
            wait.answer(ProduceResult(error))

    def drop(self, error: ErrorCode) -> None:
        """Answer all waiting requests, because the broker no longer has this replica.

        Appends that wait for an acknowledgement are answered with `error`.
        """
        self.fail_waits(error)
        self.leading = False
        self.wake_readers()

    def lose_memory(self) -> None:
        """Forget everything but the log and the high watermark, which are on disk, because the process
        died."""
        self.fail_waits(ErrorCode.BROKER_NOT_AVAILABLE)
        self.leading = False
        self.leader = self.leader_epoch = self.partition_epoch = -1
        self.reconciled = False
        self.stream = self.producers = self.isr_pending = None
        self.followers = {}
        self.wake_readers()

    def wake_followers(self) -> None:
        """Wake the followers' fetches, because this leader has something new for them."""
        fetchers = self.broker.fetchers
        for follower in self.followers:
            fetchers[follower].wake(self)

    def wake_readers(self) -> None:
        """Wake every long poll that waits for records."""
        for reader in list(self.readers.values()):
            reader()

    def producer_states(self) -> ProducerStates:
        """Return the state of the idempotent producers, read up to the log's end."""
        states = self.producers
        if states is None or states.read_to < self.epoch_start:  # the first use while this replica leads
            latest = ProducerStates.load(self.log, self.high_watermark)
            if states is None or latest.read_to > states.read_to:
                states = self.producers = latest
        states.read(self.log)
        return states

    def last_stable(self) -> int:
        """Return the offset below which every transaction has ended, at most the high watermark."""
        if not self.log.is_transactional:
            return self.high_watermark
        return max(self.log.start, self.producer_states().last_stable(self.high_watermark))

    def advance_start(self, start: int) -> None:
        """Drop the records below `start`. What they told about producers stays known, as in Kafka."""
        if start > self.log.start and self.producers is not None:
            self.producers.read(self.log)
        self.log.advance_start(start)
