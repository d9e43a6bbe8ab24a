"""The first line: the badge never claims more than was answered, and what matters most stays longest."""

from datetime import UTC

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.brokers.silence import overdue
from kview.derive.view import View
from kview.language.findings import sentences
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.text import Role, content, line_width
from kview.tui.widgets.header import SourceInfo, badge, header_line
from tests.tui.harness import (
    BACK,
    CRASH,
    HEALTHY,
    FakeFeed,
    dashboard,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.textual_internals import drawn_strips
from tests.worlds import default_world, views


def now_of(view: View) -> int:
    return view.snapshot.observation.ended_ms + 300


SOURCE = SourceInfo("simulated")


def said(view: View, later_ms: int = 0, source: SourceInfo = SOURCE) -> str:
    return content(badge(view, source, now_of(view) + later_ms)).strip()


def texts(view: View) -> list[str]:
    return list(sentences(view.headline.findings, now_of(view)))


def header(view: View, cells: int, label: str = "simulated") -> str:
    now_ms = now_of(view)
    made = header_line(view, SourceInfo(label), False, now_ms, now_ms, UTC, cells)
    assert line_width(made) == cells
    return content(made)


def test_a_badge_is_green_only_if_every_broker_answers() -> None:
    assert said(state(HEALTHY)) == "● 6 of 6 answer"
    assert said(state(CRASH)) == "▲ 5 of 6 answer"
    assert said(state(BACK)) == "● 6 of 6 answer"


def test_a_slow_broker_answers_even_while_it_owes_an_answer() -> None:
    view = state(HEALTHY)
    table, began_ms = view.snapshot.brokers, view.snapshot.observation.began_ms
    owing = replace(table, answers=np.zeros(len(table), np.bool_))

    def owes(answered_ms: int) -> View:
        """The view if every broker owes an answer, and gave the last one then."""
        brokers = replace(owing, answered_ms=np.full(len(table), answered_ms))
        *_, seen = views([replace(view.snapshot, brokers=brokers)])
        return seen

    slow = owes(began_ms + 1)
    assert said(slow) == "● 6 of 6 answer"
    assert not slow.brokers.late.any() and not any("owe" in text for text in texts(slow))
    quiet = owes(began_ms - 1)
    assert said(quiet) == "▲ 0 of 6 answer" and quiet.brokers.late.all()
    is_slow = replace(quiet.brokers, late=overdue(quiet.snapshot, np.full(len(table), began_ms - 30_000)))
    assert said(replace(quiet, brokers=is_slow)) == "● 6 of 6 answer", "the rows say `slow`"


def test_where_nobody_answers_a_badge_says_since_when() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(3)]
    for broker in range(6):
        world.crash(broker)
    snapshots += [world.tick() for _ in range(25)]
    *_, last = views(snapshots)
    assert said(last) == "✕ no answer for 25 s"
    assert "controller not known" in header(last, 160) and "controller 101" not in header(last, 160)
    assert said(state(HEALTHY), later_ms=24_700) == "✕ no new figures for 25 s", "no view has come since then"


def test_a_badge_is_not_green_over_figures_older_than_two_intervals() -> None:
    assert said(state(HEALTHY), later_ms=1_600) == "● 6 of 6 answer"
    assert said(state(HEALTHY), later_ms=2_600) == "▲ updated 2 s ago"
    assert said(state(HEALTHY), later_ms=2_800) == "✕ no new figures for 3 s"
    slow = SourceInfo("simulated", interval_ms=10_000)
    assert said(state(HEALTHY), later_ms=19_000, source=slow) == "● 6 of 6 answer"
    assert said(state(HEALTHY), later_ms=21_000, source=slow) == "▲ updated 21 s ago"
    assert said(state(CRASH), later_ms=2_600) == "▲ 5 of 6 answer"


def test_a_fenced_broker_that_is_dead_does_not_answer_and_a_dismissed_one_does_not_count() -> None:
    snapshot = default_world().tick()
    table = snapshot.brokers
    states = table.state.copy()
    states[5] = BrokerState.FENCED
    dead = replace(table, state=states, answers=np.arange(6) != 5)
    (view,) = views([replace(snapshot, brokers=dead)])
    assert said(view) == "▲ 5 of 6 answer"
    (view,) = views([replace(snapshot, brokers=dead.take(np.arange(5)))])
    assert said(view) == "● 5 of 5 answer"


def test_before_the_first_answer_there_is_no_age() -> None:
    snapshot = default_world().tick()
    nobody = replace(
        snapshot.brokers,
        state=np.array([BrokerState.SILENT] * 6, object),
        answers=np.zeros(6, np.bool_),
        answered_ms=np.full(6, UNKNOWN),
    )
    (view,) = views([replace(snapshot, brokers=nobody)])
    assert said(view) == "✕ no answer yet"


@pytest.mark.parametrize(
    ("cells", "there", "gone"),
    [
        (200, ("in ≥5.5 k/s ↓", "out ≥9.3 k/s", "controller 101 epoch 3", "req/s"), ()),
        (80, ("in ≥5.5 k/s", "out ≥9.3 k/s"), ("controller", "req/s")),
        (60, ("kview ▸ simulated", "in ≥5.5 k/s"), ("controller", "out")),
    ],
)
def test_what_matters_most_stays_longest(cells: int, there: tuple[str, ...], gone: tuple[str, ...]) -> None:
    drawn = header(state(CRASH), cells)
    assert drawn.rstrip().endswith("▲ 5 of 6 answer")
    assert [fact for fact in there if fact not in drawn] == []
    assert [fact for fact in gone if fact in drawn] == []


def test_a_long_name_of_the_cluster_leaves_room_for_the_traffic() -> None:
    label = ",".join(f"broker-{number}.kafka.example.com:9092" for number in range(4))
    for cells in (80, 120):
        drawn = header(state(CRASH), cells, label)
        assert "in ≥5.5 k/s" in drawn and drawn.rstrip().endswith("▲ 5 of 6 answer")


def test_a_cluster_in_production_says_so_at_every_width() -> None:
    view, source = state(CRASH), SourceInfo("prod-eu", production=True)
    for cells in range(60, 200, 11):
        made = header_line(view, source, False, now_of(view), now_of(view), UTC, cells)
        assert content(made).startswith(" PRODUCTION ▸ prod-eu") and line_width(made) == cells


@running
async def test_a_profile_gives_the_name_of_its_cluster_a_colour() -> None:
    source = SourceInfo("prod-eu", colour="#d08770")
    async with dashboard(state(HEALTHY), source=source) as (app, pilot):
        for theme in ("dark", "light"):
            app.colours.use(theme)
            assert app.palette.style(Role.CLUSTER).color.name == "#d08770"  # type: ignore[union-attr]
        await press(pilot, ["5"])
        (name,) = [each for each in drawn_strips(app.screen)[0] if each.text == "prod-eu"]
        assert name.style is not None and name.style.color is not None
        assert name.style.color.name == "#d08770"


def test_a_cluster_without_a_controller_says_so_in_the_header() -> None:
    view = state(HEALTHY)
    seen = replace(view.snapshot.observation, controller_id=NO_BROKER)
    alone = replace(view, snapshot=replace(view.snapshot, observation=seen))
    assert "no controller" in header(alone, 80)


@running
async def test_the_figures_of_a_cluster_that_does_not_answer_are_not_green_on_the_screen() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(state(CRASH))
        await until(pilot, lambda: "▲ 5 of 6 answer" in text(app), "a broker that does not answer")
        assert "seen" not in text(app).splitlines()[0]


def test_the_last_known_controller_is_not_called_active_while_none_answers() -> None:
    view = state(HEALTHY)
    silent = Finding(FindingKind.QUORUM_SILENT, Severity.RISK, since_ms=view.snapshot.observation.began_ms)
    untold = replace(view, headline=replace(view.headline, findings=(silent,)))
    assert "controller 101" in header(view, 120)
    assert "controller not known" in header(untold, 120) and "controller 101" not in header(untold, 120)
