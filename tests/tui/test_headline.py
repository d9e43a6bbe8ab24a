"""The second line: the worst in a few words, the countdown and the stopwatch, and all of it in sentences."""

import re
from itertools import chain

import pytest
from msgspec.structs import replace

from kview.derive.view import View
from kview.language.briefs import brief
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.incidents import Incident
from kview.model.units import UNKNOWN
from kview.tui.text import Role, content, line_width
from kview.tui.widgets.headline import shown_incidents, state_line
from kview.tui.widgets.table import Table
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
    state,
    text,
    until,
)
from tests.tui.many import lost_controller
from tests.tui.moments import paused
from tests.worlds import default_world, views

SIZES = [(60, 15), (80, 24), (120, 40), (200, 50)]
UNITS = frozenset(("req", "k", "s", "ms", "m", "h", "d", "M", "G"))
MOST_WORDS = 20


def said(view: View, cells: int, opened: frozenset[object] = frozenset()) -> str:
    """The line of a view, as of its observation."""
    shown = shown_incidents(view, opened)
    made = state_line(view, shown, view.snapshot.observation.ended_ms, cells)
    assert line_width(made) == cells
    return content(made).strip()


def test_a_crash_is_a_badge_a_countdown_figures_and_a_stopwatch() -> None:
    assert said(state(CRASH), 120) == (
        "✕ broker 4 silent 3.1 s   fenced in ━━━━── ≈ 5.8 s  4 partitions down · 6 frozen · 2 groups blocked"
        " · 2 more   +3.1 s"
    )
    view = state(CRASH)
    made = state_line(view, shown_incidents(view, ()), view.snapshot.observation.ended_ms, 120)
    solid = [span.text for span in made if span.role is Role.ALERT]
    assert solid == [" ✕ broker 4 silent 3.1 s "], "one solid badge"


def test_what_is_well_is_said_in_three_figures() -> None:
    (view,) = views([default_world().tick()])
    well = replace(view.headline.well[0], kind=FindingKind.ALL_WELL, groups=4)
    healthy = replace(view, headline=replace(view.headline, findings=(well,)))
    assert said(healthy, 120) == "● WELL  20 partitions in sync · 4 groups keep up"
    hidden = replace(healthy, headline=replace(healthy.headline, topics_are_bound=True))
    assert said(hidden, 120).startswith("● WELL  ≥20 partitions in sync")


def test_a_cluster_that_is_well_is_no_badge_over_a_group_in_trouble() -> None:
    assert re.fullmatch(
        r"▲ audit-export stopped  ≥\d m \d+ s behind  ● cluster healthy", said(state(HEALTHY), 120)
    )


@pytest.mark.parametrize("name", [HEALTHY, CRASH, FENCED, BACK])
def test_at_every_width_the_worst_comes_first_and_what_has_no_room_is_counted(name: str) -> None:
    view = state(name)
    whole = said(view, 300)
    worst = re.split(r"  ", whole)[0]
    for cells in range(60, 300, 7):
        shown = said(view, cells)
        assert shown.startswith(worst), shown
        assert shown.count("…") == 0, shown
        if view.incidents and view.incidents[-1].is_open:
            assert shown.endswith(whole.split()[-1]) and shown.endswith(" s"), "the stopwatch"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [HEALTHY, CRASH, FENCED, BACK])
@running
async def test_the_head_has_two_lines_and_at_most_twenty_words(name: str, size: tuple[int, int]) -> None:
    async with dashboard(state(name), size=size) as (app, _):
        first, second, third = lines(app)[:3]
        assert first.startswith(" kview ▸") and (set(third) <= {"─", " "} or re.search("BROKERS|RACK", third))
        words = [word for word in re.findall(r"[A-Za-z][\w-]*", f"{first} {second}") if word not in UNITS]
        assert len(words) <= MOST_WORDS, words


def findings() -> list[Finding]:
    """A finding of every kind, with everything that a kind may be about."""
    return [
        Finding(
            kind, Severity.RISK, brokers=(3, 4), controllers=(101,), paths=("/var/lib/kafka",),
            topics=("invoice",), group="billing", groups=2, verdict="stopped", behind_ms=90_000,
            connector="orders-sink", task=0, partitions=3, internal_partitions=25, count=1, rate_before=900,
            rate=3, since_ms=1_000, due_ms=9_000,
        )
        for kind in FindingKind
    ]  # fmt: skip


@pytest.mark.parametrize("finding", findings(), ids=lambda finding: finding.kind.value)
def test_every_finding_is_said_in_a_few_words(finding: Finding) -> None:
    parts = brief(finding, 5_000)
    assert all(parts) and len(parts) <= 2
    for part in parts:
        assert len(part.split()) <= 8 and len(part) <= 44 and "(+25" not in part, part
    alone = brief(replace(finding, since_ms=UNKNOWN, behind_ms=UNKNOWN), 5_000)
    assert not re.search(r"-\d", " ".join(alone)), alone


def test_partitions_of_internal_topics_count_only_if_they_alone_are_wrong() -> None:
    frozen = Finding(FindingKind.WATERMARK_FROZEN, Severity.RISK, partitions=6, internal_partitions=25)
    assert brief(frozen, 0, has_noun=False) == ["6 frozen"]
    assert brief(frozen, 0) == ["6 partitions frozen"]
    assert brief(replace(frozen, partitions=0), 0, has_noun=False) == ["25 internal frozen"]
    assert brief(replace(frozen, partitions=0), 0) == ["25 internal partitions frozen"]
    assert brief(replace(frozen, partitions=1), 0) == ["1 partition frozen"]


@running
async def test_no_panel_moves_in_a_crash_and_the_stopwatch_stays_until_the_incident_was_opened() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        heads = [at for at, one in enumerate(lines(app)) if re.search("RACK|PARTITIONS|EVENTS", one)]
        for name in (CRASH, FENCED, BACK):
            app.session.feed.show(state(name))  # type: ignore[attr-defined]
            await until(pilot, lambda name=name: app.view is not None and same(app.view, name), name)  # type: ignore[misc]
            now = [at for at, one in enumerate(lines(app)) if re.search("RACK|PARTITIONS|EVENTS", one)]
            assert now == heads
        assert re.search(r"● incident over after \d+ s $", lines(app)[1]), lines(app)[1]
        await press(pilot, ["escape"])
        assert "over" in lines(app)[1], "Escape hides nothing"
        await press(pilot, ["exclamation_mark"])
        await until(pilot, lambda: "WHAT IS WRONG" in text(app), "the sentences")
        await press(pilot, ["escape"])
        await until(pilot, lambda: "over" not in lines(app)[1], "it has been opened")


def same(view: View, name: str) -> bool:
    """Whether it is the view of that name."""
    return view.snapshot.observation.sequence == state(name).snapshot.observation.sequence


@running
async def test_what_is_wrong_is_said_in_whole_sentences_with_the_stages_of_the_incident() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        await press(pilot, ["exclamation_mark"])
        shown = await until(pilot, lambda: text(app) if "WHAT IS WRONG" in text(app) else "", "the screen")
        assert "no leader" in shown and "under-replicated" in shown
        assert re.search(r"\+[\d.]+ s +fenced", shown) and "acks=all producers waiting" in shown
        table = app.screen.query_one("#wrong", Table)
        assert table.selected in table.rows.closed, "a finding has nothing to open"
        await press(pilot, ["end", "enter"])
        await until(pilot, lambda: "PARTITIONS HIT" in text(app), "the incident")


@running
async def test_an_open_incident_counts_down_and_a_calm_head_is_not_drawn_for_tenths() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        before = lines(app)[1]
        app.clock_ms.now_ms += 200  # type: ignore[attr-defined]
        await until(pilot, lambda: lines(app)[1] != before, "the next tenth")
        app.session.feed.show(state(HEALTHY))  # type: ignore[attr-defined]
        await until(pilot, lambda: app.view is not None and same(app.view, HEALTHY), "health")
        assert not any(panel.is_ticking for panel in app.screen._all_drawn)  # type: ignore[attr-defined]


@running
async def test_another_moment_has_its_bar_and_the_stopwatch() -> None:
    timeline = FakeTimeline()
    async with dashboard(paused(FENCED), timeline=timeline) as (app, pilot):
        assert re.search(r"❚❚ .*├.*┤ live .*\+\d+ s $", lines(app)[1]), lines(app)[1]
        await press(pilot, ["escape"])
        assert timeline.asked == [("live",)], "there is no strip to hide first"


def test_an_incident_that_goes_on_comes_before_one_that_is_over() -> None:
    view = state(BACK)
    (over,) = view.incidents
    assert shown_incidents(view, ()) == [over] and shown_incidents(view, {over.key}) == []
    (going,) = state(CRASH).incidents
    both = replace(view, incidents=(replace(going, began_ms=over.began_ms - 1), over))
    assert shown_incidents(both, ())[0].is_open
    assert said(both, 120).endswith("· 1 other")
    assert [one.is_open for one in shown_incidents(both, {over.key, *keys(both.incidents)})] == [True]


def keys(incidents: tuple[Incident, ...]) -> set[object]:
    return {incident.key for incident in incidents}


def test_records_that_are_gone_are_said_while_no_finding_says_so() -> None:
    view = state(CRASH)
    (going,) = view.incidents
    lossy = replace(view, incidents=(replace(going, gone=2_850),))
    assert "records gone ≥ 2,850" in said(lossy, 160)
    assert "gone" not in said(view, 160)


def test_a_lost_controller_is_named() -> None:
    assert said(lost_controller(), 120).startswith("▲ controller 103 lost  audit-export stopped")


def test_briefs_name_no_more_than_one_line_can_hold() -> None:
    many = Finding(FindingKind.BROKERS_SILENT, Severity.RISK, brokers=tuple(range(30)), since_ms=0)
    assert brief(many, 5_000) == ["30 brokers silent 5.0 s"]
    long = Finding(
        FindingKind.GROUPS_TROUBLED, Severity.WARN, group="g" * 40, groups=1, verdict="stuck", count=1
    )
    view = state(HEALTHY)
    shown = replace(view, headline=replace(view.headline, findings=(long,)))
    assert said(shown, 60).startswith("▲ " + "g" * 40 + " stuck")
    assert list(chain(brief(long, 0))) == ["g" * 40 + " stuck"]
