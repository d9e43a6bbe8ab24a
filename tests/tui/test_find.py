"""Looking for records on the screen: a filter is typed, results come in, and what was not read is said."""

import json
from pathlib import Path

import pytest

from kview.model.inspection import InspectionFailure, InspectionFailureKind, Isolation
from kview.model.search import SearchPlanRequest, SearchRequest
from kview.model.where import Candidate, Problem
from kview.plain.records import record_document
from kview.run.saves import FolderSaves
from kview.tui.rows.found import own_cells
from kview.tui.widgets.records import RecordsPanel
from kview.where.parse import parse_with_columns
from tests.tui.harness import HEALTHY, dashboard, drawn_text, press, running, state, text, until
from tests.tui.inspecting import RECORDS, FakeInspector
from tests.tui.test_records import SIZES, fits
from tests.tui.test_screens import agrees

FILTER = "x"


async def find(pilot: object, typed: str) -> None:
    """Type a filter."""
    names = {
        " ": "space",
        "=": "equals_sign",
        "/": "slash",
        "|": "vertical_line",
        ",": "comma",
        ".": "full_stop",
    }
    await press(pilot, ["slash", *(names.get(character, character) for character in typed), "enter"])  # type: ignore[arg-type]


@running
async def test_a_filter_finds_records_of_all_partitions_and_says_what_was_not_read() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await pilot.pause()
        await press(pilot, ["slash"])
        await until(pilot, lambda: "value.customer.id = 42" in text(app), "the hint")
        await press(pilot, ["escape"])
        assert not inspector.asked
        await find(pilot, "key = k")
        await until(pilot, lambda: "12 records found" in text(app), "the end of the search")
        shown = text(app)
        assert "not all was read: partition 0: broker 4" in shown
        assert "3 records could not be decoded" in shown
        plan, *steps = inspector.asked
        assert isinstance(plan, SearchPlanRequest) and plan.topic == "invoice" and not plan.partitions
        assert all(isinstance(step, SearchRequest) and step.most_bytes <= 500_000_000 for step in steps)
        assert len(steps) == 4
        await press(pilot, ["home", "enter"])
        await until(pilot, lambda: "RECORD invoice-3 offset" in text(app), "the record in full")
        await press(pilot, ["escape", "u"])
        await until(pilot, lambda: len(inspector.asked) == 10, "the same search, uncommitted")
        again = inspector.asked[5]
        assert isinstance(again, SearchPlanRequest) and again.isolation is Isolation.READ_UNCOMMITTED
        await press(pilot, ["l"])
        await until(pilot, lambda: "50 records" in text(app), "the last records again")
        assert "12 records found" not in text(app)


@running
async def test_fields_have_columns_of_their_own() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await pilot.pause()
        await find(pilot, "| value.invoice, headers.x")
        panel = app.screen.query_one(RecordsPanel)
        await until(pilot, lambda: len(panel.rows) == 12 and not panel.asking, "the end of the search")
        assert [column.title for column in panel.rows.columns][4:6] == ["invoice", "headers.x"]
        assert isinstance(inspector.asked[1], SearchRequest) and inspector.asked[1].where is None


def test_what_a_column_shows() -> None:
    def shown(field: str) -> list[str]:
        parsed = parse_with_columns(f"| {field}")
        assert not isinstance(parsed, Problem)
        both = [Candidate(0, RECORDS[0]), Candidate(0, RECORDS[-3])]
        return [cells[0].text for cells in own_cells(both, parsed[1])]

    assert shown("value.customer.name") == ["Grüner GmbH", "–"]
    assert shown("value.total") == ["19.90", "–"]
    assert shown("value.lines[].qty") == ["2", "–"]
    assert shown("value.customer") == ['{"name": "Grüner GmbH", "tags": []}', "–"]
    assert shown("headers.trace-id") == ["4bf92f35", "–"]


@running
async def test_a_wrong_filter_stays_open_and_says_where_it_is_wrong() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await pilot.pause()
        await find(pilot, "a b")
        await until(pilot, lambda: "at character 3: 'b' follows a condition" in text(app), "what is wrong")
        assert not inspector.asked
        await press(pilot, ["backspace", "backspace", "enter"])
        await until(pilot, lambda: "12 records found" in text(app), "the end of the search")


@running
async def test_escape_cancels_and_keeps_what_was_found() -> None:
    inspector = FakeInspector()
    inspector.blocks_steps = True
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await pilot.pause()
        await find(pilot, FILTER)
        await until(pilot, lambda: "up to 200 records in 2 partitions, ≈ 8.0 kB" in text(app), "the cost")
        await press(pilot, ["escape"])
        await until(pilot, lambda: "cancelled" in text(app) and inspector.cancelled == 1, "the cancelling")


@running
async def test_what_fails_as_a_whole_is_said_and_switched_off_is_off() -> None:
    failure = InspectionFailure(InspectionFailureKind.NOT_CONNECTED)
    async with dashboard(state(HEALTHY), inspector=FakeInspector(failure)) as (app, pilot):
        app.go.records("invoice", 3)
        await pilot.pause()
        await find(pilot, FILTER)
        await until(pilot, lambda: "no broker answers at the moment" in text(app), "the failure")
    inspector = FakeInspector(reads_records=False)
    async with dashboard(state(HEALTHY), inspector=inspector) as (app, pilot):
        app.go.records("invoice", 3)
        await pilot.pause()
        await find(pilot, FILTER)
        assert not inspector.asked


@running
async def test_what_was_found_is_saved_as_json_lines(tmp_path: Path) -> None:
    saves = FolderSaves(tmp_path)
    async with dashboard(
        state(HEALTHY), inspector=FakeInspector(), saves=saves, record_line=record_document
    ) as (app, pilot):
        app.go.records("invoice", 3)
        await pilot.pause()
        await find(pilot, FILTER)
        await until(pilot, lambda: "12 records found" in text(app), "the end of the search")
        await press(pilot, ["ctrl+e"])
        await until(pilot, lambda: "12 records saved:" in text(app), "the file")
    [file] = tmp_path.iterdir()
    assert file.suffix == ".jsonl" and file.stat().st_mode & 0o777 == 0o600
    documents = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(documents) == 12 and {each["topic"] for each in documents} == {"invoice"}
    assert {each["partition"] for each in documents} == {0, 3}
    assert all(line.isprintable() for line in file.read_text().splitlines())


@pytest.mark.quick(2)
@pytest.mark.parametrize("size", SIZES)
def test_every_size_and_form_holds_what_is_hostile(size: tuple[int, int]) -> None:
    async def run() -> None:
        async with dashboard(state(HEALTHY), inspector=FakeInspector(), size=size) as (app, pilot):
            app.go.records("invoice", 3)
            await pilot.pause()
            await find(pilot, FILTER)
            panel = app.screen.query_one(RecordsPanel)
            await until(pilot, lambda: len(panel.rows) == 12 and not panel.asking, "the end of the search")
            for form in ("text", "JSON", "hex", ""):
                await press(pilot, ["x"])
                assert fits(app, size) and "could not be drawn" not in text(app), form

    running(run)()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_the_screen_of_a_search(size: tuple[int, int], request: pytest.FixtureRequest) -> None:
    async def run() -> None:
        async with dashboard(state(HEALTHY), inspector=FakeInspector(), size=size) as (app, pilot):
            app.go.records("invoice", 3)
            await pilot.pause()
            await find(pilot, "key exists | value.customer.name")
            panel = app.screen.query_one(RecordsPanel)
            await until(pilot, lambda: len(panel.rows) == 12 and not panel.asking, "the end of the search")
            update = bool(request.config.getoption("--update-golden"))
            agrees(f"find-{size[0]}x{size[1]}", drawn_text(app), update)

    running(run)()
