"""Records and settings on the screen: read when a key says so, in every form, whatever they contain."""

import re
from typing import Any

import pytest

from kview.model.failures import Cause, FailureKind, refused
from kview.model.inspection import (
    InspectionFailure,
    InspectionFailureKind,
    Isolation,
    ProducersRequest,
    QuotasRequest,
    RecordsRequest,
    StartKind,
)
from kview.tui.app import KviewApp
from tests.tui.harness import HEALTHY, dashboard, lines, press, running, state, text, until
from tests.tui.inspecting import COUNT, FIRST, FakeInspector

SIZES = [(60, 15), (80, 24), (120, 40), (200, 50)]


def fits(app: KviewApp, size: tuple[int, int]) -> bool:
    """Whether nothing on the screen is a control character, and every line has the screen's width."""
    drawn = lines(app)
    return len(drawn) == size[1] and all(line.isprintable() for line in drawn)


def asked(inspector: FakeInspector) -> RecordsRequest:
    """The last request for records."""
    request = inspector.asked[-1]
    assert isinstance(request, RecordsRequest)
    return request


@running
async def test_nothing_is_read_until_a_key_asks_for_it() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), state(HEALTHY), inspector=inspector) as (app, pilot):
        app.go.topic("invoice", 3)
        await pilot.pause()
        await press(pilot, ["m"])
        await until(pilot, lambda: "No record is read until you ask" in text(app), "the invitation")
        assert not inspector.asked
        await press(pilot, ["l"])
        await until(pilot, lambda: f"{FIRST + COUNT - 1:,}" in text(app), "the last record")
        request = asked(inspector)
        assert (request.topic, request.partition, request.start.kind) == ("invoice", 3, StartKind.LATEST)
        assert request.isolation is Isolation.READ_COMMITTED
        shown = text(app)
        assert "50 records, 48 kB fetched" in shown and "2 aborted batches left out" in shown
        assert "null (tombstone)" in shown and "1 batch cannot be shown" in shown
        await press(pilot, ["u"])
        await until(pilot, lambda: "read_uncommitted" in text(app), "the isolation")
        assert asked(inspector).isolation is Isolation.READ_UNCOMMITTED
        assert len(inspector.asked) == 2


@running
async def test_from_an_offset_a_time_or_a_number_of_records() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector) as (app, pilot):
        app.go.records("invoice", 0)
        await pilot.pause()
        now_ms = app.wall_ms()

        async def typed(answer: str) -> Any:
            before = len(inspector.asked)
            await press(pilot, ["f", *answer, "enter"])
            await pilot.pause()
            return inspector.asked[-1] if len(inspector.asked) > before else None

        offset = await typed("1204117")
        assert (offset.start.kind, offset.start.value) == (StartKind.OFFSET, 1_204_117)
        ago = await typed("-5m")
        assert ago.start.kind is StartKind.TIME and ago.start.value == now_ms - 300_000
        assert (await typed("last 7")).count == 7 and (await typed("last 999999")).count == 500
        for wrong in ("abc", "-5", "9" * 25):
            assert await typed(wrong) is None
            await until(pilot, lambda: "is not a place to read from" in text(app), "what is wrong")
            app.clear_message()
        await press(pilot, ["o", "4", "enter", "l"])
        assert asked(inspector).partition == 4
        await press(pilot, ["o", "9", "9", "enter"])
        await until(pilot, lambda: "invoice has no partition '99'" in text(app), "what is wrong")


@pytest.mark.quick(2)
@pytest.mark.parametrize("size", SIZES)
def test_every_size_and_form_holds_what_is_hostile(size: tuple[int, int]) -> None:
    async def run() -> None:
        async with dashboard(state(HEALTHY), inspector=FakeInspector(), size=size) as (app, pilot):
            app.go.records("invoice", 3)
            await press(pilot, ["l"])
            await until(pilot, lambda: f"{FIRST + COUNT - 1:,}" in text(app), "the last record")
            for form in ("text", "JSON", "hex", ""):
                await press(pilot, ["x"])
                assert fits(app, size) and "could not be drawn" not in text(app), form
            for up in range(3):
                await press(pilot, ["enter"])
                await until(pilot, lambda: "RECORD invoice-3" in text(app), "the record")
                for _ in range(3):
                    assert fits(app, size) and "could not be drawn" not in text(app), up
                    await press(pilot, ["x"])
                await press(pilot, ["end", "escape", "up"])
            app.go.settings("invoice")
            await until(pilot, lambda: "hidden by Kafka" in text(app), "the settings")
            assert fits(app, size)
            for _ in range(2):
                await press(pilot, ["enter", "end"])
                assert fits(app, size) and "could not be drawn" not in text(app)
                await press(pilot, ["escape", "down"])

    running(run)()


@running
async def test_a_record_in_full() -> None:
    async with dashboard(state(HEALTHY), inspector=FakeInspector()) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["l", "home", "down", "enter"])
        await until(pilot, lambda: f"RECORD invoice-3 offset {FIRST:,}" in text(app), "the record")
        shown = text(app)
        assert '    "invoice": 4711,' in shown and '    "total": 19.90,' in shown  # two cells for the mark
        assert '"name": "Grüner GmbH"' in shown and "trace-id: 4bf92f35" in shown
        assert "leader epoch 7" in shown and "(set by the producer)" in shown
        await press(pilot, ["x", "x", "x"])
        await until(pilot, lambda: "000000  69 6e 76 6f 69 63 65 2d" in text(app), "the hex dump")
        await press(pilot, ["escape"])
        assert "RECORDS invoice-3" in text(app)


@running
async def test_escape_cancels_a_question_before_it_leaves_the_screen() -> None:
    inspector = FakeInspector(blocks=True)
    async with dashboard(state(HEALTHY), inspector=inspector) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["l"])
        await until(pilot, lambda: "reading invoice-3, last 50" in text(app), "the progress")
        assert "Esc cancels" in text(app)
        await press(pilot, ["escape"])
        await until(pilot, lambda: inspector.cancelled == 1 and "cancelled" in text(app), "the end")
        inspector.blocks = False
        await press(pilot, ["l"])
        await until(pilot, lambda: f"{FIRST + COUNT - 1:,}" in text(app), "the last record")
        await press(pilot, ["escape"])
        assert "RECORDS" not in text(app)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            InspectionFailure(InspectionFailureKind.NO_ANSWER, 4, Cause(FailureKind.REFUSED)),
            "broker 4 leads invoice-3 but cannot be asked: connection refused",
        ),
        (
            InspectionFailure(InspectionFailureKind.NO_LEADER),
            "invoice-3 has no leader: nobody can read it now",
        ),
        (
            InspectionFailure(InspectionFailureKind.SWITCHED_OFF),
            "reading records is switched off (--no-records, or no-records in the profile)",
        ),
        (
            InspectionFailure(InspectionFailureKind.OFFSET_OUT_OF_RANGE, 1, offset=5),
            "offset 5 does not exist: it has offsets 201,004 to 1,204,116",
        ),
    ],
)
def test_a_failure_is_a_sentence(failure: InspectionFailure, said: str) -> None:
    async def run() -> None:
        async with dashboard(state(HEALTHY), inspector=FakeInspector(failure)) as (app, pilot):
            app.go.records("invoice", 3)
            await press(pilot, ["l"])
            await until(pilot, lambda: said in text(app), said)

    running(run)()


@running
async def test_settings_show_what_differs_first_and_can_be_filtered() -> None:
    async with dashboard(state(HEALTHY), inspector=FakeInspector()) as (app, pilot):
        app.go.topic("invoice")
        await press(pilot, ["e"])
        await until(pilot, lambda: "retention.ms" in text(app), "the settings")
        shown = text(app)
        assert shown.index("retention.ms") < shown.index("cleanup.policy")
        assert re.search(r"retention\.ms +86400000 \(1 d\) +168 \(log\.retention\.hours\) +topic", shown)
        assert re.search(r"min\.insync\.replicas +2 +1 +cluster default", shown)
        assert re.search(r"ssl\.keystore\.password +hidden by Kafka", shown)
        await press(pilot, ["f", *"insync", "enter"])
        await until(pilot, lambda: "cleanup.policy" not in text(app), "the filter")
        await press(pilot, ["enter"])
        await until(pilot, lambda: "SETTING min.insync.replicas of invoice" in text(app), "the setting")
        assert "every value that is set" in text(app)


@running
async def test_producers_are_a_tab_with_those_in_a_transaction_first() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector) as (app, pilot):
        app.go.topic("invoice")
        await press(pilot, ["right"] * 4)
        await until(pilot, lambda: "PRODUCERS invoice · 2 producers" in text(app), "the producers")
        shown = text(app)
        assert re.search(r"0 +4711 +3 +1,041 +.* open from offset 32", shown)
        assert shown.index("4711") < shown.index("4712") and "no time" in shown
        await press(pilot, ["l"])
        await until(pilot, lambda: inspector.asked.count(ProducersRequest("invoice")) == 2, "asked again")


@running
async def test_that_nobody_tells_who_writes_is_said() -> None:
    refused_ = InspectionFailure(InspectionFailureKind.NOT_AUTHORIZED, 2, refused(29))
    async with dashboard(state(HEALTHY), inspector=FakeInspector(refused_)) as (app, pilot):
        app.go.topic("invoice")
        await press(pilot, ["right"] * 4)
        said = "kview is not authorized to read invoice: it needs Read on this topic"
        await until(pilot, lambda: said in text(app), "why")


@running
async def test_a_recording_has_neither() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["l"])
        await until(pilot, lambda: "a recording holds no records" in text(app), "why there are none")
        app.go.settings("invoice")
        await until(pilot, lambda: "SETTINGS invoice" in text(app), "the settings' screen")
        assert "a recording holds no records, settings or quotas" in text(app)


@running
async def test_quotas_are_listed_by_a_command() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        await press(pilot, ["colon", *"quotas", "enter"])
        await until(pilot, lambda: "QUOTAS · 4 quotas · asked at" in text(app), "the quotas")
        shown = text(app)
        assert re.search(r"client id <default> +not set +1.0 MB/s +50 %", shown)
        assert re.search(r"user alice +1.0 kB/s +not set +not set +2.5/s +not set", shown)
        assert re.search(r"ip 10.0.0.7 +not set.* 10/s", shown) and fits(app, (120, 40))
        assert "user <default>, client id hostile" in shown
        await press(pilot, ["l"])
        await until(pilot, lambda: inspector.asked.count(QuotasRequest()) == 2, "asked again")


@pytest.mark.quick(1)
@running
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (InspectionFailureKind.NOT_AUTHORIZED, "kview is not authorized to read quotas"),
        (InspectionFailureKind.UNSUPPORTED, "cannot tell quotas"),
        (InspectionFailureKind.NONE, "no quotas are set"),
    ],
)
async def test_quotas_that_are_not_known_are_not_none(kind: InspectionFailureKind, said: str) -> None:
    inspector = FakeInspector(InspectionFailure(kind, 2, refused(31)), quotas=())
    async with dashboard(state(HEALTHY), inspector=inspector) as (app, pilot):
        await press(pilot, ["colon", *"quotas", "enter"])
        await until(pilot, lambda: said in text(app), "what the answer was")
        assert ("no quotas" in text(app)) is (kind is InspectionFailureKind.NONE)
        app.go.group("billing")
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
        notes = {
            InspectionFailureKind.NOT_AUTHORIZED: "quotas: not authorized",
            InspectionFailureKind.UNSUPPORTED: "quotas: broker 2 cannot tell",
            InspectionFailureKind.NONE: "no quotas",
        }
        await until(pilot, lambda: notes[kind] in text(app), "the same at the members")


@running
async def test_a_members_quota_is_that_of_its_client_id() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.group("billing")
        await until(pilot, lambda: "1.0 MB/s (default)" in text(app), "the quota")
        assert "quotas of " in text(app) and QuotasRequest() in inspector.asked


@running
async def test_a_recording_has_no_quotas() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["colon", *"quotas", "enter"])
        await until(pilot, lambda: "kview reads them only from a live cluster" in text(app), "why")
        app.go.group("billing")
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
        assert "quota" not in text(app).split("MEMBERS")[1]
