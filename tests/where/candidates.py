"""Records to judge by a filter."""

from collections.abc import Mapping

from msgspec.structs import replace

from kview.model.decoded import NOT_DECODED, DecodedRecord
from kview.model.inspection import NULL, Header, Payload, Record, TimeType
from kview.model.where import Candidate, Problem
from kview.where.judge import Answer, matches
from kview.where.parse import parse


def payload(data: bytes | None, size: int | None = None) -> Payload:
    """A payload, which is cut if `size` is larger."""
    return NULL if data is None else Payload(data, len(data) if size is None else size)


def candidate(
    key: bytes | None = None,
    value: bytes | None = None,
    headers: Mapping[str, bytes | None] | None = None,
    *,
    offset: int = 5,
    partition: int = 0,
    timestamp_ms: int = 1_000,
    decoded: DecodedRecord = NOT_DECODED,
    value_size: int | None = None,
    header_count: int | None = None,
) -> Candidate:
    kept = tuple(Header(payload(name.encode()), payload(data)) for name, data in (headers or {}).items())
    count = len(kept) if header_count is None else header_count
    value_payload = payload(value, value_size)
    record = Record(offset, timestamp_ms, TimeType.CREATE, payload(key), value_payload, kept, count)
    return Candidate(partition, record, decoded)


def judged(text: str, of: Candidate) -> Answer:
    """Whether a filter describes a record."""
    where = parse(text)
    assert not isinstance(where, Problem), where
    [answer] = matches(where, [of])
    return answer


def hidden(of: Candidate) -> Candidate:
    """The same record with its value hidden by a mask."""
    return of._replace(record=replace(of.record, value=Payload(b"<masked>", 8, masked=True)))
