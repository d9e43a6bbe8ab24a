"""Events: what changed between two observations, as facts. `kview.language.events` puts them into words."""

from enum import StrEnum

from msgspec import Struct

from kview.model.failures import FailureKind
from kview.model.units import UNKNOWN, UNKNOWN_ID


class EventKind(StrEnum):
    """What can happen to a cluster, seen from outside.

    JSON documents contain the values, so they must not change.
    """

    BROKER_SILENT = "broker_silent"
    BROKER_FENCED = "broker_fenced"
    BROKER_GONE = "broker_gone"
    BROKER_BACK = "broker_back"
    BROKER_FOUND_DOWN = "broker_found_down"
    """A broker has not answered since kview began to watch, or was fenced or gone already when it began:
    `after` is its state."""
    BROKER_SLOW = "broker_slow"
    """The broker takes much longer to answer than its peers, or than before: `after` ms."""
    BROKER_NOT_SLOW = "broker_not_slow"
    APIS_DIFFER = "apis_differ"
    """Brokers offer other APIs than most, as in a rolling upgrade."""
    APIS_ALIKE = "apis_alike"
    """All brokers offer the same APIs again."""
    LEADER_MOVED = "leader_moved"
    """Partitions moved from one leader to another."""
    LEADER_RETURNED = "leader_returned"
    """Partitions without a leader have one again."""
    LEADER_LOST = "leader_lost"
    LEADERLESS_FOUND = "leaderless_found"
    """Partitions had no leader when kview began to watch."""
    ISR_SHRANK = "isr_shrank"
    ISR_GREW = "isr_grew"
    WATERMARK_FROZEN = "watermark_frozen"
    WATERMARK_MOVES = "watermark_moves"
    UNCLEAN_ELECTION = "unclean_election"
    """Partitions got a leader that was neither in sync nor eligible, so that committed records may be gone.
    `records` is 0 if nothing is known of them."""
    RECORDS_LOST = "records_lost"
    """The newly elected leader's log lacked the last records of the old leader's log."""
    LOG_CUT = "log_cut"
    """A replica truncated its own log."""
    REBALANCE_STARTED = "rebalance_started"
    REBALANCE_ENDED = "rebalance_ended"
    REBALANCED = "rebalanced"
    """Partitions of a group changed owners between two observations."""
    GROUP_STATE = "group_state"
    GROUP_APPEARED = "group_appeared"
    GROUP_DELETED = "group_deleted"
    GROUP_RESET = "group_reset"
    """Committed offsets of a group were set back or forward. `before` and `after` are the offsets if it is
    one partition."""
    GROUP_RECORDS_LOST = "group_records_lost"
    """Records were deleted before a group read them."""
    COORDINATOR_MOVED = "coordinator_moved"
    """Another broker coordinates a group."""
    CONTROLLER_MOVED = "controller_moved"
    CONTROLLER_LOST = "controller_lost"
    """Controllers that are not active stopped fetching the metadata log. The others can act without them."""
    CONTROLLER_FOUND_DOWN = "controller_found_down"
    """Controllers did not fetch the metadata log when kview began to watch."""
    CONTROLLER_BACK = "controller_back"
    """Controllers fetch the metadata log again."""
    QUORUM_LOST = "quorum_lost"
    """No controller can act. `controllers` has the active one that hears no majority, if there is one."""
    QUORUM_BACK = "quorum_back"
    TOPIC_CREATED = "topic_created"
    TOPIC_DELETED = "topic_deleted"
    TOPIC_SEEN = "topic_seen"
    """A topic is listed that kview may not have been authorized to see before."""
    TOPIC_UNSEEN = "topic_unseen"
    """A topic is no longer listed, and kview is not authorized to see all topics."""
    PARTITIONS_ADDED = "partitions_added"
    INPUT_FELL = "input_fell"
    """The input of `topics` topics fell far below its level of the last minutes: that of `topic`, the largest
    fall, from `before` to `after` records per second."""
    INPUT_ROSE = "input_rose"
    """The same input is no longer far below its level before the fall, `before`: it is `after`."""
    CONNECT_TASK_FAILED = "connect_task_failed"
    """`tasks` connectors and tasks of Kafka Connect failed. `connector` and `task` are the first of them."""
    CONNECT_TASK_RUNS = "connect_task_runs"
    """The same of those that had failed and run again."""
    TRANSACTION_HOLDS = "transaction_holds"
    """A transaction was found that holds back `partitions`: it is old, or groups wait for it."""
    TRANSACTION_HANGS = "transaction_hangs"
    """The same of a transaction that no coordinator has: only an abort ends it."""
    TRANSACTION_ENDED = "transaction_ended"
    """Such a transaction no longer holds back `partitions`. Whether it was committed is not known."""


class Severity(StrEnum):
    """How urgent an event, a finding or a verdict is for the person on call.

    RISK: data or availability is at risk now. WARN: one step away from that. GOOD: something recovered. CALM:
    no concern.
    """

    RISK = "risk"
    WARN = "warn"
    GOOD = "good"
    CALM = "calm"


SEVERITY_ORDER = (Severity.RISK, Severity.WARN, Severity.GOOD, Severity.CALM)
"""The severities, the worst first."""
_RANKS: dict[str, int] = {severity: rank for rank, severity in enumerate(SEVERITY_ORDER)}


def severity_rank(severity: object) -> int:
    """Return the place of a severity in SEVERITY_ORDER: 0 is the worst."""
    return _RANKS[str(severity)]


class Event(Struct, frozen=True):
    """Something that changed, seen at `at_ms` (epoch ms of the observation, or of the first sign of it).

    Counts that do not belong to the kind are 0, or UNKNOWN if 0 would be a possible value.
    """

    at_ms: int
    kind: EventKind
    severity: Severity
    brokers: tuple[int, ...] = ()
    """The brokers that the event is about: for LEADER_* the new leaders, for ISR_* those that left or
    joined."""
    controllers: tuple[int, ...] = ()
    group: str = ""
    topic: str = ""
    topics: int = 0
    """The number of topics that are concerned, `topic` included, for INPUT_*."""
    connector: str = ""
    task: int = UNKNOWN_ID
    """The task of `connector`, CONNECTOR_TASK for the connector itself."""
    tasks: int = 0
    """The number of connectors and tasks that are concerned, `task` included, for CONNECT_TASK_*."""
    partitions: tuple[tuple[str, int], ...] = ()
    """The (topic, partition) pairs concerned, the user's topics first; not all pairs if there are many."""
    partition_count: int = 0
    """The number of partitions of the user's topics that are concerned."""
    internal_count: int = 0
    """The number of partitions of internal topics that are concerned."""
    records: int = 0
    """A lower bound of the number of records that were lost or cut off; for GROUP_RESET how far the offsets
    moved in sum, negative if they moved back."""
    members: int = UNKNOWN
    """The number of members that the group has now."""
    cause: FailureKind = FailureKind.NONE
    """Why a broker does not answer."""
    before: str | int | None = None
    """The previous state, controller, coordinator, offset, rate or number of partitions, if it is known and
    the kind has such a value. `after` is the same value now, for BROKER_SLOW and BROKER_NOT_SLOW a
    latency in ms, and for BROKER_FOUND_DOWN the broker's state."""
    after: str | int | None = None
    producer_id: int = UNKNOWN
    """The producer of the transaction, for TRANSACTION_*."""
    transactional_id: str = ""
    """Its transactional id, '' if it is not known."""
    since_ms: int = UNKNOWN
    """When the transaction began, for TRANSACTION_*; if `since_is_bound`, it began at this time or before."""
    since_is_bound: bool = False
    epoch: int | None = None
    """The new controller's epoch, if it is known."""
    seen_ms: int = UNKNOWN
    """When the observation ended that shows it first, if that is not `at_ms`: a broker is called silent some
    time after the first request that it did not answer."""

    @property
    def shown_ms(self) -> int:
        """The moment of the first observation that shows the event, epoch ms."""
        return self.at_ms if self.seen_ms == UNKNOWN else self.seen_ms
