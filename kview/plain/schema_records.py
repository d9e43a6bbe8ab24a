"""The struct of the document that `kview records --format json` prints for each record."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import UNSET, Struct, UnsetType

from kview.model.inspection import TimeType
from kview.plain.schema_fields import Text, meaning, moment


class PayloadKind(StrEnum):
    """How a payload is given."""

    TEXT = "text"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    HEX = "hex"


class RecordSchema(Struct, gc=False):
    """The schema that a key or a value was written with."""

    id: Annotated[int | None, meaning("Its number in the schema registry.")]
    guid: Annotated[str | None, meaning("Its GUID in the schema registry.")]
    file: Annotated[str | None, meaning("Its file, as the profile names it.")]
    name: Annotated[str | None, meaning("Its name, such as com.acme.Invoice.")]


class RecordPayload(Struct, gc=False):
    """A key, a value or a header's value that is not null."""

    kind: Annotated[PayloadKind, meaning("How it is given.")]
    data: Annotated[
        Any,
        meaning(
            "What it is. Decoded: dates and times are ISO 8601, decimals are strings, bytes are 0x and two "
            "digits for each, and numbers that JSON does not have are strings."
        ),
    ]
    size_bytes: Annotated[
        int | None, meaning("Its size as stored; null if a mask hides something of it.", "bytes")
    ]
    cut: Annotated[bool, meaning("Whether data is only its beginning, because it is longer than 1 MiB.")]
    schema: Annotated[
        RecordSchema | UnsetType, meaning("The schema that it was written with, if it says so.")
    ] = UNSET
    failure: Annotated[Text | UnsetType, meaning("Why it is not decoded, or not to its end.")] = UNSET
    masked: Annotated[
        bool | UnsetType,
        meaning("Whether a mask of the profile hides some or all of it: data has <masked> instead."),
    ] = UNSET


class RecordHeader(Struct, gc=False):
    """A header of a record."""

    name: Annotated[str, meaning("Its name.")]
    value: Annotated[RecordPayload | None, meaning("Its value; null if it is null.")]


class RecordDocument(Struct, gc=False):
    """A record, as `kview records --format json` prints it on a line."""

    format: Annotated[int, meaning("The version of this format: 1.")]
    topic: Annotated[str, meaning("The topic's name.")]
    partition: Annotated[int, meaning("The partition's number.")]
    offset: Annotated[int, meaning("Its offset.")]
    timestamp_ms: Annotated[int | None, moment("Its timestamp; null if it has none.")]
    timestamp_type: Annotated[TimeType, meaning("Whose time that is.")]
    key: Annotated[RecordPayload | None, meaning("Its key; null if it is null.")]
    value: Annotated[RecordPayload | None, meaning("Its value; null for a tombstone.")]
    headers: Annotated[list[RecordHeader], meaning("Its headers in their order, at most 100.")]
    header_count: Annotated[int, meaning("How many headers it has.", "headers")]
    size_bytes: Annotated[
        int | None,
        meaning(
            "The size of its key, its value and the headers that are listed; null if a mask hides something.",
            "bytes",
        ),
    ]
    transactional: Annotated[bool, meaning("Whether it was written in a transaction.")]
    producer_id: Annotated[int | None, meaning("Its producer's id; null if that has none.")]
    producer_epoch: Annotated[int | None, meaning("Its producer's epoch.")]
    leader_epoch: Annotated[
        int | None, meaning("The epoch of the leader that appended it; null in older message formats.")
    ]
