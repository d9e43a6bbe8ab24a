"""Names that try to move the cursor, break lines or turn the writing around: no screen lets them through."""

import dataclasses
import re
from unicodedata import category

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.view import View
from kview.model.snapshot import Snapshot, Strings
from tests.tui.harness import dashboard, lines, press, running, text, until
from tests.worlds import views
from tests.worlds.parts import Consumers, Node, topic
from tests.worlds.world import World

HOSTILE = {
    "escape": "\x1b[2J\x1b[31m",
    "bell": "\x07",
    "line break": "\r\n",
    "C1 control": "\x9b2J\x85",
    "right-to-left": "\u202e\u202a\u2066\u2069\u200f",
    "zero width": "\u200b\u200d\ufeff\u2060\u3164",
    "line separator": "\u2028\u2029",
    "surrogate": "\ud83d",
    "marks": "e" + "\u0301" * 40,
}

ALL = "".join(HOSTILE.values())

SCREENS = {
    "overview": [],
    "placement": ["2"],
    "broker": ["enter"],
    "topics": ["3"],
    "topic": ["3", "enter"],
    "topic_groups": ["3", "enter", "right"],
    "partitions": ["4"],
    "partition": ["4", "enter"],
    "groups": ["5"],
    "group": ["5", "enter"],
    "throughput": ["6"],
}


def hostile_view(evil: str = ALL) -> View:
    """A cluster in which every name says `evil`, and in which something happened to its group."""
    logs = topic(f"t{evil}t", 3, 2, 100.0)
    at_end = {log.key: int(log.watermark) for log in logs}
    world = World(
        [Node(id, f"R{evil}{id % 2}") for id in (0, 1, 2, 3, 4, 5)],
        logs,
        [Consumers(f"g{evil}g", 1, 2, at_end)],
    )
    snapshots = [world.tick() for _ in range(29)]
    world.group(f"g{evil}g").coordinator = 2
    return list(views(named(snapshot, evil) for snapshot in (*snapshots, world.tick())))[-1]


def named(snapshot: Snapshot, evil: str) -> Snapshot:
    """The same snapshot, in which hosts and what members say of themselves are `evil`, too."""
    brokers, members, groups = snapshot.brokers, snapshot.members, snapshot.groups

    def every(rows: int, prefix: str) -> Strings:
        return np.array([f"{prefix}{evil}{row}" for row in range(rows)], object)

    return replace(
        snapshot,
        brokers=replace(brokers, host=every(len(brokers), "h")),
        members=replace(members, client_id=every(len(members), "c"), host=every(len(members), "m")),
        groups=replace(groups, assignment_strategy=every(len(groups), "a")),
    )


def assert_harmless(drawn: str) -> None:
    """Nothing in the text has an effect beyond its cell."""
    bad = {c for c in drawn if not c.isprintable() or c == "\u3164"}
    assert not bad, bad
    assert not re.search("[\u0300-\u036f]{3}", drawn)


@pytest.mark.quick(5)
@pytest.mark.parametrize("keys", SCREENS.values(), ids=SCREENS)
@running
async def test_every_screen_shows_hostile_names_as_harmless_ones(keys: list[str]) -> None:
    async with dashboard(hostile_view()) as (app, pilot):
        await press(pilot, keys)
        await until(pilot, lambda: "t?[2J" in text(app) or "g?[2J" in text(app), "the names")
        assert "could not be drawn" not in text(app)
        for drawn in lines(app):
            assert_harmless(drawn)
            width = sum(0 if category(c) == "Mn" else 1 for c in drawn)
            assert width == 120, "rows stay in their columns"


@running
async def test_events_members_and_hosts_are_shown_as_harmless_too() -> None:
    async with dashboard(hostile_view(), size=(240, 60)) as (app, pilot):
        for keys, said in (
            ([], ("coordinator of group g?[2J", "R?[2J")),
            (["s"], ("h?[2J",)),
            (["5"], ("g?[2J",)),
            (["enter"], ("c?[2J", "m?[2J", "assignor a?[2J")),
        ):
            await press(pilot, keys)
            await until(pilot, lambda said=said: all(part in text(app) for part in said), str(said))  # type: ignore[misc]
            for drawn in lines(app):
                assert_harmless(drawn)


@pytest.mark.quick(3)
@pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE)
@running
async def test_the_filter_shows_a_hostile_name_too(evil: str) -> None:
    async with dashboard(hostile_view(evil)) as (app, _):
        app.set_options(dataclasses.replace(app.options, filter=f"t{evil}"))
        for drawn in lines(app):
            assert_harmless(drawn)
