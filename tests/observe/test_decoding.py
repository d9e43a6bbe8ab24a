"""Records of a real client, decoded with a registry's schemas, on simulated and real clusters."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from msgspec.structs import replace

from kview.config.schema_registry import SchemaRegistry
from kview.config.security import PLAINTEXT, Security
from kview.model.decoded import DecodeAnswer, DecodeFailureKind, DecodeRequest, Fields, SchemaId, SchemaKind
from kview.model.inspection import SettingsRequest
from kview.observe.observer import Observer, ObserveSettings
from tests.decode.test_avro import INVOICE, VALUE, written
from tests.decode.test_protobuf import TEXTS, Invoice
from tests.observe.asking import RecordBroker, answered, records
from tests.observe.observing import observing
from tests.observe.rest_server import RestServer, http
from tests.observe.searching import searched
from tests.observe.test_fetched_batches import batch
from tests.observe.test_registry import GUID
from tests.observe.test_registry import answered as schema
from tests.real_kafka.cluster import RealKafka
from tests.served import Served

SETTINGS = ObserveSettings(interval_s=0.3)
GUID_HEADER = b"\1" + bytes.fromhex(GUID.replace("-", ""))
PROTOBUF = [{"name": "line.proto", "subject": "line", "version": 1}]


@pytest.fixture
def registry() -> Iterator[RestServer]:
    """A registry with schemas of every kind: 7 is Avro, 8 a string of it, 9 JSON, 5 Protobuf."""
    with RestServer(http(b"{}", "404 Not Found")) as server:
        server.by_path |= {
            "/schemas/ids/7": schema(json.dumps(INVOICE)),
            "/schemas/ids/8": schema('"string"'),
            "/schemas/ids/9": schema("{}", "JSON"),
            "/schemas/ids/5": schema("…", "PROTOBUF", PROTOBUF),
            "/schemas/ids/5?format=serialized": schema(TEXTS[1], "PROTOBUF", PROTOBUF),
            "/subjects/line/versions/1?deleted=true&format=serialized": schema(TEXTS[0], "PROTOBUF"),
            f"/schemas/guids/{GUID}": schema(json.dumps(INVOICE)),
        }
        yield server


def prefixed(number: int, data: bytes) -> bytes:
    """Data behind the magic byte and the number of its schema."""
    return b"\0" + number.to_bytes(4, "big") + data


def with_registry(server: RestServer) -> Security:
    """Security settings that name a registry."""
    return replace(PLAINTEXT, registry=SchemaRegistry(server.url))


def produce(bootstrap: str, topic: str) -> None:
    """A record of every kind, in two codecs, and some that do not decode."""
    for codec in ("none", "zstd"):
        client = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        key = prefixed(8, written("string", "order-1"))
        avro = written(INVOICE, VALUE)
        values: list[tuple[Any, Any]] = [
            (prefixed(7, avro), None),
            (avro, [("__value_schema_id", GUID_HEADER)]),
            (prefixed(9, b'{"total": 19.90}'), None),
            (prefixed(5, b"\2\2" + Invoice(a_string="x").SerializeToString()), None),
            (None, None),
            (b'{"plain": true}', None),
            (prefixed(7, avro[:20]), None),
            (prefixed(404, b"x"), None),
            (prefixed(7, written(INVOICE, VALUE | {"note": "n" * 900_000})), None),
        ]
        for value, headers in values:
            client.produce(topic, value=value, key=key, headers=headers, partition=0)
        assert client.flush(30) == 0


def decodes_everything(observer: Observer, topic: str) -> None:
    """Check what every record becomes."""
    read = records(observer, topic, count=100)
    assert len(read.records) == 18
    answer: DecodeAnswer = answered(observer, DecodeRequest(topic, read.records))
    for nine in (answer.decoded[:9], answer.decoded[9:]):
        assert all(each.key is not None and each.key.tree == "order-1" for each in nine)
        avro, by_guid, as_json, proto, tombstone, plain, cut, missing, large = (each.value for each in nine)
        assert avro is not None and isinstance(avro.tree, Fields) and not avro.failure
        assert by_guid is not None and by_guid.tree == avro.tree and by_guid.schema == SchemaId(guid=GUID)
        assert as_json is not None and as_json.json is not None and as_json.json.data == b'{"total": 19.90}'
        assert proto is not None and proto.kind is SchemaKind.PROTOBUF
        assert proto.tree == Fields("com.acme.Invoice", [("a_string", "x")])
        assert tombstone is None and plain is None
        assert cut is not None and cut.failure.kind is DecodeFailureKind.ENDS and cut.has_tree
        assert missing is not None and missing.failure.kind is DecodeFailureKind.NO_SCHEMA
        assert large is not None and isinstance(large.tree, Fields) and not large.failure
    assert answer.cost.requests == 8  # one for each of six schemas, and two more for Protobuf's


def test_everything_that_a_registry_knows_is_decoded(simulated_cluster: Served, registry: RestServer) -> None:
    topic = f"decode-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2]])
    produce(simulated_cluster.bootstrap, topic)
    with observing(simulated_cluster.addresses, SETTINGS, security=with_registry(registry)) as observer:
        observer.observe()
        decodes_everything(observer, topic)


def test_a_registry_that_hangs_holds_up_nothing_else(simulated_cluster: Served, registry: RestServer) -> None:
    topic = f"decode-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2]])
    produce(simulated_cluster.bootstrap, topic)
    registry.acts = registry.hang
    arrived = threading.Event()
    with observing(simulated_cluster.addresses, SETTINGS, security=with_registry(registry)) as observer:
        observer.observe()
        read = records(observer, topic)
        observer.inspect(DecodeRequest(topic, read.records), lambda _: arrived.set())
        began_s = time.monotonic()
        assert answered(observer, SettingsRequest(topic)).settings
        assert len(records(observer, topic).records) == 18
        observer.observe()
        assert not arrived.is_set(), f"the registry has not answered within {time.monotonic() - began_s} s"
        registry.ended.set()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_same_on_a_real_cluster(real_kafka: RealKafka, registry: RestServer) -> None:
    topic = f"decode-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(topic, [[0, 1, 2]])
    produce(real_kafka.bootstrap_servers, topic)
    servers = [real_kafka.address(broker) for broker in real_kafka.broker_ids]
    with observing(servers, SETTINGS, security=with_registry(registry)) as observer:
        observer.observe()
        decodes_everything(observer, topic)


def test_fields_are_found_in_what_schemas_decode(simulated_cluster: Served, registry: RestServer) -> None:
    topic = f"decode-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2]])
    produce(simulated_cluster.bootstrap, topic)
    with observing(simulated_cluster.addresses, SETTINGS, security=with_registry(registry)) as observer:
        for where, kinds, undecoded in (
            ("value.id = -4711 and value.total = -19.9", [0, 1, 6, 8], 2),
            ("value.lines[].state = OPEN and value.made < 2027-01-01", [0, 1, 8], 4),
            ("value.rate = 0.1 and value.note = null", [0, 1], 4),
            ("value.total = 19.9", [2], 4),
            ("value.a_string = x", [3], 4),
            ("value.plain = true", [5], 4),
            ("value = null", [4], 0),
            ("PAID", [0, 1, 8], 0),
        ):
            got = searched(observer, topic, where)
            assert [offset for _, offset in got.places if offset < 9] == kinds, where
            assert [offset - 9 for _, offset in got.places if offset >= 9] == kinds, where
            assert got.tally.undecoded == undecoded, where
        by_key = searched(observer, topic, "key = order-1", more={"most": 4})
        assert len(by_key.found) == 18 and by_key.plan.own == (0,)
        assert all(each.decoded.key is not None for each in by_key.found)


def test_all_records_of_many_parts_are_decoded(registry: RestServer) -> None:
    lines = [{"qty": 1, "state": "OPEN"}] * 130
    values = [prefixed(7, written(INVOICE, VALUE | {"id": n, "lines": lines})) for n in range(600)]
    with RecordBroker([(0, batch(0, values))], end=600) as broker:
        security = with_registry(registry)
        with observing([broker.address], SETTINGS, security=security) as observer:
            got = searched(observer, "invoice", "value.id >= 480")
            assert [offset for _, offset in got.places] == list(range(480, 600))
            assert got.tally.undecoded == 0 and not got.spans[0].failure


def test_a_registry_that_hangs_ends_no_search_and_its_records_are_counted(registry: RestServer) -> None:
    values = [prefixed(7, written(INVOICE, VALUE)), b'{"id": -4711}']
    registry.acts = registry.hang
    with RecordBroker([(0, batch(0, values))], end=2) as broker:
        security = with_registry(registry)
        with observing([broker.address], SETTINGS, security=security) as observer:
            got = searched(observer, "invoice", "value.id = -4711")
            assert got.places == [(0, 1)] and got.tally.undecoded == 1
        registry.ended.set()
