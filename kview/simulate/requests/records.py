"""Produce, Fetch, ListOffsets and related requests, answered from what one broker believes and stores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kview.simulate.batch_check import NotABatch, NotAFrame, check
from kview.simulate.brokers.ack_wait import AckWait
from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.process import BrokerProcess
from kview.simulate.brokers.replica import Replica
from kview.simulate.brokers.retention import Retention
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.kernel import Timer
from kview.simulate.metadata import TopicPartition
from kview.simulate.producer_snapshots import NO_OFFSET
from kview.simulate.reading import Keys, RecordMaker
from kview.simulate.record_check import Refused
from kview.simulate.records import (
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchHeader,
    Marker,
    Sender,
    encode_marker,
    end_of,
    header,
    transactional,
)
from kview.simulate.requests.batch_rules import BatchRules
from kview.simulate.requests.offset_lookup import latest_of, offset_of
from kview.simulate.results import (
    EpochEndResult,
    OffsetResult,
    ProduceResult,
    ProducerIdResult,
    ReadResult,
    TakeResult,
)
from kview.simulate.setting import LONG_MAX
from kview.simulate.stream import BATCH_OVERHEAD_BYTES, Aborted, NewRun, Run

DEBUGGING_REPLICA = -2
PRODUCER_IDS_PER_BLOCK = 1000
NO_TIMEOUT_MS = -1
"""A coordinator waits until its append is committed, however long that takes, or the broker leads no more."""

ProduceDone = Callable[[ProduceResult], None]
ReadDone = Callable[[], None]


class EndedTransaction(NamedTuple):
    """A transaction of a producer that a coordinator has decided to end."""

    producer_id: int
    producer_epoch: int
    marker: Marker


Admit = Callable[[int, int, Callable[[ErrorCode], None]], None]
"""Asks for a producer id and epoch whether a partition is part of their transaction. The answer is an error
code."""


def refuse(producer_id: int, producer_epoch: int, then: Callable[[ErrorCode], None]) -> None:
    """Answer for somebody who has no transaction."""
    then(ErrorCode.INVALID_TXN_STATE)


def nobody(result: ProduceResult) -> None:
    """Take a result for which nobody waits."""


class Acks(NamedTuple):
    """How an append is acknowledged.

    `required` is Kafka's acks: 0 or 1 for the leader alone, −1 for all replicas in the ISR. `done` is called
    with the result, which is an error if that takes longer than `timeout_ms`.
    """

    required: int
    timeout_ms: int
    done: ProduceDone = nobody


class Reader(NamedTuple):
    """A consumer that fetches. If it is `committed`, it reads up to the last stable offset only. `rack` is
    where it is, if it says so."""

    follower_too: bool = False
    committed: bool = False
    rack: str = ""


ANY_READER = Reader()


class ReadWait:
    """A long poll, that is, a fetch that waits for records. Source: kafka.server.DelayedFetch.

    `done` is called once, when enough can be read, when a leader or a log has changed, or when the time is
    over.
    """

    __slots__ = ("_committed", "_done", "_led", "_min_bytes", "_number", "_positions", "_process", "_timer")

    def __init__(
        self,
        process: BrokerProcess,
        number: int,
        positions: Sequence[tuple[Replica, int]],
        min_bytes: int,
        done: ReadDone,
        committed: bool,
    ) -> None:
        self._process = process
        self._number = number
        self._positions = positions
        self._led = [replica.leading for replica, _ in positions]
        self._min_bytes = min_bytes
        self._committed = committed
        self._done: ReadDone | None = done
        self._timer: Timer | None = None

    def start(self, max_wait_ms: int) -> None:
        """Start waiting, or finish immediately if enough can be read."""
        self._timer = self._process.after(max_wait_ms * 1000, self._finish)
        for replica, _ in self._positions:
            replica.readers[self._number] = self.look
        self.look()

    def look(self) -> None:
        """Finish if enough can be read now, or if a replica has begun or ceased to lead or no longer contains
        the offset."""
        size = 0
        for (replica, offset), led in zip(self._positions, self._led, strict=True):
            log = replica.log
            watermark = replica.last_stable() if self._committed else replica.high_watermark
            if replica.leading is not led or not log.start <= offset <= log.end:
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
        self._process.kernel.cancel(self._timer)
        for replica, _ in self._positions:
            replica.readers.pop(self._number, None)

    def _finish(self) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done()


class RecordRequests:
    """Requests about records, answered as broker `b` would answer them."""

    def __init__(
        self,
        brokers: Mapping[int, Broker],
        quorum: Quorum,
        rules: BatchRules,
        retention: Retention,
        maker: RecordMaker,
        sends_to_rack: bool = False,
    ) -> None:
        self._brokers = brokers
        self._quorum = quorum
        self._rules = rules
        self._retention = retention
        self._maker = maker
        self._sends_to_rack = sends_to_rack
        self._read_waits = 0
        self._producer_ids = 0
        self._marker_listeners: list[Callable[[int, TopicPartition, int, bool], None]] = []

    def _leader(
        self, b: int, topic: str, partition: int, epoch: int = -1, follower_too: bool = False
    ) -> tuple[ErrorCode, Replica | None]:
        replica = self._brokers[b].replicas.get((topic, partition))
        if replica is None:
            return self._brokers[b].refusal((topic, partition)), None
        if epoch >= 0 and epoch != replica.leader_epoch:
            older = epoch < replica.leader_epoch
            return (ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH), None
        if not replica.leading and not follower_too:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
        return ErrorCode.NONE, replica

    # --- appending

    def produce(
        self, b: int, topic: str, partition: int, batch: bytes, acks: Acks, admit: Admit = refuse
    ) -> None:
        """Append a client's batch, and acknowledge it as `acks` asks for. Nothing is appended in part.

        The first batch of a transaction in this partition is appended when `admit` says that the partition
        is part of it. As in Kafka, that comes after the frame is checked and before the records are, so that
        a partition may be part of a transaction without a record.
        """
        error, replica = self._writable(b, topic, partition, acks.required)
        if replica is None:
            start = -1
            if error is ErrorCode.NOT_ENOUGH_REPLICAS:
                start = self._brokers[b].replicas[topic, partition].log.start
            acks.done(ProduceResult(error, log_start_offset=start))
            return
        refusal, data = None, batch
        try:
            head, data = check(batch, self._rules.of(b, topic), f"{topic}-{partition}")
        except Refused as refused:
            start = -1 if isinstance(refused, NotABatch) else replica.log.start
            refusal = ProduceResult(refused.code, -1, -1, start, refused.message, refused.record_errors)
            if isinstance(refused, NotAFrame) or not transactional(batch):
                acks.done(refusal)
                return
            head = header(batch)

        is_tracked = head.attributes & TRANSACTIONAL and head.producer_id >= 0
        if not is_tracked or self._goes_on(replica, head):
            if refusal is None:
                self._append_batch(b, replica, head, data, acks)
            else:
                acks.done(refusal)
            return

        key = (topic, partition)
        guard = self.guard(b, key, head.producer_id)

        def admitted(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                error, _ = self._writable(b, topic, partition, acks.required)
            if error is ErrorCode.NONE and self.guard(b, key, head.producer_id) != guard:
                error = ErrorCode.INVALID_TXN_STATE  # The transaction has ended in the meantime.
            if error is ErrorCode.NONE and refusal is None:
                self._append_batch(b, replica, head, data, acks)
            else:
                acks.done(ProduceResult(error) if error or refusal is None else refusal)

        admit(head.producer_id, head.producer_epoch, admitted)

    def guard(self, b: int, key: TopicPartition, producer_id: int) -> tuple[int, int] | None:
        """Return what changes if a producer's transaction ends in a partition, None if broker b does not lead
        it (VerificationGuard, KIP-890)."""
        replica = self._brokers[b].replicas.get(key)
        if replica is None or not replica.leading:
            return None
        return replica.leader_epoch, replica.producer_states().marker_of(producer_id)

    def _goes_on(self, replica: Replica, head: BatchHeader) -> bool:
        """Return whether the batch belongs to a transaction that is open in the partition already."""
        states = replica.producer_states()
        known, _ = states.epoch_of(head.producer_id)
        return known == head.producer_epoch and states.open_from(head.producer_id) != NO_OFFSET

    def write_marker(
        self, b: int, key: TopicPartition, ended: EndedTransaction, done: Callable[[ErrorCode], None]
    ) -> None:
        """Append the marker that ends a producer's transaction in a partition, with acks=all."""
        error, replica = self._writable(b, *key, -1)
        if replica is None:
            done(error)
            return
        producer_id, epoch, marker = ended
        if producer_id < 0 or epoch < 0:
            done(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka, which cannot make a batch of that
            return
        states = replica.producer_states()
        known_epoch, coordinator_epoch = states.epoch_of(producer_id)
        if epoch < known_epoch:
            done(ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        if marker.coordinator_epoch < coordinator_epoch:
            done(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
            return
        batch = encode_marker(marker, producer_id, epoch, self._brokers[b].kernel.now_us // 1000)
        start, base = states.open_from(producer_id), replica.log.end
        stream = replica.stream
        assert stream is not None
        self._store(b, replica, header(batch), batch)
        if start != NO_OFFSET and not marker.is_commit:
            stable = replica.producer_states().undecided_from(base + 1)
            stream.aborted.append(Aborted(producer_id, start, base, stable))

        def written(result: ProduceResult) -> None:
            if result.error_code is ErrorCode.NONE:
                for listener in self._marker_listeners:
                    listener(b, key, producer_id, marker.is_commit)
            done(result.error_code)

        self._acknowledge(b, replica, base, replica.log.end, Acks(-1, NO_TIMEOUT_MS, written))

    def on_marker(self, listener: Callable[[int, TopicPartition, int, bool], None]) -> None:
        """Call `listener(broker, partition, producer id, whether it commits)` when a marker is committed."""
        self._marker_listeners.append(listener)

    def append_own(self, b: int, key: TopicPartition, batch: bytes, done: ProduceDone) -> None:
        """Append a batch of the broker's own coordinator with acks=all (AppendOrigin.COORDINATOR).

        Of its producer only the epoch is checked: it has no sequence numbers.
        """
        error, replica = self._writable(b, *key, -1)
        head = header(batch)
        if replica is not None and head.producer_id >= 0:
            known_epoch, _ = replica.producer_states().epoch_of(head.producer_id)
            if head.producer_epoch < known_epoch:
                error, replica = ErrorCode.INVALID_PRODUCER_EPOCH, None
        if replica is None:
            done(ProduceResult(error))
            return
        base = replica.log.end
        self._store(b, replica, head, batch)
        self._acknowledge(b, replica, base, replica.log.end, Acks(-1, NO_TIMEOUT_MS, done))

    def delete_own(self, b: int, key: TopicPartition, offset: int) -> None:
        """Delete what the broker's own coordinator no longer needs: all records before an offset."""
        replica = self._brokers[b].replicas.get(key)
        if replica is not None and replica.leading and offset > replica.log.start:
            self._retention.move_start(replica, offset)

    def _append_batch(self, b: int, replica: Replica, head: BatchHeader, data: bytes, acks: Acks) -> None:
        if head.producer_id >= 0 or replica.producers is not None:
            error, duplicate = replica.producer_states().check(head)
            if error is not ErrorCode.NONE:
                acks.done(ProduceResult(error, log_start_offset=replica.log.start))
                return
            if duplicate is not None:
                base, time_ms = duplicate.base_offset, duplicate.time_ms
                self._acknowledge(b, replica, base, base + head.records, acks, time_ms)
                return
        base = replica.log.end
        self._store(b, replica, head, data)
        append_time_ms = head.max_time_ms if head.attributes & TIMESTAMP_TYPE else -1
        self._acknowledge(b, replica, base, replica.log.end, acks, append_time_ms)

    def _store(self, b: int, replica: Replica, head: BatchHeader, data: bytes) -> None:
        """Append a batch to a leader's log."""
        stream = replica.stream
        assert stream is not None
        base = replica.log.end
        stream.append_batch(data, head)
        replica.log.end = stream.end
        self._retention.client_bytes += len(data) + BATCH_OVERHEAD_BYTES
        broker = self._brokers[b]
        broker.appended(replica, base, len(data))
        for follower in replica.followers:
            broker.fetchers[follower].hurry()
        if self._retention.client_bytes > self._retention.client_bytes_max:
            self._retention.evict()

    def append_run(self, b: int, topic: str, partition: int, run: NewRun, acks: Acks) -> None:
        """Append simulated records, and acknowledge them as `acks` asks for."""
        error, replica = self._writable(b, topic, partition, acks.required)
        if replica is None:
            acks.done(ProduceResult(error))
            return
        if not self._maker.has_keys(run.producer) and self._rules.of(b, topic).compacted:
            acks.done(ProduceResult(ErrorCode.INVALID_RECORD))
            return
        log, stream = replica.log, replica.stream
        assert stream is not None
        base = log.end
        stream.append_run(*run)
        log.end = stream.end
        self._brokers[b].appended(replica, base, run.records * run.record_bytes)
        self._acknowledge(b, replica, base, log.end, acks)

    def _writable(self, b: int, topic: str, partition: int, acks: int) -> tuple[ErrorCode, Replica | None]:
        broker = self._brokers[b]
        if not broker.node.running:
            return ErrorCode.BROKER_NOT_AVAILABLE, None
        replica = broker.replicas.get((topic, partition))
        if replica is None or not replica.leading:
            return self._leader(b, topic, partition)
        if acks == -1 and len(replica.isr) < replica.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS, None
        if broker.append_fails(replica):
            return ErrorCode.KAFKA_STORAGE_ERROR, None
        return ErrorCode.NONE, replica

    def _acknowledge(
        self, b: int, replica: Replica, base: int, end: int, acks: Acks, append_time_ms: int = -1
    ) -> None:
        result = ProduceResult(ErrorCode.NONE, base, append_time_ms, replica.log.start)
        broker = self._brokers[b]
        if broker.node.disk_us or broker.disk_busy_until_us > broker.kernel.now_us:
            acks = acks._replace(done=self._after_disk(broker, acks.done))
        if acks.required != -1 or replica.high_watermark >= end:
            acks.done(result)
            return
        wait = AckWait(end, result, acks.done)
        if acks.timeout_ms != NO_TIMEOUT_MS:
            wait.timer = self._brokers[b].process.tick(acks.timeout_ms * 1000, wait.expire)
        replica.waits.append(wait)

    def _after_disk(self, broker: Broker, done: ProduceDone) -> ProduceDone:
        """Return `done`, called once a slow disk has written what was appended, in the order of appends.

        An error does not wait for the disk. A process that hangs acknowledges nothing.
        """

        def answer(result: ProduceResult) -> None:
            if result.error_code is not ErrorCode.NONE:
                done(result)
                return
            written_us = broker.kernel.now_us + broker.node.disk_us
            broker.disk_busy_until_us = max(broker.disk_busy_until_us, written_us)
            if broker.disk_busy_until_us > broker.kernel.now_us:
                wait = AckWait(result.base_offset, result, done)
                broker.disk_waits[wait] = None
                broker.process.at(broker.disk_busy_until_us, written, wait)
            else:
                done(result)

        def written(wait: AckWait) -> None:
            del broker.disk_waits[wait]
            wait.answer(wait.result)

        return answer

    def register_producer(self, client_id: str, keys: Keys | None) -> int:
        """Register a simulated producer, and return its number.

        `keys` returns the keys that the producer uses in a partition. If `keys` is None, the records have no
        keys.
        """
        return self._maker.register(client_id, keys)

    def transactional_batch(self, topic: str, partition: int, run: Run, sender: Sender) -> bytes:
        """Return simulated records as a batch that a transactional producer sends with `produce`."""
        return self._maker.transactional(topic, partition, run, sender)

    def init_producer_id(self, b: int) -> ProducerIdResult:
        """Return a producer id that was never given before."""
        producer_id = self._producer_ids
        if producer_id % PRODUCER_IDS_PER_BLOCK == 0 and not self._quorum.reached_by(b):
            # There is no controller to get a block of ids from.
            return ProducerIdResult(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self._producer_ids += 1
        return ProducerIdResult(ErrorCode.NONE, producer_id, 0)

    @property
    def producer_ids(self) -> int:
        """How many ids of producers were given."""
        return self._producer_ids

    def restore_producer_ids(self, given: int) -> None:
        """Give none of the first ids again, nor any other of the last block of them, as in Kafka."""
        self._producer_ids = -(-(given + 1) // PRODUCER_IDS_PER_BLOCK) * PRODUCER_IDS_PER_BLOCK

    # --- reading

    def read(
        self,
        b: int,
        topic: str,
        partition: int,
        offset: int,
        max_bytes: int,
        reader: Reader = ANY_READER,
        leader_epoch: int = -1,
        last_epoch: int = -1,
    ) -> ReadResult:
        """Answer a consumer's fetch with complete batches below the high watermark.

        A broker that does not lead answers with what it knows to be committed if the reader reads from
        followers, too, else with an error.

        If there is any batch, at least one is returned, even if it exceeds `max_bytes`. If the reader is
        `committed`, the answer ends at the last stable offset and names the aborted transactions. A reader
        whose `last_epoch` ended before `offset` in this log gets no records, nor does one that has a replica
        in its rack, if the brokers' replica.selector.class says so (KIP-392).
        """
        error, replica = self._leader(b, topic, partition, leader_epoch, reader.follower_too)
        if replica is None:
            return ReadResult(error)
        log, watermark = replica.log, replica.high_watermark
        if self._sends_to_rack and reader.rack and replica.leading:
            preferred = self._preferred(self._brokers[b], replica, offset, reader.rack)
            if preferred >= 0:
                stable = replica.last_stable()
                return ReadResult(ErrorCode.NONE, watermark, stable, log.start, preferred=preferred)
        if last_epoch >= 0:
            epoch, end = log.end_of_epoch(last_epoch)
            if log.spans and log.spans[-1].epoch == last_epoch:
                epoch, end = last_epoch, log.end
            if end < 0 or offset < log.start:
                return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < last_epoch or end < offset:
                stable = replica.last_stable()
                return ReadResult(ErrorCode.NONE, watermark, stable, log.start, diverging=(epoch, end))
        if not log.start <= offset <= log.end:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE)
        stable = replica.last_stable()
        stop = stable if reader.committed else watermark
        data = b""
        aborted: tuple[tuple[int, int], ...] = ()
        if offset < stop:
            data = self._maker.read(topic, partition, log, offset, stop, max_bytes)
            if reader.committed and log.is_transactional:
                end = end_of(data)
                aborted = tuple((one.producer_id, one.first) for one in log.aborted(offset, end))
        return ReadResult(ErrorCode.NONE, watermark, stable, log.start, data, aborted)

    def _preferred(self, broker: Broker, leader: Replica, offset: int, rack: str) -> int:
        """Return the in-sync replica in a rack that reaches furthest, if it reaches `offset`, or −1.

        Source: ReplicaManager.findPreferredReadReplica and RackAwareReplicaSelector.
        """
        image, end, now_us = broker.image, leader.log.end, broker.kernel.now_us
        if broker.node.rack == rack:
            return -1
        live = image.live_brokers()
        candidates = [
            (follower.log_end, 0 if follower.log_end == end else follower.caught_up_us - now_us, number)
            for number, follower in leader.followers.items()
            if number in leader.isr
            and number in live
            and image.brokers[number].rack == rack
            and leader.log.start <= offset <= follower.log_end
        ]
        return max(candidates)[2] if candidates else -1

    def take(
        self,
        b: int,
        topic: str,
        partition: int,
        offset: int,
        max_records: int,
        topic_id: bytes | None = None,
        committed: bool = False,
    ) -> TakeResult:
        """Return how far a simulated consumer reads: up to `max_records` below the high watermark, without
        bytes.

        The error is UNKNOWN_TOPIC_ID if broker b's topic of this name does not have the id `topic_id`. If
        `committed`, it reads up to the last stable offset, and skips what was aborted.
        """
        error, replica = self._leader(b, topic, partition)
        if replica is None:
            return TakeResult(error)
        if topic_id is not None and topic_id != replica.topic_id:
            return TakeResult(ErrorCode.UNKNOWN_TOPIC_ID)
        log, watermark = replica.log, replica.high_watermark
        if not log.start <= offset <= log.end:
            return TakeResult(ErrorCode.OFFSET_OUT_OF_RANGE, -1, watermark, log.start)
        stable = replica.last_stable()
        after = max(offset, min(stable if committed else watermark, offset + max_records))
        size = log.size_between(offset, after) if after > offset else 0
        last_us = log.time_at(after - 1) if after > offset else -1
        skipped = log.control_records(offset, after) + log.missing_records(offset, after)
        if committed:
            skipped += log.aborted_records(offset, after)
        records = after - offset - skipped
        return TakeResult(ErrorCode.NONE, after, watermark, log.start, size, last_us, stable, records)

    def batch_bounds(
        self, b: int, topic: str, partition: int, offset: int, stop: int, max_bytes: int
    ) -> list[tuple[int, int]]:
        """Return (first, last) offset of the batches in broker b's own log from the one with `offset` up to
        `stop`, of at least one and at most `max_bytes`."""
        replica = self._brokers[b].replicas.get((topic, partition))
        return [] if replica is None else self._maker.bounds(replica.log, offset, stop, max_bytes)

    def read_span(self, b: int, topic: str, partition: int, offset: int, stop: int) -> bytes:
        """Return the batches in broker b's own log from the one with `offset` up to `stop`."""
        replica = self._brokers[b].replicas.get((topic, partition))
        if replica is None:
            return b""
        return self._maker.read(topic, partition, replica.log, offset, stop, LONG_MAX)

    def aborted_records(self, b: int, topic: str, partition: int, start: int, stop: int) -> int:
        """Return how many records of aborted transactions are in [start, stop), below the last stable
        offset."""
        replica = self._brokers[b].replicas.get((topic, partition))
        return 0 if replica is None else replica.log.aborted_records(start, stop)

    def client_batches(self, b: int, topic: str, partition: int) -> Iterator[tuple[int, bytes]]:
        """Yield (base offset, original bytes) of every client batch in broker b's own log."""
        replica = self._brokers[b].replicas.get((topic, partition))
        if replica is not None:
            for base, batch, _ in replica.log.batches(replica.log.start, replica.log.end):
                yield base, batch

    def when_readable(
        self,
        b: int,
        positions: Sequence[tuple[str, int, int]],
        min_bytes: int,
        max_wait_ms: int,
        done: ReadDone,
        committed: bool = False,
    ) -> ReadWait:
        """Call `done` when `min_bytes` can be read from `positions`, a leader changed, or time ran out."""
        broker = self._brokers[b]
        self._read_waits += 1
        found = [(broker.replicas.get((topic, partition)), offset) for topic, partition, offset in positions]
        known = [(replica, offset) for replica, offset in found if replica is not None]
        wait = ReadWait(broker.process, self._read_waits, known, max(1, min_bytes), done, committed)
        wait.start(max_wait_ms)
        return wait

    def cancel(self, handle: ReadWait) -> None:
        """End a long poll without an answer."""
        handle.cancel()

    def list_offset(
        self,
        b: int,
        topic: str,
        partition: int,
        timestamp: int,
        replica_id: int = -1,
        leader_epoch: int = -1,
        committed: bool = False,
    ) -> OffsetResult:
        """Answer ListOffsets for one partition.

        Timestamp −2 asks for the earliest offset, −1 for the latest, −3 for the record with the latest
        timestamp. Any other timestamp (ms) asks for the first record of that time or later. With `replica_id`
        −2 (debugging), any replica answers, and its latest offset is its own log end. If `committed`, only
        what is below the last stable offset counts.
        """
        debugging = replica_id == DEBUGGING_REPLICA
        error, replica = self._leader(b, topic, partition, leader_epoch)
        if replica is None and debugging and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            replica = self._brokers[b].replicas.get((topic, partition))
        return OffsetResult(error) if replica is None else offset_of(replica, timestamp, debugging, committed)

    def latest_offsets(
        self, b: int, debugging: bool, committed: bool
    ) -> Callable[[str, int], tuple[int, int] | None]:
        """Return a function that does the same as `list_offset` for the latest offset, but makes no objects.

        It maps a topic and a partition to offset and leader epoch, or to None if `list_offset` has to say why
        not.
        """
        broker = self._brokers[b]

        def latest(topic: str, partition: int) -> tuple[int, int] | None:
            replica = broker.replicas.get((topic, partition))
            if replica is None or not (debugging or replica.leading):
                return None
            return latest_of(replica, debugging, committed)

        return latest

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
