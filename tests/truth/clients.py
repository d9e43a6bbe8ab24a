"""Clients with books of their own: a producer that notes every acknowledgement, groups that note every commit
and every record they were given. They use librdkafka, which shares no code with kview."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kview.model.states import GroupType
from tests.truth.log import Partition, Track, TruthLog
from tests.waiting import paced

TICK_S = 0.05
WRITE_EVERY_S = 0.5
"""Each burst costs the brokers a request for every partition and its followers, whatever its size."""
COMMIT_EVERY_MS = 1_000
PAYLOAD = b"x" * 40
QUIET = {"log_level": 0}
"""Refused connections are what the schedule is about, no news."""


def now_ms() -> int:
    """Return the time by this machine's clock."""
    return time.time_ns() // 1_000_000


PREFETCH = {"fetch.min.bytes": 100_000}
"""An answer every `fetch.wait.max.ms`, not one for each write."""
NO_PREFETCH = {
    "queued.min.messages": 20,
    "queued.max.messages.kbytes": 8,
    "fetch.message.max.bytes": 4_096,
    "fetch.queue.backoff.ms": 50,
}
"""Else a slow consumer has long been sent the records that are deleted before it takes them."""


class Writer:
    """Writes to all partitions of some topics at steady rates with acks=all, on a thread of its own."""

    def __init__(
        self, servers: str, rates: Mapping[str, float], partitions: Mapping[str, int], log: TruthLog
    ) -> None:
        self._log = log
        self._rates = dict(rates)
        self._partitions = dict(partitions)
        self._due = dict.fromkeys(rates, 0.0)
        self._next = dict.fromkeys(rates, 0)
        self._producer = Producer({
            **QUIET,
            "bootstrap.servers": servers,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "message.timeout.ms": 300_000,
            "topic.metadata.refresh.interval.ms": 2_000,
        })  # fmt: skip
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def close(self) -> None:
        """Stop writing; what is not acknowledged is left behind."""
        self._ending.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(2)

    def _run(self) -> None:
        for _ in paced(WRITE_EVERY_S):
            if self._ending.is_set():
                return
            for topic, rate in self._rates.items():
                self._due[topic] += rate * WRITE_EVERY_S
                while self._due[topic] >= 1:
                    self._due[topic] -= 1
                    self._write(topic)
            self._producer.poll(0)

    def _write(self, topic: str) -> None:
        partition = self._next[topic] % self._partitions[topic]
        self._next[topic] += 1
        try:
            self._producer.produce(topic, PAYLOAD, partition=partition, on_delivery=self._delivered)
        except (BufferError, KafkaException):
            return  # nobody acknowledges it, so it is in no book

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is None and topic is not None and partition is not None and offset is not None:
            self._log.ends.setdefault((topic, partition), Track()).add(now_ms(), offset + 1)


class Reader:
    """A group with one consumer of the classic or the consumer protocol.

    It reads at most `rate` records a second and commits every second.
    """

    def __init__(
        self,
        servers: str,
        group: str,
        topic: str,
        partitions: int,
        rate: float,
        log: TruthLog,
        prefetch: bool,
        kind: GroupType = GroupType.CLASSIC,
    ) -> None:
        self._servers = servers
        self.group = group
        self.topic = topic
        self._partitions = partitions
        self._rate = rate
        self._log = log
        self._prefetch = prefetch
        self._kind = kind
        self._given = 0
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        log.kinds[group] = kind
        log.members[group] = Track()
        log.read[group] = Track()

    @property
    def partitions(self) -> list[Partition]:
        """The partitions it reads."""
        return [(self.topic, number) for number in range(self._partitions)]

    @property
    def reads(self) -> bool:
        """Whether it is a member of its group."""
        return self._thread is not None

    def start(self) -> None:
        """Join the group and read."""
        self._ending.clear()
        self._thread = threading.Thread(target=self._run, name=self.group)
        self._thread.start()

    def stop(self) -> None:
        """Commit and leave the group."""
        if self._thread is not None:
            self._ending.set()
            self._thread.join()
            self._thread = None

    def slow_down(self, rate: float) -> None:
        """Read at most `rate` records a second from now on."""
        self._rate = rate

    def set_offsets(self, new: Callable[[Partition], int]) -> None:
        """Set the group's offsets, as `kafka-consumer-groups --reset-offsets` does. It must be stopped."""
        tool = Consumer({**QUIET, "bootstrap.servers": self._servers, "group.id": self.group})
        try:
            wanted = [
                TopicPartition(topic, number, new((topic, number))) for topic, number in self.partitions
            ]
            self._committed(None, tool.commit(offsets=wanted, asynchronous=False) or [])
        finally:
            tool.close()

    def committed(self, partition: Partition) -> int:
        """Return the offset last committed; 0 if none was."""
        track = self._log.committed.get((self.group, partition))
        return track.values[-1] if track else 0

    def _run(self) -> None:
        consumer = Consumer({
            **QUIET,
            "bootstrap.servers": self._servers,
            "group.id": self.group,
            "group.protocol": self._kind.value,
            "client.id": self.group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": COMMIT_EVERY_MS,
            "topic.metadata.refresh.interval.ms": 2_000,
            "on_commit": self._committed,
            **(PREFETCH if self._prefetch else NO_PREFETCH),
        })  # fmt: skip
        consumer.subscribe([self.topic])
        self._log.members[self.group].add(now_ms(), 1)
        allowed = 0.0
        for _ in paced(TICK_S):
            if self._ending.is_set():
                break
            allowed = min(allowed + self._rate * TICK_S, max(1.0, self._rate))
            if allowed < 1:
                continue
            messages = consumer.consume(int(allowed), timeout=0)
            good = sum(message.error() is None for message in messages)
            allowed -= good
            if good:
                self._given += good
                self._log.read[self.group].add(now_ms(), self._given)
        consumer.close()
        self._log.members[self.group].add(now_ms(), 0)

    def _committed(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        if error is not None:
            return
        for one in offsets:
            if one.error is None and one.offset >= 0:
                key = (self.group, (one.topic, one.partition))
                self._log.committed.setdefault(key, Track()).add(now_ms(), one.offset)
