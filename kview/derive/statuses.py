"""What a view says of partitions, racks and groups in one word each."""

from enum import StrEnum

from kview.model.events import Severity


class PartitionStatus(StrEnum):
    """What is worst about a partition, in the order of how much it matters.

    The values appear in JSON documents, so they never change.
    """

    NO_LEADER = "no_leader"
    """Leader -1: no eligible replica is left."""
    SILENT_LEADER = "silent_leader"
    """The leader named in the metadata does not answer, and nobody has proved that it lives."""
    FROZEN = "frozen"
    """The watermark stands still while the leader's log grows, or a silent replica is still in the ISR."""
    UNDER_MIN_ISR = "under_min_isr"
    AT_MIN_ISR = "at_min_isr"
    """|ISR| = min.insync.replicas < the replication factor: the next loss stops acks=all."""
    UNDER_REPLICATED = "under_replicated"
    UNREAD = "unread"
    """Its leader answers kview, but has refused for a while, or always, to say where the partition ends."""
    REASSIGNING = "reassigning"
    NOT_PREFERRED = "not_preferred"
    """The partition is healthy, but its leader is not the first replica of the list."""
    OK = "ok"
    UNKNOWN = "unknown"
    """Its leader is not known, or only kview cannot reach its leader, and nothing else is wrong with it."""


STATUSES = tuple(PartitionStatus)
"""The statuses, ordered by how much they matter. A status's rank is its index in this tuple."""
RANK = {status: rank for rank, status in enumerate(STATUSES)}
SEVERITIES = {
    PartitionStatus.NO_LEADER: Severity.RISK,
    PartitionStatus.SILENT_LEADER: Severity.RISK,
    PartitionStatus.FROZEN: Severity.RISK,
    PartitionStatus.UNDER_MIN_ISR: Severity.RISK,
    PartitionStatus.AT_MIN_ISR: Severity.WARN,
    PartitionStatus.UNDER_REPLICATED: Severity.WARN,
    PartitionStatus.UNREAD: Severity.WARN,
}
"""The severities of the statuses that are alarms. The others are calm."""


class RackSafety(StrEnum):
    """Whether partitions survive the loss of any one rack."""

    YES = "yes"
    NO = "no"
    """All replicas are in one rack, although there are several."""
    CANNOT_BE = "cannot_be"
    """There is only one replica or one rack, or a replica's rack is not known."""


class Verdict(StrEnum):
    """What a group, or a group's partition, is doing, judged from offsets, members and the partition's state.

    The values appear in JSON documents, so they never change.
    """

    OK = "ok"
    FALLING_BEHIND = "falling_behind"
    STUCK = "stuck"
    STOPPED = "stopped"
    REWOUND = "rewound"
    BLOCKED = "blocked"
    """The cluster is the cause: the group is at a frozen watermark, or the partition's leader is silent or
    missing."""
    HELD = "blocked_by_transaction"
    """The group has read what a client with read_committed can read: an open transaction holds back the
    rest."""
    AHEAD_OF_LOG = "ahead_of_log"
    """The committed offset lies beyond the leader's log end: the topic was created again or truncated, or old
    offsets were restored."""
    ABANDONED = "abandoned"
    """Nobody reads: the group is empty, its offsets were not seen to move, and all of them lie below the log
    start."""
    NONE = "none"
    """There is none: the group is one of Kafka Connect's workers, which read nothing under its name."""
    UNDECIDED = "undecided"
    """What was seen so far does not tell whether the group keeps up."""
    UNKNOWN = "unknown"


class Reason(StrEnum):
    """Why a verdict is what it is; `reason_ms` and `reason_count` are its numbers.

    The values appear in JSON documents, so they never change.
    """

    NONE = ""
    PARTITIONS = "partitions"
    """For a group: `reason_count` of its partitions have this verdict."""
    NO_COMMIT = "no_commit"
    LAG_UNKNOWN = "lag_unknown"
    LEADER_SILENT = "leader_silent"
    NO_LEADER = "no_leader"
    WATERMARK_FROZEN = "watermark_frozen"
    NO_MEMBERS = "no_members"
    """A partition's offset has not moved for at least `reason_ms`, or a group is `reason_ms` behind."""
    COMMIT_OVERDUE = "commit_overdue"
    """Of a group that never has members: records have waited for `reason_ms` for its next commit."""
    CONNECTOR_PAUSED = "connector_paused"
    """The group is that of a sink of Kafka Connect that somebody has paused or stopped."""
    BACKLOG_GROWS = "backlog_grows"
    """What waits for the share group has grown over the last minute."""
    WORKERS = "workers"
    """The group is one of Kafka Connect's workers, which read nothing under its name."""
    TRANSACTION = "transaction"
    """The group has waited at the partition's last stable offset for `reason_ms`."""
    NO_OWNER = "no_owner"
    """No member owns the partition, and its offset has not moved for at least `reason_ms`."""
    STILL = "still"
    """The offset has not moved for at least `reason_ms`."""
    FELL_BACK = "fell_back"
    """The group fell back from offset `reason_count`, which it has not reached again."""
    LAG_NOT_FALLING = "lag_not_falling"
    """The lag grew within the last minutes, and was not seen to shrink since."""
    NOT_GAINING = "not_gaining"
    """The group is a minute or more behind and does not catch up."""
    BEYOND_END = "beyond_end"
    """The committed offset lies `reason_count` records beyond the leader's log end."""
    BELOW_START = "below_start"
    """The group is empty, and all its offsets lie below the log start."""
