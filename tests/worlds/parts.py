"""What a world is made of: brokers, partitions and groups."""

from dataclasses import dataclass, field
from typing import Any

from kview.model.failures import FailureKind
from kview.model.states import GroupState
from kview.model.units import UNKNOWN

PLACEMENT = (0, 3, 1, 4, 2, 5)
"""The teaching placement's list: it alternates the racks."""

SESSION_TIMEOUT_MS = 9000


@dataclass
class Node:
    """A broker: `up` is its process, `fenced` what the controller says, `silent_ms` our first unanswered
    request."""

    id: int
    rack: str
    up: bool = True
    fenced: bool = False
    silent_ms: int = UNKNOWN
    answered_ms: int = UNKNOWN
    fetched_ms: int = UNKNOWN
    why: FailureKind = FailureKind.NONE


@dataclass
class Log:
    """A partition, with where each replica's log ends (a float: records are counted when it is read)."""

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
    """Living followers that copy nothing and stay out of the ISR once they are."""
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What the observer last read, by 'hw', 'end', 'start' and broker id, as (value, received)."""

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass
class Consumers:
    """A group: members own partitions in turn; a commit comes every `commit_every_ms` for all that was
    read."""

    name: str
    coordinator: int
    members: int
    committed: dict[tuple[str, int], int]
    state: str = GroupState.STABLE
    commit_every_ms: int = 1000
    read_share: float = 1.0
    """How much of the traffic it manages to read: 0.5 falls behind at half the rate, 1.5 catches up; 1
    reads all there is."""
    read: dict[tuple[str, int], float] = field(default_factory=dict)
    seen: tuple[Any, ...] = ()


def topic(
    name: str, partitions: int, replicas: int, rate: float, *, size: int = 1_000_000, **settings: Any
) -> list[Log]:
    """A topic's partitions by the teaching placement; `size` is the records that partition 0 has at the
    start."""
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
