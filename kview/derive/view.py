"""The view: a snapshot and everything calculated from it and its predecessors. Panels draw only a `View`.

Every table of figures has the rows of the snapshot's table of the same name, in the same order. Rates are
float64 per second with NaN for "not known". Offsets and counts are int64 with UNKNOWN. Times are epoch
milliseconds UTC.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kview.model.aggregates import Aggregates
from kview.model.events import Event, Severity
from kview.model.findings import Finding
from kview.model.ports import Moment
from kview.model.snapshot import Flags, Longs, Snapshot, Strings

Floats = NDArray[np.float64]
LongMatrix = NDArray[np.int64]

LIVE = Moment()
NO_AGGREGATES = Aggregates()


class PartitionStatus(StrEnum):
    """What is worst about a partition, in the order of how much it matters.

    The values appear in JSON documents, so they never change.
    """

    NO_LEADER = "no_leader"
    """Leader -1: no eligible replica is left."""
    SILENT_LEADER = "silent_leader"
    """The leader named in the metadata does not answer."""
    FROZEN = "frozen"
    """The watermark stands still while the leader's log grows, or a silent replica is still in the ISR."""
    UNDER_MIN_ISR = "under_min_isr"
    AT_MIN_ISR = "at_min_isr"
    """|ISR| = min.insync.replicas < the replication factor: the next loss stops acks=all."""
    UNDER_REPLICATED = "under_replicated"
    REASSIGNING = "reassigning"
    NOT_PREFERRED = "not_preferred"
    """The partition is healthy, but its leader is not the first replica of the list."""
    OK = "ok"
    UNKNOWN = "unknown"
    PENDING = "pending"
    """Nothing is wrong according to the moment's own snapshot, while its past is still being read."""


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
    UNKNOWN = "unknown"
    PENDING = "pending"
    """The past on which the verdict depends is still being read."""


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
    NO_OWNER = "no_owner"
    """No member owns the partition, and its offset has not moved for at least `reason_ms`."""
    STILL = "still"
    """The offset has not moved for at least `reason_ms`."""
    FELL_BACK = "fell_back"
    """The group fell back from offset `reason_count`, which it has not reached again."""
    LAG_NOT_FALLING = "lag_not_falling"
    """The lag has not fallen for the last minute."""


@dataclass(frozen=True, slots=True)
class Headline:
    """Whether anything is wrong: one severity and the findings, the worst first.

    If nothing is wrong, there is a calm finding. Severity and findings include internal topics.
    """

    severity: Severity
    findings: tuple[Finding, ...]
    topics: int
    partitions: int
    """The user's topics and partitions, without internal ones."""
    under_replicated: int
    offline: int
    under_min_isr: int
    at_min_isr: int
    requests_per_second: float
    """What kview itself costs the cluster."""


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """The figures of brokers. The arrays have the rows of `snapshot.brokers`."""

    severity: Strings
    leads: Longs
    """The number of partitions of the user's topics that the broker leads according to metadata."""
    leads_internal: Longs
    replicas: Longs
    replicas_internal: Longs
    in_rate: Floats
    """Records per second appended to the partitions of the user's topics that the broker leads (log end
    deltas)."""
    out_rate: Floats
    """Records per second that groups committed on the partitions of the user's topics that the broker
    leads."""
    in_series: tuple[tuple[float, ...], ...]
    """The `in_rate` of the last observations by broker, oldest first, at most SERIES_POINTS."""
    silent_since_ms: Longs
    """UNKNOWN unless the broker is silent, or fenced or gone after a silence."""
    fencing_due_ms: Longs
    """≈ when the broker's session ends, from the first silence (or the quorum's last fetch) and the session
    timeout; UNKNOWN unless the broker is silent and listed."""
    is_controller: Flags


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """The figures of partitions. The arrays have the rows of `snapshot.partitions`.

    Matrices have the shape of `replicas` in that table.
    """

    status: Strings
    severity: Strings
    in_rate: Floats
    uncommitted: Longs
    """The leader's log end − high watermark; UNKNOWN if log ends are not known or the leader is silent."""
    frozen_since_ms: Longs
    """Since when the watermark has stood still although it should move, or since when the leader has been
    silent; UNKNOWN otherwise."""
    leader_silent_since_ms: Longs
    isr_count: Longs
    preferred: Flags
    """Whether the leader is the first replica of the list."""
    rack_safe: Flags
    """Whether the replicas are on more than one rack. Also True if there is only one rack or one replica."""
    replica_end: LongMatrix
    replica_end_ms: LongMatrix
    replica_lag: LongMatrix
    """The number of records behind the leader's end at the time of the follower's reading; 0 below rate ×
    skew; UNKNOWN if not known."""
    in_isr: NDArray[np.bool_]
    replica_silent: NDArray[np.bool_]
    changed_ms: Longs
    """When leader, epoch or ISR was last seen to change; UNKNOWN if not within the look-back."""


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """The figures of topics: one row per topic, sorted by name."""

    topic: Strings
    internal: Flags
    first_row: Longs
    """The topic's first row in `snapshot.partitions`, where its rows are consecutive."""
    partitions: Longs
    replication: Longs
    min_isr: Longs
    severity: Strings
    no_leader: Longs
    silent_leader: Longs
    frozen: Longs
    under_min_isr: Longs
    under_replicated: Longs
    not_preferred: Longs
    rack_safe: Flags
    in_rate: Floats
    size_bytes: Longs
    in_series: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The figures of groups. The arrays have the rows of `snapshot.groups`."""

    severity: Strings
    verdict: Strings
    reason: Strings
    """A `Reason` for each group. Its two numbers follow; they are UNKNOWN if the reason has no such
    number."""
    reason_ms: Longs
    reason_count: Longs
    lost: Longs
    """The number of records deleted before the group read them, usually 0."""
    lag: Longs
    """The sum over the group's partitions with a commit, UNKNOWN if none is known."""
    lag_is_bound: Flags
    """Whether the sum is a lower bound, because the lag of some partition is not known."""
    behind_ms: Longs
    """The worst partition's lag in time, UNKNOWN if it is not known."""
    behind_is_bound: Flags
    """Whether `behind_ms` is a lower bound ("≥"), because the time lies before the known points."""
    behind_trend: Longs
    """+1 if lag in time is growing, −1 if it is shrinking, 0 otherwise."""
    members_active: Longs
    """The number of members that own at least one partition."""
    read_rate: Floats
    write_rate: Floats
    lag_series: tuple[tuple[float, ...], ...]
    age_ms: Longs
    """The age of the group's figures."""


@dataclass(frozen=True, slots=True)
class OffsetFigures:
    """The figures of groups' partitions. The arrays have the rows of `snapshot.offsets`."""

    partition_row: Longs
    """The row in `snapshot.partitions`, −1 if the partition is not, or no longer, known."""
    log_end_offset: Longs
    """Kafka's column of that name: the high watermark."""
    lag: Longs
    behind_ms: Longs
    behind_is_bound: Flags
    read_rate: Floats
    write_rate: Floats
    catch_up_ms: Longs
    """The time to catch up at these rates. UNKNOWN if there is nothing to catch up with or the time is not
    known; NEVER if the lag does not shrink."""
    verdict: Strings
    reason: Strings
    """A `Reason` for each row. Its two numbers follow; they are UNKNOWN if the reason has no such number."""
    reason_ms: Longs
    reason_count: Longs
    lost: Longs
    """The number of records between the committed offset and the log start, lost to that group; usually 0."""


SERIES_POINTS = 60
"""The number of points in a sparkline's series: the last minute at the default interval."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Direct rates of the last minute, for plots.

    `at_ms` has n moments, and `in_rates` has n rates per topic, NaN if a rate is not known.
    """

    at_ms: tuple[int, ...]
    topics: tuple[str, ...]
    in_rates: tuple[tuple[float, ...], ...]
    total_in: float
    total_out: float


@dataclass(frozen=True, slots=True)
class View:
    """One moment, shared by every panel. `events` has the latest events of the look-back, oldest first."""

    snapshot: Snapshot
    headline: Headline
    brokers: BrokerFigures
    partitions: PartitionFigures
    topics: TopicFigures
    groups: GroupFigures
    offsets: OffsetFigures
    throughput: Throughput
    events: tuple[Event, ...]
    new_events: tuple[Event, ...]
    worst_partitions: NDArray[np.int64]
    """Rows of `snapshot.partitions` of the user's topics, those that need attention first."""
    moment: Moment = LIVE
    """The moment that the view shows. Like `aggregates`, it comes from the run, not from the fold."""
    aggregates: Aggregates = NO_AGGREGATES
