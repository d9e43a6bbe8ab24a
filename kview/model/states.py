"""The states of brokers, groups and quorum nodes. Each is a StrEnum, so that tables hold interned strings."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from kview.model.units import UNKNOWN

CUT_OFF_MS = 3_000
"""A broker that answers, but whose last fetch of metadata is this much older than another broker's, is cut
off from the controllers. Brokers fetch at least every 0.5 s, the fetch timeout of controllers is 2 s, and a
long pause of a JVM should not count."""


def not_cut_off(answering: Collection[int], fetched_ms: Mapping[int, int]) -> Collection[int]:
    """Return those of the answering brokers that the controllers hear, or all of them if nothing is known of
    any. `fetched_ms` says when they last fetched metadata, as far as that is known."""
    newest = max(fetched_ms.values(), default=UNKNOWN)
    heard = [b for b in answering if b in fetched_ms and newest - fetched_ms[b] < CUT_OFF_MS]
    return heard or answering


class BrokerState(StrEnum):
    """What is known about a broker from outside.

    `STARTING`: the cluster lists the broker (again), but the broker has not answered yet; after a few seconds
    without an answer it is silent. `SILENT`: the cluster lists the broker, but the broker does not answer us.
    `FENCED`: the controller has taken away the broker's leaderships (column `answers` says whether it still
    answers us). `GONE`: the broker is no longer in the cluster's answers, but keeps its row until the user
    dismisses it.
    """

    UP = "up"
    STARTING = "starting"
    SILENT = "silent"
    FENCED = "fenced"
    GONE = "gone"


class GroupType(StrEnum):
    """The kinds of groups: the types of ListGroups v5, and two that are classic groups to Kafka.

    `CONNECT`: the workers of a Kafka Connect cluster, which have connectors and tasks instead of partitions
    (protocol type `connect`). `SIMPLE`: a name under which something commits that is never a member, as
    Flink and Spark do (no protocol type).
    """

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    CONNECT = "connect"
    SIMPLE = "simple"
    UNKNOWN = "unknown"


def group_type(kafkas: str | None, protocol_type: str) -> str:
    """Return the kind of a group of this type and protocol type in ListGroups.

    Kafka before 3.8 does not tell types: all its groups are classic.
    """
    found = (kafkas or GroupType.CLASSIC).lower()
    if found != GroupType.CLASSIC:
        return next((kind.value for kind in GroupType if kind == found), GroupType.UNKNOWN.value)
    if not protocol_type:
        return GroupType.SIMPLE.value
    return (GroupType.CONNECT if protocol_type == GroupType.CONNECT else GroupType.CLASSIC).value


class TransactionState(StrEnum):
    """Kafka's states of transactions, and what the coordinators say of one that they do not have.

    UNKNOWN if not every coordinator has answered, or might have hidden it.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    HANGING = "hanging"
    UNKNOWN = "unknown"


class ConnectorState(StrEnum):
    """Kafka Connect's states of connectors and of their tasks."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    UNASSIGNED = "UNASSIGNED"
    RESTARTING = "RESTARTING"


class GroupState(StrEnum):
    """Kafka's states of classic groups and of groups of the new protocol. UNKNOWN if nobody has answered."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


REBALANCING = frozenset({
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
})  # fmt: skip
"""The states of a group whose members are being given their partitions."""


class QuorumRole(StrEnum):
    """The role of a node in the KRaft quorum, from DescribeQuorum."""

    LEADER = "leader"
    VOTER = "voter"
    OBSERVER = "observer"
