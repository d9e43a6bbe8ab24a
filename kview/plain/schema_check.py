"""The struct of the document that `kview check --format json` prints."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from kview.derive.view import Reason, Verdict
from kview.model.checks import CheckKind, Level, NotJudgedWhy
from kview.model.findings import FindingKind
from kview.plain.schema_fields import (
    CLUSTER,
    Cause,
    PartitionName,
    Text,
    duration,
    in_partitions,
    meaning,
    moment,
    records,
)
from kview.plain.schema_groups import GROUP_TYPES

CHECK_KINDS: Mapping[CheckKind, str] = {
    CheckKind.OFFLINE: "partitions of the topic have no leader",
    CheckKind.SILENT_LEADER: "partitions of the topic are led by a broker that does not answer",
    CheckKind.FROZEN: "the high watermark of partitions of the topic stands still",
    CheckKind.UNDER_MIN_ISR: "partitions have fewer replicas in sync than min.insync.replicas",
    CheckKind.AT_MIN_ISR: "partitions have exactly min.insync.replicas in sync, and not all replicas",
    CheckKind.UNDER_REPLICATED: "partitions have fewer replicas in sync than replicas",
    CheckKind.NOT_RACK_SAFE: "partitions have all replicas in one rack, although there are several racks",
    CheckKind.REPLICATION_FACTOR_1: "partitions have one replica",
    CheckKind.MIN_ISR_1: "min.insync.replicas is 1 although there are three replicas or more",
    CheckKind.NOT_PREFERRED: "partitions are not led by their preferred leader, although it is up",
    CheckKind.BROKER_SILENT: "the broker does not answer kview",
    CheckKind.BROKER_FENCED: "the controller has fenced the broker",
    CheckKind.BROKER_GONE: "the cluster no longer lists the broker",
    CheckKind.BROKER_SLOW: "the broker takes much longer to answer than its peers, or than before",
    CheckKind.LOG_DIR_OFFLINE: "log directories of the broker have failed, although it is up",
    CheckKind.BROKER_LOSS: "losing the broker would leave partitions without an eligible leader or under min"
    " ISR",
    CheckKind.RACK_LOSS: "losing the rack would leave partitions without an eligible leader or under min ISR",
    CheckKind.LEADER_SKEW: "the broker leads many more partitions than the mean",
    CheckKind.DISK_SKEW: "the broker holds many more bytes than the mean",
    CheckKind.THROTTLE_LEFT: "the topic or broker has a throttle on the copying of replicas, although nothing"
    " is being reassigned",
    CheckKind.NO_CONTROLLER: "no controller is active, or none can act, or none answers",
    CheckKind.VOTER_LOST: "the controller is missing from the quorum",
    CheckKind.OPEN_TRANSACTION: "the transaction is older than half of its timeout, or groups wait for it",
    CheckKind.HANGING_TRANSACTION: "no coordinator knows the transaction, which never ends by itself",
    CheckKind.GROUP_STUCK: "the group has members and records to read, and does not move",
    CheckKind.GROUP_STOPPED: "the group has records to read and no members",
    CheckKind.GROUP_FALLING_BEHIND: "the group's lag grew and does not come down",
    CheckKind.GROUP_REWOUND: "the group's offsets fell back",
    CheckKind.GROUP_BLOCKED: "the cluster keeps the group from reading: a leader is missing or does not"
    " answer, or a high watermark stands still",
    CheckKind.GROUP_BLOCKED_BY_TRANSACTION: "an open transaction holds back what the group wants to read",
    CheckKind.GROUP_AHEAD_OF_LOG: "the group's offsets lie beyond the end of the log",
    CheckKind.GROUP_LOST_RECORDS: "records were deleted before the group read them",
    CheckKind.CONNECT_TASK_FAILED: "the connector or some of its tasks have failed; not judged without the"
    " profile's connect-url",
}

AMOUNTS: Mapping[CheckKind, str] = {
    CheckKind.BROKER_SLOW: "how long the broker takes to answer, in microseconds",
    CheckKind.LOG_DIR_OFFLINE: "log directories that the broker has",
    CheckKind.LEADER_SKEW: "partitions that the broker leads",
    CheckKind.DISK_SKEW: "bytes that the broker holds",
    CheckKind.VOTER_LOST: "voters that are left",
    CheckKind.NO_CONTROLLER: "if the controllers have no majority: voters that the active one hears, itself"
    " included",
    CheckKind.GROUP_LOST_RECORDS: "records that were lost",
    CheckKind.CONNECT_TASK_FAILED: "tasks that have failed; 0 if it is the connector itself",
}


def _listed(meanings: Mapping[CheckKind, str]) -> str:
    return "".join(f" {kind.value}: {text}." for kind, text in meanings.items())


class CheckKey(Struct, gc=False):
    """What identifies a finding: its kind and name."""

    kind: Annotated[CheckKind, meaning("What was found.")]
    name: Annotated[str, meaning("The broker's id, or the transactional.id or else the producer's id.")]


class CheckFinding(Struct, gc=False):
    """Something that a check found."""

    kind: Annotated[CheckKind, meaning(f"What was found.{_listed(CHECK_KINDS)}")]
    name: Annotated[
        str | None,
        meaning(
            "The topic, the broker's id, the rack, the controller's id, the group, the connector, or the"
            " transactional.id or else the producer's id, as --ignore takes it."
        ),
    ]
    level: Annotated[Level, meaning("How bad it is: at least as bad as the worst that it explains.")]
    fails: Annotated[bool, meaning("Whether it makes the check fail, given --fail-on.")]
    text: Text
    brokers: Annotated[list[int], meaning("The ids of the brokers that cause it, or that would be lost.")]
    paths: Annotated[list[str], meaning("The log directories that have failed.")]
    partitions: Annotated[list[PartitionName], meaning("The partitions that it concerns, at most 200.")]
    partition_count: Annotated[int, in_partitions("How many partitions it concerns, internal ones too.")]
    leaderless_partitions: Annotated[
        int,
        in_partitions(
            "For a loss: partitions that it would leave without an eligible leader. For log_dir_offline:"
            " partitions whose only or whose leading replica was there."
        ),
    ]
    under_min_isr_partitions: Annotated[
        int, in_partitions("For a loss: further partitions that it would leave under min ISR.")
    ]
    amount: Annotated[
        int | None, meaning(f"A number that depends on the kind; null for all others.{_listed(AMOUNTS)}")
    ]
    mean: Annotated[float | None, meaning("For a skew: the mean of the brokers that are up.")]
    group_type: Annotated[str | None, meaning(f"The kind of the group: {GROUP_TYPES}.")]
    verdict: Annotated[Verdict | None, meaning("The verdict on the group.")]
    reason: Annotated[Reason | None, meaning("The reason for that verdict.")]
    headline_kind: Annotated[
        FindingKind | None,
        meaning(
            "For the kind no_controller: no_controller if there is no active controller, quorum_lost if the"
            " controllers have no majority, quorum_silent if nobody answers about them."
        ),
    ]
    lag_records: Annotated[int | None, records("That the group has not read yet.")]
    lag_is_bound: Annotated[bool, meaning("Whether lag_records is only a lower bound.")]
    behind_ms: Annotated[int | None, duration("The group's lag in time.")]
    is_bound: Annotated[bool, meaning("Whether behind_ms or amount is only a lower bound.")]
    is_estimate: Annotated[bool, meaning("Whether behind_ms is only an estimate.")]
    since_ms: Annotated[
        int | None,
        moment("When it began; null if it was already so when the check began, and for groups."),
    ]
    since_is_bound: Annotated[bool, meaning("Whether it may have begun before since_ms.")]
    explained_by: Annotated[
        list[CheckKey],
        meaning(
            "The findings about brokers that are down, log directories that have failed, or open"
            " transactions, without which this one would not exist."
        ),
    ]


class CheckNotJudged(Struct, gc=False):
    """Something that a check could not judge."""

    kinds: Annotated[list[CheckKind], meaning("What could not be judged.")]
    names: Annotated[
        list[str],
        meaning(
            "The topics, brokers or groups that this is about; if empty, the kinds were not judged at all."
        ),
    ]
    why: Annotated[NotJudgedWhy, meaning("Why not.")]
    fails: Annotated[
        bool,
        meaning(
            "Whether it makes the check fail: never with --allow-not-judged, and if all kinds are weaknesses,"
            " only with --fail-on weakness."
        ),
    ]
    brokers: Annotated[list[int], meaning("The ids of the brokers that are the reason.")]
    cause: Annotated[Cause | None, meaning("What went wrong when kview asked.")]
    text: Text
    explained_by: Annotated[
        list[CheckKey], meaning("The findings about these brokers that say why they did not answer.")
    ]


class CheckDocument(Struct, gc=False, kw_only=True):
    """What `kview check` found. Internal topics count like any other topic."""

    format: Annotated[int, meaning("The version of this format.")]
    at_ms: Annotated[int, moment("When the last observation ended.")]
    cluster: Annotated[str, meaning(CLUSTER)] | UnsetType = UNSET
    cluster_id: Annotated[str | None, meaning("The cluster's id.")]
    watched_ms: Annotated[int, duration("How long the check observed the cluster.")]
    healthy: Annotated[bool, meaning("Whether the check passed: the exit code is 0, otherwise 1.")]
    fail_on: Annotated[Level, meaning("The lowest level that makes the check fail.")]
    allow_not_judged: Annotated[bool, meaning("Whether the check passes if something could not be judged.")]
    broker_count: Annotated[int, meaning("How many brokers the cluster has.", "brokers")]
    topic_count: Annotated[int, meaning("How many topics there are, internal ones too.", "topics")]
    partition_count: Annotated[int, in_partitions("How many partitions there are, internal ones too.")]
    group_count: Annotated[int, meaning("How many consumer groups are known.", "groups")]
    findings: Annotated[
        list[CheckFinding], meaning("What was found: causes first, then the worst, and weaknesses last.")
    ]
    not_judged: Annotated[list[CheckNotJudged], meaning("What could not be judged.")]
    ignored_findings: Annotated[int, meaning("How many findings --ignore left out.", "findings")]
