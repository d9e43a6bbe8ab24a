"""The lab panel: what it shows is what the engine has set, and its keys change and undo that."""

import re

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from kview.model.lab import LabSettings
from kview.model.units import NO_BROKER
from kview.school.shows.lesson import LessonShow
from kview.simulate.world import GroupSpec, ProducerSpec, TopicSpec, World, default_world, racked_brokers
from kview.tui.app import KviewApp
from kview.tui.lab_keys import rate_step
from kview.tui.widgets.table import Table
from tests.school.shows.lesson_stage import lesson, shown_demo
from tests.tui.harness import (
    HEALTHY,
    EngineLab,
    FakeLab,
    dashboard,
    lines,
    press,
    running,
    state,
    text,
    until,
)


def settings(lab: EngineLab) -> LabSettings:
    """What the engine has set."""
    return lab.cluster.adjustments.settings()


def row_of(app: KviewApp, name: str) -> str:
    """The row with that name."""
    return next(line for line in text(app).splitlines() if f" {name} " in line)


async def opened(app: KviewApp, pilot: Pilot[int]) -> None:
    """Open the panel, and wait for what is set."""
    await press(pilot, ["8"])
    await until(pilot, lambda: "producer  invoice-service" in text(app), "what is set")


async def select(app: KviewApp, pilot: Pilot[int], kind: str, name: str) -> None:
    """Select a row."""
    assert app.screen.query_one("#lab", Table).select((kind, name))
    await pilot.pause()


async def adjust(app: KviewApp, pilot: Pilot[int], key: str, lab: EngineLab) -> str:
    """Press a key that changes something, and return the status line once the panel shows the new value."""
    before = settings(lab)
    await press(pilot, [key])
    await until(pilot, lambda: settings(lab) != before, f"a change by {key}")
    await until(pilot, lambda: app.lab.settings == settings(lab), "the new value")
    return text(app).splitlines()[-2].strip()


@running
async def test_below_the_settings_is_what_the_selected_one_changes() -> None:
    lab = EngineLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await opened(app, pilot)
        for kind, name, title in (
            ("producer", "payment-service", "RECORDS IN payment "),
            ("group", "billing", "LAG of billing "),
            ("topic", "audit-log", "RECORDS IN audit-log "),
            ("network", "broker 4", "RECORDS IN broker 4 "),
        ):
            table = app.screen.query_one("#lab", Table)
            table.choose(table.rows.find((kind, name)) or 0)
            await pilot.pause()
            below = text(app)[text(app).index(title) :]
            assert "█" in below, "the area"


@running
async def test_every_change_says_what_it_did_and_its_key_undoes_it() -> None:
    lab = EngineLab()
    initial = settings(lab)
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await opened(app, pilot)
        for kind, name, key, said in [
            (
                "producer",
                "invoice-service",
                "plus",
                "invoice-service now sends 7,000 records/s · u back to 4,400 r",
            ),
            ("producer", "invoice-service", "z", "invoice-service has stopped sending · u resume it"),
            ("group", "billing", "minus", "a member of billing commits and leaves · u add a member"),
            (
                "group",
                "billing",
                "x",
                "a member of billing was killed: its partitions wait until its session ends ·",
            ),
            (
                "group",
                "reporting",
                "z",
                "the members of reporting have stopped reading but still send heartbeats ·",
            ),
            ("group", "audit-export", "equals_sign", "a new member joins audit-export · u remove a member"),
            ("topic", "payment", "plus", "payment now has min.insync.replicas=3 · u back to 2"),
            ("topic", "invoice", "plus", "invoice now has min.insync.replicas=2 · u back to the default"),
            (
                "network",
                "broker 4",
                "minus",
                "the network of broker 4 now carries 62 MB/s each way · u back to 125 MB/s",
            ),
        ]:
            await select(app, pilot, kind, name)
            assert (await adjust(app, pilot, key, lab)).startswith(said)
        assert "LAB 7 changes" in text(app)
        assert re.search(r"paused \(7,000/s\) +4,400 ", row_of(app, "invoice-service"))
        assert re.search(r"2 members, paused +reading ", row_of(app, "reporting"))
        await press(pilot, ["enter"])
        assert text(app).splitlines()[-2].endswith("· 8 u back to 125 MB/s"), "not on a screen opened from it"
        await press(pilot, ["1"])
        assert text(app).splitlines()[-2].endswith("· 8 u back to 125 MB/s"), "u works only in the panel"
        await opened(app, pilot)
        for _ in range(9):
            await adjust(app, pilot, "u", lab)
        assert settings(lab) == initial and "LAB unchanged" in text(app)
        await press(pilot, ["u"])
        assert "nothing to undo" in text(app)


@running
async def test_undo_all_brings_changes_and_nodes_back() -> None:
    lab = EngineLab()
    initial = settings(lab)
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await opened(app, pilot)
        await adjust(app, pilot, "plus", lab)
        await select(app, pilot, "network", "broker 4")
        await press(pilot, ["K"])
        await until(pilot, lambda: lab.console.status().active, "a crash")
        assert lab.console.status().active[0].node == 4, "of the broker whose network is selected"
        await adjust(app, pilot, "U", lab)
        await until(pilot, lambda: "1 change of the lab undone" in text(app), "both undone")
        assert settings(lab) == initial and not lab.console.status().active
        await press(pilot, ["u"])
        assert "nothing to undo" in text(app)


@pytest.mark.parametrize(
    ("kind", "name", "keys", "said"),
    [
        ("topic", "audit-log", ["plus"], "audit-log has only 1 replica"),
        ("topic", "invoice", ["minus"], "min.insync.replicas of invoice is 1 already"),
        ("group", "audit-export", ["minus"], "audit-export has no members already"),
        ("group", "audit-export", ["x"], "audit-export has no members: add one first"),
        (
            "network",
            "broker 1",
            ["z"],
            "only producers and groups can be paused, not the network of broker 1",
        ),
        ("topic", "invoice", ["x"], "only groups have members: invoice has none"),
    ],
)
@running
async def test_what_is_not_possible_changes_nothing_and_says_why(
    kind: str, name: str, keys: list[str], said: str
) -> None:
    lab = EngineLab()
    initial = settings(lab)
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await opened(app, pilot)
        await select(app, pilot, kind, name)
        await press(pilot, keys)
        assert said in text(app).splitlines()[-2] and settings(lab) == initial


@running
async def test_a_cluster_that_does_not_answer_changes_no_value_on_the_screen() -> None:
    lab = EngineLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await opened(app, pilot)
        lab.answers = False
        await press(pilot, ["plus"])
        await until(pilot, lambda: "did not answer" in text(app), "the reason")
        assert "4,400 records/s" in row_of(app, "invoice-service")
        app.wall_ms.now_ms += 12_000  # type: ignore[attr-defined]
        app.session.feed.show(replace(state(HEALTHY)))  # type: ignore[attr-defined]
        await until(pilot, lambda: "as of 12 s ago" in text(app), "the age of what is shown")


@running
async def test_there_is_no_panel_without_a_lab_and_none_of_its_keys_elsewhere() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["8"])
        assert app.current_mode == "overview"
        assert "8 does nothing here: adjusting needs a simulated cluster" in text(app)
        assert "1–7 screens" in text(app)
    async with dashboard(state(HEALTHY), lab=FakeLab()) as (app, pilot):
        await press(pilot, ["8"])
        await until(pilot, lambda: "nothing can be adjusted in this cluster" in text(app), "an empty panel")
        await press(pilot, ["plus", "minus", "z", "x", "enter"])
        assert app.current_mode == "lab"


@running
async def test_without_a_controller_no_setting_changes_and_its_undo_is_kept() -> None:
    lab = EngineLab()
    initial = settings(lab)
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await opened(app, pilot)
        await select(app, pilot, "topic", "payment")
        await adjust(app, pilot, "minus", lab)
        for controller in (101, 102):
            lab.cluster.faults.crash(controller)
        for key in ("plus", "u"):
            await press(pilot, [key])
            await until(pilot, lambda: "no controller is active" in text(app), "the reason")
            assert "REQUEST_TIMED_OUT" in text(app) and "min.insync.replicas 1" in row_of(app, "payment")
            await press(pilot, ["down", "up"])
        lab.cluster.faults.undo()
        lab.cluster.run_until(lab.cluster.kernel.now_us + 10_000_000)
        await adjust(app, pilot, "u", lab)
        assert settings(lab) == initial


@pytest.mark.quick(1)
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
@running
async def test_in_a_demo_the_panel_keeps_the_caption_and_both_their_keys_work(size: tuple[int, int]) -> None:
    async with lesson("min-insync", size=size) as taken:
        app, before = taken.app, taken.demos.stage.cluster.adjustments.settings()
        caption = "min.insync."
        await taken.press("8")
        await until(taken.pilot, lambda: "records/s" in text(app), "what is set")
        assert app.current_mode == "lab" and caption in text(app)
        assert app.screen.query_one("#lab", Table).size.height >= 3, "the head and two rows"
        await taken.press("plus", "z", "u", "x")
        after = taken.demos.stage.cluster.adjustments.settings()
        assert after.producers != before.producers and caption in text(app)
        show = shown_demo(app)
        await taken.press("a")
        assert isinstance(show, LessonShow) and show.is_auto
        await taken.press("a", "space")
        assert app.current_mode != "lab" and re.search(r"step 2 of|· 2/", text(app)), (
            "space goes on where the demo looks"
        )
        assert all(len(line) <= size[0] for line in lines(app))


@running
async def test_a_drill_does_not_show_what_was_changed() -> None:
    async with lesson("incident", seed=3) as taken:
        app = taken.app
        await taken.press("8")
        assert app.current_mode == "overview" and "8 does nothing during a drill" in text(app)
        await taken.press("escape", "escape", "8")
        await until(taken.pilot, lambda: app.current_mode == "lab", "the lab, once the drill is left")


def crowd() -> World:
    """A thousand groups with the longest names, a topic that all of them read, and no producer."""
    long = "n" * 244
    return World(
        brokers=racked_brokers(3, 1),
        topics=(TopicSpec("t" * 249, 1, 3),),
        groups=tuple(
            GroupSpec(f"{long}{number:05}", ("t" * 249,), 0, stopped_ms=1000) for number in range(1000)
        ),
        settings={"offsets.topic.num.partitions": "2"},
        warm_ms=2_000,
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
@running
async def test_a_crowd_with_the_longest_names_fits(size: tuple[int, int]) -> None:
    lab = EngineLab(crowd())
    async with dashboard(state(HEALTHY), lab=lab, size=size) as (app, pilot):
        await press(pilot, ["8"])
        await until(pilot, lambda: "group     " in text(app), "groups")
        await press(pilot, ["end", "minus", "home", "plus"])
        await until(pilot, lambda: "2 changes" in text(app), "two changes")
        assert "00000" in text(app), "the end of a name stays"
        assert all(len(line) <= size[0] for line in lines(app))


@running
async def test_all_brokers_dead_and_hostile_names_hold() -> None:
    world = replace(
        default_world(),
        producers=(ProducerSpec("\x1b[2J\u202e宽宽", "invoice", 0.4),),
        groups=(GroupSpec("", ("invoice",), 1),),
    )
    lab = EngineLab(world)
    async with dashboard(state(HEALTHY), lab=lab, size=(80, 24)) as (app, pilot):
        await press(pilot, ["8"])
        await until(pilot, lambda: "0.4 records/s" in text(app), "what is set")
        assert "\x1b" not in text(app) and "\u202e" not in text(app)
        for rack in ("R1", "R2"):
            await press(pilot, [])
            lab.cluster.faults.lose_rack(rack)
        lab.cluster.run_until(lab.cluster.kernel.now_us + 20_000_000)
        await adjust(app, pilot, "plus", lab)
        assert settings(lab).producers[0].rate == 1.0 and NO_BROKER not in lab.cluster.broker_ids()


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0, 9.9, 10.0, 4400.0, 123_456.0, 999_999.0, 1_000_000.0])
def test_a_step_of_a_rate_is_round_and_never_stays(rate: float) -> None:
    up, down = rate_step(rate, True), rate_step(rate, False)
    assert up > rate or up == rate == 1_000_000
    assert down < rate or down == rate == 0
    for each in (up, down):
        assert float(f"{each:.1e}") == each, "at most two digits that are not 0"
    if rate >= 10:
        assert up <= 2 * rate and down >= rate / 2
