"""The view: a snapshot and everything calculated from it and its predecessors. Panels draw only a `View`.

Every table of figures has the rows of the snapshot's table of the same name, in the same order. Rates are
float64 per second with NaN for "not known". Offsets and counts are int64 with UNKNOWN. Times are epoch
milliseconds UTC.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.statuses import (
    RANK,
    SEVERITIES,
    STATUSES,
    PartitionStatus,
    RackSafety,
    Reason,
    Verdict,
)
from kview.model.aggregates import Aggregates
from kview.model.events import Event, Severity
from kview.model.findings import Finding
from kview.model.incidents import Incident
from kview.model.ports import Moment
from kview.model.snapshot import Flags, Longs, OldestUnread, Snapshot, Strings, UncleanElections

__all__ = [
    "LIVE",
    "NO_AGGREGATES",
    "SERIES_POINTS",
    "BrokerFigures",
    "Floats",
    "GroupFigures",
    "Headline",
    "LongMatrix",
    "OffsetFigures",
    "PartitionFigures",
    "PartitionStatus",
    "RackSafety",
    "Reason",
    "Throughput",
    "TopicFigures",
    "Verdict",
    "View",
]

Floats = NDArray[np.float64]
LongMatrix = NDArray[np.int64]

LIVE = Moment()
NO_AGGREGATES = Aggregates()


class Headline(Struct, frozen=True):
    """Whether anything is wrong: one severity and the findings, the worst first.

    If nothing is wrong, there is a calm finding. Severity and findings include internal topics.
    """

    severity: Severity
    findings: tuple[Finding, ...]
    well: tuple[Finding, ...]
    """The calm finding, also while it is left out next to an unclean election."""
    topics: int
    partitions: int
    """The user's topics and partitions, without internal ones."""
    topics_are_bound: bool
    """Whether there may be more topics and partitions, which kview is not authorized to see."""
    under_replicated: int
    offline: int
    under_min_isr: int
    at_min_isr: int
    requests_per_second: float
    """What kview itself costs the cluster."""


class BrokerFigures(Struct, frozen=True):
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
    in_is_bound: Flags
    out_is_bound: Flags
    """Whether these sums are lower bounds, because some partition's rate is not known."""
    in_series: tuple[tuple[float, ...], ...]
    """The `in_rate` of the last observations by broker, oldest first, at most SERIES_POINTS."""
    silent_since_ms: Longs
    """UNKNOWN unless the broker is silent, or fenced or gone after a silence."""
    fencing_due_ms: Longs
    """≈ when the broker's session ends, from the first silence (or the quorum's last fetch) and the session
    timeout; UNKNOWN unless the broker is silent and listed, and a controller is known to be active."""
    cannot_be_fenced: Flags
    """Whether the broker is silent and listed, and no controller could fence it: none is active, or the
    active one has lost its majority."""
    since_is_bound: Flags
    """Whether the broker's state may have begun before `since_ms`, because kview has never seen it answer."""
    is_controller: Flags
    unreached: Flags
    """Whether the broker lives, as others prove, but does not answer us."""
    late: Flags
    """Whether the broker counts as up but owes us an answer: it may be silent, or only slow."""
    slow_since_ms: Longs
    """Since when the broker has taken much longer to answer than usual; UNKNOWN if it is not slow."""
    cut_off_since_ms: Longs
    """≈ since when the broker has not fetched metadata from the quorum although it answers us, so that it is
    cut off from the active controller; UNKNOWN if it is not."""
    dirs: Longs
    """The number of the broker's log directories, UNKNOWN before it has told them."""
    failed_dirs: Longs
    """How many of them have failed although the broker is up."""
    full_ms: Longs
    """≈ when the first of them is full, UNKNOWN if nobody can tell."""
    leads_nothing: Flags
    """Whether the broker is up and leads nothing, although it is the preferred leader of some partition."""


class PartitionFigures(Struct, frozen=True):
    """The figures of partitions. The arrays have the rows of `snapshot.partitions`.

    Matrices have the shape of `replicas` in that table.
    """

    rank: NDArray[np.int8]
    """The status as its index in STATUSES. Comparing words takes fifty times as long."""
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
    rack_safe: Strings
    """A RackSafety for each partition."""
    replica_end: LongMatrix
    replica_end_ms: LongMatrix
    replica_lag: LongMatrix
    """The number of records behind the leader's end at the time of the follower's reading; 0 below rate ×
    skew; UNKNOWN if not known."""
    in_isr: NDArray[np.bool_]
    replica_silent: NDArray[np.bool_]
    being_added: NDArray[np.bool_]
    """The replicas that a reassignment adds."""
    being_removed: NDArray[np.bool_]
    """The replicas that a reassignment removes."""
    leader_unreached: Flags
    """Whether the leader lives, but does not answer us."""
    replica_unreached: NDArray[np.bool_]
    changed_ms: Longs
    """When leader, epoch or ISR was last seen to change; UNKNOWN if not within the look-back."""

    def having(self, status: PartitionStatus) -> Flags:
        """Return which partitions have this status."""
        return np.equal(self.rank, RANK[status])

    @property
    def alarming(self) -> Flags:
        """Which partitions have a status that needs attention."""
        found: Flags = _IS_ALARM[self.rank]
        return found


_IS_ALARM = np.array([status in SEVERITIES for status in STATUSES])


class MoveFigures(Struct, frozen=True):
    """What is left of reassignments. The arrays have the rows of `snapshot.partitions`, and UNKNOWN for those
    that are not moved."""

    moving: Flags
    records_left: Longs
    """The sum of the lags of the replicas that are added and not in sync yet."""
    records_left_is_bound: Flags
    """Whether there may be more records, because the lag of some replica is not known."""
    bytes_left: Longs
    """The same in bytes, an estimate: by the sizes on disk, which are read now and then."""
    time_left_ms: Longs
    """An estimate: at the speed of the last minute. UNKNOWN if the rest does not shrink."""


class TopicFigures(Struct, frozen=True):
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
    unknown: Longs
    """The number of partitions whose state is not known."""
    rack_safe: Strings
    """A RackSafety for each topic: NO if any partition's is, else CANNOT_BE if any partition's is."""
    not_rack_safe: Longs
    """The number of partitions that would not survive the loss of some rack."""
    in_rate: Floats
    in_is_bound: Flags
    """Whether this sum is a lower bound, because some partition's rate is not known."""
    size_bytes: Longs
    in_series: tuple[tuple[float, ...], ...]


class GroupFigures(Struct, frozen=True):
    """The figures of groups. The arrays have the rows of `snapshot.groups`."""

    severity: Strings
    verdict: Strings
    reason: Strings
    """A `Reason` for each group. Its two numbers follow; they are UNKNOWN if the reason has no such
    number."""
    reason_ms: Longs
    reason_count: Longs
    lost: Longs
    """The number of records deleted before the group read them, usually 0. UNKNOWN of a group that commits no
    offsets by nature, or whose commits were never read."""
    lost_is_bound: Flags
    """Whether `lost` is a lower bound."""
    place: Longs
    """The group's place among all groups, the worst first: 0 is the worst. Among groups that are equally bad,
    the ones that are furthest behind come first. Small differences do not count, and an order holds for some
    seconds."""
    lag: Longs
    """The sum over the group's partitions with a commit, UNKNOWN if none is known."""
    lag_is_bound: Flags
    """Whether the sum is a lower bound, because the lag of some partition is not known."""
    behind_ms: Longs
    """The worst partition's lag in time, UNKNOWN if it is not known."""
    behind_is_bound: Flags
    """Whether `behind_ms` is a lower bound ("≥"): some partition may be further behind."""
    behind_is_estimate: Flags
    """Whether `behind_ms` is an estimate ("≈"): nobody looked for a while about when the record was
    written."""
    behind_trend: Longs
    """+1 if lag in time is growing, −1 if it is shrinking, 0 otherwise."""
    members_active: Longs
    """The number of members that own at least one partition."""
    read_rate: Floats
    write_rate: Floats
    read_is_bound: Flags
    write_is_bound: Flags
    """Whether these sums are lower bounds, because some partition's rate is not known."""
    lag_series: tuple[tuple[float, ...], ...]
    age_ms: Longs
    """The age of the group's commits, or if it has none, of what was last heard of it."""
    ignored: Flags
    """Whether the user wants to hear nothing of the group: it counts nowhere, and is never urgent."""
    verdict_age_ms: Longs
    """The age of the readings that the verdict is based on if they are old, because the coordinator does not
    answer; UNKNOWN if they are of this observation."""


class OffsetFigures(Struct, frozen=True):
    """The figures of groups' partitions. The arrays have the rows of `snapshot.offsets`."""

    partition_row: Longs
    """The row in `snapshot.partitions`, −1 if the partition is not, or no longer, known."""
    log_end_offset: Longs
    """Kafka's column of that name: the high watermark. The last one known if the leader does not answer."""
    log_end_ms: Longs
    """When `log_end_offset` was received."""
    lag: Longs
    lag_is_bound: Flags
    """Whether `lag` is a lower bound, because the partition's leader does not answer."""
    behind_ms: Longs
    behind_is_bound: Flags
    behind_is_estimate: Flags
    read_rate: Floats
    write_rate: Floats
    catch_up_ms: Longs
    """The time to catch up at these rates. UNKNOWN if there is nothing to catch up with or the time is not
    known; NEVER if the lag does not shrink."""
    rank: Longs
    """The place of the verdict from best to worst, see `groups.verdicts.ORDER`."""
    verdict: Strings
    reason: Strings
    """A `Reason` for each row. Its two numbers follow; they are UNKNOWN if the reason has no such number."""
    reason_ms: Longs
    reason_count: Longs
    lost: Longs
    """The number of records deleted before the group read them, usually 0. A loss is forgotten when the
    offset has been past it for a while."""
    lost_is_bound: Flags
    """Whether `lost` is a lower bound."""


SERIES_POINTS = 60
"""The number of points in a sparkline's series: the last minute at the default interval."""


class Throughput(Struct, frozen=True):
    """Direct rates of the user's topics. NaN if a rate is not known."""

    at_ms: tuple[int, ...]
    """The moments of the last minute."""
    in_series: tuple[float, ...]
    """The records in per second of all topics at these moments. The last values belong together."""
    topics: tuple[str, ...]
    in_rates: tuple[float, ...]
    """The latest rate of each topic."""
    total_in: float
    in_is_bound: bool
    """Whether `total_in` leaves out partitions whose rate is not known."""
    total_out: float
    out_is_bound: bool
    """Whether `total_out` leaves out groups or partitions whose rate is not known."""


class View(Struct, frozen=True):
    """One moment, shared by every panel. `events` has the latest events of the look-back, oldest first."""

    snapshot: Snapshot
    headline: Headline
    brokers: BrokerFigures
    partitions: PartitionFigures
    moves: MoveFigures
    topics: TopicFigures
    groups: GroupFigures
    offsets: OffsetFigures
    throughput: Throughput
    events: tuple[Event, ...]
    new_events: tuple[Event, ...]
    worst_partitions: NDArray[np.int64]
    """Rows of `snapshot.partitions` of the user's topics, those that need attention first, then busy ones."""
    dirs_full_ms: Longs
    """≈ when each directory of `snapshot.log_dirs` is full, UNKNOWN if nobody can tell."""
    unclean: UncleanElections
    """The unclean elections that are remembered."""
    oldest_unread: OldestUnread
    """When the records were written that groups have not read for a while."""
    incidents: tuple[Incident, ...] = ()
    """The latest incidents in the order in which they began. Those that go on have no end."""
    moment: Moment = LIVE
    """The moment that the view shows. Like `aggregates`, it comes from the run, not from the fold."""
    aggregates: Aggregates = NO_AGGREGATES
