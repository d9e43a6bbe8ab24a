"""The controllers: whether one is active and can act, and which voters of the quorum are lost."""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from kview.model.events import Severity
from kview.model.failures import FailureKind, Part
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Flags, Observation, Quorum, Snapshot
from kview.model.states import BrokerState, QuorumRole
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

QUORUM_SILENT_MS = 1_800
"""The age at which the quorum's last answer shows that no controller answers, if a newer request is still
unanswered. The quorum is asked in every observation and answers within a few ms."""

QUORUM_SILENT_INTERVALS = 1.5
"""The same as a multiple of the time between observations, so that one failed request is not yet silence."""

QUORUM_OLD_MS, QUORUM_OLD_INTERVALS = 6_000, 2.5
"""The age at which the quorum's last answer is too old, whatever the reason, and the same as a multiple of
the time between observations. An answer arrives after its observation, so the next one shows it an interval
later."""

NO_CONTROLLER_CODES = frozenset({5, 6, 7, 8, 13, 41})
"""Kafka's error numbers with which a node answers that it knows no active controller, or cannot reach it."""

MAJORITY_QUIET_MS = 2_000
"""If a majority of the voters has not fetched for this long, the leader cannot commit any change. This is
Kafka's fetch timeout (controller.quorum.fetch.timeout.ms); the leader itself resigns a second later."""

VOTER_QUIET_MS = 3_000
"""A single voter whose last fetch is this far behind the leader's clock counts as lost. So does a voter that
has not fetched from a leader that has led for this long."""

TERM_MATTERS_MS = 60_000
"""How long it matters since when a controller has led: a new one gives every broker a whole session."""

_NOBODY_ACTS = frozenset({FindingKind.NO_CONTROLLER, FindingKind.QUORUM_LOST})
"""Findings that mean that no broker can be fenced."""


class Term(Struct, frozen=True):
    """The term of the active controller: its id and epoch, and since when it has been seen to lead."""

    controller: int = UNKNOWN_ID
    epoch: int = UNKNOWN_ID
    since_ms: int = UNKNOWN
    """UNKNOWN if it led when kview began to watch, or if that is longer ago than TERM_MATTERS_MS."""

    def is_young(self, now_ms: int) -> bool:
        """Return whether a voter may not have fetched from this controller yet."""
        return self.since_ms != UNKNOWN and now_ms - self.since_ms < VOTER_QUIET_MS

    def next(self, seen: Observation) -> "Term":
        """Return the term as of the next observation."""
        now, received_ms = (seen.controller_id, seen.controller_epoch), seen.quorum_received_ms
        if now != (self.controller, self.epoch):
            return Term(*now, UNKNOWN if self.controller == UNKNOWN_ID else received_ms)
        recent = self.since_ms != UNKNOWN and received_ms - self.since_ms < TERM_MATTERS_MS
        return self if recent else Term(*now)


def is_old(seen: Observation, interval_ms: int) -> bool:
    """Return whether the quorum's last answer is too old to tell about the present.

    `interval_ms` is the time since the previous observation, UNKNOWN for the first one, of whose answers
    nobody can tell.
    """
    if seen.quorum_received_ms == UNKNOWN:
        return True
    most_ms = max(QUORUM_OLD_MS, QUORUM_OLD_INTERVALS * interval_ms)
    return interval_ms != UNKNOWN and seen.ended_ms - seen.quorum_received_ms > most_ms


def can_fence(findings: Iterable[Finding], none_answer: bool) -> bool | None:
    """Return whether there is a controller that can fence brokers, None if nobody can tell.

    `findings` are those of `quorum_findings`. If `none_answer`, no broker can tell kview about controllers.
    """
    if none_answer:
        return None
    kinds = {finding.kind for finding in findings}
    if kinds & _NOBODY_ACTS:
        return False
    return None if FindingKind.QUORUM_SILENT in kinds else True


def quorum_findings(
    snapshot: Snapshot, term: Term, interval_ms: int, lost: frozenset[int] | None = None
) -> Iterator[Finding]:
    """Yield what is wrong with the controllers.

    `term` is that of the active controller, and `interval_ms` the time since the previous observation,
    UNKNOWN for the first one. `lost` are the controllers that are known to be lost (`voters_lost`): they stay
    so after a takeover, until the new active controller has heard from them. Without a quorum (ZooKeeper),
    all that is known is whether there is an active controller.
    """
    seen = snapshot.observation
    has_quorum = "quorum" in seen.capabilities
    known = seen.quorum_received_ms != UNKNOWN
    if seen.controller_id == NO_BROKER and (known or not has_quorum):
        yield Finding(FindingKind.NO_CONTROLLER, Severity.RISK)
        return
    if not has_quorum:
        return
    no_majority = _majority_lost(snapshot) if known else None
    if no_majority is not None:
        yield no_majority
    elif _silent(snapshot, interval_ms):
        yield Finding(FindingKind.QUORUM_SILENT, Severity.RISK, since_ms=seen.quorum_received_ms)
    elif known:
        quorum = snapshot.quorum
        lost_now = _lost_now(snapshot, term) | (_voters(quorum) & np.isin(quorum.node, list(lost or ())))
        if lost_now.any():
            nodes = tuple(quorum.node[lost_now].tolist())
            yield Finding(
                FindingKind.CONTROLLERS_LOST,
                Severity.WARN,
                controllers=nodes,
                count=int(_voters(quorum).sum()),
            )


def voters_lost(before: frozenset[int] | None, snapshot: Snapshot, term: Term) -> frozenset[int] | None:
    """Return the controllers that do not fetch from the active one, None before the quorum was described.

    `before` are those of the previous snapshot. A controller that was lost stays so until it is seen to
    fetch: right after an election nobody has. While the active controller hears no majority, nobody can tell
    whether the others are lost, or it is.
    """
    quorum = snapshot.quorum
    if snapshot.observation.quorum_received_ms == UNKNOWN or _majority_lost(snapshot) is not None:
        return before
    lost = _lost_now(snapshot, term)
    leads = np.asarray(quorum.role == QuorumRole.LEADER, np.bool_)
    voters = _voters(quorum)
    fetches = leads | (~lost & (quorum.last_fetch_ms != UNKNOWN))
    stay = frozenset(quorum.node[voters & ~fetches].tolist()) & (before or frozenset())
    return frozenset(quorum.node[lost].tolist()) | stay


def _lost_now(snapshot: Snapshot, term: Term) -> Flags:
    """Return which controllers do not fetch. Right after an election, nobody needs to have."""
    quiet = _quiet(snapshot.quorum, VOTER_QUIET_MS)
    if term.is_young(snapshot.observation.quorum_received_ms):
        return quiet
    return quiet | _never_fetched(snapshot.quorum)


def _silent(snapshot: Snapshot, interval_ms: int) -> bool:
    """Return whether brokers answer kview, but no controller answers them."""
    seen = snapshot.observation
    if not (snapshot.brokers.state == BrokerState.UP).any():
        return False
    age_ms = seen.ended_ms - seen.quorum_received_ms
    unknown = seen.quorum_received_ms == UNKNOWN
    least_ms = max(QUORUM_SILENT_MS, QUORUM_SILENT_INTERVALS * interval_ms)
    for failure in seen.failures:
        if failure.part == Part.QUORUM and (unknown or age_ms >= least_ms):
            refused = failure.kind in (FailureKind.KAFKA_ERROR, FailureKind.UNSUPPORTED)
            return not refused or failure.code in NO_CONTROLLER_CODES
    return not unknown and is_old(seen, interval_ms)


def _majority_lost(snapshot: Snapshot) -> Finding | None:
    """Return the finding that too few voters fetch for a majority, or None.

    It names the leader, which hears too few: whether the others are lost, or can elect another leader, is not
    known. The leader goes on answering for a second. Afterwards its last answer still stands.
    """
    quorum = snapshot.quorum
    quiet, voters = _quiet(quorum, MAJORITY_QUIET_MS), int(_voters(quorum).sum())
    if not quiet.any() or 2 * (voters - int(unheard_voters(quorum).sum())) > voters:
        return None
    age_ms = _leader_ms(quorum) - int(quorum.last_fetch_ms[quiet].max())
    return Finding(
        FindingKind.QUORUM_LOST,
        Severity.RISK,
        controllers=tuple(quorum.node[np.asarray(quorum.role == QuorumRole.LEADER, np.bool_)].tolist()),
        count=voters,
        since_ms=snapshot.observation.quorum_received_ms - age_ms,
    )


def unheard_voters(quorum: Quorum) -> Flags:
    """Return the voters that do not fetch from the active controller, as far as a majority is concerned."""
    return _quiet(quorum, MAJORITY_QUIET_MS) | _never_fetched(quorum)


def _voters(quorum: Quorum) -> Flags:
    """Return which nodes are voters, including the leader."""
    return np.asarray((quorum.role == QuorumRole.VOTER) | (quorum.role == QuorumRole.LEADER), np.bool_)


def _leader_ms(quorum: Quorum) -> int:
    """Return the time of the answer by the leader's clock, UNKNOWN before DescribeQuorum v1."""
    return int(quorum.last_fetch_ms.max(initial=UNKNOWN))


def _quiet(quorum: Quorum, quiet_ms: int) -> Flags:
    """Return the voters whose last fetch is more than `quiet_ms` ago by the leader's clock."""
    fetched = quorum.last_fetch_ms
    follows = np.asarray(quorum.role == QuorumRole.VOTER, np.bool_)
    quiet: Flags = follows & (fetched != UNKNOWN) & (fetched < _leader_ms(quorum) - quiet_ms)
    return quiet


def _never_fetched(quorum: Quorum) -> Flags:
    """Return the voters that have not fetched from this leader, although another voter has.

    Right after an election nobody has.
    """
    follows = np.asarray(quorum.role == QuorumRole.VOTER, np.bool_)
    unknown = quorum.last_fetch_ms == UNKNOWN
    never: Flags = follows & unknown & bool((follows & ~unknown).any())
    return never
