"""A registry's schemas of all kinds, and what each makes of a payload."""

from collections.abc import Sequence
from dataclasses import dataclass

from kview.decode import avro, avro_schema
from kview.decode.avro_schema import AvroType, NotASchema
from kview.decode.cursor import Cursor
from kview.decode.framing import Framed
from kview.model.decoded import MOST_NODES, Decoded, DecodeFailure, DecodeFailureKind, SchemaKind
from kview.model.inspection import Payload


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema that is ready for use. `avro` is set for AVRO."""

    kind: SchemaKind
    name: str = ""
    avro: AvroType | None = None


def schema_of(kind: SchemaKind, text: str, references: Sequence[str] = ()) -> Schema:
    """Return the schema that a text describes. `references` are the schemas that it needs, in their order.

    Raises NotASchema.
    """
    match kind:
        case SchemaKind.AVRO:
            made = avro_schema.parsed(text, references)
            return Schema(kind, made.name or made.kind, made)
        case SchemaKind.JSON:
            return Schema(kind)
        case SchemaKind.PROTOBUF:
            raise NotASchema


def decoded(framed: Framed, schema: Schema, limit: int = MOST_NODES) -> Decoded:
    """Decode a payload into a tree of at most `limit` nodes."""
    payload, data = framed.payload, framed.payload.data or b""
    if schema.kind is SchemaKind.JSON:
        json = Payload(data[framed.begin :], payload.size - framed.begin)
        return Decoded(framed.schema, schema.kind, json=json)
    cursor = Cursor(data, framed.begin, limit)
    assert schema.avro is not None
    has_tree, tree, failure = avro.read(schema.avro, cursor)
    if payload.cut and failure.kind is DecodeFailureKind.ENDS:
        failure = DecodeFailure(DecodeFailureKind.CUT, failure.at, failure.path)
    return Decoded(framed.schema, schema.kind, schema.name, tree, has_tree, failure=failure)
