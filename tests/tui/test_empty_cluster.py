"""A cluster without topics: every screen is drawn, and says that there are none."""

import pytest
from msgspec.structs import replace

from kview.derive.view import View
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure
from kview.model.units import NO_BROKER
from tests.tui.harness import dashboard, press, running, text, until
from tests.worlds import views
from tests.worlds.parts import Node
from tests.worlds.world import World


def empty_view() -> View:
    """Three brokers, no topics and no groups."""
    world = World([Node(id, "R1") for id in range(3)], [], [])
    return list(views(world.tick() for _ in range(3)))[-1]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([], "no partitions"),
        (["2"], "all topics 0 partitions"),
        (["2", "enter"], "this broker has no replica"),
        (["3"], "TOPICS"),
        (["4"], "all 0"),
        (["7"], "EVENTS"),
        (["5"], "GROUPS"),
        (["6"], "cluster"),
    ],
)
@running
async def test_every_screen_is_drawn(keys: list[str], said: str) -> None:
    async with dashboard(empty_view()) as (app, pilot):
        await press(pilot, keys)
        await until(pilot, lambda: said in text(app), "the screen")
        assert "could not be drawn" not in text(app)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([], "no partitions that kview is authorized to see"),
        (["2"], "all topics ≥0 partitions"),
    ],
)
@running
async def test_what_kview_may_not_see_is_not_shown_as_nothing(keys: list[str], said: str) -> None:
    denied = Failure(Part.TOPICS, NO_BROKER, FailureKind.KAFKA_ERROR, 29)
    snapshot = empty_view().snapshot
    hidden = replace(snapshot, observation=replace(snapshot.observation, failures=(denied,)))
    (view,) = views([hidden])
    async with dashboard(view) as (app, pilot):
        await until(pilot, lambda: "some topics hidden by ACLs" in text(app), "the head")
        await press(pilot, keys)
        await until(pilot, lambda: said in text(app), "the screen")
        assert "▲ some topics hidden by ACLs" in text(app)


@running
async def test_placement_lists_the_brokers() -> None:
    async with dashboard(empty_view()) as (app, pilot):
        await press(pilot, ["2"])
        await until(pilot, lambda: "TOPICS" in text(app), "the screen")
        shown = [line.split() for line in text(app).splitlines()]
        assert ["▸", "R1", "0", "●", "0", "0", "up"] in shown, "it leads none and has no copy"
        assert ["2", "●", "0", "0", "up"] in shown
