"""Carries out requests to a running simulated cluster: commands, status, counters and the end of the run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from kview.errors import BadUse, ErrorKind, KviewError
from kview.lab.commands import MAX_ADVANCE_MS, MAX_SLOW_MS
from kview.lab.messages import Answer, Ask, Counters, Ending, Request, Requests
from kview.model.lab import (
    DISKS,
    ActiveFault,
    Command,
    CommandKind,
    Done,
    LoggedRequest,
    NodeRole,
    Reply,
    Status,
)
from kview.simulate.brokers.log_dirs import METADATA_DIR
from kview.simulate.cluster import Cluster
from kview.simulate.nodes import ProcessState

_UNDO = Command(CommandKind.UNDO)

_ON_A_NODE = (
    CommandKind.CRASH,
    CommandKind.STOP,
    CommandKind.HANG,
    CommandKind.SLOW,
    CommandKind.ISOLATE,
    CommandKind.START,
)
_ON_A_DISK = (
    CommandKind.LOSE_DISK,
    CommandKind.FILL_DISK,
    CommandKind.SLOW_DISK,
    CommandKind.REPAIR_DISK,
)
_BETWEEN_NODES = (CommandKind.CUT, CommandKind.CUT_ONE_WAY, CommandKind.JOIN)

_MEMBERS = {CommandKind.ADD_MEMBER: 1, CommandKind.REMOVE_MEMBER: -1}
_SAME_THING = {
    CommandKind.RESUME: CommandKind.PAUSE,
    CommandKind.RESUME_PRODUCER: CommandKind.PAUSE_PRODUCER,
    CommandKind.UNSET: CommandKind.SET,
    CommandKind.ABORT_TRANSACTION: CommandKind.HANG_TRANSACTION,
}
"""Kinds that are about the same thing as another, which stands for both."""


class _Refused(Exception):
    """Raised if a fault cannot be carried out, with the error and the command that removes the obstacle, if
    any."""

    def __init__(self, error: BadUse, undone_by: Command | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.undone_by = undone_by


class OnDemand(Protocol):
    """Rules for requests of clients, and the log of these."""

    def add(self, rule: Command) -> None:
        """Add a rule, for requests from now on. Raises BadUse."""

    def clear(self) -> int:
        """Forget all rules, and return how many there were."""

    def read(self) -> tuple[LoggedRequest, ...]:
        """Return the requests that are kept, and keep those that come from now on."""

    def forget(self) -> None:
        """Forget the requests that are kept."""


class Clients(Protocol):
    """What can be done to clients, where a cluster has those of others."""

    @property
    def on_demand(self) -> OnDemand:
        """The rules and the log."""

    def film(self) -> None:
        """Keep what happens from now on in memory."""

    def record(self, folder: Path) -> None:
        """Write what was filmed as a recording. Raises KviewError."""

    def stand(self, stands: bool) -> bool:
        """Let the cluster's clock stand, or go on. Return whether that is new."""

    def skip(self, us: int, with_sessions: bool) -> None:
        """Let so many microseconds pass at once. Only `with_sessions`, those of connected members end."""


class Console:
    """Carries out requests to `cluster`.

    `counters` returns the cluster's counters, `behind_ms` returns how far the cluster's clock is behind the
    wall clock, and `end` ends the run. `clients` is what can be done where the cluster has clients of others.
    """

    def __init__(
        self,
        cluster: Cluster,
        counters: Callable[[], Mapping[str, Any]],
        behind_ms: Callable[[], int],
        end: Callable[[], None],
        clients: Clients | None = None,
    ) -> None:
        self._cluster = cluster
        self._clients = clients
        self._counters = counters
        self._behind_ms = behind_ms
        self._end = end
        self._changes = _Changes()

    def answer(self, request: Request) -> Answer:
        """Carry out a request and return the answer."""
        match request:
            case Command():
                return self.apply(request)
            case Ask.STATUS:
                return self.status()
            case Ask.COUNTERS:
                return self.counters()
            case Ask.SETTINGS:
                return self._cluster.adjustments.settings()
            case Ask.REQUESTS:
                return Requests(() if self._clients is None else self._clients.on_demand.read())
            case Ask.FORGET_REQUESTS:
                if self._clients is not None:
                    self._clients.on_demand.forget()
                return Requests(())
            case Ask.QUIT:
                self.quit()
                return Ending()

    def apply(self, command: Command) -> Reply:
        """Carry out a command, or return why that is not possible."""
        try:
            done, undone_by = self._apply(command)
        except _Refused as refused:
            return Reply(refused=refused.error.facts, undone_by=refused.undone_by, active=self._active())
        except BadUse as error:
            return Reply(refused=error.facts, active=self._active())
        active = self._active()
        has_quorum = self._cluster.quorum.has_majority()
        return Reply(replace(done, has_quorum=has_quorum), undone_by=undone_by, active=active)

    def status(self) -> Status:
        """Return the state of the cluster."""
        world = self._cluster.world
        return Status(
            len(world.brokers),
            len(world.controllers),
            self._behind_ms(),
            self._active(),
            self._cluster.healthy(),
            self._cluster.kernel.stands,
        )

    def _active(self) -> tuple[ActiveFault, ...]:
        return tuple(self._cluster.faults.active())

    def counters(self) -> Counters:
        """Return the numbers of records appended, acknowledged and consumed."""
        return Counters(dict(self._counters()))

    def quit(self) -> None:
        """End the run."""
        self._end()

    def _apply(self, command: Command) -> tuple[Done, Command | None]:
        """Carry out a command. Returns what was done and the command that undoes it. Raises _Refused and
        BadUse."""
        cluster = self._cluster
        match command.kind:
            case CommandKind.UNDO:
                undone = self._undo_changes()
                if self._clients is not None:
                    undone += self._clients.on_demand.clear() + self._clients.stand(False)
                return Done(command, cluster.faults.undo(), undone_changes=undone), None
            case CommandKind.ADVANCE | CommandKind.ADVANCE_ALL:
                _check_time(command)
                self._with_clients().skip(
                    round(command.amount) * 1000, command.kind is CommandKind.ADVANCE_ALL
                )
                return Done(command), None
            case CommandKind.PAUSE_TIME:
                self._with_clients().stand(True)
                return Done(command), Command(CommandKind.RESUME_TIME)
            case CommandKind.RESUME_TIME:
                self._with_clients().stand(False)
                return Done(command), None
            case CommandKind.FILM:
                self._with_clients().film()
                return Done(command), None
            case CommandKind.RECORD:
                return self._record(command), None
            case CommandKind.FAIL | CommandKind.DELAY | CommandKind.DROP:
                if command.kind is CommandKind.DELAY:
                    _check_time(command)
                self._with_clients().on_demand.add(command)
                return Done(command), None
            case CommandKind.CRASH_CONTROLLER:
                node = cluster.faults.crash_controller()
                if node < 0:
                    raise _Refused(BadUse(ErrorKind.NO_ACTIVE_CONTROLLER), _UNDO)
                return Done(command, (node,), NodeRole.CONTROLLER), Command(CommandKind.START, node)
            case CommandKind.FENCE_NOW:
                brokers = cluster.broker_ids()
                if command.node not in brokers:
                    known = tuple(map(str, brokers))
                    raise _Refused(BadUse(ErrorKind.BROKER_UNKNOWN, name=str(command.node), known=known))
                if not cluster.faults.fence_now(command.node):
                    raise _Refused(BadUse(ErrorKind.NO_ACTIVE_CONTROLLER), _UNDO)
                return Done(command, (command.node,)), None
            case CommandKind.LOSE_RACK:
                racks = sorted({broker.rack for broker in cluster.world.brokers})
                if command.name not in racks:
                    raise _Refused(BadUse(ErrorKind.RACK_UNKNOWN, rack=command.name, racks=tuple(racks)))
                hit = cluster.faults.lose_rack(command.name)
                if not hit:
                    raise _Refused(BadUse(ErrorKind.RACK_DOWN, rack=command.name), _UNDO)
                return Done(command, hit), _UNDO
            case CommandKind.JOIN_ALL:
                nodes = cluster.faults.join_all()
                if not nodes:
                    raise _Refused(BadUse(ErrorKind.NO_CUT))
                return Done(command, nodes), None
            case kind if kind in _ON_A_DISK:
                return self._apply_to_disk(command)
            case kind if kind in _BETWEEN_NODES:
                return self._apply_between(command)
            case kind if kind in _ON_A_NODE:
                return self._apply_to_node(command)
        undone_by = cluster.adjustments.apply(command)
        if undone_by is not None:
            self._changes.note(undone_by)
        nodes = (command.node,) if command.kind is CommandKind.BANDWIDTH else ()
        return Done(command, nodes), undone_by

    def _record(self, command: Command) -> Done:
        try:
            self._with_clients().record(Path(command.name))
        except BadUse:
            raise
        except KviewError as error:
            raise _Refused(BadUse.of(error)) from None
        except ValueError:  # a NUL in it
            raise _Refused(BadUse(ErrorKind.NOT_A_FOLDER, folder=command.name)) from None
        return Done(command)

    def _with_clients(self) -> Clients:
        if self._clients is None:
            raise _Refused(BadUse(ErrorKind.NO_CLIENTS_HERE))
        return self._clients

    def _undo_changes(self) -> int:
        """Undo the changes in force. Returns how many there were; one that is refused now is kept."""
        undone = 0
        for back in self._changes.taken():
            try:
                self._cluster.adjustments.undo(back)
            except BadUse:
                self._changes.note(back)
            else:
                undone += 1
        return undone

    def _apply_to_disk(self, command: Command) -> tuple[Done, Command | None]:
        faults, kind, node = self._cluster.faults, command.kind, command.node
        if node not in self._cluster.broker_ids():
            known = tuple(map(str, self._cluster.broker_ids()))
            raise _Refused(BadUse(ErrorKind.BROKER_UNKNOWN, name=str(node), known=known))
        back = Command(CommandKind.REPAIR_DISK, node)
        if kind is CommandKind.REPAIR_DISK:
            if not any(fault.node == node and fault.state in DISKS for fault in faults.active()):
                raise _Refused(BadUse(ErrorKind.DISKS_WORK, node=node))
            faults.repair_disk(node)
            return Done(command, (node,)), None
        self._role_for(command)
        if kind is CommandKind.SLOW_DISK:
            faults.slow_disk(node, round(command.amount))
            return Done(command, (node,)), back
        dirs = self._cluster.brokers[node].dirs
        if not dirs.working():
            raise _Refused(BadUse(ErrorKind.NO_DISK_LEFT, node=node), back)
        ends = dirs.working() == [METADATA_DIR]
        if kind is CommandKind.LOSE_DISK:
            faults.lose_disk(node)
        else:
            faults.fill_disk(node)
        return Done(command, (node,), ends_broker=ends), back

    def _apply_between(self, command: Command) -> tuple[Done, Command | None]:
        faults, network, kind = self._cluster.faults, self._cluster.nodes.network, command.kind
        a, b = command.node, command.other
        role = self._role_of(a)
        self._role_of(b)
        if a == b:
            raise _Refused(BadUse(ErrorKind.SAME_NODE, node=a))
        if kind is CommandKind.JOIN:
            if not faults.join(a, b):
                raise _Refused(BadUse(ErrorKind.NODES_CONNECTED, node=a, other=b))
            return Done(command, (a,), role), None
        back, one_way = Command(CommandKind.JOIN, a, other=b), kind is CommandKind.CUT_ONE_WAY
        if not network.carries(a, b) and (one_way or not network.carries(b, a)):
            raise _Refused(BadUse(ErrorKind.NODES_CUT, node=a, other=b), back)
        faults.cut(a, b, one_way)
        return Done(command, (a,), role), back

    def _apply_to_node(self, command: Command) -> tuple[Done, Command | None]:
        faults, kind, node = self._cluster.faults, command.kind, command.node
        role = self._role_for(command)
        had = tuple(fault.state for fault in faults.active() if node in fault.nodes)
        match kind:
            case CommandKind.CRASH:
                faults.crash(node)
            case CommandKind.STOP:
                faults.stop(node)
            case CommandKind.HANG:
                faults.hang(node)
            case CommandKind.SLOW:
                faults.slow(node, round(command.amount))
            case CommandKind.ISOLATE:
                faults.isolate(node)
            case _:
                faults.start(node)
                return Done(command, (node,), role, ended=had), None
        return Done(command, (node,), role), Command(CommandKind.START, node)

    def _role_of(self, node: int) -> NodeRole:
        """Return a node's role. Raises _Refused if there is no such node."""
        brokers, controllers = self._cluster.broker_ids(), self._cluster.world.controllers
        if node not in brokers and node not in controllers:
            raise _Refused(
                BadUse(
                    ErrorKind.NODE_UNKNOWN,
                    node=node,
                    first=brokers[0],
                    last=brokers[-1],
                    controllers=tuple(map(str, controllers)),
                )
            )
        return NodeRole.CONTROLLER if node in controllers else NodeRole.BROKER

    def _role_for(self, command: Command) -> NodeRole:
        """Return the node's role. Raises _Refused if it cannot have that fault now."""
        cluster, kind, node = self._cluster, command.kind, command.node
        role = self._role_of(node)
        if kind in (CommandKind.SLOW, CommandKind.SLOW_DISK) and not 1 <= command.amount <= MAX_SLOW_MS:
            text = f"{command.amount:.0f}ms"
            raise _Refused(BadUse(ErrorKind.NOT_A_LATENCY, text=text, most_ms=MAX_SLOW_MS))
        if kind is CommandKind.ISOLATE:
            if node in cluster.nodes.network.isolated:
                back = Command(CommandKind.START, node)
                raise _Refused(BadUse(ErrorKind.NODE_ISOLATED, role=role.value, node=node), back)
            return role
        if kind is CommandKind.START:
            if all(node not in fault.nodes for fault in cluster.faults.active()):
                raise _Refused(BadUse(ErrorKind.NODE_WITHOUT_FAULT, role=role.value, node=node))
            return role
        state = cluster.nodes.state(node)
        killable = state is ProcessState.HUNG and kind is CommandKind.CRASH
        if state is not ProcessState.RUNNING and not killable:
            frozen = state is ProcessState.HUNG
            down = BadUse(
                ErrorKind.NODE_FROZEN if frozen else ErrorKind.NODE_DOWN, role=role.value, node=node
            )
            raise _Refused(down, Command(CommandKind.START, node))
        return role


def _check_time(command: Command) -> None:
    if not 1 <= command.amount <= MAX_ADVANCE_MS:
        text, most_d = f"{command.amount:.0f}ms", MAX_ADVANCE_MS // 86_400_000
        raise _Refused(BadUse(ErrorKind.NOT_A_TIME_TO_PASS, text=text, most_d=most_d))


class _Changes:
    """For each thing that was changed, what brings it back to how it was before the first change."""

    def __init__(self) -> None:
        self._back: dict[tuple[CommandKind, str, int, str], Command] = {}
        self._members: dict[str, int] = {}
        """How many members each group lacks."""

    def note(self, back: Command) -> None:
        """Remember what undoes a command that was just carried out."""
        if back.kind in _MEMBERS:
            self._members[back.name] = self._members.get(back.name, 0) + _MEMBERS[back.kind]
            return
        kind = _SAME_THING.get(back.kind, back.kind)
        self._back.setdefault((kind, back.name, back.node, back.key), back)

    def taken(self) -> list[Command]:
        """Return what undoes all changes, and forget them."""
        members = [
            Command(CommandKind.ADD_MEMBER if lacks > 0 else CommandKind.REMOVE_MEMBER, name=name)
            for name, lacks in self._members.items()
            for _ in range(abs(lacks))
        ]
        found = [*self._back.values(), *members]
        self._back, self._members = {}, {}
        return found
