"""The connection of a simulated member to its group's coordinator."""

from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.nodes import ProcessState
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.metadata import ClientMetadata

REQUEST_TIMEOUT_US = 30_000_000
"""A consumer's request.timeout.ms: the longest wait for a coordinator that hangs."""


class CoordinatorLink:
    """Finds the coordinator of `group`. `broker` is the coordinator, or −1 without a connection."""

    def __init__(self, cluster: Connections, metadata: ClientMetadata, group: str) -> None:
        self.broker = -1
        self._cluster = cluster
        self._metadata = metadata
        self._group = group
        self._silent_since_us: int | None = None

    def coordinator(self) -> GroupCoordinator:
        """Return the coordinator, which must be connected."""
        return self._cluster.groups(self.broker)

    def slow_us(self) -> int:
        """Return the latency that a fault adds to the coordinator's answers, in µs."""
        return self._cluster.nodes.slow_ms(self.broker) * 1000 if self.broker >= 0 else 0

    def answers(self) -> bool:
        """Return whether the coordinator answers. If so, forget since when it was silent."""
        if self._cluster.nodes.serves(self.broker):
            self._silent_since_us = None
            return True
        return False

    def broken(self) -> bool:
        """Return whether the connection to a coordinator that does not answer has ended.

        If the coordinator hangs, it ends when the request times out.
        """
        if self._cluster.nodes.state(self.broker) is not ProcessState.HUNG:
            return True
        now_us = self._cluster.kernel.now_us
        since_us = self._silent_since_us or now_us
        self._silent_since_us = since_us
        return now_us - since_us >= REQUEST_TIMEOUT_US

    def drop(self) -> None:
        """Drop the connection."""
        self.broker = -1
        self._silent_since_us = None

    def find(self) -> bool:
        """Ask any broker for the coordinator and connect to it, and return whether it answers."""
        broker = self._metadata.any_broker()
        coordinator = self._cluster.groups(broker).find(self._group) if broker >= 0 else -1
        if coordinator < 0 or self._cluster.nodes.refuses(coordinator):
            return False
        self.broker = coordinator
        return self._cluster.nodes.serves(coordinator)
