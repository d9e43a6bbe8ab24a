"""Screen 6 and the overview's throughput panel: Spark's figures if there are any, else direct rates."""

import re
from datetime import UTC

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from kview.derive.groups.readers import topic_readers
from kview.derive.windows import whole_until_s, window
from kview.language import words
from kview.model.aggregates import Aggregates, Rollups, SparkState, SparkStatus
from kview.model.ports import Moment
from kview.model.sums import Kind
from kview.tui.app import KviewApp
from kview.tui.options import Options
from kview.tui.rows.throughput import _topics
from kview.tui.screens.group import GroupScreen
from kview.tui.screens.topic import TopicScreen
from kview.tui.spark import covered_until_s
from tests.tui.cells import GOLDEN_SIZE, Size
from tests.tui.harness import (
    HEALTHY,
    FakeFeed,
    FakeLab,
    dashboard,
    drawn_text,
    lines,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.test_screens import agrees, at_other_sizes, fits, shows_the_same, update
from tests.tui.textual_internals import has_mounted_ahead
from tests.tui.throughput_states import (
    EARLY_S,
    FAILED,
    FIRST_MINUTE_S,
    FOUR_MINUTES_S,
    INCIDENT,
    OFF,
    RUNNING,
    STARTING,
    rollups,
    script,
    snapshots,
    throughput_state,
)
from tests.worlds.aggregates import RUNNING as SPARK_RUNS

__all__ = ["update"]

STATES = (RUNNING, STARTING, FAILED, OFF, INCIDENT)


async def open_throughput(app: KviewApp, pilot: Pilot[int]) -> None:
    """Press 6, and wait for the list."""
    await press(pilot, ["6"])
    await until(pilot, lambda: "out rec/s" in text(app) and "all topics" in text(app), "the screen")


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", STATES)
@running
async def test_throughput(name: str, update: bool) -> None:
    async with dashboard(throughput_state(name), size=GOLDEN_SIZE, lab=FakeLab()) as (app, pilot):
        await open_throughput(app, pilot)
        shows_the_same(f"throughput-{name}", app, GOLDEN_SIZE)
        agrees(f"throughput-{name}-120x40", drawn_text(app), update)


@pytest.mark.quick(4)
@at_other_sizes
@pytest.mark.parametrize("name", STATES)
@running
async def test_throughput_at_other_sizes(name: str, size: Size) -> None:
    async with dashboard(throughput_state(name), size=size, lab=FakeLab()) as (app, pilot):
        await press(pilot, ["escape"])  # hides the incident strip
        await open_throughput(app, pilot)
        shows_the_same(f"throughput-{name}", app, size)


@running
async def test_in_ascii_and_on_the_overview(update: bool) -> None:
    async with dashboard(throughput_state(INCIDENT), lab=FakeLab(), ascii_only=True) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "records /s" in text(app), "the plots")
        shown = text(app)
        assert shown.isascii() and "?" not in shown.replace("? help", "")
        assert re.search(r"^[|].+x +all topics +9,043 +12,290\b", shown, re.MULTILINE)
        assert re.search(r"^ Spark \* ", shown, re.MULTILINE)
    for name in (RUNNING, FAILED):
        async with dashboard(throughput_state(name), lab=FakeLab()) as (app, _):
            fits(lines(app), (120, 40))
            agrees(f"overview-spark-{name}-120x40", drawn_text(app), update)


def rates_shown(shown: str, name: str) -> tuple[str, ...]:
    """The figures in the row of that name."""
    found = re.search(rf"^.{{2}}. +{name} +(\S+) +(\S+)", shown, re.MULTILINE)
    assert found, f"{name} is not listed\n{shown}"
    return found.groups()


@running
async def test_the_list_shows_the_windows_of_the_rollups() -> None:
    view = throughput_state(RUNNING)
    rollups = view.aggregates.rollups
    end_s = whole_until_s(rollups, view.snapshot.observation.ended_ms)
    async with dashboard(view) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "TOPICS 10 s" in text(app), "the list")
        for kind, keys in ((Kind.TOPIC, []), (Kind.BROKER, ["right"]), (Kind.GROUP, ["right"])):
            await press(pilot, keys)
            found = window(rollups, kind, end_s, 10)
            for row, name in enumerate(found.names):
                if name.startswith("__"):
                    continue
                rates = (
                    [found.out_rate[row]] if kind is Kind.GROUP else [found.in_rate[row], found.out_rate[row]]
                )
                assert rates_shown(text(app), name)[: len(rates)] == tuple(f"{rate:,.0f}" for rate in rates)


@pytest.mark.parametrize("name", [STARTING, FAILED, OFF])
@running
async def test_without_rollups_of_the_moment_rates_are_direct(name: str) -> None:
    view = throughput_state(name)
    async with dashboard(view) as (app, pilot):
        assert "THROUGHPUT direct" in text(app)
        await press(pilot, ["6"])
        await until(pilot, lambda: "· direct rates" in text(app), "the words")
        row = list(view.topics.topic).index("payment")
        rates = view.topics.in_rate[row], topic_readers(view).out_rate[row]
        assert rates_shown(text(app), "payment") == tuple(f"{rate:,.0f}" for rate in rates)
        await press(pilot, ["left"])
        row = list(view.snapshot.groups.group).index("billing")
        assert rates_shown(text(app), "billing")[0] == f"{view.groups.read_rate[row]:,.0f}"


@running
async def test_the_head_says_how_the_job_is_doing() -> None:
    heads = {
        RUNNING: r"Spark ● running · 10 s windows · figures 1\.\d s old",
        STARTING: r"Spark ◌ starting 3 s · direct rates",
        FAILED: r"Spark ✕ failed: Java was killed \(SIGKILL\) · direct rates "
        r"· retrying in 7 s · \^r restarts it now",
        OFF: r"Spark ○ off: --no-spark · direct rates",
    }
    for name, head in heads.items():
        async with dashboard(throughput_state(name)) as (app, pilot):
            await press(pilot, ["6"])
            await until(pilot, lambda: "  cluster" in text(app), "the screen")
            assert re.search(head, text(app)), text(app)


@running
async def test_the_head_counts_down_between_views() -> None:
    async with dashboard(throughput_state(FAILED)) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "retrying in 7 s" in text(app), "the countdown")
        app.clock_ms.now_ms += 3_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "retrying in 4 s" in text(app), "one that has gone on")


@running
async def test_a_lost_broker_is_counted_in_seconds_and_plotted() -> None:
    async with dashboard(throughput_state(RUNNING)) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "no partition problems" in text(app), "calm")
        assert "without a live leader" not in text(app)
        app.session.feed.show(throughput_state(INCIDENT))  # type: ignore[attr-defined]
        said = "✕ 11 s without a leader · 36 s leader silent · 1 m 39 s under"
        await until(pilot, lambda: said in text(app), "it")
        assert "partitions without a live leader" in text(app)


@pytest.mark.parametrize("live", [True, False])
@running
async def test_old_figures_claim_nothing_for_the_time_after_their_end(live: bool) -> None:
    view = replace(throughput_state(FAILED), moment=Moment(live=live))
    end_s = whole_until_s(view.aggregates.rollups, view.snapshot.observation.ended_ms)
    ends = words.clock(end_s * 1000, UTC, tenths=False)
    async with dashboard(view) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "[5 m]" in text(app), "the screen")
        shown = text(app)
        assert re.search(rf"● no partition problems in 4 m \d+ s up to {ends}", shown), shown
        assert f"up to {ends} 5 m" in shown and "last 5 m" not in shown
        assert f" {ends} │" in shown or re.search(rf" {ends} *$", shown, re.MULTILINE), "the axes end there"
        assert not re.search(r"−5 m +now", shown) and " 0 s " not in shown


@running
async def test_windows_keep_their_names_while_they_are_not_full() -> None:
    view = script()[FIRST_MINUTE_S]
    async with dashboard(view) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "[5 m]" in text(app), "the screen")
        assert re.search(r"last 5 m, 5\d s so far +1 m \[5 m\] 1 h", text(app)), text(app)
        assert re.search(r"RECORDS /s +10 s +1 m +5 m", text(app)), text(app)
        assert re.search(r"^ in +[\d,]+ +– +– ", text(app), re.MULTILINE), (
            "a window that is not full has no figure"
        )
        assert "without a live leader" not in text(app) and "−1 m" in text(app), "plots fit what there is"
        await press(pilot, ["w"])
        await until(pilot, lambda: "[1 h]" in text(app), "the hour")
        assert "−1 h" not in text(app)


@running
async def test_the_first_row_has_the_worst_sign_of_the_rows_below_it() -> None:
    async with dashboard(throughput_state(RUNNING)) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "all topics" in text(app), "the topics")
        assert re.search(r"^▸   +all topics ", text(app), re.MULTILINE), text(app)
        await press(pilot, ["left"])
        await until(pilot, lambda: "all groups" in text(app), "the groups")
        assert re.search(r"^▸ ▲ +all groups ", text(app), re.MULTILINE), text(app)


@running
async def test_a_sum_that_leaves_out_groups_is_a_lower_bound() -> None:
    view = throughput_state(OFF)
    partly = replace(view, throughput=replace(view.throughput, out_is_bound=True))
    async with dashboard(partly, size=(200, 50)) as (app, pilot):
        assert re.search(r"THROUGHPUT direct rates.* out ≥", text(app)), text(app)
        await press(pilot, ["6"])
        await until(pilot, lambda: "all topics" in text(app), "the list")
        assert rates_shown(text(app), "all topics")[1].startswith("≥")
        app.session.feed.show(view)  # type: ignore[attr-defined]
        await until(pilot, lambda: "≥" not in rates_shown(text(app), "all topics")[1], "the whole sum")


@running
async def test_what_is_selected_is_drawn_and_opened() -> None:
    async with dashboard(throughput_state(RUNNING)) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "  cluster" in text(app), "the cluster")
        await press(pilot, ["down", "down"])
        assert re.search(r"→  invoice  +last 5 m", text(app)), text(app)
        await press(pilot, ["enter"])
        await until(pilot, lambda: isinstance(app.screen, TopicScreen), "the topic")
        await press(pilot, ["escape"])
        await until(pilot, lambda: "→  invoice  " in text(app), "the way back")
        await press(pilot, ["left", "home", "down", "down"])
        assert "→  group billing  " in text(app) and "bytes in" not in text(app)
        assert "↑ written  ↓ read" in text(app) and "lag, last minute" in text(app)
        await press(pilot, ["enter"])
        await until(pilot, lambda: isinstance(app.screen, GroupScreen), "the group")


@running
async def test_enter_on_the_cluster_says_what_enter_opens() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["6"])
        await until(pilot, lambda: "all topics" in text(app), "the list")
        await press(pilot, ["enter"])
        await until(pilot, lambda: "Enter opens topics, groups and brokers" in text(app), "the line")


@running
async def test_another_stretch_of_time() -> None:
    async with dashboard(throughput_state(RUNNING)) as (app, pilot):
        await press(pilot, ["6"])
        for stretch in ("5 m", "1 h", "1 m", "5 m"):
            await until(pilot, lambda s=stretch: f"last {s}" in text(app) and f"[{s}]" in text(app), stretch)  # type: ignore[misc]
            await press(pilot, ["w"])


@running
async def test_a_paused_view_ends_at_its_moment() -> None:
    view = replace(
        script()[FOUR_MINUTES_S],
        aggregates=Aggregates(SPARK_RUNS, rollups()[-1]),
        moment=Moment(live=False, playing=False),
    )
    async with dashboard(view) as (app, pilot):
        app.clock_ms.now_ms += 3_600_000  # type: ignore[attr-defined]
        await press(pilot, ["6"])
        await until(pilot, lambda: "figures up to 08:57:" in text(app), "the moment")
        shown = text(app)
        assert (
            re.search(r"no partition problems in \d m (?:\d+ s )?up to 08:57:\d\d", shown)
            and "now" not in shown
        )
        found = window(
            view.aggregates.rollups, Kind.CLUSTER, view.snapshot.observation.ended_ms // 1000 - 1, 10
        )
        assert rates_shown(shown, "all topics")[0] == f"{found.in_rate[0]:,.0f}"


class FakeJob:
    """A Spark job that only counts its starts, and hears who watches."""

    starts = 0
    is_watched = False

    def restart(self) -> None:
        """Count a start."""
        self.starts += 1

    def watch(self, is_watched: bool) -> None:
        self.is_watched = is_watched


@running
async def test_ctrl_r_starts_the_job_where_there_is_one() -> None:
    job = FakeJob()
    async with dashboard(throughput_state(FAILED), spark=job) as (app, pilot):
        await press(pilot, ["6", "ctrl+r"])
        assert job.starts == 1
        await until(pilot, lambda: "starting Spark" in text(app), "the message")
    async with dashboard(throughput_state(FAILED)) as (app, pilot):
        await press(pilot, ["6", "ctrl+r", "question_mark"])
        assert "start Spark" not in text(app)


@running
async def test_the_job_hears_whether_its_figures_are_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen that is mounted ahead is not shown."""
    monkeypatch.setattr("kview.tui.app.MOUNT_AFTER_S", 0.001)
    monkeypatch.setattr("kview.tui.app.MOUNT_EVERY_S", 0.001)
    job = FakeJob()
    async with dashboard(throughput_state(RUNNING), spark=job) as (app, pilot):
        await until(pilot, lambda: has_mounted_ahead(app), "the other screens")
        await pilot.pause()
        assert job.is_watched
        for key, is_watched in (("1", True), ("3", False), ("6", True), ("5", False)):
            await press(pilot, [key])
            await until(pilot, lambda: job.is_watched is is_watched, f"screen {key}")  # noqa: B023


@running
async def test_aggregates_that_come_later_are_shown() -> None:
    running_view, off = throughput_state(RUNNING), throughput_state(OFF)
    async with dashboard(off) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        await press(pilot, ["6"])
        await until(pilot, lambda: "Spark is off." in text(app), "no plots")
        app.session.feed.show(replace(off, aggregates=running_view.aggregates))
        await until(pilot, lambda: "records /s" in text(app), "the plots")


def test_rollups_that_end_long_before_the_moment_do_not_count_for_it() -> None:
    options = Options()
    view = throughput_state(RUNNING)
    assert covered_until_s(view, options) == view.snapshot.observation.ended_ms // 1000 - 1
    assert covered_until_s(throughput_state(FAILED), options) is None
    slower = Options(stale_ms=60_000)
    assert covered_until_s(throughput_state(FAILED), slower) is not None


def test_a_job_that_began_after_the_moment_says_nothing_of_it() -> None:
    view = replace(script()[EARLY_S], aggregates=Aggregates(SparkStatus(SparkState.RUNNING), later()))
    assert covered_until_s(view, Options()) is None


def later() -> Rollups:
    """Roll-ups that begin after second 5 of the script."""
    return replace(rollups()[-1], from_ms=snapshots()[EARLY_S + 4].observation.ended_ms)


def test_topics_have_the_same_direct_rates_out_as_in_the_list_of_topics() -> None:
    view = state(HEALTHY)
    expected = dict(zip(view.topics.topic.tolist(), topic_readers(view).out_rate.tolist(), strict=True))
    shown = {entry.label: entry.out_rate for (entry,) in _topics(view, Options())}
    assert shown["invoice"] == expected["invoice"] > 0
