"""Adjustments of a simulated cluster as words."""

from collections.abc import Mapping

from kview.language.faults import Needs
from kview.language.words import rate, size
from kview.model.adjustments import Adjustment, AdjustmentKind

NEEDS: Mapping[AdjustmentKind, Needs] = {
    AdjustmentKind.RATE: Needs("needs a producer and records per second", "rate invoice-service 200"),
    AdjustmentKind.PAUSE: Needs("needs one group", "pause billing"),
    AdjustmentKind.RESUME: Needs("needs one group", "resume billing"),
    AdjustmentKind.PAUSE_PRODUCER: Needs("needs one producer", "pause-producer invoice-service"),
    AdjustmentKind.RESUME_PRODUCER: Needs("needs one producer", "resume-producer invoice-service"),
    AdjustmentKind.ADD_MEMBER: Needs("needs one group", "add-member billing"),
    AdjustmentKind.REMOVE_MEMBER: Needs("needs one group", "remove-member billing"),
    AdjustmentKind.KILL_MEMBER: Needs("needs one group", "kill-member billing"),
    AdjustmentKind.SET: Needs("needs a topic and a setting", "set payment min.insync.replicas=1"),
    AdjustmentKind.UNSET: Needs("needs a topic and a setting", "unset payment min.insync.replicas"),
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
        case AdjustmentKind.PAUSE_PRODUCER:
            return f"{name} has stopped sending"
        case AdjustmentKind.RESUME_PRODUCER:
            return f"{name} is sending again"
        case AdjustmentKind.PAUSE:
            return f"the members of {name} have stopped reading but still send heartbeats"
        case AdjustmentKind.RESUME:
            return f"the members of {name} are reading again"
        case AdjustmentKind.ADD_MEMBER:
            return f"a new member joins {name}"
        case AdjustmentKind.REMOVE_MEMBER:
            return f"a member of {name} commits and leaves"
        case AdjustmentKind.KILL_MEMBER:
            return f"a member of {name} was killed: its partitions wait until its session ends"
        case AdjustmentKind.SET:
            return f"{name} now has {made.key}={made.value}"
        case AdjustmentKind.UNSET:
            return f"{name} no longer has its own {made.key}: the brokers' default applies"
        case AdjustmentKind.BANDWIDTH:
            return f"the network of broker {made.broker} now carries {size(round(made.amount))}/s each way"
        case AdjustmentKind.ELECT:
            lacking = "partitions without a leader get one, which may lack committed records"
            return f"unclean leader election for {name}: {lacking}"


def typed(wanted: Adjustment) -> str:
    """Return the line that asks for an adjustment on standard input: `rate invoice-service 4400`."""
    kind, name = wanted.kind, wanted.name
    match kind:
        case AdjustmentKind.RATE:
            return f"{kind} {name} {wanted.amount:.6f}".rstrip("0").rstrip(".")
        case AdjustmentKind.BANDWIDTH:
            return f"{kind} {wanted.broker} {wanted.amount:.0f}"
        case AdjustmentKind.SET:
            return f"{kind} {name} {wanted.key}={wanted.value}"
        case AdjustmentKind.UNSET:
            return f"{kind} {name} {wanted.key}"
        case _:
            return f"{kind} {name}"


def undoing(back: Adjustment) -> str:
    """Return in a few words what an adjustment that undoes another one does: `back to 4,400 records/s`."""
    match back.kind:
        case AdjustmentKind.RATE:
            return f"back to {rate(back.amount)} records/s"
        case AdjustmentKind.BANDWIDTH:
            return f"back to {size(round(back.amount))}/s"
        case AdjustmentKind.SET:
            return f"back to {back.value}"
        case AdjustmentKind.UNSET:
            return "back to the default"
        case _:
            return _UNDOING.get(back.kind, back.kind.value)


_UNDOING: Mapping[AdjustmentKind, str] = {
    AdjustmentKind.PAUSE: "pause it again",
    AdjustmentKind.RESUME: "resume it",
    AdjustmentKind.PAUSE_PRODUCER: "pause it again",
    AdjustmentKind.RESUME_PRODUCER: "resume it",
    AdjustmentKind.ADD_MEMBER: "add a member",
    AdjustmentKind.REMOVE_MEMBER: "remove a member",
    AdjustmentKind.KILL_MEMBER: "kill a member",
}
