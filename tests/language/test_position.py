"""What is said of the record at a committed offset."""

from typing import Any

import pytest

from kview.language.position import NOTHING_KNOWN, of_record
from kview.model.decoded import Decoded, DecodedRecord, DecodeFailure, DecodeFailureKind, SchemaId, SchemaKind
from kview.model.failures import Cause, FailureKind
from kview.model.inspection import (
    NULL,
    Damage,
    DamageKind,
    InspectionFailure,
    InspectionFailureKind,
    Payload,
    Record,
    RecordsAnswer,
    RecordsRequest,
    Start,
    StartKind,
    TimeType,
)

AT = 1_204
REQUEST = RecordsRequest("orders", 0, Start(StartKind.OFFSET, AT))


def record(offset: int = AT, size: int = 3, **more: Any) -> Record:
    """A record of so many bytes."""
    return Record(offset, 0, TimeType.CREATE, NULL, Payload(b"abc", size), **more)


def said(
    *records: Record, value: Decoded | None = None, is_explained: bool = False, **more: Any
) -> list[tuple[bool, str]]:
    """What is said of an answer with these records."""
    return of_record(RecordsAnswer(REQUEST, records, **more), DecodedRecord(value=value), AT, is_explained)


def decoded(kind: DecodeFailureKind, cause: FailureKind = FailureKind.NONE) -> Decoded:
    """A value of schema 7 that is not decoded, or not completely."""
    failure = DecodeFailure(kind, 12, "lines[0].qty", Cause(cause))
    return Decoded(SchemaId(7), SchemaKind.AVRO, "Invoice", failure=failure)


def test_a_record_without_anything_wrong_explains_nothing() -> None:
    assert said(record()) == [(False, NOTHING_KNOWN), (False, "record 1,204: 3 B")]
    assert said(record(), is_explained=True) == [(False, "record 1,204: 3 B")]
    written = record(producer_id=4_711, producer_epoch=3, transactional=True, header_count=2)
    about = "record 1,204: 3 B · producer 4711 epoch 3 · 2 headers · written in a transaction"
    assert said(written)[-1] == (False, about)


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (
            decoded(DecodeFailureKind.WRONG),
            "its value does not decode: the bytes in lines[0].qty are not what the schema says, at byte 12"
            " (Avro Invoice, schema 7)",
        ),
        (
            Decoded(SchemaId(guid="8979-a8"), failure=DecodeFailure(DecodeFailureKind.NO_SCHEMA)),
            "its value cannot be decoded: the schema registry has no schema 8979-a8",
        ),
    ],
)
def test_a_value_that_does_not_decode_may_be_what_is_wrong(value: Decoded, fact: str) -> None:
    assert said(record(), value=value)[:-1] == [(True, fact)]


@pytest.mark.parametrize(
    ("kind", "fact"),
    [
        (DecodeFailureKind.REGISTRY, "its value is not decoded: the schema registry: connection refused"),
        (
            DecodeFailureKind.NO_SCHEMA,  # a number of 8 bytes looks so, too
            "its value is not decoded: the schema registry has no schema 7, if a registry wrote it",
        ),
        (
            DecodeFailureKind.LEFT_OVER,
            "its value: more bytes follow at byte 12, where the schema ends: most readers ignore them",
        ),
        (
            DecodeFailureKind.NOT_UTF8,
            "its value: a text in lines[0].qty is not UTF-8, at byte 12: some readers refuse it",
        ),
    ],
)
def test_what_readers_may_live_with_is_not_said_to_be_wrong(kind: DecodeFailureKind, fact: str) -> None:
    assert said(record(), value=decoded(kind, FailureKind.REFUSED))[:-1] == [(False, fact)]


def test_gaps_sizes_and_damage_are_facts() -> None:
    (gap, *_) = said(record(AT + 3))
    assert gap == (
        False,
        "offset 1,204 has no record (compaction, an aborted transaction or a transaction's marker): the next"
        " one is shown",
    )
    (large, *_) = said(record(size=1_200_000))
    assert large[1].startswith("the record has 1.2 MB, more than max.partition.fetch.bytes by default")
    damaged = said(record(AT + 9), damage=(Damage(AT, DamageKind.CORRUPT, 512),))
    assert damaged[0] == (True, "offset 1,204: a batch of 512 B cannot be shown: its checksum is wrong")


def test_other_records_are_not_the_one() -> None:
    assert of_record(RecordsAnswer(REQUEST, (record(),)), DecodedRecord(), AT + 1, False) == []
    assert said(failure=InspectionFailure(InspectionFailureKind.NO_LEADER)) == []
    assert said() == []
