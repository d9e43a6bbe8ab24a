"""From the bytes of a Fetch answer to the records that may be those that somebody looks for."""

from collections.abc import Iterable, Iterator, Sequence

from kview.model.inspection import Damage, DamageKind
from kview.model.search import Tally
from kview.observe.record_answers import AbortedTransactions, damage_kind
from kview.wire import records as wire
from kview.wire.primitives import MalformedBytes
from kview.wire.records import Batch, RawRecord

PAUSE_BYTES = 64 << 20
"""After so many bytes of records, decompressed, there is a pause: a few bytes may be a great many then."""
DAMAGE_MAX = 10
"""Limit of the damaged batches that are named. All are counted."""

Item = tuple[RawRecord, Batch] | None
"""A record with its batch, or a pause."""


class Scan:
    """Reads the batches of an answer with offsets from `low` up to, but not including, `high`.

    `next` is the offset after what `items` has yielded or left out, and `is_over` says whether there is no
    more. Unless there are no `needles`, only records with one of each group of them are read, and, if
    `with_schemas`, those that may need a schema.
    """

    def __init__(
        self,
        data: bytes,
        aborted: Iterable[tuple[int, int]],
        low: int,
        high: int,
        needles: Sequence[Sequence[bytes]],
        with_schemas: bool,
    ) -> None:
        self.next = low
        self.is_over = False
        self._records = self._control = self._aborted = self._damaged = 0
        self._damage: list[Damage] = []
        self._data = data
        self._transactions = AbortedTransactions(aborted)
        self._low, self._high = low, high
        self._needles, self._with_schemas = needles, with_schemas
        self._inflated = 0
        self.items = self._items()

    def take(self) -> tuple[Tally, Sequence[Damage]]:
        """Return what has been read since this was called last, and what could not be."""
        tally = Tally(
            records=self._records, control=self._control, aborted=self._aborted, damaged=self._damaged
        )
        self._records = self._control = self._aborted = self._damaged = 0
        damage, self._damage = self._damage, []
        return tally, damage

    def _items(self) -> Iterator[Item]:
        try:
            for batch in wire.batches(self._data):
                if batch.first >= self._high:
                    break
                for raw in self._of(batch):
                    self.next = max(self.next, raw.offset + 1)
                    yield raw, batch
                self.next = max(self.next, batch.last + 1, batch.first + 1)
                if self._inflated > PAUSE_BYTES:
                    self._inflated = 0
                    yield None
        except MalformedBytes:
            self._note(Damage(self.next, DamageKind.MALFORMED, len(self._data)))
            self.next = self._high  # nobody can tell where the next batch begins
        self.is_over = True

    def _of(self, batch: Batch) -> Sequence[RawRecord]:
        """Return the records of a batch that may be looked for, and count what is left out."""
        try:
            aborted = self._transactions.have(batch)
            self._control += batch.control
            self._aborted += aborted
            if aborted or batch.control:
                return ()
            body = wire.body(batch)
            self._inflated += len(body) if body is not None else batch.size
            is_whole = self._low <= batch.first and batch.last < self._high  # else its count is too large
            if body is not None and self._needles and is_whole:
                self._records += batch.records
                return wire.records_with(
                    batch, self._low, self._high, body, self._needles, self._with_schemas
                )
            raws = wire.records(batch, self._low, self._high, wire.RECORDS_MAX, False, body)
        except MalformedBytes as error:
            self._note(Damage(batch.first, damage_kind(error), batch.size))
            return ()
        self._records += len(raws)
        return raws

    def _note(self, damage: Damage) -> None:
        self._damaged += 1
        if len(self._damage) < DAMAGE_MAX:
            self._damage.append(damage)
