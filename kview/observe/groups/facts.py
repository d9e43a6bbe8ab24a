"""Groups, their members and their committed offsets, as they are turned from answers to facts to tables."""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import Struct

from kview.model.failures import NO_FAILURE, Cause, FailureKind
from kview.model.snapshot import Ids, Strings
from kview.model.states import GroupState, GroupType, group_type
from kview.model.turns import rounds_of_groups
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.observe.apis import GROUP_ID_NOT_FOUND, NOT_COORDINATOR, OFFSET_FETCH, Versions, highest
from kview.observe.groups.kinds import KINDS
from kview.observe.groups.members import GroupDescription, MemberFacts
from kview.wire import offset_fetch
from kview.wire.offset_fetch import GroupCommits

MISSING_MOST_MS = 60_000
"""How long a group is kept that no broker lists while its expected coordinator refuses to describe it.
Clusters other than Apache Kafka may choose coordinators differently."""

STEADY_MS = 5_000
"""How long a group's coordinator must be the same and answer before it counts that no broker has the group. A
broker that was restarted may still be loading its groups."""

SINGLE_FETCHES = 3
"""Groups requested per observation from brokers before 3.0, which take only one group per request."""

AWAY = frozenset({FailureKind.COORDINATOR_GONE, FailureKind.COORDINATOR_SILENT})
"""Why a group's figures are old if its coordinator cannot have answered."""


class ShareRow(NamedTuple):
    """Where a share group starts on a partition, as in `ShareOffsets`."""

    topic: str
    partition: int
    start_offset: int
    lag: int


class GroupFacts(Struct):
    """The facts known about a group.

    While its coordinator does not answer, the figures stay and become older.
    """

    group: str
    type: str
    state: str
    coordinator: int
    assignment_strategy: str = ""
    epoch: int = UNKNOWN_ID
    assignment_epoch: int = UNKNOWN_ID
    topology_epoch: int = UNKNOWN_ID
    subtopologies: str = ""
    members: tuple[MemberFacts, ...] = ()
    received_ms: int = UNKNOWN
    described_ms: int = UNKNOWN
    description_refused: int = 0
    commits_refused: int = 0
    """Kafka's error number in the coordinator's last answer about the description and about the committed
    offsets, 0 if it was not an error."""
    commits_malformed: bool = False
    """Whether the last answer about the committed offsets cannot be true."""
    cause: Cause = NO_FAILURE
    """Why the figures are old: a refusal, or a coordinator that is silent or has left."""
    missing_ms: int = UNKNOWN
    """Since when no broker's list has had the group, UNKNOWN if one has."""
    vouched: bool = False
    """Whether its coordinator has loaded its groups since `missing_ms`, for a kind that DescribeGroups does
    not know."""
    unsteady_ms: int = UNKNOWN
    """When its coordinator last was unknown, silent or another one, UNKNOWN if it never was."""
    commits: GroupCommits | None = None
    committed_ms: int = UNKNOWN
    listed_ms: int = UNKNOWN
    """When it was first listed."""
    share: tuple[ShareRow, ...] = ()
    share_ms: int = UNKNOWN
    """Where a share group starts, and when its coordinator last said so."""
    rows: "CommitRows | None" = None

    @property
    def refused(self) -> int:
        """Kafka's error number with which the coordinator refuses a part of what is asked for, or 0."""
        return self.commits_refused or self.description_refused

    @property
    def unread(self) -> bool:
        """Whether its committed offsets have never been read."""
        return self.type != GroupType.SHARE and self.committed_ms == UNKNOWN

    def is_steady(self, now_ms: int) -> bool:
        """Return whether its coordinator has been the same and has answered for STEADY_MS."""
        return self.unsteady_ms == UNKNOWN or now_ms - self.unsteady_ms >= STEADY_MS

    def moved_to(self, coordinator: int) -> None:
        """Note another coordinator, which has not refused anything."""
        self.coordinator, self.description_refused, self.commits_refused = coordinator, 0, 0

    def became(self, kind: str) -> None:
        """Note another kind: what was known of its members is void, as they may have changed their protocol
        while they run."""
        self.type, self.members, self.described_ms = kind, (), UNKNOWN
        self.assignment_strategy, self.epoch, self.assignment_epoch = "", UNKNOWN_ID, UNKNOWN_ID
        self.topology_epoch, self.subtopologies = UNKNOWN_ID, ""
        self.description_refused = 0


@dataclass(frozen=True, slots=True)
class CommitRows:
    """A group's rows of the offsets table.

    `place` is each row's index in the concatenated answer, or −1.
    """

    key: object = dataclasses.field(repr=False)
    topic: Strings
    partition: Ids
    owner: Strings
    place: Ids


def listed(
    facts: dict[str, GroupFacts],
    broker: int,
    answer: Any,
    owner_of: Callable[[str], int | None],
    at_ms: int,
) -> None:
    """Store a broker's answer to ListGroups.

    The broker coordinates the groups it lists, unless the cluster's metadata name the coordinator that is
    already known: a broker that hung may still list groups that it has lost.
    """
    for entry in answer.groups:
        kind = group_type(getattr(entry, "group_type", None), entry.protocol_type)
        state = _word(GroupState, getattr(entry, "group_state", None) or "", GroupState.UNKNOWN)
        known = facts.get(entry.group_id)
        if known is None:
            name = sys.intern(entry.group_id)
            facts[name] = GroupFacts(name, kind, state, broker, received_ms=at_ms, listed_ms=at_ms)
            continue
        if known.coordinator not in (broker, UNKNOWN_ID) and known.coordinator == owner_of(entry.group_id):
            continue
        if known.type != kind:
            known.became(kind)
        if known.coordinator != broker:
            known.moved_to(broker)
        if state != GroupState.UNKNOWN:
            known.state, known.received_ms = state, at_ms


def settle(
    facts: dict[str, GroupFacts],
    lists: Mapping[int, frozenset[str]],
    brokers: Iterable[int],
    owner_of: Callable[[str], int | None],
    now_ms: int,
) -> None:
    """Compare `facts` with the last `lists` of the brokers that answer, and drop the groups that are gone.

    A group that no list has may be gone, or its coordinator may have resigned while the new one is still
    loading. So the broker that has to know (`owner_of`) is asked for its description. Only if nobody knows
    which broker that is (None), the lists of all `brokers` decide. Nothing is dropped soon after a
    coordinator was restarted or changed.
    """
    everyone = set(brokers)
    complete = bool(everyone) and everyone <= lists.keys()
    there = frozenset().union(*lists.values())
    for name, known in list(facts.items()):
        owner = owner_of(name)
        if known.cause.kind in AWAY or owner not in (None, known.coordinator):
            known.unsteady_ms = now_ms
        if name in there:
            known.missing_ms, known.vouched = UNKNOWN, False
            if known.type not in KINDS:
                known.description_refused = 0  # it is only asked for while the group is missing
            continue
        if owner is None:
            if complete and known.coordinator in everyone and known.is_steady(now_ms):
                del facts[name]
            continue
        if known.missing_ms == UNKNOWN:
            known.missing_ms = now_ms
        resigned = NOT_COORDINATOR in (known.description_refused, known.commits_refused)
        elsewhere = resigned and now_ms - known.missing_ms > MISSING_MOST_MS
        if (known.vouched and owner in lists and known.is_steady(now_ms)) or (complete and elsewhere):
            del facts[name]
        elif owner not in (NO_BROKER, known.coordinator):
            known.moved_to(owner)
            known.vouched = False


def is_gone(entry: Any) -> bool:
    """Return whether a loaded coordinator's description says that it does not have the group.

    It says so for groups of new types, too, which have descriptions of their own.
    """
    if entry.error_code == GROUP_ID_NOT_FOUND:
        return True
    return not entry.error_code and bool(entry.group_state == GroupState.DEAD)


def described(known: GroupFacts, entry: GroupDescription, at_ms: int) -> None:
    """Store the description of a group, which was answered without an error."""
    known.state = _word(GroupState, entry.state, GroupState.UNKNOWN)
    known.assignment_strategy = entry.assignor
    known.epoch, known.assignment_epoch = entry.epoch, entry.assignment_epoch
    known.topology_epoch, known.subtopologies = entry.topology_epoch, entry.subtopologies
    known.members = entry.members
    known.described_ms = known.received_ms = at_ms
    known.description_refused = 0


def shared(known: GroupFacts, topics: Iterable[Any], at_ms: int) -> None:
    """Store where a share group starts."""
    known.share, known.share_ms = _share_rows(topics), at_ms
    known.commits_refused = 0


def _share_rows(topics: Iterable[Any]) -> tuple[ShareRow, ...]:
    """Return where a share group starts. A partition that nobody has read yet has no start."""
    return tuple(
        ShareRow(
            sys.intern(topic.topic_name),
            part.partition_index,
            part.start_offset if part.start_offset >= 0 else UNKNOWN,
            part.lag if part.lag is not None and part.lag >= 0 else UNKNOWN,
        )
        for topic in sorted(topics, key=lambda topic: topic.topic_name)
        for part in sorted(topic.partitions, key=lambda part: part.partition_index)
        if not part.error_code
    )


def committed(known: GroupFacts, commits: GroupCommits, at_ms: int) -> None:
    """Store a group's committed offsets."""
    known.commits = commits
    known.committed_ms = at_ms
    known.commits_refused, known.commits_malformed = 0, False


def takes_many_groups(versions: Versions) -> bool:
    """Return whether a broker takes a request for the commits of many groups, as brokers do from 3.0 on."""
    return highest(versions, OFFSET_FETCH) >= offset_fetch.BATCHED_FROM


def rounds_of_commits(versions: Versions, of_coordinator: int, groups: int) -> int:
    """Return in how many observations the commits of a coordinator's groups are all read, out of so many
    groups of the cluster."""
    if takes_many_groups(versions):
        return rounds_of_groups(groups)
    return max(1, -(-of_coordinator // SINGLE_FETCHES))


def _word(kind: Any, value: str, otherwise: str) -> str:
    """Return a state or type as our interned word for Kafka's spelling, and unknown words unchanged."""
    if not value:
        return str(otherwise)
    for member in kind:
        if member.value.lower() == value.lower():
            return str(member.value)
    return sys.intern(value)
