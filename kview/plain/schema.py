"""The structs of a JSON document, with the meaning and the unit of every field."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from kview.derive.brokers.controllers import ControllerState
from kview.derive.view import PartitionStatus
from kview.model.events import EventKind
from kview.model.failures import FailureKind, Part
from kview.model.states import BrokerState
from kview.plain.report.schema import DOCUMENT as REPORT
from kview.plain.report.schema import report_schema
from kview.plain.schema_check import CheckDocument
from kview.plain.schema_fields import (
    CLUSTER,
    Cause,
    HowBad,
    PartitionName,
    Text,
    duration,
    in_partitions,
    meaning,
    moment,
    rate,
    records,
)
from kview.plain.schema_findings import Finding
from kview.plain.schema_groups import Group
from kview.plain.schema_hook import HookDocument
from kview.plain.schema_incidents import Incident
from kview.plain.schema_records import RecordDocument

FORMAT = 2
"""The format's version, which rises when a field changes its meaning or is removed, but not for new
fields."""


class Event(Struct, gc=False):
    """Something that changed since the previous document."""

    at_ms: Annotated[int, moment("When it was seen; for a silence, when it began.")]
    kind: Annotated[EventKind, meaning("What happened.")]
    severity: HowBad
    text: Text
    brokers: Annotated[
        list[int],
        meaning(
            "The ids of the brokers that it is about: the new leaders for leader_moved and leader_returned, "
            "those that left or joined for isr_shrank and isr_grew."
        ),
    ]
    controllers: Annotated[list[int], meaning("The ids of the controllers that it is about.")]
    group: Annotated[str | None, meaning("The consumer group that it is about.")]
    topic: Annotated[
        str | None,
        meaning("The topic that was created, deleted or enlarged, or whose input changed the most."),
    ]
    topics: Annotated[
        int | None, meaning("For input_fell and input_rose: how many topics it concerns.", "topics")
    ]
    connector: Annotated[str | None, meaning("The first connector of Kafka Connect that it is about.")]
    task: Annotated[int | None, meaning("The task of that connector. None for the connector itself.")]
    tasks: Annotated[
        int | None,
        meaning("For connect_task_*: how many connectors and tasks it concerns.", "connectors and tasks"),
    ]
    partitions: Annotated[
        list[PartitionName],
        meaning("The partitions that it concerns, those of the user's topics first; at most 200."),
    ]
    partition_count: Annotated[int, in_partitions("How many partitions of the user's topics it concerns.")]
    internal_partition_count: Annotated[
        int, in_partitions("How many partitions of internal topics it concerns.")
    ]
    records: Annotated[
        int | None,
        records(
            "Records lost or cut off, a lower bound. For group_reset: how far the offsets moved in sum, "
            "negative if they moved back."
        ),
    ]
    members: Annotated[int | None, meaning("How many members the group has now.", "members")]
    cause: Annotated[FailureKind | None, meaning("Why a broker does not answer.")]
    before: Annotated[
        str | int | None,
        meaning(
            "The group's state or its coordinator's id, the controller's id, the offset, the records per "
            "second or the number of partitions before, if it is known."
        ),
    ]
    after: Annotated[
        str | int | None,
        meaning(
            "The same value now; for broker_slow and broker_not_slow, how long it takes to answer, in ms; "
            "for broker_found_down, the broker's state."
        ),
    ]
    transactional_id: Annotated[
        str | None, meaning("For transaction_*: the transactional id, if it is known.")
    ]
    producer_id: Annotated[int | None, meaning("For transaction_*: the producer's id, if it is known.")]
    since_ms: Annotated[int | None, moment("For transaction_*: when the transaction began.")]
    since_is_bound: Annotated[bool, meaning("Whether it may have begun before since_ms.")]
    epoch: Annotated[int | None, meaning("The new controller's epoch.")]


class LogDir(Struct, gc=False):
    """A log directory of a broker."""

    path: Annotated[str, meaning("Its path.")]
    error: Annotated[Cause | None, meaning("Why it is offline, such as KAFKA_STORAGE_ERROR.")]
    total_bytes: Annotated[int | None, meaning("The size of its volume; null before Kafka 3.3.", "bytes")]
    usable_bytes: Annotated[int | None, meaning("What is free on its volume.", "bytes")]
    full_ms: Annotated[
        int | None,
        moment(
            "When it will be full at the rate of the last 10 minutes, an estimate; null if it does not fill."
        ),
    ]
    received_ms: Annotated[int, moment("When the broker told this.")]


class Broker(Struct, gc=False):
    """A broker. One that the cluster no longer lists stays in the list."""

    id: Annotated[int, meaning("Its node id.")]
    host: Annotated[str, meaning("The host that the cluster advertises for it.")]
    port: Annotated[int, meaning("The port that the cluster advertises for it.")]
    rack: Annotated[str | None, meaning("broker.rack; null if it has none.")]
    state: Annotated[BrokerState, meaning("Its state, as seen from outside.")]
    since_ms: Annotated[int | None, moment("Since when it has had that state.")]
    since_is_bound: Annotated[bool, meaning("Whether it may have had that state before since_ms.")]
    severity: HowBad
    is_controller: Annotated[bool, meaning("Whether it is also the active controller.")]
    answers: Annotated[bool, meaning("Whether it answers kview. Also false once a request has waited 0.9 s.")]
    answered_ms: Annotated[int | None, moment("When it last answered kview.")]
    silent_since_ms: Annotated[
        int | None, moment("When it was sent the first request that it did not answer.")
    ]
    unreached: Annotated[
        bool,
        meaning("Whether it does not answer kview, although the rest of the cluster still hears from it."),
    ]
    latency_us: Annotated[
        int | None,
        meaning(
            "How long it takes to answer kview's small requests: the median, over the last 5 observations, "
            "of the slowest one. At least as long as the oldest unanswered request has waited.",
            "microseconds",
        ),
    ]
    slow_since_ms: Annotated[
        int | None, moment("Since when it has taken much longer to answer than its peers, or than before.")
    ]
    fencing_due_ms: Annotated[int | None, moment("When the controller will fence it, an estimate.")]
    cannot_be_fenced: Annotated[bool, meaning("Whether it is silent and no controller can fence it.")]
    leaders: Annotated[int, in_partitions("Partitions of the user's topics that it leads.")]
    leaders_internal: Annotated[int, in_partitions("Partitions of internal topics that it leads.")]
    replicas: Annotated[int, meaning("Replicas of the user's topics that it holds.", "replicas")]
    replicas_internal: Annotated[int, meaning("Replicas of internal topics that it holds.", "replicas")]
    in_records_per_second: Annotated[float | None, rate("Records appended to the partitions that it leads.")]
    in_is_bound: Annotated[
        bool, meaning("Whether in_records_per_second is a minimum: the rate of some partition is not known.")
    ]
    out_records_per_second: Annotated[
        float | None, rate("Records read by groups from the partitions that it leads, by their commits.")
    ]
    out_is_bound: Annotated[
        bool,
        meaning(
            "Whether out_records_per_second is a minimum: it leaves out share groups, which commit nothing, "
            "and partitions whose rate is not known."
        ),
    ]
    offers_other_apis: Annotated[
        bool, meaning("Whether it offers other APIs than most brokers, as in a rolling upgrade.")
    ]
    disk_bytes: Annotated[int | None, meaning("The size of its logs on its disks.", "bytes")]
    log_dirs: Annotated[
        list[LogDir],
        meaning("Its log directories; empty until it has told them, and again while it does not answer."),
    ]
    error: Annotated[Cause | None, meaning("Why it does not answer.")]


class QuorumNode(Struct, gc=False):
    """A node of the KRaft quorum: a controller, or a broker that fetches the metadata log."""

    id: Annotated[int, meaning("Its node id.")]
    state: Annotated[ControllerState, meaning("What it does, as the active controller sees it.")]
    votes: Annotated[bool, meaning("Whether it is a voter; observers are not.")]
    is_broker: Annotated[bool, meaning("Whether it is a broker (too).")]
    log_end: Annotated[int | None, meaning("The end of its metadata log.", "offset")]
    lag_records: Annotated[int | None, records("How far its metadata log is behind the active controller's.")]
    last_fetch_age_ms: Annotated[
        int | None, duration("How long ago it had fetched when the active controller told it.")
    ]


class Quorum(Struct, gc=False):
    """The KRaft quorum, as the active controller last described it."""

    leader: Annotated[int | None, meaning("The active controller's node id; -1 if there is none.")]
    epoch: Annotated[int | None, meaning("Its epoch.")]
    received_ms: Annotated[int, moment("When the active controller said so.")]
    nodes: Annotated[list[QuorumNode], meaning("Its voters and observers, by id.")]


class Feature(Struct, gc=False):
    """A finalized feature of the cluster."""

    name: Annotated[str, meaning("Its name, such as metadata.version.")]
    level: Annotated[int, meaning("Its finalized level.")]


class Topic(Struct, gc=False):
    """A topic."""

    topic: Annotated[str, meaning("Its name.")]
    internal: Annotated[bool, meaning("Whether it is one of Kafka's own.")]
    severity: HowBad
    partitions: Annotated[int, in_partitions("How many partitions it has.")]
    replication: Annotated[int, meaning("How many replicas its partitions have, at most.", "replicas")]
    min_isr: Annotated[int | None, meaning("min.insync.replicas in force.", "replicas")]
    no_leader_partitions: Annotated[int, in_partitions("Its partitions that have no leader.")]
    silent_leader_partitions: Annotated[int, in_partitions("Its partitions whose leader does not answer.")]
    frozen_partitions: Annotated[int, in_partitions("Its partitions whose high watermark stands still.")]
    under_min_isr_partitions: Annotated[
        int, in_partitions("Its partitions whose ISR is smaller than min_isr.")
    ]
    under_replicated_partitions: Annotated[
        int, in_partitions("Its partitions whose ISR is smaller than their replica list.")
    ]
    not_preferred_partitions: Annotated[
        int, in_partitions("Its partitions that are not on their preferred leader.")
    ]
    unknown_partitions: Annotated[int, in_partitions("Its partitions whose state is not known.")]
    rack_safe: Annotated[
        bool | None,
        meaning(
            "Whether the replicas of every partition are in more than one rack; null if that cannot be: a "
            "partition has one replica, there is one rack, or a replica's rack is not known."
        ),
    ]
    not_rack_safe_partitions: Annotated[
        int, in_partitions("Its partitions with all replicas in one rack, although there are several racks.")
    ]
    in_records_per_second: Annotated[float | None, rate("Records appended to it.")]
    in_is_bound: Annotated[
        bool, meaning("Whether in_records_per_second is a minimum: the rate of some partition is not known.")
    ]
    size_bytes: Annotated[int | None, meaning("The size of all its replicas on disk.", "bytes")]


class Replica(Struct, gc=False):
    """A replica of a partition."""

    broker_id: Annotated[int, meaning("The broker that holds it.")]
    log_end: Annotated[int | None, meaning("The end of its own log.", "offset")]
    log_end_ms: Annotated[int | None, moment("When the broker reported it.")]
    lag_records: Annotated[
        int | None,
        records("How far it is behind the leader; 0 if too little to measure, negative if it is ahead."),
    ]
    in_isr: Annotated[bool, meaning("Whether it is listed as in sync.")]
    silent: Annotated[bool, meaning("Whether its broker does not answer.")]
    being_added: Annotated[bool, meaning("Whether a reassignment is adding it.")]
    being_removed: Annotated[bool, meaning("Whether a reassignment is removing it.")]


class Reassignment(Struct, gc=False):
    """What is left of the reassignment of a partition's replicas."""

    records_left: Annotated[
        int | None, records("The sum of the lags of the replicas that are added and not in sync yet.")
    ]
    records_left_is_bound: Annotated[
        bool, meaning("Whether records_left is only a lower bound: the lag of some replica is not known.")
    ]
    bytes_left: Annotated[
        int | None, meaning("The same by the sizes of the logs on disk, an estimate.", "bytes")
    ]
    time_left_ms: Annotated[
        int | None, duration("How long that takes at the speed of the last minute, an estimate.")
    ]


class Partition(Struct, gc=False):
    """A partition."""

    topic: Annotated[str, meaning("The topic's name.")]
    partition: Annotated[int, meaning("The partition's number.")]
    internal: Annotated[bool, meaning("Whether its topic is one of Kafka's own.")]
    status: Annotated[
        PartitionStatus,
        meaning("The worst thing that is true of it; unknown if only kview cannot reach its leader."),
    ]
    severity: HowBad
    leader: Annotated[int | None, meaning("The leader's broker id; -1 if there is none.")]
    leader_epoch: Annotated[int | None, meaning("The leader epoch: it rises with every election.")]
    min_isr: Annotated[int | None, meaning("min.insync.replicas in force.", "replicas")]
    log_start: Annotated[int | None, meaning("The first offset that still exists.", "offset")]
    high_watermark: Annotated[
        int | None, meaning("The high watermark: where the log ends for consumers.", "offset")
    ]
    high_watermark_ms: Annotated[int | None, moment("When the leader said so.")]
    last_stable: Annotated[
        int | None,
        meaning(
            "The last stable offset: where the log ends for clients with read_committed. The high watermark,"
            " unless an open transaction holds it back.",
            "offset",
        ),
    ]
    last_stable_ms: Annotated[int | None, moment("When the leader said so.")]
    last_stable_since_ms: Annotated[
        int | None, moment("Since when a transaction has held it at this value; null if none does.")
    ]
    log_end: Annotated[int | None, meaning("The end of the leader's own log.", "offset")]
    log_end_ms: Annotated[int | None, moment("When the leader said so.")]
    uncommitted_records: Annotated[
        int | None, records("Records from the high watermark to the leader's log end.")
    ]
    frozen_since_ms: Annotated[int | None, moment("Since when the high watermark has stood still.")]
    leader_silent_since_ms: Annotated[int | None, moment("Since when the leader has not answered.")]
    in_records_per_second: Annotated[float | None, rate("Records appended to it.")]
    rack_safe: Annotated[
        bool | None,
        meaning(
            "Whether its replicas are in more than one rack; null if that cannot be: it has one replica, "
            "there is one rack, or a replica's rack is not known."
        ),
    ]
    error: Annotated[Cause | None, meaning("The error that Kafka reports for it.")]
    isr: Annotated[list[int], meaning("The broker ids of the replicas in sync.")]
    elr: Annotated[
        list[int] | None,
        meaning(
            "The eligible leader replicas: they may lead once the ISR is empty. Null if nobody has told them."
        ),
    ]
    offline: Annotated[list[int], meaning("The broker ids of the replicas that Kafka calls offline.")]
    replicas: Annotated[list[Replica], meaning("Its replicas, the preferred leader first.")]
    reassignment: Annotated[
        Reassignment | None, meaning("What is left of its reassignment; null if it is not moved.")
    ]


class Connector(Struct, gc=False):
    """A connector of Kafka Connect, or one of its tasks."""

    connector: Annotated[str, meaning("The connector's name.")]
    task: Annotated[int, meaning("The number of the task; -1 for the connector itself.")]
    group: Annotated[str | None, meaning("The group of the workers that run it, if kview found it.")]
    kind: Annotated[str | None, meaning("Whether it is a source or a sink.")]
    state: Annotated[
        str,
        meaning(
            "Its state, as Kafka Connect calls it: RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, RESTARTING."
        ),
    ]
    worker: Annotated[str | None, meaning("The id of the worker that runs it, or ran it last.")]
    trace: Annotated[
        str | None, meaning("If it failed, the first line of its trace, at most 200 characters.")
    ]
    root_cause: Annotated[str | None, meaning("The last cause that this trace names, likewise.")]


class Failure(Struct, gc=False):
    """A part of the observation that failed."""

    part: Annotated[Part, meaning("Which part of the observation failed.")]
    broker_id: Annotated[int | None, meaning("The id of the broker that was asked.")]
    cause: Annotated[Cause, meaning("Why it failed.")]
    shown_since_ms: Annotated[int | None, moment("When the older value shown instead was received.")]


class Document(Struct, gc=False, kw_only=True):
    """What kview sees of a cluster at one moment. An unknown value is null, never 0. Counts leave out
    internal topics unless their field says otherwise."""

    format: Annotated[int, meaning("The version of this format.")]
    cluster: Annotated[str, meaning(CLUSTER)] | UnsetType = UNSET
    at_ms: Annotated[int, moment("When the observation ended.")]
    cluster_id: Annotated[str | None, meaning("The cluster's id.")]
    controller_id: Annotated[int | None, meaning("The active controller's node id; -1 if there is none.")]
    controller_epoch: Annotated[int | None, meaning("The active controller's epoch.")]
    severity: HowBad
    findings: Annotated[
        list[Finding],
        meaning(
            "What is wrong, the worst first. If the cluster itself is well, a finding that says so comes "
            "before those with severity warn."
        ),
    ]
    broker_count: Annotated[int, meaning("How many brokers the cluster has.", "brokers")]
    answering_broker_count: Annotated[int, meaning("How many of them answer kview.", "brokers")]
    topic_count: Annotated[int, meaning("How many topics kview may see.", "topics")]
    partition_count: Annotated[int, in_partitions("How many partitions kview may see.")]
    under_replicated_partitions: Annotated[
        int, in_partitions("Partitions whose ISR is smaller than their replica list.")
    ]
    offline_partitions: Annotated[int, in_partitions("Partitions that have no leader.")]
    under_min_isr_partitions: Annotated[
        int, in_partitions("Partitions whose ISR is smaller than min.insync.replicas.")
    ]
    at_min_isr_partitions: Annotated[
        int,
        in_partitions(
            "Partitions whose ISR is exactly min.insync.replicas: the next loss stops acks=all writes."
        ),
    ]
    requests_per_second: Annotated[
        float | None, meaning("The requests that kview itself sends to the cluster.", "requests per second")
    ]
    in_records_per_second: Annotated[float | None, rate("Records appended to all topics.")]
    in_is_bound: Annotated[
        bool, meaning("Whether in_records_per_second is a minimum: the rate of some partition is not known.")
    ]
    out_records_per_second: Annotated[
        float | None,
        rate("Records read by groups, by their commits. Null until every coordinator has answered."),
    ]
    out_is_bound: Annotated[
        bool,
        meaning(
            "Whether out_records_per_second is a minimum: it leaves out share groups, which commit nothing, "
            "and groups and partitions whose rate is not known."
        ),
    ]
    quorum: Annotated[
        Quorum | None, meaning("The controllers and who fetches from them; null if nobody has told.")
    ]
    features: Annotated[list[Feature], meaning("The finalized features, by name; empty if nobody tells any.")]
    apis_differ_since_ms: Annotated[
        int | None, moment("Since when brokers have offered different APIs; null if they do not.")
    ]
    brokers: Annotated[list[Broker], meaning("The brokers, by id.")]
    topics: Annotated[list[Topic], meaning("The topics, internal ones too, by name.")]
    partitions: Annotated[list[Partition], meaning("The partitions, internal ones too, by topic and number.")]
    groups: Annotated[
        list[Group] | None,
        meaning(
            "The consumer groups, by name. Null if none is known and some coordinator has never answered; "
            "`failures` names it."
        ),
    ]
    connectors: Annotated[
        list[Connector] | None,
        meaning(
            "The connectors of Kafka Connect and their tasks, by name and number, as they were at "
            "connectors_received_ms. Null if nobody has told: the profile names no connect-url, or "
            "`failures` says why."
        ),
    ]
    connectors_received_ms: Annotated[int | None, moment("When Kafka Connect told the states.")]
    events: Annotated[
        list[Event], meaning("What happened since the previous document, causes before effects.")
    ]
    incidents: Annotated[
        list[Incident],
        meaning("The latest incidents, at most 20, in the order in which they began; ended ones too."),
    ]
    failures: Annotated[list[Failure], meaning("The parts of the observation that failed.")]


ENUMS: Mapping[str, str] = {
    "Severity": "How urgent an event, a finding or a verdict is. risk: data or availability is at risk now."
    " warn: one step away from that. good: something recovered. calm: no concern.",
    "FindingKind": "What is found about the cluster or its clients now.",
    "Change": "What happened to a finding.",
    "Verdict": "What a group, or a group's partition, is doing, judged from offsets, members and the"
    " partition's state.",
    "FailureKind": "Why a request was not answered. The empty string means no failure.",
    "BrokerState": "What is known about a broker from outside. up: the metadata lists it, and it answers."
    " starting: the metadata lists it, but it has not answered kview yet; after a few seconds without an"
    " answer it is silent. silent: the metadata lists it, but it does not answer kview. fenced: the"
    " controller has taken away its leaderships; `answers` says whether it still answers kview. gone: the"
    " metadata no longer lists it; it stays in the list until the user removes it.",
    "ControllerState": "What a node of the quorum does. active: it leads. follows: it votes and fetches."
    " observes: it fetches without a vote. lost: it has not fetched for longer than one that lives. unknown:"
    " nobody can tell, because no controller answers, or the active one has not heard from it (yet).",
    "PartitionStatus": "The worst thing that is true of a partition.",
    "Reason": "Why a verdict is what it is; `reason_ms` and `reason_count` are its numbers.",
    "EventKind": "What happened to the cluster or its clients, as seen from outside.",
    "IncidentKind": "What an incident began with.",
    "PhaseKind": "A stage of an incident.",
    "Level": "How bad a finding of `kview check` is. risk: data or availability is at risk now. warn: one"
    " step away from that. weakness: nothing is wrong now, but the next failure would do more harm than it"
    " must, or work is spread unevenly. Of some kinds, every finding is a weakness, of the others none.",
    "CheckKind": "What `kview check` judges.",
    "NotJudgedWhy": "Why something could not be judged. no_history: it needs more observations."
    " few_commits: records wait for a group, and too few commits were seen to tell whether it commits rarely"
    " or is stuck."
    " no_comparison: brokers take long to answer, and kview does not know how long they usually take."
    " rack_unknown: some brokers have a rack, and others have none.",
    "PayloadKind": "How a key or a value is given. text: as a string. json: as it was written, if it is an"
    " object or an array, or if its schema says so. avro and protobuf: decoded. hex: 0x and two digits for"
    " each byte, because it is not text, or could not be decoded.",
    "TimeType": "What a record's timestamp says. create: when the producer made it. append: when the leader"
    " appended it. The empty string: it has none.",
    "Part": "A part of an observation, named after what its requests ask for.",
}
"""The description of each enumeration, by its name in the schema's `$defs`."""


def json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (draft 2020-12) of all documents. `unit` is kview's own annotation."""
    documents, named = msgspec.json.schema_components(
        (Document, CheckDocument, HookDocument, RecordDocument), ref_template="#/$defs/{name}"
    )
    for name, each in named.items():
        # of structs the docstring, without its line breaks and indents; those of enums are for developers
        each["description"] = ENUMS.get(name) or " ".join(each["description"].split())
    named |= report_schema()
    documents = (*documents, {"$ref": f"#/$defs/{REPORT}"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "anyOf": list(documents),
        "$defs": named,
    }
