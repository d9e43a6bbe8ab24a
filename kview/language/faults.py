"""Faults as words: what a key does, what was done, what was refused, and what is in force."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kview.errors import ErrorFacts, ErrorKind
from kview.language import nouns
from kview.language.errors import message, sentence
from kview.language.words import plural
from kview.model.faults import ActiveFault, FaultCommand, FaultDone, FaultKind, FaultState, NodeRole

USAGE: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "crash NODE",
    FaultKind.STOP: "stop NODE",
    FaultKind.HANG: "hang NODE",
    FaultKind.SLOW: "slow NODE 200ms",
    FaultKind.START: "start NODE",
    FaultKind.LOSE_RACK: "lose-rack RACK",
    FaultKind.CRASH_CONTROLLER: "crash-controller",
    FaultKind.UNDO: "undo",
}
"""The form in which each fault is typed on standard input."""

_DOES: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "kill the selected broker (kill −9): its port refuses connections; it is fenced when its"
    " session ends",
    FaultKind.STOP: "shut the selected broker down cleanly; it hands over leadership and leaves the ISRs"
    " first",
    FaultKind.HANG: "make the selected broker hang (kill −STOP): it accepts connections but does not answer",
    FaultKind.SLOW: "slow down the selected broker: its answers and fetches take {slow_ms} ms longer",
    FaultKind.START: "bring the selected broker back, whatever its fault",
    FaultKind.LOSE_RACK: "cut power to the selected broker's rack: all its brokers are killed at once",
    FaultKind.CRASH_CONTROLLER: "kill the active controller: the other voters elect a new one",
    FaultKind.UNDO: "undo all faults: every node is started, and none is slow",
}

_DOING: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "killing broker {node}",
    FaultKind.STOP: "stopping broker {node}",
    FaultKind.HANG: "making broker {node} hang",
    FaultKind.SLOW: "slowing down broker {node}",
    FaultKind.START: "bringing broker {node} back",
    FaultKind.LOSE_RACK: "cutting power to rack {rack}",
    FaultKind.CRASH_CONTROLLER: "killing the active controller",
    FaultKind.UNDO: "undoing all faults",
}

_DONE: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "{node} was killed (kill −9): its port refuses connections; it is fenced when its"
    " session ends",
    FaultKind.STOP: "{node} is stopping: it hands over its leadership and leaves the ISRs before it exits",
    FaultKind.HANG: "{node} is hung (kill −STOP): it accepts connections but does not answer",
    FaultKind.SLOW: "{node} is slow: each of its answers and fetches takes {slow_ms} ms longer",
    FaultKind.START: "{node} is back",
    FaultKind.LOSE_RACK: "every broker in rack {rack} has lost power",
    FaultKind.CRASH_CONTROLLER: "the active {node} was killed: the other voters elect a new one",
    FaultKind.UNDO: "all faults undone; every node is started",
}

_DONE_TO_A_CONTROLLER: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "{node} was killed (kill −9)",
    FaultKind.STOP: "{node} was stopped",
}

NO_FAULT = "no fault in force"


def does(kind: FaultKind, slow_ms: int = 0) -> str:
    """Return what a fault's key does, for the help."""
    return _DOES[kind].format(slow_ms=slow_ms)


def doing(command: FaultCommand) -> str:
    """Return what has been asked for but is not done yet: `killing broker 4`."""
    return _DOING[command.kind].format(node=command.node, rack=command.rack)


def done(fault: FaultDone) -> str:
    """Return what was done: `broker 4 is back`."""
    if fault.kind is FaultKind.UNDO and not fault.nodes:
        return NO_FAULT
    words = _DONE[fault.kind]
    if fault.role is NodeRole.CONTROLLER:
        words = _DONE_TO_A_CONTROLLER.get(fault.kind, words)
    of_role = nouns.brokers if fault.role is NodeRole.BROKER else nouns.controllers
    node = of_role(fault.nodes) if fault.nodes else ""
    return words.format(node=node, rack=fault.rack, slow_ms=fault.slow_ms)


def refusal(error: ErrorFacts, undone_by: FaultCommand | None, name: Callable[[FaultCommand], str]) -> str:
    """Return why a fault was refused and what to do. `name` turns a command into a key or a line to type."""
    if undone_by is not None:
        rest = "brings them all back" if undone_by.kind is FaultKind.UNDO else "brings it back"
        return f"{message(error)}: {name(undone_by)} {rest}"
    return message(error) if error.kind is ErrorKind.NODE_WITHOUT_FAULT else sentence(error)


def in_force(fault: ActiveFault) -> str:
    """Return a fault in force: `4 crashed`, `2 slow 200 ms`."""
    slow = f" {fault.slow_ms} ms" if fault.state is FaultState.SLOW else ""
    return f"{fault.node} {fault.state}{slow}"


def typed(command: FaultCommand) -> str:
    """Return the line that asks for a fault on standard input: `start 4`."""
    match command.kind:
        case FaultKind.LOSE_RACK:
            return f"{command.kind} {command.rack}"
        case FaultKind.SLOW:
            return f"{command.kind} {command.node} {command.slow_ms}ms"
        case FaultKind.UNDO | FaultKind.CRASH_CONTROLLER:
            return command.kind.value
        case _:
            return f"{command.kind} {command.node}"


class ClusterStatus(Protocol):
    """The state of a simulated cluster."""

    @property
    def brokers(self) -> int:
        """The number of brokers."""
        ...

    @property
    def controllers(self) -> int:
        """The number of controllers."""
        ...

    @property
    def behind_ms(self) -> int:
        """How far the cluster's clock is behind the wall clock after a pause, in milliseconds."""
        ...

    @property
    def active(self) -> Sequence[ActiveFault]:
        """The faults in force."""
        ...


def status(cluster: ClusterStatus) -> str:
    """Return the status of a cluster: `6 brokers, 3 controllers; faults: 4 crashed`."""
    nodes = f"{plural(cluster.brokers, 'broker')}, {plural(cluster.controllers, 'controller')}"
    clock = (
        f"; its clock is {cluster.behind_ms} ms behind after the process was paused"
        if cluster.behind_ms
        else ""
    )
    return f"{nodes}{clock}; faults: {', '.join(map(in_force, cluster.active)) or 'none'}"
