"""Faults as words: what a key does, what was done, what was refused, and what is in force."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kview.errors import ErrorFacts
from kview.language import nouns
from kview.language.errors import message, sentence
from kview.language.incidents import GONE_UNKNOWN
from kview.language.words import duration, plural
from kview.model.faults import (
    ActiveFault,
    FaultCommand,
    FaultDone,
    FaultKind,
    FaultOutcome,
    FaultState,
    NodeRole,
)

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


class Needs(NamedTuple):
    """What a command on standard input needs besides its name, and an example of the whole line."""

    what: str
    example: str


NEEDS: Mapping[FaultKind, Needs] = {
    FaultKind.CRASH: Needs("needs one node", "crash 4"),
    FaultKind.STOP: Needs("needs one node", "stop 4"),
    FaultKind.HANG: Needs("needs one node", "hang 4"),
    FaultKind.SLOW: Needs("needs a node and a latency", "slow 4 200ms"),
    FaultKind.START: Needs("needs one node", "start 4"),
    FaultKind.LOSE_RACK: Needs("needs one rack", "lose-rack R2"),
    FaultKind.CRASH_CONTROLLER: Needs("takes no argument", "crash-controller"),
    FaultKind.UNDO: Needs("takes no argument", "undo"),
}
"""What is said about a line that lacks a word or has one too many."""

_DOES: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "kill the selected broker (kill −9): its port refuses connections; it is fenced when its"
    " session ends",
    FaultKind.STOP: "shut the selected broker down cleanly; it hands over leadership and leaves the ISRs"
    " first",
    FaultKind.HANG: "make the selected broker hang (kill −STOP): it accepts connections but does not answer",
    FaultKind.SLOW: "slow down the selected broker: its answers and fetches take {slow_ms} ms longer",
    FaultKind.START: "end the faults of the selected broker, or of the node that was hit last if that broker"
    " has none",
    FaultKind.LOSE_RACK: "cut power to the selected broker's rack: all its brokers are killed at once",
    FaultKind.CRASH_CONTROLLER: "kill the active controller: the other voters elect a new one",
    FaultKind.UNDO: "undo all faults and all changes of the lab: every node runs, and all is set as it was",
}

_DOING: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "killing broker {node}",
    FaultKind.STOP: "stopping broker {node}",
    FaultKind.HANG: "making broker {node} hang",
    FaultKind.SLOW: "slowing down broker {node}",
    FaultKind.START: "restoring node {node}",
    FaultKind.LOSE_RACK: "cutting power to rack {rack}",
    FaultKind.CRASH_CONTROLLER: "killing the active controller",
    FaultKind.UNDO: "undoing all faults",
}

_DONE: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "{node} was killed (kill −9): its port refuses connections; it is fenced when its"
    " session ends",
    FaultKind.STOP: "{node} is stopping cleanly: it hands over its leadership and leaves the ISRs before it"
    " exits",
    FaultKind.HANG: "{node} is hung (kill −STOP): it accepts connections but does not answer",
    FaultKind.SLOW: "{node} is slow: each of its answers and fetches takes {slow_ms} ms longer",
    FaultKind.START: "{node} was started",
    FaultKind.LOSE_RACK: "every broker in rack {rack} has lost power",
    FaultKind.CRASH_CONTROLLER: "the active {node} was killed: the other voters elect a new one",
    FaultKind.UNDO: "all faults undone; nodes that were down are starting",
}

_DONE_TO_A_CONTROLLER: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "{node} was killed (kill −9)",
    FaultKind.STOP: "{node} was stopped",
}

_DONE_WITHOUT_QUORUM: Mapping[FaultKind, str] = {
    FaultKind.CRASH: "{node} was killed (kill −9): its port refuses connections; nobody can fence it"
    " without a majority of the controllers",
    FaultKind.CRASH_CONTROLLER: "the active {node} was killed: too few controllers are left to elect a new"
    " one",
}
"""What was done while too few controllers are left to decide anything."""

NO_FAULT = "no fault in force"


_REJOINS: Mapping[NodeRole, str] = {
    NodeRole.BROKER: ": it rejoins the ISRs once it has caught up",
    NodeRole.CONTROLLER: ": it votes again",
}


def does(kind: FaultKind, slow_ms: int = 0) -> str:
    """Return what a fault's key does, for the help."""
    return _DOES[kind].format(slow_ms=slow_ms)


def doing(command: FaultCommand) -> str:
    """Return what has been asked for but is not done yet: `killing broker 4`."""
    return _DOING[command.kind].format(node=command.node, rack=command.rack)


def done(fault: FaultDone) -> str:
    """Return what was done: `broker 4 was killed (kill −9): …`."""
    if fault.kind is FaultKind.UNDO:
        return _undone(fault)
    if fault.kind is FaultKind.START:
        return _started(fault)
    words = _DONE[fault.kind]
    if not fault.has_quorum:
        words = _DONE_WITHOUT_QUORUM.get(fault.kind, words)
    if fault.role is NodeRole.CONTROLLER:
        words = _DONE_TO_A_CONTROLLER.get(fault.kind, words)
    return words.format(node=_nodes(fault), rack=fault.rack, slow_ms=fault.slow_ms)


def caught_up(fault: FaultDone) -> str:
    """Return that what START or UNDO restored is in sync again: `broker 4 has caught up: …`."""
    if fault.kind is FaultKind.UNDO:
        return "every broker is up, and every copy is in sync again"
    return f"{_nodes(fault)} has caught up: it is in every ISR again"


def _nodes(fault: FaultDone) -> str:
    of_role = nouns.brokers if fault.role is NodeRole.BROKER else nouns.controllers
    return of_role(fault.nodes) if fault.nodes else ""


def _started(fault: FaultDone) -> str:
    """Return what START did to a node, which depends on the faults that it had."""
    ended = set(fault.ended)
    if ended == {FaultState.SLOW}:
        return f"{_nodes(fault)} is no longer slowed down"
    how = "was resumed (kill −CONT)" if FaultState.HUNG in ended else "was started"
    return f"{_nodes(fault)} {how}{_REJOINS[fault.role]}"


def _undone(fault: FaultDone) -> str:
    """Return what undoing everything did."""
    changes = f"{plural(fault.undone_changes, 'change')} of the lab undone" if fault.undone_changes else ""
    if not fault.nodes:
        return changes or NO_FAULT
    return "; ".join(filter(None, (_DONE[FaultKind.UNDO], changes)))


def undoing(command: FaultCommand) -> str:
    """Return what a command that ends faults does: `restore 4`, `undo all`."""
    return "undo all" if command.kind is FaultKind.UNDO else f"restore {command.node}"


def outcome(of: FaultOutcome) -> str:
    """Return what a fault led to: `broker 4 crashed: 2 partitions got new leaders after 9 s; …`."""
    clean = of.kind is FaultKind.STOP
    how = {FaultKind.STOP: "stopped cleanly", FaultKind.HANG: "hangs"}.get(of.kind, "crashed")
    when = "before it exited" if clean else f"after {duration(of.after_ms)}"
    leaders = "a new leader" if of.moved == 1 else "new leaders"
    parts = [f"{plural(of.moved, 'partition')} got {leaders} {when}"] if of.moved else []
    if of.moved_to_silent:
        does = "does" if len(of.silent_leaders) == 1 else "do"
        they, them = ("it", "it") if of.moved_to_silent == 1 else ("they", "them")
        parts.append(
            f"{plural(of.moved_to_silent, 'partition')} moved to {nouns.brokers(of.silent_leaders)}, which"
            f" {does} not answer: {they} cannot be read or written until an answering broker leads {them}"
        )
    if of.without_leader:
        has, their = ("has", "its") if of.without_leader == 1 else ("have", "their")
        parts.append(
            f"{plural(of.without_leader, 'partition')} {has} no leader: {their} records cannot be read until"
            " a broker that has all of them is back"
        )
    if of.records_lost:
        elsewhere = " elsewhere" if of.without_leader or of.moved_to_silent else ""
        parts.append(f"≥ {plural(of.records_lost, 'record')} lost{elsewhere}")
    elif not clean and (of.moved or of.moved_to_silent):
        parts.append(GONE_UNKNOWN)
    return f"broker {of.node} {how}: {'; '.join(parts)}"


def refusal(error: ErrorFacts, undone_by: FaultCommand | None, name: Callable[[FaultCommand], str]) -> str:
    """Return why a fault was refused and what to do. `name` turns a command into a key or a line to type."""
    if undone_by is not None:
        rest = "restores every node" if undone_by.kind is FaultKind.UNDO else "restores it"
        return f"{message(error)}: {name(undone_by)} {rest}"
    return sentence(error)


def in_force(active: Sequence[ActiveFault]) -> tuple[str, ...]:
    """Return the faults in force: `brokers 3 and 4 crashed`, `controller 101 slow 200 ms`.

    Nodes of one role with the same fault are named together.
    """
    nodes: dict[tuple[NodeRole, FaultState, int], list[int]] = {}
    for fault in active:
        nodes.setdefault((fault.role, fault.state, fault.slow_ms), []).append(fault.node)
    return tuple(
        f"{nouns.some_brokers(ids) if role is NodeRole.BROKER else nouns.controllers(ids)} {state}"
        f"{f' {slow_ms} ms' if state is FaultState.SLOW else ''}"
        for (role, state, slow_ms), ids in nodes.items()
    )


def answers_again(active: Sequence[ActiveFault]) -> str:
    """Return that the cluster answers after it did not, and which faults are in force."""
    return f"the simulated cluster answers again; faults in force: {_all_in_force(active)}"


def _all_in_force(active: Sequence[ActiveFault]) -> str:
    return "; ".join(in_force(active)) or "none"


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
    """Return the status of a cluster: `6 brokers, 3 controllers; faults in force: broker 4 crashed`."""
    nodes = f"{plural(cluster.brokers, 'broker')}, {plural(cluster.controllers, 'controller')}"
    clock = (
        f"; its clock is {cluster.behind_ms} ms behind after the process was paused"
        if cluster.behind_ms
        else ""
    )
    return f"{nodes}{clock}; faults in force: {_all_in_force(cluster.active)}"
