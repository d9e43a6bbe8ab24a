"""Keys and values as a schema registry's schemas describe them, and why one is not decoded."""

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Any

from msgspec import Struct

from kview.model.failures import NO_FAILURE, Cause
from kview.model.inspection import NO_INSPECTION_FAILURE, Cost, InspectionFailure, Payload, Question, Record
from kview.model.units import UNKNOWN

KEY_HEADER, VALUE_HEADER = b"__key_schema_id", b"__value_schema_id"
"""The names of the headers that Confluent's HeaderSchemaIdSerializer writes."""
MOST_NODES = 20_000
"""Limit of the nodes of a tree: more lines than anybody reads."""
MOST_NODES_AN_ANSWER = 150_000
"""Limit of the nodes of all trees of an answer, which take about 0.2 s to make."""
MOST_DEPTH = 60
"""Limit of how deep a tree is nested. A deeper one takes more room than a screen has."""


class MomentKind(StrEnum):
    """What a moment is relative to."""

    TIMESTAMP = "timestamp"
    """The epoch, UTC."""
    LOCAL = "local"
    """The epoch, in a time zone that nobody tells."""
    DATE = "date"
    """The epoch, in days."""
    TIME = "time"
    """Midnight."""


class Moment(Struct, frozen=True):
    """A date or a time. `value` counts days for a date, else units of which a second has `per_second`."""

    kind: MomentKind
    value: int
    per_second: int = 1


class Symbol(Struct, frozen=True):
    """A symbol of an enum."""

    name: str


class Hidden(Struct, frozen=True):
    """Stands in place of what a mask hides."""


HIDDEN = Hidden()


class Fields(Struct, frozen=True):
    """A record, a message or a map: names and nodes, in the order of the bytes. `type` is '' for a map."""

    type: str
    fields: list[tuple[str, "Node"]]


class Items(Struct, frozen=True):
    """An array."""

    items: list["Node"]


Scalar = bool | int | float | str | bytes | Decimal | Moment | Symbol | Hidden
Node = Fields | Items | Scalar | None
"""A tree of what was decoded. `None` is null."""


class SchemaKind(StrEnum):
    """The kinds of schemas, by the registry's names. A registry leaves out AVRO."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


class DecodeFailureKind(StrEnum):
    """Why a key or a value is not decoded, or only its beginning."""

    NONE = ""
    NO_REGISTRY = "no_registry"
    """Nobody has told where the schema registry is."""
    REGISTRY = "registry"
    """The registry does not answer; the cause says why."""
    LATE = "late"
    """The registry has not answered in time."""
    NO_SCHEMA = "no_schema"
    """The registry has no such schema."""
    NO_REFERENCE = "no_reference"
    """The registry lacks a schema that this one refers to."""
    SCHEMA_UNUSABLE = "schema_unusable"
    """The registry's schema is not one, or has parts that kview does not know."""
    MANY_SCHEMAS = "many_schemas"
    """The answer has more different schemas than kview asks for."""
    ENDS = "ends"
    """The bytes end within a field."""
    WRONG = "wrong"
    """The bytes at `at` cannot be what the schema says."""
    LEFT_OVER = "left_over"
    """Bytes from `at` on are left over, of which Confluent's deserializer takes no notice."""
    NOT_UTF8 = "not_utf8"
    """A text is not UTF-8: Protobuf's readers refuse it in proto3, and Avro's do not."""
    TOO_MANY = "too_many"
    """It has more parts than kview decodes."""
    ANSWER_FULL = "answer_full"
    """The answer's payloads have more parts together than kview decodes."""
    TOO_DEEP = "too_deep"
    CUT = "cut"
    """The payload was longer than what kview keeps."""


DATA_FAILURES = frozenset({DecodeFailureKind.ENDS, DecodeFailureKind.WRONG})
"""The kinds that say that bytes and schema do not go together, so that other readers fail, too."""
NOTES = frozenset({DecodeFailureKind.LEFT_OVER, DecodeFailureKind.NOT_UTF8})
"""The kinds that say what is unusual about bytes that were decoded to their end."""


class DecodeFailure(Struct, frozen=True):
    """Why a key or a value is not decoded. `at` is a position in its bytes, and `path` leads to the field
    (`lines[2].qty`)."""

    kind: DecodeFailureKind = DecodeFailureKind.NONE
    at: int = UNKNOWN
    path: str = ""
    cause: Cause = NO_FAILURE

    def __bool__(self) -> bool:
        return self.kind is not DecodeFailureKind.NONE


DECODED = DecodeFailure()


class SchemaId(Struct, frozen=True, order=True):
    """A schema by its number in a registry, by its GUID, which header framing has, or by its file."""

    number: int = UNKNOWN
    guid: str = ""
    file: str = ""


class Decoded(Struct, frozen=True):
    """A key or a value, decoded as far as possible. `has_tree` says whether `tree` holds something."""

    schema: SchemaId
    kind: SchemaKind | None = None
    """None if the schema is not known."""
    name: str = ""
    """The schema's name, such as `com.acme.Invoice`."""
    tree: Node = None
    has_tree: bool = False
    json: Payload | None = None
    """The payload's JSON, if its schema is a JSON Schema."""
    failure: DecodeFailure = DECODED

    def __repr__(self) -> str:
        """Return nothing of what was decoded, so that no log ever has it."""
        return f"Decoded({self.schema}, {self.kind}, {self.failure.kind!r})"


class DecodedRecord(Struct, frozen=True):
    """A record's key and value. None stands for one that was not written with a schema, as far as it says."""

    key: Decoded | None = None
    value: Decoded | None = None


NOT_DECODED = DecodedRecord()


class DecodeRequest(Question["DecodeAnswer"], frozen=True):
    """A request to decode records of a topic, with the registry's schemas or those of files."""

    topic: str
    records: tuple[Record, ...]


class DecodeAnswer(Struct, frozen=True):
    """The records of a request, in its order, and what their schemas cost: requests, and bytes of answers.

    With a mask on the topic, the records in `request` are masked, whatever those in the question were.
    """

    request: DecodeRequest
    decoded: tuple[DecodedRecord, ...] = ()
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN


def nodes(node: Node) -> Iterator[Any]:
    """Yield a node and all that are below it."""
    pending: list[Any] = [node]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)


def children(node: Node) -> Iterator[Any]:
    """Yield the nodes below a node."""
    if isinstance(node, Fields):
        yield from (child for _, child in node.fields)
    elif isinstance(node, Items):
        yield from node.items
