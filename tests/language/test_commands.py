"""Commands as words: every kind has all of its sentences, in plain English."""

import pytest

from kview.errors import BadUse, ErrorKind
from kview.lab.commands import parse, typed
from kview.language.commands import (
    answers_again,
    does,
    doing,
    done,
    example,
    in_force,
    outcome,
    refusal,
)
from kview.model.lab import (
    ActiveFault,
    Command,
    CommandKind,
    Done,
    FaultState,
    NodeRole,
    Outcome,
)
from kview.tui.faults import FAULTS_BY_KEY
from tests.language.turns import banned_turns


@pytest.mark.parametrize("kind", CommandKind)
@pytest.mark.parametrize("role", NodeRole)
def test_every_command_is_said_before_while_and_after_it_is_done(kind: CommandKind, role: NodeRole) -> None:
    command = parse(example(kind))
    said = [doing(command), done(Done(command, (4,), role))]
    if kind in {fault.kind for fault in FAULTS_BY_KEY.values()}:
        said.append(does(command))
    for sentence in said:
        assert sentence and "{" not in sentence and not sentence.endswith(".")
        assert not banned_turns(sentence)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            Done(Command(CommandKind.START), (4,), ended=(FaultState.CRASHED,)),
            "broker 4 was started: it rejoins the ISRs once it has caught up",
        ),
        (
            Done(Command(CommandKind.START), (4,), ended=(FaultState.HUNG, FaultState.SLOW)),
            "broker 4 was resumed (kill −CONT): it rejoins the ISRs once it has caught up",
        ),
        (
            Done(Command(CommandKind.START), (4,), ended=(FaultState.SLOW,)),
            "broker 4 is no longer slowed down",
        ),
        (
            Done(Command(CommandKind.START), (101,), NodeRole.CONTROLLER, ended=(FaultState.CRASHED,)),
            "controller 101 was started: it votes again",
        ),
        (
            Done(Command(CommandKind.LOSE_RACK, name="R2"), (3, 4, 5)),
            "every broker in rack R2 has lost power",
        ),
        (
            Done(Command(CommandKind.START), (101,), NodeRole.CONTROLLER, ended=(FaultState.ISOLATED,)),
            "controller 101 reaches every other node again",
        ),
        (
            Done(Command(CommandKind.ISOLATE, 101), (101,), NodeRole.CONTROLLER),
            "controller 101 reaches no other node: if it is the active one, it resigns",
        ),
        (
            Done(Command(CommandKind.FILL_DISK, 4), (4,), ends_broker=True),
            "the disk of broker 4 is full: it ends within 5 s, or with the next append",
        ),
        (Done(Command(CommandKind.UNDO), (3, 4, 5)), "all faults undone; nodes that were down are starting"),
        (Done(Command(CommandKind.UNDO)), "no fault in force"),
    ],
)
def test_what_was_done(fault: Done, said: str) -> None:
    assert done(fault) == said


@pytest.mark.parametrize("state", FaultState)
def test_every_state_is_a_word_after_the_node(state: FaultState) -> None:
    (said,) = in_force([ActiveFault(4, state, 200 if state is FaultState.SLOW else 0)])
    assert said == ("broker 4 slow 200 ms" if state is FaultState.SLOW else f"broker 4 {state}")


def test_nodes_with_the_same_fault_are_named_together_and_by_their_role() -> None:
    crashed = [ActiveFault(broker, FaultState.CRASHED) for broker in (3, 4, 5)]
    controller = ActiveFault(101, FaultState.CRASHED, role=NodeRole.CONTROLLER)
    slow = [ActiveFault(0, FaultState.SLOW, 200), ActiveFault(1, FaultState.SLOW, 50)]
    assert in_force([*slow, *crashed, controller]) == (
        "broker 0 slow 200 ms",
        "broker 1 slow 50 ms",
        "brokers 3, 4 and 5 crashed",
        "controller 101 crashed",
    )
    assert answers_again([*crashed, controller]).endswith(
        "faults in force: brokers 3, 4 and 5 crashed; controller 101 crashed"
    )


def test_a_partition_without_a_leader_is_not_called_unharmed() -> None:
    stopped = Outcome(CommandKind.STOP, 4, moved=3, without_leader=1)
    assert outcome(stopped) == (
        "broker 4 stopped cleanly: 3 partitions got new leaders before it exited; 1 partition has no leader:"
        " its records cannot be read until a broker that has all of them is back"
    )
    crashed = outcome(Outcome(CommandKind.CRASH, 4, moved=3, after_ms=9_000))
    assert crashed.endswith("9.0 s; records gone: not known"), "a bound of 0 is no all-clear"


def test_a_refusal_names_what_ends_the_obstacle() -> None:
    down = BadUse(ErrorKind.NODE_DOWN, role="broker", node=0).facts
    rack = BadUse(ErrorKind.RACK_DOWN, rack="R1").facts
    start, undo = Command(CommandKind.START, 0), Command(CommandKind.UNDO)
    assert refusal(down, start, lambda command: "B") == "broker 0 is already down: B restores it"
    assert refusal(rack, undo, typed) == "every broker in rack R1 is already down: undo restores every node"
    unknown = BadUse(ErrorKind.RACK_UNKNOWN, rack="R9", racks=("R1", "R2")).facts
    assert refusal(unknown, None, typed) == "there is no rack 'R9': available racks: R1, R2"
