"""Clients for the chaos tests: they write, read and commit, and remember what they may rely on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import CommitRequest, CommitResult, OffsetToCommit
from kview.simulate.metadata import TopicPartition
from kview.simulate.nodes import ProcessState
from kview.simulate.results import ProduceResult
from kview.simulate.world import OFFSETS_TOPIC

KEY = b"chaos"
TIMEOUT_MS = 3_000
READ_BYTES = 4_000
GZIP = 1

REFUSALS = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)
"""What a broker answers an idempotent producer when batches are missing in its log."""

Place = tuple[bytes, int]
"""A topic id and a partition: what a record belongs to, whatever the topic is called."""


@dataclass(slots=True, eq=False)
class Batch:
    """A batch on its way to a partition; `answers` must hold exactly one in the end."""

    topic: str
    place: Place
    values: list[bytes]
    acks: int
    data: bytes
    answers: list[ProduceResult] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """Whether a client may rely on the batch: acks=all, and no error."""
        return (
            self.acks == -1
            and bool(self.answers)
            and all(a.error_code is ErrorCode.NONE for a in self.answers)
        )


class Writer:
    """A producer of real batches; an idempotent one sends a batch again until it is acknowledged."""

    def __init__(
        self, name: str, cluster: Cluster, random: Random, acks: int, idempotent: bool, compressed: bool
    ) -> None:
        self.name = name
        self.sent: list[Batch] = []
        self.refusals: list[ErrorCode] = []
        self.idempotent = idempotent
        self._cluster = cluster
        self._random = random
        self._acks = acks
        self._codec = GZIP if compressed else 0
        self._producer_id = -1
        self._sequences: dict[Place, int] = {}
        self._open: dict[Place, Batch] = {}
        """The latest batch of each partition, until it is acknowledged."""
        self._epochs: dict[Place, int] = {}
        self._number = 0

    def write(self, broker: int, topic: str, partition: int) -> None:
        """Send the next batch, or again the one that was not acknowledged, to this broker."""
        found = self._cluster.image(broker).topics.get(topic)
        if found is None or partition >= len(found.partitions):
            return
        place = found.topic_id, partition
        if not self.idempotent:
            self._send(broker, self._batch(topic, place, -1, -1))
            return
        epoch = found.partitions[partition].leader_epoch
        if epoch < self._epochs.get(place, -1):
            return  # a client does not go back to a leader of an older epoch, which lacks its latest batches
        self._epochs[place] = epoch
        if self._producer_id < 0:
            self._producer_id = self._cluster.init_producer_id(broker, None).producer_id
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
            2, self._codec, False, producer_id, 0 if producer_id >= 0 else -1, sequence, 100_000
        )
        values: list[bytes] = []
        for delta in range(self._random.randrange(1, 6)):
            self._number += 1
            value = f"{place[0].hex()} {place[1]} {self.name} {self._number}".encode()
            values.append(value)
            builder.append(delta, self._cluster.kernel.now_us // 1000, KEY, value, [])
        return Batch(topic, place, values, self._acks, bytes(builder.build()))

    def _send(self, broker: int, batch: Batch) -> None:
        self.sent.append(batch)

        def answer(result: ProduceResult) -> None:
            batch.answers.append(result)
            if result.error_code in REFUSALS:
                self.refusals.append(result.error_code)
                self._producer_id = -1
                self._sequences.clear()
                self._open.clear()

        self._cluster.produce(broker, batch.topic, batch.place[1], batch.data, batch.acks, TIMEOUT_MS, answer)


class Clients:
    """Writers, a reader and a committing tool at work on all topics but the internal one."""

    def __init__(self, cluster: Cluster, random: Random, loses_records: bool) -> None:
        self._cluster = cluster
        self._random = random
        self._loses_records = loses_records
        self._read: dict[tuple[bytes, int, int], bytes] = {}
        self._commits: dict[tuple[str, Place], list[tuple[int, list[ErrorCode]]]] = {}
        self.writers = [
            Writer("idempotent", cluster, random, acks=-1, idempotent=True, compressed=False),
            Writer("all", cluster, random, acks=-1, idempotent=False, compressed=True),
            Writer("one", cluster, random, acks=1, idempotent=False, compressed=False),
            Writer("none", cluster, random, acks=0, idempotent=False, compressed=False),
        ]

    def act(self) -> None:
        """Do a little of everything."""
        for writer in self.writers:
            self._at_a_leader(writer.write)
        self._at_a_leader(self.read)
        self._commit()

    def _running(self) -> list[int]:
        cluster = self._cluster
        return [b for b in cluster.broker_ids() if cluster.process(b) is ProcessState.RUNNING]

    def _pick(self) -> tuple[TopicPartition, int] | None:
        """A partition and its leader, as some running broker knows them: perhaps it is behind."""
        running = self._running()
        if not running:
            return None
        image = self._cluster.image(self._random.choice(running))
        keys = [(key, p.leader) for key, p in image.all_partitions() if key[0] != OFFSETS_TOPIC]
        return self._random.choice(keys) if keys else None

    def _at_a_leader(self, act: Callable[[int, str, int], None]) -> None:
        picked = self._pick()
        if picked is not None and picked[1] in self._running():
            act(picked[1], *picked[0])

    # --- reading

    def read(self, broker: int, topic: str, partition: int) -> None:
        """Read from somewhere in the partition: nothing may come from elsewhere, or have changed."""
        start = self._cluster.list_offset(broker, topic, partition, -2)
        end = self._cluster.list_offset(broker, topic, partition, -1)
        if start.error_code or end.error_code or end.offset <= start.offset:
            return
        self._read_at(broker, topic, partition, self._random.randrange(start.offset, end.offset))

    def _read_at(self, broker: int, topic: str, partition: int, offset: int) -> None:
        result = self._cluster.read(broker, topic, partition, offset, READ_BYTES)
        if result.error_code is not ErrorCode.NONE:
            return
        topic_id = self._cluster.image(broker).topics[topic].topic_id
        now_ms = self._cluster.kernel.now_us // 1000
        for batch in MemoryRecords(result.records):
            for record in batch:
                assert record.timestamp <= now_ms
                if record.key == KEY:
                    assert record.value.startswith(f"{topic_id.hex()} {partition} ".encode()), (
                        f"{topic}-{partition} at {broker}: {record.value!r} of another topic or partition"
                    )
                if not self._loses_records and record.offset < result.high_watermark:
                    known = self._read.setdefault((topic_id, partition, record.offset), record.value)
                    assert known == record.value, f"{topic}-{partition}: record {record.offset} changed"

    # --- committing

    def _commit(self) -> None:
        """Commit an offset from outside any membership; the offsets of one partition only rise."""
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

    # --- the end

    def check(self) -> None:
        """What clients may rely on, in a healed cluster."""
        for writer in self.writers:
            for batch in writer.sent:
                assert len(batch.answers) == 1, f"{len(batch.answers)} answers to one batch"
        image = self._cluster.controller.image
        leaders = {key: p.leader for key, p in image.all_partitions() if key[0] != OFFSETS_TOPIC}
        for key, leader in leaders.items():
            for _ in range(3):
                self.read(leader, *key)
        self._check_values(leaders)
        self._check_commits()

    def _check_values(self, leaders: dict[TopicPartition, int]) -> None:
        """Batches are in their own partition alone, acknowledged ones are there, idempotent ones once."""
        places = {(self._cluster.controller.image.topics[t].topic_id, p): (t, p) for t, p in leaders}
        found: dict[Place, dict[bytes, list[int]]] = {}
        for place, key in places.items():
            for base, data in self._cluster.client_batches(leaders[key], *key):
                for batch in MemoryRecords(data):
                    for record in batch:
                        where = found.setdefault(place, {}).setdefault(record.value, [])
                        where.append(base + record.offset)
                        assert record.value.startswith(f"{place[0].hex()} {place[1]} ".encode())
        if self._loses_records:
            return
        for writer in self.writers:
            assert not writer.refusals, "an idempotent producer was refused, though nothing was lost"
            for batch in writer.sent:
                if batch.place not in places:
                    continue
                base = batch.answers[0].base_offset
                for number, value in enumerate(batch.values):
                    offsets = found.get(batch.place, {}).get(value, [])
                    if batch.kept:
                        assert base + number in offsets, f"{value!r} was acknowledged at {base + number}"
                    if writer.idempotent:
                        assert len(offsets) <= 1, f"{value!r} is at {offsets}"

    def _check_commits(self) -> None:
        """An acknowledged commit is there, or a later one; nothing of a deleted topic is."""
        cluster = self._cluster
        topics = cluster.controller.image.topics
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
