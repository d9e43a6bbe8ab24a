"""Which broker coordinates a group: the leader of the group's partition of `__consumer_offsets`."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count

import numpy as np
from msgspec import Struct, field

from kview.model.failures import NOT_AUTHORIZED
from kview.model.units import NO_BROKER
from kview.observe import apis
from kview.observe.layout import Layout

TOPIC = "__consumer_offsets"
MOST_HASHES = 65_536
"""Limit of cached hashes, which is more than the groups of a cluster."""

LONGEST_KEPT = 256
"""The longest name whose hash is cached. Names of groups that are gone stay in the cache, and may have
32,767 bytes."""


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`, which is over UTF-16 code units and has 32 bits with a sign."""
    return _kept_hash(text) if len(text) <= LONGEST_KEPT else _hash(text)


def _hash(text: str) -> int:
    units = np.frombuffer(text.encode("utf-16-be", "surrogatepass"), ">u2").astype(np.uint32)
    powers = np.full(len(units), 31, np.uint32)
    powers[:1] = 1
    powers = np.cumprod(powers, dtype=np.uint32)  # modulo 2^32
    value = int((units[::-1] * powers).sum(dtype=np.uint32))
    return value - (1 << 32) if value >> 31 else value


_kept_hash = lru_cache(MOST_HASHES)(_hash)


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of a group, out of `partitions`.

    In `kafka.coordinator.group` this is `Utils.abs(hash) % partitions`. Kafka's `abs` of the smallest integer
    is 0.
    """
    value = java_hash(group)
    return 0 if value == -(1 << 31) else abs(value) % partitions


def coordinator_of(layout: Layout, group: str) -> int | None:
    """Return the broker that coordinates a group according to metadata, or NO_BROKER.

    The result is None if `__consumer_offsets` is not visible.
    """
    first, end = layout.first.get(TOPIC, (0, 0))
    if first == end:
        return None
    leader = int(layout.leader[first + partition_of(group, end - first)])
    return leader if leader >= 0 else NO_BROKER


@lru_cache(MOST_HASHES)
def name_in(partition: int, partitions: int) -> str:
    """Return a group's name that belongs to a partition, out of `partitions`."""
    names = map("kview-{}".format, count())
    return next(name for name in names if partition_of(name, partitions) == partition)


def leaders(layout: Layout) -> list[int]:
    """Return the leader of each partition of `__consumer_offsets`, [] if the topic is not visible."""
    first, end = layout.first.get(TOPIC, (0, 0))
    leading: list[int] = layout.leader[first:end].tolist()
    return leading


NOT_LISTED = NOT_AUTHORIZED | {
    apis.COORDINATOR_LOAD_IN_PROGRESS, apis.COORDINATOR_NOT_AVAILABLE, apis.NOT_COORDINATOR,
}  # fmt: skip
"""Kafka's error numbers of a broker that has not loaded a group's partition, or not yet, or that leaves the
groups out that kview may not see."""


class Heard(Struct):
    """Whose groups have been listed at least once, so that no group is missing.

    A broker lists the groups of the partitions that it has loaded, and does not say which these are. So it is
    asked to describe a group of each partition, too: it refuses if it has not loaded that partition.
    """

    brokers: set[int] = field(default_factory=set)
    """The brokers that have listed groups. They count where `__consumer_offsets` is not visible."""
    partitions: set[int] = field(default_factory=set)
    """The partitions of `__consumer_offsets` whose groups have been listed."""
    refused: dict[int, int] = field(default_factory=dict)
    """Partition → Kafka's error number with which its leader refused to describe a group of it."""
    denied: dict[int, int] = field(default_factory=dict)
    """Broker → Kafka's error number with which it refused to describe a group, where `__consumer_offsets` is
    not visible."""
    _seen: int | None = None
    """The most partitions that the topic has had, None before the first layout."""

    def see(self, layout: Layout) -> None:
        """Note which partitions there are. Those that are created while kview watches have no old groups."""
        size = len(leaders(layout))
        if self._seen is not None and size > self._seen:
            self.partitions |= set(range(self._seen, size))
        self._seen = max(size, self._seen or 0)

    def unheard(self, layout: Layout) -> dict[int, list[int]]:
        """Return the partitions whose groups have not been listed, by leader (NO_BROKER if there is none)."""
        out: dict[int, list[int]] = {}
        for partition, leader in enumerate(leaders(layout)):
            if partition not in self.partitions:
                out.setdefault(leader if leader >= 0 else NO_BROKER, []).append(partition)
        return out

    def listed(self, broker: int, asked: Iterable[int], errors: Mapping[int, int]) -> None:
        """Note that a broker has listed its groups.

        `asked` are the partitions that it led before it was asked. `errors` has its answers about a group of
        each of them; partitions without an answer count as loaded.
        """
        self.brokers.add(broker)
        self.denied.pop(broker, None)
        for partition in asked:
            code = errors.get(partition, 0)
            if code in NOT_LISTED:
                self.refused[partition] = code
            else:
                self.refused.pop(partition, None)
                self.partitions.add(partition)
