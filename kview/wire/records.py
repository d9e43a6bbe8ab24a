"""Reads the records that a Fetch answer carries: batches of magic 2, and the message sets of older formats.

kafka-python reads them, too, but decompresses without a limit, and gives up a whole batch where a header's
name is not UTF-8. Sources: DefaultRecordBatch, DefaultRecord, AbstractLegacyRecordBatch, LegacyRecord.
"""

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from kview.wire.compression import TooLarge, inflated
from kview.wire.primitives import VARINT_BYTES, VARLONG_BYTES, MalformedBytes, read_record_field, read_varint

INFLATED_MAX = 16 << 20
"""Limit of a batch's decompressed bytes (16 MiB): room for a record of 10 MB, not for a bomb."""
RECORDS_MAX = 250_000
"""Limit of the records in a batch. Their lengths are read one by one."""
HEADERS_MAX = 100
"""Limit of the headers of a record that are kept."""

OVERHEAD = 12
"""Every format begins with an offset and the number of the bytes that follow."""
_MAGIC_AT = 16
_CRC_FROM = 21
_HEADER = struct.Struct(">qiibIhiqqqhii")
_OLD_CRC_FROM = 16
_OLD_LEAST = 14
"""The smallest message after its overhead: checksum, magic, attributes, and the lengths of key and value."""
_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_ZSTD = 4
_ABORT, _COMMIT = 0, 1
_NO_TIMESTAMP = -1
_LEAST_FRAMED = 4
"""What is framed with a schema's number has more bytes than this."""
_SCHEMA_HEADER = b"_schema_id"
"""The end of the names of headers with a schema's id."""
_KEY_AND_VALUE = (0, 1)


class BadChecksum(MalformedBytes):
    """Raised for a batch whose checksum is wrong."""


class UnknownFormat(MalformedBytes):
    """Raised for a format, or a compression, that Kafka does not have."""


class RawRecord(NamedTuple):
    """A record. `timestamp_ms` is −1 if it has none; `append_time` says what it stands for.

    `headers` are the first HEADERS_MAX of `header_count`.
    """

    offset: int
    timestamp_ms: int
    append_time: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    header_count: int = 0


class Batch(NamedTuple):
    """A batch as it is stored. `body` are its records, maybe compressed.

    The offsets of its records are from `first` to `last`, of which a compressed message set tells only the
    last one (`first` is the same then). `epoch` and `producer` are −1 in older formats,
    and `producer`, too, if it has no id.
    """

    data: memoryview
    magic: int
    first: int
    last: int
    epoch: int = -1
    attributes: int = 0
    base_time_ms: int = _NO_TIMESTAMP
    max_time_ms: int = _NO_TIMESTAMP
    producer: int = -1
    records: int = 1
    producer_epoch: int = -1

    @property
    def size(self) -> int:
        """The bytes that the batch takes in the log."""
        return len(self.data)

    @property
    def transactional(self) -> bool:
        """Whether its records were written in a transaction."""
        return self.magic > 1 and bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether it marks the end of a transaction, and has no records of a user."""
        return self.magic > 1 and bool(self.attributes & _CONTROL)


def batches(data: bytes | memoryview) -> Iterator[Batch]:
    """Yield the complete batches in the records of a Fetch answer. The last one is often cut off.

    Nothing is checked but the framing. Raises MalformedBytes where there is no frame.
    """
    view, at = memoryview(data), 0
    while at + _MAGIC_AT < len(view):
        offset, length = struct.unpack_from(">qi", view, at)
        end = at + OVERHEAD + length
        magic = view[at + _MAGIC_AT]
        if length < (_HEADER.size - OVERHEAD if magic > 1 else _OLD_LEAST):
            raise MalformedBytes(f"a batch of {length} bytes at {at}")
        if end > len(view):
            return
        yield _batch(view[at:end], magic, offset)
        at = end


def end_offset(data: bytes) -> int | None:
    """Return the offset after the last complete batch of a Fetch answer, None if there is none.

    Raises MalformedBytes where there is no frame.
    """
    last = None
    for batch in batches(data):
        last = batch
    return None if last is None else max(last.last, last.first) + 1


def _batch(data: memoryview, magic: int, offset: int) -> Batch:
    if magic > 1:
        _, _, epoch, _, _, attributes, last, base_ms, max_ms, *producer, _, count = _HEADER.unpack_from(data)
        return Batch(
            data,
            magic,
            offset,
            offset + last,
            epoch,
            attributes,
            base_ms,
            max_ms,
            producer[0],
            count,
            producer[1],
        )
    attributes = data[_MAGIC_AT + 1]
    time_ms = int.from_bytes(data[18:26], "big", signed=True) if magic else _NO_TIMESTAMP
    return Batch(
        data, magic, offset, offset, attributes=attributes, base_time_ms=time_ms, max_time_ms=time_ms
    )


def records(
    batch: Batch, low: int, high: int, most: int, newest: bool, checked_body: bytes | None = None
) -> list[RawRecord]:
    """Return at most `most` records of a batch with offsets from `low` up to, but not including, `high`.

    If there are more, they are the last ones if `newest`, else the first ones. `checked_body` is what `body`
    returned, if it was asked. Raises BadChecksum, UnknownFormat, TooLarge, or MalformedBytes.
    """
    if batch.magic != 2:
        check(batch)
        return _messages(batch, low, high, most, newest)
    data = body(batch) if checked_body is None else checked_body
    assert data is not None
    places = _places(batch, data)
    out: list[RawRecord] = []
    for at, stop in reversed(places) if newest else places:
        if len(out) >= most:
            break
        record = _record(batch, data, at, stop, low, high)
        if record is not None:
            out.append(record)
    return out[::-1] if newest else out


def records_with(
    batch: Batch,
    low: int,
    high: int,
    checked_body: bytes,
    groups: Sequence[Sequence[bytes]],
    with_schemas: bool,
) -> list[RawRecord]:
    """Return the records of a batch, whose body is `checked_body`, in whose bytes there is one of each group.

    If `with_schemas`, those that look as if a schema was needed to decode their key or value come, too. All
    others are not read. Raises as `records` does.
    """
    is_possible = all(any(_find(checked_body, needle) >= 0 for needle in group) for group in groups)
    if not is_possible and not with_schemas:
        return []
    places = _places(batch, checked_body)
    chosen = set[int]()
    if is_possible:
        rarest, *others = sorted(groups, key=lambda group: sum(map(checked_body.count, group)))
        starts = [at for at, _ in places]
        for needle in rarest:
            at = _find(checked_body, needle)
            while at >= 0:
                place = max(0, bisect_right(starts, at) - 1)
                begin, stop = places[place]
                if all(any(checked_body.find(n, begin, stop) >= 0 for n in group) for group in others):
                    chosen.add(place)
                at = checked_body.find(needle, max(stop, at + 1))  # it may be in the next one's length
    if with_schemas:
        if _SCHEMA_HEADER in checked_body:
            chosen.update(range(len(places)))
        else:
            chosen.update(_framed(checked_body, places))
    read = (_record(batch, checked_body, *places[place], low, high) for place in sorted(chosen))
    return [record for record in read if record is not None]


def _find(data: bytes, needle: bytes) -> int:
    """Return where a needle is first, −1 if it is not there.

    To look for its first byte is much faster, if that is as rare as a backslash in most JSON.
    """
    at = data.find(needle[:1]) if needle[:1] == b"\\" else 0
    return data.find(needle, at) if at >= 0 else at


def _framed(data: bytes, places: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the places of records whose key or value begins with a zero byte, as before a schema's number."""
    for place, (at, stop) in enumerate(places):
        try:
            at += 1
            while data[at] > 0x7F:  # the timestamp
                at += 1
            at += 1
            while data[at] > 0x7F:  # the offset
                at += 1
            at += 1
            for _ in _KEY_AND_VALUE:
                length = data[at]
                if length > 0x7F:
                    length, at = read_varint(data, at, VARINT_BYTES)
                else:
                    length, at = (length >> 1) ^ -(length & 1), at + 1
                if length > _LEAST_FRAMED and not data[at]:
                    yield place
                    break
                if length > 0:
                    at += length
        except (IndexError, MalformedBytes):
            yield place  # reading it says what is wrong
        else:
            if at > stop:
                yield place


def body(batch: Batch) -> bytes | None:
    """Check a batch and return its decompressed records, None if it has an older format.

    Raises as `records` does.
    """
    check(batch)
    if batch.magic != 2:
        return None
    if not 0 <= batch.records <= RECORDS_MAX:
        raise TooLarge(f"{batch.records} records") if batch.records > 0 else MalformedBytes("records < 0")
    return _body(batch, bytes(batch.data[_HEADER.size :]))


def check(batch: Batch) -> None:
    """Check a batch's format and checksum. Raises UnknownFormat or BadChecksum."""
    data = batch.data
    if batch.magic > 2:
        raise UnknownFormat(f"magic {batch.magic}")
    if batch.magic == 2:
        crc, computed = int.from_bytes(data[17:21], "big"), crc32c(data[_CRC_FROM:])
    else:
        crc, computed = int.from_bytes(data[12:16], "big"), zlib.crc32(data[_OLD_CRC_FROM:])
    if crc != computed:
        raise BadChecksum(f"offset {batch.first}")


def ends_aborted(batch: Batch) -> bool | None:
    """Return whether a control batch ends an aborted transaction, None if it ends none.

    Raises MalformedBytes.
    """
    for record in records(batch, batch.first, batch.last + 1, 1, newest=False):
        if record.key is not None and len(record.key) >= 4:
            kind = int.from_bytes(record.key[2:4], "big")
            return None if kind > _COMMIT else kind == _ABORT
    return None


def _body(batch: Batch, body: bytes) -> bytes:
    codec = batch.attributes & _CODEC
    if not codec:
        return body
    if codec > (_ZSTD if batch.magic == 2 else _ZSTD - 1):
        raise UnknownFormat(f"codec {codec}")
    return inflated(codec, body, INFLATED_MAX)


def _places(batch: Batch, data: bytes) -> list[tuple[int, int]]:
    """Return where the records of a batch begin, after their lengths, and end."""
    places: list[tuple[int, int]] = []
    at, end = 0, len(data)
    for _ in range(batch.records):
        if at + 2 <= end and data[at] < 0x80:  # as read_varint, which costs a call
            length, at = (data[at] >> 1) ^ -(data[at] & 1), at + 1
        elif at + 2 <= end and data[at + 1] < 0x80:
            rest = data[at] & 0x7F | data[at + 1] << 7
            length, at = (rest >> 1) ^ -(rest & 1), at + 2
        else:
            length, at = read_varint(data, at, VARINT_BYTES)
        stop = at + length
        if length <= 0 or stop > end:
            raise MalformedBytes(f"a record of {length} bytes at {at}")
        places.append((at, stop))
        at = stop
    if at != end:
        raise MalformedBytes(f"{end - at} bytes after the records")
    return places


def _record(batch: Batch, data: bytes, at: int, stop: int, low: int, high: int) -> RawRecord | None:
    """Decode a record after its length, None if it is not between `low` and `high`."""
    time_delta, at = read_varint(data, at + 1, VARLONG_BYTES)
    offset_delta, at = read_varint(data, at, VARINT_BYTES)
    offset = batch.first + offset_delta
    if not batch.first <= offset <= batch.last:
        raise MalformedBytes(f"offset {offset} in a batch from {batch.first} to {batch.last}")
    if not low <= offset < high:
        return None
    key, at = read_record_field(data, at)
    value, at = read_record_field(data, at)
    count, at = read_varint(data, at, VARINT_BYTES)
    if not 0 <= count <= stop - at:
        raise MalformedBytes(f"{count} headers")
    headers = []
    for index in range(count):
        name, at = read_record_field(data, at)
        if name is None:
            raise MalformedBytes("a header without a name")
        header, at = read_record_field(data, at)
        if index < HEADERS_MAX:
            headers.append((name, header))
    if at != stop:
        raise MalformedBytes(f"a record ends at {at}, not at {stop}")
    appended = bool(batch.attributes & _APPEND_TIME)
    time_ms = batch.max_time_ms if appended else batch.base_time_ms + time_delta
    return RawRecord(offset, time_ms, appended, key, value, tuple(headers), count)


def _messages(batch: Batch, low: int, high: int, most: int, newest: bool) -> list[RawRecord]:
    """Decode a message, or the message set that is the value of a compressed one."""
    appended = bool(batch.magic and batch.attributes & _APPEND_TIME)
    key, value = _message(batch)
    if not batch.attributes & _CODEC:
        decoded: Sequence[RawRecord] = [RawRecord(batch.last, batch.base_time_ms, appended, key, value)]
    else:
        if value is None:
            raise MalformedBytes("a compressed message without a value")
        inner = _set(_body(batch, value))
        # In magic 1, the offsets of a set are relative, and the outer one is that of its last message.
        base = batch.last - inner[-1].last if batch.magic and inner else 0
        decoded = []
        for message in inner:
            check(message)
            if message.attributes & _CODEC or message.magic != batch.magic:
                raise MalformedBytes("a message set in a message set")
            time_ms = batch.base_time_ms if appended else message.base_time_ms
            decoded.append(RawRecord(base + message.last, time_ms, appended, *_message(message)))
    chosen = [record for record in decoded if low <= record.offset < high]
    return chosen[-most:] if newest else chosen[:most]


def _set(data: bytes) -> list[Batch]:
    """Return the messages of a decompressed message set. Raises MalformedBytes if it is not complete."""
    out: list[Batch] = []
    for message in batches(data):
        out.append(message)
        if len(out) > RECORDS_MAX:
            raise TooLarge("messages")
        if message.magic > 1:
            raise MalformedBytes("a batch in a message set")
    if sum(message.size for message in out) != len(data):
        raise MalformedBytes("a message set that is cut off")
    return out


def _message(batch: Batch) -> tuple[bytes | None, bytes | None]:
    at = 26 if batch.magic else 18
    key, at = _field(batch.data, at)
    value, at = _field(batch.data, at)
    if at != len(batch.data):
        raise MalformedBytes(f"a message ends at {at}, not at {len(batch.data)}")
    return key, value


def _field(data: memoryview, at: int) -> tuple[bytes | None, int]:
    if at + 4 > len(data):
        raise MalformedBytes(f"a length at {at} of {len(data)}")
    length = int.from_bytes(data[at : at + 4], "big", signed=True)
    at += 4
    if length < 0:
        return None, at
    if at + length > len(data):
        raise MalformedBytes(f"{length} bytes wanted at {at} of {len(data)}")
    return bytes(data[at : at + length]), at + length
