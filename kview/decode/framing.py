"""Which schema a payload was written with: the two framings of Confluent's serializers."""

from collections.abc import Iterable

from msgspec import Struct

from kview.decode.cursor import Cursor, Stopped, uuid_text
from kview.model.decoded import MOST_DEPTH, SchemaId
from kview.model.inspection import Header, Payload

BY_NUMBER, BY_GUID = 0, 1
"""The magic bytes: before a number of 4 bytes, and before a GUID of 16 bytes."""
PREFIX_BYTES = 5
_GUID_BYTES = 16


class Framed(Struct, frozen=True):
    """A payload with the id of the schema that it was written with, and where its data begins.

    `indexes` are Protobuf's way to a message in its file: the message's place, then that of a nested one.
    They are None if they stand in the payload, before the data.
    """

    payload: Payload
    schema: SchemaId
    begin: int
    indexes: tuple[int, ...] | None = None


def framed(payload: Payload, headers: Iterable[Header], header_name: bytes) -> Framed | None:
    """Return a payload with its schema's id, None if it has none.

    As in Confluent's DualSchemaIdDeserializer, a header called `header_name` counts before the payload's own
    first bytes, and the last of several headers counts.
    """
    if payload.data is None or not payload.size:
        return None
    last: Framed | None = None
    for header in headers:
        if header.name.data == header_name and header.value.data is not None:
            last = _of_header(payload, header.value.data) or last
    if last is not None:
        return last
    data = payload.data
    number = int.from_bytes(data[1:PREFIX_BYTES], "big", signed=True)
    if len(data) >= PREFIX_BYTES and data[0] == BY_NUMBER and number > 0:  # registries count from 1
        return Framed(payload, SchemaId(number), PREFIX_BYTES)
    return None


def _of_header(payload: Payload, value: bytes) -> Framed | None:
    """Return a payload with the schema's id in a header's value, None if there is none in it."""
    if len(value) >= PREFIX_BYTES and value[0] == BY_NUMBER:
        schema, end = SchemaId(int.from_bytes(value[1:PREFIX_BYTES], "big")), PREFIX_BYTES
    elif len(value) > _GUID_BYTES and value[0] == BY_GUID:
        schema, end = SchemaId(guid=uuid_text(value[1 : _GUID_BYTES + 1])), _GUID_BYTES + 1
    else:
        return None
    try:
        indexes = read_indexes(Cursor(value, end)) if len(value) > end else ()
    except Stopped:
        return None
    return Framed(payload, schema, 0, indexes)


def read_indexes(cursor: Cursor) -> tuple[int, ...]:
    """Return Protobuf's indexes: their number and they themselves as zigzag varints. A number of 0 stands for
    the first message. Raises Stopped."""
    count = cursor.zigzag()
    if not 0 <= count <= MOST_DEPTH:
        raise cursor.wrong()
    indexes = tuple(cursor.zigzag() for _ in range(count))
    if any(not 0 <= index < 1 << 31 for index in indexes):
        raise cursor.wrong()
    return indexes or (0,)
