"""Adjustments of a simulated cluster as words."""

from collections.abc import Mapping

from kview.language.faults import Needs
from kview.language.words import rate, size
from kview.model.adjustments import Adjustment, AdjustmentKind

NEEDS: Mapping[AdjustmentKind, Needs] = {
    AdjustmentKind.RATE: Needs("needs a producer and records per second", "rate invoice-service 200"),
    AdjustmentKind.PAUSE: Needs("needs one group", "pause billing"),
    AdjustmentKind.RESUME: Needs("needs one group", "resume billing"),
    AdjustmentKind.ADD_MEMBER: Needs("needs one group", "add-member billing"),
    AdjustmentKind.REMOVE_MEMBER: Needs("needs one group", "remove-member billing"),
    AdjustmentKind.KILL_MEMBER: Needs("needs one group", "kill-member billing"),
    AdjustmentKind.SET: Needs("needs a topic and a setting", "set payment min.insync.replicas=1"),
    AdjustmentKind.BANDWIDTH: Needs("needs a broker and bytes per second", "bandwidth 4 200k"),
    AdjustmentKind.ELECT: Needs("needs one topic", "elect payment"),
}
"""What is said about a line that lacks a word or has one too many, with an example of the whole line."""


def done(made: Adjustment) -> str:
    """Return what an adjustment has changed."""
    name = made.name
    match made.kind:
        case AdjustmentKind.RATE:
            return f"{name} now sends {rate(made.amount)} records/s"
        case AdjustmentKind.PAUSE:
            still = "have stopped reading but still send heartbeats"
            return f"the members of {name} {still}; to undo it: resume {name}"
        case AdjustmentKind.RESUME:
            return f"the members of {name} are reading again"
        case AdjustmentKind.ADD_MEMBER:
            return f"a new member joins {name}; to undo it: remove-member {name}"
        case AdjustmentKind.REMOVE_MEMBER:
            return f"a member of {name} commits and leaves; to undo it: add-member {name}"
        case AdjustmentKind.KILL_MEMBER:
            return f"a member of {name} was killed: its partitions wait until its session ends"
        case AdjustmentKind.SET:
            return f"{name} now has {made.key}={made.value}"
        case AdjustmentKind.BANDWIDTH:
            return f"the network of broker {made.broker} now carries {size(round(made.amount))}/s each way"
        case AdjustmentKind.ELECT:
            lacking = "partitions without a leader get one, which may lack committed records"
            return f"unclean leader election for {name}: {lacking}"
