"""What is asked on demand about a broker and a partition, and a partition's history from the recording."""

import pytest

from kview.derive.view import View
from kview.language.history import SAME_MS
from kview.model.failures import Cause, FailureKind
from kview.model.history import Led, PartitionHistory
from kview.model.inspection import (
    DirectoriesRequest,
    FirstRecordRequest,
    InspectionFailure,
    InspectionFailureKind,
    SettingsRequest,
)
from kview.tui.app import KviewApp
from kview.tui.widgets.broker_details import AGAIN_MS
from tests.tui.harness import (
    CRASH,
    FENCED,
    HEALTHY,
    FakeClock,
    FakeFeed,
    FakeTimeline,
    dashboard,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.inspecting import SETTINGS, FakeInspector
from tests.tui.moments import paused

SIZES = [(60, 15), (80, 24), (120, 40), (200, 50)]


def shown_again(app: KviewApp, view: View) -> None:
    """Show a view once more, as the next observation would."""
    assert isinstance(app.session.feed, FakeFeed)
    app.session.feed.show(view)


@pytest.mark.parametrize("size", SIZES)
@running
async def test_an_offline_directory_of_a_broker_is_in_sight_at_every_size(size: tuple[int, int]) -> None:
    async with dashboard(state(HEALTHY), inspector=FakeInspector(), size=size) as (app, pilot):
        app.go.broker(0)
        await until(pilot, lambda: "offline: KAFKA_STORAGE_ERROR" in text(app), "the directory")
        shown = text(app)
        assert "\x1b" not in shown and all(len(line) <= size[0] for line in shown.splitlines())
        if size[1] >= 40:
            assert "40 GB of 100 GB free" in shown and "8 replicas, 1 more being moved here" in shown
            assert "4 that differ from their defaults" in shown and "hidden by Kafka" in shown
            assert "compression.type" not in shown, "it has its default"


@running
async def test_a_broker_is_asked_now_and_again_but_not_while_it_is_silent() -> None:
    view, inspector = state(HEALTHY), FakeInspector()
    clock = FakeClock(view.snapshot.observation.ended_ms)
    async with dashboard(view, inspector=inspector, wall_ms=clock) as (app, pilot):
        app.go.broker(0)
        asked = [SettingsRequest(broker=0), DirectoriesRequest(0)]
        await until(pilot, lambda: inspector.asked == asked, "the first time")
        shown_again(app, state(HEALTHY))
        await until(pilot, lambda: "offline" in text(app), "the answer")
        assert inspector.asked == asked
        clock.now_ms += AGAIN_MS
        shown_again(app, state(HEALTHY))
        await until(pilot, lambda: inspector.asked == asked * 2, "the second time")
    inspector = FakeInspector()
    async with dashboard(state(CRASH), inspector=inspector) as (app, pilot):
        app.go.broker(4)
        await until(pilot, lambda: "not read while broker 4 does not answer" in text(app), "why not")
        assert inspector.asked == []
    async with dashboard(paused(HEALTHY), inspector=inspector, timeline=FakeTimeline()) as (app, pilot):
        app.go.broker(0)
        await until(pilot, lambda: "from the live cluster only" in text(app), "why not")
        assert inspector.asked == []


@running
async def test_why_a_broker_says_nothing_of_itself() -> None:
    refused = InspectionFailure(InspectionFailureKind.NO_ANSWER, 0, Cause(FailureKind.REFUSED))
    async with dashboard(state(HEALTHY), inspector=FakeInspector(refused)) as (app, pilot):
        app.go.broker(0)
        await until(
            pilot, lambda: text(app).count("broker 0 cannot be asked: connection refused") >= 2, "the reason"
        )


@running
async def test_a_setting_that_differs_is_shown_in_full() -> None:
    async with dashboard(state(HEALTHY), inspector=FakeInspector(), size=(200, 50)) as (app, pilot):
        app.go.broker(0)
        await until(pilot, lambda: "that differ" in text(app), "the settings")
        app.screen.query_one("#set").focus()
        await press(pilot, ["G", "enter"])
        assert SETTINGS[4].name in text(app) and "read-only" not in text(app)
        await press(pilot, ["escape"])
        assert "REPLICAS" in text(app)


@running
async def test_when_retention_removes_records_is_asked_once_for_each_log_start() -> None:
    inspector = FakeInspector()
    async with dashboard(state(HEALTHY), inspector=inspector) as (app, pilot):
        app.go.partition("invoice", 3)
        await until(pilot, lambda: "when retention removes records: –" in text(app), "that it is unknown")
        for _ in range(3):
            shown_again(app, state(HEALTHY))
            await pilot.pause()
        assert inspector.asked == [FirstRecordRequest("invoice", 3)]
        await press(pilot, ["right"])
        await until(pilot, lambda: FirstRecordRequest("invoice", 4) in inspector.asked, "the next one")


@running
async def test_the_recording_says_more_exactly_what_an_event_says() -> None:
    view, timeline = state(FENCED), FakeTimeline()
    now_ms = view.snapshot.observation.ended_ms
    moved_ms = max(event.at_ms for event in view.events if event.kind == "leader_moved")
    old_ms = now_ms - 3_000_000
    timeline.recorded = PartitionHistory(
        (
            Led(now_ms + SAME_MS, 9, 9, (9,)),
            Led(moved_ms, 2, 6, (2, 5)),
            Led(old_ms, 4, 5, (4, 2, 5)),
            Led(old_ms - 5_000, -1, 4, ()),
        ),
        old_ms - 5_000,
    )
    async with dashboard(view, timeline=timeline) as (app, pilot):
        app.go.partition("invoice", 3)
        await until(pilot, lambda: "leader 4 → 2 · epoch 5 → 6 · ISR 4 2 5 → 2 5" in text(app), "the change")
        shown = text(app)
        assert "leader none → 4 · epoch 4 → 5 · ISR empty → 4 2 5" in shown
        assert "earliest in the recording: no leader · epoch 4 · ISR empty" in shown
        assert "moved to broker 2" not in shown.split("HISTORY")[1], "it is the same"
        assert "→ 9" not in shown, "later than the moment shown"
