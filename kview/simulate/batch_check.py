"""Checks a client's record batch before it is appended, in the order of Kafka's checks and with its errors.

Sources: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator and
DefaultRecordBatch. Three things differ. Offset deltas that are not 0, 1, 2 … are refused; Kafka takes them in
an uncompressed batch. Records that are longer or shorter than they claim are refused; Kafka takes them in a
compressed batch. What comes out of a compressed batch has limits.
"""

from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from kview.simulate.codes import ErrorCode
from kview.simulate.record_check import Refused, check_records, fields
from kview.simulate.records import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    MAGIC,
    TIMESTAMP_TYPE,
    BatchHeader,
    header,
    with_times,
)
from kview.simulate.results import RecordError
from kview.simulate.setting import LONG_MAX
from kview.wire.compression import TooLarge, Unreadable, inflated

APPEND_TIME = "LogAppendTime"
NO_TIMESTAMP = -1
CODECS = range(5)
"""None, gzip, snappy, lz4 and zstd, as in a batch's attributes."""

COMPRESSED_RECORDS_MAX = 250_000
"""Limit of the records of a compressed batch, so that a check holds nobody up. As many fit uncompressed into
two batches of usual size."""

RECORD_ERRORS_MAX = 1_000
"""Limit of the records that the refusals in an answer name. Kafka names all."""
ERRORS_IN_MESSAGE = 3

_MAGIC_AT = 16


class NotABatch(Refused):
    """Raised for bytes that never reach a log, because they are not one undamaged batch of a size that the
    topic takes."""


class NotAFrame(NotABatch):
    """Raised for bytes that are not exactly one whole batch of magic 2. Kafka sees that before anything else
    (ProduceRequest.validateRecords)."""


class Rules(NamedTuple):
    """What a topic demands of a batch.

    `now_ms` is the time of the append. The records' own times may be `before_max_ms` before it and
    `after_max_ms` after it, unless the topic records the time of the append.
    """

    now_ms: int
    max_bytes: int
    compacted: bool = False
    before_max_ms: int = LONG_MAX
    after_max_ms: int = 3_600_000
    append_time: bool = False

    def refuses_time(self, time_ms: int) -> bool:
        """Return whether a record must not have this timestamp.

        As in Kafka, the difference to the present is a number of 64 bits.
        """
        if time_ms == NO_TIMESTAMP or self.append_time:
            return False
        age_ms = _wrapped(self.now_ms - time_ms)
        return age_ms > self.before_max_ms or _wrapped(-age_ms) > self.after_max_ms


class Batch(NamedTuple):
    """A batch that may be appended."""

    header: BatchHeader
    data: bytes


def check(data: bytes, rules: Rules, where: str = "") -> Batch:
    """Check the records for partition `where` in a Produce request, which must be exactly one batch.

    Returns the batch, whose latest timestamp is corrected if necessary. Raises Refused.
    """
    _check_frame(data, rules)
    head = header(data)
    _check_header(head)
    latest_ms = _latest_ms(data, head, rules, where)
    attributes = head.attributes & ~TIMESTAMP_TYPE
    if rules.append_time:
        attributes, latest_ms = head.attributes | TIMESTAMP_TYPE, rules.now_ms
    if latest_ms != head.max_time_ms or attributes != head.attributes:
        data = with_times(data, attributes, latest_ms)
        head = head._replace(attributes=attributes, max_time_ms=latest_ms)
    return Batch(head, data)


def _check_frame(data: bytes, rules: Rules) -> None:
    """Check that the bytes are one batch of magic 2 with the right checksum."""
    if len(data) <= _MAGIC_AT or data[_MAGIC_AT] != MAGIC:
        raise NotAFrame(ErrorCode.INVALID_RECORD)
    size = int.from_bytes(data[8:LENGTH_FROM], "big", signed=True) + LENGTH_FROM
    if size < HEADER_BYTES:
        raise NotAFrame(ErrorCode.CORRUPT_MESSAGE)
    if size != len(data):  # The batch is cut off, or a second one follows.
        raise NotAFrame(ErrorCode.INVALID_RECORD)
    if size > rules.max_bytes:
        raise NotABatch(ErrorCode.MESSAGE_TOO_LARGE)
    if crc32c(memoryview(data)[CRC_FROM:]) != HEADER.unpack_from(data)[4]:
        raise NotABatch(ErrorCode.CORRUPT_MESSAGE)


def _check_header(head: BatchHeader) -> None:
    if head.base_offset:
        raise Refused(ErrorCode.INVALID_RECORD)
    if head.attributes & COMPRESSION_MASK not in CODECS:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if head.records <= 0 or head.last_offset_delta != head.records - 1:
        raise Refused(ErrorCode.INVALID_RECORD)
    if head.attributes & CONTROL or (head.producer_id >= 0 and head.base_sequence < 0):
        raise Refused(ErrorCode.INVALID_RECORD)


def _latest_ms(data: bytes, head: BatchHeader, rules: Rules, where: str) -> int:
    """Return the latest timestamp among the records, after checking each of them."""
    codec = head.attributes & COMPRESSION_MASK
    if codec:
        records, at = _decompressed(codec, data, head.records), 0
        checked = check_records(records, at, head.records, ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        records, at = data, HEADER_BYTES
        checked = check_records(records, at, head.records)
    earliest_ms = _wrapped(head.base_time_ms + checked.earliest_delta)
    latest_ms = _wrapped(head.base_time_ms + checked.latest_delta)
    suspicious = (
        (rules.compacted and not checked.keyed)
        or (rules.append_time and head.attributes & TIMESTAMP_TYPE)
        or earliest_ms <= NO_TIMESTAMP
        or earliest_ms > latest_ms
        or rules.refuses_time(earliest_ms)
        or rules.refuses_time(latest_ms)
    )
    if suspicious:
        latest_ms = _check_keys_and_times(records, at, head, rules, where)
    return latest_ms


def _check_keys_and_times(data: bytes, at: int, head: BatchHeader, rules: Rules, where: str) -> int:
    """Check each record from position `at` on: its key first and, if that is right, its timestamp.

    Returns the latest timestamp. Raises Refused, which names every record that is wrong.
    """
    deltas, key_bytes, value_bytes = fields(data, at, head.records)
    times = np.int64(head.base_time_ms) + deltas
    if head.attributes & TIMESTAMP_TYPE and rules.append_time:
        times[:] = head.max_time_ms
        refused = np.ones(len(times), dtype=np.bool_)
    else:
        ages = np.int64(rules.now_ms) - times
        refused = (ages > rules.before_max_ms) | (-ages > rules.after_max_ms)
        refused &= (times != NO_TIMESTAMP) & (not rules.append_time)
    without_key = (key_bytes < 0) & rules.compacted
    refused &= ~without_key
    wrong = np.flatnonzero(without_key | refused)
    if not len(wrong):
        return max(NO_TIMESTAMP, int(times.max()))

    def message(index: int) -> str:
        if without_key[index]:
            return f"Compacted topic cannot accept message without key in topic partition {where}"
        if rules.append_time:
            sizes = max(0, key_bytes[index]), max(0, value_bytes[index])
            record = f"DefaultRecord(offset={index}, timestamp={times[index]}, key={sizes[0]} bytes, "
            return (
                f"Invalid timestamp type in message {record}value={sizes[1]} bytes). Producer should not set "
                f"timestamp type to {APPEND_TIME}."
            )
        earliest, latest = rules.now_ms - rules.before_max_ms, rules.now_ms + rules.after_max_ms
        return (
            f"Timestamp {times[index]} of message with offset {index} is out of range. The timestamp should "
            f"be within [{_wrapped(earliest)}, {_wrapped(latest)}]"
        )

    errors = tuple(RecordError(int(index), message(index)) for index in wrong[:RECORD_ERRORS_MAX])
    rejected = "One or more records have been rejected due to"
    if refused.any():
        raise Refused(ErrorCode.INVALID_TIMESTAMP, f"{rejected} invalid timestamp", errors)
    shown = (f"RecordError(batchIndex={at}, message='{text}')" for at, text in errors[:ERRORS_IN_MESSAGE])
    raise Refused(
        ErrorCode.INVALID_RECORD,
        f"{rejected} {len(wrong)} record errors in total, and only showing the first three errors at most: "
        f"[{', '.join(shown)}]",
        errors,
    )


def _wrapped(number: int) -> int:
    """Return a number in the 64 bits that Java has for it."""
    return (number + LONG_MAX + 1) % (2 * LONG_MAX + 2) - LONG_MAX - 1


def _decompressed(codec: int, data: bytes, records: int) -> bytes:
    """Return the records of a compressed batch.

    What exceeds the limits is too large, so that Java's producers send it again in smaller batches. For bytes
    that cannot be decompressed, and for offset deltas that are not 0, 1, 2 …, Kafka has no better error than
    UNKNOWN_SERVER_ERROR.
    """
    if records > COMPRESSED_RECORDS_MAX:
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
    try:
        return inflated(codec, data[HEADER_BYTES:])
    except TooLarge:
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE) from None
    except Unreadable:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
