"""Times and names that are asked for: what is typed, refused, corrected, and meant."""

from datetime import datetime, timedelta, timezone

from kview.model.notices import Notice, NoticeKind
from kview.model.ports import Moment
from kview.model.units import UNKNOWN
from kview.tui.time_keys import asked_ms
from tests.tui.harness import (
    HEALTHY,
    FakeFeed,
    FakeTimeline,
    dashboard,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.moments import DAY_MS, FIRST_MS, paused


@running
async def test_a_time_is_asked_for() -> None:
    timeline = FakeTimeline()
    view = paused()
    shown_ms = view.snapshot.observation.ended_ms
    async with dashboard(view, timeline=timeline) as (app, pilot):
        before = app.focused
        await press(pilot, ["at"])
        assert "time to show, such as 14:05 or -5m (from here)" in text(app)
        assert text(app).splitlines()[-1].startswith(" Enter jump  Esc cancel  ")
        await press(pilot, [*"08:54:00", "enter"])
        assert timeline.asked == [("seek", shown_ms // 60_000 * 60_000)]
        assert app.focused is before
        await press(pilot, ["at", *"-10s", "enter"])
        assert timeline.asked[-1] == ("seek", shown_ms - 10_000)
        await press(pilot, ["at", *"-1h", "enter"])
        await until(pilot, lambda: "the recording starts at 08:53:20" in text(app), "where it ends up")
        timeline.asked.clear()
        await press(pilot, ["at", "enter", "at", "q", "space", "escape"])
        assert timeline.asked == [] and app.focused is before


@running
async def test_a_time_that_is_not_valid_says_which_are_and_stays_to_be_corrected() -> None:
    timeline = FakeTimeline()
    async with dashboard(paused(), timeline=timeline) as (app, pilot):
        await press(pilot, ["at", *"8:5", "enter"])
        would = "'8:5' is not a valid time · write 14:05, 14:05:30, -5m, +30s or 2026-03-01T14:05"
        await until(pilot, lambda: would in text(app), "what would be one")
        assert timeline.asked == []
        assert "8:5" in text(app).splitlines()[-2], "the line stays open"
        await press(pilot, [*"4", "enter"])
        assert "not a valid time" not in text(app)
        assert [asked[0] for asked in timeline.asked] == ["seek"]


@running
async def test_a_moment_after_the_end_is_refused_and_stays_to_be_corrected() -> None:
    timeline = FakeTimeline()
    async with dashboard(paused(), timeline=timeline) as (app, pilot):
        await press(pilot, ["at", *"23:59", "enter"])
        said = " 2025-10-09 23:59:00 is after the recording, which ends at 2025-10-09 09:54:59"
        await until(pilot, lambda: said in text(app), "where it ends")
        assert timeline.asked == []
        assert "23:59" in text(app).splitlines()[-2]


@running
async def test_a_jump_to_another_day_names_the_day() -> None:
    timeline = FakeTimeline()
    moment = Moment(live=False, playing=False, first_ms=FIRST_MS - DAY_MS, last_ms=FIRST_MS + 3_600_000)
    async with dashboard(paused(moment=moment), timeline=timeline) as (app, pilot):
        await press(pilot, ["at", *"23:59", "enter"])
        await until(pilot, lambda: "going to 2025-10-08 23:59:00, the day before" in text(app), "the day")
        assert [asked[0] for asked in timeline.asked] == ["seek"]


@running
async def test_a_name_is_asked_for_and_the_result_is_shown() -> None:
    timeline = FakeTimeline()
    async with dashboard(state(HEALTHY), timeline=timeline) as (app, pilot):
        await press(pilot, ["ctrl+s", *"friday", "space", "2", "enter"])
        assert timeline.asked == [("keep", "friday 2")]
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.note(Notice(NoticeKind.KEPT, {"name": "friday"}))
        await until(
            pilot,
            lambda: "recording kept as 'friday'; to open it: kview replay friday" in text(app),
            "the answer",
        )
        await press(pilot, ["slash", "k", "k", "g", "enter"])
        assert app.options.filter == "kkg" and len(timeline.asked) == 1


def test_a_time_of_day_is_one_of_the_day_shown() -> None:
    zone = timezone(timedelta(hours=2))

    def ms(*parts: int) -> int:
        return round(datetime(*parts, tzinfo=zone).timestamp() * 1000)  # type: ignore[arg-type, misc]

    shown_ms, last_ms = ms(2026, 3, 2, 0, 10), ms(2026, 3, 5, 12, 0)
    first_ms = ms(2026, 3, 1, 22, 0)
    assert asked_ms("14:05", shown_ms, first_ms, last_ms, zone) == ms(2026, 3, 2, 14, 5)
    assert asked_ms("14:05:30", shown_ms, first_ms, UNKNOWN, zone) == ms(2026, 3, 2, 14, 5, 30)
    assert asked_ms("23:50", shown_ms, first_ms, ms(2026, 3, 2, 0, 20), zone) == ms(2026, 3, 1, 23, 50)
    assert asked_ms("21:50", shown_ms, first_ms, ms(2026, 3, 2, 0, 20), zone) == ms(2026, 3, 2, 21, 50)
    assert asked_ms("−5m", shown_ms, first_ms, last_ms, zone) == shown_ms - 300_000
    assert asked_ms("+30s", shown_ms, first_ms, last_ms, zone) == shown_ms + 30_000
    assert asked_ms("2026-03-04T01:00", shown_ms, first_ms, last_ms, zone) == ms(2026, 3, 4, 1, 0)
    assert asked_ms("noon", shown_ms, first_ms, last_ms, zone) is None
