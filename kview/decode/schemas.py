"""A registry's schemas of all kinds, and what each makes of a payload."""

from collections.abc import Sequence
from dataclasses import dataclass

from kview.decode import avro, avro_schema, descriptors, proto_text, protobuf
from kview.decode.avro_schema import AvroType
from kview.decode.cursor import Cursor, Stopped
from kview.decode.descriptors import Message, ProtoFile
from kview.decode.errors import NotASchema
from kview.decode.framing import Framed, read_indexes
from kview.model.decoded import (
    DECODED,
    MOST_NODES,
    Decoded,
    DecodeFailure,
    DecodeFailureKind,
    Node,
    SchemaKind,
)
from kview.model.inspection import Payload

MOST_TEXT = 2 << 20
"""Limit of the characters of a schema with its references, of which most have some kB."""
_AT_THE_END = frozenset({DecodeFailureKind.NONE, DecodeFailureKind.NOT_UTF8, DecodeFailureKind.ENDS})


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema that is ready for use. `avro` is set for AVRO, and `file` or `message` for PROTOBUF.

    With a `file`, whose `name` is '', each payload says of which of its messages it is.
    """

    kind: SchemaKind
    name: str = ""
    avro: AvroType | None = None
    file: ProtoFile | None = None
    message: Message | None = None


def schema_of(kind: SchemaKind, text: str, references: Sequence[str] = ()) -> Schema:
    """Return the schema that a text describes. `references` are the schemas that it needs, in their order.

    Of PROTOBUF, all texts are base64 of serialized FileDescriptorProtos, or all are .proto files. Raises
    NotASchema.
    """
    if len(text) + sum(map(len, references)) > MOST_TEXT:
        raise NotASchema
    match kind:
        case SchemaKind.AVRO:
            made = avro_schema.parsed(text, references)
            return Schema(kind, made.name or made.kind, made)
        case SchemaKind.JSON:
            return Schema(kind)
        case SchemaKind.PROTOBUF:
            try:
                return Schema(kind, file=descriptors.parsed(text, references))
            except NotASchema:  # a registry that knows no serialized form gives the text
                return Schema(kind, file=proto_text.parsed(text, references))


def message_of(descriptor_set: bytes, name: str) -> Schema:
    """Return the schema of a message that a serialized FileDescriptorSet describes. Raises NotASchema."""
    message = descriptors.of_set(descriptor_set).by_name.get(name)
    if message is None:
        raise NotASchema
    return Schema(SchemaKind.PROTOBUF, name, message=message)


def decoded(framed: Framed, schema: Schema, limit: int = MOST_NODES) -> Decoded:
    """Decode a payload into a tree of at most `limit` nodes."""
    payload, data = framed.payload, framed.payload.data or b""
    if schema.kind is SchemaKind.JSON:
        json = Payload(data[framed.begin :], payload.size - framed.begin)
        return Decoded(framed.schema, schema.kind, json=json)
    cursor = Cursor(data, framed.begin, limit)
    name = schema.name
    if schema.file is not None:
        name, has_tree, tree, failure = _protobuf(framed, schema.file, cursor)
    elif schema.message is not None:
        has_tree, tree, failure = protobuf.read(schema.message, cursor)
    elif schema.avro is not None and schema.avro.kind == "bytes" and not framed.schema.file:
        # Confluent's serializers write these as they are, without their length.
        has_tree, tree, failure = True, cursor.take(len(data) - cursor.at), DECODED
    else:
        assert schema.avro is not None
        has_tree, tree, failure = avro.read(schema.avro, cursor)
    # Protobuf's bytes may be cut between two fields, or before the end of a group.
    is_wrong_end = failure.kind is DecodeFailureKind.WRONG and failure.at == len(data)
    if payload.cut and (is_wrong_end or failure.kind in _AT_THE_END):
        failure = DecodeFailure(DecodeFailureKind.CUT, failure.at, failure.path)
    return Decoded(framed.schema, schema.kind, name, tree, has_tree, failure=failure)


def _protobuf(framed: Framed, file: ProtoFile, cursor: Cursor) -> tuple[str, bool, Node, DecodeFailure]:
    """Return the name of the message, and what `protobuf.read` makes of it."""
    try:
        indexes = read_indexes(cursor) if framed.indexes is None else framed.indexes or (0,)
    except Stopped as stopped:
        return "", False, None, cursor.failure(stopped)
    message = file.message(indexes)
    if message is None:
        return "", False, None, DecodeFailure(DecodeFailureKind.WRONG, framed.begin)
    return message.name, *protobuf.read(message, cursor)
