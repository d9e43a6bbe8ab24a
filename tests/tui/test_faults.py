"""Faults: each key acts on what is selected, never without a lab, and never on something else."""

import re

import pytest

from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.lab import (
    ActiveFault,
    Command,
    CommandKind,
    Done,
    FaultState,
    NodeRole,
    Reply,
)
from kview.tui.faults import FAULTS_BY_KEY
from kview.tui.text import content
from kview.tui.widgets.bottom import StatusMessage, status_lines
from kview.tui.widgets.table import Table
from tests.tui.harness import CRASH, FENCED, HEALTHY, FakeLab, dashboard, press, running, state, text, until

TO_PARTITIONS = ["tab"]


@pytest.mark.parametrize(
    ("key", "command", "said", "undo"),
    [
        ("K", Command(CommandKind.CRASH, 0), "broker 0 was killed (kill −9)", "B restore 0"),
        ("S", Command(CommandKind.STOP, 0), "broker 0 is stopping cleanly", "B restore 0"),
        ("H", Command(CommandKind.HANG, 0), "broker 0 is hung", "B restore 0"),
        ("W", Command(CommandKind.SLOW, 0, amount=200), "takes 200 ms longer", "B restore 0"),
        ("N", Command(CommandKind.ISOLATE, 0), "broker 0 reaches no other node", "B restore 0"),
        ("L", Command(CommandKind.LOSE_DISK, 0), "a log directory of broker 0 has failed", "B restore 0"),
        ("B", Command(CommandKind.START, 0), "broker 0 was started", ""),
        ("X", Command(CommandKind.LOSE_RACK, name="R1"), "every broker in rack R1 has lost", "U undo all"),
        ("C", Command(CommandKind.CRASH_CONTROLLER), "was killed: the other voters elect", "U undo all"),
        ("U", Command(CommandKind.UNDO), "all faults undone; nodes that were down are starting", ""),
    ],
)
@running
async def test_each_key_says_what_it_did_and_how_to_undo_it(
    key: str, command: Command, said: str, undo: str
) -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, [key])
        await until(pilot, lambda: said in text(app), "the reply")
        assert lab.commands == [command]
        (line,) = (line for line in text(app).splitlines() if said in line)
        assert line.rstrip().endswith(f" · {undo}") if undo else " · " not in line


@running
async def test_the_selected_broker_is_hit() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (_, pilot):
        await press(pilot, ["right", "up", "right", "right", "K"])
        await until(pilot, lambda: lab.commands, "the command")
        assert lab.commands == [Command(CommandKind.CRASH, 3)]


@running
async def test_on_a_partition_its_leader_is_hit_and_the_line_says_so() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, TO_PARTITIONS)
        app.screen.query_one("#partitions", Table).select(("invoice", 2))
        await press(pilot, ["K"])
        await until(pilot, lambda: "leader of invoice-2: broker 1 was killed" in text(app), "the line")
        assert lab.commands == [Command(CommandKind.CRASH, 1)]


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
        await press(pilot, ["X", "K"])
        assert lab.commands == []
        assert "K needs a selected broker, and this screen has none: press 1 or 2 first" in text(app)
        await press(pilot, ["delete"])
        assert "Del does nothing here" in text(app)
        assert "crash" not in text(app).splitlines()[-1]
        await press(pilot, ["U"])
        await until(pilot, lambda: lab.commands, "undo needs no broker")


@running
async def test_back_means_the_broker_that_was_hit_though_its_partition_has_another_leader() -> None:
    lab, feed_view = FakeLab(), state(FENCED)
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, TO_PARTITIONS)
        app.screen.query_one("#partitions", Table).select(("invoice", 3))
        await press(pilot, ["K"])
        await until(pilot, lambda: "leader of invoice-3: broker 4 was killed" in text(app), "the crash")
        app.session.feed.show(feed_view)  # type: ignore[attr-defined]
        await until(pilot, lambda: "broker 4 fenced" in text(app), "the new leaders")
        assert "B restore 4" in text(app).splitlines()[-1]
        await press(pilot, ["B"])
        await until(pilot, lambda: "broker 4 was started" in text(app), "the reply")
        assert lab.commands[-1] == Command(CommandKind.START, 4)


@running
async def test_back_prefers_the_selected_broker_and_the_line_follows_the_selection() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["K", "right", "K", "right"])
        await until(pilot, lambda: "B restore 1" in text(app).splitlines()[-1], "the last one")
        await press(pilot, ["home"])
        await until(pilot, lambda: "B restore 0" in text(app).splitlines()[-1], "the selected one")
        await press(pilot, ["end", "B"])
        await until(pilot, lambda: "broker 1 was started" in text(app), "the last one is back")
        await press(pilot, ["B"])
        await until(pilot, lambda: "broker 0 was started" in text(app), "then the one before")
        assert not re.search(r"B restore \d", text(app).splitlines()[-1])
        assert [command.node for command in lab.commands] == [0, 1, 1, 0]


@running
async def test_the_message_and_the_key_line_name_the_same_node() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, [*["right"] * 4, "W"])
        await until(pilot, lambda: "takes 200 ms longer" in text(app), "a slow broker")
        lab.in_force = (
            ActiveFault(4, FaultState.SLOW, 200),
            ActiveFault(103, FaultState.CRASHED, role=NodeRole.CONTROLLER),
        )
        lab.reply = Reply(
            Done(Command(CommandKind.CRASH_CONTROLLER), (103,), NodeRole.CONTROLLER),
            undone_by=Command(CommandKind.START, 103),
            active=lab.in_force,
        )
        await press(pilot, ["C"])
        await until(pilot, lambda: "the active controller 103 was killed" in text(app), "the reply")
        *_, status, keys = text(app).splitlines()
        assert status.endswith(" · B restore 4, U undo all") and "B restore 4 " in keys
        await press(pilot, ["left"])
        *_, status, keys = text(app).splitlines()
        assert status.endswith(" · B restore 103") and "B restore 103 " in keys


@running
async def test_the_faults_in_force_are_asked_for_at_every_view() -> None:
    stopping = Reply(
        Done(Command(CommandKind.STOP), (0,)),
        undone_by=Command(CommandKind.START, 0),
        active=(ActiveFault(0, FaultState.STOPPING),),
    )
    lab = FakeLab(stopping)
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["S"])
        await until(pilot, lambda: "is stopping cleanly" in text(app), "the reply")
        lab.in_force = (ActiveFault(0, FaultState.STOPPED),)
        app.session.feed.show(state(HEALTHY))  # type: ignore[attr-defined]
        app.clock_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "faults in force: broker 0 stopped" in text(app), "it has stopped")
        lab.in_force = ()
        app.session.feed.show(state(HEALTHY))  # type: ignore[attr-defined]
        await until(pilot, lambda: "faults" not in text(app).splitlines()[-2], "nothing is in force")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "K",
            "broker 4 crashed: 3 partitions got new leaders after 19 s; 1 partition has no leader: ",
        ),
        (
            "S",
            "broker 4 stopped cleanly: 3 partitions got new leaders before it exited; 1 partition has ",
        ),
    ],
)
@running
async def test_the_outcome_says_what_a_crash_and_a_clean_stop_did(key: str, said: str) -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab, size=(160, 40)) as (app, pilot):
        await press(pilot, [*["right"] * 4, key])
        await until(pilot, lambda: "B restore 4" in text(app), "the reply")
        app.session.feed.show(state(CRASH))  # type: ignore[attr-defined]
        await until(pilot, lambda: "broker 4 silent" in text(app), "the silence")
        assert " moved " not in text(app).splitlines()[-2]
        app.session.feed.show(state(FENCED))  # type: ignore[attr-defined]
        await until(pilot, lambda: said in text(app), "the outcome")


@running
async def test_a_long_message_takes_two_lines_and_nothing_of_it_is_cut() -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab(), size=(80, 24)) as (app, pilot):
        await press(pilot, ["K"])
        await until(pilot, lambda: "was killed" in text(app), "the reply")
        said = " ".join(" ".join(text(app).splitlines()[-3:-1]).split())
        assert said == (
            "broker 0 was killed (kill −9): its port refuses connections; it is fenced when its session ends"
            " · B restore 0"
        )
        await press(pilot, ["5"])
        await until(pilot, lambda: "Stable 2/2" in text(app), "the groups")
        app.clock_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(
            pilot, lambda: "faults in force: broker 0 crashed" in text(app).splitlines()[-2], "one line again"
        )


def test_a_tail_on_a_line_of_its_own_begins_without_a_separator() -> None:
    message = StatusMessage("broker 4 was started", "B restore 3")
    assert content(*status_lines(message, (), 60, "U")) == " broker 4 was started · B restore 3 "
    assert [content(made) for made in status_lines(message, (), 30, "U")] == [
        " broker 4 was started",
        " B restore 3 ",
    ]


@running
async def test_a_refusal_is_shown() -> None:
    down = BadUse(ErrorKind.NODE_DOWN, role="broker", node=0).facts
    lab = FakeLab(Reply(refused=down, undone_by=Command(CommandKind.START, 0)))
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["K"])
        await until(pilot, lambda: "broker 0 is already down: B restores it" in text(app), "the reason")


@running
async def test_a_cluster_that_hung_says_what_became_of_the_fault_once_it_answers() -> None:
    silent = KviewError(ErrorKind.CLUSTER_SILENT, within_s=5.0).facts
    lab = FakeLab(Reply(refused=silent))
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["K"])
        await until(
            pilot, lambda: "the simulated cluster did not answer within 5 s" in text(app), "the reason"
        )
        lab.in_force = (ActiveFault(0, FaultState.CRASHED),)
        app.session.feed.show(state(HEALTHY))  # type: ignore[attr-defined]
        said = "the simulated cluster answers again; faults in force: broker 0 crashed"
        await until(pilot, lambda: said in text(app), "what became of it")
        assert "B restore 0" in text(app).splitlines()[-1]


@running
async def test_faults_in_force_stay_on_the_screen() -> None:
    lab = FakeLab()
    async with dashboard(state(CRASH), lab=lab) as (app, pilot):
        await press(pilot, ["K"])
        await until(pilot, lambda: "was killed" in text(app), "the reply")
        app.clock_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "faults in force: broker 0 crashed" in text(app), "the faults in force")
        await press(pilot, ["U"])
        await until(pilot, lambda: "all faults undone" in text(app), "the reply")
        app.clock_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "all faults undone" not in text(app), "its end")
        assert "faults" not in text(app).splitlines()[-2]


@running
async def test_without_a_lab_there_are_no_faults() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        assert "crash" not in text(app)
        await press(pilot, ["X", "U", "K"])
        assert "K does nothing here: faults need a simulated cluster" in text(app)
        await press(pilot, ["question_mark"])
        assert "HELP" in text(app) and "FAULTS" not in text(app)


@running
async def test_while_the_window_is_too_small_no_key_acts_but_quit() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab, size=(59, 20)) as (app, pilot):
        await press(pilot, ["K", "2", "slash", "x", "question_mark", "i", "at"])
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


def test_crashing_the_controller_is_undone_on_the_controller() -> None:
    """Restore prefers the selected broker if that has a fault."""
    assert FAULTS_BY_KEY["C"].help.endswith("Undo: {restore} on the controller, or {undo-faults}")
