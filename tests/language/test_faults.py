"""Faults as words: every kind has all of its sentences, in plain English."""

import pytest

from kview.errors import BadUse, ErrorKind
from kview.language.faults import USAGE, answers_again, does, doing, done, in_force, outcome, refusal, typed
from kview.model.faults import (
    ActiveFault,
    FaultCommand,
    FaultDone,
    FaultKind,
    FaultOutcome,
    FaultState,
    NodeRole,
)
from tests.language.turns import banned_turns


@pytest.mark.parametrize("kind", FaultKind)
@pytest.mark.parametrize("role", NodeRole)
def test_every_fault_is_said_before_while_and_after_it_is_done(kind: FaultKind, role: NodeRole) -> None:
    command = FaultCommand(kind, 4, "R2", 200)
    said = [does(kind, 200), doing(command), done(FaultDone(kind, (4,), role, "R2", 200))]
    for sentence in said:
        assert sentence and "{" not in sentence and not sentence.endswith(".")
        assert not banned_turns(sentence)
    assert typed(command).split()[0] == USAGE[kind].split()[0]
    assert len(typed(command).split()) == len(USAGE[kind].split())


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            FaultDone(FaultKind.START, (4,), ended=(FaultState.CRASHED,)),
            "broker 4 was started: it rejoins the ISRs once it has caught up",
        ),
        (
            FaultDone(FaultKind.START, (4,), ended=(FaultState.HUNG, FaultState.SLOW)),
            "broker 4 was resumed (kill −CONT): it rejoins the ISRs once it has caught up",
        ),
        (
            FaultDone(FaultKind.START, (4,), ended=(FaultState.SLOW,)),
            "broker 4 is no longer slowed down",
        ),
        (
            FaultDone(FaultKind.START, (101,), NodeRole.CONTROLLER, ended=(FaultState.CRASHED,)),
            "controller 101 was started: it votes again",
        ),
        (FaultDone(FaultKind.LOSE_RACK, (3, 4, 5), rack="R2"), "every broker in rack R2 has lost power"),
        (FaultDone(FaultKind.UNDO, (3, 4, 5)), "all faults undone; nodes that were down are starting"),
        (FaultDone(FaultKind.UNDO), "no fault in force"),
    ],
)
def test_what_was_done(fault: FaultDone, said: str) -> None:
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
    stopped = FaultOutcome(FaultKind.STOP, 4, moved=3, without_leader=1)
    assert outcome(stopped) == (
        "broker 4 stopped cleanly: 3 partitions got new leaders before it exited; 1 partition has no leader:"
        " its records cannot be read until a broker that has all of them is back"
    )
    crashed = outcome(FaultOutcome(FaultKind.CRASH, 4, moved=3, after_ms=9_000))
    assert crashed.endswith("9.0 s; records gone: not known"), "a bound of 0 is no all-clear"


def test_a_refusal_names_what_ends_the_obstacle() -> None:
    down = BadUse(ErrorKind.NODE_DOWN, role="broker", node=0).facts
    rack = BadUse(ErrorKind.RACK_DOWN, rack="R1").facts
    start, undo = FaultCommand(FaultKind.START, 0), FaultCommand(FaultKind.UNDO)
    assert refusal(down, start, lambda command: "B") == "broker 0 is already down: B restores it"
    assert refusal(rack, undo, typed) == "every broker in rack R1 is already down: undo restores every node"
    unknown = BadUse(ErrorKind.RACK_UNKNOWN, rack="R9", racks=("R1", "R2")).facts
    assert refusal(unknown, None, typed) == "there is no rack 'R9': available racks: R1, R2"
