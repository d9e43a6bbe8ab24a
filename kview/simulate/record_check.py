"""Checks the records of a batch, and reads their times: one by one or, if there are many, all with numpy.

Source: DefaultRecord.readFrom and readPartiallyFrom.
"""

import numpy as np
from numpy.typing import NDArray

from kview.simulate.codes import ErrorCode
from kview.wire.primitives import VARINT_BYTES, VARLONG_BYTES, MalformedBytes, read_varint

MANY_RECORDS = 48
"""From this number of records on, numpy is faster."""

ALIKE = 16
"""After so many records of one length, the next lengths are compared all at once."""

_LOW_BITS = np.uint64(0x7F)


class Refused(Exception):
    """Raised with the error code of a batch."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code)
        self.code = code


def check_records(
    data: bytes,
    at: int,
    records: int,
    keyed: bool = False,
    misnumbered: ErrorCode = ErrorCode.INVALID_RECORD,
) -> tuple[int, int]:
    """Check that `data` has exactly so many records from position `at` on.

    With `keyed`, every record must have a key. `misnumbered` is the error code of records whose offset deltas
    are not 0, 1, 2 … Returns the least and the greatest time delta. Raises Refused.
    """
    try:
        check = _check_many if records >= MANY_RECORDS else _check_each
        return check(data, at, records, keyed, misnumbered)
    except (IndexError, MalformedBytes):
        raise Refused(ErrorCode.INVALID_RECORD) from None


def time_deltas(data: bytes, at: int, records: int) -> NDArray[np.int64]:
    """Return the time delta of each of so many records from position `at` on. Raises Refused."""
    try:
        starts, _ = _places(data, at, records)
        return _signed_many(np.frombuffer(data, dtype=np.uint8), starts + 1, VARLONG_BYTES)[0]
    except (IndexError, MalformedBytes):
        raise Refused(ErrorCode.INVALID_RECORD) from None


def _check_each(data: bytes, at: int, records: int, keyed: bool, misnumbered: ErrorCode) -> tuple[int, int]:
    """Do the same as `check_records`, record by record. Raises MalformedBytes if the records end early."""
    deltas = []
    for index in range(records):
        length, at = _length(data, at)
        stop = at + length
        time_delta, at = read_varint(data, at + 1, VARLONG_BYTES)
        offset_delta, at = read_varint(data, at, VARINT_BYTES)
        if length <= 0 or stop > len(data):
            raise Refused(ErrorCode.INVALID_RECORD)
        _check_body(data, at, stop, keyed)
        if offset_delta != index:
            raise Refused(misnumbered)
        deltas.append(time_delta)
        at = stop
    if at != len(data):
        raise Refused(ErrorCode.INVALID_RECORD)
    return min(deltas), max(deltas)


def _check_many(data: bytes, at: int, records: int, keyed: bool, misnumbered: ErrorCode) -> tuple[int, int]:
    """Do the same as `_check_each`, with all records at once, because producers send 100,000 a second.

    Only lengths that change are read one by one, because each tells where the next record begins.
    """
    starts, stops = _places(data, at, records)
    frame = np.frombuffer(data, dtype=np.uint8)
    time_deltas, after = _signed_many(frame, starts + 1, VARLONG_BYTES)
    offset_deltas, bodies = _signed_many(frame, after, VARINT_BYTES)
    keys, after = _signed_many(frame, bodies, VARINT_BYTES)
    values, after = _signed_many(frame, after + np.maximum(keys, 0), VARINT_BYTES)
    headers, after = _signed_many(frame, after + np.maximum(values, 0), VARINT_BYTES)
    if (keyed and (keys < 0).any()) or ((headers == 0) & (after != stops)).any():
        raise Refused(ErrorCode.INVALID_RECORD)
    for index in np.flatnonzero(headers):
        _check_body(data, int(bodies[index]), int(stops[index]), keyed)
    if (offset_deltas != np.arange(records)).any():
        raise Refused(misnumbered)
    return int(time_deltas.min()), int(time_deltas.max())


def _places(data: bytes, at: int, records: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each record begins after its length, and where it ends."""
    starts: list[int] = []
    stops: list[int] = []
    end, left, before, alike = len(data), records, 0, 0
    while left:
        begin, byte = at, data[at]
        if byte < 0x80:
            length, at = byte, at + 1
        elif (second := data[at + 1]) < 0x80:
            length, at = byte & 0x7F | second << 7, at + 2
        else:
            signed, at = _length(data, at)
            length = 2 * signed
        if length & 1 or not length:
            raise Refused(ErrorCode.INVALID_RECORD)
        start, at = at, at + (length >> 1)
        starts.append(start)
        stops.append(at)
        if at > end:
            raise Refused(ErrorCode.INVALID_RECORD)
        left -= 1
        alike, before = alike + 1 if length == before else 0, length
        if alike == ALIKE:
            more, step, alike = _as_long(data, begin, start, at, left), at - begin, 0
            starts.extend(range(start + step, start + step * more + 1, step))
            stops.extend(range(at + step, at + step * more + 1, step))
            left, at = left - more, at + step * more
    if at != end:
        raise Refused(ErrorCode.INVALID_RECORD)
    return np.array(starts, dtype=np.int64), np.array(stops, dtype=np.int64)


def _as_long(data: bytes, begin: int, start: int, stop: int, most: int) -> int:
    """Return how many of the following records, up to `most`, are as long as this one.

    `begin` is the position of this record's length, `start` of what comes after it.
    """
    step = stop - begin
    room = min(most, (len(data) - stop) // step)
    frame = np.frombuffer(data, dtype=np.uint8)
    same = np.ones(room, dtype=np.bool_)
    for at in range(begin, start):
        same &= frame[at + step : at + step * room + 1 : step] == data[at]
    return room if same.all() else int(same.argmin())


def _check_body(data: bytes, at: int, stop: int, keyed: bool) -> None:
    """Check a record from its key on. Raises MalformedBytes if the batch ends too early."""
    key_bytes, at = read_varint(data, at, VARINT_BYTES)
    if key_bytes < 0 and keyed:
        raise Refused(ErrorCode.INVALID_RECORD)
    at += max(0, key_bytes)
    value_bytes, at = read_varint(data, at, VARINT_BYTES)
    at += max(0, value_bytes)
    headers, at = read_varint(data, at, VARINT_BYTES)
    if headers < 0 or headers > stop - at:
        raise Refused(ErrorCode.INVALID_RECORD)
    for _ in range(headers):
        name_bytes, at = read_varint(data, at, VARINT_BYTES)
        if name_bytes < 0:
            raise Refused(ErrorCode.INVALID_RECORD)
        value_bytes, at = read_varint(data, at + name_bytes, VARINT_BYTES)
        at += max(0, value_bytes)
    if at != stop:
        raise Refused(ErrorCode.INVALID_RECORD)


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Decode a record's length, and return it and the position after it.

    As in Kafka, a length without an end has an error of its own. Raises MalformedBytes if it is cut off.
    """
    try:
        return read_varint(data, at, VARINT_BYTES)
    except MalformedBytes:
        if at + VARINT_BYTES > len(data):  # It is cut off.
            raise
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _signed_many(
    frame: NDArray[np.uint8], at: NDArray[np.int64], most_bytes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Decode a zigzag varint at each position, and return them and the positions after them.

    A position after the end of the frame is read as the last byte, and moves on. So it never becomes the end
    of a record.
    """
    last = len(frame) - 1
    byte = frame[np.minimum(at, last)].astype(np.uint64)
    value, more, at = byte & _LOW_BITS, byte > _LOW_BITS, at + 1
    for shift in range(7, 7 * most_bytes, 7):
        if not more.any():
            break
        byte = frame[np.minimum(at, last)].astype(np.uint64)
        value |= np.where(more, (byte & _LOW_BITS) << np.uint64(shift), np.uint64(0))
        at = at + more
        more &= byte > _LOW_BITS
    if more.any():
        raise Refused(ErrorCode.INVALID_RECORD)
    sign = (value & np.uint64(1)).astype(np.int64)
    return (value >> np.uint64(1)).astype(np.int64) ^ -sign, at
