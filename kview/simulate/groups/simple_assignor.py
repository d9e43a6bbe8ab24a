"""The assignor of share groups, `simple`, in which several members may have the same partition.

Sources: SimpleHomogeneousAssignmentBuilder and SimpleHeterogeneousAssignmentBuilder of Kafka's group
coordinator. Which of several equal members gets a partition depends there on the order of Java's hash maps,
here on the order in which the members joined.
"""

from collections.abc import Iterable, Mapping, Sequence

from kview.simulate.groups.consumer_records import Partitions

Pair = tuple[bytes, int]
"""(topic id, partition)"""


def assign_simple(
    members: Mapping[str, frozenset[bytes]], assignable: Partitions, before: Mapping[str, Partitions]
) -> dict[str, Partitions]:
    """Return member id → its partitions. Each partition has as many members as any other, or one more, and
    members keep what they have as far as that allows.

    `members` has the ids of the topics that each subscribes to. If their subscriptions differ, each topic is
    balanced by itself.
    """
    held = {
        name: {(topic, number) for topic, numbers in before.get(name, {}).items() for number in numbers}
        for name in members
    }
    assigned: dict[str, set[Pair]] = {name: set() for name in members}
    alike = len(set(members.values())) == 1
    known = frozenset[bytes]().union(*members.values()) & assignable.keys()
    for topics in [known] if alike else [frozenset((topic,)) for topic in sorted(known)]:
        takers = [name for name, subscribed in members.items() if topics <= subscribed]
        pairs = [(topic, number) for topic in sorted(topics) for number in sorted(assignable[topic])]
        for name, taken in _balanced(takers, pairs, held).items():
            assigned[name] |= taken
    return {name: _by_topic(sorted(taken)) for name, taken in assigned.items()}


def _balanced(
    members: Sequence[str], pairs: Sequence[Pair], held: Mapping[str, set[Pair]]
) -> dict[str, set[Pair]]:
    if not pairs or not members:
        return {}
    sharing = -(-len(members) // len(pairs))
    slots = sharing * len(pairs)
    up_to = [-(-slots * count // len(members)) for count in range(len(members) + 1)]
    wanted = {name: up_to[i + 1] - up_to[i] for i, name in enumerate(members)}
    known = set(pairs)
    by_member = {name: held[name] & known for name in members}
    by_pair: dict[Pair, list[str]] = {pair: [] for pair in pairs}
    for name, taken in by_member.items():
        for pair in taken:
            by_pair[pair].append(name)
    overfilled = {name for name in members if len(by_member[name]) > wanted[name]}
    for pair, holders in by_pair.items():
        for name in sorted(holders, key=lambda name: name not in overfilled):
            if len(holders) <= sharing:
                break
            holders.remove(name)
            by_member[name].discard(pair)
    for name in members:
        for pair in sorted(by_member[name])[: max(0, len(by_member[name]) - wanted[name])]:
            by_member[name].discard(pair)
            by_pair[pair].remove(name)
    unfilled = [name for name in members if len(by_member[name]) < wanted[name]]
    for pair in pairs:
        tries = len(unfilled)
        while unfilled and len(by_pair[pair]) < sharing and tries:
            name = unfilled.pop(0)
            tries -= 1
            if name not in by_pair[pair]:
                by_pair[pair].append(name)
                by_member[name].add(pair)
                tries = len(unfilled)
            if len(by_member[name]) < wanted[name]:
                unfilled.append(name)
    return by_member


def _by_topic(pairs: Iterable[Pair]) -> dict[bytes, frozenset[int]]:
    topics: dict[bytes, set[int]] = {}
    for topic, number in pairs:
        topics.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in topics.items()}
