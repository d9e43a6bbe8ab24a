"""One partition on one broker: its log and, while the broker leads, its followers, ISR and high watermark.

Source of the rules: kafka.cluster.Partition and Replica.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Timer
from kview.simulate.log import Log
from kview.simulate.metadata import PartitionImage, TopicPartition
from kview.simulate.producers import ProducerStates
from kview.simulate.results import ProduceResult
from kview.simulate.stream import Stream

if TYPE_CHECKING:
    from kview.simulate.broker import Broker

UNKNOWN = -1


class Follower:
    """A follower as its leader sees it. Times are in µs."""

    __slots__ = ("broker", "caught_up_us", "fetch_leader_end", "fetch_us", "log_end")

    def __init__(self, broker: int, caught_up_us: int) -> None:
        self.broker = broker
        self.log_end = UNKNOWN
        self.caught_up_us = caught_up_us
        self.fetch_us = 0
        self.fetch_leader_end = UNKNOWN


class AckWait:
    """An acks=all append that waits for the high watermark to pass `offset`."""

    __slots__ = ("done", "offset", "result", "timer")

    def __init__(self, offset: int, result: ProduceResult, done: Callable[[ProduceResult], None]) -> None:
        self.offset = offset
        self.result = result
        self.done: Callable[[ProduceResult], None] | None = done
        self.timer: Timer | None = None

    def answer(self, result: ProduceResult) -> None:
        """Answer the append, unless that has been done."""
        done, self.done = self.done, None
        if done is not None:
            done(result)

    def expire(self) -> None:
        """Answer that the request has timed out."""
        self.answer(ProduceResult(ErrorCode.REQUEST_TIMED_OUT))


class Replica:
    """A replica of `key` on `broker`.

    `leading` is what the broker believes, based on its own metadata.
    """

    __slots__ = (
        "broker",
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
        self, broker: "Broker", key: TopicPartition, topic_id: bytes, topic_replicas: tuple[int, ...]
    ) -> None:
        self.broker = broker
        self.key = key
        self.topic_id = topic_id
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
        self.min_isr = 1
        self.epoch_start = 0
        self.followers: dict[int, Follower] = {}
        self.reconciled = False
        self.waits: deque[AckWait] = deque()
        self.readers: dict[int, Callable[[], None]] = {}  # by number: callbacks that wait for records
        self.producers: ProducerStates | None = None

    def lead(self, image: PartitionImage, min_isr: int, now_us: int) -> None:
        """Become or stay the leader, as the image says."""
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
        self.isr = image.isr
        self.isr_pending = None
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
        """Return whether the follower has caught up by the rule of replica.lag.time.max.ms."""
        return follower.log_end == self.log.end or now_us - follower.caught_up_us <= lag_max_us

    def fetched(self, follower: Follower, log_end: int, now_us: int) -> None:
        """Record a follower's fetch at `log_end`."""
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
        cluster = self.broker.cluster
        cluster.touch(self.key)
        if self.followers:
            pairs = cluster.pairs[self.broker.id]
            for broker in self.followers:
                pairs[broker].tell(self)
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
        return self.in_sync(follower, broker.cluster.kernel.now_us, broker.lag_max_us) and broker.is_active(
            follower.broker
        )

    def may_join(self, follower: Follower) -> bool:
        """Return whether a follower outside the ISR has caught up enough to join."""
        return (
            follower.log_end >= self.high_watermark
            and follower.log_end >= self.epoch_start
            and self.broker.is_active(follower.broker)
        )

    def _answer_waits(self) -> None:
        waits, kernel = self.waits, self.broker.cluster.kernel
        while waits and waits[0].offset <= self.high_watermark:
            wait = waits.popleft()
            kernel.cancel(wait.timer)
            wait.answer(wait.result)

    def fail_waits(self, error: ErrorCode) -> None:
        """Answer every append that waits for an acknowledgement with `error`."""
        waits, self.waits = self.waits, deque()
        for wait in waits:
            self.broker.cluster.kernel.cancel(wait.timer)
            wait.answer(ProduceResult(error))

    def drop(self) -> None:
        """Answer all waiting requests, because the broker no longer has this replica."""
        self.fail_waits(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.leading = False
        self.wake_readers()

    def lose_memory(self) -> None:
        """Forget everything but the log, because the process died."""
        self.fail_waits(ErrorCode.BROKER_NOT_AVAILABLE)
        self.leading = False
        self.leader = self.leader_epoch = self.partition_epoch = -1
        self.reconciled = False
        self.stream = self.producers = self.isr_pending = None
        self.followers = {}
        self.wake_readers()

    def wake_readers(self) -> None:
        """Wake every long poll that waits for records."""
        for reader in list(self.readers.values()):
            reader()

    def producer_states(self) -> ProducerStates:
        """Return what idempotent producers have written to this log, up to its end."""
        if self.producers is None:
            self.producers = ProducerStates(self.log.start)
        self.producers.read(self.log)
        return self.producers
