"""Requests that a broker forwards to the active controller. Source: kafka.server.ForwardingManager."""

from collections.abc import Callable
from typing import TypeVar

from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.quorum import FORWARD_TIMEOUT_MS, Quorum
from kview.simulate.kernel import Kernel
from kview.simulate.network import Connection
from kview.simulate.nodes import Nodes
from kview.simulate.results import QuorumInfo

T = TypeVar("T")

Contained = Callable[[Callable[[], None]], Callable[[], None]]
"""Returns a function that calls another one and deals with its exceptions."""


def as_it_is(fn: Callable[[], None]) -> Callable[[], None]:
    """Return the function, whose exceptions go where those of an event go."""
    return fn


class Forwarding:
    """The way from the brokers to the active controller and back. `latency_us` is the network's latency."""

    def __init__(self, kernel: Kernel, nodes: Nodes, quorum: Quorum, latency_us: int) -> None:
        self._kernel = kernel
        self._nodes = nodes
        self._quorum = quorum
        self._latency_us = latency_us

    def forward(
        self,
        b: int,
        ask: Callable[[], T],
        late: T,
        timeout_ms: int,
        done: Callable[[T], None],
        within: Contained = as_it_is,
    ) -> None:
        """Let broker b forward a request. `ask` carries it out, `late` is the answer after the timeout.

        The request waits while b reaches no active controller. The answer comes after a delay that is long
        enough for the change to reach b and the other brokers. If the answer is lost, b asks again once it
        can. All this may happen in an event of somebody else, so everything is called `within` what takes
        the exceptions of this request.
        """
        kernel, quorum = self._kernel, self._quorum

        def carry_out() -> None:
            result = ask()
            slow_us = self._nodes.by_id[b].slow_us + quorum.slow_us()
            kernel.after(4 * self._latency_us + 2 * slow_us, within(lambda: done(result)))

        def expire() -> None:
            done(late)

        if quorum.active() and not quorum.reached_by(b) and quorum.send(b, Connection.FORWARDING):
            ask()
        quorum.forward(within(carry_out), within(expire), max(1, timeout_ms) * 1000, b)

    def describe_quorum(self, b: int, done: Callable[[QuorumInfo], None]) -> None:
        """Forward DescribeQuorum to the active controller.

        If broker b reaches none, the request waits for up to a minute, as in Kafka.
        """
        late = QuorumInfo(ErrorCode.REQUEST_TIMED_OUT)
        self.forward(b, self._quorum.describe, late, FORWARD_TIMEOUT_MS, done)
