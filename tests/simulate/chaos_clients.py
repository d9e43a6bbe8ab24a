"""Clients for the chaos tests, which write, read and commit, and remember what the cluster has promised
them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from kafka.record.default_records import DefaultRecordBatchBuilder

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import CommitRequest, CommitResult, OffsetToCommit
from kview.simulate.metadata import TopicPartition
from kview.simulate.records import decode_batch, header
from kview.simulate.requests.records import Acks
from kview.simulate.results import ProduceResult
from kview.simulate.world import INTERNAL_TOPICS
from tests.simulate.client_batches import recompressed

KEY = b"chaos"
TIMEOUT_MS = 3_000
READ_BYTES = 4_000
CODECS = (0, 1, 2, 3, 4)
"""No compression, gzip, Snappy, LZ4 and zstd, by their numbers in a batch."""

EARLIEST = -2

REFUSALS = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)
"""Errors that a broker returns to an idempotent producer if batches are missing in the broker's log."""

Place = tuple[bytes, int]
"""A topic id and a partition. They identify the partition of a record even if a new topic has the same
name."""


@dataclass(slots=True, eq=False)
class Batch:
    """A batch sent to a partition. At the end, `answers` must contain exactly one answer."""

    topic: str
    place: Place
    values: list[bytes]
    acks: int
    data: bytes
    answers: list[ProduceResult] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """Whether the cluster must not lose the batch: it was acknowledged with acks=all."""
        return (
            self.acks == -1
            and bool(self.answers)
            and all(a.error_code is ErrorCode.NONE for a in self.answers)
        )


class Writer:
    """A producer of real batches. An idempotent producer sends a batch again until it is acknowledged."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        random: Random,
        acks: int,
        idempotent: bool = False,
        codecs: tuple[int, ...] = (0,),
    ) -> None:
        self.name = name
        self.sent: list[Batch] = []
        self.refusals: list[ErrorCode] = []
        self.idempotent = idempotent
        self._cluster = cluster
        self._random = random
        self._acks = acks
        self._codecs = codecs
        self._producer_id = -1
        self._sequences: dict[Place, int] = {}
        self._open: dict[Place, Batch] = {}
        """The latest batch of each partition that is not acknowledged yet."""
        self._epochs: dict[Place, int] = {}
        self._number = 0

    def write(self, broker: int, topic: str, partition: int) -> None:
        """Send the next batch to this broker, or send the unacknowledged batch again."""
        found = self._cluster.image(broker).topics.get(topic)
        if found is None or partition >= len(found.partitions):
            return
        place = found.topic_id, partition
        if not self.idempotent:
            self._send(broker, self._batch(topic, place, -1, -1))
            return
        epoch = found.partitions[partition].leader_epoch
        if epoch < self._epochs.get(place, -1):
            return  # a client never returns to a leader of an older epoch, which lacks its latest batches
        self._epochs[place] = epoch
        if self._producer_id < 0:
            self._producer_id = self._cluster.records.init_producer_id(broker).producer_id
            if self._producer_id < 0:
                return
        latest = self._open.get(place)
        if latest is None:
            latest = self._batch(topic, place, self._producer_id, self._sequences.get(place, 0))
        elif not latest.answers:
            return
        elif latest.answers[-1].error_code is ErrorCode.NONE:
            sequence = self._sequences[place] = self._sequences.get(place, 0) + len(latest.values)
            latest = self._batch(topic, place, self._producer_id, sequence)
        else:
            latest = Batch(topic, place, latest.values, latest.acks, latest.data)
        self._open[place] = latest
        self._send(broker, latest)

    def _batch(self, topic: str, place: Place, producer_id: int, sequence: int) -> Batch:
        builder = DefaultRecordBatchBuilder(
            2, 0, False, producer_id, 0 if producer_id >= 0 else -1, sequence, 100_000
        )
        values: list[bytes] = []
        for delta in range(self._random.randrange(1, 6)):
            self._number += 1
            value = f"{place[0].hex()} {place[1]} {self.name} {self._number}".encode()
            values.append(value)
            builder.append(delta, self._cluster.kernel.now_us // 1000, KEY, value, [])
        codec = self._codecs[self._number % len(self._codecs)]
        return Batch(topic, place, values, self._acks, recompressed(bytes(builder.build()), codec))

    def _send(self, broker: int, batch: Batch) -> None:
        self.sent.append(batch)

        def answer(result: ProduceResult) -> None:
            batch.answers.append(result)
            if result.error_code in REFUSALS:
                self.refusals.append(result.error_code)
                self._producer_id = -1
                self._sequences.clear()
                self._open.clear()

        self._cluster.records.produce(
            broker, batch.topic, batch.place[1], batch.data, Acks(batch.acks, TIMEOUT_MS, answer)
        )


class Clients:
    """Writers, a reader and a tool that commits, all active on all topics except the internal ones."""

    def __init__(
        self,
        cluster: Cluster,
        random: Random,
        loses_records: bool,
        codecs: tuple[int, ...] = (1,),
    ) -> None:
        self._cluster = cluster
        self._random = random
        self._loses_records = loses_records
        self._read: dict[tuple[bytes, int, int], bytes] = {}
        self._commits: dict[tuple[str, Place], list[tuple[int, list[ErrorCode]]]] = {}
        self.writers = [
            Writer("idempotent", cluster, random, acks=-1, idempotent=True),
            Writer("all", cluster, random, acks=-1, codecs=codecs),
            Writer("one", cluster, random, acks=1),
            Writer("none", cluster, random, acks=0),
        ]

    def act(self) -> None:
        """Let each client act once."""
        for writer in self.writers:
            self._at_a_leader(writer.write)
        self._at_a_leader(self.read)
        self._commit()

    def _running(self) -> list[int]:
        cluster = self._cluster
        return [b for b in cluster.broker_ids() if cluster.nodes.serves(b)]

    def _pick(self) -> tuple[TopicPartition, int] | None:
        """Return a partition and its leader according to some running broker, whose metadata may be out of
        date."""
        running = self._running()
        if not running:
            return None
        image = self._cluster.image(self._random.choice(running))
        keys = [(key, p.leader) for key, p in image.all_partitions() if key[0] not in INTERNAL_TOPICS]
        return self._random.choice(keys) if keys else None

    def _at_a_leader(self, act: Callable[[int, str, int], None]) -> None:
        picked = self._pick()
        if picked is not None and picked[1] in self._running():
            act(picked[1], *picked[0])

    # --- reading

    def read(self, broker: int, topic: str, partition: int) -> None:
        """Read from somewhere in the partition, and check that every record belongs to it and has not
        changed."""
        start = self._cluster.records.list_offset(broker, topic, partition, -2)
        end = self._cluster.records.list_offset(broker, topic, partition, -1)
        if start.error_code or end.error_code or end.offset <= start.offset:
            return
        self._read_at(broker, topic, partition, self._random.randrange(start.offset, end.offset))

    def _read_at(self, broker: int, topic: str, partition: int, offset: int) -> None:
        result = self._cluster.records.read(broker, topic, partition, offset, READ_BYTES)
        if result.error_code is not ErrorCode.NONE:
            return
        topic_id = self._cluster.image(broker).topics[topic].topic_id
        now_ms = self._cluster.kernel.now_us // 1000
        for at, key, value, timestamp_ms in records_of(result.records):
            assert timestamp_ms <= now_ms
            if key == KEY:
                assert value.startswith(f"{topic_id.hex()} {partition} ".encode()), (
                    f"{topic}-{partition} at {broker}: {value!r} of another topic or partition"
                )
            if not self._loses_records and at < result.high_watermark:
                known = self._read.setdefault((topic_id, partition, at), value)
                assert known == value, f"{topic}-{partition}: record {at} changed"

    # --- committing

    def _commit(self) -> None:
        """Commit an offset without being a member of the group. The offsets committed for one partition only
        rise."""
        picked, running = self._pick(), self._running()
        group = self._random.choice(["tool-1", "tool-2", "tool-3"])
        if picked is None:
            return
        coordinator = self._cluster.groups(self._random.choice(running)).find(group)
        if coordinator not in running:
            return
        (topic, partition), _ = picked
        found = self._cluster.image(coordinator).topics.get(topic)
        if found is None:
            return
        attempts = self._commits.setdefault((group, (found.topic_id, partition)), [])
        codes: list[ErrorCode] = []
        offset = len(attempts) + 1
        attempts.append((offset, codes))

        def answer(result: CommitResult) -> None:
            codes.extend(result.error_codes)

        request = CommitRequest(group, (OffsetToCommit(topic, partition, offset),))
        self._cluster.groups(coordinator).commit(request, answer)

    # --- checks at the end

    def check(self) -> None:
        """Check everything that the clients were promised, in a healed cluster."""
        for writer in self.writers:
            for batch in writer.sent:
                assert len(batch.answers) == 1, f"{len(batch.answers)} answers to one batch"
        self.check_records(self._cluster)
        self._check_commits()

    def check_records(self, cluster: Cluster) -> None:
        """Check what was written in a healed cluster, which may be another one that goes on with the logs."""
        self._cluster = cluster
        image = cluster.metadata.image
        leaders = {key: p.leader for key, p in image.all_partitions() if key[0] not in INTERNAL_TOPICS}
        for key, leader in leaders.items():
            for _ in range(3):
                self.read(leader, *key)
        self._check_values(leaders)

    def _check_values(self, leaders: dict[TopicPartition, int]) -> None:
        """Check that batches are only in their own partition, that no acknowledged batch is missing, and that
        idempotent ones are there once."""
        places = {(self._cluster.metadata.image.topics[t].topic_id, p): (t, p) for t, p in leaders}
        found: dict[Place, dict[bytes, list[int]]] = {}
        for place, key in places.items():
            for base, data in self._cluster.records.client_batches(leaders[key], *key):
                base -= header(data).base_offset  # A batch that was read from a disk has its own.
                for at, record_key, value, _ in records_of(data):
                    if record_key != KEY:
                        continue  # of a transactional producer
                    found.setdefault(place, {}).setdefault(value, []).append(base + at)
                    assert value.startswith(f"{place[0].hex()} {place[1]} ".encode())
        if self._loses_records:
            return
        starts = {
            place: self._cluster.records.list_offset(leaders[key], *key, EARLIEST).offset
            for place, key in places.items()
        }
        for writer in self.writers:
            assert not writer.refusals, "an idempotent producer was refused, though nothing was lost"
            for batch in writer.sent:
                if batch.place not in places or not batch.answers:
                    continue
                base = batch.answers[0].base_offset
                for number, value in enumerate(batch.values):
                    offsets = found.get(batch.place, {}).get(value, [])
                    if batch.kept and base + number >= starts[batch.place]:
                        assert base + number in offsets, f"{value!r} was acknowledged at {base + number}"
                    if writer.idempotent:
                        assert len(offsets) <= 1, f"{value!r} is at {offsets}"

    def _check_commits(self) -> None:
        """Check that the latest acknowledged commit, or a later one, is stored, and none for a deleted
        topic."""
        cluster = self._cluster
        topics = cluster.metadata.image.topics
        names = {topic.topic_id: name for name, topic in topics.items()}
        for group in sorted({group for group, _ in self._commits}):
            coordinator = cluster.groups(self._running()[0]).find(group)
            fetched = cluster.groups(coordinator).fetch_offsets(group, None)
            assert fetched.error_code is ErrorCode.NONE
            offsets = {(o.topic, o.partition): o.offset for o in fetched.offsets}
            for topic, partition in offsets:
                place = topics[topic].topic_id, partition
                assert (group, place) in self._commits, f"{group} never committed on this {topic}"
            for (of_group, (topic_id, partition)), attempts in self._commits.items():
                name = names.get(topic_id)
                if of_group != group or name is None or self._loses_records:
                    continue
                sure = max((o for o, codes in attempts if codes == [ErrorCode.NONE]), default=-1)
                assert offsets.get((name, partition), -1) >= sure, f"{group} lost a commit on {name}"


def records_of(data: bytes) -> Iterator[tuple[int, bytes | None, bytes, int]]:
    """Yield (offset, key, value, timestamp in ms) of each record in these batches."""
    at = 0
    while at < len(data):
        head = header(data, at)
        for record in decode_batch(data[at : at + head.size_bytes]):
            assert record.value is not None
            yield head.base_offset + record.offset_delta, record.key, record.value, record.timestamp_ms
        at += head.size_bytes
