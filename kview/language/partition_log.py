"""What is said about the drawing of a partition's log."""

from collections.abc import Sequence

from kview.derive.partitions.log import PartitionLog, ReplicaEnd
from kview.derive.view import PartitionStatus
from kview.language import words
from kview.language.nouns import brokers, listed
from kview.model.units import UNKNOWN

NOT_READ = "the partition's offsets are not known yet"


ENDS = ("log start", "high watermark", "log end")
ENDS_SHORT = ("start", "watermark", "end")


def labelled(name: str, offset: int) -> str:
    """Return an offset with its name: `log start 201,004`."""
    return f"{name} {words.count(offset)}"


def zoom(records: int) -> str:
    """Return which part of the log is drawn."""
    return f"the last {words.plural(records, 'record')}"


def more(groups: int) -> str:
    """Return how many groups have no label of their own."""
    return f"+ {words.plural(groups, 'group')} more"


def before(records: int) -> str:
    """Return how far a replica's log ends before the stretch that is drawn."""
    return f"ends {words.plural(records, 'record')} earlier"


PAST_THE_END = "past the log end"


def replica_note(replica: ReplicaEnd, leader: ReplicaEnd | None, old: bool, now_ms: int) -> str:
    """Return how a replica lags, or how old its log end is: `leader`, `≈ 0`, `lag 12`, `4 s ago`.

    A follower's end that was read after that of its `leader` may lie behind it.
    """
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
    if replica.lag:
        return f"lag {words.count(replica.lag)}"
    if leader is not None and UNKNOWN != leader.end < replica.end and leader.end_ms <= replica.end_ms:
        return "read later"
    return "lag ≈ 0"


def meaning(status: PartitionStatus, log: PartitionLog, min_isr: int) -> str:
    """Return what a partition's state means for its clients, and what it waits for; '' if nothing is wrong.

    `min_isr` is min.insync.replicas, used only for the states that depend on it.
    """
    leader = [replica.broker for replica in log.replicas if replica.is_leader]
    in_isr = [replica for replica in log.replicas if replica.in_isr]
    silent = [replica.broker for replica in in_isr if not replica.answers and not replica.is_leader]
    ready = [replica.broker for replica in in_isr if replica.answers and not replica.is_leader]
    outside = [replica.broker for replica in log.replicas if not replica.in_isr]
    failed = [replica.broker for replica in log.replicas if replica.stranded]
    may_lead = [*(replica.broker for replica in in_isr), *(log.eligible or ())]
    match status:
        case PartitionStatus.SILENT_LEADER if leader and ready:
            return (
                f"clients wait until {brokers(leader)} is fenced; in sync and able to lead: {listed(ready)}"
            )
        case PartitionStatus.SILENT_LEADER if leader:
            return f"clients wait for {brokers(leader)}: no other replica that answers is in sync"
        case PartitionStatus.FROZEN if silent:
            verb = (
                "is in the ISR but does not answer"
                if len(silent) == 1
                else "are in the ISR but do not answer"
            )
            return f"acks=all producers wait for {brokers(silent)}, which {verb}"
        case PartitionStatus.NO_LEADER if may_lead:
            they = "it is" if len(may_lead) == 1 else "they are"
            why = "" if in_isr else f" (ELR: no replica is in sync, {they} eligible to lead)"
            return f"offline for all clients until {_back(may_lead, failed)}{why}"
        case PartitionStatus.NO_LEADER if failed and len(failed) == len(log.replicas):
            return f"offline for all clients until {_back(failed, failed)}"
        case PartitionStatus.NO_LEADER if log.eligible is None:
            return "offline for all clients; no replica is in sync, and which are eligible (ELR) is not known"
        case PartitionStatus.NO_LEADER:
            return (
                "offline for all clients: no replica is in sync or eligible (ELR),"
                " so it waits for its last leader or an unclean election"
            )
        case PartitionStatus.UNDER_MIN_ISR:
            number = max(1, min_isr - len(in_isr))
            verb = "is" if number == 1 else "are"
            missing = words.plural(number, "more replica")
            return f"acks=all writes are refused until {missing} {verb} in sync"
        case PartitionStatus.AT_MIN_ISR:
            return "if one more replica leaves the ISR, acks=all writes are refused"
        case PartitionStatus.UNDER_REPLICATED if outside:
            its = "its log directory has" if len(failed) == 1 else "their log directories have"
            return f"not in sync: {brokers(outside)}{f' ({its} failed)' if failed == outside else ''}"
        case _:
            return ""


def _back(may_lead: Sequence[int], failed: Sequence[int]) -> str:
    """Return what a partition waits for: `one of brokers 2 and 4 is back`.

    Of brokers that are up and have `failed` directories, it waits for these.
    """
    away = [broker for broker in may_lead if broker not in failed]
    here = [str(broker) for broker in may_lead if broker in failed]
    parts = [f"the log directory of broker {' or '.join(here)} works again"] if here else []
    parts += [f"{'one of ' if len(away) > 1 else ''}{brokers(away)} is back"] if away else []
    return " or ".join(parts)
