"""Lines that are parsed as faults."""

import pytest

from kview.errors import BadUse
from kview.lab.commands import parse
from kview.language.faults import typed
from kview.model.faults import FaultCommand, FaultKind
from tests.errors import raises_saying


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("crash 4", FaultCommand(FaultKind.CRASH, 4)),
        ("  stop   101 ", FaultCommand(FaultKind.STOP, 101)),
        ("slow 4 200ms", FaultCommand(FaultKind.SLOW, 4, slow_ms=200)),
        ("slow 4 2s", FaultCommand(FaultKind.SLOW, 4, slow_ms=2000)),
        ("lose-rack R2", FaultCommand(FaultKind.LOSE_RACK, rack="R2")),
        ("crash-controller", FaultCommand(FaultKind.CRASH_CONTROLLER)),
        ("undo", FaultCommand(FaultKind.UNDO)),
    ],
)
def test_a_line_is_a_fault(line: str, command: FaultCommand) -> None:
    assert parse(line) == command
    assert parse(typed(command)) == command


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "unknown command ''"),
        ("crahs 4", r"did you mean crash\?"),
        ("fly", "available commands: crash, stop"),
        ("crash", "'crash' needs one node: write crash 4"),
        ("crash 4 5", "'crash' needs one node: write crash 4"),
        ("crash four", "'four' is not a valid node id"),
        ("crash -1", "'-1' is not a valid node id"),
        ("slow 4", "'slow' needs a node and a latency: write slow 4 200ms"),
        ("slow 4 fast", "'fast' is not a valid latency"),
        ("slow 4 0ms", "'0ms' is not a valid latency"),
        ("slow 4 61s", "'61s' is not a valid latency"),
        ("undo 4", "'undo' takes no argument: write undo"),
        ("counters 4", "'counters' takes no argument: write counters"),
        pytest.param(f"crash {'1' * 5000}", "is not a valid node id", id="a node of 5000 digits"),
        pytest.param(f"slow 4 {'1' * 5000}s", "is not a valid latency", id="a latency of 5000 digits"),
    ],
)
def test_a_line_that_is_not_a_command_says_what_is_wrong(line: str, says: str) -> None:
    with raises_saying(BadUse, says):
        parse(line)
