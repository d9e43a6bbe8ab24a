"""Whatever is asked of a topic with a mask, no answer, log or recording has what the mask hides."""

import json
import logging
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kview.config.masks import masks
from kview.config.schema_registry import SchemaRegistry
from kview.config.security import PLAINTEXT
from kview.model.decoded import DecodeRequest, SchemaKind
from kview.model.inspection import InspectionFailureKind, Isolation, RecordsRequest, Start, StartKind
from kview.model.search import SearchAnswer, SearchPlan, SearchPlanRequest, SearchRequest
from kview.model.tail import TailRequest
from kview.model.where import Problem, Where
from kview.observe.observer import ObserveSettings
from kview.recording.writer import RecordingWriter
from kview.where.parse import parse
from tests.decode.test_protobuf import TEXTS
from tests.observe.asking import answered, records
from tests.observe.canaries import (
    AVRO,
    CANARY,
    CUSTOMER,
    JSON_SCHEMA,
    MASK,
    PROTOBUF,
    clean,
    found_in,
    is_masked,
    write,
)
from tests.observe.observing import observing
from tests.observe.rest_server import RestServer, http
from tests.observe.test_registry import answered as schema
from tests.served import Served

SETTINGS = ObserveSettings(interval_s=0.3)
LINE = [{"name": "line.proto", "subject": "line", "version": 1}]


@pytest.fixture
def registry() -> Iterator[RestServer]:
    """A registry with the schemas of the canaries."""
    with RestServer(http(b"{}", "404 Not Found")) as server:
        server.by_path |= {
            f"/schemas/ids/{AVRO}": schema(json.dumps(CUSTOMER)),
            f"/schemas/ids/{JSON_SCHEMA}": schema("{}", SchemaKind.JSON),
            f"/schemas/ids/{PROTOBUF}": schema("…", SchemaKind.PROTOBUF, LINE),
            f"/schemas/ids/{PROTOBUF}?format=serialized": schema(TEXTS[1], SchemaKind.PROTOBUF, LINE),
            "/subjects/line/versions/1?deleted=true&format=serialized": schema(TEXTS[0], SchemaKind.PROTOBUF),
        }
        yield server


def where(text: str) -> Where:
    """A filter as somebody types it."""
    found = parse(text)
    assert not isinstance(found, Problem)
    return found


def haystack(answer: Any) -> bytes:
    """Everything in an answer, and its repr."""
    return msgspec.msgpack.encode(answer) + repr(answer).encode()


def test_no_answer_has_what_a_mask_hides(
    simulated_cluster: Served, registry: RestServer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG, "kview")
    topic = f"customers-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2]])
    security = replace(
        PLAINTEXT, registry=SchemaRegistry(registry.url), masks=masks({"customers-*": MASK, "other": "all"})
    )
    with observing(simulated_cluster.addresses, SETTINGS, security=security) as observer:
        snapshots = [observer.observe()]
        start = answered(observer, TailRequest(topic))
        count = write(simulated_cluster.bootstrap, topic)
        answers = [
            records(observer, topic),
            records(observer, topic, start=Start(StartKind.OFFSET, 0), isolation=Isolation.READ_UNCOMMITTED),
            records(observer, topic, start=Start(StartKind.TIME, 0)),
            answered(observer, TailRequest(topic, start.positions)),
        ]
        assert all(len(answer.records) == count and is_masked(haystack(answer)) for answer in answers)
        answers.append(answered(observer, DecodeRequest(topic, answers[0].records)))
        for text in (
            "",
            "shown-5c1e",
            CANARY,
            "value.note = shown-5c1e",
            f"not value.card contains {CANARY}",
        ):
            asked = where(text) if text else None
            plan: SearchPlan = answered(observer, SearchPlanRequest(topic, where=asked))
            step: SearchAnswer = answered(observer, SearchRequest(topic, plan.spans, asked))
            tail = answered(observer, TailRequest(topic, start.positions, where=asked))
            for answer, found in ((step, step.found), (tail, tail.records)):
                assert not answer.failure and bool(found) == (text != CANARY), text
                answers.append(replace(answer, request=RecordsRequest(topic, 0)))
        for text in (
            f"value.email = {CANARY}",
            "size > 3",
            "key = a",
            "headers.token ~ /^C/",
            "not key != a",
        ):
            for question in (
                SearchPlanRequest(topic, where=where(text)),
                SearchRequest(topic, plan.spans, where(text)),
                TailRequest(topic, start.positions, where=where(text)),
            ):
                assert answered(observer, question).failure.kind is InspectionFailureKind.MASKED
        snapshots.append(observer.observe())
        writer = RecordingWriter(tmp_path)
        for snapshot in snapshots:
            writer.append(snapshot)
        writer.close()
    clean((type(answer).__name__, haystack(answer)) for answer in answers)
    clean([("the log", caplog.text.encode())])
    clean((str(path), path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file())


def test_the_canaries_are_there_without_a_mask(simulated_cluster: Served, registry: RestServer) -> None:
    topic = f"customers-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2]])
    security = replace(PLAINTEXT, registry=SchemaRegistry(registry.url))
    with observing(simulated_cluster.addresses, SETTINGS, security=security) as observer:
        observer.observe()
        write(simulated_cluster.bootstrap, topic)
        for record in records(observer, topic).records:
            assert found_in(haystack(record.value)) is not None
            assert found_in(haystack(record.key)) is not None


def test_with_a_registry_that_hangs_everything_is_hidden(
    simulated_cluster: Served, registry: RestServer
) -> None:
    topic = f"customers-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2]])
    registry.acts = registry.hang
    security = replace(PLAINTEXT, registry=SchemaRegistry(registry.url), masks=masks({topic: MASK}))
    with observing(simulated_cluster.addresses, SETTINGS, security=security) as observer:
        observer.observe()
        count = write(simulated_cluster.bootstrap, topic)
        answer = records(observer, topic)
        assert len(answer.records) == count
        clean([("records", haystack(answer))])
