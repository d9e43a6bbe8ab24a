"""How a simulated member reads its partitions in turn, at its rate, up to the high watermark."""

from collections.abc import Mapping

from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import TopicPartition
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.metadata import ClientMetadata


class Progress:
    """How far the members of one group have read each partition, all of them together.

    `reread` counts the records that were read again, and `skipped` those that no member has read, because a
    member began at another offset than where the one before it had ended.
    """

    def __init__(self) -> None:
        self.reread = 0
        self.skipped = 0
        self._next: dict[TopicPartition, int] = {}

    def begins(self, pair: TopicPartition, offset: int) -> None:
        """Note that a member begins to read a partition at `offset`."""
        until = self._next.setdefault(pair, offset)
        self.reread += max(0, until - offset)
        self.skipped += max(0, offset - until)

    def reads(self, pair: TopicPartition, until: int) -> None:
        """Note that a member has read a partition up to `until`."""
        self._next[pair] = until


UNBOUNDED_RECORDS = 1_000_000_000
"""Limit of records that a member without a limited rate reads per step, too high ever to be reached."""


class Reader:
    """Reads the `owned` partitions that have a position. `positions` are the next offsets to read.

    With `records_per_second` 0, everything available is read.
    """

    def __init__(
        self,
        cluster: Connections,
        metadata: ClientMetadata,
        records_per_second: float,
        progress: Progress,
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
        """The high watermark of each partition at the last read."""

    def place(self, pair: TopicPartition, offset: int) -> None:
        """Begin to read an owned partition at `offset`."""
        self.positions[pair] = offset
        self._progress.begins(pair, offset)

    def rest(self) -> None:
        """Let the time since the last read pass without reading."""
        self._until_us = self._cluster.kernel.now_us

    def polled(self, pair: TopicPartition, records: int) -> int:
        """Return where the partition's position would be after a poll of at most so many records."""
        position = self.positions[pair]
        return max(position, min(position + records, self._ends.get(pair, position)))

    def finish(self, committed: Mapping[TopicPartition, int]) -> None:
        """Process what was committed before it was processed, as a client does before it polls again."""
        for pair, position in self.positions.items():
            until = committed.get(pair, position)
            if until > position:
                self.positions[pair] = until
                self.records += until - position
                self._progress.reads(pair, until)

    def begin(self, owned: list[TopicPartition]) -> None:
        """Replace the owned partitions. They are read once they have positions."""
        self.owned, self.positions = owned, {}
        self._until_us = self._cluster.kernel.now_us

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
        taken = self._cluster.records.take(leader, *pair, position, records, self.topic_id(pair[0]))
        if taken.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # Below the log's start, records were deleted; above its end, the log was truncated.
            self.positions[pair] = (
                taken.log_start_offset if position < taken.log_start_offset else taken.high_watermark
            )
            self._progress.reads(pair, self.positions[pair])
            return 0
        if taken.error_code is not ErrorCode.NONE:
            self._metadata.refresh()
            return 0
        self.positions[pair], self._ends[pair] = taken.next_offset, taken.high_watermark
        self._progress.reads(pair, taken.next_offset)
        self.records += taken.next_offset - position
        return taken.next_offset - position
