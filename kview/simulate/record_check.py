"""Checks the records of a batch one by one.

Source: DefaultRecord.readFrom and readPartiallyFrom.
"""

from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.results import RecordError
from kview.wire.primitives import VARINT_BYTES, VARLONG_BYTES, MalformedBytes, read_varint


class Refused(Exception):
    """Raised with the error code of a batch, and with what Kafka says about it and its records, if
    anything."""

    def __init__(
        self, code: ErrorCode, message: str | None = None, record_errors: tuple[RecordError, ...] = ()
    ) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.record_errors = record_errors


class Checked(NamedTuple):
    """What is known of the records of a valid batch: the least and the greatest time delta, and whether each
    has a key."""

    earliest_delta: int
    latest_delta: int
    keyed: bool


def check_each(data: bytes, at: int, records: int, misnumbered: ErrorCode) -> Checked:
    """Check that `data` has exactly so many records from position `at` on.

    `misnumbered` is the error code of records whose offset deltas are not 0, 1, 2 … Raises Refused, and
    MalformedBytes or IndexError if the records end early.
    """
    deltas, keyed = [], True
    for index in range(records):
        length, at = length_at(data, at)
        stop = at + length
        time_delta, at = read_varint(data, at + 1, VARLONG_BYTES)
        offset_delta, at = read_varint(data, at, VARINT_BYTES)
        if length <= 0 or stop > len(data):
            raise Refused(ErrorCode.INVALID_RECORD)
        keyed &= check_body(data, at, stop)
        if offset_delta != index:
            raise Refused(misnumbered)
        deltas.append(time_delta)
        at = stop
    if at != len(data):
        raise Refused(ErrorCode.INVALID_RECORD)
    return Checked(min(deltas), max(deltas), keyed)


def check_body(data: bytes, at: int, stop: int) -> bool:
    """Check a record from its key on, and return whether it has a key.

    Raises MalformedBytes if the batch ends too early.
    """
    key_bytes, at = read_varint(data, at, VARINT_BYTES)
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
    return key_bytes >= 0


def length_at(data: bytes, at: int) -> tuple[int, int]:
    """Decode a record's length, and return it and the position after it.

    As in Kafka, a length without an end has an error of its own. Raises MalformedBytes if it is cut off.
    """
    try:
        return read_varint(data, at, VARINT_BYTES)
    except MalformedBytes:
        if at + VARINT_BYTES > len(data):  # It is cut off.
            raise
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
