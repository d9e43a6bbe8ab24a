"""Which coordinators have been heard: why figures of groups are old, and whose groups are not known."""

from collections import Counter
from collections.abc import Collection, Mapping

from msgspec import Struct

from kview.model.failures import NO_FAILURE, Cause, FailureKind, Part, refused
from kview.model.snapshot import Failure
from kview.model.states import GroupType
from kview.model.units import NO_BROKER, UNKNOWN
from kview.observe.apis import COORDINATOR_NOT_AVAILABLE, LIST_GROUPS, Versions
from kview.observe.groups.coordinators import leaders
from kview.observe.groups.facts import GroupFacts, rounds_of_commits
from kview.observe.link import STALE_S, Link
from kview.observe.state import State

LATE_ROUNDS = 3
"""Figures that were due this many times and did not come are late, even if the coordinator answers."""
LATE_LEAST_S = 10.0
"""The least age of such figures. A coordinator that stops for some seconds is noticed by its silence."""


class Plan(Struct, frozen=True):
    """How often figures of groups are read."""

    interval_s: float
    list_rounds: int
    """Groups are listed in every observation of this number, which is all that is read of some types."""

    def late_after_s(self, reads_commits: bool, versions: Versions, groups: int) -> float:
        """Return the age at which the figures of a group are late.

        `versions` are those of its coordinator, and `groups` is the number of groups whose commits are read
        from it.
        """
        rounds = rounds_of_commits(versions, groups) if reads_commits else self.list_rounds
        return max(LATE_LEAST_S, LATE_ROUNDS * rounds * self.interval_s)


def update_causes(groups: Collection[GroupFacts], links: Mapping[int, Link], plan: Plan, now_ms: int) -> None:
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
            read_ms = known.received_ms if known.committed_ms == UNKNOWN else known.committed_ms
            late_s = plan.late_after_s(
                known.committed_ms != UNKNOWN, link.versions, commits[known.coordinator]
            )
            unread = known.type != GroupType.SHARE and known.committed_ms == UNKNOWN
            if unread:  # a group that is read in turn may just not have had its turn
                unread = rounds_of_commits(link.versions, commits[known.coordinator]) == 1
            late = read_ms != UNKNOWN and now_ms - read_ms > late_s * 1000
            if not known.cause.kind and (unread or late):
                known.cause = Cause(FailureKind.OVERDUE)


def _answered(known: GroupFacts) -> Cause:
    """Return what is wrong with the coordinator's last answers about a group, if anything."""
    if known.refused:
        return refused(known.refused)
    return Cause(FailureKind.MALFORMED) if known.commits_malformed else NO_FAILURE


def unheard(state: State, links: Mapping[int, Link]) -> tuple[Failure, ...]:
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
        if link is not None and link.versions and LIST_GROUPS not in link.versions:
            continue
        codes = [
            state.heard.refused[partition] for partition in partitions if partition in state.heard.refused
        ]
        if broker == NO_BROKER:
            cause = refused(COORDINATOR_NOT_AVAILABLE)
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
