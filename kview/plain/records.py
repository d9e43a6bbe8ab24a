"""Records as lines for people, and as JSON documents for other programs."""

import math
from datetime import tzinfo
from decimal import Decimal
from typing import Any

import msgspec

from kview.language import decoded as schemas
from kview.language import inspection, payloads, trees
from kview.language.payloads import Form
from kview.model.decoded import Decoded, Fields, Hidden, Items, Moment, Node, SchemaKind, Symbol
from kview.model.inspection import Payload, Record
from kview.model.masking import MASKED
from kview.model.units import UNKNOWN
from kview.model.where import Candidate
from kview.plain.documents import json_line
from kview.plain.schema_records import (
    PayloadKind,
    RecordDocument,
    RecordHeader,
    RecordPayload,
    RecordSchema,
)

FORMAT = 1
"""The document's version, which rises when a field changes its meaning or is removed, not for new ones."""
_KINDS = {SchemaKind.AVRO: PayloadKind.AVRO, SchemaKind.PROTOBUF: PayloadKind.PROTOBUF}


def record_line(topic: str, found: Candidate, form: Form, zone: tzinfo | None) -> str:
    """Return a record on one line: where it is, its timestamp, its key, its value and its headers.

    In hex, these are as long as they were kept, else they end after ONE_LINE_BYTES.
    """
    record = found.record
    key = _text(record.key, found.decoded.key, form)
    value = _text(record.value, found.decoded.value, form)
    headers = "".join(
        f"  {payloads.one_line(header.name)}={_text(header.value, None, form)}" for header in record.headers
    )
    at = inspection.moment(record.timestamp_ms, zone)
    return f"{topic}-{found.partition}:{record.offset}  {at}  {key}  {value}{headers}"


def _text(payload: Payload, decoded: Decoded | None, form: Form) -> str:
    line = schemas.row(decoded) if decoded is not None and form is not Form.HEX else None
    most_bytes = max(1, payload.size) if form is Form.HEX else payloads.ONE_LINE_BYTES
    return line if line is not None else payloads.one_line(payload, form, most_bytes=most_bytes)


def record_document(topic: str, found: Candidate) -> str:
    """Return a record as one line of JSON."""
    return json_line(record_document_of(topic, found))


def record_document_of(topic: str, found: Candidate) -> RecordDocument:
    """Return a record as a struct."""
    record: Record = found.record
    return RecordDocument(
        format=FORMAT,
        topic=topic,
        partition=found.partition,
        offset=record.offset,
        timestamp_ms=_known(record.timestamp_ms),
        timestamp_type=record.time_type,
        key=_payload(record.key, found.decoded.key),
        value=_payload(record.value, found.decoded.value),
        headers=[
            RecordHeader(payloads.escaped(header.name.data or b""), _payload(header.value, None))
            for header in record.headers
        ],
        header_count=record.header_count,
        size_bytes=None if record.masked else record.size,
        transactional=record.transactional,
        producer_id=_known(record.producer_id),
        producer_epoch=_known(record.producer_epoch),
        leader_epoch=_known(record.leader_epoch),
    )


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _payload(payload: Payload, decoded: Decoded | None) -> RecordPayload | None:
    if payload.data is None:
        return None
    if decoded is not None and decoded.json is not None:
        made = _as_it_is(decoded.json, scalars=True)
    elif decoded is not None and decoded.has_tree and not decoded.failure:
        made = (_KINDS[decoded.kind or SchemaKind.AVRO], _plain(decoded.tree))
    else:
        made = _as_it_is(payload, scalars=False)
    kind, data = made
    out = RecordPayload(kind, data, None if payload.masked else payload.size, payload.cut)
    if payload.masked:
        out.masked = True
    if decoded is not None:
        schema = decoded.schema
        number = None if schema.number == UNKNOWN else schema.number
        out.schema = RecordSchema(number, schema.guid or None, schema.file or None, decoded.name or None)
        if decoded.failure:
            out.failure = schemas.failure(decoded.failure, decoded)
    return out


def _as_it_is(payload: Payload, scalars: bool) -> tuple[PayloadKind, Any]:
    """Return bytes as JSON, text or hex. JSON may be a scalar if it is said to be JSON."""
    data = payload.data or b""
    if not payload.cut and (scalars or data.lstrip()[:1] in (b"{", b"[")):
        try:
            msgspec.json.decode(data)
            return PayloadKind.JSON, msgspec.Raw(msgspec.json.format(data, indent=-1))
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    text = payloads.as_text(data, payload.cut)
    return (PayloadKind.HEX, f"0x{data.hex()}") if text is None else (PayloadKind.TEXT, text)


def _plain(node: Node) -> Any:
    """Return a decoded node as what JSON has."""
    match node:
        case Fields():
            return {name: _plain(child) for name, child in node.fields}
        case Items():
            return [_plain(child) for child in node.items]
        case Moment():
            return trees.moment(node)
        case Symbol():
            return node.name
        case bytes():
            return f"0x{node.hex()}"
        case Decimal():
            return trees.scalar(node)
        case Hidden():
            return MASKED
        case float():
            return node if math.isfinite(node) else str(node)
    return node
