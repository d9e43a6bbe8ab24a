"""The actions of faults. Their keys are capital letters and need a lab."""

from msgspec import Struct

from kview.language.commands import does
from kview.model.lab import Command, CommandKind
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


_BACK = "{restore}"

FAULTS_BY_KEY: dict[str, FaultKey] = {
    fault.key: fault
    for fault in (
        FaultKey("K", CommandKind.CRASH, "crash", "broker", _BACK, 5),
        FaultKey("S", CommandKind.STOP, "stop", "broker", _BACK, 12),
        FaultKey("H", CommandKind.HANG, "hang", "broker", _BACK, 11),
        FaultKey("W", CommandKind.SLOW, "slow", "broker", _BACK, 13, amount=SLOW_BY_MS),
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
