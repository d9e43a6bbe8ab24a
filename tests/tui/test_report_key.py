"""A key makes a report in the background: progress on the bottom line, then its text on a screen."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from kview.errors import ErrorKind, KviewError
from kview.model.events import Severity
from kview.model.reporting import LineKind, ReportLine, ReportProgress, ReportScope
from kview.tui.app import KviewApp
from kview.tui.widgets.bottom import SHOWN_MS
from tests.tui.harness import (
    CRASH,
    LOG_FILE,
    FakeClock,
    FakeTimeline,
    dashboard,
    press,
    running,
    state,
    text,
    until,
)

PATH = "/state/saved/kview-report-1.html"
LINES = 200


@dataclass
class FakeReport:
    """A report of LINES lines that say how wide they are."""

    path: str = PATH
    url: str = f"file://{PATH}"

    def lines(self, width: int, ascii_only: bool) -> Sequence[ReportLine]:
        """Return the lines."""
        risk = ReportLine(LineKind.SUMMARY, "✕ broker 4 was silent", Severity.RISK)
        return [
            ReportLine(LineKind.TITLE, f"kview report, {width} cells"),
            risk,
            *(ReportLine(LineKind.TEXT, f"line {number} \x1b[31m") for number in range(LINES)),
        ]


@dataclass
class FakeReports:
    """Makes a report when the test says so, or fails."""

    scopes: list[ReportScope] = field(default_factory=list)
    tell: Callable[[ReportProgress], None] = lambda progress: None
    cancelled: int = 0

    def __post_init__(self) -> None:
        self.done: asyncio.Future[FakeReport] | None = None

    async def make(self, scope: ReportScope, on_progress: Callable[[ReportProgress], None]) -> FakeReport:
        """Wait for the test."""
        self.scopes.append(scope)
        self.tell, self.done = on_progress, asyncio.get_running_loop().create_future()
        return await self.done

    def cancel(self) -> None:
        """Count it."""
        self.cancelled += 1
        self.fail(ErrorKind.REPORT_CANCELLED)

    def fail(self, kind: ErrorKind, **values: str | int) -> None:
        """End without a report."""
        if self.done is not None and not self.done.done():
            self.done.set_exception(KviewError(kind, **values))

    def finish(self) -> None:
        """End with a report."""
        assert self.done is not None
        self.done.set_result(FakeReport())


@running
async def test_a_report_is_made_while_keys_work_and_opens_when_it_is_complete() -> None:
    reports = FakeReports()
    async with dashboard(state(CRASH), reports=reports) as (app, pilot):
        await press(pilot, ["ctrl+o"])
        assert "starting Spark" in text(app) and "Esc cancels" in text(app)
        reports.tell(ReportProgress("roll_up", 3, 12, 2, 12, 40))
        await until(
            pilot,
            lambda: "rolling up the recordings, 3 of 12 · 12 of 40 tasks in 2 stages" in text(app),
            "progress",
        )
        await press(pilot, ["2"])
        assert "leads  copies" in text(app) and "3 of 12" in text(app)
        reports.finish()
        await until(pilot, lambda: "kview report, 116 cells" in text(app), "the report")
        assert f"report saved: {PATH}" in text(app) and "3 of 12" not in text(app)
        app.wall_ms.now_ms += SHOWN_MS + 1_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "report saved" not in text(app), "the end of the message")
        assert "line 199" not in text(app) and "\x1b" not in text(app)
        await press(pilot, ["G"])
        assert "line 199" in text(app)
        await pilot.resize_terminal(80, 24)
        await press(pilot, ["g", "g"])
        assert "kview report, 78 cells" in text(app)
        await press(pilot, ["escape"])
        assert "leads  copies" in text(app), "back where it was"
    assert reports.scopes == [ReportScope()]


def move(app: KviewApp, ms: int) -> None:
    """Let time pass."""
    assert isinstance(app.clock_ms, FakeClock)
    app.clock_ms.now_ms += ms


@running
async def test_the_time_goes_on_and_another_message_leaves_room_for_it() -> None:
    reports = FakeReports()
    async with dashboard(state(CRASH), reports=reports) as (app, pilot):
        await press(pilot, ["ctrl+o"])
        assert "starting Spark · 0 s · Esc cancels" in text(app)
        move(app, 75_000)
        await until(pilot, lambda: "starting Spark · 1 m 15 s" in text(app), "the time that has passed")
        await press(pilot, ["Z"])
        await until(pilot, lambda: "does nothing here" in text(app), "another message")
        assert "report underway, 1 m 15 s" in text(app)
        move(app, 13_000)
        await until(pilot, lambda: "starting Spark · 1 m 28 s" in text(app), "the progress again")


@pytest.mark.parametrize("key", ["escape", "ctrl+o"])
@running
async def test_escape_and_the_same_key_cancel_a_report(key: str) -> None:
    reports = FakeReports()
    async with dashboard(state(CRASH), reports=reports) as (app, pilot):
        await press(pilot, ["ctrl+o", key])
        await until(pilot, lambda: "report cancelled" in text(app), "that it was cancelled")
        assert reports.cancelled == 1 and "starting Spark" not in text(app)
        await press(pilot, ["ctrl+o"])
        assert len(reports.scopes) == 2, "another one can be made"


@running
async def test_the_filter_chooses_what_the_report_is_about() -> None:
    reports = FakeReports()
    async with dashboard(state(CRASH), reports=reports) as (app, pilot):
        await press(pilot, ["slash", *"payment", "enter", "ctrl+o"])
        (scope,) = reports.scopes
        assert scope.topics == ("payment",)
        reports.finish()
        await until(pilot, lambda: "/payment" in text(app) and "116 cells" in text(app), "what it is about")
        await press(pilot, ["escape", "escape", "slash", *"nobody", "enter", "ctrl+o"])
        assert "nothing matches /nobody" in text(app) and len(reports.scopes) == 1


@running
async def test_a_failure_is_one_sentence_and_the_place_of_the_log() -> None:
    reports = FakeReports()
    async with dashboard(state(CRASH), reports=reports) as (app, pilot):
        await press(pilot, ["ctrl+o"])
        reports.fail(ErrorKind.REPORT_KILLED, signal="SIGKILL")
        await until(pilot, lambda: "no report: the report's process was killed (SIGKILL)" in text(app), "why")
        assert f"details: {LOG_FILE}" in text(app)
        await press(pilot, ["ctrl+o"])
        reports.fail(ErrorKind.NO_JAVA, least=17)
        await until(pilot, lambda: "Java 17 or later was not found · install it" in text(app), "what to do")
        await press(pilot, ["ctrl+o"])
        reports.fail(ErrorKind.REPORT_NOTHING_KNOWN)
        early = "no report: nothing has been recorded yet · try again in a moment"
        await until(pilot, lambda: early in text(app), "that it is too early")


@running
async def test_a_report_does_not_open_over_what_is_typed() -> None:
    reports = FakeReports()
    async with dashboard(state(CRASH), reports=reports, timeline=FakeTimeline(replay=True)) as (app, pilot):
        await press(pilot, ["ctrl+o", "slash", *"inv"])
        reports.finish()
        await pilot.pause()
        await press(pilot, ["o", "enter"])
        assert app.options.filter == "invo"
        await until(pilot, lambda: f"report ready: {PATH} · ^o opens it" in text(app), "that it is ready")
        await press(pilot, ["ctrl+o"])
        assert "kview report, 116 cells" in text(app) and len(reports.scopes) == 1


@running
async def test_without_a_recording_there_is_no_such_key() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        await press(pilot, ["ctrl+o"])
        assert "^o does nothing here" in text(app)
