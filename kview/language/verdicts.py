"""Verdicts and statuses as words: what a group or a partition is doing, and the reason for the verdict."""

from collections.abc import Mapping

from kview.derive.view import GroupFigures, OffsetFigures, PartitionStatus, Reason, Verdict
from kview.language.words import NOT_YET, count, duration, plural
from kview.model.units import UNKNOWN

STATUSES: Mapping[str, str] = {
    PartitionStatus.NO_LEADER: "no leader",
    PartitionStatus.SILENT_LEADER: "leader silent",
    PartitionStatus.FROZEN: "frozen",
    PartitionStatus.UNDER_MIN_ISR: "under min ISR",
    PartitionStatus.AT_MIN_ISR: "at min ISR",
    PartitionStatus.UNDER_REPLICATED: "under-replicated",
    PartitionStatus.REASSIGNING: "reassigning",
    PartitionStatus.NOT_PREFERRED: "not preferred",
    PartitionStatus.OK: "ok",
    PartitionStatus.UNKNOWN: "unknown",
    PartitionStatus.PENDING: NOT_YET,
}

VERDICTS: Mapping[str, str] = {
    Verdict.OK: "ok",
    Verdict.FALLING_BEHIND: "falling behind",
    Verdict.STUCK: "stuck",
    Verdict.STOPPED: "stopped",
    Verdict.REWOUND: "rewound",
    Verdict.BLOCKED: "blocked",
    Verdict.UNKNOWN: "unknown",
    Verdict.PENDING: NOT_YET,
}

_STATUS_COUNTS: Mapping[str, tuple[str, str]] = {
    PartitionStatus.NO_LEADER: ("without a leader", "without a leader"),
    PartitionStatus.SILENT_LEADER: ("leader silent", "leaders silent"),
    PartitionStatus.NOT_PREFERRED: ("not led by its preferred leader", "not led by their preferred leaders"),
}


def counted(status: PartitionStatus, number: int) -> str:
    """Return the number of partitions with a status: `2 leaders silent`, `1 under min ISR`."""
    one, many = _STATUS_COUNTS.get(status, (STATUSES[status],) * 2)
    return f"{number:,} {one if number == 1 else many}"


def reason(kind: Reason, ms: int = UNKNOWN, number: int = UNKNOWN) -> str:
    """Return the reason for the verdict of a group's partition, or '' if there is nothing to say.

    `ms` and `number` are `reason_ms` and `reason_count` of `OffsetFigures`.
    """
    unmoved = "" if ms == UNKNOWN else f"no progress for ≥ {duration(ms)}"
    match kind:
        case Reason.NO_MEMBERS:
            return ", ".join(filter(None, ("no members", unmoved)))
        case Reason.NO_OWNER:
            return ", ".join(filter(None, ("not assigned to any member", unmoved)))
        case Reason.STILL:
            return unmoved
        case Reason.FELL_BACK:
            return f"rewound from offset {count(number)}"
        case Reason.PARTITIONS:
            return plural(number, "partition")
        case _:
            return _REASONS[kind]


_REASONS: Mapping[Reason, str] = {
    Reason.NONE: "",
    Reason.NO_COMMIT: "nothing committed",
    Reason.LAG_UNKNOWN: "no lag figure",
    Reason.LEADER_SILENT: "leader silent",
    Reason.NO_LEADER: "no leader",
    Reason.WATERMARK_FROZEN: "watermark frozen",
    Reason.LAG_NOT_FALLING: "lag has not decreased for a minute",
}


def lost(records: int) -> str:
    """Return how many records were deleted before they were read, '' if none were."""
    return f"{plural(records, 'record')} deleted before being read" if records > 0 else ""


def of_group(figures: GroupFigures, row: int) -> str:
    """Return the reason for the verdict of the group in the given row."""
    kind, ms = Reason(figures.reason[row]), int(figures.reason_ms[row])
    if kind is Reason.NO_MEMBERS:
        why = "no members" if ms == UNKNOWN else f"no members, {duration(ms)} behind"
    else:
        why = reason(kind, ms, int(figures.reason_count[row]))
    return ", ".join(filter(None, (why, lost(int(figures.lost[row])))))


def of_offset(figures: OffsetFigures, row: int) -> str:
    """Return why the group's partition in that row has its verdict."""
    why = reason(Reason(figures.reason[row]), int(figures.reason_ms[row]), int(figures.reason_count[row]))
    return ", ".join(filter(None, (why, lost(int(figures.lost[row])))))
