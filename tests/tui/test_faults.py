"""Faults: each key acts on what is selected, never without a lab, and never on something else."""

import pytest

from kview.errors import BadUse, ErrorKind
from kview.model.faults import FaultCommand, FaultKind, FaultReply
from kview.tui.keys import FAULT_KEYS
from kview.tui.widgets.table import Table
from tests.tui.harness import CRASH, FENCED, HEALTHY, FakeLab, dashboard, press, running, state, text, until

TO_PARTITIONS = ["tab"]


@pytest.mark.parametrize(
    ("key", "command", "said"),
    [
        ("K", FaultCommand(FaultKind.CRASH, 0), "broker 0 was killed (kill −9)"),
        ("S", FaultCommand(FaultKind.STOP, 0), "broker 0 is stopping"),
        ("H", FaultCommand(FaultKind.HANG, 0), "broker 0 is hung"),
        ("W", FaultCommand(FaultKind.SLOW, 0, slow_ms=200), "takes 200 ms longer"),
        ("B", FaultCommand(FaultKind.START, 0), "broker 0 is back"),
        ("X", FaultCommand(FaultKind.LOSE_RACK, rack="R1"), "every broker in rack R1 has lost power"),
        ("C", FaultCommand(FaultKind.CRASH_CONTROLLER), "was killed: the other voters elect a new one"),
        ("U", FaultCommand(FaultKind.UNDO), "all faults undone; every node is started"),
    ],
)
@running
async def test_each_key_says_what_it_did_and_how_to_undo_it(
    key: str, command: FaultCommand, said: str
) -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, [key])
        await until(pilot, lambda: said in text(app), "the reply")
        assert lab.commands == [command]
        (line,) = (line for line in text(app).splitlines() if said in line)
        undo = FAULT_KEYS[key].undo
        assert line.rstrip().endswith(f" · undo: {undo}") if undo else "undo:" not in line


@running
async def test_the_selected_broker_is_hit() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (_, pilot):
        await press(pilot, ["down", "down", "down", "K"])
        await until(pilot, lambda: lab.commands, "the command")
        assert lab.commands == [FaultCommand(FaultKind.CRASH, 3)]


@running
async def test_on_a_partition_its_leader_is_hit_and_the_line_says_so() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, TO_PARTITIONS)
        app.screen.query_one("#partitions", Table).select(("invoice", 2))
        await press(pilot, ["K"])
        await until(pilot, lambda: "leader of invoice-2: broker 1 was killed" in text(app), "the line")
        assert lab.commands == [FaultCommand(FaultKind.CRASH, 1)]


@running
async def test_a_partition_without_a_leader_has_nobody_to_hit() -> None:
    lab = FakeLab()
    async with dashboard(state(FENCED), lab=lab) as (app, pilot):
        await press(pilot, TO_PARTITIONS)
        assert app.screen.query_one("#partitions", Table).select(("audit-log", 3))
        await press(pilot, ["K"])
        assert "K needs a broker" in text(app)
        assert lab.commands == []


@running
async def test_on_groups_no_broker_is_meant() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["5"])
        await until(pilot, lambda: "write/s" in text(app), "the groups")
        await press(pilot, ["K", "X"])
        assert lab.commands == []
        assert "crash" not in text(app).splitlines()[-1]
        await press(pilot, ["U"])
        await until(pilot, lambda: lab.commands, "undo needs no broker")


@running
async def test_a_refusal_is_shown() -> None:
    down = BadUse(ErrorKind.NODE_DOWN, role="broker", node=0).facts
    lab = FakeLab(FaultReply(refused=down, undone_by=FaultCommand(FaultKind.START, 0)))
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["K"])
        await until(pilot, lambda: "broker 0 is already down: B brings it back" in text(app), "the reason")


@running
async def test_faults_in_force_stay_on_the_screen() -> None:
    lab = FakeLab()
    async with dashboard(state(CRASH), lab=lab) as (app, pilot):
        await press(pilot, ["K"])
        await until(pilot, lambda: "was killed" in text(app), "the reply")
        app.clock_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "faults 0 crashed" in text(app), "the faults in force")
        await press(pilot, ["U"])
        await until(pilot, lambda: "all faults undone" in text(app), "the reply")
        app.clock_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "all faults undone" not in text(app), "its end")
        assert "faults" not in text(app).splitlines()[-2]


@running
async def test_without_a_lab_there_are_no_faults() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        assert "crash" not in text(app)
        await press(pilot, ["K", "X", "U"])
        await press(pilot, ["question_mark"])
        assert "HELP" in text(app) and "FAULTS" not in text(app)


@running
async def test_while_the_window_is_too_small_no_key_acts_but_quit() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab, size=(59, 20)) as (app, pilot):
        await press(pilot, ["K", "2", "slash", "x", "question_mark", "i", "g"])
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert (lab.commands, app.current_mode, len(app.screen_stack)) == ([], "overview", 1)
        assert not app.options.filter and not app.options.internal and not app.status_message.text
        await press(pilot, ["slash"])
        await pilot.resize_terminal(59, 20)
        await press(pilot, ["x", "enter"])
        assert not app.options.filter and app.return_code is None
        await pilot.press("q")
        assert app.return_code == 0
