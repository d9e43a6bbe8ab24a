"""What is wrong at the first look: an engine whose nodes failed before or while somebody watched.

The events and the lanes of the Events screen must say so, because the headline does.
"""

from collections.abc import Iterable

import pytest

from kview.derive.view import View
from kview.language.events import sentence
from kview.model.events import EventKind
from kview.school.acts import act
from kview.school.checking import START_MS, Stage
from kview.school.drills import drill_world
from kview.school.worlds import world
from kview.simulate.cluster import build
from kview.tui.options import Options
from kview.tui.rows.incidents import EventRows, IncidentRows
from kview.tui.rows.lanes import lane_lines


def watched(before: Iterable[str], for_ms: int = 30_000) -> Stage:
    """A cluster that somebody begins to watch 30 s after these faults."""
    cluster = build(world(drill_world()), 1, START_MS)
    unwatched = Stage(cluster)
    for fault in before:
        assert unwatched.apply(act(fault)) is None
    unwatched.watch(for_ms)
    stage = Stage(cluster)
    stage.watch(4_000)
    return stage


def said(view: View) -> list[str]:
    return [sentence(event) for event in view.events]


def lane(view: View, name: str) -> str:
    now_ms = view.snapshot.observation.ended_ms
    _, drawn = lane_lines(view, now_ms, None, 20 + 61, 20)
    text = next("".join(span.text for span in one) for one in drawn if name in one[0].text)
    return text[-60:]


def test_a_healthy_cluster_has_no_events_at_the_first_look() -> None:
    assert said(watched(()).moment.view) == []


def test_a_controller_that_was_down_before_kview_watched_is_an_event_and_marks_its_lane() -> None:
    stage = watched(["crash 103"])
    view = stage.moment.view
    assert said(view) == ["controller 103 was already down when kview began to watch"]
    drawn = lane(view, "controllers")
    assert drawn.endswith("✕✕✕✕") and not drawn.strip("✕ "), "nothing is drawn calm, not even the time before"
    assert "controller 103" in IncidentRows(view, Options(), None).empty, "no calm word either"
    assert stage.apply(act("start 103")) is None
    stage.watch(6_000)
    assert said(stage.moment.view)[1:] == ["controller 103 came back"]
    assert lane(stage.moment.view, "controllers").rstrip().endswith("──")


def test_brokers_that_were_down_before_kview_watched_are_one_event_each_state() -> None:
    view = watched(["crash 1", "crash 2"]).moment.view
    assert said(view)[0] == "brokers 1 and 2 were already fenced when kview began to watch"
    assert "1 partition had no leader when kview began to watch" in said(view), "audit-log has one copy"
    for name in ("broker 1", "broker 2", "partitions"):
        assert "─" not in lane(view, name)
    assert not view.incidents, "nobody saw it begin"


def test_a_broker_that_is_down_but_not_fenced_yet_has_never_answered() -> None:
    stage = watched(["crash 1"], for_ms=1_000)
    first = stage.moment.view.events[0]
    assert (first.kind, first.brokers) == (EventKind.BROKER_FOUND_DOWN, (1,))
    assert sentence(first) == "broker 1 has not answered since kview began to watch: connection refused"
    stage.watch(12_000)
    assert "broker 1 was fenced" in said(stage.moment.view)
    assert EventRows(stage.moment.view, Options(), None).events[-1] == first


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (["crash 103"], ["controller 103 went down or stopped fetching the metadata log"]),
        (
            ["crash-controller"],
            [
                "controller 103 took over from 101 (epoch 2)",
                "controller 101 went down or stopped fetching the metadata log",
            ],
        ),
        (["crash 102", "crash 103"], ["no controller can act: no elections, no fencing, no new topics"]),
    ],
)
def test_a_controller_that_is_lost_while_kview_watches(faults: list[str], expected: list[str]) -> None:
    stage = watched(())
    for fault in faults:
        assert stage.apply(act(fault)) is None
    stage.watch(30_000)
    assert said(stage.moment.view) == expected
    assert lane(stage.moment.view, "controllers").endswith("✕✕✕")
    stage.apply(act("undo"))
    stage.watch(10_000)
    back = said(stage.moment.view)[len(expected) :]
    assert any(text.endswith(("came back", "act again")) for text in back)
    assert lane(stage.moment.view, "controllers").rstrip().endswith("──")
