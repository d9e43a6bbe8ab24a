"""How a simulated member reads its partitions in turn, at its rate, up to the high watermark."""

from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import TopicPartition
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.metadata import ClientMetadata


class Progress:
    """How far the members of one group have read each partition, all of them together.

    `reread` counts the records that were read again, and `skipped` those that no member has read, because a
    member began at another offset than where the one before it had ended. `aborted` counts the records that
    were read and belong to aborted transactions, once they are aborted.
    """

    def __init__(self) -> None:
        self.reread = 0
        self.skipped = 0
        self.aborted = 0
        self._next: dict[TopicPartition, int] = {}
        self._decided: dict[TopicPartition, int] = {}
        """Up to where `aborted` has counted a partition."""

    def begins(self, pair: TopicPartition, offset: int) -> None:
        """Note that a member begins to read a partition at `offset`."""
        until = self._next.setdefault(pair, offset)
        self.reread += max(0, until - offset)
        self.skipped += max(0, offset - until)

    def reads(self, pair: TopicPartition, until: int) -> None:
        """Note that a member has read a partition up to `until`."""
        self._next[pair] = until

    def decides(self, pair: TopicPartition, begin: int, until: int) -> range:
        """Return the offsets that a member has read of which it is known only now whether they were aborted.

        The first member began to read at `begin`, and `until` is the last stable offset.
        """
        since = self._decided.get(pair, begin)
        until = max(since, min(until, self._next[pair]))
        self._decided[pair] = until
        return range(since, until)


POLL_RECORDS = 500
"""max.poll.records."""

UNBOUNDED_RECORDS = 1_000_000_000
"""Limit of records that a member without a limited rate reads per step, too high ever to be reached."""


class Reader:
    """Reads the `owned` partitions that have a position. `positions` are the next offsets to read.

    With `records_per_second` 0, everything available is read. A reader that `commits_first` reads up to what
    has been committed (`allow`), and no further. One that reads `committed` records stops at the last stable
    offset, and leaves out what was aborted.
    """

    def __init__(
        self,
        cluster: Connections,
        metadata: ClientMetadata,
        records_per_second: float,
        progress: Progress,
        commits_first: bool = False,
        committed: bool = False,
    ) -> None:
        self.owned: list[TopicPartition] = []
        self.positions: dict[TopicPartition, int] = {}
        self._of_topics: dict[str, bytes | None] = {}
        self.records = 0
        """Records read in all."""
        self._cluster = cluster
        self._metadata = metadata
        self._rate = records_per_second
        self._until_us = cluster.kernel.now_us
        self._progress = progress
        self._ends: dict[TopicPartition, int] = {}
        """How far each partition could be read at the last read."""
        self._commits_first = commits_first
        self._committed = committed
        self._until: dict[TopicPartition, int] = {}
        """Where the batch of each partition ends, if batches are committed before they are read."""

    def place(self, pair: TopicPartition, offset: int) -> None:
        """Begin to read an owned partition at `offset`."""
        self.positions[pair] = self._until[pair] = offset
        self._progress.begins(pair, offset)

    def rest(self) -> None:
        """Let the time since the last read pass without reading."""
        self._until_us = self._cluster.kernel.now_us

    def polled(self, pair: TopicPartition) -> int:
        """Return where the partition's position is after the next poll."""
        position = self.positions[pair]
        if not self._commits_first:
            return position
        return max(position, min(position + self._batch, self._ends.get(pair, position)))

    @property
    def _batch(self) -> int:
        """The most records of a poll. A poll is at least what a member reads between two of its steps."""
        return max(POLL_RECORDS, round(self._rate)) if self._rate > 0 else UNBOUNDED_RECORDS

    @property
    def wants_batch(self) -> bool:
        """Whether all batches are read, and there is more to read, which has to be committed first."""
        pairs = self.positions
        is_read = all(at >= self._until[pair] for pair, at in pairs.items())
        return self._commits_first and is_read and any(self.polled(pair) > at for pair, at in pairs.items())

    def allow(self, pair: TopicPartition, until: int) -> None:
        """Let a batch be read that ends at `until`, because it has been committed."""
        if pair in self.positions:
            self._until[pair] = until

    def finish(self) -> None:
        """Process what was committed before it was processed, as a client does before it polls again."""
        for pair, position in self.positions.items():
            until = self._until[pair]
            if self._commits_first and until > position:
                self.positions[pair] = until
                self.records += until - position
                self._progress.reads(pair, until)

    def begin(self, owned: list[TopicPartition]) -> None:
        """Replace the owned partitions. They are read once they have positions."""
        self.owned, self.positions, self._until = owned, {}, {}
        self._until_us = self._cluster.kernel.now_us

    def keep(self, owned: list[TopicPartition]) -> None:
        """Change the owned partitions. Those that stay are read on."""
        self.owned = owned
        self.positions = {pair: at for pair, at in self.positions.items() if pair in owned}

    def unplaced(self) -> list[TopicPartition]:
        """Return the owned partitions without a position."""
        return [pair for pair in self.owned if pair not in self.positions]

    def read_on(self) -> None:
        """Read from responsive leaders as many records as the rate allows for the time since the last
        call."""
        self._forget_deleted_topics()
        now_us = self._cluster.kernel.now_us
        elapsed_us, self._until_us = now_us - self._until_us, now_us
        budget = UNBOUNDED_RECORDS
        if self._rate > 0:
            budget = round(self._rate * elapsed_us / 1_000_000)
        pairs = [pair for pair in self.owned if pair in self.positions]
        for i, pair in enumerate(pairs):
            share = budget if budget >= UNBOUNDED_RECORDS else -(-budget // (len(pairs) - i))
            budget -= self._read(pair, share)
        if self._rate > 0 and self.wants_batch:
            self._until_us -= round(budget * 1_000_000 / self._rate)  # The next batch begins at once.
        if pairs:
            self.owned = [*self.owned[1:], self.owned[0]]  # Next time, another partition comes first.

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of the topic that the positions belong to."""
        return self._of_topics.get(topic)

    def _forget_deleted_topics(self) -> None:
        """Drop the positions in deleted topics, even if there is a new topic of the same name."""
        for topic in {topic for topic, _ in self.owned}:
            topic_id = self._metadata.topic_id(topic)
            if self._of_topics.setdefault(topic, topic_id) != topic_id:
                self._of_topics[topic] = topic_id
                self.positions = {pair: at for pair, at in self.positions.items() if pair[0] != topic}

    def _read(self, pair: TopicPartition, records: int) -> int:
        leader = self._metadata.leader(*pair)
        if leader < 0 or not self._cluster.nodes.serves(leader):
            self._metadata.refresh()
            return 0
        position = self.positions[pair]
        if self._commits_first:
            records = min(records, max(0, self._until[pair] - position))
        taken = self._cluster.records.take(
            leader, *pair, position, records, self.topic_id(pair[0]), self._committed
        )
        if taken.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # Below the log's start, records were deleted; above its end, the log was truncated.
            self.positions[pair] = (
                taken.log_start_offset if position < taken.log_start_offset else taken.high_watermark
            )
            self._until[pair] = self.positions[pair]
            self._progress.reads(pair, self.positions[pair])
            return 0
        if taken.error_code is not ErrorCode.NONE:
            self._metadata.refresh()
            return 0
        self.positions[pair] = taken.next_offset
        self._ends[pair] = taken.last_stable_offset if self._committed else taken.high_watermark
        self._progress.reads(pair, taken.next_offset)
        if not self._committed:
            decided = self._progress.decides(pair, position, taken.last_stable_offset)
            self._progress.aborted += self._cluster.records.aborted_records(
                leader, *pair, decided.start, decided.stop
            )
        self.records += taken.records
        return taken.next_offset - position
