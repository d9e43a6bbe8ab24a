"""One broker's share coordinator, which keeps how far share groups have read partitions, in the partitions of
`__share_group_state` that the broker leads.

Source: ShareCoordinatorShard. What leaders write is in force once it is committed. The epochs of groups'
states and of partitions' leaders only rise: who has an older one is refused.
A `done` callback is called once, immediately or from a later event, but never if the broker's process dies
first.
"""

from collections import Counter
from collections.abc import Callable

from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.coordination.host import Host
from kview.simulate.coordination.of_cluster import LOAD_MS
from kview.simulate.coordination.placement import partition_of
from kview.simulate.coordination.shard import Shard
from kview.simulate.coordination.share_states import (
    UNINITIALIZED,
    ReadState,
    SharePartition,
    Summary,
    Written,
    WrittenState,
)
from kview.simulate.sharing.records import (
    ShareState,
    ShareUpdate,
    StateChange,
    decode_batch,
    encode_batch,
    overlaid,
    update_of,
    updated,
)
from kview.simulate.sharing.settings import ShareSettings
from kview.wire.primitives import MalformedBytes

CUT_AFTER = 250
"""Offsets before the oldest snapshot that are deleted at once."""
STATES_MAX = 200_000
"""Limit of the states of one shard: as many as partitions of a topic that 20 groups read."""
BATCHES_MAX = 20_000
"""Limit of a state's batches, twice as many as records can be in flight."""
NEGATIVE = "The partition id cannot be a negative number."


class ShareShard(Shard):
    """The states of one partition of `__share_group_state`."""

    def __init__(self, host: Host, partition: int, settings: ShareSettings) -> None:
        super().__init__(host, partition, settings.write_timeout_ms)
        self._updates_per_snapshot = settings.update_records_per_snapshot
        self.states: dict[SharePartition, ShareState] = {}
        self.updates: dict[SharePartition, int] = {}
        """Partition → updates since its last snapshot."""
        self.writing: Counter[SharePartition] = Counter()
        """Partition → writes that have not been answered yet."""
        self._snapshots: dict[SharePartition, int] = {}
        """Partition → the offset of its last snapshot, if that was written since the shard was loaded. The
        oldest is first."""
        self._cut_at = 0

    def load(self) -> None:
        """Load the states from the partition's log."""
        for batch in self.host.batches(self.partition):
            self.batches += 1
            try:
                changes = decode_batch(batch)
            except MalformedBytes:
                continue  # A client wrote records of its own. A coordinator skips what it cannot read.
            for key, value in changes:
                self.apply(key, value)
        self.loading = False

    def apply(self, key: SharePartition, value: ShareState | ShareUpdate | None) -> None:
        """Put a change into force."""
        known = self.states.get(key)
        if value is None:
            self.states.pop(key, None)
            self.updates.pop(key, None)
            self._snapshots.pop(key, None)
        elif isinstance(value, ShareState):
            self.states[key] = value
            self.updates[key] = 0
        elif known is not None:
            self.states[key] = updated(known, value)
            self.updates[key] += 1

    def change(self, changes: list[StateChange], done: Callable[[ErrorCode], None]) -> None:
        """Write changes, which are in force once that is committed."""

        keys = [key for key, _ in changes]

        def apply(offset: int) -> None:
            for key, value in changes:
                self.apply(key, value)
                if isinstance(value, ShareState):
                    self._snapshots.pop(key, None)
                    self._snapshots[key] = offset
            self._cut()

        def answered(code: ErrorCode) -> None:
            self.writing -= Counter(keys)
            done(code)

        self.writing.update(keys)
        self.append(encode_batch(changes, self.now_ms), apply, answered)

    def snapshot_due(self, key: SharePartition) -> bool:
        """Return whether a write about a partition is to be a snapshot, which must not overtake others."""
        return self.updates.get(key, 0) >= self._updates_per_snapshot and not self.writing[key]

    def clean(self) -> None:
        """Write snapshots of all states, so that what is before them can be deleted.

        Source: ShareCoordinatorShard.snapshotColdPartitions, which does so after a time instead.
        """
        if self.batches < 2 * len(self.states):
            return
        self.batches = 0
        for key, state in list(self.states.items()):
            if self.writing[key]:
                self.updates[key] = self._updates_per_snapshot
            else:
                again = state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=self.now_ms)
                self.change([(key, again)], lambda code: None)

    def _cut(self) -> None:
        """Delete what is before the oldest snapshot (ShareCoordinatorOffsetsManager).

        The log is not compacted, because a state is its snapshot and all updates after it.
        """
        oldest = next(iter(self._snapshots.values()), 0)
        if len(self._snapshots) == len(self.states) and oldest >= self._cut_at + CUT_AFTER:
            self._cut_at = oldest
            self.host.delete_before(self.partition, oldest)


class ShareCoordinator:
    """One broker's coordinator."""

    def __init__(self, host: Host, settings: ShareSettings) -> None:
        self._host = host
        self._settings = settings
        self._shards: dict[int, ShareShard] = {}

    # --- changes at the broker

    def elected(self, partition: int, epoch: int, load_ms: int = LOAD_MS) -> None:
        """Load the states of a partition that the broker now leads, after `load_ms`."""
        self.resigned(partition)
        shard = self._shards[partition] = ShareShard(self._host, partition, self._settings)
        shard.load_after(load_ms, lambda: self._loaded(shard))

    def _loaded(self, shard: ShareShard) -> None:
        shard.load()
        self._forget_deleted_topics(shard)

    def resigned(self, partition: int) -> None:
        """Release the states of a partition that the broker no longer leads."""
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.close(answer=True)

    def topics_changed(self) -> None:
        """Forget the states of topics that no longer exist."""
        for shard in self._shards.values():
            if not shard.loading:
                self._forget_deleted_topics(shard)

    def _forget_deleted_topics(self, shard: ShareShard) -> None:
        names = self._host.metadata().topic_names
        gone: list[StateChange] = [(key, None) for key in shard.states if key.topic_id not in names]
        for key, _ in gone:
            shard.apply(key, None)
        if gone:
            shard.change(gone, lambda code: None)

    def process_ended(self) -> None:
        """Drop all state and waiting clients, because the process has ended."""
        for shard in self._shards.values():
            shard.close(answer=False)
        self._shards.clear()

    # --- finding the coordinator

    def find(self, key: str) -> int:
        """Return the broker that coordinates this key (`group:topic id:partition`) according to this broker's
        metadata, or −1."""
        return self._host.leader(partition_of(key, self._settings.state_topic_num_partitions))

    def _shard(self, key: SharePartition) -> ShareShard | ErrorCode:
        partition = partition_of(key.coordinator_key, self._settings.state_topic_num_partitions)
        shard = self._shards.get(partition)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def _refusal(self, key: SharePartition) -> tuple[ErrorCode, str | None]:
        """Return why there can be no such partition, or NONE."""
        if key.partition < 0:
            return ErrorCode.INVALID_REQUEST, NEGATIVE
        image = self._host.metadata().topic_by_id(key.topic_id)
        if image is None or key.partition >= len(image.partitions):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return code, MESSAGES[code]
        return ErrorCode.NONE, None

    # --- requests

    def initialize(self, key: SharePartition, state_epoch: int, start_offset: int, done: Written) -> None:
        """Begin with a partition at a start offset. What is known of it is void."""
        code, message = self._refusal(key)
        shard = self._shard(key)
        if code is ErrorCode.NONE and isinstance(shard, ErrorCode):
            code, message = shard, MESSAGES.get(shard)
        if code is not ErrorCode.NONE or isinstance(shard, ErrorCode):
            return done(code, message)
        known = shard.states.get(key)
        if known is not None and known.state_epoch > state_epoch:
            return done(ErrorCode.FENCED_STATE_EPOCH, MESSAGES[ErrorCode.FENCED_STATE_EPOCH])
        if known is None and len(shard.states) >= STATES_MAX:
            return done(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        state = ShareState(
            0 if known is None else known.snapshot_epoch + 1,
            state_epoch,
            0,
            start_offset,
            UNINITIALIZED if start_offset == UNINITIALIZED else 0,
            shard.now_ms,
            shard.now_ms,
        )
        shard.change([(key, state)], lambda code: done(code, MESSAGES.get(code) if code else None))

    def read(self, key: SharePartition, leader_epoch: int, done: Callable[[ReadState], None]) -> None:
        """Answer with the state of a partition, and note the epoch of the leader that asks."""
        shard = self._shard(key)
        if isinstance(shard, ErrorCode):
            return done(ReadState(shard, MESSAGES.get(shard)))
        known = shard.states.get(key)
        if known is None:
            message = (
                NEGATIVE
                if key.partition < 0
                else ("Read operation on uninitialized share partition not allowed.")
            )
            return done(ReadState(ErrorCode.INVALID_REQUEST, message))
        if leader_epoch != -1 and known.leader_epoch > leader_epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
            return done(ReadState(code, MESSAGES[code]))

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                done(ReadState(code, None, known.state_epoch, known.start_offset, known.batches))
            else:
                done(ReadState(code, MESSAGES.get(code)))

        if leader_epoch <= known.leader_epoch:
            return written(ErrorCode.NONE)
        update = ShareUpdate(known.snapshot_epoch, leader_epoch, known.start_offset, known.complete)
        shard.change([(key, update)], written)

    def write(self, key: SharePartition, state: WrittenState, done: Written) -> None:
        """Write what has changed in the state of a partition."""
        shard = self._shard(key)
        if isinstance(shard, ErrorCode):
            return done(shard, MESSAGES.get(shard))
        known = shard.states.get(key)
        if known is None:
            message = (
                NEGATIVE
                if key.partition < 0
                else ("Write operation on uninitialized share partition not allowed.")
            )
            return done(ErrorCode.INVALID_REQUEST, message)
        refused = ErrorCode.NONE
        if state.leader_epoch != -1 and known.leader_epoch > state.leader_epoch:
            refused = ErrorCode.FENCED_LEADER_EPOCH
        elif state.state_epoch != -1 and known.state_epoch > state.state_epoch:
            refused = ErrorCode.FENCED_STATE_EPOCH
        elif len(known.batches) + len(state.batches) > BATCHES_MAX:
            refused = ErrorCode.INVALID_REQUEST
        if refused is not ErrorCode.NONE:
            return done(refused, MESSAGES[refused])
        update: ShareState | ShareUpdate = update_of(known, state)
        if shard.snapshot_due(key):
            after = updated(known, update_of(known, state))
            update = after._replace(
                snapshot_epoch=known.snapshot_epoch + 1,
                written_ms=shard.now_ms,
                batches=overlaid((), after.batches, after.start_offset),
            )
        shard.change([(key, update)], lambda code: done(code, MESSAGES.get(code) if code else None))

    def delete(self, key: SharePartition, done: Written) -> None:
        """Forget the state of a partition."""
        code, message = self._refusal(key)
        shard = self._shard(key)
        if code is ErrorCode.NONE and isinstance(shard, ErrorCode):
            code, message = shard, MESSAGES.get(shard)
        if code is not ErrorCode.NONE or isinstance(shard, ErrorCode) or key not in shard.states:
            return done(code, message)
        shard.change([(key, None)], lambda code: done(code, MESSAGES.get(code) if code else None))

    def summarize(self, key: SharePartition) -> Summary:
        """Return where a group starts in a partition."""
        code, message = self._refusal(key)
        shard = self._shard(key)
        if code is ErrorCode.NONE and isinstance(shard, ErrorCode):
            code, message = shard, MESSAGES.get(shard)
        if code is not ErrorCode.NONE or isinstance(shard, ErrorCode):
            return Summary(code, message)
        known = shard.states.get(key)
        if known is None:
            return Summary(ErrorCode.NONE, start_offset=UNINITIALIZED)
        epochs = known.state_epoch, known.leader_epoch
        return Summary(ErrorCode.NONE, None, *epochs, known.start_offset, known.complete)
