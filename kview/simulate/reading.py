"""The bytes that consumers fetch: batches that clients sent, and batches generated from simulated records."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from kview.simulate.log import Log, Span
from kview.simulate.records import HEADER_BYTES, TRANSACTIONAL, BatchHeader, Sender, pack_batch, placed
from kview.simulate.stream import Run
from kview.wire.primitives import record_field, varint

BATCH_BYTES = 16_384
"""Largest size of a batch of simulated records: a producer's batch.size."""
CACHE_BYTES = 16_777_216
"""Size of the cache of generated batches, which several consumers read within seconds of each other."""
FILLER_BYTES = 4096
KEY_FACTOR = 2_654_435_761
"""Scatters offsets over keys (Knuth's multiplicative hash)."""
KEYS_AT_ONCE = 1 << 20
RECORD_BYTES_MIN = 64
"""Smallest size of a simulated record, with room for its overhead, its label and a key."""

Keys = Callable[[str, int], Sequence[bytes]]


class RecordMaker:
    """Generates the bytes of simulated records.

    The same (seed, topic, partition, offset) always results in the same bytes.
    """

    def __init__(self, filler: bytes) -> None:
        self._filler = filler
        self._producers: list[tuple[str, Keys | None]] = []
        self._keys: dict[tuple[int, str, int], Sequence[bytes]] = {}
        self._cache: OrderedDict[tuple[str, int, int, Run], bytes] = OrderedDict()
        self._cached_bytes = 0

    def register(self, client_id: str, keys: Keys | None) -> int:
        """Register a producer, and return its number."""
        self._producers.append((client_id, keys))
        return len(self._producers) - 1

    def has_keys(self, producer: int) -> bool:
        """Return whether the records of a producer have keys."""
        return self._producers[producer][1] is not None

    def batch(self, topic: str, partition: int, epoch: int, run: Run) -> bytes:
        """Return the records of `run`, encoded as one batch."""
        # The key is the entire run, because a recreated topic has other runs at the same offsets and epochs.
        name = (topic, partition, epoch, run)
        encoded = self._cache.get(name)
        if encoded is not None:
            self._cache.move_to_end(name)
            return encoded
        encoded = pack_batch(*self._make(topic, partition, epoch, run))
        self._cache[name] = encoded
        self._cached_bytes += len(encoded)
        while self._cached_bytes > CACHE_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])
        return encoded

    def records_per_batch(self, record_bytes: int) -> int:
        """Return how many simulated records of this size are in a batch."""
        return max(1, BATCH_BYTES // max(record_bytes, RECORD_BYTES_MIN))

    def last_offsets(self, topic: str, partition: int, run: Run) -> dict[bytes, int]:
        """Return the last offset of each key among the records of `run`."""
        keys = self._keys_of(run.producer, topic, partition)
        if not keys:
            return {}
        import numpy as np

        last: dict[bytes, int] = {}
        for start in range(run.base_offset, run.base_offset + run.records, KEYS_AT_ONCE):
            stop = min(start + KEYS_AT_ONCE, run.base_offset + run.records)
            offsets = np.arange(start, stop, dtype=np.uint64)
            chosen = (offsets * np.uint64(KEY_FACTOR) & np.uint64(0xFFFFFFFF)) % np.uint64(len(keys))
            numbers, places = np.unique(chosen[::-1], return_index=True)
            last |= {
                keys[at]: stop - 1 - place
                for at, place in zip(numbers.tolist(), places.tolist(), strict=True)
            }
        return last

    def _keys_of(self, producer: int, topic: str, partition: int) -> Sequence[bytes]:
        _, keys = self._producers[producer]
        if keys is None:
            return ()
        place = (producer, topic, partition)
        if place not in self._keys:
            self._keys[place] = keys(topic, partition)
        return self._keys[place]

    def transactional(self, topic: str, partition: int, run: Run, sender: Sender) -> bytes:
        """Return the records of `run` as one batch that a transactional producer sends.

        `run.base_offset` only numbers the records: their offsets are not known yet.
        """
        head, data = self._make(topic, partition, -1, run)
        head = head._replace(
            base_offset=0,
            attributes=TRANSACTIONAL,
            producer_id=sender.producer_id,
            producer_epoch=sender.producer_epoch,
            base_sequence=sender.base_sequence,
        )
        return pack_batch(head, data)

    def _make(self, topic: str, partition: int, epoch: int, run: Run) -> tuple[BatchHeader, bytes]:
        client_id, _ = self._producers[run.producer]
        chosen = self._keys_of(run.producer, topic, partition)
        base_ms = run.first_us // 1000
        body: list[bytes] = []
        time_us = run.first_us
        label = f"{client_id} {topic}-{partition}@"
        filler = self._filler
        for delta in range(run.records):
            offset = run.base_offset + delta
            scattered = offset * KEY_FACTOR & 0xFFFFFFFF
            key = chosen[scattered % len(chosen)] if chosen else None
            head = b"".join(
                (
                    b"\0",
                    varint(time_us // 1000 - base_ms),
                    varint(delta),
                    record_field(key),
                )
            )
            # The two lengths take 2 bytes each in records up to 8 kB. Larger records come out a few bytes
            # longer.
            size = max(run.record_bytes - len(head) - 5, 1)
            value = f"{label}{offset} ".encode()
            at = scattered % (FILLER_BYTES // 2)
            while len(value) < size:
                value += filler[at : at + size - len(value)]
                at = 0
            inner = b"".join((head, varint(size), value[:size], b"\0"))
            body += (varint(len(inner)), inner)
            time_us += run.step_us
        last_ms = (run.first_us + run.step_us * (run.records - 1)) // 1000
        data = b"".join(body)
        batch = BatchHeader(
            base_offset=run.base_offset,
            size_bytes=HEADER_BYTES + len(data),
            leader_epoch=epoch,
            attributes=0,
            last_offset_delta=run.records - 1,
            base_time_ms=base_ms,
            max_time_ms=last_ms,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            records=run.records,
        )
        return batch, data

    def read(self, topic: str, partition: int, log: Log, offset: int, stop: int, max_bytes: int) -> bytes:
        """Return complete batches, from the one that contains `offset`, up to offset `stop` and `max_bytes`.

        The first batch is returned even if it is larger than `max_bytes`.
        """
        pieces: list[bytes | memoryview] = []
        size = 0
        for span, at, start, end in log.entries(offset, stop):
            for batch in self._batches(topic, partition, span, at, start, end):
                more = sum(map(len, batch))
                if pieces and size + more > max_bytes:
                    return b"".join(pieces)
                pieces += batch
                size += more
                if size >= max_bytes:
                    return b"".join(pieces)
        return b"".join(pieces)

    def bounds(self, log: Log, offset: int, stop: int, max_bytes: int) -> list[tuple[int, int]]:
        """Return (first, last) offset of the complete batches that `read` would return, without their bytes.

        The sizes of simulated ones are estimated.
        """
        found: list[tuple[int, int]] = []
        size = 0
        for span, at, start, end in log.entries(offset, stop):
            stream = span.stream
            batch = stream.batches[at]
            if batch is not None:
                if not batch:
                    continue
                pieces = [(stream.batch_base(at, batch), stream.entry_end(at), len(batch))]
            else:
                per_batch = self.records_per_batch(stream.record_bytes[at])
                base = stream.base[at]
                begins = range(base + (start - base) // per_batch * per_batch, end, per_batch)
                each = HEADER_BYTES + per_batch * stream.record_bytes[at]
                pieces = [(begin, min(begin + per_batch, end), each) for begin in begins]
            for begin, after, more in pieces:
                if found and size + more > max_bytes:
                    return found
                found.append((begin, after - 1))
                size += more
        return found

    def _batches(
        self, topic: str, partition: int, span: Span, at: int, start: int, end: int
    ) -> Iterator[tuple[bytes | memoryview, ...]]:
        """Yield the batches of one entry, each in pieces, so that large batches are copied only once.

        A run is always split at the same offsets, wherever reading starts.
        """
        stream = span.stream
        batch = stream.batches[at]
        if batch is not None:
            if batch:
                yield placed(batch, stream.batch_base(at, batch), span.epoch)
            return
        per_batch = self.records_per_batch(stream.record_bytes[at])
        base = stream.base[at]
        first = base + (start - base) // per_batch * per_batch
        while first < end:
            stop = min(first + per_batch, end)
            yield (self.batch(topic, partition, span.epoch, stream.run(at, first, stop)),)
            first = stop
