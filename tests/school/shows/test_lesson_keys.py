"""The key line and the head of a demo's caption say what the keys do now."""

import re

import pytest

from kview.tui.text import content
from kview.tui.widgets.caption import Caption, caption_lines
from kview.tui.widgets.table import Table
from tests.school.shows.lesson_stage import Class, lesson
from tests.tui.harness import lines as drawn
from tests.tui.harness import running, text


def keys(taken: Class) -> str:
    """The key line."""
    return text(taken.app).splitlines()[-1]


def head(taken: Class) -> str:
    """The head of the caption."""
    return next(line for line in drawn(taken.app) if line.startswith("── "))


@pytest.mark.slow  # those of a drill do the same
@pytest.mark.parametrize("size", [(80, 24), (60, 15), (200, 50)])
@running
async def test_the_keys_say_what_they_do_now(size: tuple[int, int]) -> None:
    async with lesson("leader-crash", size=size) as taken:

        def space_does(what: str) -> None:
            shown = head(taken)
            assert f" space {what} " in shown if what else not re.search(r"\bspace\b", shown), shown
            assert "Esc leave" in shown and len(shown) == size[0]
            assert not re.search(r"\b(space|Esc)\b", keys(taken)), "each key is named once"

        space_does("next step")
        await taken.press("space")
        space_does("")
        assert "1–3 answer" in head(taken) and "answer" not in keys(taken)
        await taken.press("backspace")
        space_does("back to now")
        assert "answer" not in keys(taken)
        await taken.press("space", "2")
        space_does("")
        assert "K crash" in keys(taken), "the key that the step waits for"
        await taken.press("K")
        await taken.second()
        space_does("skip?")
        listed = taken.app.screen.query_one("#partitions", Table)
        assert size[1] < 24 or len(listed.in_sight) >= 6, "under the caption and the message"
        await taken.press("space")
        space_does("skip")
        assert "press space again" in text(taken.app)
        await taken.second(10)
        space_does("next step")
        assert "press space again" not in text(taken.app), "what was pressed early is forgotten"
        for wait_s in (9, 11):
            await taken.press("space")
            await taken.second(wait_s)
        await taken.press("space")
        assert "B restore 4" in keys(taken)
        await taken.press("B")
        await taken.second(21)
        await taken.press("space")
        await taken.second()
        space_does("finish")
        await taken.press("space")
        assert "space next demo" in keys(taken)
        assert "by itself" not in keys(taken), "there is nothing left that could"
        assert "Esc leave" in head(taken)


@running
async def test_escape_leaves_the_demo_where_it_would_leave_the_screen() -> None:
    async with lesson("groups", size=(80, 24)) as taken:
        assert type(taken.app.screen).__name__ == "GroupScreen"
        assert "Esc leave" in head(taken) and "Esc" not in keys(taken)


@running
async def test_the_keys_of_a_drill_say_what_they_do_now() -> None:
    async with lesson("incident", seed=26, size=(80, 24)) as taken:
        assert not re.search(r"\bspace\b", keys(taken)), "there is nothing to answer yet"
        await taken.second(12)
        assert "space answer  Esc leave" in head(taken)
        await taken.press("a", "a")
        assert "space the moment of the fault  Esc leave" in head(taken)
        assert "^r another one" in keys(taken)


@pytest.mark.parametrize("cells", [60, 80, 120])
@pytest.mark.parametrize("title", ["", "x" * 249, "宽" * 124, "A clean stop and a crash, side by side"])
def test_a_title_yields_to_the_keys(cells: int, title: str) -> None:
    shown = (("space", "skip the wait"), ("Esc", "leave"), ("Backspace", "back"))
    caption = Caption(f"DEMO {title}".strip(), "step 30 of 30, by itself", (), shown)
    made = content(caption_lines(caption, cells, 4, False)[0])
    assert "space skip the wait  Esc leave" in made
    assert made.startswith("── DEMO")
    assert "step 30 of 30" in made or cells == 60
