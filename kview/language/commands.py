"""Commands of the lab as words: what a key does, what was done, what was refused, and what is in force."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kview.errors import ErrorFacts
from kview.language import nouns
from kview.language.errors import message, sentence
from kview.language.glyphs import ELLIPSIS
from kview.language.incidents import GONE_UNKNOWN
from kview.language.words import duration, plural, rate, size
from kview.model.lab import (
    ARGUMENTS,
    CUTS,
    ActiveFault,
    Argument,
    Command,
    CommandKind,
    Done,
    FaultState,
    NodeRole,
    Outcome,
    Status,
)
from kview.model.units import UNKNOWN_ID


class _Words(NamedTuple):
    """What is said of a kind of command. {node}, {name}, {amount}, {key} and {value} are the command's."""

    done: str
    """What it did."""
    doing: str = "changing {name}"
    does: str = ""
    """What its key does, for the help."""
    undoing: str = ""
    """What it does where it undoes another command, in a few words."""


_WORDS: Mapping[CommandKind, _Words] = {
    CommandKind.CRASH: _Words(
        "{node} was killed (kill −9): its port refuses connections; it is fenced when its session ends",
        "killing {node}",
        "kill the selected broker (kill −9): its port refuses connections; it is fenced when its session"
        " ends",
    ),
    CommandKind.STOP: _Words(
        "{node} is stopping cleanly: it hands over its leadership and leaves the ISRs before it exits",
        "stopping {node}",
        "shut the selected broker down cleanly; it hands over leadership and leaves the ISRs first",
    ),
    CommandKind.HANG: _Words(
        "{node} is hung (kill −STOP): it accepts connections but does not answer",
        "making {node} hang",
        "make the selected broker hang (kill −STOP): it accepts connections but does not answer",
    ),
    CommandKind.SLOW: _Words(
        "{node} is slow: each of its answers and fetches takes {amount} ms longer",
        "slowing down {node}",
        "slow down the selected broker: its answers and fetches take {amount} ms longer",
    ),
    CommandKind.START: _Words(
        "",
        "restoring {node}",
        "end the faults of the selected broker, or of the node that was hit last if that broker has none",
        "restore {id}",
    ),
    CommandKind.LOSE_RACK: _Words(
        "every broker in rack {name} has lost power",
        "cutting power to rack {name}",
        "cut power to the selected broker's rack: all its brokers are killed at once",
    ),
    CommandKind.CRASH_CONTROLLER: _Words(
        "the active {node} was killed: the other voters elect a new one",
        "killing the active controller",
        "kill the active controller: the other voters elect a new one",
    ),
    CommandKind.CUT: _Words(
        "no packet arrives between nodes {id} and {other}; clients still reach both",
        "cutting the network",
        undoing="join {id} {other}",
    ),
    CommandKind.CUT_ONE_WAY: _Words(
        "packets from node {id} to node {other} are lost; clients still reach both", "cutting the network"
    ),
    CommandKind.ISOLATE: _Words(
        "{node} reaches no other node, only its clients: it is fenced when its session ends",
        "isolating {node}",
        "isolate the selected broker: no packet arrives between it and other nodes; clients still reach it",
    ),
    CommandKind.JOIN: _Words(
        "nodes {id} and {other} reach each other again", "joining the network", undoing="join {id} {other}"
    ),
    CommandKind.JOIN_ALL: _Words("all nodes reach each other again", "joining the network"),
    CommandKind.LOSE_DISK: _Words(
        "a log directory of {node} has failed: its replicas there are offline",
        "taking a disk from {node}",
        "lose a disk of the selected broker: it ends if that was its only one, or had the metadata log",
        "repair the disk of {id}",
    ),
    CommandKind.FILL_DISK: _Words(
        "a disk of {node} is full: its log directory fails within 5 s, or with the next append, and its"
        " replicas there are then offline",
        "filling a disk of {node}",
    ),
    CommandKind.SLOW_DISK: _Words(
        "the disks of {node} are slow: each append, and each fetch over the network, takes {amount} ms"
        " longer",
        "slowing down the disks of {node}",
    ),
    CommandKind.REPAIR_DISK: _Words(
        "the disks of {node} work again: it starts again if one had failed, and copies what it lacks",
        "repairing the disks of {node}",
        undoing="repair the disk of {id}",
    ),
    CommandKind.FENCE_NOW: _Words(
        "the controller has ended the session of {node}: it is fenced until it sends a heartbeat",
        "fencing {node}",
    ),
    CommandKind.ADVANCE: _Words("{amount} have passed for the cluster", "letting time pass"),
    CommandKind.ADVANCE_ALL: _Words(
        "{amount} have passed for the cluster, and members' sessions have ended", "letting time pass"
    ),
    CommandKind.PAUSE_TIME: _Words(
        "the cluster's clock stands: requests are served, and nothing times out", "pausing time"
    ),
    CommandKind.RESUME_TIME: _Words("the cluster's clock goes on", "resuming time"),
    CommandKind.FAIL: _Words("requests of {name} now fail with error {key}", "making a rule"),
    CommandKind.DELAY: _Words("requests of {name} now wait for {amount}", "making a rule"),
    CommandKind.DROP: _Words(
        "requests of {name} now lose their connection, {key} they took effect", "making a rule"
    ),
    CommandKind.FILM: _Words("what happens from now on can be recorded: record FOLDER", "filming"),
    CommandKind.RECORD: _Words("recorded: kview replay {name}", "writing the recording"),
    CommandKind.UNDO: _Words(
        "all faults undone; nodes that were down are starting",
        "undoing all faults",
        "undo all faults and all changes of the lab: every node runs, and all is set as it was",
        "undo all",
    ),
    CommandKind.RATE: _Words("{name} now sends {amount} records/s", undoing="back to {amount} records/s"),
    CommandKind.PAUSE_PRODUCER: _Words("{name} has stopped sending", undoing="pause it again"),
    CommandKind.RESUME_PRODUCER: _Words("{name} is sending again", undoing="resume it"),
    CommandKind.PAUSE: _Words(
        "the members of {name} have stopped reading but still send heartbeats", undoing="pause it again"
    ),
    CommandKind.RESUME: _Words("the members of {name} are reading again", undoing="resume it"),
    CommandKind.ADD_MEMBER: _Words("a new member joins {name}", undoing="add a member"),
    CommandKind.REMOVE_MEMBER: _Words("a member of {name} commits and leaves", undoing="remove a member"),
    CommandKind.KILL_MEMBER: _Words(
        "a member of {name} was killed: its partitions wait until its session ends"
    ),
    CommandKind.SET: _Words("{name} now has {key}={value}", undoing="back to {value}"),
    CommandKind.UNSET: _Words(
        "{name} no longer has its own {key}: the brokers' default applies", undoing="back to the default"
    ),
    CommandKind.BANDWIDTH: _Words(
        "the network of {node} now carries {amount}/s each way",
        "changing {node}",
        undoing="back to {amount}/s",
    ),
    CommandKind.ELECT: _Words(
        "unclean leader election for {name}: partitions without a leader get one, which may lack committed"
        " records"
    ),
    CommandKind.TAKE_OVER: _Words(
        "a second instance of {name} takes over its transactional id: the first will be fenced"
    ),
    CommandKind.HANG_TRANSACTION: _Words(
        "{name} has an open transaction that no coordinator knows of: it hangs",
        undoing="abort the transaction",
    ),
    CommandKind.ABORT_TRANSACTION: _Words("the hanging transaction of {name} was aborted"),
}

_DONE_AND_ENDED: Mapping[CommandKind, str] = {
    CommandKind.LOSE_DISK: "{node} has lost its disk and ends: it comes back without what was there",
    CommandKind.FILL_DISK: "the disk of {node} is full: it ends within 5 s, or with the next append",
}
"""What was done to the disk that a broker cannot do without."""

_DONE_TO_A_CONTROLLER: Mapping[CommandKind, str] = {
    CommandKind.CRASH: "{node} was killed (kill −9)",
    CommandKind.STOP: "{node} was stopped",
    CommandKind.ISOLATE: "{node} reaches no other node: if it is the active one, it resigns",
}

_DONE_WITHOUT_QUORUM: Mapping[CommandKind, str] = {
    CommandKind.CRASH: "{node} was killed (kill −9): its port refuses connections; nobody can fence it"
    " without a majority of the controllers",
    CommandKind.CRASH_CONTROLLER: "the active {node} was killed: too few controllers are left to elect a new"
    " one",
}
"""What was done while too few controllers are left to decide anything."""

NO_FAULT = "no fault in force"

_REJOINS: Mapping[NodeRole, str] = {
    NodeRole.BROKER: ": it rejoins the ISRs once it has caught up",
    NodeRole.CONTROLLER: ": it votes again",
}


class _Needs(NamedTuple):
    """What is said of an argument that is missing, and an example of it."""

    what: str
    example: str


_NEEDS: Mapping[Argument, _Needs] = {
    Argument.NODE: _Needs("a node", "4"),
    Argument.OTHER: _Needs("another node", "101"),
    Argument.BROKER: _Needs("a broker", "4"),
    Argument.RACK: _Needs("a rack", "R2"),
    Argument.PRODUCER: _Needs("a producer", "invoice-service"),
    Argument.GROUP: _Needs("a group", "billing"),
    Argument.TOPIC: _Needs("a topic", "payment"),
    Argument.PARTITION: _Needs("a partition", "payment-0"),
    Argument.LATENCY: _Needs("a latency", "200ms"),
    Argument.TIME: _Needs("a time", "10m"),
    Argument.API: _Needs("an API", "Produce"),
    Argument.FOLDER: _Needs("a folder", "/tmp/crash"),
    Argument.ERROR: _Needs("an error", "NOT_LEADER_OR_FOLLOWER"),
    Argument.MOMENT: _Needs("a moment", "after"),
    Argument.WHERE: _Needs("which requests", "times=2,topic=payment"),
    Argument.RATE: _Needs("records per second", "200"),
    Argument.BANDWIDTH: _Needs("bytes per second", "200k"),
    Argument.KEY: _Needs("a setting", "min.insync.replicas"),
    Argument.SETTING: _Needs("a setting", "min.insync.replicas=1"),
}


def needs(kind: CommandKind) -> str:
    """Return what has to be typed after a command's name: `needs a node and a latency`."""
    wanted = [_NEEDS[argument].what for argument in ARGUMENTS[kind]]
    return f"needs {' and '.join(wanted)}" if wanted else "takes no argument"


def example(kind: CommandKind) -> str:
    """Return a command as it is typed: `slow 4 200ms`."""
    return " ".join((kind.value, *(_NEEDS[argument].example for argument in ARGUMENTS[kind])))


def does(command: Command) -> str:
    """Return what the key of a command does, for the help."""
    return _filled(_WORDS[command.kind].does, command)


def doing(command: Command) -> str:
    """Return what has been asked for but is not done yet: `killing node 4 …`."""
    return f"{_filled(_WORDS[command.kind].doing, command)} {ELLIPSIS}"


def done(action: Done) -> str:
    """Return what was done: `broker 4 was killed (kill −9): …`."""
    kind = action.kind
    if kind is CommandKind.UNDO:
        return _undone(action)
    if kind is CommandKind.START:
        return _started(action)
    words = _WORDS[kind].done
    if action.ends_broker:
        words = _DONE_AND_ENDED.get(kind, words)
    if not action.has_quorum:
        words = _DONE_WITHOUT_QUORUM.get(kind, words)
    if action.role is NodeRole.CONTROLLER:
        words = _DONE_TO_A_CONTROLLER.get(kind, words)
    return _filled(words, action.command, _nodes(action))


def undoing(command: Command) -> str:
    """Return what a command that undoes another one does: `restore 4`, `back to 4,400 records/s`."""
    return _filled(_WORDS[command.kind].undoing, command)


def _filled(words: str, command: Command, node: str = "") -> str:
    match command.kind:
        case CommandKind.RATE:
            amount = rate(command.amount)
        case CommandKind.BANDWIDTH:
            amount = size(round(command.amount))
        case CommandKind.ADVANCE | CommandKind.ADVANCE_ALL | CommandKind.DELAY:
            amount = duration(round(command.amount))
        case _:
            amount = f"{command.amount:.0f}"
    what = "node" if command.kind is CommandKind.START else "broker"
    return words.format(
        node=node or f"{what} {command.node}",
        id=command.node,
        other=command.other,
        name=command.name,
        amount=amount,
        key=command.key,
        value=command.value,
    )


def caught_up(action: Done) -> str:
    """Return that what START or UNDO restored is in sync again: `broker 4 has caught up: …`."""
    if action.kind is CommandKind.UNDO:
        return "every broker is up, and every copy is in sync again"
    return f"{_nodes(action)} has caught up: it is in every ISR again"


def _nodes(action: Done) -> str:
    of_role = nouns.brokers if action.role is NodeRole.BROKER else nouns.controllers
    return of_role(action.nodes) if action.nodes else ""


def _started(action: Done) -> str:
    """Return what START did to a node, which depends on the faults that it had."""
    ended = set(action.ended)
    if ended == {FaultState.SLOW}:
        return f"{_nodes(action)} is no longer slowed down"
    if ended == {FaultState.DISK_SLOW}:
        return f"the disks of {_nodes(action)} are no longer slowed down"
    if ended and ended <= CUTS:
        return f"{_nodes(action)} reaches every other node again"
    how = "was resumed (kill −CONT)" if FaultState.HUNG in ended else "was started"
    return f"{_nodes(action)} {how}{_REJOINS[action.role]}"


def _undone(action: Done) -> str:
    """Return what undoing everything did."""
    changes = f"{plural(action.undone_changes, 'change')} of the lab undone" if action.undone_changes else ""
    if not action.nodes:
        return changes or NO_FAULT
    return "; ".join(filter(None, (_WORDS[CommandKind.UNDO].done, changes)))


_WHAT_HAPPENED = {
    CommandKind.STOP: "stopped cleanly",
    CommandKind.HANG: "hangs",
    CommandKind.ISOLATE: "is isolated",
}


def outcome(of: Outcome) -> str:
    """Return what a fault led to: `broker 4 crashed: 2 partitions got new leaders after 9 s; …`."""
    clean = of.kind is CommandKind.STOP
    how = _WHAT_HAPPENED.get(of.kind, "crashed")
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


def refusal(error: ErrorFacts, undone_by: Command | None, name: Callable[[Command], str]) -> str:
    """Return why a fault was refused and what to do. `name` turns a command into a key or a line to type."""
    if undone_by is not None:
        rest = "restores every node" if undone_by.kind is CommandKind.UNDO else "restores it"
        return f"{message(error)}: {name(undone_by)} {rest}"
    return sentence(error)


def in_force(active: Sequence[ActiveFault]) -> tuple[str, ...]:
    """Return the faults in force: `brokers 3 and 4 crashed`, `network cut between 0 and 101`.

    Nodes of one role with the same fault are named together, and nodes that are cut off from the same one.
    """
    nodes: dict[tuple[NodeRole, FaultState, int], list[int]] = {}
    cuts: dict[tuple[FaultState, int], list[int]] = {}
    for fault in active:
        if fault.other == UNKNOWN_ID:
            nodes.setdefault((fault.role, fault.state, fault.slow_ms), []).append(fault.node)
        else:
            cuts.setdefault((fault.state, fault.node), []).append(fault.other)
    of_nodes = tuple(
        f"{nouns.some_brokers(ids) if role is NodeRole.BROKER else nouns.controllers(ids)} {state}"
        f"{f' {slow_ms} ms' if slow_ms else ''}"
        for (role, state, slow_ms), ids in nodes.items()
    )
    of_networks = tuple(
        f"network cut from {node} to {' and '.join(map(str, others))}"
        if state is FaultState.CUT_ONE_WAY
        else f"network cut between {node} and {' and '.join(map(str, others))}"
        for (state, node), others in cuts.items()
    )
    return of_nodes + of_networks


def answers_again(active: Sequence[ActiveFault]) -> str:
    """Return that the cluster answers after it did not, and which faults are in force."""
    return f"the simulated cluster answers again; faults in force: {_all_in_force(active)}"


def _all_in_force(active: Sequence[ActiveFault]) -> str:
    return "; ".join(in_force(active)) or "none"


def status(cluster: Status) -> str:
    """Return the status of a cluster: `6 brokers, 3 controllers; faults in force: broker 4 crashed`."""
    nodes = f"{plural(cluster.brokers, 'broker')}, {plural(cluster.controllers, 'controller')}"
    clock = (
        f"; its clock is {cluster.behind_ms} ms behind after the process was paused"
        if cluster.behind_ms
        else ""
    )
    if cluster.stands:
        clock += "; its clock stands"
    return f"{nodes}{clock}; faults in force: {_all_in_force(cluster.active)}"
