"""From the bytes of a Fetch answer to records: what is left out, what is damaged, and how much is kept."""

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from kview.model.inspection import NULL, Damage, DamageKind, Header, Payload, Record, TimeType
from kview.model.units import UNKNOWN
from kview.wire import records as wire
from kview.wire.compression import TooLarge
from kview.wire.primitives import MalformedBytes
from kview.wire.records import BadChecksum, Batch, RawRecord, UnknownFormat

KEPT_PART = 1 << 20
"""Limit of the bytes kept of a key, a value or a header: more than anybody reads in a terminal."""
KEPT_ALL = 16 << 20
"""When an answer keeps this many bytes, it keeps only KEPT_THEN of each further part."""
KEPT_THEN = 4 << 10
DAMAGE_MAX = 100
"""Limit of the damaged batches that an answer names."""


class Part(Struct):
    """What the records of one Fetch answer contain.

    `first` and `next` are the offset of the first complete batch, and the one after the last complete batch
    (UNKNOWN if there is no complete batch). `control` and `aborted` are the offsets of batches left out.
    """

    records: list[Record] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    first: int = UNKNOWN
    next: int = UNKNOWN
    control: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    broken: bool = False
    """Whether the answer cannot be read on at `next`, because what follows is not a batch."""


class Keeper:
    """Keeps payloads up to the limits above, for all parts of an answer, or `whole`, while somebody judges
    them."""

    def __init__(self, whole: bool = False) -> None:
        self._kept = 0
        self._whole = whole

    @property
    def is_full(self) -> bool:
        """Whether it keeps only the beginning of further payloads."""
        return self._kept >= KEPT_ALL

    @property
    def _most(self) -> int | None:
        """The most bytes that are kept of each part of the next record, None for all."""
        return None if self._whole else KEPT_THEN if self.is_full else KEPT_PART

    def _payload(self, data: bytes | None, most: int | None) -> Payload:
        """Return a payload, which may be the beginning of `data`."""
        if data is None:
            return NULL
        kept = data[:most]
        self._kept += len(kept)
        return Payload(kept, len(data))

    def cut(self, record: Record) -> Record:
        """Return a record whose payloads may be cut."""
        most = self._most
        headers = tuple(Header(self._cut(h.name, most), self._cut(h.value, most)) for h in record.headers)
        key, value = self._cut(record.key, most), self._cut(record.value, most)
        return replace(record, key=key, value=value, headers=headers)

    def _cut(self, payload: Payload, most: int | None) -> Payload:
        if not payload.masked:
            return self._payload(payload.data, most)
        self._kept += len(payload.data or b"")  # which JSON stays whole
        return payload

    def record(self, raw: RawRecord, batch: Batch) -> Record:
        """Return a record of `batch`, whose payloads may be cut."""
        most, timeless = self._most, raw.timestamp_ms < 0
        created = TimeType.APPEND if raw.append_time else TimeType.CREATE
        return Record(
            offset=raw.offset,
            timestamp_ms=UNKNOWN if timeless else raw.timestamp_ms,
            time_type=TimeType.NONE if timeless else created,
            key=self._payload(raw.key, most),
            value=self._payload(raw.value, most),
            headers=tuple(
                Header(self._payload(name, most), self._payload(value, most)) for name, value in raw.headers
            ),
            header_count=raw.header_count,
            leader_epoch=batch.epoch if batch.magic > 1 and batch.epoch >= 0 else UNKNOWN,
            transactional=batch.transactional,
            producer_id=batch.producer if batch.producer >= 0 else UNKNOWN,
            producer_epoch=batch.producer_epoch if batch.producer >= 0 else UNKNOWN,
        )


class AbortedTransactions:
    """Says which batches of an answer a Java client leaves out because their transaction was aborted.

    `aborted` are those that a broker named, as (producer, first offset). All batches are given in order.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._pending = sorted(aborted, key=lambda transaction: transaction[1])
        self._begun = 0
        self._producers: set[int] = set()

    def have(self, batch: Batch) -> bool:
        """Return whether a batch is part of one. Raises MalformedBytes for a marker that cannot be read."""
        while self._begun < len(self._pending) and self._pending[self._begun][1] <= batch.last:
            self._producers.add(self._pending[self._begun][0])
            self._begun += 1
        if batch.control:
            if wire.ends_aborted(batch):
                self._producers.discard(batch.producer)
            return False
        return batch.transactional and batch.producer in self._producers


def read(
    data: bytes,
    aborted: Iterable[tuple[int, int]],
    low: int,
    high: int,
    most: int,
    newest: bool,
    keeper: Keeper,
) -> Part:
    """Return the records with offsets from `low` up to, but not including, `high`, at most `most`.

    If there are more, they are the last ones if `newest`. `aborted` are the aborted transactions that a
    broker named, as (producer, first offset); their records are left out, as in a Java client.
    """
    part = Part()
    kept: list[tuple[Batch, list[RawRecord]]] = []
    transactions = AbortedTransactions(aborted)
    try:
        for batch in wire.batches(data):
            if part.first == UNKNOWN:
                part.first = batch.first
            batch_records = _records_of(batch, part, transactions, low, high, most, newest)
            if batch_records:
                kept.append((batch, batch_records))
            part.next = max(batch.last, batch.first) + 1
            if not newest and sum(len(raws) for _, raws in kept) >= most:
                break
    except MalformedBytes:
        part.damage.append(
            Damage(low if part.next == UNKNOWN else part.next, DamageKind.MALFORMED, len(data))
        )
        part.broken = True
    chosen = [(raw, batch) for batch, raws in kept for raw in raws]
    chosen = chosen[-most:] if newest else chosen[:most]
    part.records = [keeper.record(raw, batch) for raw, batch in chosen]
    del part.damage[DAMAGE_MAX:]
    return part


def _records_of(
    batch: Batch, part: Part, aborted: AbortedTransactions, low: int, high: int, most: int, newest: bool
) -> list[RawRecord]:
    """Return the records of a batch that are wanted, and note in `part` why there are none."""
    if batch.first >= high:
        return []
    try:
        if batch.control:
            part.control.add(batch.first)
        if aborted.have(batch):
            part.aborted.add(batch.first)
        if batch.control or batch.first in part.aborted:
            return []
        return wire.records(batch, low, high, most, newest)
    except MalformedBytes as error:
        part.damage.append(Damage(batch.first, damage_kind(error), batch.size))
        return []


def damage_kind(error: MalformedBytes) -> DamageKind:
    """Return why a batch cannot be shown."""
    match error:
        case BadChecksum():
            return DamageKind.CORRUPT
        case TooLarge():
            return DamageKind.TOO_LARGE
        case UnknownFormat():
            return DamageKind.FORMAT
        case _:
            return DamageKind.MALFORMED
