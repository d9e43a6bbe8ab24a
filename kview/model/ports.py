"""What the screen is handed: a feed of pictures, and, where the cluster is ours, its faults. Implemented by
`run`."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar


class FaultKind(StrEnum):
    """A fault, in the word that the lab's line protocol uses."""

    CRASH = "crash"
    STOP = "stop"
    HANG = "hang"
    SLOW = "slow"
    START = "start"
    LOSE_RACK = "lose-rack"
    CRASH_CONTROLLER = "crash-controller"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class FaultCommand:
    """A fault on a target: a node id or a rack as text, '' where the kind needs none; `argument` as in `slow
    4 200ms`."""

    kind: FaultKind
    target: str = ""
    argument: str = ""

    def line(self) -> str:
        """The command as one line of the lab's protocol."""
        return " ".join(word for word in (self.kind.value, self.target, self.argument) if word)


@dataclass(frozen=True, slots=True)
class FaultReply:
    """What the lab answered: `text` is one sentence for a person; `active` the faults in force, `4 crashed`
    and the like."""

    ok: bool
    text: str
    active: tuple[str, ...] = ()


V = TypeVar("V", covariant=True)


class Faults(Protocol):
    """Faults on a cluster that is ours."""

    async def apply(self, command: FaultCommand) -> FaultReply:
        """Carry out `command`; never raises: what went wrong is in the reply."""
        ...


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the screen about kview itself: a child that died, a source that is retrying. `sticky`:
    until replaced."""

    text: str
    severity: str
    sticky: bool = False


class Feed(Protocol[V]):
    """A source of pictures; calls back on a thread of its own."""

    def start(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        """Begin; returns at once."""
        ...

    def stop(self) -> None:
        """End within a second; no call back after it returns."""
        ...
