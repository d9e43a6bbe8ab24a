"""The incident strip, the Events screen, and an incident's own screen."""

import pytest
from msgspec.structs import replace

from kview.derive.headline import UNCLEAN_STAYS_MS
from kview.derive.view import View
from kview.model.incidents import Incident
from kview.tui.layout import MIN_WIDTH
from kview.tui.options import Options
from kview.tui.rows.incidents import HitRows
from kview.tui.rows.lanes import lane_lines, lanes
from kview.tui.widgets.incident_strip import SHOWN_AFTER_MS, shown_incidents, strip_lines
from kview.tui.widgets.table import Table
from tests.derive.test_elections import unclean_run
from tests.tui.harness import (
    BACK,
    CRASH,
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
from tests.tui.moments import paused
from tests.worlds import default_world, views

SIZES = [(60, 15), (80, 24), (120, 40), (200, 50)]


def strip(app: object) -> list[str]:
    """The strip's lines."""
    shown = lines(app)  # type: ignore[arg-type]
    at = next((n for n, one in enumerate(shown) if one.startswith(" INCIDENT")), None)
    return [] if at is None else shown[at : at + 2]


@running
async def test_it_takes_no_row_while_nothing_is_going_on() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        before = [one for one in lines(app) if "PARTITIONS" in one]
        rows = app.screen.query_one("#partitions", Table).size.height
        assert strip(app) == [] and before
        app.session.feed.show(state(CRASH))  # type: ignore[attr-defined]
        await until(pilot, lambda: strip(app), "the strip")
        assert app.screen.query_one("#partitions", Table).size.height == rows - 2
        first, second = strip(app)
        assert "broker 4 silent" in first and "frozen" in first and "waiting for fencing" in first
        assert "Esc hide" in first
        assert "acks=all producers waiting ≤ 4.1 s" in second


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [CRASH, FENCED, BACK])
@running
async def test_it_fits_every_size_on_every_screen(size: tuple[int, int], name: str) -> None:
    async with dashboard(state(name), size=size) as (app, pilot):
        for keys in ([], ["2"], ["5"], ["6"], ["7"]):
            await press(pilot, keys)
            assert strip(app), keys
            assert all(len(one) <= size[0] for one in lines(app))
            second = strip(app)[1]
            assert ("→ broker" in second or "producers" in second or "leader" in second) == (size[1] >= 28)


@running
async def test_escape_leaves_a_screen_before_it_hides_the_strip_and_then_the_moment() -> None:
    timeline = FakeTimeline()
    async with dashboard(paused(FENCED), timeline=timeline) as (app, pilot):
        await press(pilot, ["5", "enter"])
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
        assert "Esc hide" not in strip(app)[0]
        await press(pilot, ["escape"])
        assert "Esc hide" in strip(app)[0]
        await press(pilot, ["escape"])
        assert strip(app) == [] and timeline.asked == []
        await press(pilot, ["1"])
        assert strip(app) == [], "hidden on every screen"
        await press(pilot, ["escape"])
        assert timeline.asked == [("live",)]


def test_what_has_ended_stays_for_two_minutes_and_never_hides_what_goes_on() -> None:
    view = state(BACK)
    (over,) = view.incidents
    assert shown_incidents(view, over.ended_ms + SHOWN_AFTER_MS - 1, set()) == [over]
    assert shown_incidents(view, over.ended_ms + SHOWN_AFTER_MS, set()) == []
    (going,) = state(CRASH).incidents
    both = replace(view, incidents=(replace(going, began_ms=over.began_ms - 1), over))
    assert shown_incidents(both, over.ended_ms, set())[0].is_open
    assert shown_incidents(both, over.ended_ms, {over.key})[0].is_open


def test_a_narrow_strip_keeps_what_it_began_with_and_what_comes_next() -> None:
    (incident,) = state(FENCED).incidents
    for cells in range(MIN_WIDTH, 200):
        (made,) = strip_lines([incident], incident.began_ms + 10_000, "Esc hide", cells, 1)
        shown = "".join(span.text for span in made)
        assert "broker 4 silent" in shown and "leader" in shown and "+10 s" in shown, cells
        assert len(shown) <= cells


def test_a_narrow_strip_does_not_cut_a_time() -> None:
    (incident,) = state(FENCED).incidents
    first = replace(incident.phases[0], last_ms=incident.began_ms + 9_000)
    late = replace(incident, brokers=(1, 2, 3, 4), gone=2_850, phases=(first, *incident.phases[1:]))
    for cells in range(80, 200):
        (made,) = strip_lines([late], incident.began_ms + 31_000, "Esc hide", cells, 1)
        shown = "".join(span.text for span in made)
        assert "brokers 1, 2, 3 and 4 silent" in shown and (" by" not in shown or "by +9.0 s" in shown), shown


def test_what_a_strip_leaves_out_is_marked() -> None:
    (incident,) = state(FENCED).incidents

    def shown(cells: int) -> list[str]:
        made = strip_lines([incident], incident.began_ms + 10_000, "", cells, 2)
        return ["".join(span.text for span in one).rstrip() for one in made]

    (whole, all_of_it), (first, second) = shown(300), shown(80)
    assert "▸ … ▸" not in whole and not all_of_it.endswith("…")
    assert "▸ … ▸ 1 leaderless" in first, "a stage that has no room"
    assert second.endswith(" · …") and len(second) <= 80


def test_a_strip_of_one_line_says_how_many_records_are_gone() -> None:
    (incident,) = state(FENCED).incidents
    for gone, said in ((0, ""), (2_850, "records gone ≥ 2,850")):
        one = replace(incident, gone=gone)
        (made,) = strip_lines([one], incident.began_ms + 10_000, "", 80, 1)
        shown = "".join(span.text for span in made)
        assert (said in shown) if said else ("gone" not in shown), shown


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


def test_lanes_of_brokers_that_do_not_fit_are_counted() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(3)]
    for broker in range(4):
        world.crash(broker)
    *_, last = views([*snapshots, *(world.tick() for _ in range(8))])
    assert [lane.name for lane in lanes(last, 3)] == ["broker 0, +3 more", "controllers", "partitions"]
    assert [lane.name for lane in lanes(last, 5)][:3] == ["broker 0", "broker 1", "broker 2, +1 more"]
    assert not any("more" in lane.name for lane in lanes(last, 6))


def test_the_lane_of_partitions_shows_how_long_some_had_no_leader() -> None:
    """Broker 4 alone has audit-log-3: no leader from second 69, when it is fenced, to 90, when it is back."""

    def lane(view: View) -> str:
        now_ms = view.snapshot.observation.ended_ms
        drawn = lane_lines(view, now_ms, None, 15 + 61, 20)
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
        assert "unclean election on 1 partition of invoice" in lines(app)[1]
        await press(pilot, ["7"])
        assert "unclean election" in lines(app)[1], "the list names it, but does not open it"
        await press(pilot, ["enter"])
        await until(pilot, lambda: "unclean election" not in lines(app)[1], "it was opened")
        app.session.feed.show(later)  # type: ignore[attr-defined]
        await press(pilot, ["escape", "1"])
        assert "unclean election" not in text(app)
