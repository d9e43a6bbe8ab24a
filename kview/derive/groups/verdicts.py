"""Verdicts: what a group's partition is doing, judged by offsets, members and the partition's state.

A group has the worst verdict of its partitions.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import first_that_holds
from kview.derive.groups import simple
from kview.derive.groups.commits import LATE_FACTOR, STOPPED_AFTER_MS, Commits
from kview.derive.groups.trends import FALLS_BEHIND, FAR_MS, KEEPS_UP, NEAR_MS
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.view import Floats, Reason, Verdict
from kview.model.events import Severity
from kview.model.snapshot import Longs, Strings
from kview.model.units import NO_OFFSET, UNKNOWN

HELD_MS = 60_000
"""A group that waits at a last stable offset for this long is blocked. Most transactions are shorter."""

RARELY_MS = 600_000
"""Readers that commit less often than this are taken for stuck ones, unless two of their moves were seen."""

ORDER = (
    Verdict.NONE,
    Verdict.ABANDONED,
    Verdict.OK,
    Verdict.UNDECIDED,
    Verdict.UNKNOWN,
    Verdict.FALLING_BEHIND,
    Verdict.REWOUND,
    Verdict.AHEAD_OF_LOG,
    Verdict.HELD,
    Verdict.STUCK,
    Verdict.STOPPED,
    Verdict.BLOCKED,
)
"""From best to worst. Blocked comes last, because there the cluster is the cause, whatever the group does."""
RANK = {verdict: rank for rank, verdict in enumerate(ORDER)}
VERDICTS = np.array([*ORDER, None], object)[:-1]
"""The verdicts by rank."""

SEVERITIES = {
    Verdict.NONE: Severity.CALM,
    Verdict.ABANDONED: Severity.CALM,
    Verdict.OK: Severity.CALM,
    Verdict.UNDECIDED: Severity.CALM,
    Verdict.UNKNOWN: Severity.CALM,
    Verdict.FALLING_BEHIND: Severity.WARN,
    Verdict.REWOUND: Severity.WARN,
    Verdict.AHEAD_OF_LOG: Severity.WARN,
    Verdict.HELD: Severity.WARN,
    Verdict.STUCK: Severity.WARN,
    Verdict.STOPPED: Severity.WARN,
    Verdict.BLOCKED: Severity.RISK,
}


def severity(verdict: Verdict, lost: int, is_old: bool) -> Severity:
    """Return how bad a verdict is for a reader that lost so many records.

    `is_old` says whether it follows from old readings: then it is never calm.
    """
    if verdict is Verdict.ABANDONED:
        return Severity.CALM
    if lost > 0:
        return Severity.RISK
    return Severity.WARN if is_old and SEVERITIES[verdict] is Severity.CALM else SEVERITIES[verdict]


class Circumstances(Struct, frozen=True):
    """The lag, the leader, the members and the trend of each partition that a group has committed to or owns.

    A verdict follows from these and from the commits. The arrays have the rows of `Offsets`.
    """

    lag: Longs
    beyond: Longs
    """How many records the commit lies beyond the leader's log end."""
    behind_ms: Longs
    behind_is_bound: NDArray[np.bool_]
    high_watermark: Longs
    leader_known: NDArray[np.bool_]
    leader_silent: NDArray[np.bool_]
    no_leader: NDArray[np.bool_]
    frozen: NDArray[np.bool_]
    has_members: NDArray[np.bool_]
    nobody: NDArray[np.bool_]
    """Whether the group is known to have no members, although it is of a kind that has."""
    simple: NDArray[np.bool_]
    """Whether the group never has members: something commits under its name."""
    paused: NDArray[np.bool_]
    """Whether the group is that of a sink that somebody has paused."""
    stable_since_ms: Longs
    """As in `Reading`."""
    cadence_ms: Longs
    """The longest time between two moves that is normal for the group, UNKNOWN before it is known."""
    write_rate: Floats
    stuck: NDArray[np.bool_]
    resting: NDArray[np.bool_]
    """Whether the row's reader has rested for longer than it usually does."""
    abandoned: NDArray[np.bool_]
    trend: Longs
    """What the evidence showed last: see `kview.derive.groups.trends`."""
    level: NDArray[np.bool_]
    """Whether the row is a minute or more behind and does not gain."""

    @property
    def leader_lost(self) -> NDArray[np.bool_]:
        """Whether the partition's leader is silent, or the partition has no leader."""
        return self.leader_silent | self.no_leader


class Reasons(Struct, frozen=True):
    """Why each verdict is what it is. The arrays have the rows of `Offsets`."""

    kind: NDArray[np.object_]
    ms: Longs
    count: Longs


def verdict_ranks(commits: Commits, at: Circumstances) -> Longs:
    """Return each row's verdict as its rank in ORDER.

    blocked: the group has members or commits regularly, and the partition's leader is lost, or the commit is
    at a frozen watermark. held: the group has members, or never has any, and has waited at the last stable
    offset for HELD_MS; until then it is ok. stopped: no members, records are waiting, and the offset was not
    seen to move in the last STOPPED_AFTER_MS; of a group that never has members: records have waited for
    LATE_FACTOR × its cadence. rewound: the offset fell back and has not yet reached its old value again.
    stuck: members, records are waiting, and the offset has not moved for longer than its reader's cycle, nor
    for LATE_FACTOR × the group's cadence.
    falling behind: lag grew and was not seen to shrink since, or is a minute or more and does not shrink.
    ok needs evidence too: no records wait, the group is near the end, or its lag does not grow and it still
    reads.
    """
    has = commits.committed > NO_OFFSET
    unread = np.asarray(at.lag == UNKNOWN, np.bool_)
    waiting = has & (at.lag != UNKNOWN) & (at.lag > 0)
    near = (at.behind_ms != UNKNOWN) & ~at.behind_is_bound & (at.behind_ms < NEAR_MS)
    near |= ~waiting
    # A rate of a few seconds can make a short lag look long. The age of the oldest unread record cannot.
    far = (at.behind_ms == UNKNOWN) | at.behind_is_bound | (at.behind_ms >= FAR_MS)
    still_ms = np.where(commits.still_since_ms == UNKNOWN, 0, commits.received_ms - commits.still_since_ms)
    at_end = has & (commits.committed >= at.high_watermark) & (at.high_watermark != UNKNOWN)
    moved_lately = (commits.moved_ms != UNKNOWN) & (still_ms < STOPPED_AFTER_MS)
    known, late_ms = at.cadence_ms != UNKNOWN, LATE_FACTOR * at.cadence_ms
    waited = np.where(commits.waits_ms == UNKNOWN, 0, commits.received_ms - commits.waits_ms)
    # Before its cadence is known, a reader may be one that commits every few minutes.
    overdue = np.where(known, waited >= late_ms, np.maximum(waited, at.behind_ms) >= RARELY_MS)
    reads = at.has_members | (at.simple & known)
    at_stable = (at.has_members | at.simple) & (at.stable_since_ms != UNKNOWN) & at.leader_known
    held_ms = commits.received_ms - np.maximum(at.stable_since_ms, commits.still_since_ms)
    candidates = (
        (Verdict.ABANDONED, at.abandoned),
        (Verdict.BLOCKED, reads & (at.leader_lost | (at.frozen & at_end))),
        (Verdict.AHEAD_OF_LOG, at.beyond > 0),
        (Verdict.HELD, at_stable & (held_ms >= HELD_MS)),
        (Verdict.OK, at_stable),
        (Verdict.STOPPED, (at.nobody | at.paused) & waiting & ~moved_lately),
        (Verdict.STOPPED, at.simple & waiting & simple.overdue(waited, at.cadence_ms)),
        (Verdict.UNKNOWN, ~has | ~at.leader_known),
        (Verdict.REWOUND, commits.rewound_from != UNKNOWN),
        (Verdict.STUCK, at.stuck & overdue),
        (Verdict.UNDECIDED, waiting & at.simple & ~known),
        (Verdict.FALLING_BEHIND, (waiting | unread) & (at.trend == FALLS_BEHIND)),
        (Verdict.UNDECIDED, waiting & at.stuck),
        (Verdict.OK, (at.trend == KEEPS_UP) & (near | ~at.resting)),
        (Verdict.UNKNOWN, unread),
        (Verdict.OK, near),
        (Verdict.FALLING_BEHIND, at.level & far),
    )
    masks, ranks = [mask for _, mask in candidates], [RANK[verdict] for verdict, _ in candidates]
    return first_that_holds(masks, ranks, RANK[Verdict.UNDECIDED])


_REASONS = np.array([*Reason, None], object)[:-1]
_REASON_NUMBERS = {reason: number for number, reason in enumerate(Reason)}
_TIMED = np.array(
    [
        reason
        in (Reason.NO_MEMBERS, Reason.COMMIT_OVERDUE, Reason.NO_OWNER, Reason.STILL, Reason.TRANSACTION)
        for reason in Reason
    ]
)


def reasons(ranks: Longs, commits: Commits, at: Circumstances, owner: Strings) -> Reasons:
    """Return the reason of each row that is not ok. `ranks` is the result of `verdict_ranks`."""

    def having(verdict: Verdict) -> NDArray[np.bool_]:
        return np.equal(ranks, RANK[verdict])

    blocked, stuck, unknown = having(Verdict.BLOCKED), having(Verdict.STUCK), having(Verdict.UNKNOWN)
    candidates = (
        (Reason.LEADER_SILENT, blocked & at.leader_silent),
        (Reason.NO_LEADER, blocked & at.no_leader),
        (Reason.WATERMARK_FROZEN, blocked),
        (Reason.TRANSACTION, having(Verdict.HELD)),
        (Reason.CONNECTOR_PAUSED, having(Verdict.STOPPED) & at.paused),
        (Reason.COMMIT_OVERDUE, having(Verdict.STOPPED) & at.simple),
        (Reason.NO_MEMBERS, having(Verdict.STOPPED)),
        (Reason.FELL_BACK, having(Verdict.REWOUND)),
        (Reason.NO_OWNER, stuck & np.asarray(owner == "", np.bool_)),
        (Reason.STILL, stuck),
        (Reason.BEYOND_END, having(Verdict.AHEAD_OF_LOG)),
        (Reason.BELOW_START, having(Verdict.ABANDONED)),
        (Reason.LAG_NOT_FALLING, having(Verdict.FALLING_BEHIND) & (at.trend == FALLS_BEHIND)),
        (Reason.NOT_GAINING, having(Verdict.FALLING_BEHIND)),
        (
            Reason.NO_COMMIT,
            unknown & (commits.committed <= NO_OFFSET) & (commits.received_ms != UNKNOWN),
        ),
        (Reason.LAG_UNKNOWN, unknown),
    )
    values = [_REASON_NUMBERS[reason] for reason, _ in candidates]
    numbers = first_that_holds([mask for _, mask in candidates], values, 0)
    timed = _TIMED[numbers]
    waits_ms = np.maximum(commits.waits_ms, commits.received_ms - LOOK_BACK_MS)
    since_ms = np.where(stuck, waits_ms, commits.still_since_ms)
    since_ms = np.where(at.simple, commits.waits_ms, since_ms)
    since_ms = np.where(
        having(Verdict.HELD), np.maximum(at.stable_since_ms, commits.still_since_ms), since_ms
    )
    timed &= since_ms != UNKNOWN
    fell = np.equal(numbers, _REASON_NUMBERS[Reason.FELL_BACK])
    ahead = np.equal(numbers, _REASON_NUMBERS[Reason.BEYOND_END])
    return Reasons(
        _REASONS[numbers],
        np.where(timed, commits.received_ms - np.where(timed, since_ms, 0), UNKNOWN),
        np.where(fell, commits.rewound_from, np.where(ahead, at.beyond, UNKNOWN)),
    )
