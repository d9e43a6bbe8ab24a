"""A cluster that scripts may disturb: what the simulated and the real one have in common."""

from typing import Any, Protocol

POLL_S = 0.02
"""How often a script looks at the cluster while it waits, in the cluster's own time."""

ANSWER_S = 15.0

BROKERS = 4
"""Brokers 0 and 1 are in rack R1, brokers 2 and 3 in rack R2."""

CONTROLLERS = (101, 102, 103)

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "replica.lag.time.max.ms": "12000",
}
"""Sessions end before a silent follower counts as lagging, as with Kafka's defaults, and last longer than a
busy machine takes to start a broker. Preferred leaders are elected by the scripts only, so that no moment is
left to chance."""

REAL_SETTINGS = {
    **SETTINGS,
    "log.initial.task.delay.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
"""The real cluster's settings. The simulated one looks at retention without a first delay, and its brokers'
disks always have the latest high watermark."""


class Answer(Protocol):
    """The answer to a request that has been sent."""

    def arrived(self) -> bool:
        """Return whether the answer is there, or will never come because the connection has ended."""
        ...

    def message(self) -> Any:
        """Return the decoded answer. Raises OSError if the connection has ended instead."""
        ...


class Lab(Protocol):
    """Faults, requests and time. Nodes are brokers 0, 1, 2, 3 and controllers 101, 102, 103."""

    def crash(self, *nodes: int) -> None:
        """Kill the processes, all at once (kill −9)."""
        ...

    def stop(self, node: int) -> None:
        """End a process cleanly, and wait until it has ended."""
        ...

    def hang(self, node: int) -> None:
        """Freeze a process. Its sockets stay open."""
        ...

    def start(self, *nodes: int) -> None:
        """Start processes that have ended, and let processes that hang continue."""
        ...

    def refuses(self, broker: int) -> bool:
        """Return whether the broker's port refuses connections."""
        ...

    def send(self, broker: int, request: Any) -> Answer:
        """Send a kafka-python request, made with `version=`. Raises OSError if the port refuses."""
        ...

    def now_ms(self) -> int:
        """Return the time on the cluster's clock, in milliseconds since the epoch."""
        ...

    def let_pass(self, seconds: float) -> None:
        """Let the cluster's time pass."""
        ...

    def heal(self) -> None:
        """End every fault, and wait until all brokers are unfenced and in sync."""
        ...


def ask(lab: Lab, broker: int, request: Any, timeout_s: float = ANSWER_S) -> Any:
    """Return the answer to a request.

    Raises OSError if the port refuses or the connection ends, TimeoutError if nothing comes in time.
    """
    answer = lab.send(broker, request)
    until_ms = lab.now_ms() + timeout_s * 1000
    while not answer.arrived():
        if lab.now_ms() > until_ms:
            raise TimeoutError(f"broker {broker} said nothing to {type(request).__name__}")
        lab.let_pass(POLL_S / 4)
    return answer.message()
