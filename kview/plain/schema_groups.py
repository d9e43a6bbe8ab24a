"""The structs of groups in a JSON document, with the meaning and the unit of every field."""

from typing import Annotated

from msgspec import Struct

from kview.derive.view import Reason, Verdict
from kview.plain.schema_fields import (
    Cause,
    HowBad,
    Text,
    duration,
    meaning,
    moment,
    rate,
    records,
)

GROUP_TYPES = (
    "classic, consumer, share or streams; connect, the workers of Kafka Connect; simple, a name under which"
    " something commits that is never a member; or unknown"
)


class GroupVerdict(Struct, gc=False):
    """What a group, or a group's partition, is doing, judged by offsets alone."""

    kind: Annotated[Verdict, meaning("The verdict.")]
    text: Text
    reason: Annotated[Reason | None, meaning("Why; null if there is nothing to say.")]
    reason_ms: Annotated[
        int | None,
        duration("For how long, at least, the offset has not moved; for a stopped group, its lag in time."),
    ]
    reason_count: Annotated[
        int | None,
        meaning(
            "Depends on the reason; null for all other reasons. partitions: how many have this verdict. "
            "no_commit: of a group, how many have an owner and records, but no commit. "
            "fell_back: the offset from which the group fell back. "
            "beyond_end: how many records the committed offset lies past the leader's log end."
        ),
    ]


class GroupPartition(Struct, gc=False):
    """A partition that a group has committed to or owns."""

    topic: Annotated[str, meaning("The topic's name.")]
    partition: Annotated[int, meaning("The partition's number.")]
    owner: Annotated[str | None, meaning("The member id of its owner; null if not assigned to any member.")]
    committed: Annotated[int | None, meaning("The committed offset; null if nothing is committed.", "offset")]
    log_end_offset: Annotated[
        int | None, meaning("The high watermark, as in kafka-consumer-groups.", "offset")
    ]
    log_end_offset_ms: Annotated[int | None, moment("When the leader said so.")]
    lag_records: Annotated[
        int | None,
        records("log_end_offset - committed; null if the commit lies beyond the leader's log end."),
    ]
    lag_is_bound: Annotated[
        bool, meaning("Whether lag_records is a minimum, because the partition's leader does not answer.")
    ]
    behind_ms: Annotated[
        int | None,
        duration(
            "Lag in time: how long ago the oldest unread record was written; null if the commit lies beyond "
            "the log end."
        ),
    ]
    behind_is_bound: Annotated[bool, meaning("Whether behind_ms is only a lower bound.")]
    behind_is_estimate: Annotated[bool, meaning("Whether behind_ms is only an estimate.")]
    read_records_per_second: Annotated[
        float | None, rate("Records that the group reads from it, by its commits.")
    ]
    write_records_per_second: Annotated[float | None, rate("Records appended to it.")]
    verdict: Annotated[GroupVerdict, meaning("What the group is doing with it.")]
    lost_records: Annotated[
        int,
        records(
            "Records deleted before the group read them. 0 again once its offset has been at or past the log "
            "start for a minute."
        ),
    ]
    lost_is_bound: Annotated[bool, meaning("Whether lost_records is only a lower bound.")]


class GroupMember(Struct, gc=False):
    """A member of a group."""

    member_id: Annotated[str, meaning("Its id, as the coordinator knows it.")]
    client_id: Annotated[str, meaning("The client's name for itself.")]
    host: Annotated[str, meaning("Where it connects from.")]
    rack: Annotated[str | None, meaning("Its rack, if it names one.")]
    epoch: Annotated[int | None, meaning("Its epoch, in consumer, share and streams groups.")]
    assigned: Annotated[
        int | None,
        meaning(
            "How many partitions it has; active tasks, or connectors and tasks, in other kinds; null if its"
            " assignment cannot be read."
        ),
    ]
    target: Annotated[int | None, meaning("How many it is to have, if the coordinator tells.")]
    to_get: Annotated[
        int | None,
        meaning(
            "How many partitions it is to have and does not have yet; in streams groups, tasks of every role."
        ),
    ]
    to_give_back: Annotated[int | None, meaning("How many it has that it is not to have, likewise.")]
    runs: Annotated[str | None, meaning("The tasks, connectors or shared partitions that it works on.")]


class SharePartition(Struct, gc=False):
    """A partition that a share group reads."""

    topic: Annotated[str, meaning("The topic's name.")]
    partition: Annotated[int, meaning("The partition's number.")]
    start_offset: Annotated[int | None, meaning("The first offset that is not settled.", "offset")]
    lag_records: Annotated[int | None, records("From there on, as the coordinator counts them.")]


class Group(Struct, gc=False):
    """A consumer group."""

    group: Annotated[str, meaning("Its name.")]
    type: Annotated[str, meaning(f"Its kind: {GROUP_TYPES}.")]
    state: Annotated[str, meaning("Its state, as Kafka calls it.")]
    coordinator: Annotated[int | None, meaning("The broker id of its coordinator; -1 if there is none.")]
    assignment_strategy: Annotated[str | None, meaning("The assignor in use.")]
    epoch: Annotated[
        int | None, meaning("Its epoch, in the protocols of consumer, share and streams groups.")
    ]
    assignment_epoch: Annotated[int | None, meaning("The epoch for which its assignment was made.")]
    topology_epoch: Annotated[
        int | None, meaning("The epoch of a streams group's topology, which a new version of it raises.")
    ]
    subtopologies: Annotated[
        str | None, meaning("What each subtopology of a streams group reads, such as 0: orders; 1: totals.")
    ]
    members: Annotated[int | None, meaning("Members that have joined.", "members")]
    members_active: Annotated[int | None, meaning("Members that own at least one partition.", "members")]
    severity: HowBad
    verdict: Annotated[
        GroupVerdict,
        meaning(
            "The worst of its partitions' verdicts; undecided instead of ok if nothing is committed on a "
            "partition that has an owner and records."
        ),
    ]
    verdict_age_ms: Annotated[
        int | None,
        duration(
            "How old the readings are that the verdict is based on, if they are out of date; null if current."
        ),
    ]
    lost_records: Annotated[
        int | None,
        records(
            "Records deleted before the group read them. 0 again once its offset has been at or past the log "
            "start for a minute. Null for share groups and the workers of Kafka Connect, which commit no "
            "offsets, and until its commits were read."
        ),
    ]
    lost_is_bound: Annotated[bool, meaning("Whether lost_records is only a lower bound.")]
    lag_records: Annotated[int | None, records("The sum over those of its partitions whose lag is known.")]
    lag_is_bound: Annotated[
        bool,
        meaning(
            "Whether lag_records is a minimum, because the lag of some partition is unknown or is itself a "
            "minimum, or nothing is committed on it, or kview is not authorized to see all topics."
        ),
    ]
    behind_ms: Annotated[int | None, duration("The worst partition's lag in time.")]
    behind_is_bound: Annotated[bool, meaning("Whether behind_ms is only a lower bound.")]
    behind_is_estimate: Annotated[bool, meaning("Whether behind_ms is only an estimate.")]
    read_records_per_second: Annotated[
        float | None, rate("Records that it reads, by its commits; null for share groups, which commit none.")
    ]
    read_is_bound: Annotated[
        bool,
        meaning("Whether read_records_per_second is a minimum: the rate of some partition is not known."),
    ]
    write_records_per_second: Annotated[float | None, rate("Records appended to its partitions.")]
    write_is_bound: Annotated[
        bool,
        meaning("Whether write_records_per_second is a minimum: the rate of some partition is not known."),
    ]
    age_ms: Annotated[int | None, duration("How old these figures are.")]
    ignored: Annotated[bool, meaning("Whether --ignore-group hides it: no finding or event is about it.")]
    error: Annotated[Cause | None, meaning("Why its figures are old.")]
    member_list: Annotated[list[GroupMember], meaning("Its members, by id.")]
    partitions: Annotated[list[GroupPartition], meaning("Its partitions.")]
    share_partitions: Annotated[list[SharePartition], meaning("A share group's: it commits nothing.")]
