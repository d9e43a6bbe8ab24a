"""What a check found, and what it could not judge, as facts. `kview.language.checks` puts them into words."""

import math
from enum import StrEnum

from msgspec import Struct

from kview.model.failures import NO_FAILURE, Cause
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN


class Level(StrEnum):
    """How bad a finding of a check is, the worst first. What is wrong now is a risk or a warning."""

    RISK = "risk"
    """Data or availability is at risk now."""
    WARN = "warn"
    """One step away from that."""
    WEAKNESS = "weakness"
    """Nothing is wrong now. The next failure would do more harm than it must, or work is spread unevenly."""


LEVELS = tuple(Level)

Key = tuple["CheckKind", str]
"""A finding's kind and name."""


class CheckKind(StrEnum):
    """What a check judges. `name` in a finding is the topic, broker, rack, controller or group.

    Scripts and JSON documents contain the values, so they must not change.
    """

    OFFLINE = "offline"
    SILENT_LEADER = "silent_leader"
    FROZEN = "frozen"
    UNDER_MIN_ISR = "under_min_isr"
    AT_MIN_ISR = "at_min_isr"
    UNDER_REPLICATED = "under_replicated"
    NOT_RACK_SAFE = "not_rack_safe"
    REPLICATION_FACTOR_1 = "replication_factor_1"
    MIN_ISR_1 = "min_isr_1"
    NOT_PREFERRED = "not_preferred"
    BROKER_SILENT = "broker_silent"
    BROKER_FENCED = "broker_fenced"
    BROKER_GONE = "broker_gone"
    BROKER_SLOW = "broker_slow"
    LOG_DIR_OFFLINE = "log_dir_offline"
    """Log directories of a broker that is up have failed. `name` is the broker."""
    BROKER_LOSS = "broker_loss"
    """Losing this broker would leave partitions without an eligible leader or under min ISR (N−1)."""
    RACK_LOSS = "rack_loss"
    LEADER_SKEW = "leader_skew"
    DISK_SKEW = "disk_skew"
    THROTTLE_LEFT = "throttle_left"
    """`name` is the topic or the broker."""
    NO_CONTROLLER = "no_controller"
    """No controller is active, none has answered for a while, or the active one has lost its majority."""
    VOTER_LOST = "voter_lost"
    OPEN_TRANSACTION = "open_transaction"
    """`name` is the transactional.id, or else the producer's id."""
    HANGING_TRANSACTION = "hanging_transaction"
    GROUP_STUCK = "group_stuck"
    GROUP_STOPPED = "group_stopped"
    GROUP_FALLING_BEHIND = "group_falling_behind"
    GROUP_REWOUND = "group_rewound"
    GROUP_BLOCKED = "group_blocked"
    GROUP_BLOCKED_BY_TRANSACTION = "group_blocked_by_transaction"
    GROUP_AHEAD_OF_LOG = "group_ahead_of_log"
    GROUP_LOST_RECORDS = "group_lost_records"
    CONNECT_TASK_FAILED = "connect_task_failed"


PARTITION_KINDS = (
    CheckKind.OFFLINE,
    CheckKind.SILENT_LEADER,
    CheckKind.FROZEN,
    CheckKind.UNDER_MIN_ISR,
    CheckKind.AT_MIN_ISR,
    CheckKind.UNDER_REPLICATED,
    CheckKind.NOT_RACK_SAFE,
    CheckKind.REPLICATION_FACTOR_1,
    CheckKind.MIN_ISR_1,
    CheckKind.NOT_PREFERRED,
)
"""The kinds whose name is a topic."""

GROUP_KINDS = tuple(kind for kind in CheckKind if kind.startswith("group_"))
"""The kinds whose name is a consumer group."""

WEAKNESSES = frozenset({
    CheckKind.NOT_RACK_SAFE,
    CheckKind.REPLICATION_FACTOR_1,
    CheckKind.MIN_ISR_1,
    CheckKind.NOT_PREFERRED,
    CheckKind.BROKER_LOSS,
    CheckKind.RACK_LOSS,
    CheckKind.LEADER_SKEW,
    CheckKind.DISK_SKEW,
    CheckKind.THROTTLE_LEFT,
})  # fmt: skip
"""The kinds whose level is WEAKNESS: they say what could go wrong. All others say what has gone wrong."""


class NotJudgedWhy(StrEnum):
    """Why something could not be judged."""

    NO_HISTORY = "no_history"
    """It needs more observations, and a longer check has them."""
    FEW_COMMITS = "few_commits"
    """Records wait for a group, and too few commits were seen to tell rare ones from none."""
    NOT_AUTHORIZED = "not_authorized"
    NOT_ANSWERED = "not_answered"
    UNSUPPORTED = "unsupported"
    NOTHING_COMMITTED = "nothing_committed"
    """Members of a group have committed nothing, so that its lag is not known."""
    NO_COMPARISON = "no_comparison"
    """Brokers take long to answer, none is faster, and nobody knows how long they took before."""
    RACK_UNKNOWN = "rack_unknown"
    """Some brokers have a rack, and others have none."""


class CheckFinding(Struct, frozen=True):
    """Something that a check found. Numbers that do not belong to the kind are 0, UNKNOWN or NaN."""

    kind: CheckKind
    level: Level
    """A cause has the level of the worst that it explains, if that is worse than its own."""
    name: str = ""
    """The topic, the broker's id, the rack, the controller's id, the group or the connector. '' if the kind
    has no name."""
    brokers: tuple[int, ...] = ()
    """The brokers that are the cause: those that lead, or those that are out of sync."""
    stranded: tuple[int, ...] = ()
    """Those of `brokers` that are up, although the replicas concerned are offline: their log directories must
    have failed."""
    paths: tuple[str, ...] = ()
    """The log directories that have failed."""
    partitions: tuple[tuple[str, int], ...] = ()
    """The first (topic, partition) pairs concerned."""
    partition_count: int = 0
    of_partitions: int = 0
    """The number of partitions of the topic."""
    leaderless: int = 0
    """For a loss: the number of partitions that would be left without an eligible leader. For a log
    directory: of those that lost their only or their leading replica."""
    under_min_isr: int = 0
    """For a loss: the number of further partitions that would be left under min ISR."""
    replicas: int = UNKNOWN
    amount: int = UNKNOWN
    """Leaders, bytes or log directories of the broker, its latency in µs, records that were lost, voters
    left or heard, or tasks that failed."""
    mean: float = math.nan
    """What the brokers that are up have on average, this one included."""
    group_type: str = ""
    """The group's `GroupType`."""
    verdict: str = ""
    reason: str = ""
    """The `Reason` for the verdict, with its two numbers."""
    reason_ms: int = UNKNOWN
    reason_count: int = UNKNOWN
    unowned: int = 0
    """Of a stuck group: how many of the partitions on which it is stuck no member owns."""
    trace: str = ""
    """The line of a failed task's trace that says why, '' if there is none."""
    settings: tuple[str, ...] = ()
    """The settings that are the cause."""
    active: int = UNKNOWN
    """The active controller, if it hears no majority of the voters."""
    unheard: tuple[int, ...] = ()
    """The voters that do not fetch from it. Whether they are lost, or it is, is not known."""
    headline: FindingKind | None = None
    """The finding of the headline that this one is."""
    transaction: Finding | None = None
    """The headline's finding about the transaction."""
    lag: int = UNKNOWN
    """Records that the group has not read yet."""
    lag_is_bound: bool = False
    behind_ms: int = UNKNOWN
    is_bound: bool = False
    """Whether `behind_ms` or `amount` is only a lower bound."""
    is_estimate: bool = False
    unreached: bool = False
    """Whether the rest of the cluster still hears from the broker."""
    since_ms: int = UNKNOWN
    """When this began, in epoch ms. UNKNOWN if it was already so in the check's first observation, and for
    groups: a verdict comes later than what it is about."""
    since_is_bound: bool = False
    """Whether it may have begun before `since_ms`."""
    explained_by: tuple[Key, ...] = ()
    """The findings that are the cause of this one: it would not exist without them."""

    @property
    def key(self) -> Key:
        """What tells findings of one moment apart."""
        return self.kind, self.name


class NotJudged(Struct, frozen=True):
    """What a check could not judge: these kinds, for these names, or for all of them if `names` is empty."""

    kinds: tuple[CheckKind, ...]
    why: NotJudgedWhy
    names: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    """The brokers that did not answer, if they are the reason."""
    cause: Cause = NO_FAILURE
    explained_by: tuple[Key, ...] = ()
    """The findings about these brokers that say why they did not answer."""


class Judgement(Struct, frozen=True):
    """What a check found at one moment, causes first, weaknesses last, and what it could not judge."""

    findings: tuple[CheckFinding, ...]
    not_judged: tuple[NotJudged, ...]
    ignored: int = 0
    """How many findings the user ignores."""

    @property
    def causes(self) -> tuple[CheckFinding, ...]:
        """The findings that explain others, or why something could not be judged."""
        keys = {key for finding in self.findings for key in finding.explained_by}
        keys |= {key for item in self.not_judged for key in item.explained_by}
        return tuple(finding for finding in self.findings if finding.key in keys)
