"""Checks a client's record batch before it is appended, in the order of Kafka's checks and with its errors.

Sources: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator and
DefaultRecordBatch. Three things differ. Offset deltas that are not 0, 1, 2 … are refused; Kafka takes them in
an uncompressed batch. Records that are longer or shorter than they claim are refused; Kafka takes them in a
compressed batch. What comes out of a compressed batch has limits.
"""

from typing import NamedTuple

from crc32c import crc32c

from kview.simulate.codes import ErrorCode
from kview.simulate.record_check import Refused, check_records
from kview.simulate.records import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    MAGIC,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchHeader,
    header,
    with_times,
)
from kview.wire.compression import TooLarge, Unreadable, inflated

APPEND_TIME = "LogAppendTime"
NO_TIMESTAMP = -1
CODECS = range(5)
"""None, gzip, snappy, lz4 and zstd, as in a batch's attributes."""
LONG_MAX = 2**63 - 1

COMPRESSED_RECORDS_MAX = 250_000
"""Limit of the records of a compressed batch, so that a check holds nobody up. As many fit uncompressed into
two batches of usual size."""

_MAGIC_AT = 16


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
        return time_ms - self.now_ms > self.after_max_ms or self.now_ms - time_ms > self.before_max_ms


class Batch(NamedTuple):
    """A batch that may be appended."""

    header: BatchHeader
    data: bytes


def check(data: bytes, rules: Rules) -> Batch | ErrorCode:
    """Check the records of one partition in a Produce request, which must be exactly one batch.

    Returns the batch, whose latest timestamp is corrected if necessary, or why it is refused.
    """
    try:
        return _checked(data, rules)
    except Refused as refused:
        return refused.code


def _checked(data: bytes, rules: Rules) -> Batch:
    _check_frame(data, rules)
    head = header(data)
    _check_header(head)
    latest_ms = _latest_ms(data, head, rules)
    if rules.refuses_time(head.base_time_ms) or rules.refuses_time(latest_ms):
        raise Refused(ErrorCode.INVALID_TIMESTAMP)
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
        raise Refused(ErrorCode.INVALID_RECORD)
    size = int.from_bytes(data[8:LENGTH_FROM], "big", signed=True) + LENGTH_FROM
    if size < HEADER_BYTES:
        raise Refused(ErrorCode.CORRUPT_MESSAGE)
    if size != len(data):  # The batch is cut off, or a second one follows.
        raise Refused(ErrorCode.INVALID_RECORD)
    if size > rules.max_bytes:
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
    if crc32c(memoryview(data)[CRC_FROM:]) != HEADER.unpack_from(data)[4]:
        raise Refused(ErrorCode.CORRUPT_MESSAGE)


def _check_header(head: BatchHeader) -> None:
    if head.records <= 0 or head.last_offset_delta != head.records - 1:
        raise Refused(ErrorCode.INVALID_RECORD)
    if head.attributes & CONTROL or head.attributes & COMPRESSION_MASK not in CODECS:
        raise Refused(ErrorCode.INVALID_RECORD)
    if head.producer_id >= 0 and (head.base_sequence < 0 or head.producer_epoch < 0):
        raise Refused(ErrorCode.INVALID_RECORD)
    if head.attributes & TRANSACTIONAL and head.producer_id < 0:
        raise Refused(ErrorCode.INVALID_RECORD)


def _latest_ms(data: bytes, head: BatchHeader, rules: Rules) -> int:
    """Return the latest timestamp among the records, after checking each of them."""
    codec = head.attributes & COMPRESSION_MASK
    if codec:
        earliest_delta, latest_delta = _check_compressed(codec, data, head.records, rules.compacted)
    else:
        earliest_delta, latest_delta = check_records(data, HEADER_BYTES, head.records, rules.compacted)
    if rules.refuses_time(head.base_time_ms + earliest_delta):
        raise Refused(ErrorCode.INVALID_TIMESTAMP)
    return head.base_time_ms + latest_delta


def _check_compressed(codec: int, data: bytes, records: int, keyed: bool) -> tuple[int, int]:
    """Check the records of a compressed batch, and return their least and greatest time delta.

    What exceeds the limits is too large, so that Java's producers send it again in smaller batches. For bytes
    that cannot be decompressed, and for offset deltas that are not 0, 1, 2 …, Kafka has no better error than
    UNKNOWN_SERVER_ERROR.
    """
    if records > COMPRESSED_RECORDS_MAX:
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
    try:
        body = inflated(codec, data[HEADER_BYTES:])
    except TooLarge:
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE) from None
    except Unreadable:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    return check_records(body, 0, records, keyed, misnumbered=ErrorCode.UNKNOWN_SERVER_ERROR)
