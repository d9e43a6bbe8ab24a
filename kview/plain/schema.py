"""What a JSON document holds: its structs, with the meaning and the unit of every field."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from kview.derive.view import PartitionStatus, Reason, Verdict
from kview.model.events import EventKind, Severity
from kview.model.failures import FailureKind, Part
from kview.model.findings import FindingKind
from kview.model.states import BrokerState

FORMAT = 2
"""Goes up when a field changes its meaning or goes away; new fields may come without."""


def _said(description: str, unit: str | None = None) -> Meta:
    return Meta(description=description, extra_json_schema={"unit": unit} if unit else None)


def _time(description: str) -> Meta:
    return _said(description, "milliseconds since 1970-01-01T00:00:00Z")


def _duration(description: str) -> Meta:
    return _said(description, "milliseconds")


def _rate(description: str) -> Meta:
    return _said(description, "records per second")


def _records(description: str) -> Meta:
    return _said(description, "records")


def _partitions(description: str) -> Meta:
    return _said(description, "partitions")


Text = Annotated[str, _said("The same in words, as the screen says it. It may change: do not parse it.")]
HowBad = Annotated[Severity, _said("How much it matters: risk, warn, good or calm.")]


class Cause(Struct, gc=False):
    """Why something was not answered."""

    kind: Annotated[FailureKind, _said("What went wrong.")]
    code: Annotated[int | None, _said("Kafka's error number, if the kind is kafka_error.")]
    text: Text


class Finding(Struct, gc=False):
    """Something that is wrong now, or that nothing is."""

    kind: Annotated[FindingKind, _said("What was found.")]
    severity: HowBad
    text: Text
    brokers: Annotated[list[int], _said("The ids of the brokers that it is about.")]
    controllers: Annotated[list[int], _said("The ids of the controllers that it is about.")]
    rack: Annotated[str | None, _said("The rack, if the brokers are all of one that has several.")]
    group: Annotated[str | None, _said("The consumer group that it is about.")]
    partitions: Annotated[int, _partitions("How many partitions of the user's topics it concerns.")]
    internal_partitions: Annotated[int, _partitions("How many partitions of internal topics it concerns.")]
    count: Annotated[
        int | None,
        _said(
            "What else is counted, by kind. all_well, no_partitions: brokers that are up. watermark_frozen: "
            "partitions that stand still because their leaders are silent, which brokers_silent counts. "
            "records_lost: records. controllers_lost: the quorum's voters."
        ),
    ]
    since_ms: Annotated[int | None, _time("Since when it is so.")]
    due_ms: Annotated[int | None, _time("When the broker is about to be fenced, an estimate.")]


class PartitionName(Struct, gc=False):
    """A partition."""

    topic: Annotated[str, _said("The topic's name.")]
    partition: Annotated[int, _said("The partition's number.")]


class Event(Struct, gc=False):
    """Something that changed since the document before."""

    at_ms: Annotated[int, _time("When it was seen; of a silence, when it began.")]
    kind: Annotated[EventKind, _said("What happened.")]
    severity: HowBad
    text: Text
    brokers: Annotated[
        list[int],
        _said(
            "The ids of the brokers that it is about: of leader_moved and leader_returned the leaders now, "
            "of isr_shrank and isr_grew those that left or joined."
        ),
    ]
    controllers: Annotated[list[int], _said("The ids of the controllers that it is about.")]
    group: Annotated[str | None, _said("The consumer group that it is about.")]
    topic: Annotated[str | None, _said("The topic that was created, deleted or enlarged.")]
    partitions: Annotated[
        list[PartitionName], _said("The partitions that it concerns, the user's first; at most 200 of them.")
    ]
    partition_count: Annotated[int, _partitions("How many partitions of the user's topics it concerns.")]
    internal_partition_count: Annotated[int, _partitions("How many of internal topics it concerns.")]
    records: Annotated[int | None, _records("Records lost or cut off, a lower bound.")]
    members: Annotated[int | None, _said("Members of the group now.", "members")]
    cause: Annotated[FailureKind | None, _said("Why a broker is called silent.")]
    before: Annotated[
        str | int | None,
        _said("The group's state, the controller's id or the number of partitions before, if it is known."),
    ]
    after: Annotated[str | int | None, _said("The same now.")]
    epoch: Annotated[int | None, _said("The new controller's epoch.")]


class Broker(Struct, gc=False):
    """A broker. One that has left the cluster stays in the list."""

    id: Annotated[int, _said("Its node id.")]
    host: Annotated[str, _said("The host that the cluster advertises for it.")]
    port: Annotated[int, _said("The port that the cluster advertises for it.")]
    rack: Annotated[str | None, _said("broker.rack; null if it has none.")]
    state: Annotated[BrokerState, _said("What is known of it from outside.")]
    since_ms: Annotated[int | None, _time("Since when it has that state.")]
    severity: HowBad
    is_controller: Annotated[bool, _said("Whether it is the active controller, too.")]
    answers: Annotated[bool, _said("Whether it answers kview.")]
    answered_ms: Annotated[int | None, _time("When it last answered kview.")]
    silent_since_ms: Annotated[int | None, _time("The first request that it left without an answer.")]
    fencing_due_ms: Annotated[int | None, _time("When the controller is about to fence it, an estimate.")]
    leaders: Annotated[int, _partitions("Partitions of the user's topics that it leads.")]
    leaders_internal: Annotated[int, _partitions("Partitions of internal topics that it leads.")]
    replicas: Annotated[int, _said("Replicas of the user's topics that it holds.", "replicas")]
    replicas_internal: Annotated[int, _said("Replicas of internal topics that it holds.", "replicas")]
    in_records_per_second: Annotated[float | None, _rate("Appended to the partitions that it leads.")]
    out_records_per_second: Annotated[float | None, _rate("Committed by groups on what it leads.")]
    disk_bytes: Annotated[int | None, _said("What its logs take on its disks.", "bytes")]
    error: Annotated[Cause | None, _said("Why it does not answer.")]


class Topic(Struct, gc=False):
    """A topic."""

    topic: Annotated[str, _said("Its name.")]
    internal: Annotated[bool, _said("Whether it is one of Kafka's own.")]
    severity: HowBad
    partitions: Annotated[int, _partitions("How many partitions it has.")]
    replication: Annotated[int, _said("The longest replica list of its partitions.", "replicas")]
    min_isr: Annotated[int | None, _said("min.insync.replicas in force.", "replicas")]
    no_leader_partitions: Annotated[int, _partitions("Those without a leader.")]
    silent_leader_partitions: Annotated[int, _partitions("Those whose leader does not answer.")]
    frozen_partitions: Annotated[int, _partitions("Those whose high watermark stands still.")]
    under_min_isr_partitions: Annotated[int, _partitions("Those with fewer in sync than min_isr.")]
    under_replicated_partitions: Annotated[int, _partitions("Those with fewer in sync than replicas.")]
    not_preferred_partitions: Annotated[int, _partitions("Those led by another than their first replica.")]
    rack_safe: Annotated[bool, _said("Whether every partition has replicas on more than one rack.")]
    in_records_per_second: Annotated[float | None, _rate("Appended to it.")]
    size_bytes: Annotated[int | None, _said("What all its replicas take on disk.", "bytes")]


class Replica(Struct, gc=False):
    """A replica of a partition."""

    broker_id: Annotated[int, _said("The broker that holds it.")]
    log_end: Annotated[int | None, _said("Where its own log ends.", "offset")]
    log_end_ms: Annotated[int | None, _time("When the broker said so.")]
    lag_records: Annotated[int | None, _records("How far it is behind the leader; negative if it is ahead.")]
    in_isr: Annotated[bool, _said("Whether it is listed as in sync.")]
    silent: Annotated[bool, _said("Whether its broker does not answer.")]


class Partition(Struct, gc=False):
    """A partition."""

    topic: Annotated[str, _said("The topic's name.")]
    partition: Annotated[int, _said("The partition's number.")]
    internal: Annotated[bool, _said("Whether its topic is one of Kafka's own.")]
    status: Annotated[PartitionStatus, _said("What is worst about it.")]
    severity: HowBad
    leader: Annotated[int | None, _said("The leader's broker id; -1 if there is none.")]
    leader_epoch: Annotated[int | None, _said("The leader epoch: it rises with every election.")]
    min_isr: Annotated[int | None, _said("min.insync.replicas in force.", "replicas")]
    log_start: Annotated[int | None, _said("The first offset that is still there.", "offset")]
    high_watermark: Annotated[int | None, _said("What consumers see as the end.", "offset")]
    high_watermark_ms: Annotated[int | None, _time("When the leader said so.")]
    log_end: Annotated[int | None, _said("Where the leader's own log ends.", "offset")]
    log_end_ms: Annotated[int | None, _time("When the leader said so.")]
    uncommitted_records: Annotated[int | None, _records("From the high watermark to the leader's log end.")]
    frozen_since_ms: Annotated[int | None, _time("Since when the high watermark stands still.")]
    leader_silent_since_ms: Annotated[int | None, _time("Since when the leader does not answer.")]
    in_records_per_second: Annotated[float | None, _rate("Appended to it.")]
    error: Annotated[Cause | None, _said("Kafka's error for it.")]
    isr: Annotated[list[int], _said("The broker ids of the replicas in sync.")]
    offline: Annotated[list[int], _said("The broker ids of the replicas that Kafka calls offline.")]
    replicas: Annotated[list[Replica], _said("Its replicas, the preferred leader first.")]


class GroupVerdict(Struct, gc=False):
    """What a group, or a group's partition, is doing, judged by offsets alone."""

    kind: Annotated[Verdict, _said("The verdict.")]
    text: Text
    reason: Annotated[Reason | None, _said("Why; null if there is nothing to say.")]
    reason_ms: Annotated[
        int | None, _duration("How long the offset has not moved, at least; of a stopped group, its lag.")
    ]
    reason_count: Annotated[
        int | None, _said("Of partitions: how many have this verdict. Of fell_back: the offset it had.")
    ]


class GroupPartition(Struct, gc=False):
    """A partition that a group has committed to or owns."""

    topic: Annotated[str, _said("The topic's name.")]
    partition: Annotated[int, _said("The partition's number.")]
    owner: Annotated[str | None, _said("The member id of its owner; null if nobody owns it.")]
    committed: Annotated[int | None, _said("The committed offset; -1 if there is none.", "offset")]
    log_end_offset: Annotated[
        int | None, _said("The high watermark, as kafka-consumer-groups has it.", "offset")
    ]
    lag_records: Annotated[int | None, _records("log_end_offset - committed.")]
    behind_ms: Annotated[int | None, _duration("Lag in time: how long ago the committed offset was the end.")]
    behind_is_bound: Annotated[bool, _said("Whether behind_ms is only a lower bound.")]
    read_records_per_second: Annotated[float | None, _rate("Committed.")]
    write_records_per_second: Annotated[float | None, _rate("Appended.")]
    verdict: Annotated[GroupVerdict, _said("What the group is doing with it.")]
    lost_records: Annotated[int, _records("Records deleted before the group read them.")]


class Group(Struct, gc=False):
    """A consumer group."""

    group: Annotated[str, _said("Its name.")]
    type: Annotated[str, _said("Its protocol: classic, consumer, share, streams or unknown.")]
    state: Annotated[str, _said("Its state, in Kafka's word.")]
    coordinator: Annotated[int | None, _said("The broker id of its coordinator; -1 if there is none.")]
    assignment_strategy: Annotated[str | None, _said("The assignor in use.")]
    members: Annotated[int | None, _said("Members that have joined.", "members")]
    members_active: Annotated[int, _said("Members that own at least one partition.", "members")]
    severity: HowBad
    verdict: Annotated[GroupVerdict, _said("The worst of its partitions' verdicts.")]
    lost_records: Annotated[int, _records("Records deleted before the group read them.")]
    lag_records: Annotated[int | None, _records("The sum over its partitions, as far as it is known.")]
    lag_is_bound: Annotated[bool, _said("Whether some partition's lag is unknown: lag_records is a minimum.")]
    behind_ms: Annotated[int | None, _duration("The worst partition's lag in time.")]
    behind_is_bound: Annotated[bool, _said("Whether behind_ms is only a lower bound.")]
    read_records_per_second: Annotated[float | None, _rate("Committed by it.")]
    write_records_per_second: Annotated[float | None, _rate("Appended to its partitions.")]
    age_ms: Annotated[int | None, _duration("How old these figures are.")]
    error: Annotated[Cause | None, _said("Why they are old.")]
    partitions: Annotated[list[GroupPartition], _said("Its partitions.")]


class Failure(Struct, gc=False):
    """Something that could not be asked."""

    part: Annotated[Part, _said("Which part of the observation failed.")]
    broker_id: Annotated[int | None, _said("The broker that was asked.")]
    cause: Annotated[Cause, _said("Why.")]
    shown_since_ms: Annotated[int | None, _time("When the value shown in its place was received.")]


class Document(Struct, gc=False):
    """What kview sees of a cluster at one moment. What is not known is null, never 0. Unless a field says
    otherwise, its counts leave internal topics out."""

    format: Annotated[int, _said("The version of this format.")]
    at_ms: Annotated[int, _time("When the observation ended.")]
    cluster_id: Annotated[str | None, _said("The cluster's id.")]
    controller_id: Annotated[int | None, _said("The quorum's leader; -1 if there is none.")]
    controller_epoch: Annotated[int | None, _said("The quorum's epoch.")]
    severity: HowBad
    findings: Annotated[list[Finding], _said("What is wrong, the worst first; a calm one if nothing is.")]
    topic_count: Annotated[int, _said("Topics.", "topics")]
    partition_count: Annotated[int, _partitions("Partitions.")]
    under_replicated_partitions: Annotated[int, _partitions("Those with fewer in sync than replicas.")]
    offline_partitions: Annotated[int, _partitions("Those without a leader.")]
    under_min_isr_partitions: Annotated[
        int, _partitions("Those with fewer in sync than min.insync.replicas.")
    ]
    at_min_isr_partitions: Annotated[int, _partitions("Those whose next loss stops acks=all.")]
    requests_per_second: Annotated[
        float | None, _said("What kview itself costs the cluster.", "requests per second")
    ]
    in_records_per_second: Annotated[float | None, _rate("Appended to all topics.")]
    out_records_per_second: Annotated[float | None, _rate("Committed by all groups.")]
    brokers: Annotated[list[Broker], _said("The brokers, by id.")]
    topics: Annotated[list[Topic], _said("The topics, internal ones too, by name.")]
    partitions: Annotated[list[Partition], _said("The partitions, internal ones too, by topic and number.")]
    groups: Annotated[list[Group], _said("The consumer groups, by name.")]
    events: Annotated[list[Event], _said("What happened since the document before, causes before effects.")]
    failures: Annotated[list[Failure], _said("What could not be asked.")]


def json_schema() -> Mapping[str, Any]:
    """The JSON Schema (draft 2020-12) of a document; `unit` is an annotation of kview's own."""
    schema = msgspec.json.schema(Document)
    for named in schema["$defs"].values():  # a docstring's line breaks and indents are its file's
        named["description"] = " ".join(named["description"].split())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
