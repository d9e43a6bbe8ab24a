"""A schema registry: what is asked of it, what is made of its schemas, and that none of its states hurts."""

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf import descriptor_pb2
from msgspec.structs import replace

from kview.config.decoders import Decoders, NotADecoder, decoder
from kview.config.schema_registry import SchemaRegistry
from kview.config.secret import Secret
from kview.config.security import PLAINTEXT, Security
from kview.model.decoded import (
    MOST_NODES_AN_ANSWER,
    VALUE_HEADER,
    DecodeAnswer,
    Decoded,
    DecodedRecord,
    DecodeFailureKind,
    DecodeRequest,
    Fields,
    Items,
    SchemaId,
    SchemaKind,
)
from kview.model.failures import Cause, FailureKind
from kview.model.inspection import NULL, Header, Payload, Record, TimeType
from kview.observe.access import access
from kview.observe.clock import system_clock_ms
from kview.observe.loop import Loop
from kview.observe.registry import FAILED_AGAIN_S, MOST_BYTES, MOST_NEW, Registry
from kview.observe.renewal import Renewal
from tests.decode.test_protobuf import FILE, LINE_TEXT, TEXTS, Invoice
from tests.decode.test_protobuf import LINE as LINE_FILE
from tests.observe.rest_server import RestServer, http
from tests.secured.certificates import Authority
from tests.secured.fakes import server_context
from tests.secured.settings import read as properties
from tests.secured.settings import trusting

PASSWORD = "hush-9a4d"
LINE = '{"type": "record", "name": "Line", "fields": [{"name": "qty", "type": "int"}]}'
INVOICE = (
    '{"type": "record", "name": "com.acme.Invoice", "fields": [{"name": "id", "type": "long"},'
    ' {"name": "lines", "type": {"type": "array", "items": "Line"}}]}'
)
VALUE = b"\x0e\2\4\0"
GUID = "89791762-2336-186f-9674-299b90a802e2"


def answered(schema: str, kind: str = "", references: Any = None) -> bytes:
    """What a registry answers about a schema. It leaves out AVRO as its kind."""
    body: dict[str, Any] = {"schema": schema, "subject": "invoice-value", "version": 3, "id": 7, "guid": GUID}
    body |= {"schemaType": kind} if kind else {}
    body |= {"references": references} if references else {}
    return http(json.dumps(body).encode())


def prefixed(number: int, data: bytes, *headers: Header) -> Record:
    """A record whose value's first bytes name its schema."""
    data = b"\0" + number.to_bytes(4, "big") + data
    return record(data, *headers)


def record(value: bytes, *headers: Header) -> Record:
    """A record with this value."""
    return Record(0, 0, TimeType.CREATE, NULL, Payload(value, len(value)), headers, len(headers))


class Asking:
    """A loop with a registry's client."""

    def __init__(self) -> None:
        self.loop = Loop(system_clock_ms, time.monotonic)
        self.loop.start()
        self.registry = Registry(self.loop, request_s=0.5, answer_s=2.0)
        self.use(PLAINTEXT)

    def use(self, security: Security) -> None:
        """Use these settings."""
        self.loop.renewal = Renewal(access(security))

    def at(self, server: RestServer, **login: Any) -> "Asking":
        """Ask this server."""
        self.use(replace(PLAINTEXT, registry=SchemaRegistry(server.url, **login)))
        return self

    def all(self, *payloads: Record) -> DecodeAnswer:
        """What records become."""
        request = DecodeRequest("orders", payloads)
        answer: DecodeAnswer = self.loop.run(lambda: self.registry.answer(request, lambda: False))
        assert len(answer.decoded) == len(payloads)
        return answer

    def one(self, payload: Record) -> Decoded:
        """What a record's value becomes."""
        return values(self.all(payload))[0]


def values(answer: DecodeAnswer) -> list[Decoded]:
    """The values of an answer, none of which has a key with a schema."""
    assert all(each.key is None for each in answer.decoded)
    return [each.value for each in answer.decoded if each.value is not None]


@pytest.fixture
def asking() -> Iterator[Asking]:
    asking = Asking()
    yield asking
    asking.loop.stop()


@pytest.fixture
def server() -> Iterator[RestServer]:
    with RestServer(http(b'{"error_code": 40403}', "404 Not Found")) as server:
        yield server


def with_invoice(server: RestServer) -> None:
    """Have a schema that refers to another one, under a subject whose name needs escapes."""
    line = {"name": "Line", "subject": "a/line é", "version": 2}
    server.by_path["/schemas/ids/7"] = answered(INVOICE, references=[line])
    server.by_path["/subjects/a%2Fline%20%C3%A9/versions/2?deleted=true"] = answered(LINE)


def test_a_schema_with_a_reference_is_asked_for_once(server: RestServer, asking: Asking) -> None:
    with_invoice(server)
    asking.at(server)
    answer = asking.all(prefixed(7, VALUE), prefixed(7, VALUE))
    tree = Fields("com.acme.Invoice", [("id", 7), ("lines", Items([Fields("Line", [("qty", 2)])]))])
    for decoded in values(answer):
        assert (decoded.kind, decoded.name, decoded.tree) == (SchemaKind.AVRO, "com.acme.Invoice", tree)
        assert not decoded.failure and decoded.schema == SchemaId(7)
    assert answer.cost.requests == 2 and answer.cost.bytes > len(INVOICE)
    assert asking.one(prefixed(7, VALUE)).tree == tree
    assert len(server.heads) == 2
    assert all(head.startswith("GET ") for head in server.heads)


def test_a_header_with_a_guid_counts_before_the_payload(server: RestServer, asking: Asking) -> None:
    server.by_path[f"/schemas/guids/{GUID}"] = answered('"string"')
    value = b"\1" + bytes.fromhex(GUID.replace("-", ""))
    header = Header(Payload(VALUE_HEADER, len(VALUE_HEADER)), Payload(value, len(value)))
    decoded = asking.at(server).one(record(b"\x0ahello", header))
    assert (decoded.schema, decoded.tree) == (SchemaId(guid=GUID), "hello")


def test_a_json_schemas_payload_stays_as_it_was_written(server: RestServer, asking: Asking) -> None:
    server.by_path["/schemas/ids/9"] = answered('{"type": "object"}', "JSON")
    decoded = asking.at(server).one(prefixed(9, b'{"total": 19.90}'))
    assert decoded.kind is SchemaKind.JSON and decoded.json == Payload(b'{"total": 19.90}', 16)


def test_a_protobuf_schema_is_asked_for_in_its_serialized_form(server: RestServer, asking: Asking) -> None:
    line, invoice = TEXTS
    references = [{"name": "line.proto", "subject": "line", "version": 1}]
    server.by_path["/schemas/ids/5"] = answered('syntax = "proto3"; …', "PROTOBUF", references)
    server.by_path["/schemas/ids/5?format=serialized"] = answered(invoice, "PROTOBUF", references)
    server.by_path["/subjects/line/versions/1?deleted=true&format=serialized"] = answered(line, "PROTOBUF")
    made = Invoice(a_string="x")
    made.lines.add(qty=2)
    answer = asking.at(server).all(prefixed(5, b"\2\2" + made.SerializeToString()))
    (decoded,) = values(answer)
    assert (decoded.kind, decoded.name, answer.cost.requests) == (SchemaKind.PROTOBUF, "com.acme.Invoice", 3)
    lines = Items([Fields("a.b.Line", [("qty", 2)])])
    assert decoded.tree == Fields("com.acme.Invoice", [("a_string", "x"), ("lines", lines)])


def test_a_registry_without_a_serialized_form_gives_the_text(server: RestServer, asking: Asking) -> None:
    references = [{"name": "line.proto", "subject": "line", "version": 1}]
    invoice = 'syntax = "proto3"; import "line.proto"; message Invoice { repeated a.b.Line lines = 1; }'
    server.by_path["/schemas/ids/5"] = answered(invoice, "PROTOBUF", references)
    server.by_path["/subjects/line/versions/1?deleted=true"] = answered(LINE_TEXT, "PROTOBUF")
    decoded = asking.at(server).one(prefixed(5, b"\0\x0a\2\x08\2"))
    lines = Items([Fields("a.b.Line", [("qty", 2)])])
    assert decoded.tree == Fields("Invoice", [("lines", lines)])


def test_logins_are_sent_only_in_their_header(server: RestServer, asking: Asking) -> None:
    with_invoice(server)
    asking.at(server, user="bob", password=Secret(PASSWORD)).one(prefixed(7, VALUE))
    assert f"Authorization: Basic {base64.b64encode(f'bob:{PASSWORD}'.encode()).decode()}" in server.heads[0]
    asking.at(server, token=Secret(PASSWORD)).one(prefixed(7, VALUE))
    assert f"Authorization: Bearer {PASSWORD}\r\n" in server.heads[-1]
    assert len(server.heads) == 4  # another login may see other schemas


def test_tls_and_certificates_are_those_of_the_brokers(asking: Asking, tmp_path: Path) -> None:
    authority = Authority("registry's")
    context = server_context(authority.issue("registry"), tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.write(tmp_path / "ca.pem"))
    trusted = f"security.protocol=SSL\n{trusting(tmp_path / 'ca.pem')}"
    identity = authority.issue("kview").write(tmp_path / "kview.pem")
    known = f"{trusted}\nssl.keystore.type=PEM\nssl.keystore.location={identity}\n"
    with RestServer(http(b"{}", "404 Not Found"), context) as server:
        with_invoice(server)
        for text, kind in (
            (known, DecodeFailureKind.NONE),
            (trusted, DecodeFailureKind.REGISTRY),
            ("security.protocol=PLAINTEXT\n", DecodeFailureKind.REGISTRY),
        ):
            security = properties(tmp_path, text).security
            asking.registry = Registry(asking.loop, request_s=5.0, answer_s=5.0)
            asking.use(replace(security, registry=SchemaRegistry(server.url)))
            assert asking.one(prefixed(7, VALUE)).failure.kind is kind, text


def test_a_redirect_is_refused(server: RestServer, asking: Asking) -> None:
    with RestServer(answered('"string"')) as other:
        server.answer = http(b"", "302 Found", f"Location: {other.url}/schemas/ids/7\r\n")
        login = {"user": "bob", "password": Secret(PASSWORD)}
        decoded = asking.at(server, **login).one(prefixed(7, VALUE))
        assert decoded.failure.cause == Cause(FailureKind.HTTP_STATUS, 302)
        assert not other.heads


DEEP = b'{"schema": ' + b"[" * 100_000
LOOP = answered('"int"', references=[{"name": "a", "subject": "a", "version": 1}])


@pytest.mark.parametrize(
    ("answer", "kind", "cause"),
    [
        (http(b"", "404 Not Found"), DecodeFailureKind.NO_SCHEMA, FailureKind.NONE),
        (http(b"", "500 Oops"), DecodeFailureKind.REGISTRY, FailureKind.HTTP_STATUS),
        (http(b"no"), DecodeFailureKind.REGISTRY, FailureKind.MALFORMED),
        (http(DEEP), DecodeFailureKind.REGISTRY, FailureKind.MALFORMED),
        (http(b'{"schema": 7}'), DecodeFailureKind.REGISTRY, FailureKind.MALFORMED),
        (http(b" " * (50 << 20)), DecodeFailureKind.REGISTRY, FailureKind.TOO_LARGE),
        (answered("no schema"), DecodeFailureKind.SCHEMA_UNUSABLE, FailureKind.NONE),
        (answered("{}", "THRIFT"), DecodeFailureKind.SCHEMA_UNUSABLE, FailureKind.NONE),
        (answered("[" * 100_000), DecodeFailureKind.SCHEMA_UNUSABLE, FailureKind.NONE),
        (b"SSH-2.0\r\n", DecodeFailureKind.REGISTRY, FailureKind.MALFORMED),
    ],
    ids=["404", "500", "no JSON", "deep", "number", "50 MB", "no schema", "thrift", "deep schema", "ssh"],
)
def test_what_a_registry_lies_is_a_failure_of_that_schema_alone(
    server: RestServer, asking: Asking, answer: bytes, kind: DecodeFailureKind, cause: FailureKind
) -> None:
    with_invoice(server)
    server.by_path["/schemas/ids/8"] = answer
    bad, good = values(asking.at(server).all(prefixed(8, VALUE), prefixed(7, VALUE)))
    assert (bad.failure.kind, bad.failure.cause.kind, bad.has_tree) == (kind, cause, False)
    assert good.has_tree and not good.failure
    asked = len(server.heads)
    assert asking.one(prefixed(8, VALUE)).failure == bad.failure
    assert len(server.heads) == asked, f"a failure counts for {FAILED_AGAIN_S} s"
    assert asking.all(prefixed(7, VALUE)).cost.bytes < MOST_BYTES


def test_references_that_never_end_do(server: RestServer, asking: Asking) -> None:
    server.by_path["/schemas/ids/7"] = server.by_path["/subjects/a/versions/1?deleted=true"] = LOOP
    assert asking.at(server).one(prefixed(7, b"\x0e")).tree == 7
    server.by_path.clear()
    for n in range(1, 200):
        another = [{"subject": "a", "version": n + 1}]
        server.by_path[f"/subjects/a/versions/{n}?deleted=true"] = answered('"int"', references=another)
    server.by_path["/schemas/ids/8"] = LOOP
    assert asking.one(prefixed(8, b"\x0e")).failure.kind is DecodeFailureKind.SCHEMA_UNUSABLE


def test_a_reference_that_is_gone_is_not_the_schema_itself(server: RestServer, asking: Asking) -> None:
    with_invoice(server)
    server.by_path.popitem()
    answer = asking.at(server).one(prefixed(7, VALUE))
    assert answer.failure.kind is DecodeFailureKind.NO_REFERENCE


def test_an_answer_that_is_full_says_so_of_small_payloads(server: RestServer, asking: Asking) -> None:
    server.by_path["/schemas/ids/7"] = answered('{"type": "array", "items": "null"}')
    large, small = prefixed(7, b"\xa0\x99\2\0"), prefixed(7, b"\2\0")  # 18,000 nulls, and one
    most = MOST_NODES_AN_ANSWER // 18_001
    made = values(asking.at(server).all(*[large] * most, small, large, small))
    assert not any(each.failure for each in made[: most + 1])
    assert [each.failure.kind for each in made[most + 1 :]] == [DecodeFailureKind.ANSWER_FULL] * 2
    (alone,) = values(asking.all(prefixed(7, b"\xc0\xb8\2\0")))  # 20,000
    assert alone.failure.kind is DecodeFailureKind.TOO_MANY


def test_files_of_the_same_name_are_two(asking: Asking, tmp_path: Path) -> None:
    for folder, text in (("keys", '"string"'), ("values", '"long"')):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "order.avsc").write_text(text)
    key, value = (decoder(f"avro:{folder}/order.avsc", tmp_path) for folder in ("keys", "values"))
    asking.use(replace(PLAINTEXT, decoders=Decoders({"orders": value}, {"orders": key})))
    (made,) = asking.all(msgspec.structs.replace(record(b"\x0e"), key=Payload(b"\2k", 2))).decoded
    assert made.key is not None and made.value is not None
    assert (made.key.tree, made.value.tree) == ("k", 7)


@pytest.mark.parametrize("act", ["hang", "drip", "flood"])
def test_a_registry_that_hangs_is_asked_once(server: RestServer, asking: Asking, act: str) -> None:
    acts: dict[str, Callable[[Any], None]] = {
        "hang": server.hang, "drip": server.drip, "flood": server.flood,
    }  # fmt: skip
    server.acts = acts[act]
    answer = asking.at(server).all(*(prefixed(1 + number, VALUE) for number in range(10)))
    assert {each.failure.kind for each in values(answer)} == {DecodeFailureKind.REGISTRY}
    expected = FailureKind.TOO_LARGE if act == "flood" else FailureKind.SILENT
    assert {each.failure.cause.kind for each in values(answer)} == {expected}
    assert answer.cost.requests == (10 if act == "flood" else 1)


def test_arbitrary_bytes_do_not_ask_for_a_schema_each(server: RestServer, asking: Asking) -> None:
    answer = asking.at(server).all(*(prefixed(1 + number, VALUE) for number in range(100)))
    kinds = [each.failure.kind for each in values(answer)]
    assert kinds.count(DecodeFailureKind.NO_SCHEMA) == answer.cost.requests == MOST_NEW
    assert kinds.count(DecodeFailureKind.MANY_SCHEMAS) == 100 - MOST_NEW


def test_topics_are_decoded_with_schemas_of_files_their_keys_apart(asking: Asking, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text('"string"')
    descriptors = descriptor_pb2.FileDescriptorSet(file=[LINE_FILE, FILE])
    (tmp_path / "bills.desc").write_bytes(descriptors.SerializeToString())
    (tmp_path / "wrong.avsc").write_text("[")
    both = Decoders(
        {
            "orders": decoder("protobuf:bills.desc:com.acme.Invoice", tmp_path),
            "plain": decoder("plain", tmp_path),
            "wrong": decoder("avro:wrong.avsc", tmp_path),
        },
        {"orders": decoder("avro:order.avsc", tmp_path)},
    )
    asking.use(replace(PLAINTEXT, decoders=both))
    value = Invoice(a_string="x").SerializeToString()
    written = msgspec.structs.replace(record(value), key=Payload(b"\x02k", 2))

    def one(topic: str, asked: Record = written) -> DecodedRecord:
        request = DecodeRequest(topic, (asked,))
        answer: DecodeAnswer = asking.loop.run(lambda: asking.registry.answer(request, lambda: False))
        return answer.decoded[0]

    made = one("orders")
    assert made.key is not None and made.value is not None
    assert (made.key.tree, made.value.tree) == ("k", Fields("com.acme.Invoice", [("a_string", "x")]))
    assert made.value.schema == SchemaId(file="bills.desc:com.acme.Invoice") and not made.value.failure
    assert one("plain", prefixed(7, VALUE)) == DecodedRecord()
    wrong = one("wrong").value
    assert wrong is not None and wrong.failure.kind is DecodeFailureKind.SCHEMA_UNUSABLE
    for text in ("", "avro", "avro:", "protobuf:a.desc", "plain:x", "thrift:a"):
        with pytest.raises(NotADecoder):
            decoder(text, tmp_path)


def test_without_a_registry_that_is_why(asking: Asking) -> None:
    assert asking.one(prefixed(7, VALUE)).failure.kind is DecodeFailureKind.NO_REGISTRY
