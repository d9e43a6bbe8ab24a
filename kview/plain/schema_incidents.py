"""The structs of an incident in a JSON document."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct

from kview.model.incidents import IncidentKind, PhaseKind
from kview.plain.schema_fields import HowBad, Text, duration, in_partitions, meaning, moment, records

KINDS: Mapping[IncidentKind, str] = {
    IncidentKind.BROKERS: "the cluster lost the brokers; with a phase no_answer, kview may only have lost"
    " contact with them",
    IncidentKind.QUORUM: "no controller could act",
    IncidentKind.PARTITIONS: "partitions lost their leader or their watermark froze, although no broker was"
    " lost",
}

PHASES: Mapping[PhaseKind, str] = {
    PhaseKind.SILENT: "count brokers stopped answering",
    PhaseKind.STOPPED: "count brokers left the cluster without having been silent",
    PhaseKind.NO_ANSWER: "none of the total brokers answered kview any more",
    PhaseKind.QUORUM_LOST: "no controller could act",
    PhaseKind.NO_LEADER: "count of the total partitions that were hit had no leader",
    PhaseKind.FROZEN: "the high watermarks of count of the total partitions that were hit stood still",
    PhaseKind.FENCED: "count of the total brokers were fenced, or are no longer listed",
    PhaseKind.ELECTED: "count of the total partitions that had lost their leader are led again",
    PhaseKind.MOVES: "the watermarks of count of the total partitions that were frozen move again",
    PhaseKind.BACK: "count of the total brokers answer again",
    PhaseKind.ISR_FULL: "every replica of every partition that was hit is in sync, which ends the incident",
    PhaseKind.QUORUM_BACK: "a controller acts again, which ends the incident",
    PhaseKind.REMOVED: "the brokers are no longer part of the cluster, which ends the incident",
    PhaseKind.REPEATED: "a broker was lost again, which ends the incident and begins another one",
    PhaseKind.JOINED: "no broker was left, and an older incident has all of them, which ends this one",
}


def _told(kinds: Mapping[IncidentKind, str] | Mapping[PhaseKind, str]) -> str:
    return " ".join(f"{kind.value}: {text}." for kind, text in kinds.items())


class Phase(Struct, gc=False):
    """A stage of an incident. Counts that the kind does not have are 0."""

    kind: Annotated[PhaseKind, meaning(f"What happened. {_told(PHASES)}")]
    at_ms: Annotated[int, moment("When it was first seen.")]
    after_ms: Annotated[int, duration("The time since the incident began.")]
    text: Text
    count: Annotated[
        int, meaning("How many brokers or partitions of the user's topics; the kind says which.")
    ]
    total: Annotated[int, meaning("Out of how many.")]
    internal_count: Annotated[int, in_partitions("The same count for partitions of internal topics.")]
    internal_total: Annotated[int, in_partitions("Out of how many.")]


class HitPartition(Struct, gc=False):
    """A partition that an incident hit."""

    topic: Annotated[str, meaning("The topic's name.")]
    partition: Annotated[int, meaning("The partition's number.")]
    leader_before: Annotated[int | None, meaning("The leader's broker id before the incident; -1 if none.")]
    epoch_before: Annotated[int | None, meaning("The leader's epoch before the incident.")]
    isr_before: Annotated[list[int], meaning("The broker ids of the replicas in sync before the incident.")]
    leader_after: Annotated[
        int | None, meaning("Who won the first election within the incident. Null if there was none.")
    ]
    epoch_after: Annotated[int | None, meaning("The leader's epoch after that election.")]
    isr_least: Annotated[list[int], meaning("The smallest ISR that was seen within the incident.")]
    has_leader: Annotated[bool, meaning("Whether some broker leads it now, or did when the incident ended.")]
    records_gone_at_least: Annotated[
        int | None,
        records(
            "Records that only the old leader had, a lower bound. Null if nothing is known about them, also"
            " if kview saw none, because the leader may have written more after its last reading."
        ),
    ]


class Incident(Struct, gc=False):
    """A fault, what followed from it, and its end."""

    kind: Annotated[IncidentKind, meaning(f"What it began with. {_told(KINDS)}")]
    severity: HowBad
    text: Text
    began_ms: Annotated[int, moment("When it began, by the first sign that kview saw.")]
    ended_ms: Annotated[int | None, moment("When it ended. Null while it goes on.")]
    brokers: Annotated[list[int], meaning("The ids of the brokers that were lost.")]
    controllers: Annotated[
        list[int], meaning("The active controller that heard no majority, if there was one.")
    ]
    phases: Annotated[list[Phase], meaning("Its stages, in the order in which they were first seen.")]
    partition_count: Annotated[
        int, in_partitions("How many partitions of the user's topics were hit: led or in sync there.")
    ]
    internal_partition_count: Annotated[int, in_partitions("How many of internal topics were hit.")]
    partitions: Annotated[
        list[HitPartition],
        meaning("The partitions hit, those whose leader changed first; at most 200."),
    ]
    without_leader: Annotated[
        int,
        in_partitions(
            "How many have no leader now because of it, internal ones too, or had none at the end."
        ),
    ]
    records_gone_at_least: Annotated[
        int | None,
        records(
            "Records that only old leaders had, a lower bound. Whether they were acknowledged is not known. "
            "Null while nothing is known, and if kview saw none. 0 only if no partition lost its leader."
        ),
    ]
    producers_waited_at_most_ms: Annotated[
        int | None,
        duration(
            "The longest that an acks=all producer can have waited on a frozen partition, so far or in all. "
            "Null if no watermark froze."
        ),
    ]
    groups: Annotated[list[str], meaning("The groups with members that had to wait, by name; at most 50.")]
    group_count: Annotated[int, meaning("How many groups had to wait.", "groups")]
