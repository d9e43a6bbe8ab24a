"""Produce, Fetch, ListOffsets and related requests, answered from what one broker believes and stores."""

from collections.abc import Callable, Iterator, Sequence

from kview.simulate.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.core import ClusterCore
from kview.simulate.kernel import Timer
from kview.simulate.reading import Keys, RecordMaker
from kview.simulate.records import TIMESTAMP_TYPE, split
from kview.simulate.replica import AckWait, Replica
from kview.simulate.results import (
    EpochEndResult,
    OffsetResult,
    ProduceResult,
    ProducerIdResult,
    ReadResult,
    TakeResult,
)
from kview.simulate.retention import evict

ProduceDone = Callable[[ProduceResult], None]
Done = Callable[[], None]

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
DEBUGGING_REPLICA = -2
PRODUCER_IDS_PER_BLOCK = 1000
TRANSACTIONAL_IDS_MAX = 10_000
"""Transactional ids whose epochs are remembered. The oldest id is forgotten first."""


class ReadWait:
    """A long poll.

    `done` is called once, when enough can be read, something changed, or time ran out.
    """

    __slots__ = ("_broker", "_done", "_min_bytes", "_number", "_positions", "_timer")

    def __init__(
        self,
        broker: Broker,
        number: int,
        positions: Sequence[tuple[Replica, int]],
        min_bytes: int,
        done: Done,
    ) -> None:
        self._broker = broker
        self._number = number
        self._positions = positions
        self._min_bytes = min_bytes
        self._done: Done | None = done
        self._timer: Timer | None = None

    def start(self, max_wait_ms: int) -> None:
        """Start waiting, or finish immediately if enough can be read."""
        self._timer = self._broker.after(max_wait_ms * 1000, self._finish)
        for replica, _ in self._positions:
            replica.readers[self._number] = self.look
        self.look()

    def look(self) -> None:
        """Check whether enough can be read now."""
        size = 0
        for replica, offset in self._positions:
            log, watermark = replica.log, replica.high_watermark
            if not replica.leading or not log.start <= offset <= log.end:
                self._finish()
                return
            if offset < watermark:
                size += log.size_between(offset, watermark)
                if size >= self._min_bytes:
                    self._finish()
                    return

    def cancel(self) -> None:
        """Stop waiting without calling `done`."""
        self._done = None
        self._broker.cluster.kernel.cancel(self._timer)
        for replica, _ in self._positions:
            replica.readers.pop(self._number, None)

    def _finish(self) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done()


class Requests(ClusterCore):
    """Requests about records, answered as broker `b` would answer them."""

    records: RecordMaker
    _read_waits = 0
    _producer_ids = 0
    _transactional: dict[str, tuple[int, int]]

    def _leader(
        self, b: int, topic: str, partition: int, epoch: int = -1
    ) -> tuple[ErrorCode, Replica | None]:
        replica = self.brokers[b].replicas.get((topic, partition))
        if replica is None:
            if self.brokers[b].image.partition(topic, partition) is None:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
        if epoch >= 0 and epoch != replica.leader_epoch:
            older = epoch < replica.leader_epoch
            return (ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH), None
        if not replica.leading:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
        return ErrorCode.NONE, replica

    # --- appending

    def produce(
        self, b: int, topic: str, partition: int, batch: bytes, acks: int, timeout_ms: int, done: ProduceDone
    ) -> None:
        """Append a client's batches unchanged."""
        error, replica = self._writable(b, topic, partition, acks)
        if replica is None:
            done(ProduceResult(error))
            return
        error, batches = split(batch)
        if error is not ErrorCode.NONE:
            done(ProduceResult(error))
            return
        rules = self.controller.image.topics.get(topic)
        if len(batch) > int(self.settings.topic(rules.configs if rules else {}, "max.message.bytes")):
            done(ProduceResult(ErrorCode.MESSAGE_TOO_LARGE))
            return
        base = replica.log.end
        for head, data in batches:
            if head.attributes & TIMESTAMP_TYPE:
                done(ProduceResult(ErrorCode.INVALID_RECORD))
                return
            if head.producer_id >= 0:
                error, duplicate = replica.producer_states().check(head)
                if error is not ErrorCode.NONE:
                    done(ProduceResult(error))
                    return
                if duplicate >= 0:
                    last = duplicate + head.records
                    self._acknowledge(replica, duplicate, last, acks, timeout_ms, done)
                    return
            stream = replica.stream
            assert stream is not None
            old_end = replica.log.end
            stream.append_batch(data, head)
            replica.log.end = stream.end
            self.client_bytes += len(data)
            replica.broker.appended(replica, old_end, len(data))
        for follower in replica.followers:
            self.pair(b, follower).hurry()
        if self.client_bytes > self.world.client_bytes_max:
            evict(self)
        self._acknowledge(replica, base, replica.log.end, acks, timeout_ms, done)

    def append_run(
        self,
        b: int,
        topic: str,
        partition: int,
        count: int,
        first_us: int,
        step_us: int,
        record_bytes: int,
        producer: int,
        acks: int,
        timeout_ms: int,
        done: ProduceDone | None,
    ) -> None:
        """Append `count` simulated records, of which record i is created at first_us + i·step_us.

        `producer` comes from `register_producer`. `record_bytes` is the size of a complete record on disk.
        """
        error, replica = self._writable(b, topic, partition, acks)
        if replica is None:
            if done is not None:
                done(ProduceResult(error))
            return
        log, stream = replica.log, replica.stream
        assert stream is not None
        base = log.end
        stream.append_run(count, first_us, step_us, record_bytes, producer)
        log.end = stream.end
        replica.broker.appended(replica, base, count * record_bytes)
        if done is not None:
            self._acknowledge(replica, base, log.end, acks, timeout_ms, done)

    def _writable(self, b: int, topic: str, partition: int, acks: int) -> tuple[ErrorCode, Replica | None]:
        broker = self.brokers[b]
        if not broker.node.running:
            return ErrorCode.BROKER_NOT_AVAILABLE, None
        replica = broker.replicas.get((topic, partition))
        if replica is None or not replica.leading:
            return self._leader(b, topic, partition)
        if acks == -1 and len(replica.isr) < replica.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS, None
        return ErrorCode.NONE, replica

    def _acknowledge(
        self, replica: Replica, base: int, end: int, acks: int, timeout_ms: int, done: ProduceDone
    ) -> None:
        result = ProduceResult(ErrorCode.NONE, base, -1, replica.log.start)
        if acks != -1 or replica.high_watermark >= end:
            done(result)
            return
        wait = AckWait(end, result, done)
        wait.timer = replica.broker.after(timeout_ms * 1000, wait.expire)
        replica.waits.append(wait)

    def register_producer(self, client_id: str, keys: Keys | None) -> int:
        """Register a simulated producer, and return its number.

        `keys` returns the producer's keys for a partition (None: no keys).
        """
        return self.records.register(client_id, keys)

    def init_producer_id(self, b: int, transactional_id: str | None) -> ProducerIdResult:
        """Return a new producer id. A known transactional id keeps its producer id, with the next epoch."""
        if transactional_id is not None and transactional_id in self._transactional:
            producer_id, epoch = self._transactional[transactional_id]
            self._transactional[transactional_id] = producer_id, epoch + 1
            return ProducerIdResult(ErrorCode.NONE, producer_id, epoch + 1)
        producer_id = self._producer_ids
        self._producer_ids += 1
        if producer_id % PRODUCER_IDS_PER_BLOCK == 0 and not self.controller.ready():
            self._producer_ids -= 1
            return ProducerIdResult(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            )  # There is no controller to get a block of ids from.
        if transactional_id is not None:
            self._transactional[transactional_id] = producer_id, 0
            if len(self._transactional) > TRANSACTIONAL_IDS_MAX:
                del self._transactional[next(iter(self._transactional))]
        return ProducerIdResult(ErrorCode.NONE, producer_id, 0)

    # --- reading

    def read(
        self,
        b: int,
        topic: str,
        partition: int,
        offset: int,
        max_bytes: int,
        leader_epoch: int = -1,
        read_committed: bool = False,
    ) -> ReadResult:
        """Answer a consumer's fetch with complete batches below the high watermark.

        If there is any batch, at least one is returned. Without transactions, the last stable offset is the
        high watermark, `read_committed` or not.
        """
        error, replica = self._leader(b, topic, partition, leader_epoch)
        if replica is None:
            return ReadResult(error)
        log, watermark = replica.log, replica.high_watermark
        if not log.start <= offset <= log.end:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, watermark, watermark, log.start)
        data = b""
        if offset < watermark:
            data = self.records.read(topic, partition, log, offset, watermark, max_bytes)
        return ReadResult(ErrorCode.NONE, watermark, watermark, log.start, data)

    def take(
        self, b: int, topic: str, partition: int, offset: int, max_records: int, topic_id: bytes | None = None
    ) -> TakeResult:
        """Read as a simulated consumer: up to `max_records` below the high watermark, without their bytes.

        The error is UNKNOWN_TOPIC_ID if the topic that the broker knows by this name does not have the id
        `topic_id`.
        """
        error, replica = self._leader(b, topic, partition)
        if replica is None:
            return TakeResult(error)
        if topic_id is not None and topic_id != replica.topic_id:
            return TakeResult(ErrorCode.UNKNOWN_TOPIC_ID)
        log, watermark = replica.log, replica.high_watermark
        if not log.start <= offset <= log.end:
            return TakeResult(ErrorCode.OFFSET_OUT_OF_RANGE, -1, watermark, log.start)
        after = max(offset, min(watermark, offset + max_records))
        size = log.size_between(offset, after) if after > offset else 0
        last_us = log.time_at(after - 1) if after > offset else -1
        return TakeResult(ErrorCode.NONE, after, watermark, log.start, size, last_us)

    def client_batches(self, b: int, topic: str, partition: int) -> Iterator[tuple[int, bytes]]:
        """Yield (base offset, original bytes) of every client batch in broker b's own log."""
        replica = self.brokers[b].replicas.get((topic, partition))
        if replica is not None:
            for base, batch, _ in replica.log.batches(replica.log.start, replica.log.end):
                yield base, batch

    def when_readable(
        self, b: int, positions: Sequence[tuple[str, int, int]], min_bytes: int, max_wait_ms: int, done: Done
    ) -> ReadWait:
        """Call `done` when `min_bytes` can be read from `positions`, a leader changed, or time ran out."""
        broker = self.brokers[b]
        self._read_waits += 1
        found = [(broker.replicas.get((topic, partition)), offset) for topic, partition, offset in positions]
        known = [(replica, offset) for replica, offset in found if replica is not None]
        wait = ReadWait(broker, self._read_waits, known, max(1, min_bytes), done)
        wait.start(max_wait_ms)
        return wait

    def cancel(self, handle: ReadWait) -> None:
        """End a long poll without an answer."""
        handle.cancel()

    def list_offset(
        self, b: int, topic: str, partition: int, timestamp: int, replica_id: int = -1, leader_epoch: int = -1
    ) -> OffsetResult:
        """Answer ListOffsets for one partition.

        Timestamp −2 asks for the earliest offset, −1 for the latest, −3 for the record with the latest
        timestamp. Any other timestamp (ms) asks for the first record of that time or later. With `replica_id`
        −2 (debugging), any replica answers, and its latest offset is its own log end.
        """
        debugging = replica_id == DEBUGGING_REPLICA
        error, replica = self._leader(b, topic, partition, leader_epoch)
        if replica is None and debugging and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            replica = self.brokers[b].replicas.get((topic, partition))
        if replica is None:
            return OffsetResult(error)
        log = replica.log
        if timestamp == EARLIEST:
            return OffsetResult(ErrorCode.NONE, -1, log.start, log.epoch_at(log.start))
        stop = log.end if debugging else replica.high_watermark
        behind = not debugging and replica.leading and replica.high_watermark < replica.epoch_start
        if timestamp == LATEST:
            if behind:
                return OffsetResult(ErrorCode.OFFSET_NOT_AVAILABLE)  # KIP-207
            return OffsetResult(ErrorCode.NONE, -1, stop, replica.leader_epoch if stop else -1)
        if timestamp == MAX_TIMESTAMP:
            offset, time_us = log.latest(stop)
        else:
            offset, time_us = log.first_at_or_after(timestamp * 1000, stop)
            if offset < 0 and behind:
                return OffsetResult(ErrorCode.OFFSET_NOT_AVAILABLE)
        if offset < 0:
            return OffsetResult(ErrorCode.NONE)
        return OffsetResult(ErrorCode.NONE, time_us // 1000, offset, log.epoch_at(offset))

    def epoch_end(self, b: int, topic: str, partition: int, epoch: int) -> EpochEndResult:
        """Answer OffsetForLeaderEpoch with the end of the largest epoch up to `epoch` in the leader's log."""
        error, replica = self._leader(b, topic, partition)
        if replica is None:
            return EpochEndResult(error)
        if epoch == replica.leader_epoch:
            return EpochEndResult(ErrorCode.NONE, epoch, replica.log.end)
        if epoch > replica.leader_epoch:
            return EpochEndResult(ErrorCode.NONE)
        return EpochEndResult(ErrorCode.NONE, *replica.log.end_of_epoch(epoch))
