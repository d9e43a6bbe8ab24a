"""What the descriptions of groups of all kinds have in common: members, epochs, and what each member has."""

import sys
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from kview.model.units import UNKNOWN_ID

MOST_ASSIGNMENTS = 4096
"""Limit of cached decoded assignments. Between rebalances the assignments of members stay the same."""

Owned = tuple[tuple[str, tuple[int, ...]], ...]
"""Topics (or connectors, or subtopologies) with numbers of partitions or tasks."""


class MemberFacts(Struct, frozen=True):
    """A member of a group. `owned` are partitions; the rest is as in `Members`."""

    id: str
    client_id: str
    host: str
    owned: Owned = ()
    rack: str = ""
    epoch: int = UNKNOWN_ID
    assigned: int = 0
    target: int = UNKNOWN_ID
    to_get: int = UNKNOWN_ID
    to_give_back: int = UNKNOWN_ID
    runs: str = ""
    connectors: tuple[str, ...] = ()
    """The connectors of which it runs something, if it is a Connect worker."""


class GroupDescription(Struct, frozen=True):
    """What a coordinator says of a group."""

    state: str
    members: tuple[MemberFacts, ...]
    assignor: str = ""
    epoch: int = UNKNOWN_ID
    assignment_epoch: int = UNKNOWN_ID
    topology_epoch: int = UNKNOWN_ID
    subtopologies: str = ""


def numbers(values: Iterable[int]) -> str:
    """Return numbers as text, in order: `0, 1, 4`."""
    return ", ".join(map(str, sorted(values)))


def of_epochs(
    entry: Any, members: Iterable[MemberFacts], topology_epoch: int = UNKNOWN_ID, subtopologies: str = ""
) -> GroupDescription:
    """Return the description of a group whose members follow an assignment with an epoch."""
    assignor = sys.intern(getattr(entry, "assignor_name", None) or "")
    epochs = entry.group_epoch, entry.assignment_epoch
    return GroupDescription(
        entry.group_state, ordered(members), assignor, *epochs, topology_epoch, subtopologies
    )


def who(member: Any) -> tuple[str, str, str]:
    """Return a member's id, client id and host."""
    host = member.client_host.removeprefix("/")
    return sys.intern(member.member_id), sys.intern(member.client_id), sys.intern(host)


def topics_of(assignment: Any) -> Owned:
    """Return the partitions of an assignment, as (topic, partitions)."""
    return tuple(
        (sys.intern(topic.topic_name), tuple(topic.partitions)) for topic in assignment.topic_partitions
    )


def count_of(owned: Owned) -> int:
    """Return how many partitions or tasks these are."""
    return sum(len(parts) for _, parts in owned)


def pairs_of(owned: Owned) -> set[tuple[str, int]]:
    """Return each partition or task of an assignment, as (topic or subtopology, number)."""
    return {(name, part) for name, parts in owned for part in parts}


def ordered(members: Iterable[MemberFacts]) -> tuple[MemberFacts, ...]:
    """Return members sorted by id."""
    return tuple(sorted(members, key=lambda member: member.id))
