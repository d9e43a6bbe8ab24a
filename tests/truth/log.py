"""The truth log: what happened to a cluster and its clients, from sources that know nothing of kview.

All times are epoch milliseconds of this machine's clock.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kview.model.states import GroupType
from tests.truth.schedule import Do

Partition = tuple[str, int]

NOTHING = -1
"""No committed offset."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that was done: its time is when it had been done.

    `until_ms` and `stopped_ms` are for DUTY: its end, and how long the node stands still at a time. `count`
    is for DELETE: the records that the group can no longer read.
    """

    at_ms: int
    do: Do
    node: int = -1
    group: str = ""
    until_ms: int = 0
    stopped_ms: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Fencing:
    """The controller's log: it fenced a broker, or let it return."""

    at_ms: int
    broker: int
    fenced: bool


@dataclass(frozen=True, slots=True)
class Joined:
    """A controller's log: it leads the quorum, or follows its leader."""

    at_ms: int
    controller: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The group coordinators' logs: a broker had loaded the groups."""

    at_ms: int
    broker: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A request of our own to a broker, with how long its answer took, None if there was none in time."""

    sent_ms: int
    took_ms: float | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A Metadata answer to a client of our own, and the reassignments that were listed then.

    Replicas that a reassignment adds do not count, as in Kafka's own figures.
    """

    at_ms: int
    leaders: Mapping[Partition, int]
    without_leader: int
    under_replicated: int
    under_min_isr: int
    not_preferred: int = 0
    short: frozenset[Partition] = frozenset()
    """The partitions that are under-replicated."""
    moving: frozenset[Partition] = frozenset()
    offline: frozenset[int] = frozenset()
    """The brokers that have offline replicas."""


@dataclass(slots=True)
class Held:
    """A transaction: while it is open, it holds back the last stable offset of a partition."""

    name: str
    partition: Partition
    timeout_ms: int
    began_ms: int
    """Before its first record was written."""
    ended_ms: int | None = None
    """When its commit had been acknowledged."""


@dataclass(slots=True)
class Track:
    """A figure over time: appended to in order of time, read by `at`."""

    at_ms: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def add(self, at_ms: int, value: int) -> None:
        """Append a value."""
        self.at_ms.append(at_ms)
        self.values.append(value)

    def at(self, at_ms: int) -> int | None:
        """Return the value in force at a time, None before the first."""
        row = bisect_right(self.at_ms, at_ms) - 1
        return self.values[row] if row >= 0 else None

    def between(self, since_ms: int, until_ms: int) -> list[int]:
        """Return every value that was in force at some time of a period, however short."""
        first = max(0, bisect_right(self.at_ms, since_ms) - 1)
        return self.values[first : bisect_right(self.at_ms, until_ms)]

    def changed_ms(self, at_ms: int) -> int | None:
        """Return when the figure was last added to at a moment, None before its first value."""
        row = bisect_right(self.at_ms, at_ms) - 1
        return self.at_ms[row] if row >= 0 else None

    def first_at_least(self, value: int) -> int | None:
        """Return when the figure first reached a value. The figure must not fall."""
        low, high = 0, len(self.values)
        while low < high:
            middle = (low + high) // 2
            if self.values[middle] < value:
                low = middle + 1
            else:
                high = middle
        return self.at_ms[low] if low < len(self.at_ms) else None


@dataclass(slots=True)
class TruthLog:
    """Everything that was noted in one run.

    `ends` has the end of each partition as the producer's acknowledgements tell it. `committed` has what each
    group committed, as its own consumer, or who set the offsets, tells it; NOTHING once its topic was
    deleted. `members` is 1 while the group has a consumer, or while something commits under its name.
    """

    brokers: tuple[int, ...]
    controllers: tuple[int, ...] = (101,)
    deeds: list[Deed] = field(default_factory=list)
    fencing: Sequence[Fencing] = ()
    joined: Sequence[Joined] = ()
    coordinators: Sequence[Coordinator] = ()
    probes: dict[int, list[Probe]] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    ends: dict[Partition, Track] = field(default_factory=dict)
    kinds: dict[str, GroupType] = field(default_factory=dict)
    transactions: list[Held] = field(default_factory=list)
    committed: dict[tuple[str, Partition], Track] = field(default_factory=dict)
    members: dict[str, Track] = field(default_factory=dict)
    read: dict[str, Track] = field(default_factory=dict)
    """The number of records that each group's consumer has been given so far."""
