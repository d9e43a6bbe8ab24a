"""Verdicts: what a group's partition is doing, judged by offsets, members and the partition's state.

A group has the worst verdict of its partitions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kview.derive.commits import Commits
from kview.derive.view import Floats, Reason, Verdict
from kview.model.events import Severity
from kview.model.snapshot import Longs, Strings
from kview.model.units import NO_OFFSET, UNKNOWN

STUCK_AFTER_MS = 30_000
"""If records are waiting, six default commit intervals without a move are not a coincidence."""

STOPPED_AFTER_MS = 10_000
"""If a group without members has offsets that moved this recently, something outside any group commits
them."""

MIN_GROWTH_S = 1.0
"""Lag growth is noise if it is less than what is written in this time plus twice the time between readings,
because each commit is read at a random moment after it was made."""

ORDER = (
    Verdict.OK,
    Verdict.PENDING,
    Verdict.UNKNOWN,
    Verdict.FALLING_BEHIND,
    Verdict.REWOUND,
    Verdict.STUCK,
    Verdict.STOPPED,
    Verdict.BLOCKED,
)
"""From best to worst. Blocked comes last, because there the cluster is the cause, whatever the group does."""
RANK = {verdict: rank for rank, verdict in enumerate(ORDER)}
VERDICTS = np.array([*ORDER, None], object)[:-1]
"""The verdicts by rank."""

SEVERITIES = {
    Verdict.OK: Severity.CALM,
    Verdict.PENDING: Severity.CALM,
    Verdict.UNKNOWN: Severity.CALM,
    Verdict.FALLING_BEHIND: Severity.WARN,
    Verdict.REWOUND: Severity.WARN,
    Verdict.STUCK: Severity.WARN,
    Verdict.STOPPED: Severity.WARN,
    Verdict.BLOCKED: Severity.RISK,
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the verdicts need in addition to the commits. The arrays have the rows of `Offsets`."""

    lag: Longs
    high_watermark: Longs
    leader_known: NDArray[np.bool_]
    leader_silent: NDArray[np.bool_]
    no_leader: NDArray[np.bool_]
    frozen: NDArray[np.bool_]
    has_members: NDArray[np.bool_]
    write_rate: Floats

    @property
    def leader_lost(self) -> NDArray[np.bool_]:
        """Whether the partition's leader is silent, or the partition has no leader."""
        return self.leader_silent | self.no_leader


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why each verdict is what it is. The arrays have the rows of `Offsets`."""

    kind: NDArray[np.object_]
    ms: Longs
    count: Longs


def verdict_ranks(commits: Commits, growth: Longs, at: Circumstances) -> Longs:
    """Return each row's verdict as its rank in ORDER.

    blocked: the group has members, and the partition's leader is lost, or the commit is at a frozen
    watermark. stopped: no members, records are waiting, and the offset was not seen to move in the last
    STOPPED_AFTER_MS. rewound: the offset fell back and has not yet reached its old value again. stuck:
    members, records are waiting, and the offset has not moved for STUCK_AFTER_MS. falling behind: lag never
    fell over the last minute (Burrow's WARN).
    """
    has = commits.committed > NO_OFFSET
    waiting = has & (at.lag != UNKNOWN) & (at.lag > 0)
    still_ms = np.where(commits.still_since_ms == UNKNOWN, 0, commits.received_ms - commits.still_since_ms)
    at_end = has & (commits.committed >= at.high_watermark) & (at.high_watermark != UNKNOWN)
    moved_lately = (commits.moved_ms != UNKNOWN) & (still_ms < STOPPED_AFTER_MS)
    chance_s = MIN_GROWTH_S + 2 * np.where(commits.gap_ms == UNKNOWN, 0, commits.gap_ms) / 1000
    noise = np.maximum(np.nan_to_num(at.write_rate) * chance_s, 1.0)
    found = (
        (Verdict.BLOCKED, at.has_members & (at.leader_lost | (at.frozen & at_end))),
        (Verdict.STOPPED, ~at.has_members & waiting & ~moved_lately),
        (Verdict.UNKNOWN, ~has | ~at.leader_known),
        (Verdict.REWOUND, commits.rewound_from != UNKNOWN),
        (Verdict.STUCK, at.has_members & waiting & (still_ms >= STUCK_AFTER_MS)),
        (Verdict.UNKNOWN, at.lag == UNKNOWN),
        (Verdict.FALLING_BEHIND, waiting & (growth != UNKNOWN) & (growth > noise)),
    )
    return np.select([mask for _, mask in found], [RANK[verdict] for verdict, _ in found], RANK[Verdict.OK])


_REASONS = np.array([*Reason, None], object)[:-1]
_REASON_NUMBERS = {reason: number for number, reason in enumerate(Reason)}
_TIMED = (Reason.NO_MEMBERS, Reason.NO_OWNER, Reason.STILL)


def reasons(ranks: Longs, commits: Commits, at: Circumstances, owner: Strings) -> Reasons:
    """Return the reason of each row that is not ok. `ranks` is the result of `verdict_ranks`."""

    def having(verdict: Verdict) -> NDArray[np.bool_]:
        return np.equal(ranks, RANK[verdict])

    blocked, stuck, unknown = having(Verdict.BLOCKED), having(Verdict.STUCK), having(Verdict.UNKNOWN)
    found = (
        (Reason.LEADER_SILENT, blocked & at.leader_silent),
        (Reason.NO_LEADER, blocked & at.no_leader),
        (Reason.WATERMARK_FROZEN, blocked),
        (Reason.NO_MEMBERS, having(Verdict.STOPPED)),
        (Reason.FELL_BACK, having(Verdict.REWOUND)),
        (Reason.NO_OWNER, stuck & np.asarray(owner == "", np.bool_)),
        (Reason.STILL, stuck),
        (Reason.LAG_NOT_FALLING, having(Verdict.FALLING_BEHIND)),
        (Reason.NO_COMMIT, unknown & (commits.committed <= NO_OFFSET)),
        (Reason.LAG_UNKNOWN, unknown),
    )
    numbers = np.select([mask for _, mask in found], [_REASON_NUMBERS[reason] for reason, _ in found], 0)
    timed = np.isin(numbers, [_REASON_NUMBERS[reason] for reason in _TIMED])
    timed &= commits.still_since_ms != UNKNOWN
    fell = np.equal(numbers, _REASON_NUMBERS[Reason.FELL_BACK])
    return Reasons(
        _REASONS[numbers],
        np.where(timed, commits.received_ms - np.where(timed, commits.still_since_ms, 0), UNKNOWN),
        np.where(fell, commits.rewound_from, UNKNOWN),
    )
