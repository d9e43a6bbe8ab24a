"""What is said about topics: what they keep, and what is worth knowing about healthy ones."""

from collections.abc import Mapping

from kview.derive.partitions.retention import Removal, RemovalKind, Retention
from kview.derive.partitions.topic_health import Trouble
from kview.language import words
from kview.model.units import NEVER, UNKNOWN

COMPACTED, FOREVER = "compacted", "forever"


def none(filter: str, is_bound: bool) -> str:
    """Return why no topic is listed. `is_bound`: there may be some that kview is not authorized to see."""
    if filter:
        return f"no topic matches /{filter}"
    return f"no topics{' that kview is authorized to see' if is_bound else ''}"


def retention(kept: Retention) -> str:
    """Return how long a topic keeps its records, in one or two words: `7 d`, `forever`, `compacted`."""
    if kept.is_compacted and not kept.is_deleted:
        return COMPACTED
    if kept.ms == UNKNOWN:
        return words.NONE
    return FOREVER if kept.ms == NEVER else words.duration(kept.ms, tenths=False)


def removal(next_removal: Removal, now_ms: int) -> str:
    """Return when retention removes a partition's first records."""
    match next_removal.kind:
        case RemovalKind.NOT_KNOWN:
            return f"when retention removes records: {words.NONE}"
        case RemovalKind.NEVER:
            return "retention removes nothing"
        case RemovalKind.OVERDUE:
            return "first records past retention: deleted with their segment"
        case RemovalKind.BY_TIME | RemovalKind.BY_SIZE:
            setting = "retention.ms" if next_removal.kind is RemovalKind.BY_TIME else "retention.bytes"
            left = words.duration(max(0, next_removal.at_ms - now_ms), tenths=False)
            return f"{setting} removes records in ≥ {left}"


def not_rack_safe(number: int) -> str:
    """Return how many partitions would not survive the loss of a rack."""
    return f"{number:,} not rack-safe"


def not_preferred(number: int) -> str:
    """Return how many partitions are not led by their first replica."""
    return f"{number:,} not preferred"


TROUBLES: Mapping[Trouble, str] = {
    Trouble.ALL: "all",
    Trouble.SILENT_LEADER: "silent leader",
    Trouble.FROZEN: "frozen",
    Trouble.NO_LEADER: "no leader",
    Trouble.UNDER_MIN_ISR: "under min ISR",
    Trouble.AT_MIN_ISR: "at min ISR",
    Trouble.UNDER_REPLICATED: "under-replicated",
    Trouble.UNREAD: "not read",
    Trouble.UNKNOWN: "unknown",
    Trouble.REASSIGNING: "reassigning",
    Trouble.NOT_PREFERRED: "not preferred",
}
"""What a list of partitions is narrowed to, in the words of its choices."""

NONE_IN_TROUBLE = "no partition is in this state; {previous-choice} and {next-choice} list others"
