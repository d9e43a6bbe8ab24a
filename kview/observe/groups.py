"""Groups, their members and their committed offsets, as they are turned from answers to facts to tables."""

import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kview.model.failures import NO_FAILURE, Cause
from kview.model.snapshot import Groups, Ids, Longs, Members, Offsets, Strings, empty
from kview.model.states import GroupState, GroupType
from kview.model.units import NO_OFFSET, UNKNOWN, UNKNOWN_ID
from kview.observe.layout import strings
from kview.wire.offset_fetch import GroupCommits

CONSUMER_PROTOCOL = "consumer"
MOST_ASSIGNMENTS = 4096
"""Limit of cached decoded assignments. Between rebalances the assignments of members stay the same."""

Owned = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """A member of a classic group, and the partitions it owns."""

    id: str
    client_id: str
    host: str
    owned: Owned


@dataclass(slots=True)
class GroupFacts:
    """The facts known about a group.

    While its coordinator does not answer, the figures stay and become older.
    """

    group: str
    type: str
    state: str
    coordinator: int
    assignment_strategy: str = ""
    members: tuple[MemberFacts, ...] = ()
    received_ms: int = UNKNOWN
    described_ms: int = UNKNOWN
    refused: int = 0
    """Kafka's error number in the coordinator's last answer, 0 if it was not an error."""
    cause: Cause = NO_FAILURE
    """Why the figures are old: `refused`, or a coordinator that is silent or has left."""
    commits: GroupCommits | None = None
    committed_ms: int = UNKNOWN
    rows: "CommitRows | None" = None


@dataclass(frozen=True, slots=True)
class CommitRows:
    """A group's rows of the offsets table.

    `place` is each row's index in the concatenated answer, or −1.
    """

    key: object = field(repr=False)
    topic: Strings
    partition: Ids
    owner: Strings
    place: Ids


@lru_cache(MOST_ASSIGNMENTS)
def owned_partitions(assignment: bytes) -> Owned:
    """Decode the assignment of a member of the consumer protocol.

    Returns () if the bytes are not valid.
    """
    try:
        decoded = ConsumerProtocolAssignment.decode(assignment)
    except (ValueError, TypeError, struct.error):
        return ()
    return tuple((sys.intern(t.topic), tuple(t.partitions)) for t in decoded.assigned_partitions)


def listed(facts: dict[str, GroupFacts], broker: int, answer: Any, at_ms: int) -> None:
    """Store a broker's answer to ListGroups. The broker coordinates the groups it lists."""
    for entry in answer.groups:
        kind = _word(GroupType, getattr(entry, "group_type", None) or GroupType.CLASSIC, GroupType.UNKNOWN)
        state = _word(GroupState, getattr(entry, "group_state", None) or "", GroupState.UNKNOWN)
        known = facts.get(entry.group_id)
        if known is None:
            name = sys.intern(entry.group_id)
            facts[name] = GroupFacts(name, kind, state, broker, received_ms=at_ms)
            continue
        known.type = kind
        if known.coordinator != broker:
            known.coordinator, known.refused = broker, 0
        if state != GroupState.UNKNOWN:
            known.state, known.received_ms = state, at_ms


def forget(facts: dict[str, GroupFacts], seen: Mapping[int, frozenset[str]], brokers: Iterable[int]) -> None:
    """Drop the groups that none of `brokers` lists, provided that every one of these brokers has answered."""
    everyone = set(brokers)
    if not everyone or not everyone <= seen.keys():
        return
    there = frozenset().union(*(seen[broker] for broker in everyone))
    for name in [
        name for name, known in facts.items() if name not in there and known.coordinator in everyone
    ]:
        del facts[name]


def described(known: GroupFacts, entry: Any, at_ms: int) -> None:
    """Store one group of a DescribeGroups answer without an error."""
    known.state = _word(GroupState, entry.group_state, GroupState.UNKNOWN)
    known.assignment_strategy = sys.intern(entry.protocol_data or "")
    is_consumer = entry.protocol_type == CONSUMER_PROTOCOL
    known.members = tuple(
        MemberFacts(
            sys.intern(m.member_id),
            sys.intern(m.client_id),
            sys.intern(m.client_host.removeprefix("/")),
            owned_partitions(bytes(m.member_assignment)) if is_consumer and m.member_assignment else (),
        )
        for m in sorted(entry.members, key=lambda m: m.member_id)
    )
    known.described_ms = known.received_ms = at_ms
    known.refused = 0


def committed(known: GroupFacts, commits: GroupCommits, at_ms: int) -> None:
    """Store a group's committed offsets."""
    known.commits = commits
    known.committed_ms = at_ms
    if known.type != GroupType.CLASSIC:  # the description of a classic group decides
        known.refused = 0


def rows_of(known: GroupFacts) -> CommitRows:
    """Return a group's rows of the offsets table, for the partitions it has committed or owns, in order.

    The same object is returned until the rows change.
    """
    topics = known.commits.topics if known.commits else ()
    key = (tuple((t.topic, t.partition.tobytes()) for t in topics), known.members)
    if known.rows is not None and known.rows.key == key:
        return known.rows
    places: dict[tuple[str, int], int] = {}
    at = 0
    for t in topics:
        name = sys.intern(t.topic)
        places.update({(name, p): at + i for i, p in enumerate(t.partition.tolist())})
        at += len(t.partition)
    owners = {
        (topic, p): member.id for member in known.members for topic, parts in member.owned for p in parts
    }
    keys = sorted(places.keys() | owners.keys())
    known.rows = CommitRows(
        key,
        strings([topic for topic, _ in keys]),
        np.array([p for _, p in keys], np.int32),
        strings([owners.get(k, "") for k in keys]),
        np.array([places.get(k, -1) for k in keys], np.int32),
    )
    return known.rows


def _committed(known: GroupFacts, rows: CommitRows) -> Longs:
    out = np.full(len(rows.place), NO_OFFSET, np.int64)
    if known.commits and known.commits.topics:
        offsets = np.concatenate([np.where(t.error == 0, t.offset, NO_OFFSET) for t in known.commits.topics])
        there = rows.place >= 0
        out[there] = offsets[rows.place[there]]
    return out


@dataclass(slots=True)
class GroupTables:
    """The tables of the groups.

    Each observation rebuilds the tables, and shares the columns that are unchanged.
    """

    groups: Groups = field(default_factory=lambda: empty(Groups))
    members: Members = field(default_factory=lambda: empty(Members))
    offsets: Offsets = field(default_factory=lambda: empty(Offsets))
    _member_facts: tuple[Any, ...] = ()
    _rows: tuple[CommitRows, ...] = ()

    def update(self, facts: Mapping[str, GroupFacts]) -> None:
        """Rebuild the tables from `facts`."""
        ordered = [facts[name] for name in sorted(facts)]
        self.groups = _groups(ordered)
        members = tuple((g.group, g.members) for g in ordered)
        if members != self._member_facts:
            self._member_facts = members
            self.members = _members(members)
        self._update_offsets(ordered)

    def _update_offsets(self, ordered: Sequence[GroupFacts]) -> None:
        rows = tuple(rows_of(known) for known in ordered)
        if not rows:
            self.offsets, self._rows = empty(Offsets), ()
            return
        counts = [len(r.topic) for r in rows]
        values = np.concatenate([_committed(k, r) for k, r in zip(ordered, rows, strict=True)])
        times = np.repeat(np.array([k.committed_ms for k in ordered], np.int64), counts)
        same = len(rows) == len(self._rows) and all(a is b for a, b in zip(rows, self._rows, strict=True))
        if same and len(self.offsets) == len(values):
            old = self.offsets
            self.offsets = Offsets(old.group, old.topic, old.partition, values, old.owner, times)
            return
        self._rows = rows
        self.offsets = Offsets(
            np.repeat(strings([k.group for k in ordered]), counts),
            np.concatenate([r.topic for r in rows]),
            np.concatenate([r.partition for r in rows]),
            values,
            np.concatenate([r.owner for r in rows]),
            times,
        )


def _groups(ordered: Sequence[GroupFacts]) -> Groups:
    return Groups(
        group=strings([g.group for g in ordered]),
        type=strings([g.type for g in ordered]),
        state=strings([g.state for g in ordered]),
        coordinator=np.array([g.coordinator for g in ordered], np.int32),
        assignment_strategy=strings([g.assignment_strategy for g in ordered]),
        members=np.array(
            [len(g.members) if g.described_ms != UNKNOWN else UNKNOWN_ID for g in ordered], np.int32
        ),
        received_ms=np.array([g.received_ms for g in ordered], np.int64),
        error=strings([g.cause.kind.value for g in ordered]),
        error_code=np.array([0 if g.cause.code == UNKNOWN_ID else g.cause.code for g in ordered], np.int32),
    )


def _members(facts: Sequence[tuple[str, tuple[MemberFacts, ...]]]) -> Members:
    flat = [(group, member) for group, members in facts for member in members]
    return Members(
        group=strings([group for group, _ in flat]),
        member_id=strings([member.id for _, member in flat]),
        client_id=strings([member.client_id for _, member in flat]),
        host=strings([member.host for _, member in flat]),
        assigned=np.array([sum(len(parts) for _, parts in member.owned) for _, member in flat], np.int32),
    )


def _word(kind: Any, value: str, otherwise: str) -> str:
    """Return a state or type as our interned word for Kafka's spelling, and unknown words unchanged."""
    if not value:
        return str(otherwise)
    for member in kind:
        if member.value.lower() == value.lower():
            return str(member.value)
    return sys.intern(value)
