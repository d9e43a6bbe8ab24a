"""The plots of a group and of a topic over minutes and hours."""

import math
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kview.model.history import MOST_GROUPS, Course, CourseOf, Peak
from kview.model.ports import TimeMark
from kview.model.units import UNKNOWN
from kview.tui.app import KviewApp
from kview.tui.plot import AXIS_CELLS
from kview.tui.rows.over_time import REACHES, Shown, offered, over_time
from kview.tui.screens.group import GroupScreen
from kview.tui.text import content
from kview.tui.widgets.recorded import LEAST_MS
from kview.tui.widgets.records import RecordsPanel
from tests.tui.harness import (
    CRASH,
    HEALTHY,
    FakeClock,
    FakeTimeline,
    dashboard,
    drawn_text,
    press,
    run,
    running,
    state,
    text,
    until,
)
from tests.tui.test_screens import agrees
from tests.worlds.crowd import crowd

HOUR_MS = 3_600_000
ENDED_MS = state(HEALTHY).snapshot.observation.ended_ms
GROUP = ["colon", *"billing", "enter"]
TOPIC = ["colon", *"invoice", "enter", "left"]


def of(*lag: float, step_ms: int = 60_000, since_ms: int | None = None, **more: object) -> Course:
    """A course that ends at the moment of the first view."""
    from_ms = ENDED_MS - step_ms * len(lag)
    since_ms = from_ms if since_ms is None else since_ms
    return replace(Course(from_ms, step_ms, lag, lag, since_ms=since_ms), **more)


def drawn(course: Course | None, *, topic: str = "", groups: tuple[str, ...] = ("billing",)) -> list[str]:
    """What is drawn of a course in 90 × 20 cells, its title first."""
    view = state(HEALTHY)
    shown = Shown(view, topic, groups, course, REACHES[-1], offered(2 * HOUR_MS), "w", None)
    title, lines = over_time(shown, 90, 20)
    return [f"{content(title.text)} | {content(title.scope)}", *map(content, lines)]


def test_only_what_the_recording_can_fill_is_offered() -> None:
    assert [reach.label for reach in offered(0)] == ["all"]
    assert [reach.label for reach in offered(700_000)] == ["1 m", "10 m", "all"]
    assert [reach.label for reach in offered(7 * HOUR_MS)] == ["1 m", "10 m", "1 h", "6 h", "all"]


def test_a_gap_is_neither_zero_nor_bridged_and_each_column_is_the_highest() -> None:
    lines = drawn(of(*[10.0] * 60, *[math.nan] * 60, *[10.0] * 59, 1000.0))
    axis = next(line for line in lines if line.lstrip().startswith("0 "))[AXIS_CELLS:]
    assert "▁" in axis[:26] and axis[31:52].strip() == "", "an hour of nothing"
    assert axis[58:78].strip("▁") == "" and axis.rstrip()[-1] == "█", "the spike of a minute is there"
    assert "highest of each 2 m 15 s" in lines[1]


def test_the_peak_the_beginning_and_incidents_are_said() -> None:
    view = state(HEALTHY)
    peak = Peak(12_345, True, "billing", ENDED_MS - HOUR_MS)
    course = of(*[5.0] * 120, peak=peak)
    mark = TimeMark(ENDED_MS - HOUR_MS, ENDED_MS, ENDED_MS - HOUR_MS // 2, UNKNOWN)
    view = replace(view, moment=replace(view.moment, marks=(mark,)))
    shown = Shown(view, "", ("billing",), course, REACHES[-1], offered(2 * HOUR_MS), "w", None)
    title, made = over_time(shown, 90, 20)
    lines = list(map(content, made))
    assert "[all 2 h] w" in content(title.scope) and "recorded since" in content(title.scope)
    assert "highest ≥12,345 at" in lines[0] and "now" in lines[-1]
    at = lines[-1].index("✕")
    assert abs(at - (AXIS_CELLS + 40)) <= 1 and lines[-1].index("▲") > at


@pytest.mark.parametrize(
    ("seconds", "unit", "top"),
    [(90.0, "seconds", "100"), (200.0, "minutes", "5"), (8_000.0, "hours", "3"), (200_000.0, "days", "3")],
)
def test_the_lag_in_time_has_the_unit_that_gives_short_figures(seconds: float, unit: str, top: str) -> None:
    lines = drawn(of(*[seconds] * 120))
    at = next(number for number, line in enumerate(lines) if line.startswith(f" behind, {unit}"))
    assert lines[at + 1].split()[0] == top


def test_a_topic_has_its_traffic_and_the_lag_of_its_worst_group() -> None:
    course = of(*[7.0] * 120, records_in=(100.0,) * 120, records_out=(50.0,) * 120)
    lines = drawn(course, topic="invoice", groups=("billing", "reporting"))
    assert "↑ in" in lines[1] and "↓ out" in lines[1]
    assert any("lag of the worst group" in line and "behind" in line for line in lines)
    assert not any("lag" in line for line in drawn(course, topic="invoice", groups=()))


def test_without_a_recording_there_is_the_last_minute_and_it_says_why() -> None:
    lines = drawn(Course())
    assert lines[0].endswith("| no recording: only the last minute  ") and any(
        "−1 m" in line for line in lines
    )
    assert any("█" in line for line in lines[1:])
    assert "reading the recording" in "\n".join(drawn(None))


def shown_reach(app: KviewApp) -> str:
    """The reach in brackets."""
    return text(app).partition("LAG of")[2].partition("[")[2].partition("]")[0]


def recorded(timeline: FakeTimeline, hours: int) -> Callable[[CourseOf], Course]:
    """A timeline that answers with a lag that grew over these hours."""

    def answer(asked: CourseOf) -> Course:
        span_ms = hours * HOUR_MS if asked.span_ms == UNKNOWN else asked.span_ms
        step_ms = span_ms // 100
        lag = tuple(float(at) for at in range(100))
        return Course(asked.until_ms - span_ms, step_ms, lag, lag, lag, lag, None, ENDED_MS - hours * HOUR_MS)

    timeline.course_of = answer
    return answer


@running
async def test_a_key_goes_back_as_far_as_the_recording_and_begins_again() -> None:
    timeline = FakeTimeline()
    recorded(timeline, 2)
    async with dashboard(state(HEALTHY), size=(120, 40), timeline=timeline) as (app, pilot):
        await press(pilot, GROUP)
        await until(pilot, lambda: shown_reach(app) == "10 m", "the usual reach")
        assert "MEMBERS" in text(app) and "LOG-END-OFFSET" in text(app), "the lists keep their place"
        for reach, span_ms in (("1 h", HOUR_MS), ("all 2 h", UNKNOWN), ("1 m", 60_000)):
            await press(pilot, ["w"])
            await until(pilot, lambda reach=reach: shown_reach(app) == reach, reach)  # type: ignore[misc]
            assert timeline.courses_asked[-1] == CourseOf("", ("billing",), span_ms, ENDED_MS)


@running
async def test_a_small_screen_has_the_plots_in_place_of_the_lists() -> None:
    timeline = FakeTimeline()
    recorded(timeline, 1)
    async with dashboard(state(HEALTHY), size=(80, 24), timeline=timeline) as (app, pilot):
        await press(pilot, GROUP)
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
        assert "LAG of" not in text(app) and not timeline.courses_asked, "nothing is read that has no room"
        await press(pilot, ["w"])
        await until(pilot, lambda: shown_reach(app) == "1 m", "the plots, the shortest first")
        assert "MEMBERS" not in text(app) and "behind, " in text(app)
        await press(pilot, ["w", "w"])
        await until(pilot, lambda: shown_reach(app) == "all 1 h", "the longest")
        await press(pilot, ["w"])
        await until(pilot, lambda: "MEMBERS" in text(app), "after the longest reach, the lists")
        await press(pilot, ["down", "enter"])
        await until(pilot, lambda: not isinstance(app.screen, GroupScreen), "the list has the focus again")


@running
async def test_the_tab_of_a_topic_asks_for_its_groups_and_its_key_follows_no_topic() -> None:
    timeline = FakeTimeline()
    recorded(timeline, 2)
    async with dashboard(state(CRASH), size=(120, 40), timeline=timeline) as (app, pilot):
        await press(pilot, TOPIC)
        await until(pilot, lambda: "[10 m]" in text(app), "the plots")
        assert timeline.courses_asked[-1].topic == "invoice"
        assert sorted(timeline.courses_asked[-1].groups) == ["billing", "reporting"]
        await press(pilot, ["w"])
        await until(pilot, lambda: "[1 h]" in text(app), "the next reach")
        assert not app.screen.query_one(RecordsPanel).display


def eventful(asked: CourseOf) -> Course:
    """A day with a wave, a peak, a gap, and traffic."""
    wave = [1_000 + 800 * math.sin(at / 9) for at in range(100)]
    lag = tuple(
        math.nan if 40 <= at < 55 else value * (30 if at == 70 else 1) for at, value in enumerate(wave)
    )
    peak = Peak(round(lag[70]), False, asked.groups[0], ENDED_MS - 30 * HOUR_MS // 5)
    behind_s = tuple(value / 20 for value in lag)
    rates = lag if asked.topic else ()
    from_ms, step_ms = asked.until_ms - 20 * HOUR_MS, HOUR_MS // 5
    return Course(from_ms, step_ms, lag, behind_s, rates, rates, peak, from_ms)


@pytest.mark.parametrize(("name", "keys"), [("group", GROUP), ("topic", TOPIC)])
def test_the_golden_screens(name: str, keys: list[str], request: pytest.FixtureRequest) -> None:
    async def walk() -> None:
        timeline = FakeTimeline()
        timeline.course_of = eventful
        view = state(HEALTHY)
        mark = TimeMark(ENDED_MS - 9 * HOUR_MS, UNKNOWN, ENDED_MS - 8 * HOUR_MS, UNKNOWN)
        view = replace(view, moment=replace(view.moment, marks=(mark,)))
        async with dashboard(view, size=(120, 40), timeline=timeline) as (app, pilot):
            await press(pilot, keys)
            await until(pilot, lambda: "[10 m]" in text(app), "the usual reach")
            for reach in ("[1 h]", "[6 h]", "[all 20 h]"):
                await press(pilot, ["w"])
                await until(pilot, lambda reach=reach: reach in text(app), reach)  # type: ignore[misc]
            update = bool(request.config.getoption("--update-golden"))
            agrees(f"{name}-over-time-120x40", drawn_text(app), update)

    run(walk())


@running
async def test_a_jump_just_after_a_reading_is_read_when_it_is_time_to() -> None:
    timeline, wall = FakeTimeline(), FakeClock(ENDED_MS)
    recorded(timeline, 2)
    async with dashboard(state(HEALTHY), size=(120, 40), timeline=timeline, wall_ms=wall) as (app, pilot):
        await press(pilot, GROUP)
        await until(pilot, lambda: shown_reach(app) == "10 m", "the plots")
        wall.now_ms += LEAST_MS - 20
        before, crash = len(timeline.courses_asked), state(CRASH)
        app.session.feed.show(crash)  # type: ignore[attr-defined]
        await until(pilot, lambda: "silent" in text(app), "the other moment")
        assert len(timeline.courses_asked) == before, "so soon, nothing is read"
        wall.now_ms += LEAST_MS
        await until(pilot, lambda: len(timeline.courses_asked) > before, "no other view comes")
        assert timeline.courses_asked[-1].until_ms == crash.snapshot.observation.ended_ms


@running
async def test_what_could_not_be_read_is_said_and_tried_again() -> None:
    timeline = FakeTimeline()
    answer = recorded(timeline, 2)
    works, wall = False, FakeClock(ENDED_MS)
    timeline.course_of = lambda asked: None if asked.span_ms == HOUR_MS and not works else answer(asked)
    async with dashboard(state(HEALTHY), size=(120, 40), timeline=timeline, wall_ms=wall) as (app, pilot):
        await press(pilot, GROUP)
        await until(pilot, lambda: shown_reach(app) == "10 m", "the plots")
        await press(pilot, ["w"])
        await until(pilot, lambda: "the recording could not be read" in text(app), "the failure")
        works = True
        wall.now_ms += LEAST_MS
        await until(
            pilot, lambda: "highest of each" in text(app), "no other view comes, and it is tried again"
        )


@running
async def test_groups_stay_while_others_become_the_worst_and_new_ones_are_added() -> None:
    timeline, wall = FakeTimeline(), FakeClock(ENDED_MS)
    recorded(timeline, 2)
    few, many = crowd(10, 3, 1), crowd(130, 30, 1)
    others = replace(many, groups=replace(many.groups, place=many.groups.place[::-1].copy()))
    async with dashboard(few, size=(120, 40), timeline=timeline, wall_ms=wall) as (app, pilot):
        await press(pilot, ["colon", *str(few.snapshot.offsets.topic[0]), "enter", "left"])
        await until(pilot, lambda: "−10 m" in text(app), "the plots")
        first = timeline.courses_asked[-1].groups
        assert sorted(first) == sorted(few.snapshot.groups.group.tolist())
        wall.now_ms += LEAST_MS
        timeline.course_of = lambda asked: None
        app.session.feed.show(many)  # type: ignore[attr-defined]
        await until(pilot, lambda: len(timeline.courses_asked[-1].groups) > len(first), "the new ones")
        groups = timeline.courses_asked[-1].groups
        assert groups[: len(first)] == first and len(set(groups)) == len(groups) == MOST_GROUPS
        assert "highest of each" in text(app), "what was read before stays"
        wall.now_ms += LEAST_MS
        count = len(timeline.courses_asked)
        app.session.feed.show(others)  # type: ignore[attr-defined]
        await until(pilot, lambda: len(timeline.courses_asked) > count, "the next question")
        assert timeline.courses_asked[-1].groups == groups and "highest of each" in text(app)


def test_the_first_moment_of_a_topic_has_no_length_and_a_bound_is_said() -> None:
    nothing = of(math.nan, since_ms=ENDED_MS, records_in=(math.nan,), records_out=(math.nan,))
    assert "[all] w" in drawn(nothing, topic="invoice")[0]
    exact, bound = (drawn(of(*[200.0] * 120, behind_is_bound=each)) for each in (False, True))
    assert any(" behind, minutes" in line for line in exact)
    assert any(" behind, ≥ minutes" in line for line in bound)
