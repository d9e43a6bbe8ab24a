"""Faults as words: every kind has all of its sentences, in plain English."""

import pytest

from kview.errors import BadUse, ErrorKind
from kview.language.faults import USAGE, does, doing, done, in_force, refusal, typed
from kview.model.faults import ActiveFault, FaultCommand, FaultDone, FaultKind, FaultState, NodeRole
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
        (FaultDone(FaultKind.START, (4,)), "broker 4 is back"),
        (FaultDone(FaultKind.START, (101,), NodeRole.CONTROLLER), "controller 101 is back"),
        (FaultDone(FaultKind.LOSE_RACK, (3, 4, 5), rack="R2"), "every broker in rack R2 has lost power"),
        (FaultDone(FaultKind.UNDO, (3, 4, 5)), "all faults undone; every node is started"),
        (FaultDone(FaultKind.UNDO), "no fault in force"),
    ],
)
def test_what_was_done(fault: FaultDone, said: str) -> None:
    assert done(fault) == said


@pytest.mark.parametrize("state", FaultState)
def test_every_state_is_a_word_after_the_node(state: FaultState) -> None:
    said = in_force(ActiveFault(4, state, 200))
    assert said == ("4 slow 200 ms" if state is FaultState.SLOW else f"4 {state}")


def test_a_refusal_names_what_ends_the_obstacle() -> None:
    down = BadUse(ErrorKind.NODE_DOWN, role="broker", node=0).facts
    rack = BadUse(ErrorKind.RACK_DOWN, rack="R1").facts
    start, undo = FaultCommand(FaultKind.START, 0), FaultCommand(FaultKind.UNDO)
    assert refusal(down, start, lambda command: "B") == "broker 0 is already down: B brings it back"
    assert refusal(rack, undo, typed) == "every broker in rack R1 is already down: undo brings them all back"
    unknown = BadUse(ErrorKind.RACK_UNKNOWN, rack="R9", racks=("R1", "R2")).facts
    assert refusal(unknown, None, typed) == "there is no rack 'R9': available racks: R1, R2"
