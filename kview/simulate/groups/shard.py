"""One offsets partition at its leader, with the groups that are loaded from its log and written to it."""

from collections.abc import Callable, Sequence

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.group import Group, GroupState
from kview.simulate.groups.host import MS, GroupSettings, Host
from kview.simulate.groups.records import (
    Change,
    GroupKey,
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_batch,
    encode_batch,
)
from kview.simulate.kernel import Timer
from kview.wire.primitives import MalformedBytes

HUNG_RETRY_MS = 100
"""Interval at which a timer that came due in a hung process checks whether the process has resumed."""

COMPACT_AFTER_BATCHES = 2_000
"""Batches in a partition's log before it is compacted. Loading this many takes about 100 ms."""
COMPACT_CHANGES = 200
"""Changes per batch of a compaction, few enough to stay well below max.message.bytes."""

_AS_COORDINATOR = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""The error a group's member gets for a failed append (GroupCoordinatorService.handleOperationException)."""

Answer = Callable[[ErrorCode], None]


class Shard:
    """The groups of one offsets partition while this broker leads it in one leader epoch."""

    def __init__(self, host: Host, settings: GroupSettings, partition: int) -> None:
        self.host = host
        self.settings = settings
        self.partition = partition
        self.groups: dict[str, Group] = {}
        self.loading = True
        self.closed = False
        self._writes: dict[int, Answer] = {}
        self._write_number = 0
        self._uncommitted = 0
        self._batches = 0

    @property
    def now_ms(self) -> int:
        """The engine's time in ms."""
        return self.host.now_us() // MS

    def load(self) -> None:
        """Load the groups and their offsets from the partition's log."""
        groups: dict[str, Group] = {}
        offsets: dict[str, dict[tuple[str, int], OffsetValue]] = {}
        values: dict[str, GroupValue] = {}
        for batch in self.host.batches(self.partition):
            self._batches += 1
            try:
                changes = decode_batch(batch)
            except MalformedBytes:
                continue  # A client wrote records of its own. A coordinator skips what it cannot read.
            for key, value in changes:
                if isinstance(key, GroupKey):
                    values.pop(key.group, None)
                    if isinstance(value, GroupValue):
                        values[key.group] = value
                else:
                    of_group = offsets.setdefault(key.group, {})
                    of_group.pop((key.topic, key.partition), None)
                    # A topic may have been deleted while no broker led this partition.
                    if isinstance(value, OffsetValue) and self.lives((key.topic, key.partition), value):
                        of_group[key.topic, key.partition] = value
        for name in sorted({*values, *(name for name, of_group in offsets.items() if of_group)}):
            group = groups[name] = Group(name, offsets=offsets.get(name, {}))
            if name in values:
                group.load(values[name])
            else:
                group.state_since_ms = self.now_ms
        self.groups = groups
        self.loading = False

    def lives(self, key: tuple[str, int], value: OffsetValue) -> bool:
        """Return whether the topic of this committed offset still exists, as far as the broker knows."""
        return self.host.topic_id(*key) == value.topic_id

    def after(self, delay_ms: int, fn: Callable[[], None]) -> Timer:
        """Call `fn` later if this shard is still open.

        In a hung process, the call waits until the process resumes.
        """
        return self.host.after(delay_ms * MS, lambda: self._due(fn))

    def _due(self, fn: Callable[[], None]) -> None:
        if self.closed:
            return
        if self.host.is_running():
            fn()
        else:
            self.host.after(HUNG_RETRY_MS * MS, lambda: self._due(fn))

    def cancel(self, timer: Timer | None) -> None:
        """Cancel a timer, if there is one."""
        if timer is not None:
            self.host.cancel(timer)

    def write(self, changes: Sequence[Change], apply: Callable[[], None] | None, answer: Answer) -> None:
        """Append changes to the log, and call `apply` when they are committed, however late.

        `answer` is called once: when the changes are committed, when the append fails, or after
        offsets.commit.timeout.ms.
        """
        number = self._write_number = self._write_number + 1
        self._writes[number] = answer
        timer = self.after(
            self.settings.offsets_commit_timeout_ms,
            lambda: self._answer(number, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        )

        def appended(code: ErrorCode, offset: int) -> None:
            if self.closed or code is ErrorCode.BROKER_NOT_AVAILABLE:
                return  # The process died, so no client is left to answer.
            self.cancel(timer)
            self._uncommitted -= 1
            if code is ErrorCode.NONE and apply is not None:
                apply()
            self._answer(number, _AS_COORDINATOR.get(code, ErrorCode.UNKNOWN_SERVER_ERROR))
            self._compact()

        self._uncommitted += 1
        self._batches += 1
        self.host.append(self.partition, encode_batch(changes, self.now_ms), appended)

    def _answer(self, number: int, code: ErrorCode) -> None:
        answer = self._writes.pop(number, None)
        if answer is not None:
            answer(code)

    def _compact(self) -> None:
        """Compact the log by writing the current state again and moving the log start to it.

        This replaces Kafka's log cleaner. It waits until the log and the groups agree, that is, until no
        write is pending and no rebalance is in progress.
        """
        settled = all(g.state in (GroupState.EMPTY, GroupState.STABLE) for g in self.groups.values())
        if self._batches < COMPACT_AFTER_BATCHES or self._uncommitted or not settled:
            return
        changes: list[Change] = []
        for group in self.groups.values():
            if group.generation > 0:
                changes.append((GroupKey(group.name), group.value()))
            changes += [(OffsetKey(group.name, *key), value) for key, value in group.offsets.items()]
        parts = [changes[i : i + COMPACT_CHANGES] for i in range(0, len(changes), COMPACT_CHANGES)]
        starts: list[int] = []
        self._batches = 0
        self._uncommitted += len(parts)

        def appended(code: ErrorCode, offset: int) -> None:
            if self.closed:
                return
            self._uncommitted -= 1
            if code is ErrorCode.NONE:
                starts.append(offset)
            if len(starts) == len(parts):
                self.host.forget_before(self.partition, starts[0])

        for part in parts:
            self._batches += 1
            self.host.append(self.partition, encode_batch(part, self.now_ms), appended)

    def close(self, answer: bool) -> None:
        """Close the shard. Waiting clients get NOT_COORDINATOR, or no answer if the process died."""
        self.closed = True
        writes, self._writes = self._writes, {}
        if answer:
            for waiting in writes.values():
                waiting(ErrorCode.NOT_COORDINATOR)
