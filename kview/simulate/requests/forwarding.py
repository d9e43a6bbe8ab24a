"""Requests that a broker forwards to the active controller. Source: kafka.server.ForwardingManager."""

from collections.abc import Callable
from typing import TypeVar

from kview.simulate.controllers.quorum import Quorum
from kview.simulate.kernel import Kernel
from kview.simulate.nodes import Nodes
from kview.simulate.results import QuorumInfo

T = TypeVar("T")

Contained = Callable[[Callable[[], None]], Callable[[], None]]
"""Returns a function that calls another one and deals with its exceptions."""


class Forwarding:
    """The way from the brokers to the active controller and back. `latency_us` is the network's latency."""

    def __init__(self, kernel: Kernel, nodes: Nodes, quorum: Quorum, latency_us: int) -> None:
        self._kernel = kernel
        self._nodes = nodes
        self._quorum = quorum
        self._latency_us = latency_us

    def ask(self, ask: Callable[[], None], late: Callable[[], None], timeout_ms: int) -> None:
        """Call `ask` once there is an active controller (possibly at once), or `late` after the timeout."""
        self._quorum.forward(ask, late, max(1, timeout_ms) * 1000)

    def answer_later(self, b: int, done: Callable[[T], None], result: T) -> None:
        """Answer after a delay that is long enough for the change to reach broker b and the other brokers."""
        slow_us = self._nodes.by_id[b].slow_us + self._quorum.slow_us()
        self._kernel.after(4 * self._latency_us + 2 * slow_us, done, result)

    def forward(
        self,
        b: int,
        ask: Callable[[], T],
        late: T,
        timeout_ms: int,
        done: Callable[[T], None],
        within: Contained,
    ) -> None:
        """Let broker b forward a request. `ask` carries it out, `late` is the answer without a controller.

        All this may happen in an event of somebody else, so everything is called `within` what takes the
        exceptions of this request.
        """

        def carry_out() -> None:
            self.answer_later(b, lambda result: within(lambda: done(result))(), ask())

        def expire() -> None:
            done(late)

        self.ask(within(carry_out), within(expire), timeout_ms)

    def describe_quorum(self, done: Callable[[QuorumInfo], None]) -> None:
        """Forward DescribeQuorum to the active controller.

        If no controller is active, the request waits for up to a minute, as in Kafka.
        """
        delay_us = 2 * self._latency_us + self._quorum.slow_us()

        def answer(info: QuorumInfo) -> None:
            self._kernel.after(delay_us, done, info)

        self._quorum.describe(answer)
