"""Lines that are parsed as faults."""

import pytest

from kview.errors import BadUse
from kview.lab.commands import parse, typed
from kview.language.commands import example
from kview.model.lab import Command, CommandKind
from tests.errors import raises_saying


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("crash 4", Command(CommandKind.CRASH, 4)),
        ("  stop   101 ", Command(CommandKind.STOP, 101)),
        ("slow 4 200ms", Command(CommandKind.SLOW, 4, amount=200)),
        ("slow 4 2s", Command(CommandKind.SLOW, 4, amount=2000)),
        ("lose-rack R2", Command(CommandKind.LOSE_RACK, name="R2")),
        ("crash-controller", Command(CommandKind.CRASH_CONTROLLER)),
        ("slow-disk 4 50ms", Command(CommandKind.SLOW_DISK, 4, amount=50)),
        ("cut 0 101", Command(CommandKind.CUT, 0, other=101)),
        ("cut-one-way 101 0", Command(CommandKind.CUT_ONE_WAY, 101, other=0)),
        ("undo", Command(CommandKind.UNDO)),
        ("rate invoice-service 1.5k", Command(CommandKind.RATE, name="invoice-service", amount=1_500)),
        ("rate p 0.25", Command(CommandKind.RATE, name="p", amount=0.25)),
        ("kill-member billing", Command(CommandKind.KILL_MEMBER, name="billing")),
        ("bandwidth 4 200k", Command(CommandKind.BANDWIDTH, 4, amount=200_000)),
        ("set t a=b=c", Command(CommandKind.SET, name="t", key="a", value="b=c")),
        ("unset t a", Command(CommandKind.UNSET, name="t", key="a")),
        ("elect t", Command(CommandKind.ELECT, name="t")),
        ("take-over p", Command(CommandKind.TAKE_OVER, name="p")),
        ("hang-transaction t-0", Command(CommandKind.HANG_TRANSACTION, name="t-0")),
    ],
)
def test_a_line_is_a_command(line: str, command: Command) -> None:
    assert parse(line) == command
    assert parse(typed(command)) == command


@pytest.mark.parametrize("kind", CommandKind)
def test_the_example_of_a_command_is_one(kind: CommandKind) -> None:
    line = example(kind)
    assert parse(line).kind is kind
    assert parse(typed(parse(line))) == parse(line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "unknown command ''"),
        ("crahs 4", r"did you mean crash\?"),
        ("fly", "available commands: crash, stop"),
        ("crash", "'crash' needs a node: write crash 4"),
        ("crash 4 5", "'crash' needs a node: write crash 4"),
        ("crash four", "'four' is not a valid node id"),
        ("crash -1", "'-1' is not a valid node id"),
        ("slow 4", "'slow' needs a node and a latency: write slow 4 200ms"),
        ("slow 4 fast", "'fast' is not a valid latency"),
        ("slow 4 0ms", "'0ms' is not a valid latency"),
        ("slow 4 61s", "'61s' is not a valid latency"),
        ("rate p", "'rate' needs a producer and records per second: write rate invoice-service 200"),
        ("rate p fast", "'fast' is not a"),
        ("bandwidth R1 5", "'R1' is not a valid node id"),
        ("undo 4", "'undo' takes no argument: write undo"),
        ("counters 4", "'counters' takes no argument: write counters"),
        pytest.param(f"crash {'1' * 5000}", "is not a valid node id", id="a node of 5000 digits"),
        pytest.param(f"slow 4 {'1' * 5000}s", "is not a valid latency", id="a latency of 5000 digits"),
    ],
)
def test_a_line_that_is_not_a_command_says_what_is_wrong(line: str, says: str) -> None:
    with raises_saying(BadUse, says):
        parse(line)
