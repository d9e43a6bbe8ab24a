"""Faults on a simulated cluster: the command, its outcome, and the faults in force."""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from kview.errors import ErrorFacts
from kview.model.units import UNKNOWN_ID


class FaultKind(StrEnum):
    """The kinds of commands, named as people type them. START and UNDO end faults."""

    CRASH = "crash"
    STOP = "stop"
    HANG = "hang"
    SLOW = "slow"
    START = "start"
    LOSE_RACK = "lose-rack"
    CRASH_CONTROLLER = "crash-controller"
    UNDO = "undo"


class NodeRole(StrEnum):
    """The role of a node."""

    BROKER = "broker"
    CONTROLLER = "controller"


class FaultState(StrEnum):
    """The fault that a node has."""

    CRASHED = "crashed"
    STOPPING = "stopping"
    STOPPED = "stopped"
    HUNG = "hung"
    SLOW = "slow"


class FaultCommand(Struct, frozen=True):
    """A command for a node, a rack or the entire cluster. `slow_ms` is for SLOW."""

    kind: FaultKind
    node: int = UNKNOWN_ID
    rack: str = ""
    slow_ms: int = 0


class FaultDone(Struct, frozen=True):
    """A command that was carried out on `nodes`, which all have the role `role`.

    For UNDO, these are the nodes that had a fault, and `undone_changes` adjustments were undone. `ended` has
    the faults that START ended. Without `has_quorum`, too few controllers are left to decide anything.
    """

    kind: FaultKind
    nodes: tuple[int, ...] = ()
    role: NodeRole = NodeRole.BROKER
    rack: str = ""
    slow_ms: int = 0
    ended: tuple[FaultState, ...] = ()
    undone_changes: int = 0
    has_quorum: bool = True


class ActiveFault(Struct, frozen=True):
    """A fault in force. A node that is hung and slow has two faults. `slow_ms` is for SLOW."""

    node: int
    state: FaultState
    slow_ms: int = 0
    role: NodeRole = NodeRole.BROKER


class FaultReply(Struct, frozen=True):
    """The outcome of a command, which was either done or refused.

    `undone_by` undoes what was done or, after a refusal, removes the obstacle. It is None if no command does.
    `active` has the faults in force afterwards.
    """

    done: FaultDone | None = None
    refused: ErrorFacts | None = None
    undone_by: FaultCommand | None = None
    active: tuple[ActiveFault, ...] = ()


class FaultOutcome(Struct, frozen=True):
    """What a fault on a broker led to, once the broker leads nothing any more.

    `moved` partitions got another leader and `without_leader` got none, `after_ms` milliseconds after the
    fault. `moved_to_silent` partitions got a leader that does not answer either: one of `silent_leaders`.
    `records_lost` is a lower bound of what elections lost in that time.
    """

    kind: FaultKind
    node: int
    moved: int = 0
    without_leader: int = 0
    records_lost: int = 0
    after_ms: int = 0
    moved_to_silent: int = 0
    silent_leaders: tuple[int, ...] = ()


class Faults(Protocol):
    """Carries out faults on a simulated cluster that kview started."""

    async def apply(self, command: FaultCommand) -> FaultReply:
        """Carry out `command`. Never raises, because errors are part of the reply."""
        ...

    async def active(self) -> tuple[ActiveFault, ...] | None:
        """Return the faults in force, or None if the cluster does not say. Never raises."""
        ...
