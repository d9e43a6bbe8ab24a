"""The struct of a finding in a JSON document, with the meaning of every kind and of its numbers."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct

from kview.derive.view import Verdict
from kview.model.findings import FindingKind
from kview.plain.schema_fields import Cause, HowBad, Text, duration, in_partitions, meaning, moment

KINDS: Mapping[FindingKind, str] = {
    FindingKind.ALL_WELL: "nothing is wrong with the cluster, and the groups counted are ok",
    FindingKind.CLUSTER_WELL: "every broker is up, every partition has a leader, every replica is in sync",
    FindingKind.NO_PARTITIONS: "brokers are up, but no partition has been seen",
    FindingKind.NOTHING_KNOWN: "no broker has answered yet",
    FindingKind.NO_BROKER_ANSWERS: "no broker answers kview",
    FindingKind.METADATA_FAILED: "metadata is not read or not believed, so leaders, ISRs and topics are from"
    " since_ms; cause says why",
    FindingKind.NOT_AUTHORIZED: "there may be topics or groups that kview is not authorized to see; cause"
    " says which",
    FindingKind.BROKERS_SILENT: "the brokers do not answer, and metadata still lists them as leaders of the"
    " partitions counted",
    FindingKind.WATERMARK_FROZEN: "the high watermark of the partitions stands still",
    FindingKind.QUORUM_HEARS_BROKERS: "the brokers do not answer kview, although the rest of the cluster"
    " hears from them; they lead the partitions counted",
    FindingKind.BROKERS_SLOW: "the brokers take much longer to answer than their peers, or than before",
    FindingKind.BROKERS_LATE: "the brokers count as up but owe kview an answer",
    FindingKind.BROKERS_CUT_OFF: "the brokers answer, but do not reach the active controller, and go on with"
    " old metadata",
    FindingKind.FENCING_DUE: "the controller will fence the first of the brokers at about due_ms",
    FindingKind.BROKERS_STARTING: "the brokers are listed, and have not answered yet",
    FindingKind.BROKERS_FENCED: "the controller has fenced the brokers",
    FindingKind.BROKERS_GONE: "the cluster no longer lists the brokers",
    FindingKind.LOG_DIR_OFFLINE: "the log directories at paths have failed, although the broker is up; the"
    " partitions counted had a replica there",
    FindingKind.NO_LEADER: "the partitions have no leader",
    FindingKind.SILENT_LEADER: "the partitions are led by a broker that does not answer",
    FindingKind.UNDER_MIN_ISR: "the partitions have fewer replicas in sync than min.insync.replicas",
    FindingKind.UNDER_REPLICATED: "the partitions have fewer replicas in sync than replicas",
    FindingKind.AT_MIN_ISR: "the partitions have only min.insync.replicas in sync",
    FindingKind.UNCLEAN_ELECTION: "leaders that were not in sync were elected for the partitions, the last of"
    " them at since_ms: what these did not have is lost; said for 15 minutes",
    FindingKind.LEADER_RECORDS_LOST: "records that only the old leaders of the partitions had were lost when"
    " other leaders were elected",
    FindingKind.PARTITIONS_UNREAD: "the partitions' leaders answer, but not for these partitions; cause says"
    " what they answer instead",
    FindingKind.RECORDS_LOST: "records were deleted before the group read them",
    FindingKind.NO_CONTROLLER: "there is no active controller",
    FindingKind.QUORUM_SILENT: "nobody has answered about the controllers since since_ms",
    FindingKind.QUORUM_LOST: "the active controller has not heard from a majority of the voters since"
    " since_ms; whether these are lost is not known",
    FindingKind.CONTROLLERS_LOST: "the controllers are down or not fetching; the quorum has a majority"
    " without them",
    FindingKind.OPEN_TRANSACTION: "the transaction is older than half of its timeout, or groups wait for it:"
    " clients with read_committed cannot read on",
    FindingKind.HANGING_TRANSACTION: "the same of a transaction that no coordinator knows; it never ends by"
    " itself",
    FindingKind.GROUPS_TROUBLED: "the groups have a problem; group, verdict and behind_ms are of the worst",
    FindingKind.GROUPS_UNREAD: "the figures of the groups are old; those of group are from since_ms",
    FindingKind.GROUPS_UNJUDGED: "too little is known of the groups for a verdict",
    FindingKind.CONNECT_TASK_FAILED: "connectors or tasks of Kafka Connect have failed; connector, task and"
    " trace are of the first",
    FindingKind.CONNECTORS_UNREAD: "the states of connectors are unknown, and were last read at since_ms;"
    " cause says why",
    FindingKind.THROTTLE_LEFT: "the topics and brokers have a throttle on the copying of replicas, although"
    " nothing is being reassigned",
    FindingKind.INPUT_FELL: "the input of the topics is below a fifth of its level of the last minutes; that"
    " of the first fell from rate_before to rate",
    FindingKind.LEADS_NOTHING: "the brokers are up and lead nothing, although they are preferred leaders",
    FindingKind.APIS_DIFFER: "the brokers offer other APIs than the rest, for an hour or more, as in a"
    " rolling upgrade that was not completed; a broker does not tell its release",
    FindingKind.NOT_PREFERRED: "the partitions are not on their preferred leader, although it is up",
}

COUNTS: Mapping[FindingKind, str] = {
    FindingKind.ALL_WELL: "brokers that are up",
    FindingKind.CLUSTER_WELL: "brokers that are up",
    FindingKind.NO_PARTITIONS: "brokers that are up",
    FindingKind.WATERMARK_FROZEN: "further partitions that stand still because their leaders are silent;"
    " brokers_silent counts these",
    FindingKind.BROKERS_SLOW: "how long the slowest of the brokers takes to answer, in ms",
    FindingKind.LOG_DIR_OFFLINE: "partitions whose only or whose leading replica was there",
    FindingKind.RECORDS_LOST: "records that were lost",
    FindingKind.OPEN_TRANSACTION: "records between the last stable offset and the high watermark",
    FindingKind.HANGING_TRANSACTION: "records between the last stable offset and the high watermark",
    FindingKind.GROUPS_TROUBLED: "groups that have this verdict",
    FindingKind.CONNECT_TASK_FAILED: "connectors and tasks that have failed",
    FindingKind.UNCLEAN_ELECTION: "records that were lost, at least; null if not known",
    FindingKind.LEADER_RECORDS_LOST: "records, at least",
    FindingKind.THROTTLE_LEFT: "topics with a throttle",
    FindingKind.INPUT_FELL: "topics whose input has fallen",
    FindingKind.QUORUM_LOST: "the quorum's voters",
    FindingKind.CONTROLLERS_LOST: "the quorum's voters, lost ones included",
}
"""What `count` means. Kinds that are not listed have no such number."""


def _listed(meanings: Mapping[FindingKind, str]) -> str:
    return "".join(f" {kind.value}: {text}." for kind, text in meanings.items())


class Transaction(Struct, gc=False):
    """Who holds back the last stable offset of a partition."""

    topic: Annotated[str, meaning("The topic of the partition that has waited the longest.")]
    partition: Annotated[int, meaning("That partition.")]
    start_offset: Annotated[int, meaning("Where the transaction begins in it.", "offset")]
    producer_id: Annotated[int | None, meaning("The producer; null if nobody says.")]
    producer_epoch: Annotated[int | None, meaning("Its epoch.")]
    transactional_id: Annotated[str | None, meaning("Its transactional.id; null if nobody says.")]
    coordinator: Annotated[int | None, meaning("The broker that coordinates it.")]
    timeout_ms: Annotated[int | None, duration("After how long its coordinator aborts it.")]


class Finding(Struct, gc=False):
    """Something that is wrong now, or the statement that nothing is."""

    kind: Annotated[FindingKind, meaning(f"What was found.{_listed(KINDS)}")]
    severity: HowBad
    text: Text
    brokers: Annotated[list[int], meaning("The ids of the brokers that it is about.")]
    controllers: Annotated[list[int], meaning("The ids of the controllers that it is about.")]
    rack: Annotated[str | None, meaning("The rack, if these are all of its brokers and there are several.")]
    paths: Annotated[list[str], meaning("The log directories that it is about.")]
    topics: Annotated[list[str], meaning("The first topics that it is about, at most 20.")]
    group: Annotated[
        str | None, meaning("The consumer group that it is about: the worst one, if it is about several.")
    ]
    groups: Annotated[int, meaning("How many consumer groups it concerns.", "groups")]
    verdict: Annotated[Verdict | None, meaning("The verdict on that group.")]
    behind_ms: Annotated[int | None, duration("That group's lag in time.")]
    behind_is_bound: Annotated[bool, meaning("Whether behind_ms is only a lower bound.")]
    behind_is_estimate: Annotated[bool, meaning("Whether behind_ms is only an estimate.")]
    connector: Annotated[str | None, meaning("The connector that it is about.")]
    task: Annotated[int | None, meaning("The number of its task; -1 for the connector itself.")]
    trace: Annotated[str | None, meaning("The line of the task's trace that says why it failed.")]
    partitions: Annotated[int, in_partitions("How many partitions of the user's topics it concerns.")]
    internal_partitions: Annotated[int, in_partitions("How many partitions of internal topics it concerns.")]
    count: Annotated[
        int | None,
        meaning(f"Another count, which depends on the kind; null for all other kinds.{_listed(COUNTS)}"),
    ]
    count_is_bound: Annotated[bool, meaning("Whether count is only a lower bound.")]
    rate_before: Annotated[int | None, meaning("For input_fell: the rate before it fell.", "records/s")]
    rate: Annotated[int | None, meaning("For input_fell: the rate of the last half minute.", "records/s")]
    since_ms: Annotated[int | None, moment("Since when this has been the case.")]
    since_is_bound: Annotated[bool, meaning("Whether it may have begun before since_ms.")]
    due_ms: Annotated[int | None, moment("When the broker will be fenced, an estimate.")]
    cause: Annotated[Cause | None, meaning("For groups_unread: why the group's figures are old.")]
    transaction: Annotated[Transaction | None, meaning("The transaction that it is about.")]
