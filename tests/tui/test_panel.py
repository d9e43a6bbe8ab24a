"""The edges of panels: a frame where there are lines enough, a line with the title elsewhere."""

import pytest

from kview.tui.layout import FRAMED_HEIGHT
from kview.tui.text import Line, Role, Span, line
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table
from tests.tui.harness import CRASH, HEALTHY, dashboard, drawn_lines, press, running, state, until


@pytest.mark.parametrize("height", [24, FRAMED_HEIGHT - 1, FRAMED_HEIGHT, 50])
@running
async def test_panels_have_frames_from_30_lines_on_and_a_line_with_the_title_below(height: int) -> None:
    async with dashboard(state(HEALTHY), size=(120, height)) as (app, pilot):
        is_framed = height >= FRAMED_HEIGHT
        top = drawn_lines(app)[2]
        assert top.startswith("╭─ RACK R1 ─" if is_framed else "─ BROKERS ─")
        assert any(shown.startswith("╰─") for shown in drawn_lines(app)) == is_framed
        await pilot.resize_terminal(120, FRAMED_HEIGHT if not is_framed else 24)
        await until(pilot, lambda: drawn_lines(app)[2].startswith("╭─") != is_framed, "the other edges")


@running
async def test_a_crash_moves_no_edge() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):

        def edges() -> list[tuple[int, int]]:
            drawn = enumerate(drawn_lines(app))
            return [(y, x) for y, shown in drawn for x, sign in enumerate(shown) if sign in "╭╮╰╯"]

        before = edges()
        shown = [panel for panel in app.screen.query(Panel) if panel.display and panel.gutter.top]
        assert len(before) == 4 * (len(shown) + 2), "two racks"
        app.session.feed.show(state(CRASH))  # type: ignore[attr-defined]
        await until(pilot, lambda: any("4 ✕ silent" in shown for shown in drawn_lines(app)), "the crash")
        assert edges() == before


@running
async def test_the_frame_of_the_focused_panel_has_the_accent_colour() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):

        def accented() -> list[str | None]:
            key = app.palette.style(Role.KEY).color
            shown = [panel for panel in app.screen.query(Panel) if panel.display]
            corners = [next(iter(panel.render_lines(panel.outer_size.region)[0])) for panel in shown]
            return [
                panel.id
                for panel, corner in zip(shown, corners, strict=True)
                if corner.style and corner.style.color == key
            ]

        assert accented() == ["brokers_side"]
        await press(pilot, ["tab"])
        assert accented() == ["partitions_side"]


@running
async def test_a_title_that_is_too_long_is_cut_and_its_scope_is_not() -> None:
    async with dashboard(state(HEALTHY), size=(80, 24)) as (app, _):
        panel = app.screen.query_one("#partitions_side", Panel)
        assert "─ PARTITIONS by name ──" in drawn_lines(app)[panel.region.y]
        panel.entitle(lambda: line(Span("x" * 200, Role.HEAD)))
        drawn = panel.render_lines(panel.outer_size.region)[0].text
        assert "x…" in drawn and drawn.rstrip("─ ").endswith("of 20") and len(drawn) == 80


@running
async def test_a_title_that_cannot_be_made_costs_the_title_only() -> None:
    def fails() -> Line:
        raise RuntimeError("a bug")

    async with dashboard(state(HEALTHY)) as (app, _):
        panel = app.screen.query_one("#partitions_side", Panel)
        panel.entitle(fails)
        assert "could not be drawn" in panel.render_lines(panel.outer_size.region)[0].text
        assert not panel.is_entitled and app.screen.query_one("#partitions", Table).is_drawn
