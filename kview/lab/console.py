"""Carries out requests to a running simulated cluster: faults, status, counters and the end of the run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kview.errors import BadUse, ErrorKind
from kview.lab.changes import Changes
from kview.lab.commands import MAX_SLOW_MS
from kview.lab.messages import (
    AdjustmentAnswer,
    AskCounters,
    AskSettings,
    AskStatus,
    Counters,
    DoAdjustment,
    DoFault,
    Ending,
    FaultAnswer,
    Reply,
    Request,
    Settings,
    Status,
)
from kview.model.adjustments import Adjustment, AdjustmentReply
from kview.model.faults import (
    ActiveFault,
    FaultCommand,
    FaultDone,
    FaultKind,
    FaultReply,
    FaultState,
    NodeRole,
)
from kview.simulate.cluster import Cluster
from kview.simulate.nodes import ProcessState

_UNDO = FaultCommand(FaultKind.UNDO)


class _Refused(Exception):
    """Raised if a fault cannot be carried out, with the error and the command that removes the obstacle, if
    any."""

    def __init__(self, error: BadUse, undone_by: FaultCommand | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.undone_by = undone_by


class Console:
    """Carries out requests to `cluster`.

    `counters` returns the cluster's counters, `behind_ms` returns how far the cluster's clock is behind the
    wall clock, and `end` ends the run.
    """

    def __init__(
        self,
        cluster: Cluster,
        counters: Callable[[], Mapping[str, Any]],
        behind_ms: Callable[[], int],
        end: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._counters = counters
        self._behind_ms = behind_ms
        self._end = end
        self._changes = Changes()

    def answer(self, request: Request) -> Reply:
        """Carry out a request and return the answer."""
        match request:
            case DoFault(command):
                return FaultAnswer(self.apply(command))
            case DoAdjustment(wanted):
                return AdjustmentAnswer(self.adjust(wanted))
            case AskStatus():
                return self.status()
            case AskCounters():
                return self.counters()
            case AskSettings():
                return Settings(self._cluster.adjustments.settings())
            case _:
                self.quit()
                return Ending()

    def apply(self, command: FaultCommand) -> FaultReply:
        """Carry out a fault, or return why that is not possible."""
        try:
            done, undone_by = self._apply(command)
        except _Refused as refused:
            return FaultReply(refused=refused.error.facts, undone_by=refused.undone_by, active=self._active())
        active = self._active()
        return FaultReply(
            replace(done, has_quorum=self._has_quorum(active)), undone_by=undone_by, active=active
        )

    def _has_quorum(self, active: Sequence[ActiveFault]) -> bool:
        """Return whether a majority of the controllers lives with these faults."""
        voters = self._cluster.world.controllers
        lost = {
            fault.node
            for fault in active
            if fault.role is NodeRole.CONTROLLER and fault.state is not FaultState.SLOW
        }
        return 2 * len(lost) < len(voters)

    def adjust(self, wanted: Adjustment) -> AdjustmentReply:
        """Carry out an adjustment, or return why that is not possible."""
        try:
            undone_by = self._cluster.adjustments.apply(wanted)
        except BadUse as error:
            return AdjustmentReply(error.facts)
        if undone_by is not None:
            self._changes.note(undone_by)
        return AdjustmentReply(undone_by=undone_by)

    def status(self) -> Status:
        """Return the state of the cluster."""
        world = self._cluster.world
        return Status(
            len(world.brokers),
            len(world.controllers),
            self._behind_ms(),
            self._active(),
            self._cluster.healthy(),
        )

    def _active(self) -> tuple[ActiveFault, ...]:
        return tuple(self._cluster.faults.active())

    def counters(self) -> Counters:
        """Return the numbers of records appended, acknowledged and consumed."""
        return Counters(dict(self._counters()))

    def quit(self) -> None:
        """End the run."""
        self._end()

    def _apply(self, command: FaultCommand) -> tuple[FaultDone, FaultCommand | None]:
        """Carry out a fault. Returns what was done and the command that undoes it. Raises _Refused."""
        cluster, kind = self._cluster, command.kind
        match kind:
            case FaultKind.UNDO:
                undone = self._undo_changes()
                return FaultDone(kind, cluster.faults.undo(), undone_changes=undone), None
            case FaultKind.CRASH_CONTROLLER:
                node = cluster.faults.crash_controller()
                if node < 0:
                    raise _Refused(BadUse(ErrorKind.NO_ACTIVE_CONTROLLER), _UNDO)
                return FaultDone(kind, (node,), NodeRole.CONTROLLER), FaultCommand(FaultKind.START, node)
            case FaultKind.LOSE_RACK:
                racks = sorted({broker.rack for broker in cluster.world.brokers})
                if command.rack not in racks:
                    raise _Refused(BadUse(ErrorKind.RACK_UNKNOWN, rack=command.rack, racks=tuple(racks)))
                hit = cluster.faults.lose_rack(command.rack)
                if not hit:
                    raise _Refused(BadUse(ErrorKind.RACK_DOWN, rack=command.rack), _UNDO)
                return FaultDone(kind, hit, rack=command.rack), _UNDO
            case _:
                return self._apply_to_node(command)

    def _undo_changes(self) -> int:
        """Undo the adjustments in force. Returns how many there were; one that is refused now is kept."""
        undone = 0
        for back in self._changes.taken():
            try:
                self._cluster.adjustments.undo(back)
            except BadUse:
                self._changes.note(back)
            else:
                undone += 1
        return undone

    def _apply_to_node(self, command: FaultCommand) -> tuple[FaultDone, FaultCommand | None]:
        cluster, kind, node = self._cluster, command.kind, command.node
        role = self._role_for(command)
        had = tuple(fault.state for fault in cluster.faults.active() if fault.node == node)
        match kind:
            case FaultKind.CRASH:
                cluster.faults.crash(node)
            case FaultKind.STOP:
                cluster.faults.stop(node)
            case FaultKind.HANG:
                cluster.faults.hang(node)
            case FaultKind.SLOW:
                cluster.faults.slow(node, command.slow_ms)
            case _:
                cluster.faults.start(node)
        slow_ms = command.slow_ms if kind is FaultKind.SLOW else 0
        undone_by = None if kind is FaultKind.START else FaultCommand(FaultKind.START, node)
        ended = had if kind is FaultKind.START else ()
        return FaultDone(kind, (node,), role, slow_ms=slow_ms, ended=ended), undone_by

    def _role_for(self, command: FaultCommand) -> NodeRole:
        """Return the node's role. Raises _Refused if it cannot have that fault now."""
        cluster, kind, node = self._cluster, command.kind, command.node
        brokers, controllers = cluster.broker_ids(), cluster.world.controllers
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
        if kind is FaultKind.SLOW and not 1 <= command.slow_ms <= MAX_SLOW_MS:
            text = f"{command.slow_ms}ms"
            raise _Refused(BadUse(ErrorKind.NOT_A_LATENCY, text=text, most_ms=MAX_SLOW_MS))
        role = NodeRole.CONTROLLER if node in controllers else NodeRole.BROKER
        if kind is FaultKind.START:
            if all(fault.node != node for fault in cluster.faults.active()):
                raise _Refused(BadUse(ErrorKind.NODE_WITHOUT_FAULT, role=role.value, node=node))
            return role
        state = cluster.nodes.state(node)
        killable = state is ProcessState.HUNG and kind is FaultKind.CRASH
        if state is not ProcessState.RUNNING and not killable:
            frozen = state is ProcessState.HUNG
            down = BadUse(
                ErrorKind.NODE_FROZEN if frozen else ErrorKind.NODE_DOWN, role=role.value, node=node
            )
            raise _Refused(down, FaultCommand(FaultKind.START, node))
        return role
