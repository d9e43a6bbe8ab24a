"""Verdicts and statuses as words: what a group or a partition is doing, and the reason for the verdict."""

from collections.abc import Mapping

from kview.derive.groups.alike import Together
from kview.derive.view import GroupFigures, OffsetFigures, PartitionStatus, Reason, Verdict
from kview.language.words import NONE, NOT_YET, count, duration, marked, plural
from kview.model.units import UNKNOWN

STATUSES: Mapping[str, str] = {
    PartitionStatus.NO_LEADER: "no leader",
    PartitionStatus.SILENT_LEADER: "leader silent",
    PartitionStatus.FROZEN: "frozen",
    PartitionStatus.UNDER_MIN_ISR: "under min ISR",
    PartitionStatus.AT_MIN_ISR: "at min ISR",
    PartitionStatus.UNDER_REPLICATED: "under-replicated",
    PartitionStatus.UNREAD: "not read",
    PartitionStatus.REASSIGNING: "reassigning",
    PartitionStatus.NOT_PREFERRED: "not on preferred leader",
    PartitionStatus.OK: "ok",
    PartitionStatus.UNKNOWN: "unknown",
}

VERDICTS: Mapping[str, str] = {
    Verdict.OK: "ok",
    Verdict.FALLING_BEHIND: "falling behind",
    Verdict.STUCK: "stuck",
    Verdict.STOPPED: "stopped",
    Verdict.REWOUND: "rewound",
    Verdict.BLOCKED: "blocked",
    Verdict.HELD: "blocked by a transaction",
    Verdict.AHEAD_OF_LOG: "ahead of the log",
    Verdict.ABANDONED: "abandoned",
    Verdict.NONE: NONE,
    Verdict.UNDECIDED: NOT_YET,
    Verdict.UNKNOWN: "unknown",
}


LOST = "lost records"
"""Takes the place of a verdict that names no problem, while records that a group did not read are gone."""

UNDECIDED = "undecided"
"""What is said of several groups without a verdict."""

_NO_PROBLEM = (Verdict.OK, Verdict.UNDECIDED, Verdict.UNKNOWN)


def name(verdict: Verdict | str, age_ms: int = UNKNOWN, lost: int = 0) -> str:
    """Return a verdict in words: `ok`, `ok 4 s old` if its readings are that old, or `lost records`."""
    if lost > 0 and verdict in _NO_PROBLEM:
        return LOST
    ago = "" if age_ms == UNKNOWN or verdict != Verdict.OK else f" {duration(age_ms, tenths=False)} old"
    return VERDICTS[verdict] + ago


def of_many(verdict: Verdict | str, is_old: bool, lost: bool) -> str:
    """Return what is said of all groups with that verdict together."""
    if lost and verdict in _NO_PROBLEM:
        return LOST
    if verdict == Verdict.UNDECIDED:
        return UNDECIDED
    if verdict == Verdict.NONE:
        return "without a verdict"
    return "last seen ok" if is_old and verdict == Verdict.OK else VERDICTS[verdict]


_STATUS_COUNTS: Mapping[str, tuple[str, str]] = {
    PartitionStatus.UNKNOWN: ("in an unknown state", "in an unknown state"),
    PartitionStatus.SILENT_LEADER: ("leader silent", "leaders silent"),
}


def counted(status: PartitionStatus, number: int) -> str:
    """Return the number of partitions with a status: `2 leaders silent`, `1 under min ISR`."""
    singular, many = _STATUS_COUNTS.get(status, (STATUSES[status],) * 2)
    return f"{number:,} {singular if number == 1 else many}"


def reason(kind: Reason, ms: int = UNKNOWN, number: int = UNKNOWN) -> str:
    """Return the reason for the verdict of a group's partition, or '' if there is nothing to say.

    `ms` and `number` are `reason_ms` and `reason_count` of `OffsetFigures`.
    """
    unmoved = "" if ms == UNKNOWN else f"no progress for ≥ {duration(ms)}"
    match kind:
        case Reason.NO_MEMBERS:
            return ", ".join(filter(None, ("no members", unmoved)))
        case Reason.COMMIT_OVERDUE:
            return "no commit" if ms == UNKNOWN else f"no commit for {duration(ms, tenths=False)}"
        case Reason.TRANSACTION:
            return "waiting" + (f" for {duration(ms, tenths=False)}" if ms != UNKNOWN else "")
        case Reason.NO_OWNER:
            return ", ".join(filter(None, ("not assigned to any member", unmoved)))
        case Reason.STILL:
            return unmoved
        case Reason.FELL_BACK:
            return f"rewound from offset {count(number)}"
        case Reason.BEYOND_END:
            return f"committed offset is {count(number)} past the log end"
        case Reason.PARTITIONS:
            return plural(number, "partition")
        case Reason.NO_COMMIT if number != UNKNOWN:
            return f"{_REASONS[kind]} on {plural(number, 'partition')}"
        case _:
            return _REASONS[kind]


_REASONS: Mapping[Reason, str] = {
    Reason.NONE: "",
    Reason.NO_COMMIT: "nothing committed",
    Reason.CONNECTOR_PAUSED: "its connector is paused or stopped",
    Reason.BACKLOG_GROWS: "its backlog grows",
    Reason.WORKERS: "workers of Kafka Connect",
    Reason.LAG_UNKNOWN: "lag unknown",
    Reason.LEADER_SILENT: "leader silent",
    Reason.NO_LEADER: "no leader",
    Reason.WATERMARK_FROZEN: "watermark frozen",
    Reason.LAG_NOT_FALLING: "lag grew and has not come down since",
    Reason.NOT_GAINING: "over a minute behind and catching up too slowly",
    Reason.BELOW_START: "no members, and everything left to read has been deleted",
}


def lost(records: int, is_bound: bool = True) -> str:
    """Return how many records were deleted before they were read, '' if none were."""
    return (
        f"{'≥ ' if is_bound else ''}{plural(records, 'record')} deleted before being read"
        if records > 0
        else ""
    )


def of_fold(groups: int, like: str) -> str:
    """Return the name of groups that do the same: `194 like audit-export`."""
    return f"{count(groups)} like {like}"


def of_alike(groups: Together) -> str:
    """Return the reason that groups have in common, and the most that one of them has lost, with the worst
    numbers of all."""
    ms, number = groups.reason_ms, groups.reason_count
    if groups.reason is Reason.NO_MEMBERS:
        ms = number = UNKNOWN
    numbered = (ms, number) != (UNKNOWN, UNKNOWN) or groups.lost > 0
    said = (reason(groups.reason, ms, number), lost(groups.lost, groups.lost_is_bound))
    why = ", ".join(filter(None, said))
    return f"{why} at worst" if why and numbered else why


def of_group(figures: GroupFigures, row: int, beside_figures: bool = False) -> str:
    """Return the reason for the verdict of the group in the given row.

    `beside_figures` leaves out the lag in time, which stands in a column of its own there.
    """
    kind, ms, age_ms = (
        Reason(figures.reason[row]),
        int(figures.reason_ms[row]),
        int(figures.verdict_age_ms[row]),
    )
    if kind is Reason.NO_MEMBERS:
        known = ms != UNKNOWN and not beside_figures
        why = f"no members, {behind(figures, row)} behind" if known else "no members"
    else:
        why = reason(kind, ms, int(figures.reason_count[row]))
    as_of = (
        "" if age_ms == UNKNOWN or _dated(figures, row) else f"judged {duration(age_ms, tenths=False)} ago"
    )
    return ", ".join(
        filter(None, (why, lost(int(figures.lost[row]), bool(figures.lost_is_bound[row])), as_of))
    )


def _dated(figures: GroupFigures, row: int) -> bool:
    """Return whether the name of the group's verdict says how old it is."""
    return bool(figures.verdict[row] == Verdict.OK and figures.lost[row] <= 0)


def of_offset(figures: OffsetFigures, row: int) -> str:
    """Return why the group's partition in that row has its verdict."""
    why = reason(Reason(figures.reason[row]), int(figures.reason_ms[row]), int(figures.reason_count[row]))
    return ", ".join(filter(None, (why, lost(int(figures.lost[row]), bool(figures.lost_is_bound[row])))))


def behind(figures: GroupFigures | OffsetFigures, row: int) -> str:
    """Return a lag in time: `2 m 10 s`, `≥2 m 10 s` if it may be longer, `≈2 m 10 s` if it is an estimate."""
    is_bound, is_estimate = bool(figures.behind_is_bound[row]), bool(figures.behind_is_estimate[row])
    return marked(duration(int(figures.behind_ms[row])), is_bound, is_estimate)
