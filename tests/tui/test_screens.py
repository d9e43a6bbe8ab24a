"""The screens as text: a golden file of each state, its cells at other sizes, and what a crash must show."""

import difflib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.cells import cell_len

from kview.model.notices import Notice, NoticeKind
from kview.tui.app import KviewApp
from tests.tui.cells import GOLDEN_SIZE, OTHER_SIZES, Size, misplaced, missing
from tests.tui.harness import (
    BACK,
    CRASH,
    FENCED,
    HEALTHY,
    FakeFeed,
    FakeLab,
    dashboard,
    drawn_lines,
    drawn_text,
    lines,
    press,
    running,
    script,
    state,
    text,
    until,
)

GOLDEN = Path(__file__).parent / "golden"

STATES = [HEALTHY, CRASH, FENCED, BACK]

SCREENS: dict[str, tuple[list[str], str]] = {
    "placement": (["2"], "leads  copies"),
    "topics": (["3"], "TOPICS"),
    "topic": (["3", "slash", *"invoice", "enter", "enter"], "uncomm."),
    "topic_groups": (["3", "slash", *"invoice", "enter", "enter", "right"], "GROUPS of invoice"),
    "partitions": (["4"], "▸all 20"),
    "partition": (["4", "down", "down", "enter"], "HISTORY"),
    "broker": (["colon", *"broker4", "enter"], "REPLICAS"),
    "groups": (["5"], "GROUPS"),
    "group": (["5", "enter"], "MEMBERS"),
    "help": (["question_mark"], "HELP"),
    "commands": (["ctrl+p"], "GO TO"),
}


def agrees(name: str, shown: str, update: bool) -> None:
    """Assert that the screen is the golden file; with `--update-golden`, write that file."""
    path = GOLDEN / f"{name}.txt"
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown)
    expected = path.read_text() if path.exists() else ""
    if shown != expected:
        changes = difflib.unified_diff(
            expected.splitlines(), shown.splitlines(), "expected", "shown", lineterm=""
        )
        pytest.fail(f"{path.name} is out of date (--update-golden):\n" + "\n".join(changes), pytrace=False)


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether the golden files are to be written."""
    return bool(request.config.getoption("--update-golden"))


at_other_sizes = pytest.mark.parametrize("size", OTHER_SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


def shows_the_same(name: str, app: KviewApp, size: Size) -> None:
    """Assert that the lines fit, and that every cell that matters is there."""
    fits(lines(app), size)
    lacks = missing(lines(app), name)
    assert not lacks, f"not shown at {size}: {lacks}\n{text(app)}"


@pytest.mark.parametrize("name", STATES)
@running
async def test_overview(name: str, update: bool) -> None:
    async with dashboard(state(name), size=GOLDEN_SIZE, lab=FakeLab()) as (app, _):
        shows_the_same(f"overview-{name}", app, GOLDEN_SIZE)
        agrees(f"overview-{name}-120x40", drawn_text(app), update)


@at_other_sizes
@pytest.mark.parametrize("name", STATES)
@running
async def test_overview_at_other_sizes(name: str, size: Size) -> None:
    async with dashboard(state(name), size=size, lab=FakeLab()) as (app, _):
        shows_the_same(f"overview-{name}", app, size)
        assert not misplaced(drawn_lines(app), size), text(app)


@pytest.mark.parametrize("name", SCREENS)
@running
async def test_other_screens(name: str, update: bool) -> None:
    await walk_to(name, GOLDEN_SIZE, lambda app: agrees(f"{name}-120x40", drawn_text(app), update))


@pytest.mark.quick(5)
@at_other_sizes
@pytest.mark.parametrize("name", SCREENS)
@running
async def test_other_screens_at_other_sizes(name: str, size: Size) -> None:
    await walk_to(name, size, lambda app: None)


async def walk_to(name: str, size: Size, check: Callable[[KviewApp], None]) -> None:
    """Open a screen with its keys, assert its cells, and call `check`."""
    keys, shows = SCREENS[name]
    async with dashboard(state(FENCED), size=size, lab=FakeLab()) as (app, pilot):
        for key in keys:
            before = text(app)
            await press(pilot, [key])
            await until(pilot, partial(differs, app, before), f"what {key} shows")
        await until(pilot, lambda: shows in text(app), shows)
        shows_the_same(name, app, size)
        check(app)


@running
async def test_in_ascii_nothing_moves() -> None:
    async with dashboard(state(CRASH), size=(120, 40), lab=FakeLab(), ascii_only=True) as (app, _):
        shown = drawn_text(app)
        assert shown.isascii() and "?" not in shown.replace("? help", "")
    async with dashboard(state(CRASH), size=(120, 40), lab=FakeLab()) as (app, _):
        in_unicode = drawn_text(app).splitlines()
    below_plot = slice(12, None)
    for plain, rich in zip(shown.splitlines()[below_plot], in_unicode[below_plot], strict=True):
        assert re.sub(r"\S", "#", plain) == re.sub(r"\S", "#", rich)
    assert re.search(r" 4 x silent 3 s ", shown)
    assert re.search(r"^  x broker 4 silent 3\.4 s", shown, re.MULTILINE)


def fits(drawn: list[str], size: tuple[int, int]) -> None:
    """Assert that there are as many lines as the screen has, each exactly as wide as it."""
    assert len(drawn) == size[1]
    assert {cell_len(line) for line in drawn} == {size[0]}


@running
async def test_every_size_fits_through_a_storm_of_resizes() -> None:
    sizes = [(width, height) for width in (60, 79, 111, 112, 160, 240) for height in (15, 20, 28, 60)]
    async with dashboard(state(CRASH), lab=FakeLab()) as (app, pilot):
        for number, size in enumerate([*sizes, (59, 15), (60, 14), (1, 1), (20, 3), (120, 40)]):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            fits(lines(app), size)
            if number % 9 == 0:
                await press(pilot, ["2" if number % 2 else "5", "enter", "1"])
        assert "EVENTS" in text(app)


@running
async def test_too_small_is_one_sentence() -> None:
    async with dashboard(state(CRASH), size=(59, 20)) as (app, pilot):
        assert text(app).strip() == "59×20 is too small: kview needs 60×15"
        await pilot.resize_terminal(60, 15)
        await pilot.pause()
        assert "BROKERS" in text(app) and "PARTITIONS" in text(app) and "broker 4 silent" in text(app)


@running
async def test_a_crash_says_what_is_true_in_those_nine_seconds() -> None:
    async with dashboard(state(CRASH)) as (app, _):
        shown = text(app)
        assert re.search(r"✕ broker 4 silent 3\.\d s .* ≈ [4-6]\.\d s  4 partitions down · 6 frozen", shown)
        assert re.search(r" 4 ✕ silent 3 s ", shown)
        assert "✕✕✕✕ ○○○○○○ " in shown
        assert re.search(r"invoice +3 +4✕·5 +4✕ 2○ 5○ +1,229,461 +– +✕ 3 s", shown)
        assert re.search(r"invoice +2 +1·5 +1● 4✕ 2○ +[\d,]+ +\+[\d,]+ +▮ 3 s", shown)
        assert re.search(r"billing +≥?\d+ +\d\.\d s ▲ +✕ blocked", shown)
        assert "none·" not in shown


@running
async def test_a_small_screen_says_how_the_groups_are_and_what_happened_last() -> None:
    async with dashboard(state(CRASH), size=(80, 24)) as (app, _):
        groups, events = lines(app)[-5].rstrip(), lines(app)[-3].rstrip()
        assert groups == "  GROUPS  ✕ 2 blocked: billing, reporting · ▲ 1 stopped · ▲ 1 last seen ok"
        assert events == "  08:54:20.1  watermark froze on 10 partitions"


@running
async def test_after_the_fencing_there_are_new_leaders_and_isrs_without_4() -> None:
    async with dashboard(state(FENCED)) as (app, pilot):
        shown = text(app)
        assert re.search(r"4 +✕ fenced", shown)
        assert re.search(r"invoice +3 +2·6 +4✕ 2● 5○ ", shown)
        assert re.search(r"audit-log +3 +none·6 +4✕ ", shown)
        await press(pilot, ["2"])
        await until(pilot, lambda: "leads  copies" in text(app), "the placement")
        while "invoice 10 partitions" not in text(app):
            await press(pilot, ["right"])
        shown = text(app)
        assert re.search(r" 4 +✕ +· +✕ +✕ +✕ +· +· +· +✕ +✕ +✕ +0 +6 +fenced \d+ s", shown)
        assert re.search(r" 2 +● +· +· +○ +● +● +· +· +· +○ +● +3 +5 +up", shown), "it leads 3 and 9 now"
        assert "2 not on preferred leader" in shown
        await press(pilot, ["b"])
        shown = text(app)
        assert re.search(r"4 +✕ fenced \d+ s +P3✕ +P9✕ +P2✕ +P8✕ +P1✕ +P7✕", shown)
        assert re.search(r"2 +● up +P4● +P3● +P9● +P2 +P8", shown)


@running
async def test_placement_by_racks_and_as_counts() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):

        def brokers() -> list[str]:
            return re.findall(r"^[▸ ] (?:R\d|  ) +(\d) +●", text(app), re.MULTILINE)

        await press(pilot, ["2"])
        await until(pilot, brokers, "the placement")
        assert brokers() == ["0", "1", "2", "3", "4", "5"]
        await press(pilot, ["tab", "end", "shift+tab"])
        assert "all topics 20 partitions" in text(app)
        await press(pilot, ["b"])
        assert brokers() == ["0", "3", "1", "4", "2", "5"]
        assert re.search(r"R1 +0 +● up +4 +2 +2$", text(app), re.MULTILINE)


@running
async def test_the_countdown_and_ages_go_on_between_observations() -> None:
    async with dashboard(state(CRASH)) as (app, pilot):
        for later_ms, silent, due in ((0, "3.4", "5.5"), (1_000, "4.4", "4.5"), (1_500, "4.9", "4.0")):
            app.clock_ms.now_ms = state(CRASH).snapshot.observation.ended_ms + 300 + later_ms  # type: ignore[attr-defined]
            await until(pilot, partial(says, app, f"silent {silent} s", f"≈ {due} s"), "tenths")
        await until(pilot, lambda: "✕ silent 4 s" in text(app), "whole seconds")
        app.clock_ms.now_ms += 10_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "fencing overdue by ≈ 6.0 s" in text(app), "the end of the countdown")
        await until(pilot, lambda: "✕ no new figures for 11 s" in text(app), "the badge")


def differs(app: KviewApp, before: str) -> bool:
    """Whether the screen shows something else."""
    return text(app) != before


def says(app: KviewApp, *parts: str) -> bool:
    """Whether all of these are on the screen."""
    return all(part in text(app) for part in parts)


@running
async def test_old_figures_say_how_old_they_are() -> None:
    async with dashboard(state(HEALTHY), size=(200, 50)) as (app, pilot):
        app.clock_ms.now_ms += 20_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "read 20 s ago" in text(app), "ages")
        assert "? 20 s" in text(app)
        assert "✕ no new figures for 20 s" in text(app)


@running
async def test_before_the_first_view_it_says_what_it_is_doing() -> None:
    async with dashboard() as (app, pilot):
        assert "connecting to simulated…" in text(app)
        app.clock_ms.now_ms += 2_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "waiting 2.0 s" in text(app), "the waiting")
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.note(
            Notice(NoticeKind.OBSERVING_FAILED, {"bug": "127.0.0.1:9092 refuses connections"})
        )
        await until(pilot, lambda: text(app).count("refuses connections") == 2, "the reason")
        app.session.feed.show(state(HEALTHY))
        await until(pilot, lambda: "invoice" in text(app), "the first view")


@running
async def test_the_latest_view_wins_and_selection_survives_the_whole_crash() -> None:
    async with dashboard(script()[50]) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        await press(pilot, ["right", "right"])
        for view in script()[51:]:
            app.session.feed.show(view)
        last = script()[-1]
        await until(pilot, lambda: app.view is last, "the last view")
        app.clock_ms.now_ms = last.snapshot.observation.ended_ms + 300  # type: ignore[attr-defined]
        await until(pilot, lambda: "6 of 6 answer" in text(app), "its age")
        assert "▸2 ● 2 ms" in text(app)
