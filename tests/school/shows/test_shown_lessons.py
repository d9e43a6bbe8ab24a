"""Demos on the screen, played by a person's keys on the engine's stage."""

import re

import pytest

from kview.model.lab import Command, CommandKind
from kview.school.conduct import Conduct, Phase
from kview.school.shows.answer_list import AnswerList
from kview.school.shows.drill import DrillShow
from kview.school.shows.lesson import LessonShow
from kview.tui.app import KviewApp
from tests.school.shows.lesson_stage import Class, lesson, shown_demo
from tests.tui.harness import FakeTimeline, lines, running, text


def conduct(taken: Class) -> Conduct:
    """The lesson that goes on."""
    show = shown_demo(taken.app)
    assert isinstance(show, LessonShow)
    return show.conduct


async def finish(taken: Class, most_s: int = 40) -> None:
    """Let time pass until the step is done."""
    while conduct(taken).phase is not Phase.DONE:
        most_s -= 1
        assert most_s, text(taken.app)
        await taken.second()


@pytest.mark.quick(1)
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
@running
async def test_a_lesson_is_played_by_keys_to_its_end(size: tuple[int, int]) -> None:
    async with lesson("follower-crash", size=size) as taken:
        app = taken.app
        place = "DEMO A follower crashes and comes back · step 1 of 5"
        place = place if size[0] > 80 else "A follower crashes and comes back · 1/5"
        assert re.search(rf"── {place} .*space next step  Esc leave", text(app)), "the title is not cut"
        assert "✓ broker 3 leads invoice-1" in text(app)
        await taken.press("space")
        assert "? The leader of invoice-1 lives" in text(app)
        assert "1 yes, the leader is alive" in text(app)
        await taken.press("1")
        assert "✕ Not quite. The right answer was: no, not until broker 4 is declared dead." in text(app)
        assert "► press K (Shift+k) to crash broker 4" in text(app)  # the lesson has selected it
        assert app.screen.selected_broker() == 4  # type: ignore[attr-defined]
        await taken.press("K")
        await taken.second(2)
        assert "✕ silent" in text(app)
        await finish(taken)
        for _ in range(3):
            await taken.press("space")
            if conduct(taken).phase is Phase.PRESS:
                assert "► press B (Shift+b) to bring broker 4 back" in text(app)
                await taken.press("B")
            await finish(taken)
        assert "partition invoice-1 isr" not in text(app)  # no words of the file on the screen
        assert "invoice-1 ISR: 1, 3 → 1, 3, 4" in text(app) or size == (80, 24)
        await taken.press("space")
        assert "Your answer was not right, but now you know why." in " ".join(text(app).split())
        assert all(len(line) == size[0] for line in lines(app))


@running
async def test_a_wrong_key_is_noticed_and_taken_back() -> None:
    async with lesson("follower-crash") as taken:
        app = taken.app
        await taken.press("space", "2")
        app.faults.give(Command(CommandKind.CRASH, 3))
        await taken.second()
        assert "The demo did not ask for this: broker 3 crashed." in text(app)
        assert "B (restore 3) undoes it" in text(app)
        assert conduct(taken).phase is Phase.PRESS
        await taken.press("K")
        await taken.second(20)
        assert conduct(taken).phase is Phase.WATCH  # nothing is judged while the wrong broker is down
        app.faults.give(Command(CommandKind.START, 3))
        await taken.second()
        assert "did not ask" not in text(app)
        app.faults.give(Command(CommandKind.START, 4))
        await taken.second()
        assert "the demo still needs broker 4 crashed. Select it and press K" in text(app)


@running
async def test_what_to_look_at_is_marked_and_in_sight() -> None:
    async with lesson("leader-crash") as taken:
        marked = [line for line in lines(taken.app) if "►" in line.split("──")[0]]
        assert any("►●● ○○○○" in line for line in marked), "what broker 4 leads"
        assert any(line.split()[:3] == ["►", "invoice", "3"] for line in marked)
        await taken.press("space")  # the leader's cell
        assert any("►4●·0" in line or "►4·0" in line for line in lines(taken.app))


@running
async def test_a_column_that_a_step_marks_is_shown_on_a_small_screen() -> None:
    async with lesson("hot-key", size=(80, 24)) as taken:
        assert any("leader·ep" in line and "in rec/s" in line for line in lines(taken.app)), text(taken.app)


@running
async def test_partitions_are_marked_among_all_brokers_on_a_small_screen() -> None:
    async with lesson("placement", size=(80, 24)) as taken:
        await taken.press("space")
        await taken.second()
        brokers = [line for line in lines(taken.app) if "● up " in line]
        leaders = [line.split("up")[1].split()[0] for line in brokers]
        assert leaders == ["►P0●", "►P1●", "►P2●", "P3●", "P4●", "P5●"]
        await taken.press("space")
        assert any("►P0● ►P6●" in line for line in lines(taken.app))


@pytest.mark.slow  # the lesson itself, and each column, are tested without a screen
@running
async def test_the_wait_of_a_write_has_a_column_on_a_small_screen() -> None:
    async with lesson("stop-or-crash", size=(80, 24)) as taken:
        for keys in (["2", "S"], ["B"], ["K"]):
            await taken.press(*keys)
            await finish(taken)
            await taken.press("space")
        await taken.second()
        assert any("waited ≤" in line for line in lines(taken.app))
        assert any("broker 1 left" in line and " nobody " in line for line in lines(taken.app))
        assert "was killed" not in text(taken.app), "the status line is about this step"


@running
async def test_the_screen_that_shows_it_is_opened() -> None:
    async with lesson("groups") as taken:
        app, seen = taken.app, set()
        while conduct(taken).phase is not Phase.OVER:
            seen.add(type(app.screen).__name__)
            if (question := conduct(taken).staged.step.question) and conduct(taken).phase is Phase.QUESTION:
                await taken.press(str(question.right))
            if conduct(taken).phase is not Phase.DONE:
                await finish(taken, 80)
            await taken.press("space")
            await taken.second()
        assert "GroupScreen" in seen


@running
async def test_backspace_shows_the_step_before_and_space_returns() -> None:
    timeline = FakeTimeline()
    async with lesson("leader-crash", timeline=timeline) as taken:
        app = taken.app
        at_ms = taken.demos.now_ms()
        await taken.press("space")
        await taken.press("backspace")
        assert timeline.asked == [("seek", conduct(taken).played[0].at_ms)]
        assert at_ms - 2_000 <= conduct(taken).played[0].at_ms <= at_ms
        assert "step 1 of 6" in text(app) and "The cluster does not go back: space returns to now" in text(
            app
        )
        await taken.press("space")
        assert "step 2 of 6" in text(app)


@pytest.mark.slow
@running
async def test_it_runs_by_itself() -> None:
    async with lesson("leader-crash") as taken:
        await taken.press("a")
        for _ in range(300):
            if conduct(taken).phase is Phase.OVER:
                break
            await taken.second()
        assert conduct(taken).phase is Phase.OVER
        assert taken.demos.stage.cluster.faults.active() == []


@running
async def test_escape_leaves_and_d_starts_another_on_a_fresh_cluster() -> None:
    async with lesson("leader-crash", size=(80, 24)) as taken:
        app = taken.app
        await taken.press("escape")
        assert "you have left the demo; its cluster keeps running · D lists the demos" in text(app)
        assert "DEMO" not in text(app)
        await taken.press("1")  # a screen again, and no answer
        await taken.press("D")
        assert "Enter starts one, in place of this cluster" in text(app)
        await taken.press("down", "enter")
        await taken.second()
        assert taken.demos.started == ["keys"]
        assert "step 1 of 4" in text(app)
        await taken.press("ctrl+r")
        await taken.second()
        assert taken.demos.started == ["keys", "keys"]


@running
async def test_a_demo_is_found_by_name() -> None:
    async with lesson("leader-crash") as taken:
        await taken.press("colon", *"demo hang")
        assert "demo hang" in text(taken.app)
        await taken.press("enter")
        await taken.second()
        assert taken.demos.started == ["hang"]


@running
async def test_large_captions() -> None:
    async with lesson("leader-crash") as taken:
        await taken.press("ctrl+l")
        assert "Ｂｒｏｋｅｒ" in text(taken.app)
        await taken.press("ctrl+l")
        assert "Ｂｒｏｋｅｒ" not in text(taken.app)


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
@running
async def test_every_line_fits(size: tuple[int, int]) -> None:
    async with lesson("acks", size=size) as taken:
        for keys in (["space"], ["space", "1"], ["ctrl+l"]):
            await taken.press(*keys)
            await taken.second()
            assert all(len(line) <= size[0] for line in lines(taken.app))
            assert text(taken.app).startswith(" kview ▸ simulated ")


@running
async def test_a_drill_shows_symptoms_alone_until_it_is_answered() -> None:
    async with lesson(
        "incident",
        seed=26,  # broker 2 crashes
    ) as taken:
        app = taken.app
        show = shown_demo(app)
        assert isinstance(show, DrillShow)
        assert "All is well so far" in text(app)
        await taken.second(12)
        await taken.press("a")
        assert "press a again to give up" in text(app)
        dead = show.exercise.targets[0].name
        assert show.exercise.answer == "crash"
        shown = text(app)
        assert f" {dead} ✕ silent" in shown
        assert "in force" not in shown and "killed" not in shown and "restore" not in shown
        await taken.press("ctrl+t")
        assert show.exercise.hints[0] in text(app)
        await taken.press("space")
        assert "WHAT WAS HIT?" in text(app)
        answers = app.screen.query_one(AnswerList)
        await taken.press("up")
        assert answers.index == len(answers.keys) - 1, "the first one follows the last one"
        await taken.press("down")
        assert answers.index == 0
        await taken.press("end", "enter")  # something else
        await taken.press("enter")
        assert "No, that is not what happened (1 wrong answer so far)" in text(app)
        await taken.press("space", *["down"] * int(dead), "enter", "enter")
        assert f"Right: broker {dead} crashed. Your time: 0:" in text(app)
        assert f"broker {dead} is silent" in text(app) and "with 1 hint and 1 wrong answer" in text(app)


@running
async def test_a_drill_announces_nothing_and_asks_before_it_ends() -> None:
    async with lesson("incident", seed=2, size=(80, 24)) as taken:  # controller 103 crashes
        app = taken.app
        await taken.second(14)
        assert "103 is down" not in text(app) and "the headline is hidden" in text(app)
        assert re.search("quorum .* 103 ✕ silent", text(app))
        await taken.press("end")
        assert "▸103 ✕" in text(app) and "Enter open" not in text(app)
        await taken.press("home")
        assert "Enter open" in text(app)
        await taken.press("escape")
        assert "press Esc again to leave" in text(app) and "INCIDENT" in text(app)
        await taken.press("ctrl+t", "escape")
        assert "INCIDENT" in text(app), "another key was pressed in between"
        begun = shown_demo(taken.app)
        await taken.press("ctrl+r")
        assert "press ^r again to give this one up and begin another" in text(app)
        assert shown_demo(taken.app) is begun
        await taken.press("space", "end", "enter")
        assert "WHAT HAPPENED?" in text(app) and "a broker crashed" not in text(app)
        await taken.press("down", "down", "enter")
        await taken.second()
        assert "Right: controller 103" in text(app) and "controller 103 lost" in text(app)
        await taken.press("escape")
        assert "you have left the demo" in text(app), "the answer is known: nothing is lost"


def brokers_shown(app: KviewApp) -> list[str]:
    """The brokers of the tiles, from top to bottom."""
    tiles = [re.findall(r"[▸► ](\d) [●✕] ", line) for line in lines(app) if re.match(r"[► ] R\d ", line)]
    return [broker for line in tiles for broker in line]


@running
async def test_brokers_keep_their_places_while_captions_of_different_height_come_and_go() -> None:
    async with lesson("bootstrap", size=(80, 24)) as taken:
        app = taken.app
        for keys in ([], ["space"], ["1"], ["space"], ["S"], ["space"]):
            await taken.press(*keys)
            await taken.second()
            if type(app.screen).__name__ == "OverviewScreen":
                assert brokers_shown(app) == list("012345"), text(app)


@running
async def test_a_message_of_two_lines_takes_a_row_and_not_the_lines_below() -> None:
    async with lesson("leader-crash", size=(80, 24)) as taken:
        app = taken.app
        await taken.press("escape")
        await taken.press("K")
        await taken.second(2)
        assert "its session ends · B restore 4" in text(app)
        assert re.search(r"^  GROUPS", text(app), re.M) and re.search(r"^  EVENTS", text(app), re.M)
        found = re.search(r"PARTITIONS worst first.* (\d+)–(\d+) of 10", text(app))
        assert found, text(app)
        rows = [line for line in lines(app) if re.match(r"[ ▸]  ?invoice ", line)]
        assert len(rows) == int(found[2]) - int(found[1]) + 1
