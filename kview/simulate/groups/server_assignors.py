"""The assignors of the consumer protocol, which run at the coordinator: uniform and range.

Sources: UniformHomogeneousAssignmentBuilder, UniformHeterogeneousAssignmentBuilder and RangeAssignor of
Kafka's group coordinator.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from kview.simulate.groups.consumer_records import Partitions

BALANCING_ROUNDS_MAX = 16
"""Limit of the rounds over all topics in which partitions move to members that have fewer, as in Kafka."""

Target = Mapping[str, Partitions]
"""Member id → its partitions."""


class Subscriber(NamedTuple):
    """A member: its instance id, and the ids of the topics that it subscribes to and that exist."""

    instance_id: str | None
    topics: frozenset[bytes]


Assignor = Callable[[Mapping[str, Subscriber], Mapping[bytes, int], Target], Target]
"""(members, topic id → number of partitions, target assignment so far) → target assignment."""


def assign_range(
    members: Mapping[str, Subscriber], partitions: Mapping[bytes, int], before: Target
) -> Target:
    """Assign each member a block of consecutive partitions of every topic that it subscribes to.

    Static members come first, by instance id, then the others by member id. The first ones get one more each
    if the partitions cannot be divided evenly.
    """

    def place(member_id: str) -> tuple[bool, str]:
        instance = members[member_id].instance_id
        return instance is None, member_id if instance is None else instance

    assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
    takers = _takers(sorted(members, key=place), members)
    for topic, of_topic in takers.items():
        each, more = divmod(partitions[topic], len(of_topic))
        start = 0
        for i, member_id in enumerate(of_topic):
            end = start + each + (i < more)
            if end > start:
                assigned[member_id][topic] = frozenset(range(start, end))
            start = end
    return assigned


def assign_uniform(
    members: Mapping[str, Subscriber], partitions: Mapping[bytes, int], before: Target
) -> Target:
    """Give all members the same number of partitions, or one more, while they keep what they have.

    If their subscriptions differ, the numbers are as equal as these allow.
    """
    subscriptions = {subscriber.topics for subscriber in members.values()}
    if len(subscriptions) == 1:
        return _assign_alike(members, {topic: partitions[topic] for topic in subscriptions.pop()}, before)
    return _assign_unlike(members, partitions, before)


def _takers(order: Sequence[str], members: Mapping[str, Subscriber]) -> dict[bytes, list[str]]:
    """Return topic → its subscribers, in order."""
    takers: dict[bytes, list[str]] = {}
    for member_id in order:
        for topic in sorted(members[member_id].topics):
            takers.setdefault(topic, []).append(member_id)
    return takers


def _assign_alike(
    members: Mapping[str, Subscriber], partitions: Mapping[bytes, int], before: Target
) -> Target:
    """Assign partitions to members with the same subscription."""
    had = {
        (topic, partition)
        for member_id in members
        for topic, numbers in before.get(member_id, {}).items()
        for partition in numbers
    }
    open_pairs = [
        (topic, partition)
        for topic in sorted(partitions)
        for partition in range(partitions[topic])
        if (topic, partition) not in had
    ]
    each, more = divmod(sum(partitions.values()), len(members))
    assigned: dict[str, dict[bytes, set[int]]] = {}
    left: dict[str, int] = {}
    for i, member_id in enumerate(members):
        quota = each + (i < more)
        kept = assigned[member_id] = {}
        for topic, numbers in before.get(member_id, {}).items():
            valid = sorted(partition for partition in numbers if partition < partitions.get(topic, 0))
            if valid[:quota]:
                kept[topic] = set(valid[:quota])
            open_pairs += [(topic, partition) for partition in valid[quota:]]
            quota -= min(quota, len(valid))
        left[member_id] = quota
    rest = iter(open_pairs)
    for member_id, quota in left.items():
        for _, (topic, partition) in zip(range(quota), rest, strict=False):
            assigned[member_id].setdefault(topic, set()).add(partition)
    return _frozen(assigned)


def _assign_unlike(
    members: Mapping[str, Subscriber], partitions: Mapping[bytes, int], before: Target
) -> Target:
    """Assign partitions to members whose subscriptions differ.

    What has no owner goes to the subscriber with the fewest partitions, beginning with the topics that leave
    the least choice. Then partitions move from those with many to those with few.
    """
    assigned: dict[str, dict[bytes, set[int]]] = {}
    for member_id, subscriber in members.items():
        kept = assigned[member_id] = {}
        for topic, numbers in before.get(member_id, {}).items():
            valid = {partition for partition in numbers if partition < partitions.get(topic, 0)}
            if topic in subscriber.topics and valid:
                kept[topic] = valid
    counts = {member_id: sum(map(len, kept.values())) for member_id, kept in assigned.items()}
    takers = _takers(list(members), members)
    order = {member_id: i for i, member_id in enumerate(members)}
    topics = sorted(takers, key=lambda topic: (-partitions[topic] / len(takers[topic]), len(takers[topic])))
    for topic in topics:
        had = {partition for member_id in takers[topic] for partition in assigned[member_id].get(topic, ())}
        heap = [(counts[member_id], order[member_id], member_id) for member_id in takers[topic]]
        heapify(heap)
        for partition in range(partitions[topic]):
            if partition not in had:
                count, place, member_id = heap[0]
                assigned[member_id].setdefault(topic, set()).add(partition)
                counts[member_id] = count + 1
                heapreplace(heap, (count + 1, place, member_id))
    for _ in range(BALANCING_ROUNDS_MAX):
        moves = [_even_out(topic, takers[topic], assigned, counts) for topic in topics]
        if not any(moves):
            break
    return _frozen(assigned)


def _even_out(
    topic: bytes, takers: Sequence[str], assigned: dict[str, dict[bytes, set[int]]], counts: dict[str, int]
) -> bool:
    """Move partitions of a topic from the subscribers with the most to those with the fewest, and return
    whether any moved."""
    in_order = sorted(takers, key=lambda member_id: counts[member_id])
    low, high, moved = 0, len(in_order) - 1, False
    while low < high:
        few, many = in_order[low], in_order[high]
        if counts[many] - counts[few] < 2:
            break
        has = assigned[many].get(topic)
        if not has:
            high -= 1
            continue
        partition = max(has)
        has.remove(partition)
        if not has:
            del assigned[many][topic]
        assigned[few].setdefault(topic, set()).add(partition)
        counts[many] -= 1
        counts[few] += 1
        moved = True
        if counts[few] >= counts[in_order[low + 1]]:
            low += 1
        if counts[many] <= counts[in_order[high - 1]]:
            high -= 1
        if low >= high:
            in_order.sort(key=lambda member_id: counts[member_id])
            low, high = 0, len(in_order) - 1
            if counts[in_order[high]] - counts[in_order[low]] < 2:
                break
    return moved


def _frozen(assigned: Mapping[str, Mapping[bytes, set[int]]]) -> Target:
    return {
        member_id: {topic: frozenset(numbers) for topic, numbers in kept.items()}
        for member_id, kept in assigned.items()
    }


ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""The assignors, by the names under which members ask for them."""
