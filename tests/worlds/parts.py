"""The parts of a world: brokers, partitions and groups."""

from dataclasses import dataclass, field
from typing import Any

from kview.model.failures import FailureKind
from kview.model.states import GroupState, GroupType
from kview.model.units import UNKNOWN

PLACEMENT = (0, 3, 1, 4, 2, 5)
"""The order of brokers in the teaching placement, which alternates between the racks."""

SESSION_TIMEOUT_MS = 9000


@dataclass
class Node:
    """A broker. `up` is the state of its process, `fenced` the controller's decision, and `silent_ms` the
    time of our first unanswered request. With `cut`, only the network between kview and the broker is
    down."""

    id: int
    rack: str
    up: bool = True
    cut: bool = False
    fenced: bool = False
    silent_ms: int = UNKNOWN
    answered_ms: int = UNKNOWN
    fetched_ms: int = UNKNOWN
    latency_us: int = 1_800
    why: FailureKind = FailureKind.NONE
    apis: str = "0:0-13"

    @property
    def answers(self) -> bool:
        """Whether it answers kview."""
        return self.up and not self.cut


@dataclass
class Log:
    """A partition, with the log end of each replica. Log ends are floats, which are rounded down when they
    are read."""

    topic: str
    partition: int
    replicas: list[int]
    isr: list[int]
    leader: int
    rate: float
    start: int
    ends: dict[int, float]
    topic_id: str
    epoch: int = 5
    internal: bool = False
    acks_all: bool = False
    min_isr: int = 1
    watermark: float = 0.0
    stalled: frozenset[int] = frozenset()
    """Followers that are up but copy nothing. Once they have left the ISR, they stay outside."""
    elr: list[int] = field(default_factory=list)
    seen: dict[str | int, tuple[int, int]] = field(default_factory=dict)
    """What the observer read last, as (value, received ms), by 'hw', 'end', 'start' or broker id."""

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass
class Consumers:
    """A group. Its members own partitions in turn, and it commits everything that it has read every
    `commit_every_ms`."""

    name: str
    coordinator: int
    members: int
    committed: dict[tuple[str, int], int]
    state: str = GroupState.STABLE
    commit_every_ms: int = 1000
    read_share: float = 1.0
    """The share of the traffic that the group can read. With 0.5 it falls behind at half the rate, with 1.5
    it catches up, and with 1 it reads everything."""
    type: str = GroupType.CLASSIC
    read: dict[tuple[str, int], float] = field(default_factory=dict)
    seen: tuple[Any, ...] = ()

    @property
    def reads(self) -> bool:
        """Whether somebody reads: a member, or something that is none and commits under its name."""
        return self.members > 0 or self.type == GroupType.SIMPLE


def topic(
    name: str, partitions: int, replicas: int, rate: float, *, size: int = 1_000_000, **settings: Any
) -> list[Log]:
    """Return a topic's partitions by the teaching placement. `size` is the number of records in partition 0
    at the start."""
    logs = []
    for number in range(partitions):
        brokers = [PLACEMENT[(number + step) % len(PLACEMENT)] for step in range(replicas)]
        end = float(size + 1_013 * number)
        log = Log(
            topic=name,
            partition=number,
            replicas=brokers,
            isr=list(brokers),
            leader=brokers[0],
            rate=rate,
            start=size // 3,
            ends={broker: end for broker in brokers},
            topic_id=f"{name}-id",
            watermark=end,
            **settings,
        )
        logs.append(log)
    return logs
