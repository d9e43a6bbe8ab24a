"""What to ask which broker about groups in an observation, and what the answers mean together."""

from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field

from kview.model.failures import NO_FAILURE, Cause, FailureKind, Part, refused
from kview.model.snapshot import Failure
from kview.model.states import GroupType
from kview.model.turns import rounds_of_groups
from kview.model.units import NO_BROKER, UNKNOWN
from kview.observe import apis
from kview.observe.groups import facts
from kview.observe.groups.coordinators import leaders
from kview.observe.groups.facts import (
    SINGLE_FETCHES,
    GroupFacts,
    rounds_of_commits,
    takes_many_groups,
)
from kview.observe.groups.kinds import KINDS, Kind
from kview.observe.groups.requests import GroupRequests
from kview.observe.link import STALE_S, Link
from kview.observe.links import Links
from kview.observe.state import State

Ask = Callable[[], Coroutine[Any, Any, None]]


class GroupRounds(Struct):
    """Lists groups in every `list_rounds`-th observation, and in each one while something is unclear.

    Lists are compared only with others of the same round. So a round waits for brokers that are merely slow.
    """

    state: State
    requests: GroupRequests
    links: Links
    list_rounds: int
    interval_s: float
    unheard: tuple[Failure, ...] = ()
    """A failure for each broker that may coordinate groups and had never listed them when the tables were
    rebuilt. What is heard later is in the next tables."""
    _listing: bool = False
    _turns: dict[tuple[Part, int], int] = field(default_factory=dict)
    """What is asked and broker → the place of the group to begin with next."""

    def lists(self, askable: Mapping[int, Link], sequence: int, now_ms: int) -> list[tuple[Link, Ask]]:
        """Return the requests for lists of groups, of the observation with that number."""
        self.settle(askable, now_ms)
        if any(broker in askable for broker in self.requests.listing):
            return []
        self._listing = sequence % self.list_rounds == 0 or self.requests.moved or self._unclear()
        if not self._listing:
            return []
        self.requests.moved = False
        return [
            (link, partial(self.requests.list_groups, link, broker))
            for broker, link in askable.items()
            if apis.LIST_GROUPS in link.versions
        ]

    def _unclear(self) -> bool:
        known = self.state.groups.values()
        return bool(self.unheard) or any(g.cause.kind or g.missing_ms != UNKNOWN for g in known)

    def settle(self, askable: Mapping[int, Link], now_ms: int) -> None:
        """Drop the groups that are gone, once the lists of this observation have arrived."""
        if self._listing:
            lists = {
                broker: names for broker, names in self.requests.group_lists.items() if broker in askable
            }
            listed = (address.id for address in self.state.listed)
            facts.settle(self.state.groups, lists, listed, self.requests.coordinator_of, now_ms)

    def details(self, askable: Mapping[int, Link]) -> list[tuple[Link, Ask]]:
        """Return an observation's requests for committed offsets and descriptions, to the coordinators.

        If there are very many groups, some are asked about in each observation, and for the descriptions of
        others than for the commits, so that something is heard of each group as often as possible. Those for
        share groups' offsets are the slow lane's.
        """
        asks: list[tuple[Link, Ask]] = []
        by_broker: dict[int, list[GroupFacts]] = {}
        for known in self.state.groups.values():
            by_broker.setdefault(known.coordinator, []).append(known)
        for broker, link in askable.items():
            own = by_broker.get(broker, [])
            part = -(-len(own) // rounds_of_groups(len(self.state.groups)))
            of_commits = [known for known in own if known.type != GroupType.SHARE]
            at_once = part if takes_many_groups(link.versions) else SINGLE_FETCHES
            commit = [known.group for known in self._in_turn(Part.COMMITS, broker, of_commits, at_once)]
            missing = [g.group for g in own if g.missing_ms != UNKNOWN]
            if commit:
                asks.append((link, partial(self.requests.commits, link, broker, commit)))
            if missing:
                asks.append((link, partial(self.requests.look_for, link, broker, missing)))
            by_kind: dict[Kind, list[str]] = {}
            for known in self._in_turn(Part.GROUPS, broker, own, part, first=part):
                kind = KINDS.get(known.type)
                if kind is not None and kind.api in link.versions and known.missing_ms == UNKNOWN:
                    by_kind.setdefault(kind, []).append(known.group)
            for kind, names in by_kind.items():
                asks.append((link, partial(self.requests.describe, link, broker, kind, names)))
        return asks

    def _in_turn(
        self, part: Part, broker: int, groups: Sequence[GroupFacts], size: int, first: int = 0
    ) -> Sequence[GroupFacts]:
        """Return the next `size` groups of a broker that is asked now, after those it was last asked about.

        The first turn begins at the place `first`.
        """
        if size >= len(groups):
            return groups
        at = self._turns.get((part, broker), first) % len(groups)
        self._turns[part, broker] = at + size
        return [*groups[at : at + size], *groups[: max(0, at + size - len(groups))]]

    def update(self, now_ms: int) -> None:
        """Note why figures are old and which groups are not known, and rebuild the tables."""
        plan = _Plan(self.interval_s, self.list_rounds, len(self.state.groups))
        _update_causes(self.state.groups.values(), self.links.fast, plan, now_ms)
        self.state.group_tables.update(self.state.groups)
        self.unheard = _unheard(self.state, self.links.fast)


# -- which coordinators have been heard: why figures are old, and whose groups are not known


LATE_ROUNDS = 3
"""Figures that were due this many times and did not come are late, even if the coordinator answers."""
LATE_LEAST_S = 10.0
"""The least age of such figures. A coordinator that stops for some seconds is noticed by its silence."""


class _Plan(Struct, frozen=True):
    """How often figures of groups are read."""

    interval_s: float
    list_rounds: int
    """Groups are listed in every observation of this number, which is all that is read of some types."""

    groups: int
    """The number of groups of the cluster."""

    def rounds(self, known: GroupFacts, link: Link, of_coordinator: int) -> int:
        """Return in how many observations a group is read. `of_coordinator` is the number of groups whose
        commits are read from its coordinator."""
        if known.type == GroupType.SHARE and known.committed_ms == UNKNOWN:
            return self.list_rounds
        return rounds_of_commits(link.versions, of_coordinator, self.groups)

    def late_after_ms(self, rounds: int) -> float:
        """Return the age at which figures that are read once in so many observations are late."""
        return max(LATE_LEAST_S, LATE_ROUNDS * rounds * self.interval_s) * 1000


def _update_causes(
    groups: Collection[GroupFacts], links: Mapping[int, Link], plan: _Plan, now_ms: int
) -> None:
    """Note why the figures of each group are old, if they are."""
    commits = Counter(known.coordinator for known in groups if known.type != GroupType.SHARE)
    for known in groups:
        link = links.get(known.coordinator)
        if link is None:
            known.cause = Cause(FailureKind.COORDINATOR_GONE)
        elif link.failing:
            known.cause = Cause(FailureKind.COORDINATOR_SILENT)
        elif link.owed_s >= STALE_S:
            known.cause = Cause(FailureKind.OVERDUE)
        else:
            known.cause = _answered(known)
            rounds = plan.rounds(known, link, commits[known.coordinator])
            read_ms = known.listed_ms if known.unread else known.committed_ms
            if read_ms == UNKNOWN:
                read_ms = known.received_ms
            late = read_ms != UNKNOWN and now_ms - read_ms > plan.late_after_ms(rounds)
            # A group that is read in turn may just not have had its first turn.
            if not known.cause.kind and (late or (known.unread and rounds == 1)):
                known.cause = Cause(FailureKind.OVERDUE)


def _answered(known: GroupFacts) -> Cause:
    """Return what is wrong with the coordinator's last answers about a group, if anything."""
    if known.refused:
        return refused(known.refused)
    return Cause(FailureKind.MALFORMED) if known.commits_malformed else NO_FAILURE


def _unheard(state: State, links: Mapping[int, Link]) -> tuple[Failure, ...]:
    """Return a failure for each broker that coordinates groups and has not listed all of them yet.

    So nobody knows whether there are further groups, and the sums over all groups are not known. The failure
    is of NO_BROKER for groups whose partition of `__consumer_offsets` has no leader.
    """
    if leaders(state.layout):
        missing = state.heard.unheard(state.layout)
    else:
        missing = {address.id: [] for address in state.listed if address.id not in state.heard.brokers}
    out = []
    for broker, partitions in sorted(missing.items()):
        link = links.get(broker)
        if link is not None and link.versions and apis.LIST_GROUPS not in link.versions:
            continue
        codes = [
            state.heard.refused[partition] for partition in partitions if partition in state.heard.refused
        ]
        if broker == NO_BROKER:
            cause = refused(apis.COORDINATOR_NOT_AVAILABLE)
        elif link is not None and link.failing:
            cause = link.cause
        elif codes:
            cause = refused(min(codes))
        elif broker in state.heard.denied and not partitions:
            cause = refused(state.heard.denied[broker])
        else:
            cause = state.failures.get((Part.GROUPS, broker), Cause(FailureKind.OVERDUE))
        out.append(Failure(Part.GROUPS, broker, *cause))
    return tuple(out)
