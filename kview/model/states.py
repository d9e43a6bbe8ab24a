"""The words kview uses for states; each is a StrEnum so that tables hold interned strings."""

from enum import StrEnum


class BrokerState(StrEnum):
    """What is known of a broker from outside.

    `SILENT` is listed by the cluster but does not answer us; `FENCED` is known to the controller, which has
    taken its leaderships away (whether it answers is the column `answers`); `GONE` has left the answers and
    stays as a row until the user dismisses it.
    """

    UP = "up"
    SILENT = "silent"
    FENCED = "fenced"
    GONE = "gone"


class GroupType(StrEnum):
    """ListGroups v5's types."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


class GroupState(StrEnum):
    """Kafka's states of a classic group, and of the new protocol's; UNKNOWN where nobody has answered."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


class QuorumRole(StrEnum):
    """A node's part in the KRaft quorum, as DescribeQuorum shows it."""

    LEADER = "leader"
    VOTER = "voter"
    OBSERVER = "observer"
