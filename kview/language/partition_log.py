"""What is said about the drawing of a partition's log."""

from kview.derive.partition_log import ReplicaEnd
from kview.language import words
from kview.model.units import UNKNOWN

NOT_READ = "the partition's offsets are not known yet"


def labelled(name: str, offset: int) -> str:
    """Return an offset with its name: `log start 201,004`."""
    return f"{name} {words.count(offset)}"


def zoom(records: int) -> str:
    """Return which part of the log is drawn."""
    return f"last {words.plural(records, 'record')}"


def more(groups: int) -> str:
    """Return how many groups have no label of their own."""
    return f"+ {words.plural(groups, 'group')} more"


def before(records: int) -> str:
    """Return how far a replica's log ends before the stretch that is drawn."""
    return f"{words.plural(records, 'record')} before this stretch"


def replica_note(replica: ReplicaEnd, old: bool, now_ms: int) -> str:
    """Return how a replica lags, or how old its log end is: `leader`, `≈ 0`, `lag 12`, `4 s ago`."""
    if replica.end == UNKNOWN:
        return "silent" if not replica.answers else ""
    if old or not replica.answers:
        return f"{words.age(replica.end_ms, now_ms)} ago"
    if replica.is_leader:
        return "leader"
    if replica.lag == UNKNOWN:
        return ""
    if replica.lag < 0:
        return f"ahead by {words.count(-replica.lag)}"
    return f"lag {words.count(replica.lag)}" if replica.lag else "lag ≈ 0"
