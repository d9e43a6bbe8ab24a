"""The connectors in the detail of their workers' group: states, failures with their reason, and age."""

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import words
from kview.model.failures import Cause, FailureKind
from kview.model.snapshot import Snapshot
from kview.tui.rows.connectors import ConnectorRows
from kview.tui.screens.group import GroupScreen
from kview.tui.text import Role, content
from kview.tui.widgets.table import Table
from tests.tui.harness import dashboard, lines, press, running, text, until
from tests.worlds import default_world
from tests.worlds.connect import EXITING, FAILED, RUNNING, SQL, connector, with_connectors
from tests.worlds.kinds import CONNECT, of_every_kind

SINK = "connect-billing"
UNAUTHORIZED = Cause(FailureKind.HTTP_STATUS, 401)


def seen() -> Snapshot:
    """A cluster with Connect's workers, one of whose sinks reads as the group `connect-billing`."""
    made = of_every_kind(default_world().tick())

    def renamed(column: np.ndarray) -> np.ndarray:
        return np.where(column == "billing", SINK, column).astype(object)

    return replace(
        made,
        groups=replace(made.groups, group=renamed(made.groups.group)),
        offsets=replace(made.offsets, group=renamed(made.offsets.group)),
    )


def view(snapshot: Snapshot) -> View:
    return step(State(), snapshot)[1]


def told(shown: View, group: str = CONNECT) -> list[str]:
    """The rows, without runs of spaces."""
    rows = ConnectorRows(shown, group)
    made = [rows.row(at, 0) for at in range(len(rows))]
    return [" ".join(" ".join(content(cell) for cell in row.cells).split()) for row in made]


def test_failed_ones_stand_first_in_red_and_a_sink_names_its_group() -> None:
    shown = view(with_connectors(seen(), FAILED))
    lag = words.count(int(shown.groups.lag[shown.snapshot.groups.group == SINK][0]))
    assert told(shown) == [
        f"billing task 0 ✕ FAILED worker-1:8083 {SQL}",
        "crm source ✕ FAILED worker-1:8083 java.lang.IllegalStateException: cannot start",
        f"billing sink ● RUNNING worker-1:8083 group {SINK}, lag {lag}",
        "billing task 1 ● RUNNING worker-1:8083",
        "old sink ○ PAUSED worker-1:8083",
        "old task 0 ○ PAUSED worker-1:8083",
        "old task 1 ○ UNASSIGNED worker-1:8083",
    ]
    rows = ConnectorRows(shown, CONNECT)
    roles = [{span.role for cell in rows.row(at, 0).cells for span in cell} for at in range(len(rows))]
    assert [Role.RISK in each for each in roles] == [True, True, *[False] * 5]
    assert rows.troubled == 2 and rows.in_trouble.tolist() == [True, True, *[False] * 5]
    assert content(rows.title) == "CONNECTORS failed first"
    assert [rows.group_of(rows.keys[at]) for at in range(3)] == ["", "", SINK]
    assert rows.trace(0) == EXITING


def test_a_failed_sink_without_a_trace_says_so_and_still_names_its_group() -> None:
    shown = view(with_connectors(seen(), connector("billing", "FAILED", trace="", root="")))
    (said,) = told(shown)
    assert said.startswith(f"billing sink ✕ FAILED worker-1:8083 without a trace · group {SINK}, lag ")


def test_old_states_are_dim_and_have_their_age_and_cause() -> None:
    rows = ConnectorRows(view(with_connectors(seen(), FAILED, age_ms=130_000, cause=UNAUTHORIZED)), CONNECT)
    assert content(rows.title) == (
        "CONNECTORS failed first · 2 m 10 s old (connect-url: answered 401 Unauthorized)"
    )
    assert not rows.troubled and not rows.in_trouble.any()
    assert Role.RISK not in {span.role for cell in rows.row(0, 0).cells for span in cell}
    fresh = ConnectorRows(view(with_connectors(seen(), FAILED, age_ms=20_000, cause=UNAUTHORIZED)), CONNECT)
    assert "20 s old" in content(fresh.title) and fresh.troubled == 2


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        (seen(), "states unknown: the profile has no connect-url"),
        (
            with_connectors(seen(), age_ms=None, cause=Cause(FailureKind.NOT_CONNECTED)),
            "states unknown: Kafka Connect has not answered yet",
        ),
        (
            with_connectors(seen(), age_ms=None, cause=UNAUTHORIZED),
            "states unknown (connect-url: answered 401 Unauthorized)",
        ),
        (
            with_connectors(seen(), [], age_ms=130_000, cause=UNAUTHORIZED),
            "states unknown (connect-url: answered 401 Unauthorized)",
        ),
        (with_connectors(seen(), []), "no connectors"),
        (
            with_connectors(seen(), RUNNING, group=""),
            "no connector of connect-url is known to run on these workers",
        ),
    ],
)
def test_an_empty_list_says_whether_there_are_none_or_nobody_knows(snapshot: Snapshot, why: str) -> None:
    rows = ConnectorRows(view(snapshot), CONNECT)
    assert not len(rows) and rows.empty == why


@running
async def test_the_screen_shows_them_and_enter_opens_the_group_of_a_sink() -> None:
    async with dashboard(view(with_connectors(seen(), FAILED))) as (app, pilot):
        app.push_screen(GroupScreen(CONNECT))
        await until(pilot, lambda: "CONNECTORS failed first" in text(app), "the panel")
        table = app.screen.query_one("#offsets", Table)
        table.focus()
        await until(pilot, lambda: f"  billing task 0  {EXITING[:80]}" in text(app), "the selected trace")
        assert "✕ task 0 of connector billing failed " in lines(app)[1]
        await press(pilot, ["enter"])
        assert "CONNECTORS" in text(app), "a task has nothing to open"
        await press(pilot, ["down", "down", "enter"])
        await until(pilot, lambda: f"{SINK}  classic" in text(app) or f"  {SINK}" in text(app), "the group")
        assert "CURRENT-OFFSET" in text(app) and "CONNECTORS" not in text(app)


@running
async def test_hostile_names_and_traces_are_only_text() -> None:
    name = "[red]" + "n" * 244
    trace = "\x1b[31m[bold]\x07oops\x9b2J\u202e"
    rows = [*connector(name, "FAILED", "FAILED", trace=trace, root=""), *connector("[/]", "[/x]\x1b", "\n")]
    for size in ((120, 40), (80, 24), (60, 15)):
        async with dashboard(view(with_connectors(seen(), rows)), size=size) as (app, pilot):
            app.push_screen(GroupScreen(CONNECT))
            await pilot.pause()
            shown = text(app)
            assert "CONNECTORS" in shown and "[red]" in shown and not set(shown) & set("\x1b\x07\x9b\u202e")
            assert "[bold]" in shown or size[0] < 100
