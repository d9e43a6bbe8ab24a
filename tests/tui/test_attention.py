"""The partitions in sight, which the observer learns, and Delete on a broker that is gone."""

from functools import cache

import pytest
from msgspec.structs import replace

from kview.derive.view import View
from kview.model.states import BrokerState
from kview.model.units import NO_PARTITION
from kview.tui.widgets.table import Table
from tests.tui.harness import (
    BACK,
    HEALTHY,
    FakeAttention,
    FakeFeed,
    FakeTimeline,
    dashboard,
    press,
    running,
    script,
    state,
    text,
    until,
)
from tests.tui.moments import paused
from tests.worlds import crash_script, views

GONE = 5
"""The broker that the cluster no longer lists."""


@cache
def left() -> View:
    """A view after broker GONE has left."""
    snapshots = list(crash_script())[:50]
    table = snapshots[-1].brokers
    states = table.state.copy()
    states[table.id == GONE] = BrokerState.GONE.value
    snapshots[-1] = replace(snapshots[-1], brokers=replace(table, state=states))
    return list(views(snapshots))[-1]


def select(app: object, broker: int) -> None:
    """Select a broker on the overview."""
    table = app.screen.query_one("#brokers", Table)  # type: ignore[attr-defined]
    table.focus()
    assert table.select(broker)


@running
async def test_delete_drops_a_broker_that_is_gone_and_says_so() -> None:
    attention = FakeAttention()
    async with dashboard(left(), attention=attention) as (app, pilot):
        select(app, GONE)
        await press(pilot, ["delete"])
        assert attention.dismissed == [GONE]
        assert f"broker {GONE} is removed" in text(app)


@running
async def test_in_the_placement_table_too() -> None:
    attention = FakeAttention()
    async with dashboard(left(), attention=attention) as (app, pilot):
        await press(pilot, ["2"])
        await until(pilot, lambda: "leads  copies" in text(app), "the placement")
        assert app.screen.query_one("#grid", Table).select(GONE)
        await press(pilot, ["delete"])
        assert attention.dismissed == [GONE]


@running
async def test_on_other_rows_it_says_why_it_does_nothing() -> None:
    attention = FakeAttention()
    async with dashboard(left(), attention=attention) as (app, pilot):
        select(app, 0)
        await press(pilot, ["delete"])
        assert "broker 0 is up: Del removes only brokers that the cluster no longer lists" in text(app)
        await press(pilot, ["tab", "delete"])
        assert (
            "Del removes the row of a broker that the cluster no longer lists: select such a row first"
            in text(app)
        )
        assert attention.dismissed == []


@running
async def test_at_an_earlier_moment_it_does_nothing() -> None:
    attention = FakeAttention()
    async with dashboard(paused(), attention=attention, timeline=FakeTimeline()) as (app, pilot):
        select(app, 4)
        await press(pilot, ["delete"])
        assert "Del works only on the live view · press space to return to it" in text(app)
        assert not attention.dismissed and not attention.preferred


@running
async def test_in_a_replay_it_does_nothing() -> None:
    async with dashboard(paused(BACK), timeline=FakeTimeline(replay=True)) as (app, pilot):
        await press(pilot, ["delete"])
        assert "Del needs a live cluster: a recording cannot be changed" in text(app)


@pytest.mark.parametrize("screen", ["1", "5"])
@running
async def test_it_is_a_key_only_where_a_broker_can_be_selected(screen: str) -> None:
    async with dashboard(state(HEALTHY), attention=FakeAttention(), size=(120, 90)) as (app, pilot):
        await press(pilot, [screen, "question_mark"])
        await until(pilot, lambda: "HELP" in text(app), "help")
        assert ("remove the row of a broker" in text(app)) == (screen == "1")


@running
async def test_in_a_line_of_text_it_deletes_a_letter() -> None:
    attention = FakeAttention()
    async with dashboard(left(), attention=attention) as (app, pilot):
        await press(pilot, ["slash", *"pay", "home", "delete"])
        assert app.options.filter == "ay" and attention.dismissed == []


def in_sight(app: object, panel: str) -> set[object]:
    """The partitions whose rows can be read in that panel."""
    table = app.screen.query_one(f"#{panel}", Table)  # type: ignore[attr-defined]
    drawn = [str(strip.text) for strip in map(table.render_line, range(table.size.height))]
    keys = [table.rows.key(index) for index in range(len(table.rows))]
    return {key for key in keys if any(line[2:].split()[:2] == [key[0], str(key[1])] for line in drawn)}


@running
async def test_the_partitions_in_sight_are_reported_once_per_observation_if_they_changed() -> None:
    attention = FakeAttention()
    first, second, third, fourth = script()[50:54]
    async with dashboard(first, attention=attention, size=(120, 30)) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        app.screen.query_one("#partitions", Table).focus()
        app.session.feed.show(second)
        await until(pilot, lambda: attention.preferred, "what is in sight")
        assert attention.preferred == [in_sight(app, "partitions")]
        assert 3 < len(attention.preferred[0]) < 20
        await press(pilot, ["end"])
        app.session.feed.show(replace(second, new_events=()))
        await until(pilot, lambda: app.view is not second, "the same observation again")
        assert len(attention.preferred) == 1, "once per observation"
        app.session.feed.show(third)
        await until(pilot, lambda: app.view is third, "the next observation")
        assert attention.preferred[1:] == [in_sight(app, "partitions")]
        assert attention.preferred[0] != attention.preferred[1]
        app.session.feed.show(fourth)
        await until(pilot, lambda: app.view is fourth, "one more")
        assert len(attention.preferred) == 2, "nothing has changed"
    assert attention.preferred[2:] == [frozenset()], "nothing is in sight any more"


@running
async def test_a_group_and_a_topic_have_partitions_in_sight_too() -> None:
    attention = FakeAttention()
    seconds = script()
    async with dashboard(seconds[50], attention=attention) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        await press(pilot, ["5"])
        app.session.feed.show(seconds[51])
        audit_log = {("audit-log", number) for number in range(4)}
        await until(pilot, lambda: attention.preferred[-1:] == [audit_log], "those of the selected group")
        await press(pilot, ["enter"])
        await until(pilot, lambda: "MEMBERS" in text(app), "a group")
        app.session.feed.show(seconds[52])
        await until(pilot, lambda: len(attention.preferred[-1]) > 0, "the group's")
        offsets = app.screen.query_one("#offsets", Table)
        assert attention.preferred[-1] <= {offsets.rows.key(row) for row in range(len(offsets.rows))}


@running
async def test_topics_in_sight_are_reported_for_their_settings() -> None:
    attention = FakeAttention()
    seconds = script()
    async with dashboard(seconds[50], attention=attention) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        await press(pilot, ["3"])
        app.session.feed.show(seconds[51])
        topics = {(name, NO_PARTITION) for name in ("audit-log", "invoice", "payment")}
        await until(pilot, lambda: attention.preferred[-1:] == [topics], "those that are listed")
        app.go.topic("invoice")
        await until(pilot, lambda: "Producers" in text(app), "the topic")
        app.session.feed.show(seconds[52])
        await until(pilot, lambda: attention.preferred[-1:] != [topics], "the topic's")
        assert attention.preferred[-1] >= {("invoice", NO_PARTITION), ("invoice", 0)}
