"""Topics, a topic with its tabs, Partitions with what they are narrowed to, a partition's log, a broker."""

import re
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from kview.derive.view import View
from kview.model.lab import Command, CommandKind
from kview.tui.app import KviewApp
from kview.tui.widgets.choice_line import ChoiceLine
from kview.tui.widgets.table import Table
from tests.tui.harness import (
    CRASH,
    FENCED,
    HEALTHY,
    FakeAttention,
    FakeLab,
    dashboard,
    lines,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.many import LONG, many
from tests.worlds import views
from tests.worlds.parts import Node, topic
from tests.worlds.world import World

WAYS: dict[str, Sequence[str]] = {
    "topics": ["3"],
    "topic": ["3", "enter"],
    "topic_groups": ["3", "enter", "right"],
    "partitions": ["4"],
    "partition": ["4", "enter"],
    "partition_end": ["4", "enter", "z"],
    "broker": ["enter"],
}

EXTREMES = [(60, 15), (200, 50)]

CLUSTERS: dict[str, Callable[[], View]] = {
    "crash": partial(state, CRASH),
    "no topics": partial(many, topics=0),
    "one broker": partial(many, brokers=1, racks=0),
    "all dead": partial(many, crashed=tuple(range(6)), brokers=6, racks=2),
    "long names": partial(many, crashed=(2, 19)),
}


@pytest.mark.slow  # test_screens.py draws them at each size
@pytest.mark.parametrize(
    "cluster",
    ["crash", "long names", "no topics", "one broker", "all dead"],
)
@running
async def test_every_screen_is_drawn_at_every_size(cluster: str) -> None:
    async with dashboard(CLUSTERS[cluster](), lab=FakeLab()) as (app, pilot):
        for way, keys in WAYS.items():
            await press(pilot, ["1", *keys])
            for size in EXTREMES:
                await pilot.resize_terminal(*size)
                await until(pilot, lambda size=size: len(lines(app)) == size[1], "the new size")  # type: ignore[misc]
                assert {cell_len(line) for line in lines(app)} == {size[0]}, way
                assert "could not be drawn" not in text(app), text(app)


@running
async def test_topics_say_their_worst_thing_only_and_the_group_that_is_furthest_behind() -> None:
    async with dashboard(state(FENCED), size=(200, 50)) as (app, pilot):
        await press(pilot, ["3"])
        await until(pilot, lambda: "TOPICS worst first" in text(app), "the topics")
        rows = [line for line in lines(app) if re.search(r"(audit-log|invoice|payment)  ", line)]
        assert [re.split(r"  +", row.strip("▸ "))[0] for row in rows[:3]] == [
            "audit-log",
            "invoice",
            "payment",
        ]
        assert "✕ 1 no leader" in rows[0] and "audit-export" in rows[0] and "≥198,310" in rows[0]
        assert "▲ 6 under-replicated" in rows[1] and "not preferred" not in rows[1]
        assert "▲ 3 at min ISR" in rows[2]


@running
async def test_enter_goes_deeper_and_escape_back() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        shown = ["TOPICS", "PARTITIONS", "HISTORY", "REPLICAS", "HISTORY"]
        await press(pilot, ["3"])
        for depth, what in enumerate(shown, 1):
            await until(pilot, lambda what=what: f"  {what}" in text(app), what)  # type: ignore[misc]
            if depth < len(shown):
                await press(pilot, ["enter"])
        for what in reversed(shown[:-1]):
            await press(pilot, ["escape"])
            await until(pilot, lambda what=what: f"  {what}" in text(app), what)  # type: ignore[misc]


async def click_choice(app: KviewApp, pilot: Pilot[int], name: str) -> None:
    """Click on a choice by its name."""
    strip = app.screen.query_one(ChoiceLine)
    drawn = lines(app)[strip.region.y]
    await pilot.click(ChoiceLine, offset=(drawn.index(name) + 1, 0))


@running
async def test_tabs_change_by_key_and_by_mouse_and_the_current_one_is_marked() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        await press(pilot, ["3", "enter"])
        await until(pilot, lambda: "▸Partitions" in text(app) and "leader·ep" in text(app), "partitions")
        await press(pilot, ["right"])
        await until(pilot, lambda: "▸Groups" in text(app) and "blocked" in text(app), "groups")
        assert "leader·ep" not in text(app)
        await press(pilot, ["enter"])
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
        await press(pilot, ["escape", "right"])
        await until(pilot, lambda: "▸Records" in text(app), "the next tab")
        await click_choice(app, pilot, "Groups")
        await until(pilot, lambda: "▸Groups" in text(app), "groups")
        assert app.focused is not None and app.focused.id == "topic_groups"


def listed(app: KviewApp) -> list[tuple[str, int]]:
    """The partitions in the table."""
    table = app.screen.query_one("#partitions", Table)
    return [key for key in table.keys if isinstance(key, tuple)]


@running
async def test_chips_count_what_the_filter_leaves() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        await press(pilot, ["4", "slash", *"broker:4", "enter"])
        await until(pilot, lambda: "▸all 10" in text(app), "the partitions with a replica on broker 4")
        assert len(app.screen.query_one("#partitions", Table).rows) == 10


@running
async def test_chips_count_all_partitions_and_narrow_the_list() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        await press(pilot, ["4"])
        await until(pilot, lambda: "▸all 20" in text(app), "the chips")
        assert "silent leader 4  frozen 6  no leader 0" in text(app)
        await press(pilot, ["right"])
        assert "▸silent leader 4" in text(app)
        assert set(listed(app)) == {("invoice", 3), ("invoice", 9), ("payment", 3), ("audit-log", 3)}
        await click_choice(app, pilot, "frozen")
        await until(pilot, lambda: len(listed(app)) == 6, "the frozen ones")
        assert "all 20" in text(app), "the other counts stay those of all partitions"
        await press(pilot, ["right"])
        assert "no partition is in this state" in text(app)
        await press(pilot, ["left", "slash", *"pay", "enter"])
        assert set(listed(app)) == {("payment", 1), ("payment", 2)}
        assert "all 6" in text(app) and "frozen 2" in text(app), "under the filter"


@running
async def test_a_partition_shows_who_waits_for_whom_and_how_old_a_silent_end_is() -> None:
    lab = FakeLab()
    async with dashboard(state(CRASH), lab=lab, size=(120, 40)) as (app, pilot):
        app.go.partition("invoice", 1)
        await until(pilot, lambda: "HISTORY" in text(app), "the partition")
        shown = text(app)
        assert "acks=all producers wait for broker 4, which is in the ISR but does not answer" in shown
        silent = next(line for line in shown.splitlines() if line.startswith("  4 ✕"))
        leader = next(line for line in shown.splitlines() if line.startswith("  3 ●"))
        assert silent.endswith("4 s ago") and leader.endswith("leader")
        assert silent.count("━") < leader.count("━") / 2, (
            "near the end, the stopped replica is seen to be short"
        )
        assert "▒" in shown and "watermark froze on 10 partitions" in shown
        await press(pilot, ["K"])
        await until(pilot, lambda: lab.commands, "a fault")
        assert lab.commands[0] == Command(CommandKind.CRASH, 3), "the leader of the partition shown"


@running
async def test_the_zoom_key_draws_only_the_end_of_the_log() -> None:
    async with dashboard(state(CRASH), size=(80, 24)) as (app, pilot):
        app.go.partition("invoice", 1)
        await until(pilot, lambda: "log start 400,000" in text(app), "the whole log")
        await press(pilot, ["z"])
        assert "the last 2,000 records" in text(app) and "log start" not in text(app)
        await press(pilot, ["z"])
        assert "log start 400,000" in text(app)


@running
async def test_left_and_right_go_through_the_partitions_of_the_topic() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        app.go.partition("audit-log", 3)
        await until(pilot, lambda: "audit-log-3" in text(app), "the partition")
        await press(pilot, ["right"])
        assert "audit-log-0" in text(app)
        await press(pilot, ["left", "left"])
        assert "audit-log-2" in text(app)


@running
async def test_a_broker_has_its_replicas_its_facts_and_the_faults_and_delete() -> None:
    lab, attention = FakeLab(), FakeAttention()
    async with dashboard(state(CRASH), lab=lab, attention=attention) as (app, pilot):
        app.go.broker(4)
        await until(pilot, lambda: "REPLICAS" in text(app), "the broker")
        shown = text(app)
        assert "broker 4  ✕ silent 3 s · fenced in ≈ 5.5 s · connection refused" in shown
        for fact in ("rack R2", "listener 127.0.0.1:19096", "leads 4", "disk 1.1 GB"):
            assert fact in shown
        assert "broker 4 stopped answering: connection refused" in shown
        table = app.screen.query_one("#replicas", Table)
        assert len(table.keys) == 10
        assert set(table.keys[:4]) == {("invoice", 3), ("invoice", 9), ("payment", 3), ("audit-log", 3)}
        await press(pilot, ["delete"])
        assert "broker 4 is silent: Del removes only brokers" in text(app) and not attention.dismissed
        await press(pilot, ["B"])
        await until(pilot, lambda: lab.commands, "a fault")
        assert lab.commands[0].node == 4


@running
async def test_what_is_gone_says_so() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        app.go.broker(99)
        await until(pilot, lambda: "broker 99 is no longer listed" in text(app), "the broker")
        app.go.partition("gone", 7)
        await until(pilot, lambda: "gone-7 is no longer listed" in text(app), "the partition")
        app.go.topic("gone")
        await until(pilot, lambda: "gone is no longer listed" in text(app), "the topic")
        assert "could not be drawn" not in text(app)


@running
async def test_the_ends_of_long_names_are_kept() -> None:
    async with dashboard(many(crashed=(2, 19)), size=(80, 24)) as (app, pilot):
        await press(pilot, ["3"])
        await until(pilot, lambda: "TOPICS" in text(app), "the topics")
        shown = [line for line in lines(app) if "customer" in line and "GROUPS" not in line]
        assert len(shown) == 11 and "1–11 of 12" in text(app)
        assert {re.search(r"(\d{3})  ", line)[1] for line in shown} == {f"{n:03}" for n in range(11)}  # type: ignore[index]
        assert not any(LONG in line for line in shown)


@running
async def test_in_ascii_every_sign_has_a_stand_in() -> None:
    async with dashboard(state(CRASH), lab=FakeLab(), ascii_only=True) as (app, pilot):
        for keys in WAYS.values():
            await press(pilot, ["1", *keys])
            assert text(app).isascii()
            assert "?" not in text(app).replace("? help", ""), text(app)


@running
async def test_an_empty_partition_has_one_scale_and_the_end_of_a_long_one_a_second() -> None:
    nodes = [Node(id, f"R{id // 3 + 1}") for id in range(6)]
    for size, scales in ((0, 1), (100_000, 2)):
        world = World(nodes, topic("orders", 1, 1, 0.0, size=size), [])
        *_, view = views([world.tick() for _ in range(3)])
        async with dashboard(view) as (app, pilot):
            app.go.partition("orders", 0)
            shown = await until(pilot, lambda: text(app) if "HISTORY" in text(app) else "", "the log")
            assert shown.count("high watermark = log end") == scales, shown


@running
async def test_below_the_partitions_is_the_log_of_the_selected_one() -> None:
    def place(app: KviewApp) -> int:
        """Return the line with the log's title, 0 if there is none."""
        selected = app.screen.query_one("#partitions", Table).selected
        assert isinstance(selected, tuple)
        title = "  {}-{}  ".format(*selected)
        return next((at for at, line in enumerate(lines(app)) if line.lstrip(" ").startswith(title[2:])), 0)

    async with dashboard(state(CRASH), size=(120, 42)) as (app, pilot):
        await press(pilot, ["4"])
        first = place(app)
        assert "log start" in "".join(lines(app)[first:]), text(app)
        await press(pilot, ["down", "down", "down"])
        assert place(app) == first
        await press(pilot, ["slash", *"pay", "enter"])
        await until(pilot, lambda: "PARTITIONS worst first /pay" in text(app), "fewer partitions")
        assert place(app) == first, "a filter moves no panel"
    async with dashboard(state(CRASH), size=(120, 34)) as (app, pilot):
        await press(pilot, ["4"])
        assert not place(app), "the list needs all lines"


@running
async def test_below_the_topics_are_the_traffic_and_the_readers_of_the_selected_one() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["3"])
        await until(pilot, lambda: "RECORDS IN audit-log" in text(app), "the plot")
        assert "GROUPS of audit-log" in text(app) and "audit-export" in text(app)
        assert re.search(r"audit-log +4  ●●●● ", text(app)), "its strip"
        await press(pilot, ["down"])
        assert "RECORDS IN invoice" in text(app) and "GROUPS of invoice" in text(app)
        assert "billing" in text(app) and "audit-export" not in lines(app)[-10]
        await press(pilot, ["tab", "enter"])
        await until(pilot, lambda: "MEMBERS" in text(app), "the group")
    async with dashboard(state(HEALTHY), size=(60, 15)) as (app, pilot):
        await press(pilot, ["3"])
        await until(pilot, lambda: "TOPICS" in text(app), "the list")
        assert "RECORDS IN" not in text(app), "a low screen has the list"
