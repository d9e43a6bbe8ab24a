"""The top lines: the badge never claims more than was answered, and what matters most stays longest."""

import re
from datetime import UTC
from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.brokers.silence import overdue
from kview.derive.view import View
from kview.language.findings import sentences
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.ports import Moment
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.text import content, line_width
from kview.tui.widgets.header import SourceInfo, badge, header_line, headline_lines
from tests.tui.harness import BACK, CRASH, FENCED, HEALTHY, FakeFeed, dashboard, running, state, text, until
from tests.worlds import default_world, views


def now_of(view: View) -> int:
    return view.snapshot.observation.ended_ms + 300


SOURCE = SourceInfo("simulated")


def said(view: View, later_ms: int = 0, source: SourceInfo = SOURCE) -> str:
    return content(badge(view, source.fresh_ms, source.late_ms, now_of(view) + later_ms)).strip()


def texts(view: View) -> list[str]:
    return list(sentences(view.headline.findings, now_of(view)))


def header(view: View, cells: int, label: str = "simulated") -> str:
    now_ms = now_of(view)
    made = header_line(view, SourceInfo(label), False, now_ms, now_ms, UTC, cells)
    assert line_width(made) == cells
    return content(made)


def test_a_badge_is_green_only_if_every_broker_answers() -> None:
    assert said(state(HEALTHY)) == "● updated 0.3 s ago"
    assert said(state(CRASH)) == "▲ 5 of 6 brokers answer"
    assert said(state(BACK)) == "● updated 0.3 s ago"


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
    assert said(slow) == "● updated 0.3 s ago" and "6 brokers" in header(slow, 160)
    assert not slow.brokers.late.any() and not any("owe" in text for text in texts(slow))
    quiet = owes(began_ms - 1)
    assert said(quiet) == "▲ 0 of 6 brokers answer" and quiet.brokers.late.all()
    is_slow = replace(quiet.brokers, late=overdue(quiet.snapshot, np.full(len(table), began_ms - 30_000)))
    assert said(replace(quiet, brokers=is_slow)) == "● updated 0.3 s ago", "the rows say `slow`"


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
    assert said(state(HEALTHY), later_ms=1_600) == "● updated 1.9 s ago"
    assert said(state(HEALTHY), later_ms=2_600) == "▲ updated 2.9 s ago"
    assert said(state(HEALTHY), later_ms=2_800) == "✕ no new figures for 3 s"
    slow = SourceInfo("simulated", interval_ms=10_000)
    assert said(state(HEALTHY), later_ms=19_000, source=slow) == "● updated 19 s ago"
    assert said(state(HEALTHY), later_ms=21_000, source=slow) == "▲ updated 21 s ago"
    assert said(state(CRASH), later_ms=2_600) == "▲ 5 of 6 brokers answer"


def test_a_fenced_broker_that_is_dead_does_not_answer_and_a_dismissed_one_does_not_count() -> None:
    snapshot = default_world().tick()
    table = snapshot.brokers
    states = table.state.copy()
    states[5] = BrokerState.FENCED
    dead = replace(table, state=states, answers=np.arange(6) != 5)
    (view,) = views([replace(snapshot, brokers=dead)])
    assert said(view) == "▲ 5 of 6 brokers answer"
    assert "6 brokers " in header(view, 120) and "brokers up" not in header(view, 120)
    (view,) = views([replace(snapshot, brokers=dead.take(np.arange(5)))])
    assert said(view) == "● updated 0.1 s ago" or said(view) == "● updated 0.3 s ago"
    assert "5 brokers " in header(view, 120)


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
        (
            200,
            ("6 brokers", "2 racks", "3 topics", "20 partitions", "controller 101 epoch 3", "req/s"),
            (),
        ),
        (120, ("6 brokers", "controller 101", "20 partitions", "3 topics", "req/s"), ("epoch",)),
        (80, ("6 brokers", "controller 101"), ("20 partitions", "3 topics", "racks")),
        (60, ("kview ▸ simulated", "6 brokers"), ("controller", "partitions")),
    ],
)
def test_what_matters_most_stays_longest(cells: int, there: tuple[str, ...], gone: tuple[str, ...]) -> None:
    drawn = header(state(CRASH), cells)
    assert drawn.rstrip().endswith("▲ 5 of 6 brokers answer")
    assert [fact for fact in there if fact not in drawn] == []
    assert [fact for fact in gone if fact in drawn] == []


def test_a_long_name_of_the_cluster_leaves_room_for_the_brokers() -> None:
    label = ",".join(f"broker-{number}.kafka.example.com:9092" for number in range(4))
    for cells in (80, 120):
        drawn = header(state(CRASH), cells, label)
        assert "6 brokers" in drawn and drawn.rstrip().endswith("▲ 5 of 6 brokers answer")


def test_how_many_brokers_are_up_is_said_once() -> None:
    assert "brokers up" not in header(state(CRASH), 200)
    then = replace(state(CRASH), moment=Moment(live=False))
    assert "5/6 brokers up" in header(then, 200), "a moment that is not live has no badge"


@pytest.mark.parametrize("name", [CRASH, FENCED, BACK])
def test_a_finding_is_shown_whole_or_counted(name: str) -> None:
    view = state(name)
    findings, now_ms = view.headline.findings, now_of(view)
    said = [*zip(sentences(findings, now_ms), sentences(findings, now_ms, terse=True), strict=True)]
    for cells, rows in product(range(60, 240, 3), (1, 2, 3)):
        drawn = headline_lines(findings, now_ms, cells, rows)
        assert len(drawn) <= rows and all(line_width(made) <= cells for made in drawn)
        rest, left = " ".join(" ".join(map(content, drawn)).split()), 0
        if counted := re.search(r" ·? ?(\d+) more findings?$", rest):
            rest, left = rest[: counted.start()], int(counted[1])
        if rest.endswith("…"):  # not even the first one fits
            assert (rows, left) == (1, len(said) - 1), f"{cells} × {rows}: {rest}"
            assert said[0][0].startswith(rest.lstrip("✕▲●· ")[:-1])
            continue
        for whole in said:
            rest = rest.lstrip("✕▲●· ")
            text = next((text for text in whole if rest.startswith(text)), None)
            left -= text is None
            rest = rest.removeprefix(text or "")
        assert not rest and not left, f"{cells} × {rows}: {rest}"


def test_a_sentence_that_is_longer_than_the_headline_is_cut_after_a_word() -> None:
    view = state(CRASH)
    (drawn,) = map(content, headline_lines(view.headline.findings, now_of(view), 60, 1))
    assert drawn == " ✕ broker 4 silent 3.4 s, still listed as… · 4 more findings"


def test_a_single_sentence_that_is_too_long_ends_with_an_ellipsis() -> None:
    only = [
        finding for finding in state(HEALTHY).headline.findings if finding.kind is FindingKind.CLUSTER_WELL
    ]
    (whole,) = headline_lines(only, 0, 200, 1)
    for cells in range(24, line_width(whole)):
        (shown,) = headline_lines(only, 0, cells, 1)
        assert content(shown).endswith("…") and line_width(shown) <= cells, content(shown)
        assert content(whole).startswith(content(shown)[:-1])


def test_a_cluster_without_a_controller_says_so_in_the_header() -> None:
    view = state(HEALTHY)
    seen = replace(view.snapshot.observation, controller_id=NO_BROKER)
    alone = replace(view, snapshot=replace(view.snapshot, observation=seen))
    assert "no controller" in header(alone, 80)


def test_a_sign_stands_where_the_severity_changes() -> None:
    view = state(BACK)
    (drawn,) = map(content, headline_lines(view.headline.findings, now_of(view), 240, 1))
    assert drawn == (
        " ● cluster healthy · ▲ audit-export stopped, ≥ 3 m 32 s behind"
        " · ≥ 12 records lost with the old leaders of 3 partitions, 24 s ago"
        " · 3 partitions (+8 internal) not on their preferred leader"
    )


def test_what_is_lost_comes_before_a_cluster_that_is_well() -> None:
    world = default_world()
    world.log("audit-log", 1).start = world.group("audit-export").committed["audit-log", 1] + 500
    *_, view = views(world.tick() for _ in range(3))
    (drawn,) = map(content, headline_lines(view.headline.findings, now_of(view), 140, 1))
    assert drawn == (
        " ✕ group audit-export: 500 records deleted before being read · ● cluster healthy"
        " · ▲ audit-export stopped, ≥ 2 m 1 s behind"
    )


@running
async def test_the_figures_of_a_cluster_that_does_not_answer_are_not_green_on_the_screen() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(state(CRASH))
        await until(pilot, lambda: "▲ 5 of 6 brokers answer" in text(app), "a broker that does not answer")
        assert "seen" not in text(app).splitlines()[0]


def test_a_sentence_without_room_leaves_it_to_the_next_one() -> None:
    view = state(BACK)
    findings = list(view.headline.findings)
    findings.insert(1, next(one for one in findings if one.kind is FindingKind.LEADER_RECORDS_LOST))
    lines = [content(made) for made in headline_lines(findings, now_of(view), 80, 1)]
    assert lines[0].startswith(" ● cluster healthy") and "audit-export stopped" in " ".join(lines)
    assert any(re.search(r"\d+ more finding", one) for one in lines)


def test_the_last_known_controller_is_not_called_active_while_none_answers() -> None:
    view = state(HEALTHY)
    silent = Finding(FindingKind.QUORUM_SILENT, Severity.RISK, since_ms=view.snapshot.observation.began_ms)
    untold = replace(view, headline=replace(view.headline, findings=(silent,)))
    assert "controller 101" in header(view, 80)
    assert "controller not known" in header(untold, 80) and "controller 101" not in header(untold, 80)
