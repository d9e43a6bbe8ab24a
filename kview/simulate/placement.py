"""Replica placement of new topics: round-robin over the racks, KRaft's striped placer, or the rule before
KRaft.

Sources: org.apache.kafka.metadata.placement.StripedReplicaPlacer; kafka.admin.AdminUtils (before KRaft).
"""

from collections.abc import Sequence
from itertools import zip_longest
from random import Random

from kview.simulate.metadata import BrokerImage
from kview.simulate.world import Placement

Assignment = tuple[tuple[int, ...], ...]


def alternated(brokers: Sequence[BrokerImage]) -> list[int]:
    """Return the broker ids alternating between racks, with racks ordered by name and brokers by id."""
    racks = sorted({b.rack for b in brokers})
    columns = [sorted(b.id for b in brokers if b.rack == rack) for rack in racks]
    return [broker for row in zip_longest(*columns) for broker in row if broker is not None]


def teaching(brokers: Sequence[BrokerImage], partitions: int, replication: int) -> Assignment:
    """Place leaders round-robin over the alternated list, and each further replica on the next broker."""
    order = alternated(brokers)
    return tuple(tuple(order[(p + k) % len(order)] for k in range(replication)) for p in range(partitions))


def rack_aware(
    brokers: Sequence[BrokerImage], partitions: int, replication: int, start: int = 0, shift: int = 0
) -> Assignment:
    """Place replicas like AdminUtils.assignReplicasToBrokersRackAware, with a fixed start index and shift."""
    order = alternated(brokers)
    rack_of = {b.id: b.rack for b in brokers}
    racks, count = len(set(rack_of.values())), len(order)
    assignment: list[tuple[int, ...]] = []
    for partition in range(partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        chosen = [order[first]]
        used = {rack_of[order[first]]}
        candidate = 0
        while len(chosen) < replication:
            broker = order[(first + 1 + (shift * racks + candidate) % (count - 1)) % count]
            candidate += 1
            rack = rack_of[broker]
            if (rack not in used or len(used) == racks) and broker not in chosen:
                chosen.append(broker)
                used.add(rack)
        assignment.append(tuple(chosen))
    return tuple(assignment)


class _Brokers:
    """A list of brokers whose start offset advances by one each round (StripedReplicaPlacer.BrokerList)."""

    def __init__(self, ids: list[int], random: Random) -> None:
        self.ids = ids
        self.offset = random.randrange(len(ids)) if ids else 0
        self.index = self.epoch = 0

    def next(self, epoch: int) -> int:
        if not self.ids:
            return -1
        if self.epoch != epoch:
            self.epoch, self.index, self.offset = epoch, 0, (self.offset + 1) % len(self.ids)
        if self.index >= len(self.ids):
            return -1
        self.index += 1
        return self.ids[(self.index - 1 + self.offset) % len(self.ids)]

    def shuffle(self, random: Random) -> None:
        random.shuffle(self.ids)
        self.index = 0  # A round over a single broker ends in the epoch in which it began.
        self.offset = random.randrange(len(self.ids)) if self.ids else 0


def blind(brokers: Sequence[BrokerImage], partitions: int, replication: int) -> Assignment:
    """Place replicas round-robin over the brokers by id, and ignore racks."""
    ids = sorted(broker.id for broker in brokers)
    return tuple(tuple(ids[(p + k) % len(ids)] for k in range(replication)) for p in range(partitions))


def striped(brokers: Sequence[BrokerImage], partitions: int, replication: int, random: Random) -> Assignment:
    """Place replicas like KRaft. `random` decides where the rounds start and how they are shuffled."""
    racks = sorted({b.rack for b in brokers})
    lists = [
        tuple(
            _Brokers(sorted(b.id for b in brokers if b.rack == rack and b.fenced is fenced), random)
            for fenced in (False, True)
        )
        for rack in racks
    ]
    unfenced = sum(1 for b in brokers if not b.fenced)
    order = list(range(len(racks)))
    offset = random.randrange(len(racks))
    epoch = 0
    assignment: list[tuple[int, ...]] = []
    for _ in range(partitions):
        if epoch == unfenced and epoch > 0:
            random.shuffle(order)
            for live, fenced_list in lists:
                live.shuffle(random)
                fenced_list.shuffle(random)
            epoch = 0
        if offset == len(racks):
            offset = 0
        at = offset
        while True:
            leader = lists[order[at]][0].next(epoch)
            if leader >= 0:
                break
            at = (at + 1) % len(racks)
        leader_rack = at
        chosen = [leader]
        skipped = False
        at = offset
        while len(chosen) < replication:
            if at == leader_rack and not skipped:
                skipped = True
            else:
                live, fenced_list = lists[order[at]]
                broker = live.next(epoch)
                if broker < 0:
                    broker = fenced_list.next(epoch)
                if broker >= 0:
                    chosen.append(broker)
            at = (at + 1) % len(racks)
        assignment.append(tuple(chosen))
        epoch += 1
        offset += 1
    return tuple(assignment)


def place(
    placement: Placement,
    brokers: Sequence[BrokerImage],
    partitions: int,
    replication: int,
    random: Random,
) -> Assignment:
    """Return the replica lists of a new topic.

    At least one broker must be unfenced, and `replication` must not exceed the number of brokers. No fenced
    broker comes first in a list, because it could not lead.
    """
    if placement is Placement.STRIPED:
        return striped(brokers, partitions, replication, random)
    rule = rack_aware if placement is Placement.RACK_AWARE else teaching
    if placement is Placement.RACK_BLIND:
        rule = blind
    live = [b for b in brokers if not b.fenced]
    fenced = sorted(b.id for b in brokers if b.fenced)
    count = min(replication, len(live))
    return tuple(
        (*replicas, *(fenced[(p + k) % len(fenced)] for k in range(replication - count)))
        for p, replicas in enumerate(rule(live, partitions, count))
    )
