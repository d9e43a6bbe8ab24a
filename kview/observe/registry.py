"""A schema registry's schemas (Confluent's REST API), and payloads that are decoded with them.

The registry is another server than the brokers: its requests run on a thread of their own, and what it does
not tell within the time of an answer is a failure in that answer. Schemas never change, so they are kept.
Failures count for a short time, so that a registry in trouble is not asked for each record.
"""

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from urllib.parse import quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kview.config.decoders import Decoder, DecoderKind, Decoders
from kview.config.schema_registry import SchemaRegistry
from kview.decode.errors import NotASchema
from kview.decode.framing import Framed, framed
from kview.decode.schemas import Schema, decoded, message_of, schema_of
from kview.model.decoded import (
    KEY_HEADER,
    MOST_NODES,
    MOST_NODES_AN_ANSWER,
    VALUE_HEADER,
    DecodeAnswer,
    Decoded,
    DecodedRecord,
    DecodeFailure,
    DecodeFailureKind,
    DecodeRequest,
    SchemaId,
    SchemaKind,
    nodes,
)
from kview.model.failures import REFUSALS, Cause, FailureKind
from kview.model.inspection import Cost, InspectionFailure, InspectionFailureKind, Payload, Record
from kview.model.masking import EVERYTHING, Mask
from kview.observe import masking
from kview.observe.causes import LinkError, Refused
from kview.observe.loop import Loop
from kview.observe.rest import UNAUTHORIZED, Rest, get

_log = logging.getLogger(__name__)

ANSWER_S = 8.0
"""Limit of the time that an answer waits for the registry."""
REQUEST_S = 3.0
POLL_S = 0.05
MOST_BYTES = 4 << 20
"""The longest answer that is read. Schemas of 1 MB are the registry's own limit."""
MOST_NEW = 20
"""The most schemas that are asked for in one answer: a topic has a few, and arbitrary bytes have many."""
MOST_KEPT = 500
"""The most schemas and failures that are kept."""
MOST_KEPT_BYTES = 2 << 20
"""The most bytes of the texts of schemas that are kept, which take up to 60 times as many."""
MOST_FILES = 20
"""The most schemas of files that are kept."""
MOST_REFERENCES = 100
"""The most schemas that one refers to, directly or not."""
FAILED_AGAIN_S = 10.0
"""How long a failure counts."""
ACCEPTS = "application/vnd.schemaregistry.v1+json, application/json"
_NOT_FOUND = 404
_OF_ONE_ANSWER = frozenset({
    FailureKind.MALFORMED, FailureKind.TOO_LARGE, FailureKind.INCOMPLETE, FailureKind.HTTP_STATUS,
})  # fmt: skip
_SERIALIZED = "format=serialized"
"""Makes a registry return a Protobuf schema as its serialized FileDescriptorProto, in base64."""


class _Reference(Struct):
    subject: str
    version: int
    name: str = ""


class _Answered(Struct, rename={"kind": "schemaType"}):
    """What is read of a schema. Other fields, such as `ruleSet`, are not used."""

    schema: str
    kind: str | None = None
    references: list[_Reference] | None = None


class _Kept(Struct):
    """A schema, or why there is none, which counts until `until_s`. `size` is that of its texts."""

    schema: Schema | None
    failure: DecodeFailure
    size: int = 0
    until_s: float = 0.0


class _Spent(Struct):
    """What an answer has cost so far, and when it has to end (monotonic)."""

    ends_s: float
    requests: int = 0
    bytes: int = 0


class _NoSchema(Exception):
    """Raised when a schema cannot be had."""

    def __init__(self, failure: DecodeFailure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


class Registry(Struct):
    """Decodes payloads, and keeps schemas. `answer` runs on the observer's loop, the rest on a thread."""

    loop: Loop
    answer_s: float = ANSWER_S
    request_s: float = REQUEST_S
    _kept: OrderedDict[SchemaId, _Kept] = field(default_factory=OrderedDict)
    _of: SchemaRegistry | None = None
    """The registry that the kept schemas are of."""
    _down: _Kept | None = None
    """Why the registry itself does not answer, as long as that counts."""
    _busy: bool = False

    async def answer(
        self, request: DecodeRequest, cancelled: Callable[[], bool], until_s: float = math.inf
    ) -> DecodeAnswer:
        """Decode the payloads of a request, and hide what a mask of the topic says.

        `cancelled` says whether nobody wants the answer any more, and `until_s` (monotonic) until when it is
        of use.
        """
        asked_ms, ends_s = self.loop.clock_ms(), min(until_s, self.loop.monotonic() + self.answer_s)
        access = self.loop.access
        of, decoders = access.security.registry, access.security.decoders
        mask = access.security.masks.of(request.topic)
        while self._busy and self.loop.monotonic() < ends_s and not cancelled():
            await self.loop.net.sleep(POLL_S)
        if self._busy:
            late = InspectionFailure(InspectionFailureKind.TIMEOUT)
            if mask is None:
                return DecodeAnswer(request, failure=late)
            records, nothing = masking.undecoded(request.records, mask)
            return DecodeAnswer(replace(request, records=records), nothing, late)
        if of != self._of:  # the profile has been changed
            self._kept.clear()
            self._of, self._down = of, None
        rest = None
        if of is not None:
            context = access.rest if of.has_tls else None
            rest = Rest(of.url, MOST_BYTES, of.user, of.password, of.token, context, ACCEPTS)
        spent = _Spent(ends_s)
        self._busy = True

        def work() -> tuple[tuple[Record, ...], Sequence[DecodedRecord]]:
            if mask is None:
                return request.records, self._all(rest, request, decoders, spent, cancelled)
            try:
                made = self._all(rest, request, decoders, spent, cancelled)
                return self._masked(
                    request.records, made, mask, lambda: cancelled() or self.loop.monotonic() >= ends_s
                )
            except Exception as error:  # A bug of kview hides everything. Its text might quote a payload.
                _log.warning("payloads could not be masked: %s", type(error).__name__)
                return masking.undecoded(request.records, EVERYTHING)

        try:
            records, all_decoded = await self.loop.in_thread(work, "schemas")
        finally:
            self._busy = False
        both = (part for record in all_decoded for part in (record.key, record.value))
        causes = {part.failure.cause for part in both if part is not None}
        if any(cause.kind in REFUSALS or cause.code in UNAUTHORIZED for cause in causes):
            await self.loop.renewal.renew(self.loop)
        shown = request if mask is None else replace(request, records=records)
        return DecodeAnswer(
            shown, tuple(all_decoded), cost=Cost(spent.requests, spent.bytes), asked_ms=asked_ms
        )

    # -- on a thread of its own

    def _all(
        self,
        rest: Rest | None,
        request: DecodeRequest,
        decoders: Decoders,
        spent: _Spent,
        cancelled: Callable[[], bool],
    ) -> list[DecodedRecord]:
        topic = request.topic
        schemas = _of_files(topic, decoders)
        new, left = 0, MOST_NODES_AN_ANSWER

        def part(written: Framed | None) -> Decoded | None:
            nonlocal new, left
            if written is None:
                return None
            wanted = written.schema
            if wanted not in schemas:
                kept = self._remembered(wanted)
                if rest is None:
                    kept = _Kept(None, DecodeFailure(DecodeFailureKind.NO_REGISTRY))
                elif kept is None and (new >= MOST_NEW or cancelled()):
                    kept = _Kept(None, DecodeFailure(DecodeFailureKind.MANY_SCHEMAS))
                elif kept is None:
                    new += 1
                    kept = self._asked(rest, wanted, spent)
                schemas[wanted] = kept
            made = self._decoded(written, schemas[wanted], min(MOST_NODES, left))
            if left < MOST_NODES and made.failure.kind is DecodeFailureKind.TOO_MANY:
                made = replace(made, failure=replace(made.failure, kind=DecodeFailureKind.ANSWER_FULL))
            left = max(0, left - sum(1 for _ in nodes(made.tree))) if made.has_tree else left
            return made

        return [DecodedRecord(*map(part, _parts(record, topic, decoders))) for record in request.records]

    @staticmethod
    def _masked(
        records: Sequence[Record], decoded: Sequence[DecodedRecord], mask: Mask, is_late: Callable[[], bool]
    ) -> tuple[tuple[Record, ...], list[DecodedRecord]]:
        """Return what is shown of records and of what was decoded of them: nothing if it is late."""
        pairs = [
            masking.masked(*pair, EVERYTHING if is_late() else mask)
            for pair in zip(records, decoded, strict=True)
        ]
        return tuple(record for record, _ in pairs), [made for _, made in pairs]

    def _decoded(self, written: Framed, kept: _Kept, limit: int) -> Decoded:
        if kept.schema is None:
            return Decoded(written.schema, failure=kept.failure)
        try:
            return decoded(written, kept.schema, limit)
        except Exception as error:  # its text might quote a payload
            _log.warning("a payload could not be decoded: %s", type(error).__name__)
            failure = DecodeFailure(DecodeFailureKind.SCHEMA_UNUSABLE)
            return Decoded(written.schema, kept.schema.kind, kept.schema.name, failure=failure)

    def _remembered(self, wanted: SchemaId) -> _Kept | None:
        """Return a schema that is known, or a failure that still counts."""
        now_s = self.loop.monotonic()
        kept = self._kept.get(wanted)
        if kept is not None and (kept.schema is not None or now_s < kept.until_s):
            self._kept.move_to_end(wanted)
            return kept
        return self._down if self._down is not None and now_s < self._down.until_s else None

    def _asked(self, rest: Rest, wanted: SchemaId, spent: _Spent) -> _Kept:
        """Ask for a schema, and keep it, or why there is none."""
        try:
            kept = self._fetched(rest, wanted, spent)
        except _NoSchema as error:
            kept = _Kept(None, error.failure, until_s=self.loop.monotonic() + FAILED_AGAIN_S)
            if error.failure.kind is DecodeFailureKind.LATE:
                return kept
            if _is_down(error.failure):
                self._down = kept
                return kept
        self._kept[wanted] = kept
        size = sum(each.size for each in self._kept.values())
        while len(self._kept) > MOST_KEPT or (size > MOST_KEPT_BYTES and len(self._kept) > 1):
            size -= self._kept.popitem(last=False)[1].size
        return kept

    def _fetched(self, rest: Rest, wanted: SchemaId, spent: _Spent) -> _Kept:
        path = f"/schemas/guids/{wanted.guid}" if wanted.guid else f"/schemas/ids/{wanted.number}"
        answered = self._get(rest, path, spent)
        try:
            kind = SchemaKind((answered.kind or SchemaKind.AVRO).upper())
        except ValueError:
            raise _NoSchema(DecodeFailure(DecodeFailureKind.SCHEMA_UNUSABLE)) from None
        query = ""
        if kind is SchemaKind.PROTOBUF:
            try:
                answered = self._get(rest, f"{path}?{_SERIALIZED}", spent)
                query = f"&{_SERIALIZED}"
            except _NoSchema as error:
                if error.failure.cause.kind not in (FailureKind.HTTP_STATUS, FailureKind.NONE):
                    raise
                # The registry does not know this form, but has given the text.
        texts: list[str] = []
        if kind is not SchemaKind.JSON:  # whose payloads need no schema
            self._references(rest, answered.references or [], query, texts, set(), spent)
        try:
            schema = schema_of(kind, answered.schema, texts)
        except NotASchema:
            raise _NoSchema(DecodeFailure(DecodeFailureKind.SCHEMA_UNUSABLE)) from None
        return _Kept(schema, DecodeFailure(), len(answered.schema) + sum(map(len, texts)))

    def _references(
        self,
        rest: Rest,
        references: list[_Reference],
        query: str,
        texts: list[str],
        seen: set[tuple[str, int]],
        spent: _Spent,
    ) -> None:
        """Add the texts of schemas that are referred to, each behind those that it needs itself."""
        for reference in references:
            key = reference.subject, reference.version
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > MOST_REFERENCES:
                raise _NoSchema(DecodeFailure(DecodeFailureKind.SCHEMA_UNUSABLE))
            # A version that was deleted is still what schemas refer to.
            path = f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}?deleted=true"
            try:
                answered = self._get(rest, path + query, spent)
            except _NoSchema as error:
                if error.failure.kind is DecodeFailureKind.NO_SCHEMA:
                    raise _NoSchema(DecodeFailure(DecodeFailureKind.NO_REFERENCE)) from None
                raise
            self._references(rest, answered.references or [], query, texts, seen, spent)
            texts.append(answered.schema)

    def _get(self, rest: Rest, path: str, spent: _Spent) -> _Answered:
        left_s = spent.ends_s - self.loop.monotonic()
        if left_s <= 0:
            raise _NoSchema(DecodeFailure(DecodeFailureKind.LATE))
        spent.requests += 1
        try:
            body = get(rest, path, min(left_s, self.request_s))
            spent.bytes += len(body)
            answered = msgspec.json.decode(body, type=_Answered)
        except (LinkError, Refused) as error:
            if error.cause == Cause(FailureKind.HTTP_STATUS, _NOT_FOUND):
                raise _NoSchema(DecodeFailure(DecodeFailureKind.NO_SCHEMA)) from None
            raise _NoSchema(DecodeFailure(DecodeFailureKind.REGISTRY, cause=error.cause)) from None
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            cause = Cause(FailureKind.MALFORMED)
            raise _NoSchema(DecodeFailure(DecodeFailureKind.REGISTRY, cause=cause)) from None
        return answered


def _parts(record: Record, topic: str, decoders: Decoders) -> tuple[Framed | None, Framed | None]:
    """Return a record's key and value with their schemas' ids."""

    def part(payload: Payload, header: bytes, decoder: Decoder | None) -> Framed | None:
        if payload.masked:
            return None
        if decoder is None or decoder.kind is DecoderKind.REGISTRY:
            return framed(payload, record.headers, header)
        if decoder.kind is DecoderKind.PLAIN or not payload.data:
            return None
        return Framed(payload, SchemaId(file=decoder.name), 0)

    return (
        part(record.key, KEY_HEADER, decoders.keys.get(topic)),
        part(record.value, VALUE_HEADER, decoders.values.get(topic)),
    )


def _of_files(topic: str, decoders: Decoders) -> dict[SchemaId, _Kept]:
    """Return the schemas of a topic that are in files."""
    both = (decoders.keys.get(topic), decoders.values.get(topic))
    return {SchemaId(file=each.name): _of_file(each) for each in both if each is not None and each.name}


@lru_cache(maxsize=MOST_FILES)
def _of_file(decoder: Decoder) -> _Kept:
    try:
        if decoder.kind is DecoderKind.AVRO:
            schema = schema_of(SchemaKind.AVRO, decoder.data.decode())
        else:
            schema = message_of(decoder.data, decoder.message)
    except (NotASchema, UnicodeDecodeError):
        return _Kept(None, DecodeFailure(DecodeFailureKind.SCHEMA_UNUSABLE))
    return _Kept(schema, DecodeFailure())


def _is_down(failure: DecodeFailure) -> bool:
    """Return whether a failure is one of the registry itself, not of its answer about one schema."""
    cause = failure.cause
    return failure.kind is DecodeFailureKind.REGISTRY and (
        cause.kind not in _OF_ONE_ANSWER or cause.code in UNAUTHORIZED
    )
