"""The Events screen, and an incident's own screen."""

import pytest
from msgspec.structs import replace

from kview.derive.headline import UNCLEAN_STAYS_MS
from kview.derive.view import View
from kview.model.incidents import Incident
from kview.tui.options import Options
from kview.tui.rows.incidents import HitRows
from kview.tui.rows.lanes import lane_lines, lanes, left_out
from kview.tui.text import content
from tests.derive.test_elections import unclean_run
from tests.tui.harness import (
    BACK,
    FENCED,
    HEALTHY,
    FakeTimeline,
    dashboard,
    lines,
    press,
    running,
    script,
    state,
    text,
    until,
)
from tests.worlds import default_world, views


@running
async def test_the_events_screen_has_lanes_incidents_and_events() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        await press(pilot, ["7"])
        shown = await until(pilot, lambda: text(app) if "EVENTS" in text(app) else "", "the screen")
        lane = next(one for one in shown.splitlines() if one.startswith("  broker 4"))
        assert lane.count("✕") > 5 and lane.rstrip().endswith("◌")
        assert "✕" not in next(one for one in shown.splitlines() if one.startswith("  broker 3"))
        assert "▮" in next(one for one in shown.splitlines() if one.startswith("  partitions"))
        row = next(one for one in shown.splitlines() if one.startswith("▸") and "broker 4 silent" in one)
        assert " 12 " in row and "1 partition without a leader" in row
        events = shown[shown.index("EVENTS") :].splitlines()
        assert "watermark advanced again" in events[1] and "stopped answering" in events[8]


def test_brokers_in_trouble_without_a_lane_are_named() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(3)]
    for broker in range(4):
        world.crash(broker)
    snapshots += [world.tick() for _ in range(8)]
    *_, last = views(snapshots)
    assert [lane.name for lane in lanes(last, 3).shown] == ["broker 0", "controllers", "partitions"]
    assert content(left_out(lanes(last, 3))) == "✕ no room for brokers 1, 2, 3"
    assert content(left_out(lanes(last, 5))) == "✕ no room for broker 3"
    assert left_out(lanes(last, 6)) == ()
    world.back(0)
    *_, later = views([*snapshots, *(world.tick() for _ in range(16))])
    fewer = lanes(later, 5)
    assert [lane.name for lane in fewer.shown][:3] == ["broker 1", "broker 2", "broker 3"], "trouble first"


def test_the_lane_of_partitions_shows_how_long_some_had_no_leader() -> None:
    """Broker 4 alone has audit-log-3: no leader from second 69, when it is fenced, to 90, when it is back."""

    def lane(view: View) -> str:
        now_ms = view.snapshot.observation.ended_ms
        _, drawn = lane_lines(view, now_ms, None, 15 + 61, 20)
        text = next("".join(span.text for span in one) for one in drawn if "partitions" in one[0].text)
        return text.rstrip()[-60:]

    going = lane(script()[80])
    assert going.endswith("✕" * 10) and going.count("▮") == 9
    over = lane(script()[95])
    assert 18 <= over.count("✕") <= 22 and over.endswith("───")
    assert over.index("▮") < over.index("✕")
    unseen = replace(script()[80], events=tuple(e for e in script()[80].events if "lost" not in e.kind))
    assert lane(unseen).endswith("✕" * 10), "also if it was lost before the first event that is kept"


@running
async def test_nothing_of_an_incident_is_cut_on_a_small_screen() -> None:
    async with dashboard(state(FENCED), size=(80, 24)) as (app, pilot):
        await press(pilot, ["7"])
        row = await until(
            pilot, lambda: next((one for one in lines(app) if "broker 4 silent" in one), ""), "the incident"
        )
        assert row.rstrip().endswith("✕ 1 partition without a leader") and " 10 s " in row


@running
async def test_the_filter_narrows_the_events() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        await press(pilot, ["7", "slash", *"fenced", "enter"])
        await until(pilot, lambda: "watermark advanced" not in text(app), "fewer events")
        assert "broker 4 was fenced" in text(app)
        assert "EVENTS newest first /fenced" in text(app)


@running
async def test_enter_on_an_incident_shows_it_and_v_goes_there() -> None:
    timeline = FakeTimeline()
    view = state(BACK)
    (incident,) = view.incidents
    async with dashboard(view, timeline=timeline) as (app, pilot):
        await press(pilot, ["7", "enter"])
        shown = await until(pilot, lambda: text(app) if "PARTITIONS HIT" in text(app) else "", "the incident")
        moved = "invoice-3, -9, payment-3 → broker 2"
        for said in ("+9.1 s", "all replicas in sync after", moved, "≥ 12 records"):
            assert said in shown
        assert "producers waited ≤ 31 s" in shown and "billing, fraud-check, reporting" in shown
        assert "4·5 → 2·6" in shown and "4 2 5 → 2 5" in shown
        assert "INCIDENT " not in shown, "what the screen is about is not said twice"
        await press(pilot, ["v"])
        assert timeline.asked == [("seek", incident.seen_ms)]
        first = next(one for one in script() if one.incidents)
        assert incident.seen_ms == first.snapshot.observation.ended_ms > incident.began_ms
        assert "going to 08:54:20.1: the incident is first seen here" in text(app)
        await press(pilot, ["down", "enter"])
        await until(pilot, lambda: "log start" in text(app), "the topic of the partition")
        await press(pilot, ["escape", "escape"])
        await until(pilot, lambda: "INCIDENTS" in text(app), "back")


@running
async def test_enter_on_an_event_goes_to_what_it_names_or_to_its_moment() -> None:
    timeline = FakeTimeline()
    async with dashboard(state(FENCED), timeline=timeline) as (app, pilot):
        await press(pilot, ["7", "tab", "enter"])
        assert timeline.asked == [("seek", state(FENCED).events[-1].shown_ms)], "a freeze of many partitions"
        await press(pilot, ["down", "down", "enter"])
        await until(pilot, lambda: "REPLICAS" in text(app), "the broker that left the ISR")


@running
async def test_without_a_recording_it_says_so() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        await press(pilot, ["7", "v"])
        await until(pilot, lambda: "no recording" in text(app), "the message")


@running
async def test_a_moment_before_the_incident_says_that_it_is_not_known_there() -> None:
    async with dashboard(state(BACK)) as (app, pilot):
        await press(pilot, ["7", "enter"])
        await until(pilot, lambda: "PARTITIONS HIT" in text(app), "the incident")
        app.session.feed.show(state(HEALTHY))  # type: ignore[attr-defined]
        await until(pilot, lambda: "not known at the moment shown" in text(app), "the sentence")


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["\x1b[31mred\x07", "x" * 249, "漢字" * 60, "", "a\nb\tc"])
@running
async def test_names_of_any_kind_break_nothing(name: str) -> None:
    view = with_names(state(FENCED), name)
    for size in ((60, 15), (120, 40)):
        async with dashboard(view, size=size) as (app, pilot):
            await press(pilot, ["7", "enter"])
            await until(pilot, lambda app=app: "PARTITIONS HIT" in text(app), "the incident")  # type: ignore[misc]
            assert "could not be drawn" not in text(app) and "\x1b" not in text(app)


def with_names(view: View, name: str) -> View:
    """The view whose incidents name topics and groups like that."""

    def renamed(incident: Incident) -> Incident:
        hit = tuple(replace(one, topic=name) for one in incident.hit)
        return replace(incident, hit=hit, groups=(name,) * 3)

    return replace(view, incidents=tuple(map(renamed, view.incidents)))


def test_internal_partitions_are_listed_on_demand() -> None:
    (incident,) = state(FENCED).incidents
    assert len(HitRows(incident, Options())) == 10
    assert len(HitRows(incident, Options(internal=True))) == 35


@running
async def test_an_unclean_election_stays_in_the_headline_until_its_incident_is_opened() -> None:
    seen = [view for _, view in unclean_run(260, interval_ms=5_000)]
    late, later = seen[-2:]
    age_ms = later.snapshot.observation.ended_ms - int(later.unclean.at_ms[0])
    assert age_ms > UNCLEAN_STAYS_MS
    async with dashboard(late) as (app, pilot):
        assert "unclean election" in lines(app)[1]
        await press(pilot, ["7"])
        assert "unclean election" in lines(app)[1], "the list names it, but does not open it"
        await press(pilot, ["enter"])
        await until(pilot, lambda: "unclean election" not in lines(app)[1], "it was opened")
        app.session.feed.show(later)  # type: ignore[attr-defined]
        await press(pilot, ["escape", "1"])
        assert "unclean election" not in text(app)
