"""The partitions that an incident hit: what they were before it, and what happened to them since.

Only these rows are looked at in each step, not the whole table.
"""

from collections.abc import Collection

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.derive.align import Alignment
from kview.derive.evidence import IN_FLIGHT_MS
from kview.derive.seen import Seen
from kview.derive.standing import Standing
from kview.model.incidents import HitPartition
from kview.model.snapshot import Flags, IdMatrix, Ids, Longs, Partitions
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MAX_NAMED = 200
"""The most partitions named in an incident. Its counts include all of them."""

LEFT_BEFORE_MS = 3_000
"""A broker that stops cleanly gives its leaderships away for this long before it stops answering."""


class Layer(Struct, frozen=True):
    """The leaders and ISRs from an observation on. The arrays have the rows of `Partitions`."""

    at_ms: int
    leader: Ids
    epoch: Ids
    isr: IdMatrix

    @staticmethod
    def of(table: Partitions, at_ms: int) -> "Layer":
        return Layer(at_ms, table.leader, table.leader_epoch, table.isr)

    def carried(self, alignment: Alignment) -> "Layer":
        """Return the layer in this step's rows."""
        return Layer(
            self.at_ms,
            alignment.carry(self.leader, UNKNOWN_ID),
            alignment.carry(self.epoch, UNKNOWN_ID),
            alignment.carry(self.isr, NO_BROKER),
        )


class Hit(Struct, frozen=True):
    """The partitions hit. The arrays have an element for each of them."""

    rows: Longs
    """The rows in `Partitions`."""
    leader: Ids
    """The leader before the incident, and its epoch and the ISR then."""
    epoch: Ids
    isr: IdMatrix
    end: Longs
    """The last log end seen of the leader before, UNKNOWN if it was not read."""
    own: Flags
    """Whether the incident is what took the leader away, so that the loss at the election counts here."""
    orphan: Flags
    """Whether the partition lost its leader."""
    moved: Flags
    """Whether there was an election since."""
    moved_ms: Longs
    leader_after: Ids
    epoch_after: Ids
    isr_after: IdMatrix
    """The smallest ISR since. Of equally small ones it is the first without the incident's brokers."""
    isr_least: Longs
    frozen: Flags
    """Whether the watermark was frozen at any time since because of this incident."""
    gone: Longs
    """A lower bound of the records of the old leader that the new one lacks, UNKNOWN before it is known.

    0 does not show that nothing is gone: the old leader may have written more after its last reading."""
    elsewhere: Flags
    """Whether the watermark is frozen or nobody leads, and that counts in another incident."""
    waits_ms: Longs
    """The last moment at which the watermark may have moved; UNKNOWN if it is not frozen and led."""

    @property
    def to_another(self) -> Flags:
        """Whether the election gave the partition to another leader than it had before."""
        return np.asarray(self.moved & (self.leader_after != self.leader), np.bool_)

    @property
    def lost_leader(self) -> Flags:
        """Whether the partition lost its leader in this incident, so that records may be gone."""
        return np.asarray(self.orphan | (self.own & self.to_another), np.bool_)

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def none() -> "Hit":
        """Return a hit without partitions."""
        long, id, flag = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_)
        lists = np.empty((0, 0), np.int32)
        return Hit(
            long, id, id, lists, long, flag, flag, flag, long, id, id, lists, long, flag, long, flag, long
        )

    def carried(self, alignment: Alignment) -> "Hit":
        """Return the hit in this step's rows, without partitions that were deleted."""
        if alignment.rows is None or not len(self):
            return self
        old = alignment.rows[alignment.rows >= 0]
        new_of = np.full(max(int(old.max(initial=-1)), int(self.rows.max())) + 1, -1, np.int64)
        new_of[old] = np.flatnonzero(alignment.rows >= 0)
        rows = new_of[self.rows]
        return replace(self.take(rows >= 0), rows=rows[rows >= 0])

    def take(self, which: NDArray[np.bool_]) -> "Hit":
        """Return the partitions that a mask over them selects."""
        return Hit(**{name: getattr(self, name)[which] for name in self.__struct_fields__})

    def joined(self, later: "Hit") -> "Hit":
        """Return these partitions and those of brokers that were lost later, which may have led some of
        these."""
        taken = np.isin(self.rows, later.rows[later.own])
        return self.take(self.own | ~taken).with_more(later)

    def as_before(self) -> "Hit":
        """Return the same partitions for a following incident, without the losses told in this one."""
        nothing = np.full(len(self), UNKNOWN, np.int64)
        return replace(self, own=np.zeros(len(self), np.bool_), gone=nothing, end=nothing)

    def with_more(self, other: "Hit") -> "Hit":
        """Return these partitions and the ones of `other` that are not among them."""
        more = other.take(~np.isin(other.rows, self.rows))
        if not len(more):
            return self
        if not len(self):
            return more
        made = {}
        for name in self.__struct_fields__:
            a, b = getattr(self, name), getattr(more, name)
            if a.ndim == 2:
                width = max(a.shape[1], b.shape[1])
                a, b = (_wide(matrix, width) for matrix in (a, b))
            made[name] = np.concatenate([a, b])
        return Hit(**made)


def _wide(matrix: IdMatrix, width: int) -> IdMatrix:
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])), constant_values=NO_BROKER)


def hit_by(layers: tuple[Layer, ...], brokers: Collection[int], began_ms: int, ends: Longs) -> Hit:
    """Return the partitions that `brokers` led, or in whose ISR they were, shortly before `began_ms`.

    `ends` are the log ends of the leaders before, with the rows of `Partitions`.
    """
    ids = np.array(sorted(brokers), np.int32)
    following = [layer.at_ms for layer in layers[1:]]
    recent = [
        layer
        for layer, until_ms in zip(layers, [*following, None], strict=True)
        if until_ms is None or until_ms > began_ms - LEFT_BEFORE_MS
    ]
    hit = Hit.none()
    for of_leader in (True, False):
        for layer in reversed(recent):
            mask = np.isin(layer.leader, ids) if of_leader else np.isin(layer.isr, ids).any(1)
            hit = hit.with_more(_of_layer(layer, np.flatnonzero(mask).astype(np.int64), ends, of_leader))
    return hit


def led(layer: Layer, rows: Longs) -> Hit:
    """Return these partitions as lost with their leaders of a layer, whose log ends nobody has read."""
    return _of_layer(layer, rows, np.full(len(layer.leader), UNKNOWN), True)


def hit_rows(rows: Longs, layers: tuple[Layer, ...], ends: Longs) -> Hit:
    """Return these partitions as they were when they were last led."""
    hit = Hit.none()
    for layer in reversed(layers):
        hit = hit.with_more(_of_layer(layer, rows[layer.leader[rows] >= 0], ends, True, False))
    return hit.with_more(_of_layer(layers[-1], rows, ends, True, False))


def _of_layer(layer: Layer, rows: Longs, ends: Longs, own: bool, orphan: bool = True) -> Hit:
    size, isr = len(rows), layer.isr[rows]
    none, unknown = np.full(size, NO_BROKER, np.int32), np.full(size, UNKNOWN, np.int64)
    false = np.zeros(size, np.bool_)
    return Hit(
        rows,
        layer.leader[rows],
        layer.epoch[rows],
        isr,
        ends[rows],
        np.full(size, own),
        np.full(size, own & orphan),
        false,
        unknown,
        none,
        np.full(size, UNKNOWN_ID, np.int32),
        isr,
        (isr >= 0).sum(1).astype(np.int64),
        false,
        unknown,
        false,
        unknown,
    )


def leaders_ends(then: Seen, changed_ms: Longs, alignment: Alignment) -> Longs:
    """Return the last log end read from each partition's leader in the previous snapshot.

    It only counts if it was read after the leader last changed, because an older one is a predecessor's.
    """
    table = then.snapshot.partitions
    own = (changed_ms == UNKNOWN) | (table.log_end_ms > changed_ms)
    return alignment.carry(np.where(own & (table.leader >= 0), table.log_end, UNKNOWN), UNKNOWN)


def follow(
    hit: Hit,
    then: Seen,
    now: Seen,
    alignment: Alignment,
    began_ms: int,
    charged: Longs,
    brokers: Collection[int],
) -> Hit:
    """Add a step. `hit` already has this step's rows, `charged` are those whose wait counts here, and
    `brokers` are those of the incident."""
    table, rows, now_ms = now.snapshot.partitions, hit.rows, now.snapshot.observation.ended_ms
    leader = table.leader[rows]
    frozen, here = np.asarray(now.frozen_since_ms[rows] != UNKNOWN, np.bool_), np.isin(rows, charged)
    orphan = hit.orphan | ((leader == NO_BROKER) & here)
    led = leader >= 0
    elected = ~hit.moved & led & ((leader != hit.leader) | _was_none(hit, then, alignment))
    count = now.placed.isr_count[rows]
    fewer = (count < hit.isr_least) & (count > 0)
    lost, isr = sorted(brokers), table.isr[rows]
    better = (count == hit.isr_least) & np.isin(hit.isr_after, lost).any(1) & ~np.isin(isr, lost).any(1)
    hit = replace(
        hit,
        orphan=orphan,
        moved=hit.moved | elected,
        moved_ms=np.where(elected, now_ms, hit.moved_ms),
        leader_after=np.where(elected, leader, hit.leader_after).astype(np.int32),
        epoch_after=np.where(elected, table.leader_epoch[rows], hit.epoch_after).astype(np.int32),
        isr_after=_newer(hit.isr_after, isr, fewer | better),
        isr_least=np.where(fewer, count, hit.isr_least),
        frozen=hit.frozen | (frozen & here),
        elsewhere=(frozen | (leader == NO_BROKER)) & ~here,
    )
    return replace(hit, gone=_gone(hit, elected, then, now, alignment, began_ms))


def _was_none(hit: Hit, then: Seen, alignment: Alignment) -> Flags:
    """Return which of the partitions had no leader in the previous snapshot."""
    if alignment.rows is None:
        return np.asarray(then.snapshot.partitions.leader[hit.rows] == NO_BROKER, np.bool_)
    return np.asarray(
        alignment.carry(then.snapshot.partitions.leader, UNKNOWN_ID)[hit.rows] == NO_BROKER, np.bool_
    )


def _newer(before: IdMatrix, now: IdMatrix, where: Flags) -> IdMatrix:
    if not where.any():
        return before
    width = max(before.shape[1], now.shape[1])
    return np.where(where[:, None], _wide(now, width), _wide(before, width))


def _gone(hit: Hit, elected: Flags, then: Seen, now: Seen, alignment: Alignment, began_ms: int) -> Longs:
    """Return lower bounds of the records that only the old leaders had. `elected` are the partitions that
    got a leader in this step.

    It is the old leader's last log end that was seen − where the new leader's log ended when it was elected.
    The latter is the new leader's last reading as a follower, if it was taken so long after the old leader
    fell silent that nothing was on its way any more. Otherwise it is the new leader's first reading as the
    leader, which is later, so that the result stays a lower bound.
    """
    table, rows = now.snapshot.partitions, hit.rows
    open_ = hit.own & hit.moved & (hit.gone == UNKNOWN) & (hit.end != UNKNOWN)
    if not open_.any():
        return hit.gone
    moved_ms = np.where(hit.moved, hit.moved_ms, 0)
    as_leader = np.where(table.log_end_ms[rows] > moved_ms, table.log_end[rows], UNKNOWN)
    start = np.where(table.leader[rows] >= 0, as_leader, UNKNOWN)
    if (elected & open_).any():
        # Brokers that were lost later belong to the incident, too, and led until then.
        quiet_ms = np.maximum(then.quiet.since_of(hit.leader), began_ms) + IN_FLIGHT_MS
        final = _as_follower(then, alignment, rows, table.leader[rows], quiet_ms)
        silent = then.quiet.of(hit.leader) & (table.leader[rows] != hit.leader)
        read_now = (table.log_end_ms[rows] > then.snapshot.observation.ended_ms) & (table.leader[rows] >= 0)
        first = np.where(read_now, table.log_end[rows], UNKNOWN)
        start = np.where(elected, np.where(silent & (final != UNKNOWN), final, first), start)
    known = open_ & (start != UNKNOWN)
    return np.where(known, np.maximum(np.where(known, hit.end - start, 0), 0), hit.gone)


def _as_follower(then: Standing, alignment: Alignment, rows: Longs, broker: Ids, after_ms: Longs) -> Longs:
    """Return the log ends that brokers read as followers after these moments, UNKNOWN if they read none."""
    old = rows if alignment.rows is None else alignment.rows[rows]
    real = np.maximum(old, 0)
    mine = (then.snapshot.partitions.replicas[real] == broker[:, None]) & (broker >= 0)[:, None]
    late = then.readings.times_ms[real] > after_ms[:, None]
    picked: Longs = np.where(mine & late, then.readings.ends[real], UNKNOWN).max(1, initial=UNKNOWN)
    return np.where(old >= 0, picked, UNKNOWN)


def named(hit: Hit, table: Partitions) -> tuple[HitPartition, ...]:
    """Return the partitions by name: those that moved first, then the user's, at most MAX_NAMED."""
    internal = table.internal[hit.rows]
    leaderless = (table.leader[hit.rows] == NO_BROKER) & ~hit.elsewhere
    gone = np.where((hit.gone == 0) & hit.lost_leader, UNKNOWN, hit.gone)
    first = np.lexsort((hit.rows, ~hit.orphan, internal, ~(hit.moved | leaderless)))[:MAX_NAMED]
    return tuple(
        HitPartition(
            str(table.topic[hit.rows[at]]),
            int(table.partition[hit.rows[at]]),
            bool(internal[at]),
            int(hit.leader[at]),
            int(hit.epoch[at]),
            _ids(hit.isr[at]),
            int(hit.leader_after[at]),
            int(hit.epoch_after[at]),
            _ids(hit.isr_after[at]),
            bool(hit.moved[at]),
            bool(leaderless[at]),
            int(gone[at]),
        )
        for at in first.tolist()
    )


def _ids(row: Ids) -> tuple[int, ...]:
    return tuple(int(id) for id in row.tolist() if id >= 0)
