"""The records of `__share_group_state`, as values and as bytes in Kafka's format.

A key of version 0 has a snapshot of a partition's state as its value, one of version 1 an update of it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kview.simulate import records
from kview.simulate.coordination.share_states import (
    UNINITIALIZED,
    UNKNOWN_COUNT,
    SharePartition,
    StateBatch,
    WrittenState,
)
from kview.wire.primitives import INT32, MalformedBytes, Reader, Writer

SNAPSHOT, UPDATE = 0, 1
_VALUE_VERSION = 0
_TOPIC_ID_BYTES = 16
_NO_TAGS: Mapping[int, bytes] = {}


class ShareState(NamedTuple):
    """What a share group has read of a partition: the value of a snapshot, with all updates since then."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete: int
    created_ms: int
    written_ms: int
    batches: tuple[StateBatch, ...] = ()


class ShareUpdate(NamedTuple):
    """What has changed since the snapshot."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete: int
    batches: tuple[StateBatch, ...] = ()


StateChange = tuple[SharePartition, ShareState | ShareUpdate | None]


def encode_batch(changes: Sequence[StateChange], time_ms: int) -> bytes:
    """Encode these changes as one v2 batch. A value of None deletes the snapshot."""
    return records.encode_batch(
        [
            (_encode_key(key, value), None if value is None else _encode_value(value), time_ms)
            for key, value in changes
        ]
    )


def _encode_key(key: SharePartition, value: ShareState | ShareUpdate | None) -> bytes:
    writer = Writer().int16(UPDATE if isinstance(value, ShareUpdate) else SNAPSHOT)
    return writer.string(key.group).raw(key.topic_id).int32(key.partition).done()


def _encode_value(value: ShareState | ShareUpdate) -> bytes:
    writer = Writer().int16(_VALUE_VERSION).int32(value.snapshot_epoch)
    if isinstance(value, ShareState):
        writer.int32(value.state_epoch)
    writer.int32(value.leader_epoch).int64(value.start_offset)
    if isinstance(value, ShareState):
        writer.int64(value.created_ms).int64(value.written_ms)
    writer.array_length(len(value.batches), compact=True)
    for batch in value.batches:
        writer.int64(batch.first).int64(batch.last).int8(batch.state).int16(batch.deliveries)
        writer.tagged_fields(_NO_TAGS)
    known = value.complete != UNKNOWN_COUNT
    return writer.tagged_fields({0: INT32.pack(value.complete)} if known else _NO_TAGS).done()


def decode_batch(batch: bytes) -> list[StateChange]:
    """Decode a batch written by `encode_batch`. Raises MalformedBytes."""
    changes: list[StateChange] = []
    for record in records.decode_batch(batch):
        reader = Reader(record.key or b"")
        version = reader.int16()
        if version not in (SNAPSHOT, UPDATE):
            raise MalformedBytes(f"a key of version {version}")
        key = SharePartition(reader.string(), bytes(reader.take(_TOPIC_ID_BYTES)), reader.int32())
        changes.append((key, None if record.value is None else _decode_value(version, record.value)))
    return changes


def _decode_value(version: int, data: bytes) -> ShareState | ShareUpdate:
    reader = Reader(data)
    value_version = reader.int16()
    if value_version != _VALUE_VERSION:
        raise MalformedBytes(f"a value of version {value_version}")
    snapshot_epoch = reader.int32()
    state_epoch = reader.int32() if version == SNAPSHOT else 0
    leader_epoch, start_offset = reader.int32(), reader.int64()
    created_ms, written_ms = (reader.int64(), reader.int64()) if version == SNAPSHOT else (0, 0)
    batches = []
    for _ in range(reader.array_length(compact=True)):
        batches.append(StateBatch(reader.int64(), reader.int64(), reader.int8(), reader.int16()))
        reader.tagged_fields()
    count = reader.tagged_fields().get(0)
    if count is not None and len(count) != INT32.size:
        raise MalformedBytes(f"a number of {len(count)} bytes")
    complete = UNKNOWN_COUNT if count is None else INT32.unpack(count)[0]
    if version == UPDATE:
        return ShareUpdate(snapshot_epoch, leader_epoch, start_offset, complete, tuple(batches))
    return ShareState(
        snapshot_epoch,
        state_epoch,
        leader_epoch,
        start_offset,
        complete,
        created_ms,
        written_ms,
        tuple(batches),
    )


def updated(state: ShareState, update: ShareUpdate) -> ShareState:
    """Return a state after an update of it."""
    start = state.start_offset if update.start_offset == UNINITIALIZED else update.start_offset
    return state._replace(
        leader_epoch=state.leader_epoch if update.leader_epoch == -1 else update.leader_epoch,
        start_offset=start,
        complete=update.complete,
        batches=overlaid(state.batches, update.batches, start),
    )


def update_of(state: ShareState, written: WrittenState) -> ShareUpdate:
    """Return the update of a state that a partition's leader writes."""
    leader_epoch = state.leader_epoch if written.leader_epoch == -1 else written.leader_epoch
    start = written.start_offset
    batches = _merged(overlaid((), written.batches, start))
    return ShareUpdate(state.snapshot_epoch, leader_epoch, start, written.complete, batches)


def _merged(batches: Sequence[StateBatch]) -> tuple[StateBatch, ...]:
    """Return batches in which neighbours that are alike are one."""
    merged: list[StateBatch] = []
    for batch in batches:
        before = merged[-1] if merged else None
        if before is not None and before.last + 1 == batch.first and before[2:] == batch[2:]:
            merged[-1] = before._replace(last=batch.last)
        else:
            merged.append(batch)
    return tuple(merged)


def overlaid(below: Sequence[StateBatch], above: Sequence[StateBatch], start: int) -> tuple[StateBatch, ...]:
    """Return the batches of both from offset `start` on, in order. Where two overlap, the one counts that has
    been delivered more often, then that of the higher state (PersisterStateBatchCombiner)."""
    batches = list(below)
    for new in above:
        batches = _with(batches, new)
    return tuple(batch._replace(first=max(batch.first, start)) for batch in batches if batch.last >= start)


def _with(batches: Sequence[StateBatch], new: StateBatch) -> list[StateBatch]:
    """Return batches that do not overlap with one more, of which the better parts are kept."""
    after: list[StateBatch] = []
    at = new.first  # Up to here, `new` has been placed.
    for batch in batches:
        if batch.last < new.first or batch.first > new.last:
            if batch.first > new.last and at <= new.last:
                after.append(new._replace(first=at))
                at = new.last + 1
            after.append(batch)
            continue
        if at < batch.first:
            after.append(new._replace(first=at, last=batch.first - 1))
            at = batch.first
        if (batch.deliveries, batch.state) > (new.deliveries, new.state):
            after.append(batch)
            at = batch.last + 1
            continue
        if batch.first < new.first:
            after.append(batch._replace(last=new.first - 1))
        last = min(batch.last, new.last)
        after.append(new._replace(first=at, last=last))
        at = last + 1
        if batch.last > new.last:
            after.append(batch._replace(first=new.last + 1))
    if at <= new.last:
        after.append(new._replace(first=at))
    return after
