"""Checks the records of a batch and reads their fields all at once, with numpy.

A module of its own, loaded when it is wanted: a cluster that is asked little starts without numpy.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kview.simulate.codes import ErrorCode
from kview.simulate.record_check import Checked, Refused, check_body, length_at
from kview.wire.primitives import VARINT_BYTES, VARLONG_BYTES, MalformedBytes

ALIKE = 16
"""After so many records of one length, the next lengths are compared all at once."""

_LOW_BITS = np.uint64(0x7F)


class Fields(NamedTuple):
    """Fields of the records of a valid batch. A key or value that is null has −1 bytes."""

    time_deltas: NDArray[np.int64]
    key_bytes: NDArray[np.int64]
    value_bytes: NDArray[np.int64]


def fields(data: bytes, at: int, records: int) -> Fields:
    """Return fields of so many records from position `at` on. Raises Refused."""
    try:
        starts, _ = _places(data, at, records)
        frame = np.frombuffer(data, dtype=np.uint8)
        deltas, after = _signed_many(frame, starts + 1, VARLONG_BYTES)
        _, after = _signed_many(frame, after, VARINT_BYTES)
        keys, after = _signed_many(frame, after, VARINT_BYTES)
        values, _ = _signed_many(frame, after + np.maximum(keys, 0), VARINT_BYTES)
    except (IndexError, MalformedBytes):
        raise Refused(ErrorCode.INVALID_RECORD) from None
    return Fields(deltas, keys, values)


def check_many(data: bytes, at: int, records: int, misnumbered: ErrorCode) -> Checked:
    """Do the same as `check_each`, with all records at once, because producers send 100,000 a second.

    Only lengths that change are read one by one, because each tells where the next record begins.
    """
    starts, stops = _places(data, at, records)
    frame = np.frombuffer(data, dtype=np.uint8)
    time_deltas, after = _signed_many(frame, starts + 1, VARLONG_BYTES)
    offset_deltas, bodies = _signed_many(frame, after, VARINT_BYTES)
    keys, after = _signed_many(frame, bodies, VARINT_BYTES)
    values, after = _signed_many(frame, after + np.maximum(keys, 0), VARINT_BYTES)
    headers, after = _signed_many(frame, after + np.maximum(values, 0), VARINT_BYTES)
    if ((headers == 0) & (after != stops)).any():
        raise Refused(ErrorCode.INVALID_RECORD)
    for index in np.flatnonzero(headers):
        check_body(data, int(bodies[index]), int(stops[index]))
    if (offset_deltas != np.arange(records)).any():
        raise Refused(misnumbered)
    return Checked(int(time_deltas.min()), int(time_deltas.max()), not (keys < 0).any())


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
            signed, at = length_at(data, at)
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
