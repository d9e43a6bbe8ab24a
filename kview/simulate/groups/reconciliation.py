"""A member's way from what it has to the target assignment, step by step. Source: CurrentAssignmentBuilder.

A member first revokes what the target gives to others, and stays in its epoch until it has. Then it gets the
target's epoch and whatever of its part is free. What others still have follows when they release it.

Members of consumer groups have partitions of topics, by topic id. Members of streams groups have tasks, by
role and subtopology.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

from kview.simulate.groups.consumer_records import CurrentValue, MemberState
from kview.simulate.groups.streams_records import StreamsCurrentValue

C = TypeVar("C", CurrentValue, StreamsCurrentValue)

Numbers = Mapping[Any, frozenset[int]]
"""Topic id, or role and subtopology → numbers of partitions or of tasks."""
Epochs = Mapping[Any, Mapping[int, int]]
"""The same keys → number → the epoch in which it was assigned."""


class Target(NamedTuple):
    """What a member is to have, and in which epoch. It only gets partitions of topics in `subscribed`."""

    epoch: int
    partitions: Numbers
    subscribed: frozenset[Hashable]


def next_assignment(
    current: C,
    target: Target,
    owned: Numbers | None,
    subscription_changed: bool,
    taken: Callable[[Any, int], bool],
) -> C:
    """Return what a member has after its heartbeat.

    `owned` is what the member says it has, None if that has not changed. `taken` returns whether another
    member has a partition.
    """
    if current.state is MemberState.STABLE and current.epoch == target.epoch:
        return _unsubscribed(current, target, owned) if subscription_changed else current
    if current.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(owned, current.revoking):
            return _unsubscribed(current, target, owned) if subscription_changed else current
        return _towards(current, min(current.epoch + 1, target.epoch), target, owned, taken)
    return _towards(current, current.epoch, target, owned, taken)


def _owns_any(owned: Numbers | None, revoking: Epochs) -> bool:
    """Return whether the member still has any of these, which it has until it says otherwise."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(revoking.get(topic, {})) for topic, partitions in owned.items())


def _unsubscribed(current: C, target: Target, owned: Numbers | None) -> C:
    """Take away the topics that the member no longer subscribes to."""
    kept = {topic: epochs for topic, epochs in current.assigned.items() if topic in target.subscribed}
    if len(kept) == len(current.assigned):
        return current
    revoking = dict(current.revoking)
    for topic, epochs in current.assigned.items():
        if topic not in kept:
            revoking[topic] = {**revoking.get(topic, {}), **epochs}
    if _owns_any(owned, revoking):
        return current._replace(state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking)
    return current._replace(assigned=kept)


def _towards(
    current: C,
    epoch: int,
    target: Target,
    owned: Numbers | None,
    taken: Callable[[Any, int], bool],
) -> C:
    """Bring the member as near to the target as it can be now. `epoch` is the one it has until it has
    revoked."""
    kept: dict[Any, dict[int, int]] = {}
    revoking: dict[Any, dict[int, int]] = {}
    given: dict[Any, dict[int, int]] = {}
    waits = False
    for topic in dict.fromkeys((*current.assigned, *target.partitions)):
        wanted = target.partitions.get(topic, frozenset()) if topic in target.subscribed else frozenset()
        has = current.assigned.get(topic, {})
        stays = {partition: at for partition, at in has.items() if partition in wanted}
        goes = {partition: at for partition, at in has.items() if partition not in wanted}
        wants = [partition for partition in wanted if partition not in has]
        free = [partition for partition in wants if not taken(topic, partition)]
        waits = waits or len(free) < len(wants)
        for found, partitions in (
            (kept, stays),
            (revoking, goes),
            (given, dict.fromkeys(sorted(free), target.epoch)),
        ):
            if partitions:
                found[topic] = partitions
    if revoking and _owns_any(owned, revoking):
        state = MemberState.UNREVOKED_PARTITIONS
        return current._replace(
            epoch=epoch, previous_epoch=current.epoch, state=state, assigned=kept, revoking=revoking
        )
    for topic, partitions in given.items():
        kept[topic] = {**kept.get(topic, {}), **partitions}
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return current._replace(
        epoch=target.epoch, previous_epoch=current.epoch, state=state, assigned=kept, revoking={}
    )
