"""The screen of all clusters: its frames and rows, their order, and the way in and back."""

import numpy as np
import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual.events import Key

from kview.derive.view import Verdict
from kview.model.events import Severity
from kview.model.notices import Notice, NoticeKind
from kview.tui.options import HOLD_MS
from kview.tui.widgets.fleet import Frames, HeldOrder, arranged, lag_of, worst
from kview.tui.widgets.header import Member
from tests.tui.fleets import NOW_MS, fleet, healthy, member, seen, troubled, unreached
from tests.tui.harness import HEALTHY, FakeFeed, drawn_lines, drawn_text, press, running, state, text, until
from tests.tui.test_screens import agrees, update  # noqa: F401

SIZES = [(80, 24), (120, 40)]


@pytest.mark.parametrize("size", SIZES)
@running
async def test_the_clusters_in_their_frames(size: tuple[int, int], update: bool) -> None:  # noqa: F811
    async with fleet(*healthy(), size=size) as (app, _, _):
        agrees(f"fleet-healthy-{size[0]}x{size[1]}", drawn_text(app), update)
    async with fleet(*troubled(), size=size) as (app, _, _):
        agrees(f"fleet-trouble-{size[0]}x{size[1]}", drawn_text(app), update)


@pytest.mark.parametrize("number", [2, 5, 12, 40])
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@running
async def test_no_cluster_is_left_out_without_a_word(number: int, size: tuple[int, int]) -> None:
    clusters = [member(f"c{at:02}", seen(HEALTHY)) for at in range(number)]
    async with fleet(*clusters, size=size) as (app, pilot, _):
        shown = drawn_lines(app)
        assert all(cell_len(line) <= size[0] for line in shown)
        named = sum(f"c{at:02}" in text(app) for at in range(number))
        assert named == number or f"+{number - named} more" in text(app)
        await press(pilot, ["end"])
        assert f"c{number - 1:02}" in text(app)


@running
async def test_ascii_needs_no_other_signs() -> None:
    async with fleet(*troubled(), ascii_only=True) as (app, _, _):
        assert drawn_text(app).isascii()


@running
async def test_one_that_dies_says_so_with_a_growing_age_and_the_other_stays_current() -> None:
    async with fleet(member("a", seen(HEALTHY)), member("b", seen(HEALTHY))) as (app, pilot, of):
        assert "2 of 2 current" in text(app)
        for seconds in (5, 9):
            of.clock.now_ms = NOW_MS + seconds * 1000
            of.members[0] = member("a", seen(HEALTHY, ago_ms=-seconds * 1000))
            await until(pilot, lambda: "1 of 2 current" in text(app), "one that is late")
            await until(pilot, lambda: f"no new figures for {seconds} s" in text(app), "its age")  # noqa: B023
            assert "6 of 6 answer" in text(app)


@running
async def test_enter_shows_the_cluster_and_escape_leads_back() -> None:
    async with fleet(*troubled()) as (app, pilot, of):
        await press(pilot, ["/", "d", "e", "v", "enter", "enter"])
        await until(pilot, lambda: app.session.members is None and app.view is not None, "the cluster")
        assert of.opened == ["dev"]
        assert "SILENT" in text(app) or "silent" in text(app)
        await press(pilot, ["5", "escape"])
        await until(pilot, lambda: app.where() == ("fleet", 1), "all clusters")
        assert "4 clusters" in text(app)
        assert app.screen.query_one(Frames).selected == "dev"


@running
async def test_a_key_leads_to_all_clusters_from_any_screen() -> None:
    async with fleet(*troubled()) as (app, pilot, _):
        app.open_cluster("dev")
        await until(pilot, lambda: app.view is not None, "the cluster")
        await press(pilot, ["5", "enter", "0"])
        await until(pilot, lambda: app.where() == ("fleet", 1), "all clusters")


@running
async def test_no_other_change_comes_between_the_steps_of_one() -> None:
    async with fleet(*healthy()) as (app, pilot, of):
        app.open_cluster("prod-eu")
        app.open_cluster("prod-us")
        app.post_message(Key("5", "5"))
        await until(pilot, lambda: app.where() == ("groups", 1) and app.view, "the screen of the key")
        assert of.opened == ["prod-eu"], "the second click was meant for the frames"
        feed = app.session.feed
        assert isinstance(feed, FakeFeed)
        feed.on_stop = lambda: app.open_cluster("prod-us")
        await press(pilot, ["escape"])
        await until(pilot, lambda: app.where() == ("fleet", 1), "all clusters")
        assert of.opened == ["prod-eu"]
        await press(pilot, ["enter"])
        await until(pilot, lambda: app.where() == ("overview", 1) and app.view, "the cluster")


@running
async def test_what_is_to_be_said_at_first_is_said_among_all_clusters() -> None:
    notice = Notice(NoticeKind.HOOK_FAILED, {"reason": "exit code 1", "text": "x"})
    async with fleet(*healthy(), opening=notice) as (app, pilot, _):
        await until(pilot, lambda: "exit code 1" in text(app), "the notice")


@running
async def test_keys_about_one_cluster_do_nothing_here_and_help_leaves_them_out() -> None:
    async with fleet(*troubled()) as (app, pilot, _):
        await press(pilot, ["5"])
        assert "does nothing here" in text(app) and app.where() == ("fleet", 1)
        await press(pilot, ["question_mark"])
        assert "filter" in text(app) and "consumer groups with their lag" not in text(app)


@running
async def test_a_click_opens_a_frame() -> None:
    async with fleet(*healthy()) as (_, pilot, of):
        await pilot.click("#fleet", offset=(10, 20))
        await until(pilot, lambda: bool(of.opened), "the cluster")
        assert of.opened == ["prod-us"]


def test_the_order_is_as_given_until_something_is_wrong_and_is_then_held() -> None:
    order = HeldOrder()

    def names(now_ms: int, **bad: Member) -> str:
        view = seen(HEALTHY, ago_ms=NOW_MS - now_ms)
        view = replace(view, headline=replace(view.headline, severity=Severity.GOOD, findings=()))
        well = {name: member(name, view) for name in "abc"}
        return "".join(each.name for each in order.of([*(well | bad).values()], now_ms))

    assert names(NOW_MS) == "abc"
    assert names(NOW_MS + 1, c=unreached("c")) == "cab"
    assert names(NOW_MS + 2, b=unreached("b"), c=unreached("c")) == "cab", "held"
    assert names(NOW_MS + 1 + HOLD_MS, b=unreached("b"), c=unreached("c")) == "bca"
    assert names(NOW_MS + 2 + 2 * HOLD_MS) == "abc"


@pytest.mark.parametrize(
    ("notice", "ago_ms", "said", "severity"),
    [
        (Notice(NoticeKind.OBSERVING_FAILED, {"bug": "x"}), 0, "no new figures", Severity.RISK),
        (Notice(NoticeKind.SOURCE_RESTARTED), 0, "restarted", Severity.WARN),
        (None, 30_000, "no new figures", Severity.RISK),
    ],
)
def test_what_is_said_of_a_cluster_is_as_bad_as_it_is(
    notice: Notice | None, ago_ms: int, said: str, severity: Severity
) -> None:
    of = member("a", seen(HEALTHY, ago_ms), notice)
    assert worst(of, NOW_MS) == (said, severity)


def test_frames_are_as_high_as_they_can_be_and_do_not_overlap() -> None:
    for number in (1, 2, 3, 5, 7, 12, 24, 60):
        for cells, rows in ((60, 11), (80, 20), (120, 36), (200, 46)):
            placed = arranged(number, cells, rows, has_edges=rows > 25)
            if placed is None:
                assert number * 3 > rows * max(1, cells // 38) - 3 * max(1, cells // 38)
                continue
            filled = {
                (x, y)
                for box in placed.boxes
                for x in range(box.x, box.x + box.width)
                for y in range(box.y, box.y + box.height)
            }
            assert len(filled) == sum(box.width * box.height for box in placed.boxes)
            assert max(x for x, _ in filled) < cells and max(y for _, y in filled) < rows


def test_the_lag_leaves_out_groups_that_nobody_waits_for_and_says_what_is_a_bound() -> None:
    view = state(HEALTHY)
    rows = np.flatnonzero(view.groups.behind_ms > 0)
    last = rows[view.groups.behind_ms[rows].argmax()]
    whole = lag_of(view)
    bound = view.groups.behind_is_bound
    assert whole.behind_ms == view.groups.behind_ms[last] and bound[last] and whole.behind_is_bound
    assert not lag_of(replace(view, groups=replace(view.groups, behind_is_bound=~bound))).behind_is_bound
    verdict = view.groups.verdict.copy()
    verdict[last] = Verdict.ABANDONED
    left = lag_of(replace(view, groups=replace(view.groups, verdict=verdict)))
    assert left.records == whole.records - view.groups.lag[last]
    assert left.behind_ms < whole.behind_ms and not left.behind_is_bound
