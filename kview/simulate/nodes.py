"""The processes of a cluster, brokers and controllers, and the faults they have."""

from collections.abc import Callable
from enum import StrEnum


class ProcessState(StrEnum):
    """The state of a node's process. A hung process does nothing while its sockets stay open."""

    RUNNING = "running"
    CRASHED = "crashed"
    STOPPED = "stopped"
    HUNG = "hung"


ProcessListener = Callable[[int, ProcessState], None]


class Node:
    """A process of the cluster.

    `slow_us` is added to each of its answers and fetches. `incarnation` counts its starts.
    """

    __slots__ = ("id", "incarnation", "is_controller", "rack", "slow_us", "state", "stopping")

    def __init__(self, node: int, rack: str, is_controller: bool) -> None:
        self.id = node
        self.rack = rack
        self.is_controller = is_controller
        self.state = ProcessState.RUNNING
        self.slow_us = 0
        self.incarnation = 0
        self.stopping = False

    @property
    def running(self) -> bool:
        """Whether the process executes anything."""
        return self.state is ProcessState.RUNNING
