"""The actions of faults, and what each of them hits. Their keys are capital letters and need a lab.

The target of a fault's key is the selected broker, its rack, or the leader of the selected partition. All
functions here are pure.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from kview.derive.lookup import partition_row
from kview.derive.view import View
from kview.language.commands import NO_FAULT, does
from kview.model.lab import ActiveFault, Command, CommandKind
from kview.model.units import NO_BROKER
from kview.tui.actions import Action, Kind

SLOW_BY_MS = 200
"""How much `W` slows a broker down: enough for followers to fall behind, but not enough to look dead."""


class FaultKey(Struct, frozen=True):
    """A fault's action and the key that it has by default.

    `aims` is what has to be selected: `broker` for a broker, `rack` for a broker whose rack is hit, '' for
    nothing. `fault` prefers a selected broker that has a fault. `undo` says how to end the fault, with names
    of actions in braces, and is '' for a key that ends faults.
    """

    key: str
    kind: CommandKind
    label: str
    aims: str
    undo: str
    rank: int
    amount: float = 0.0
    short: str = ""

    @property
    def name(self) -> str:
        """The action's name in key files."""
        return self.label.replace(" ", "-")

    @property
    def help(self) -> str:
        """What the key does and how to undo it, for help."""
        undo = f". Undo: {self.undo}" if self.undo else ""
        return f"{does(Command(self.kind, amount=self.amount))}{undo}"


RESTORE = "restore"
"""The action that ends the fault of one node."""

_BACK = f"{{{RESTORE}}}"

FAULTS_BY_KEY: dict[str, FaultKey] = {
    fault.key: fault
    for fault in (
        FaultKey("K", CommandKind.CRASH, "crash", "broker", _BACK, 5),
        FaultKey("S", CommandKind.STOP, "stop", "broker", _BACK, 12),
        FaultKey("H", CommandKind.HANG, "hang", "broker", _BACK, 11),
        FaultKey("W", CommandKind.SLOW, "slow", "broker", _BACK, 13, amount=SLOW_BY_MS),
        FaultKey("N", CommandKind.ISOLATE, "isolate", "broker", _BACK, 14),
        FaultKey("L", CommandKind.LOSE_DISK, "lose disk", "broker", _BACK, 17),
        FaultKey("B", CommandKind.START, "restore", "fault", "", 2),
        FaultKey(
            "X", CommandKind.LOSE_RACK, "lose rack", "rack", "{undo-faults}, or {restore} for one broker", 16
        ),
        FaultKey(
            "C",
            CommandKind.CRASH_CONTROLLER,
            "crash controller",
            "",
            "{restore} on the controller, or {undo-faults}",
            18,
            short="kill controller",
        ),
        FaultKey("U", CommandKind.UNDO, "undo faults", "", "", 15, short="undo"),
    )
}

FAULT_ACTIONS = tuple(
    Action(
        fault.name,
        (fault.key,),
        f"fault('{fault.key}')",
        fault.label,
        fault.help,
        fault.rank,
        kind=Kind.FAULT,
        short=fault.short,
    )
    for fault in FAULTS_BY_KEY.values()
)


class Target(NamedTuple):
    """The broker that a fault would hit; `why` says why it is this broker if another row was selected."""

    broker: int
    why: str = ""


def leader_of(view: View, topic: str, partition: int) -> Target | None:
    """Return the leader of a partition as a fault's target, or None if it has no known leader."""
    row = partition_row(view, topic, partition)
    leader = NO_BROKER if row is None else int(view.snapshot.partitions.leader[row])
    return Target(leader, f"leader of {topic}-{partition}") if leader > NO_BROKER else None


def rack_of(view: View, broker: int) -> str:
    """Return a broker's rack, or '' if it has none."""
    table = view.snapshot.brokers
    return next((str(rack) for id, rack in zip(table.id, table.rack, strict=True) if id == broker), "")


def to_bring_back(
    selected: Target | None, given: Sequence[int], faults: Sequence[ActiveFault]
) -> Target | None:
    """Return the node that the key `restore` brings back, or None if there is none.

    It is the selected broker if it has a fault, otherwise the node that was hit last (`given`, in order) and
    still has a fault. Without any fault it is the selected broker, so that the answer says so.
    """
    nodes = [node for fault in faults for node in fault.nodes]
    if selected is not None and selected.broker in nodes:
        return selected
    last = next((node for node in reversed(given) if node in nodes), nodes[-1] if nodes else None)
    return selected if last is None else Target(last)


def command_for(fault: FaultKey, key: str, target: Target | None, view: View | None) -> Command | str:
    """Return the command of a fault for what is selected, or a sentence that says why there is none.

    `key` is what the fault's key is called.
    """
    if not fault.aims:
        return Command(fault.kind)
    if fault.aims == "fault":
        return Command(fault.kind, target.broker) if target is not None else NO_FAULT
    if target is None or view is None:
        return f"{key} needs a broker: select one (Tab changes the panel), or a partition with a leader"
    if fault.aims == "broker":
        return Command(fault.kind, target.broker, amount=fault.amount)
    rack = rack_of(view, target.broker)
    if rack:
        return Command(fault.kind, name=rack)
    is_broker = bool((view.snapshot.brokers.id == target.broker).any())
    return f"{'broker' if is_broker else 'controller'} {target.broker} has no rack"
