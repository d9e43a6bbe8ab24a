"""A small screen leaves its room to what a demo's step is about."""

from tests.tui.harness import running, text
from tests.tui.lesson_stage import lesson


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
