"""The structs of a JSON document, with the meaning and the unit of every field."""

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
"""The format's version, which rises when a field changes its meaning or is removed, but not for new
fields."""


def _meaning(description: str, unit: str | None = None) -> Meta:
    return Meta(description=description, extra_json_schema={"unit": unit} if unit else None)


def _time(description: str) -> Meta:
    return _meaning(description, "milliseconds since 1970-01-01T00:00:00Z")


def _duration(description: str) -> Meta:
    return _meaning(description, "milliseconds")


def _rate(description: str) -> Meta:
    return _meaning(description, "records per second")


def _records(description: str) -> Meta:
    return _meaning(description, "records")


def _partitions(description: str) -> Meta:
    return _meaning(description, "partitions")


Text = Annotated[
    str, _meaning("The same in words, as on the screen. The wording may change: do not parse it.")
]
HowBad = Annotated[Severity, _meaning("How urgent it is: risk, warn, good or calm.")]


class Cause(Struct, gc=False):
    """Why something was not answered."""

    kind: Annotated[FailureKind, _meaning("What went wrong.")]
    code: Annotated[int | None, _meaning("Kafka's error number, if the kind is kafka_error.")]
    text: Text


class Finding(Struct, gc=False):
    """Something that is wrong now, or the statement that nothing is."""

    kind: Annotated[FindingKind, _meaning("What was found.")]
    severity: HowBad
    text: Text
    brokers: Annotated[list[int], _meaning("The ids of the brokers that it is about.")]
    controllers: Annotated[list[int], _meaning("The ids of the controllers that it is about.")]
    rack: Annotated[str | None, _meaning("The rack, if these are all of its brokers and there are several.")]
    group: Annotated[str | None, _meaning("The consumer group that it is about.")]
    partitions: Annotated[int, _partitions("How many partitions of the user's topics it concerns.")]
    internal_partitions: Annotated[int, _partitions("How many partitions of internal topics it concerns.")]
    count: Annotated[
        int | None,
        _meaning(
            "Another count, which depends on the kind. all_well, no_partitions: brokers that are up. "
            "watermark_frozen: partitions that stand still because their leaders are silent, which "
            "brokers_silent counts. records_lost: records. controllers_lost: the quorum's voters."
        ),
    ]
    since_ms: Annotated[int | None, _time("Since when this has been the case.")]
    due_ms: Annotated[int | None, _time("When the broker will be fenced, an estimate.")]


class PartitionName(Struct, gc=False):
    """A partition."""

    topic: Annotated[str, _meaning("The topic's name.")]
    partition: Annotated[int, _meaning("The partition's number.")]


class Event(Struct, gc=False):
    """Something that changed since the previous document."""

    at_ms: Annotated[int, _time("When it was seen; for a silence, when it began.")]
    kind: Annotated[EventKind, _meaning("What happened.")]
    severity: HowBad
    text: Text
    brokers: Annotated[
        list[int],
        _meaning(
            "The ids of the brokers that it is about: the new leaders for leader_moved and leader_returned, "
            "those that left or joined for isr_shrank and isr_grew."
        ),
    ]
    controllers: Annotated[list[int], _meaning("The ids of the controllers that it is about.")]
    group: Annotated[str | None, _meaning("The consumer group that it is about.")]
    topic: Annotated[str | None, _meaning("The topic that was created, deleted or enlarged.")]
    partitions: Annotated[
        list[PartitionName],
        _meaning("The partitions that it concerns, those of the user's topics first; at most 200."),
    ]
    partition_count: Annotated[int, _partitions("How many partitions of the user's topics it concerns.")]
    internal_partition_count: Annotated[
        int, _partitions("How many partitions of internal topics it concerns.")
    ]
    records: Annotated[int | None, _records("Records lost or cut off, a lower bound.")]
    members: Annotated[int | None, _meaning("How many members the group has now.", "members")]
    cause: Annotated[FailureKind | None, _meaning("Why a broker does not answer.")]
    before: Annotated[
        str | int | None,
        _meaning(
            "The group's state, the controller's id or the number of partitions before, if it is known."
        ),
    ]
    after: Annotated[str | int | None, _meaning("The same value now.")]
    epoch: Annotated[int | None, _meaning("The new controller's epoch.")]


class Broker(Struct, gc=False):
    """A broker. One that has left the cluster stays in the list."""

    id: Annotated[int, _meaning("Its node id.")]
    host: Annotated[str, _meaning("The host that the cluster advertises for it.")]
    port: Annotated[int, _meaning("The port that the cluster advertises for it.")]
    rack: Annotated[str | None, _meaning("broker.rack; null if it has none.")]
    state: Annotated[BrokerState, _meaning("Its state, as seen from outside.")]
    since_ms: Annotated[int | None, _time("Since when it has had that state.")]
    severity: HowBad
    is_controller: Annotated[bool, _meaning("Whether it is also the active controller.")]
    answers: Annotated[bool, _meaning("Whether it answers kview.")]
    answered_ms: Annotated[int | None, _time("When it last answered kview.")]
    silent_since_ms: Annotated[
        int | None, _time("When it was sent the first request that it did not answer.")
    ]
    fencing_due_ms: Annotated[int | None, _time("When the controller will fence it, an estimate.")]
    leaders: Annotated[int, _partitions("Partitions of the user's topics that it leads.")]
    leaders_internal: Annotated[int, _partitions("Partitions of internal topics that it leads.")]
    replicas: Annotated[int, _meaning("Replicas of the user's topics that it holds.", "replicas")]
    replicas_internal: Annotated[int, _meaning("Replicas of internal topics that it holds.", "replicas")]
    in_records_per_second: Annotated[float | None, _rate("Records appended to the partitions that it leads.")]
    out_records_per_second: Annotated[
        float | None, _rate("Records read by groups from the partitions that it leads, by their commits.")
    ]
    disk_bytes: Annotated[int | None, _meaning("The size of its logs on its disks.", "bytes")]
    error: Annotated[Cause | None, _meaning("Why it does not answer.")]


class Topic(Struct, gc=False):
    """A topic."""

    topic: Annotated[str, _meaning("Its name.")]
    internal: Annotated[bool, _meaning("Whether it is one of Kafka's own.")]
    severity: HowBad
    partitions: Annotated[int, _partitions("How many partitions it has.")]
    replication: Annotated[int, _meaning("How many replicas its partitions have, at most.", "replicas")]
    min_isr: Annotated[int | None, _meaning("min.insync.replicas in force.", "replicas")]
    no_leader_partitions: Annotated[int, _partitions("Those without a leader.")]
    silent_leader_partitions: Annotated[int, _partitions("Those whose leader does not answer.")]
    frozen_partitions: Annotated[int, _partitions("Those whose high watermark stands still.")]
    under_min_isr_partitions: Annotated[int, _partitions("Those with fewer in sync than min_isr.")]
    under_replicated_partitions: Annotated[int, _partitions("Those with fewer in sync than replicas.")]
    not_preferred_partitions: Annotated[int, _partitions("Those whose leader is not their first replica.")]
    rack_safe: Annotated[bool, _meaning("Whether every partition has replicas on more than one rack.")]
    in_records_per_second: Annotated[float | None, _rate("Records appended to it.")]
    size_bytes: Annotated[int | None, _meaning("The size of all its replicas on disk.", "bytes")]


class Replica(Struct, gc=False):
    """A replica of a partition."""

    broker_id: Annotated[int, _meaning("The broker that holds it.")]
    log_end: Annotated[int | None, _meaning("The end of its own log.", "offset")]
    log_end_ms: Annotated[int | None, _time("When the broker reported it.")]
    lag_records: Annotated[int | None, _records("How far it is behind the leader; negative if it is ahead.")]
    in_isr: Annotated[bool, _meaning("Whether it is listed as in sync.")]
    silent: Annotated[bool, _meaning("Whether its broker does not answer.")]


class Partition(Struct, gc=False):
    """A partition."""

    topic: Annotated[str, _meaning("The topic's name.")]
    partition: Annotated[int, _meaning("The partition's number.")]
    internal: Annotated[bool, _meaning("Whether its topic is one of Kafka's own.")]
    status: Annotated[PartitionStatus, _meaning("The worst thing that is true of it.")]
    severity: HowBad
    leader: Annotated[int | None, _meaning("The leader's broker id; -1 if there is none.")]
    leader_epoch: Annotated[int | None, _meaning("The leader epoch: it rises with every election.")]
    min_isr: Annotated[int | None, _meaning("min.insync.replicas in force.", "replicas")]
    log_start: Annotated[int | None, _meaning("The first offset that still exists.", "offset")]
    high_watermark: Annotated[
        int | None, _meaning("The high watermark: where the log ends for consumers.", "offset")
    ]
    high_watermark_ms: Annotated[int | None, _time("When the leader said so.")]
    log_end: Annotated[int | None, _meaning("The end of the leader's own log.", "offset")]
    log_end_ms: Annotated[int | None, _time("When the leader said so.")]
    uncommitted_records: Annotated[
        int | None, _records("Records from the high watermark to the leader's log end.")
    ]
    frozen_since_ms: Annotated[int | None, _time("Since when the high watermark has stood still.")]
    leader_silent_since_ms: Annotated[int | None, _time("Since when the leader has not answered.")]
    in_records_per_second: Annotated[float | None, _rate("Records appended to it.")]
    error: Annotated[Cause | None, _meaning("The error that Kafka reports for it.")]
    isr: Annotated[list[int], _meaning("The broker ids of the replicas in sync.")]
    offline: Annotated[list[int], _meaning("The broker ids of the replicas that Kafka calls offline.")]
    replicas: Annotated[list[Replica], _meaning("Its replicas, the preferred leader first.")]


class GroupVerdict(Struct, gc=False):
    """What a group, or a group's partition, is doing, judged by offsets alone."""

    kind: Annotated[Verdict, _meaning("The verdict.")]
    text: Text
    reason: Annotated[Reason | None, _meaning("Why; null if there is nothing to say.")]
    reason_ms: Annotated[
        int | None,
        _duration("For how long, at least, the offset has not moved; for a stopped group, its lag in time."),
    ]
    reason_count: Annotated[
        int | None,
        _meaning("For the reason partitions: how many have this verdict. For fell_back: the earlier offset."),
    ]


class GroupPartition(Struct, gc=False):
    """A partition that a group has committed to or owns."""

    topic: Annotated[str, _meaning("The topic's name.")]
    partition: Annotated[int, _meaning("The partition's number.")]
    owner: Annotated[str | None, _meaning("The member id of its owner; null if not assigned to any member.")]
    committed: Annotated[int | None, _meaning("The committed offset; -1 if there is none.", "offset")]
    log_end_offset: Annotated[
        int | None, _meaning("The high watermark, as in kafka-consumer-groups.", "offset")
    ]
    lag_records: Annotated[int | None, _records("log_end_offset - committed.")]
    behind_ms: Annotated[
        int | None, _duration("Lag in time: how long ago the committed offset was the end of the log.")
    ]
    behind_is_bound: Annotated[bool, _meaning("Whether behind_ms is only a lower bound.")]
    read_records_per_second: Annotated[
        float | None, _rate("Records that the group reads from it, by its commits.")
    ]
    write_records_per_second: Annotated[float | None, _rate("Records appended to it.")]
    verdict: Annotated[GroupVerdict, _meaning("What the group is doing with it.")]
    lost_records: Annotated[int, _records("Records deleted before the group read them.")]


class Group(Struct, gc=False):
    """A consumer group."""

    group: Annotated[str, _meaning("Its name.")]
    type: Annotated[str, _meaning("Its protocol: classic, consumer, share, streams or unknown.")]
    state: Annotated[str, _meaning("Its state, as Kafka calls it.")]
    coordinator: Annotated[int | None, _meaning("The broker id of its coordinator; -1 if there is none.")]
    assignment_strategy: Annotated[str | None, _meaning("The assignor in use.")]
    members: Annotated[int | None, _meaning("Members that have joined.", "members")]
    members_active: Annotated[int, _meaning("Members that own at least one partition.", "members")]
    severity: HowBad
    verdict: Annotated[GroupVerdict, _meaning("The worst of its partitions' verdicts.")]
    lost_records: Annotated[int, _records("Records deleted before the group read them.")]
    lag_records: Annotated[int | None, _records("The sum over those of its partitions whose lag is known.")]
    lag_is_bound: Annotated[
        bool, _meaning("Whether the lag of some partition is unknown, so that lag_records is a minimum.")
    ]
    behind_ms: Annotated[int | None, _duration("The worst partition's lag in time.")]
    behind_is_bound: Annotated[bool, _meaning("Whether behind_ms is only a lower bound.")]
    read_records_per_second: Annotated[float | None, _rate("Records that it reads, by its commits.")]
    write_records_per_second: Annotated[float | None, _rate("Records appended to its partitions.")]
    age_ms: Annotated[int | None, _duration("How old these figures are.")]
    error: Annotated[Cause | None, _meaning("Why its figures are old.")]
    partitions: Annotated[list[GroupPartition], _meaning("Its partitions.")]


class Failure(Struct, gc=False):
    """A part of the observation that failed."""

    part: Annotated[Part, _meaning("Which part of the observation failed.")]
    broker_id: Annotated[int | None, _meaning("The id of the broker that was asked.")]
    cause: Annotated[Cause, _meaning("Why it failed.")]
    shown_since_ms: Annotated[int | None, _time("When the older value shown instead was received.")]


class Document(Struct, gc=False):
    """What kview sees of a cluster at one moment. An unknown value is null, never 0. Counts leave out
    internal topics unless their field says otherwise."""

    format: Annotated[int, _meaning("The version of this format.")]
    at_ms: Annotated[int, _time("When the observation ended.")]
    cluster_id: Annotated[str | None, _meaning("The cluster's id.")]
    controller_id: Annotated[int | None, _meaning("The quorum's leader; -1 if there is none.")]
    controller_epoch: Annotated[int | None, _meaning("The quorum's epoch.")]
    severity: HowBad
    findings: Annotated[
        list[Finding], _meaning("What is wrong, the worst first; a single calm finding if nothing is.")
    ]
    topic_count: Annotated[int, _meaning("How many topics there are.", "topics")]
    partition_count: Annotated[int, _partitions("How many partitions there are.")]
    under_replicated_partitions: Annotated[int, _partitions("Those with fewer in sync than replicas.")]
    offline_partitions: Annotated[int, _partitions("Those without a leader.")]
    under_min_isr_partitions: Annotated[
        int, _partitions("Those with fewer in sync than min.insync.replicas.")
    ]
    at_min_isr_partitions: Annotated[
        int, _partitions("Those with only min.insync.replicas in sync: the next loss stops acks=all.")
    ]
    requests_per_second: Annotated[
        float | None, _meaning("The requests that kview itself sends to the cluster.", "requests per second")
    ]
    in_records_per_second: Annotated[float | None, _rate("Records appended to all topics.")]
    out_records_per_second: Annotated[float | None, _rate("Records read by all groups, by their commits.")]
    brokers: Annotated[list[Broker], _meaning("The brokers, by id.")]
    topics: Annotated[list[Topic], _meaning("The topics, internal ones too, by name.")]
    partitions: Annotated[
        list[Partition], _meaning("The partitions, internal ones too, by topic and number.")
    ]
    groups: Annotated[list[Group], _meaning("The consumer groups, by name.")]
    events: Annotated[
        list[Event], _meaning("What happened since the previous document, causes before effects.")
    ]
    failures: Annotated[list[Failure], _meaning("The parts of the observation that failed.")]


def json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document. `unit` is kview's own annotation."""
    schema = msgspec.json.schema(Document)
    for named in schema["$defs"].values():  # without the line breaks and indents of the docstring
        named["description"] = " ".join(named["description"].split())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
