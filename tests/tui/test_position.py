"""From a group to the record at its committed offset, and decoded records on the screen."""

import re
from typing import Any

import pytest

from kview.derive.view import Verdict, View
from kview.language.position import NOTHING_KNOWN
from kview.model.decoded import (
    Decoded,
    DecodedRecord,
    DecodeFailure,
    DecodeFailureKind,
    Fields,
    Items,
    SchemaId,
    SchemaKind,
    Symbol,
)
from kview.model.failures import Cause, FailureKind
from kview.model.inspection import (
    InspectionFailure,
    InspectionFailureKind,
    Isolation,
    Payload,
    RecordsRequest,
    StartKind,
)
from kview.model.states import GroupType
from kview.tui.app import KviewApp
from tests.derive.test_transactions import watched
from tests.tui.harness import CRASH, HEALTHY, dashboard, drawn_text, lines, press, running, state, text, until
from tests.tui.inspecting import FIRST, HOSTILE, FakeInspector
from tests.tui.test_screens import agrees
from tests.worlds.transactions import APP

FRAMED = FIRST + 45
"""The offset of a record whose value begins as a registry's serializers do."""
TREE = Fields(
    "com.acme.Invoice",
    [
        ("id", 4_711),
        ("state", Symbol("PAID")),
        ("note", "n" * 5_000),
        ("lines", Items([Fields("Line", [("qty", n)]) for n in range(300)])),
        ("hostile", HOSTILE.decode(errors="replace")),
        ("raw", HOSTILE),
    ],
)


def avro(tree: Any = TREE, failure: DecodeFailure = DecodeFailure()) -> DecodedRecord:  # noqa: B008
    """A record whose value was written with a schema."""
    value = Decoded(SchemaId(7), SchemaKind.AVRO, "com.acme.Invoice", tree, tree is not None, failure=failure)
    return DecodedRecord(value=value)


def of_schema(kind: DecodeFailureKind, cause: FailureKind = FailureKind.NONE) -> DecodedRecord:
    """A record that is not decoded."""
    return DecodedRecord(value=Decoded(SchemaId(7), failure=DecodeFailure(kind, cause=Cause(cause))))


def blocked(view: View) -> str:
    """A group that is blocked in a partition."""
    at = [str(verdict) for verdict in view.offsets.verdict].index(Verdict.BLOCKED)
    return str(view.snapshot.offsets.group[at])


@running
async def test_from_the_first_screen_to_the_record_that_holds_a_group_in_three_keys() -> None:
    inspector = FakeInspector()
    view = state(CRASH)
    async with dashboard(view, inspector=inspector, size=(120, 40)) as (app, pilot):
        await press(pilot, ["5", "enter", "enter"])
        await until(pilot, lambda: "RECORDS " in text(app) and f"{FIRST:,}" in text(app), "the records")
        request = next(each for each in inspector.asked if isinstance(each, RecordsRequest))
        table = view.snapshot.offsets
        own = (table.topic == request.topic) & (table.partition == request.partition)
        assert request.start.kind is StartKind.OFFSET and request.start.value in table.committed[own]
        assert request.isolation is Isolation.READ_COMMITTED
        assert re.search(
            rf" in {request.topic}-{request.partition} · committed {request.start.value:,}", text(app)
        )
        assert "✕ blocked" in text(app) and NOTHING_KNOWN not in text(app)
        await press(pilot, ["escape", "l"])
        assert "HISTORY of leader and ISR" in text(app)


@running
async def test_a_record_that_a_transaction_holds_back_is_shown_with_who_holds_it() -> None:
    inspector = FakeInspector()
    view = watched(80, GroupType.CLASSIC, 1)[-1]
    async with dashboard(view, inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.group("billing")
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
        await press(pilot, ["enter"])
        await until(pilot, lambda: f"{FIRST:,}" in text(app), "the records")
        (request,) = [each for each in inspector.asked if isinstance(each, RecordsRequest)]
        assert (request.partition, request.isolation) == (0, Isolation.READ_UNCOMMITTED)
        assert "▲ blocked by a transaction" in text(app)
        assert re.search(rf"transaction of {APP} open for .* are held back", text(app))
        assert NOTHING_KNOWN not in text(app)


@running
async def test_without_records_enter_leads_to_the_log() -> None:
    view = state(CRASH)
    group = blocked(view)
    for inspector in (None, FakeInspector(reads_records=False)):
        async with dashboard(view, inspector=inspector) as (app, pilot):
            app.go.group(group)
            await until(pilot, lambda: "MEMBERS" in text(app), "the group")
            await press(pilot, ["m"])
            assert "MEMBERS" in text(app)
            await press(pilot, ["enter"])
            await until(pilot, lambda: "HISTORY of leader and ISR" in text(app), "the log")
            assert inspector is None or not any(isinstance(each, RecordsRequest) for each in inspector.asked)


@running
async def test_a_healthy_partition_opens_its_log_and_a_key_its_records() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector) as (app, pilot):
        app.go.group("billing")
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
        await press(pilot, ["enter"])
        await until(pilot, lambda: "HISTORY of leader and ISR" in text(app), "the log")
        await press(pilot, ["escape", "m"])
        await until(pilot, lambda: "RECORDS " in text(app), "the records")
        assert any(isinstance(each, RecordsRequest) for each in inspector.asked)


SIZES = [(60, 15), (80, 24), (120, 40), (200, 50)]


def fits(app: KviewApp, size: tuple[int, int]) -> bool:
    drawn = lines(app)
    return len(drawn) == size[1] and all(line.isprintable() for line in drawn)


@pytest.mark.quick(1)
@pytest.mark.parametrize("size", SIZES)
def test_a_position_in_every_size(size: tuple[int, int]) -> None:
    async def run() -> None:
        inspector = FakeInspector()
        inspector.decoded = {FIRST: avro(failure=DecodeFailure(DecodeFailureKind.ENDS, 12, "x" * 150))}
        async with dashboard(state(CRASH), inspector=inspector, size=size) as (app, pilot):
            app.go.position(blocked(state(CRASH)), "invoice", 0)
            await until(pilot, lambda: f"{FIRST:,}" in text(app), "the records")
            assert fits(app, size) and "could not be drawn" not in text(app)

    running(run)()


@pytest.mark.parametrize("size", SIZES)
def test_decoded_records_in_every_size(size: tuple[int, int]) -> None:
    async def run() -> None:
        inspector = FakeInspector()
        inspector.decoded = {FRAMED: avro()}
        async with dashboard(state(HEALTHY), inspector=inspector, size=size) as (app, pilot):
            app.go.records("invoice", 3)
            await press(pilot, ["l"])
            await until(pilot, lambda: '{"id": 4711' in text(app), "the decoded value")
            assert fits(app, size)
            await press(pilot, ["up"] * 4)
            await press(pilot, ["enter"])
            await until(pilot, lambda: f"offset {FRAMED:,}" in text(app), "the record")
            for _ in range(4):
                for key in ("home", "end"):
                    await press(pilot, [key])
                    assert fits(app, size) and "could not be drawn" not in text(app)
                await press(pilot, ["x"])

    running(run)()


@running
async def test_a_decoded_record_is_folded_and_the_raw_bytes_are_a_key_away() -> None:
    inspector = FakeInspector()
    inspector.decoded = {FRAMED: avro()}
    async with dashboard(state(HEALTHY), inspector=inspector, size=(300, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["l"])
        await until(pilot, lambda: "values Avro com.acme.Invoice, schema 7" in text(app), "the schema")
        assert "2 requests, 1.2 kB from the registry" in text(app)
        await press(pilot, [*["up"] * 4, "enter"])
        await until(pilot, lambda: "9 bytes · Avro com.acme.Invoice, schema 7" in text(app), "the value")
        assert '"state": PAID,' in text(app) and "… 4,700 more characters" in text(app)
        await press(pilot, ["end"])
        await until(pilot, lambda: "… 200 more" in text(app), "the folded array")
        await press(pilot, ["x", "x", "end"])
        await until(pilot, lambda: '{"qty": 299}' in text(app), "all of it")
        await press(pilot, ["x", "home"])
        await until(pilot, lambda: "000000  00 00 00 00 07 02 96 01 0c" in text(app), "the bytes")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (InspectionFailureKind.TIMEOUT, "the schema registry has not answered in time"),
        (InspectionFailureKind.NO_ANSWER, "keys and values could not be decoded; see kview.log"),
    ],
)
def test_a_decoder_that_fails_is_said_next_to_damage(kind: InspectionFailureKind, said: str) -> None:
    async def run() -> None:
        inspector = FakeInspector()
        inspector.decode_failure = InspectionFailure(kind)
        async with dashboard(state(HEALTHY), inspector=inspector, size=(160, 40)) as (app, pilot):
            app.go.records("invoice", 3)
            await press(pilot, ["l"])
            await until(pilot, lambda: said in text(app), said)
            assert "1 batch cannot be shown" in text(app)

    running(run)()


@pytest.mark.parametrize(
    ("decoded", "said"),
    [
        (
            avro(failure=DecodeFailure(DecodeFailureKind.WRONG, 12, "lines[0].qty")),
            "▲ does not decode: the bytes in lines[0].qty are not what the schema says, at byte 12",
        ),
        (
            of_schema(DecodeFailureKind.NO_SCHEMA),
            "the schema registry has no schema 7, if a registry wrote it",
        ),
        (of_schema(DecodeFailureKind.NO_REGISTRY), "give --schema-registry-url, or schema-registry-url in"),
        (
            of_schema(DecodeFailureKind.REGISTRY, FailureKind.REFUSED),
            "1 key or value is not decoded: the schema registry: connection refused",
        ),
        (of_schema(DecodeFailureKind.LATE), "the schema registry has not answered in time"),
    ],
)
def test_why_a_value_is_not_decoded_is_said(decoded: DecodedRecord, said: str) -> None:
    async def run() -> None:
        inspector = FakeInspector()
        inspector.decoded = {FRAMED: decoded}
        async with dashboard(state(HEALTHY), inspector=inspector, size=(160, 40)) as (app, pilot):
            app.go.records("invoice", 3)
            await press(pilot, ["l"])
            await until(pilot, lambda: f"{FRAMED:,}" in text(app), "the records")
            if said.startswith("▲"):
                row = next(each for each in lines(app) if f"{FRAMED:,}" in each)
                assert "▲ does not decode: the bytes in lines[0].qty" in row
            if "if a registry" in said or "at byte" in said:
                await press(pilot, [*["up"] * 4, "enter"])
            await until(pilot, lambda: said in text(app), said)

    running(run)()


@running
async def test_a_json_schemas_value_is_the_json_that_was_written() -> None:
    inspector = FakeInspector()
    json = Payload(b'{"total":19.90}', 15)
    inspector.decoded = {FRAMED: DecodedRecord(value=Decoded(SchemaId(9), SchemaKind.JSON, json=json))}
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["l"])
        await until(pilot, lambda: '{"total":19.90}' in text(app), "the value")
        await press(pilot, [*["up"] * 4, "enter"])
        await until(pilot, lambda: '"total": 19.90' in text(app), "the value laid out")
        assert "9 bytes · JSON Schema, schema 9" in text(app)


@running
async def test_the_record_that_does_not_decode_is_named_above() -> None:
    inspector = FakeInspector()
    inspector.decoded = {FIRST: avro(failure=DecodeFailure(DecodeFailureKind.ENDS, 12, "lines[0].qty"))}
    view = state(HEALTHY)
    async with dashboard(view, inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.position("billing", "invoice", 3)
        ends = (
            "its value does not decode: it ends in lines[0].qty, at byte 12 (Avro com.acme.Invoice, schema 7)"
        )
        await until(pilot, lambda: ends in text(app), "what is wrong")


@pytest.mark.parametrize(("name", "size"), [("position", (120, 40)), ("record", (80, 24))])
def test_screens_of_a_record(name: str, size: tuple[int, int], request: pytest.FixtureRequest) -> None:
    async def run() -> None:
        inspector = FakeInspector()
        inspector.decoded = {
            FIRST: avro(failure=DecodeFailure(DecodeFailureKind.WRONG, 12, "lines[0].qty")),
            FRAMED: avro(),
        }
        async with dashboard(state(CRASH), inspector=inspector, size=size) as (app, pilot):
            app.go.position(blocked(state(CRASH)), "invoice", 0)
            await until(pilot, lambda: "▲ does not decode" in text(app), "the decoded records")
            if name == "record":
                await press(pilot, ["end", *["up"] * 4, "enter"])
                await until(pilot, lambda: "Avro com.acme.Invoice, schema 7" in text(app), "the record")
            width, height = size
            update = bool(request.config.getoption("--update-golden"))
            agrees(f"{name}-{width}x{height}", drawn_text(app), update)

    running(run)()
