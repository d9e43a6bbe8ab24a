"""A small screen leaves its room to what a demo's step is about."""

import pytest

from tests.school.shows.lesson_stage import lesson
from tests.tui.harness import lines, running, text


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
@running
async def test_the_replica_that_falls_behind_is_in_sight_and_its_log_end_is_marked(
    size: tuple[int, int],
) -> None:
    async with lesson("replication", size=size) as taken:
        await taken.press("space")
        await taken.second(2)
        await taken.press("space", "2")
        await taken.second(4)
        assert "broker 2 has at least 600 records of invoice-0 still to copy" in " ".join(
            text(taken.app).split()
        )
        marked = [line for line in lines(taken.app) if "►" in line and "space:" not in line]
        assert len(marked) == 1 and marked[0].startswith("► 2 ○"), marked
        assert " lag " in marked[0]


@running
async def test_what_a_group_may_not_read_is_marked_in_the_log() -> None:
    async with lesson("committed", size=(80, 24)) as taken:
        await taken.press("space", "2")
        await taken.press("H")  # broker 2 is selected once the screen has been drawn
        await taken.second(3)
        await taken.press("space")
        await taken.second()
        marked = [line for line in lines(taken.app) if "►" in line and "space:" not in line]
        assert len(marked) == 2, text(taken.app)
        assert marked[0].startswith("►") and "▒▒▒" in marked[0]
        assert "►statistics 30" in marked[1]


@running
async def test_marked_members_come_before_the_partitions() -> None:
    async with lesson("groups", size=(80, 24)) as taken:
        shown = text(taken.app)
        assert "MEMBERS  1" not in shown, "all of them are in sight"
        assert "▸ packing-0" in shown and "packing-1" in shown


@running
async def test_a_step_about_the_end_of_a_log_draws_it_large_until_z_is_pressed() -> None:
    async with lesson("replication", size=(80, 24)) as taken:
        assert "log start" in text(taken.app)
        await taken.press("space")
        assert "       the last " in text(taken.app)
        await taken.press("z")
        assert "log start" in text(taken.app)
