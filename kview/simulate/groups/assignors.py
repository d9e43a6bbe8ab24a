"""Kafka's range, round-robin and sticky assignors, which spread partitions over a group's members.

Sources: RangeAssignor, RoundRobinAssignor and AbstractStickyAssignor of Kafka's clients. Callers pass the
members sorted by group instance id, then by member id, as Kafka's range assignor does.
"""

from collections.abc import Callable, Mapping

from kview.simulate.groups.consumer_protocol import Subscription

TopicPartition = tuple[str, int]
Assignment = dict[str, list[TopicPartition]]
"""Member id → its partitions, sorted."""

Assignor = Callable[[Mapping[str, Subscription], Mapping[str, int]], Assignment]
"""(member id → subscription in the members' order, topic → number of partitions) → assignment."""


def assign_range(members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
    """Assign each member a block of consecutive partitions of every topic that it subscribes to.

    If a topic's partitions cannot be divided evenly, the first members get one more each.
    """
    assignment: Assignment = {member: [] for member in members}
    for topic in _topics(members, partitions):
        takers = [member for member, subscription in members.items() if topic in subscription.topics]
        each, more = divmod(partitions[topic], len(takers))
        start = 0
        for i, member in enumerate(takers):
            end = start + each + (i < more)
            assignment[member].extend((topic, partition) for partition in range(start, end))
            start = end
    return assignment


def assign_round_robin(members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
    """Deal out the partitions one by one, each to the next member that subscribes to its topic."""
    assignment: Assignment = {member: [] for member in members}
    ring = list(members)
    at = 0
    for topic in _topics(members, partitions):
        for partition in range(partitions[topic]):
            while topic not in members[ring[at % len(ring)]].topics:
                at += 1
            assignment[ring[at % len(ring)]].append((topic, partition))
            at += 1
    return assignment


def assign_sticky(members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
    """Spread partitions as evenly as possible while members keep the partitions they already own.

    If two members claim a partition, the one with the later generation gets it. If their generations are
    equal, neither does. With unequal subscriptions, partitions move one at a time from the fullest member to
    the emptiest.
    """
    assignment = _what_is_kept(members, partitions)
    taken = {pair for pairs in assignment.values() for pair in pairs}
    open_pairs = [
        (topic, partition)
        for topic in _topics(members, partitions)
        for partition in range(partitions[topic])
        if (topic, partition) not in taken
    ]
    order = {member: i for i, member in enumerate(members)}
    for topic, partition in open_pairs:
        takers = [member for member in members if topic in members[member].topics]
        least = min(takers, key=lambda member: (len(assignment[member]), order[member]))
        assignment[least].append((topic, partition))
    _balance(assignment, members)
    return {member: sorted(pairs) for member, pairs in assignment.items()}


ASSIGNORS: dict[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
}
"""The assignors, by the names under which members offer them in JoinGroup."""


def _topics(members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> list[str]:
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    return sorted(topic for topic in wanted if partitions.get(topic, 0) > 0)


def _what_is_kept(members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member, subscription in members.items():
        for topic, owned in subscription.owned.items():
            if topic in subscription.topics:
                for partition in owned:
                    if 0 <= partition < partitions.get(topic, 0):
                        claims.setdefault((topic, partition), []).append((subscription.generation, member))
    kept: Assignment = {member: [] for member in members}
    for pair in sorted(claims):
        latest = max(generation for generation, _ in claims[pair])
        holders = [member for generation, member in claims[pair] if generation == latest]
        if len(holders) == 1:
            kept[holders[0]].append(pair)
    return kept


def _balance(assignment: Assignment, members: Mapping[str, Subscription]) -> None:
    """Move partitions until no member has two more than another member that could take one of them.

    The loop ends because each move lowers the sum of the squared counts.
    """
    moved = True
    while moved:
        moved = False
        for giver in sorted(members, key=lambda member: -len(assignment[member])):
            for pair in reversed(assignment[giver]):
                takers = [member for member in members if pair[0] in members[member].topics]
                taker = min(takers, key=lambda member: len(assignment[member]))
                if len(assignment[giver]) - len(assignment[taker]) >= 2:
                    assignment[giver].remove(pair)
                    assignment[taker].append(pair)
                    moved = True
                    break
            if moved:
                break
