"""The snapshot: what one observation of a cluster saw, as columns.

Every table is a frozen struct of numpy arrays of equal length, with one row per key, sorted by key.
Strings are object arrays of interned `str`. Replica lists are int32 matrices, padded on the right with
NO_BROKER. Offsets and sizes are int64, times are epoch milliseconds UTC as int64. Unknown values are
`UNKNOWN` (`UNKNOWN_ID` in int32 columns), never 0.

Consecutive snapshots share the arrays that did not change, so `a.topic is b.topic` is a cheap test for "same
rows". Do not write to the arrays.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Self, TypeVar, get_args

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.model.failures import FailureKind, Part
from kview.model.units import UNKNOWN, UNKNOWN_ID


class Column(Struct, frozen=True):
    """The type of a column: its numpy dtype, and whether a row is a single value (1) or a padded list (2)."""

    dtype: Any
    dimensions: int = 1


Strings = Annotated[NDArray[np.object_], Column(np.object_)]
Ids = Annotated[NDArray[np.int32], Column(np.int32)]
Longs = Annotated[NDArray[np.int64], Column(np.int64)]
Flags = Annotated[NDArray[np.bool_], Column(np.bool_)]
IdMatrix = Annotated[NDArray[np.int32], Column(np.int32, 2)]


class Table(Struct, frozen=True):
    """Base class of the tables, which have columns of equal length. `len` is the number of rows."""

    def __len__(self) -> int:
        return len(getattr(self, self.__struct_fields__[0]))

    def take(self, rows: NDArray[Any]) -> Self:
        """Return a table of the same type with only `rows` (indices or a mask), in that order."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.__struct_fields__})


class Failure(Struct, frozen=True):
    """A part of an observation that failed, with the broker that was asked and the reason.

    `code` is Kafka's error number, UNKNOWN_ID if the broker did not answer with one. `shown_since_ms` is when
    the value shown instead was received, UNKNOWN if there is no earlier value.
    """

    part: Part
    broker: int
    kind: FailureKind
    code: int = UNKNOWN_ID
    shown_since_ms: int = UNKNOWN


class Observation(Struct, frozen=True):
    """When, how and at what cost a snapshot was taken.

    `controller_id` is the active controller: the quorum's leader, or with ZooKeeper the one in Metadata.
    UNKNOWN_ID if nobody has told, NO_BROKER if there is none.
    `capabilities` names what this cluster can answer (`quorum`, `metadata_controller`, `debugging_replica`,
    `topic_ids`, `elr`, `fenced_brokers`). The description of a column says which capability the column needs.
    """

    sequence: int
    """The observation's number, counted upwards by each observer."""
    began_ms: int
    ended_ms: int
    cluster_id: str = ""
    controller_id: int = UNKNOWN_ID
    controller_epoch: int = UNKNOWN_ID
    quorum_received_ms: int = UNKNOWN
    apis_differ_since_ms: int = UNKNOWN
    """Since when brokers have offered different APIs, UNKNOWN if they do not."""
    connectors_received_ms: int = UNKNOWN
    """When the table of connectors was received, UNKNOWN if nobody has told yet which there are."""
    asked: tuple[Part, ...] = ()
    requests: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    failures: tuple[Failure, ...] = ()
    capabilities: frozenset[str] = frozenset()

    def follows(self, before: "Observation") -> bool:
        """Return whether the same observer made both observations, and this one is not the earlier one.

        A new observer starts counting again. A simulated cluster that was restarted looks like the previous
        one, but is a different cluster.
        """
        return self.sequence >= before.sequence


class Brokers(Table, frozen=True):
    """The brokers, one per row. Key: id.

    `since_ms` is when the broker's state began (for SILENT: the first request that it failed to answer).
    `answered_ms` is its last answer to us, and `last_fetch_ms` its last fetch of metadata as the quorum saw
    it (UNKNOWN without DescribeQuorum v1). `latency_us` is how long the broker takes to answer a small
    request: the slowest of up to three such requests between two observations, as a median over the last five
    observations, in microseconds; a request that is still waiting counts with its wait so far, if that is
    longer. UNKNOWN before the first answer, and while the broker's port refuses connections. `error` is a
    FailureKind's value that says why the broker does not answer, or '' if it does. `apis` are the APIs that
    the broker offers, as `API:lowest-highest` versions; '' if it has not told.
    """

    id: Ids
    host: Strings
    port: Ids
    rack: Strings
    state: Strings
    since_ms: Longs
    answers: Flags
    answered_ms: Longs
    last_fetch_ms: Longs
    latency_us: Longs
    error: Strings
    disk_bytes: Longs
    session_timeout_ms: Longs
    apis: Strings


class Partitions(Table, frozen=True):
    """The partitions, one per row. Key: topic, partition.

    Each `*_ms` is when the offset in the column before it was received. `error_code` is Kafka's error number
    for the leader or the offsets, 0 if there is none. `high_watermark` is the leader's (a client's "latest"),
    and `log_end` is the leader's own log end (from a request with the debugging replica id). `last_stable` is
    how far a client with read_committed can read. It equals `high_watermark` unless an open transaction held
    it back when it was last read; then `last_stable_since_ms` is when it was first read with this value.
    `elr` is empty unless the ISR is smaller than min.insync.replicas; then it is UNKNOWN_ID alone until the
    cluster has told it for this ISR. Needs the capability `elr`; older clusters have no such replicas.
    """

    topic: Strings
    partition: Ids
    topic_id: Strings
    internal: Flags
    leader: Ids
    leader_epoch: Ids
    replicas: IdMatrix
    isr: IdMatrix
    offline: IdMatrix
    elr: IdMatrix
    log_start: Longs
    log_start_ms: Longs
    high_watermark: Longs
    high_watermark_ms: Longs
    last_stable: Longs
    last_stable_ms: Longs
    last_stable_since_ms: Longs
    log_end: Longs
    log_end_ms: Longs
    min_isr: Ids
    error_code: Ids


class Replicas(Table, frozen=True):
    """The replicas, one per row, in the order of the partitions' rows and then of the replica list.

    `row` is the partition's row in `Partitions`. `log_end` is what the replica's broker itself answered, at
    `log_end_ms`.
    """

    row: Ids
    topic: Strings
    partition: Ids
    broker: Ids
    log_end: Longs
    log_end_ms: Longs
    size_bytes: Longs


class TimePoints(Table, frozen=True):
    """The answers of ListOffsets by timestamp.

    `offset` is the first record at or after `timestamp_ms`, the log end if every record is older, or UNKNOWN.
    """

    topic: Strings
    partition: Ids
    timestamp_ms: Longs
    offset: Longs
    received_ms: Longs


class Groups(Table, frozen=True):
    """The groups, one per row. Key: group.

    `type` is a GroupType's value. `epoch` and `assignment_epoch` are those of the new protocols: a change of
    members or subscriptions raises the first, and the second follows when a target assignment has been made.
    UNKNOWN_ID for other groups, and `members` is UNKNOWN_ID until the group has been described. A streams
    group has a `topology_epoch`, which a new version of the application raises, and `subtopologies` with what
    each of them reads; UNKNOWN_ID and '' for other groups. `error` is a FailureKind's value that says why the
    figures are old, or '' if they are not. `error_code` is Kafka's error number if that kind is KAFKA_ERROR,
    else 0. A group is `unread` until its committed offsets have been read; a share group has none to read.
    """

    group: Strings
    type: Strings
    state: Strings
    coordinator: Ids
    assignment_strategy: Strings
    epoch: Ids
    assignment_epoch: Ids
    topology_epoch: Ids
    subtopologies: Strings
    members: Ids
    received_ms: Longs
    error: Strings
    error_code: Ids
    unread: Flags


class Members(Table, frozen=True):
    """The members, one per row. Key: group, member_id (Kafka's CONSUMER-ID).

    `assigned` is the number of the member's partitions (a streams group's: of its active tasks; a Connect
    worker's: of its connectors and tasks), UNKNOWN_ID if its assignment cannot be read, as of a client of
    another kind. `target` is the number of those that it is to have. It is still `to_get` and `to_give_back`
    so many partitions (in a streams group tasks, standby and warm-up ones too): it may own as many as it is
    to have, but others. All three are UNKNOWN_ID if the coordinator does not tell. `epoch` is the member's,
    UNKNOWN_ID without one. `rack` is '' if it names none. `runs` says what a member runs
    that is not a partition: tasks and connectors.
    """

    group: Strings
    member_id: Strings
    client_id: Strings
    host: Strings
    rack: Strings
    epoch: Ids
    assigned: Ids
    target: Ids
    to_get: Ids
    to_give_back: Ids
    runs: Strings


class Offsets(Table, frozen=True):
    """The offsets, one per row, of each group's committed or owned partitions. Key: group, topic, partition.

    `committed` is NO_OFFSET if the group has committed nothing. `owner` is a member id, '' if no member owns
    the partition.
    """

    group: Strings
    topic: Strings
    partition: Ids
    committed: Longs
    owner: Strings
    received_ms: Longs


class ShareOffsets(Table, frozen=True):
    """Where share groups start, one partition per row. Key: group, topic, partition.

    `start_offset` is the first offset that is not settled: acknowledged records may follow it. `lag` counts
    the records from there on that are not settled, UNKNOWN before Kafka 4.2 told it. Both are UNKNOWN before
    the group has read anything of the partition.
    """

    group: Strings
    topic: Strings
    partition: Ids
    start_offset: Longs
    lag: Longs
    received_ms: Longs


class Connectors(Table, frozen=True):
    """Kafka Connect's connectors and their tasks, one per row. Key: connector, task.

    `task` is CONNECTOR_TASK for the connector itself. `group` is the group of the workers that run them, ''
    if that is not known. `kind` is `source`, `sink` or '' if it is not told. `state` is a ConnectorState's
    value, or another word of Connect's. `trace` is the first line of the error that it failed with, and
    `root_cause` the last cause that the error names; '' if there is none.
    """

    group: Strings
    connector: Strings
    task: Ids
    kind: Strings
    state: Strings
    worker: Strings
    trace: Strings
    root_cause: Strings


class Quorum(Table, frozen=True):
    """The nodes of the KRaft quorum, one per row. Key: node."""

    node: Ids
    role: Strings
    log_end: Longs
    last_fetch_ms: Longs
    last_caught_up_ms: Longs


class Features(Table, frozen=True):
    """The finalized features of the cluster, such as metadata.version, one per row. Key: name.

    `level` is the finalized level. Empty without features, and before Kafka 2.7 told them.
    """

    name: Strings
    level: Ids


class Reassignments(Table, frozen=True):
    """The partitions under reassignment, one per row. Key: topic, partition."""

    topic: Strings
    partition: Ids
    adding: IdMatrix
    removing: IdMatrix


class Transactions(Table, frozen=True):
    """The open transactions of partitions whose last stable offset stands still, one row per partition and
    producer.

    What the partition's leader says: `producer_id` and `producer_epoch`, `start_offset`, where the
    transaction begins in this partition, and `written_ms`, the timestamp of the producer's last record. What
    the coordinator says: `transactional_id`, `coordinator`, `state` (a TransactionState's value), `began_ms`
    and `timeout_ms`. `error_code` is Kafka's error number if the leader or the coordinator refuses to tell, 0
    if neither does; if the leader refuses, `producer_id` is UNKNOWN.
    """

    topic: Strings
    partition: Ids
    producer_id: Longs
    producer_epoch: Ids
    start_offset: Longs
    written_ms: Longs
    transactional_id: Strings
    coordinator: Ids
    state: Strings
    began_ms: Longs
    timeout_ms: Longs
    error_code: Ids
    received_ms: Longs


class LogDirs(Table, frozen=True):
    """The log directories of the brokers that have told them since they last came back, one per row. Key:
    broker, path.

    `error_code` is Kafka's error number: 56 if the directory has failed, 0 if it works. `total_bytes` and
    `usable_bytes` are of its volume, UNKNOWN if it has failed and before Kafka 3.3.
    """

    broker: Ids
    path: Strings
    error_code: Ids
    total_bytes: Longs
    usable_bytes: Longs
    received_ms: Longs


class UncleanElections(Table, frozen=True):
    """The unclean elections that are still remembered, one row per observation that showed any. Key: at_ms.

    They are not observed but concluded: an observer leaves the table empty, and what is recorded has it
    filled in, so that a replay knows of those that are older than its look-back. `topic` and `partition` are
    of the first partition; `partitions` (the user's) and `internal_partitions` count all. `records` is a
    lower bound of the records lost, UNKNOWN while nothing is known of them.
    """

    at_ms: Longs
    topic: Strings
    partition: Ids
    partitions: Longs
    internal_partitions: Longs
    records: Longs


class OldestUnread(Table, frozen=True):
    """Between which two moments groups' oldest unread records were written, if that was a while ago, one
    partition per row. Key: group, topic, partition.

    They are not observed but concluded, as the unclean elections are. `committed` is the record's offset. The
    log ended at `after_end` at `after_ms`, before the record was written, and at `by_end` at `by_ms`, when it
    had been; UNKNOWN if there is no such moment. `may_guess` says whether the time in between is worth an
    estimate.
    """

    group: Strings
    topic: Strings
    partition: Ids
    committed: Longs
    after_ms: Longs
    after_end: Longs
    by_ms: Longs
    by_end: Longs
    may_guess: Flags


class TopicConfigs(Table, frozen=True):
    """The settings of topics, one per row. Key: topic, name.

    `source` is Kafka's name for the origin of the value.
    """

    topic: Strings
    name: Strings
    value: Strings
    source: Strings


class BrokerConfigs(Table, frozen=True):
    """The settings of brokers that limit the copying of replicas, one per row. Key: broker, name.

    `value` is '' if the setting is not set. A broker that has not told has no rows. `source` is Kafka's name
    for the origin of the value, '' if it is not set.
    """

    broker: Ids
    name: Strings
    value: Strings
    source: Strings


AnyTable = TypeVar("AnyTable", bound=Table)


@cache
def columns(table: type[Table]) -> Mapping[str, Column]:
    """Return the types of a table's columns by name, in order."""
    return {
        name: next(a for a in get_args(kind) if isinstance(a, Column))
        for name, kind in table.__annotations__.items()
    }


def empty(table: type[AnyTable]) -> AnyTable:
    """Return a table of that type without rows."""
    return table(
        **{name: np.empty((0,) * kind.dimensions, kind.dtype) for name, kind in columns(table).items()}
    )


class Snapshot(Struct, frozen=True):
    """What one observation saw: how the observation was made, and one table per subject."""

    observation: Observation
    brokers: Brokers = field(default_factory=lambda: empty(Brokers))
    partitions: Partitions = field(default_factory=lambda: empty(Partitions))
    replicas: Replicas = field(default_factory=lambda: empty(Replicas))
    time_points: TimePoints = field(default_factory=lambda: empty(TimePoints))
    groups: Groups = field(default_factory=lambda: empty(Groups))
    members: Members = field(default_factory=lambda: empty(Members))
    offsets: Offsets = field(default_factory=lambda: empty(Offsets))
    share_offsets: ShareOffsets = field(default_factory=lambda: empty(ShareOffsets))
    transactions: Transactions = field(default_factory=lambda: empty(Transactions))
    connectors: Connectors = field(default_factory=lambda: empty(Connectors))
    quorum: Quorum = field(default_factory=lambda: empty(Quorum))
    features: Features = field(default_factory=lambda: empty(Features))
    reassignments: Reassignments = field(default_factory=lambda: empty(Reassignments))
    log_dirs: LogDirs = field(default_factory=lambda: empty(LogDirs))
    topic_configs: TopicConfigs = field(default_factory=lambda: empty(TopicConfigs))
    broker_configs: BrokerConfigs = field(default_factory=lambda: empty(BrokerConfigs))
    unclean: UncleanElections = field(default_factory=lambda: empty(UncleanElections))
    oldest_unread: OldestUnread = field(default_factory=lambda: empty(OldestUnread))
