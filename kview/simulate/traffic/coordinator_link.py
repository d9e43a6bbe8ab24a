"""A simulated client's connection to its coordinator, found and found again as a real client does."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from kview.simulate.nodes import ProcessState
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.metadata import ClientMetadata

ANSWER_US = 1_000
"""Time between a coordinator's answer and the client's next step."""
REQUEST_TIMEOUT_US = 30_000_000
"""request.timeout.ms of a client: the longest wait for a broker that hangs."""


class Found(Protocol):
    """A coordinator on one broker, which every broker can find by name."""

    def find(self, name: str, /) -> int:
        """Return the broker that coordinates `name`, or −1."""


C = TypeVar("C", bound=Found)


class CoordinatorLink(Generic[C]):
    """The connection to the coordinator of `name`. `broker` is the coordinator, or −1 without one.

    `of` returns the coordinator on a broker, and `lost` is called when the connection has ended, and with it
    all requests on it.
    """

    def __init__(
        self,
        cluster: Connections,
        metadata: ClientMetadata,
        of: Callable[[int], C],
        name: str,
        lost: Callable[[], None],
    ) -> None:
        self.broker = -1
        self._cluster = cluster
        self._metadata = metadata
        self._of = of
        self._name = name
        self._lost = lost
        self._silent_since_us: int | None = None

    def coordinator(self) -> C:
        """Return the coordinator, which must be connected."""
        return self._of(self.broker)

    def slow_us(self) -> int:
        """Return the latency that a fault adds to the coordinator's answers, in µs."""
        return self._cluster.nodes.slow_ms(self.broker) * 1000 if self.broker >= 0 else 0

    def reachable(self) -> bool:
        """Return whether the coordinator can be asked, and look for one if there is no connection."""
        if self.broker >= 0:
            if self._cluster.nodes.serves(self.broker):
                self._silent_since_us = None
                return True
            if not self._broken():
                return False
            self.drop()
        return self._find()

    def drop(self) -> None:
        """Drop the connection."""
        self.broker = -1
        self._silent_since_us = None
        self._lost()

    def _broken(self) -> bool:
        """Return whether the connection to a coordinator that does not answer has ended.

        If the coordinator hangs, it ends when the request times out.
        """
        if self._cluster.nodes.state(self.broker) is not ProcessState.HUNG:
            return True
        now_us = self._cluster.kernel.now_us
        since_us = self._silent_since_us or now_us
        self._silent_since_us = since_us
        return now_us - since_us >= REQUEST_TIMEOUT_US

    def _find(self) -> bool:
        """Ask any broker for the coordinator and connect to it, and return whether it answers."""
        broker = self._metadata.any_broker()
        coordinator = self._of(broker).find(self._name) if broker >= 0 else -1
        if coordinator < 0 or self._cluster.nodes.refuses(coordinator):
            return False
        self.broker = coordinator
        return self._cluster.nodes.serves(coordinator)
