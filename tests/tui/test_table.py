"""The table: its selection belongs to a row, 10,000 rows scroll like ten, figures keep their width."""

from collections.abc import Sequence

from textual.pilot import Pilot

from kview.tui.app import KviewApp
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.row import Row
from kview.tui.text import Line, Span, line
from kview.tui.widgets.table import Table
from tests.tui.harness import CRASH, HEALTHY, dashboard, lines, press, running, state, text


class Numbers(Keyed[str]):
    """Rows that count how many of them were made."""

    empty = "there are none"

    def __init__(self, names: Sequence[str], value: int = 7) -> None:
        super().__init__(names)
        self.title: Line = line("NUMBERS")
        self.made = 0
        text = f"{value:,}"
        self.value = text
        self.columns = (
            Column("name", "name", max(8, *map(len, names), 0), flex=1, name=True),
            Column("value", "value", len(text), right=True),
        )

    def row(self, index: int, now_ms: int) -> Row:
        self.made += 1
        return Row((line(self.keys[index]), (Span(self.value),)))


async def table_of(pilot: Pilot[int], rows: Numbers) -> Table:
    """The overview's partitions, with other rows."""
    app = pilot.app
    table = app.screen.query_one("#partitions", Table)
    table.set_rows(rows)
    table.focus()
    await pilot.pause()
    return table


@running
async def test_the_selection_belongs_to_a_row() -> None:
    async with dashboard(state(HEALTHY)) as (_, pilot):
        table = await table_of(pilot, Numbers(["a", "b", "c", "d"]))
        await press(pilot, ["down", "down"])
        chosen = [table.selected]
        table.set_rows(Numbers(["d", "c", "b", "a"]))
        chosen.append(table.selected)
        await press(pilot, ["down"])
        assert [*chosen, table.selected] == ["c", "c", "b"]


@running
async def test_a_row_that_goes_leaves_the_selection_where_it_was() -> None:
    async with dashboard(state(HEALTHY)) as (_, pilot):
        table = await table_of(pilot, Numbers(["a", "b", "c", "d"]))
        await press(pilot, ["down", "down"])
        chosen = []
        for names in (["a", "b", "d"], ["a"], []):
            table.set_rows(Numbers(names))
            chosen.append(table.selected)
        assert chosen == ["d", "a", None]


@running
async def test_a_list_stays_at_its_top_until_the_user_selects_a_row() -> None:
    names = [f"row {number:03}" for number in range(100)]
    async with dashboard(state(HEALTHY)) as (app, pilot):
        table = await table_of(pilot, Numbers(names))
        table.set_rows(Numbers(["worst", *names[1:], names[0]]))
        await pilot.pause()
        chosen = [table.selected]
        assert table.scroll_offset.y == 0
        await press(pilot, ["down", "home"])
        table.set_rows(Numbers(["worse still", *names]))
        await pilot.pause()
        assert [*chosen, table.selected] == ["worst", "worse still"]
        assert any("worse still" in shown for shown in lines(app))


@running
async def test_rows_in_trouble_above_the_ones_in_sight_are_counted() -> None:
    async with dashboard(state(CRASH), size=(120, 30)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.focus()
        assert not any("worse above" in shown for shown in lines(app))
        await press(pilot, ["end"])
        top = table.scroll_offset.y
        assert top > 5
        assert any(f"▲ {min(top, 10)} worse above" in shown for shown in lines(app))
        assert any("PARTITIONS worst first" in shown for shown in lines(app))


@running
async def test_keys_move_it_and_stop_at_the_ends() -> None:
    async with dashboard(state(HEALTHY)) as (_, pilot):
        table = await table_of(pilot, Numbers([f"row {number:03}" for number in range(100)]))
        moves = [
            ("up", 0),
            ("down", 1),
            ("down", 2),
            ("up", 1),
            ("end", 99),
            ("down", 99),
            ("home", 0),
        ]
        for key, index in moves:
            await press(pilot, [key])
            assert table.selected == f"row {index:03}", key
        await press(pilot, ["pagedown"])
        assert table.selected == f"row {table.size.height - 2:03}"


@running
async def test_ten_thousand_rows_scroll_like_ten() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        rows = Numbers([f"row {number:05}" for number in range(10_000)])
        table = await table_of(pilot, rows)
        rows.made = 0
        for key in ("end", "home", *["pagedown"] * 20):
            await pilot.press(key)
        assert rows.made < 22 * 12 * table.size.height, "only rows in sight are made"
        assert any("of 10,000" in shown for shown in lines(app))


@running
async def test_the_selected_row_stays_in_sight() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        table = app.screen.query_one("#partitions", Table)
        table.focus()
        await press(pilot, ["end"])
        last = table.selected
        assert isinstance(last, tuple)
        for size in ((80, 24), (60, 15), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert table.selected == last
            assert any(shown.startswith(f"▸ {last[0]}") for shown in lines(app)), size


@running
async def test_figures_keep_their_width_when_they_shrink() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):

        def column() -> int:
            return next(shown.index("value") + len("value") for shown in lines(app) if "  name " in shown)

        table = await table_of(pilot, Numbers(["a"], 1_000_000))
        wide = column()
        table.set_rows(Numbers(["a"], 7))
        await pilot.pause()
        assert column() == wide


@running
async def test_figures_become_narrow_again_before_a_name_is_cut() -> None:
    """After an incident the figures are small again, and their columns blank, but names were still cut."""
    async with dashboard(state(HEALTHY), size=(60, 24)) as (app, pilot):
        name = "a-name-of-thirty-letters-or-so"
        table = await table_of(pilot, Numbers([name], 10**30))
        assert name not in text(app), "nothing else could give way"
        table.set_rows(Numbers([name], 7))
        await pilot.pause()
        assert name in text(app)


@running
async def test_an_empty_table_says_why() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await table_of(pilot, Numbers([]))
        assert any("there are none" in shown for shown in lines(app))


@running
async def test_a_click_selects_and_a_double_click_opens() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        assert isinstance(app, KviewApp)
        table = app.screen.query_one("#partitions", Table)
        await pilot.click("#partitions", offset=(5, 3))
        assert table.selected == table.rows.key(2)
        await pilot.click("#partitions", offset=(5, 3), times=2)
        await pilot.pause()
        assert type(app.screen).__name__ == "PartitionScreen"
