"""What a schema registry's schemas made of keys and values, as words."""

from collections.abc import Iterable, Sequence

from kview.language import failures, glyphs, payloads, trees, words
from kview.language.payloads import Form
from kview.model.decoded import (
    DATA_FAILURES,
    NOTES,
    DecodeAnswer,
    Decoded,
    DecodeFailure,
    DecodeFailureKind,
    SchemaId,
    SchemaKind,
)
from kview.model.inspection import Cost, InspectionFailureKind
from kview.model.units import UNKNOWN

KINDS = {SchemaKind.AVRO: "Avro", SchemaKind.PROTOBUF: "Protobuf", SchemaKind.JSON: "JSON Schema"}
TIMEOUT = "the schema registry has not answered in time"
NO_REGISTRY = (
    "if a schema registry knows how, give --schema-registry-url, or schema-registry-url in the profile"
)


def schema_id(schema: SchemaId) -> str:
    """Return a schema's id: `schema 7`."""
    if schema.file:
        return f"schema of {schema.file}"
    return f"schema {schema.guid}" if schema.guid else f"schema {schema.number}"


def schema(decoded: Decoded) -> str:
    """Return what a payload was written with: `Avro com.acme.Invoice, schema 7`."""
    if decoded.kind is None:
        return schema_id(decoded.schema)
    return f"{' '.join(filter(None, (KINDS[decoded.kind], decoded.name)))}, {schema_id(decoded.schema)}"


def failure(failed: DecodeFailure, of: Decoded) -> str:
    """Return why a key or a value is not decoded, or not completely."""
    place = f" in {failed.path}" if failed.path else ""
    at = f", at byte {words.count(failed.at)}" if failed.at != UNKNOWN else ""
    match failed.kind:
        case DecodeFailureKind.NONE:
            return ""
        case DecodeFailureKind.NO_REGISTRY:
            return "no schema registry is set"
        case DecodeFailureKind.REGISTRY:
            return f"the schema registry: {failures.of(failed.cause.kind, failed.cause.code)}"
        case DecodeFailureKind.LATE:
            return TIMEOUT
        case DecodeFailureKind.NO_SCHEMA:
            return f"the schema registry has no {schema_id(of.schema)}"
        case DecodeFailureKind.NO_REFERENCE:
            return f"the schema registry lacks a schema that {schema_id(of.schema)} refers to"
        case DecodeFailureKind.SCHEMA_UNUSABLE:
            return f"kview cannot use {schema_id(of.schema)}"
        case DecodeFailureKind.MANY_SCHEMAS:
            return "not asked for: too many different schemas"
        case DecodeFailureKind.ENDS:
            return f"does not decode: it ends{place}{at}"
        case DecodeFailureKind.WRONG:
            return f"does not decode: the bytes{place} are not what the schema says{at}"
        case DecodeFailureKind.LEFT_OVER:
            return f"more bytes follow{at.removeprefix(',')}, where the schema ends: most readers ignore them"
        case DecodeFailureKind.NOT_UTF8:
            return f"a text{place} is not UTF-8{at}: some readers refuse it"
        case DecodeFailureKind.TOO_MANY:
            return f"only the beginning: it has more parts than kview decodes{place}"
        case DecodeFailureKind.ANSWER_FULL:
            return "these records have more parts together than kview decodes"
        case DecodeFailureKind.TOO_DEEP:
            return f"only the beginning: it is nested too deep{place}"
        case DecodeFailureKind.CUT:
            return f"only the beginning: kview does not keep the rest{place}"


def is_data_failure(decoded: Decoded) -> bool:
    """Return whether bytes and schema do not go together."""
    return decoded.failure.kind in DATA_FAILURES


def is_doubtful(decoded: Decoded) -> bool:
    """Return whether it is not known that a schema was used at all: other bytes, such as a number of 8 bytes,
    may look like the number of one, which the registry does not have."""
    return decoded.failure.kind is DecodeFailureKind.NO_SCHEMA and decoded.schema.number != UNKNOWN


def parts(answer: DecodeAnswer) -> Iterable[tuple[str, Decoded]]:
    """Yield what was decoded, keys and values by name."""
    for record in answer.decoded:
        for name, part in (("keys", record.key), ("values", record.value)):
            if part is not None:
                yield name, part


def row(decoded: Decoded) -> str | None:
    """Return what a row shows of a payload, None if nothing is decoded."""
    if decoded.json is not None:
        return payloads.one_line(decoded.json)
    return trees.one_line(decoded.tree) if decoded.has_tree else None


def lines(decoded: Decoded, unfolded: bool) -> Sequence[str] | None:
    """Return a payload laid out, None if nothing is decoded."""
    if decoded.json is not None:
        return payloads.lines(decoded.json, Form.JSON if unfolded else Form.AUTO)
    return trees.lines(decoded.tree, unfolded) if decoded.has_tree else None


def cost(spent: Cost) -> str:
    """Return what schemas cost: `2 requests, 1.2 kB from the registry`."""
    return f"{words.plural(spent.requests, 'request')}, {words.size(spent.bytes)} from the registry"


def written_with(answer: DecodeAnswer) -> list[str]:
    """Return the schema of the keys and that of the values, or how many there are."""
    notes = []
    for name in ("keys", "values"):
        known = {
            (part.kind, part.name, part.schema): part
            for of, part in parts(answer)
            if of == name and part.kind
        }
        if len(known) == 1:
            notes.append(f"{name} {schema(next(iter(known.values())))}")
        elif known:
            notes.append(f"{name} of {words.plural(len(known), 'schema')}")
    return notes


def message(answer: DecodeAnswer) -> str:
    """Return what is wrong with the registry or the records, '' if nothing is."""
    if answer.failure.kind is InspectionFailureKind.TIMEOUT:
        return TIMEOUT
    if answer.failure.kind is InspectionFailureKind.NO_ANSWER:
        return "keys and values could not be decoded; see kview.log"
    failed = [part for _, part in parts(answer) if part.failure]
    data = sum(map(is_data_failure, failed))
    if data:
        noun = "1 key or value does" if data == 1 else f"{data:,} keys or values do"
        return f"{noun} not decode: the rows with {glyphs.UP} say where"
    silent = NOTES | {DecodeFailureKind.NO_SCHEMA}
    registry = [part for part in failed if part.failure.kind not in silent]
    if not registry:
        return ""
    first = registry[0]
    if first.failure.kind is DecodeFailureKind.NO_REGISTRY:
        return f"{_not_decoded(len(registry))}: {NO_REGISTRY}"
    return f"{_not_decoded(len(registry))}: {failure(first.failure, first)}"


def _not_decoded(number: int) -> str:
    return "1 key or value is not decoded" if number == 1 else f"{number:,} keys or values are not decoded"


def hex_note(decoded: Decoded, masked: bool = False) -> str:
    """Return what is said of a payload without a tree. `masked`: nor are its bytes shown."""
    why = failure(decoded.failure, decoded)
    if is_doubtful(decoded):
        shown = "hidden by a mask" if masked else "not text: hex"
        return f"{shown} ({why}, if a registry wrote it)"
    return f"{schema(decoded)} {glyphs.DOT} {why}"
