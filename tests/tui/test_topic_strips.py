"""The strips of topics: a sign for each partition, or the worst of several."""

import pytest
from msgspec.structs import replace

from kview.derive.view import View
from kview.language.glyphs import DEAD, FROZEN, OK, OUT_OF_SYNC, UNCOMMITTED
from kview.tui.options import Options
from kview.tui.rows.strip import strip
from kview.tui.rows.topic_strips import topic_strips
from kview.tui.text import Role, content, line_width
from tests.tui.harness import CRASH, FENCED, HEALTHY, dashboard, lines, running, state, until
from tests.tui.many import many
from tests.worlds import default_world, views, wide_snapshots


def of(view: View, topic: str) -> int:
    """The row of a topic."""
    return int((view.topics.topic == topic).argmax())


def test_each_partition_has_a_sign_in_its_place() -> None:
    view = state(CRASH)
    assert (
        content(strip(view, of(view, "invoice"), 60)) == f"{OK}{FROZEN * 2}{DEAD}{OK * 3}{FROZEN * 2}{DEAD}"
    )
    assert content(strip(view, of(view, "audit-log"), 60)) == f"{OK * 3}{DEAD}"
    healthy = state(HEALTHY)
    (calm,) = strip(healthy, of(healthy, "invoice"), 60)
    assert calm == (OK * 10, Role.DIM, -1, "", calm.shade), "health is grey"


@pytest.mark.quick(1)
@pytest.mark.parametrize("cells", [1, 7, 40, 60])
def test_a_cell_for_several_partitions_has_the_worst_of_them(cells: int) -> None:
    world = default_world()
    world.crash(4)
    *_, view = views(world.tick() for _ in range(5))
    made = strip(view, of(view, "invoice"), cells)
    assert line_width(made) == min(10, cells) and DEAD in content(made)
    *_, wide = views(wide_snapshots(10_000, 2))
    for row in range(len(wide.topics.topic)):
        shown = content(strip(wide, row, cells))
        assert len(shown) == min(cells, int(wide.topics.partitions[row]))
        if wide.topics.partitions[row] > 60:
            assert set(shown) <= {UNCOMMITTED, DEAD, FROZEN, OUT_OF_SYNC}
            assert (DEAD in shown) == (DEAD in content(strip(wide, row, 10_000)))


@pytest.mark.parametrize("cells", [60, 70, 120, 200])
@pytest.mark.parametrize("name", [HEALTHY, CRASH, FENCED])
def test_topics_stand_in_the_order_of_their_names_whatever_happens(name: str, cells: int) -> None:
    made = topic_strips(state(name), Options(), cells, 5)
    assert [content(each).split()[0] for each in made] == ["audit-log", "invoice", "payment"]
    assert all(line_width(each) <= cells for each in made)


def test_the_topics_in_trouble_come_first_where_not_all_have_a_line_and_the_others_are_counted() -> None:
    view = many(crashed=(2,), topics=30)
    for rows in (1, 2, 4, 9):
        made = [content(each) for each in topic_strips(view, Options(), 100, rows)]
        assert len(made) == rows and made[-1].strip() == f"+{31 - rows} more"
        shown = [line for line in made[:-1] if DEAD in line or FROZEN in line]
        bad = sum(severity == "risk" for severity in view.topics.severity[~view.topics.internal])
        assert len(shown) == min(bad, rows - 1)


def test_a_name_of_forty_letters_is_cut_in_its_middle_and_no_figure_is() -> None:
    view = state(HEALTHY)
    names = view.topics.topic.copy()
    names[of(view, "invoice")] = "x" * 20 + "y" * 20
    long = replace(view, topics=replace(view.topics, topic=names))
    made = [content(each) for each in topic_strips(long, Options(), 70, 5)]
    assert any("xx…yy" in line.replace("xxx", "x").replace("yyy", "y") or "…" in line for line in made)
    assert all(line.rstrip().endswith("/s") for line in made)


@running
async def test_the_overview_has_them_from_28_lines_on_and_no_panel_moves_in_a_crash() -> None:
    async with dashboard(state(HEALTHY), size=(120, 27)) as (app, _):
        assert not app.screen.query_one("#topic_strips").display
    async with dashboard(state(HEALTHY), size=(120, 40)) as (app, pilot):
        before = [at for at, line in enumerate(lines(app)) if "PARTITIONS" in line]
        assert any(line.startswith(f"  invoice    {OK * 10} ") for line in lines(app))
        app.session.feed.show(state(CRASH))  # type: ignore[attr-defined]
        await until(pilot, lambda: any(f"  audit-log  {OK * 3}{DEAD}" in line for line in lines(app)), "it")
        assert [at for at, line in enumerate(lines(app)) if "PARTITIONS" in line] == before
