"""Faults on a simulated cluster: what is asked for, what was done, and what is in force."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kview.errors import ErrorFacts
from kview.model.units import UNKNOWN_ID


class FaultKind(StrEnum):
    """A fault, named as people type it."""

    CRASH = "crash"
    STOP = "stop"
    HANG = "hang"
    SLOW = "slow"
    START = "start"
    LOSE_RACK = "lose-rack"
    CRASH_CONTROLLER = "crash-controller"
    UNDO = "undo"


class NodeRole(StrEnum):
    """What a node is."""

    BROKER = "broker"
    CONTROLLER = "controller"


class FaultState(StrEnum):
    """What is wrong with a node."""

    CRASHED = "crashed"
    STOPPING = "stopping"
    STOPPED = "stopped"
    HUNG = "hung"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class FaultCommand:
    """A fault that is asked for: on a node, on a rack, or on neither. `slow_ms` is for SLOW."""

    kind: FaultKind
    node: int = UNKNOWN_ID
    rack: str = ""
    slow_ms: int = 0


@dataclass(frozen=True, slots=True)
class FaultDone:
    """A fault that was carried out on `nodes`, which are all of one role. UNDO has those that had a fault."""

    kind: FaultKind
    nodes: tuple[int, ...] = ()
    role: NodeRole = NodeRole.BROKER
    rack: str = ""
    slow_ms: int = 0


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A fault in force. A node that is hung and slow has two; `slow_ms` is for SLOW."""

    node: int
    state: FaultState
    slow_ms: int = 0


@dataclass(frozen=True, slots=True)
class FaultReply:
    """What became of a fault: it was done, or refused. `active`: the faults in force afterwards.

    `undone_by` ends what was done; of a refusal, it ends what stands in the way. None if nothing does.
    """

    done: FaultDone | None = None
    refused: ErrorFacts | None = None
    undone_by: FaultCommand | None = None
    active: tuple[ActiveFault, ...] = ()


class Faults(Protocol):
    """Faults on a cluster that is ours."""

    async def apply(self, command: FaultCommand) -> FaultReply:
        """Carry out `command`; never raises: what went wrong is in the reply."""
        ...
