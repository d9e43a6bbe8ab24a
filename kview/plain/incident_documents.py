"""Incidents as structs of a JSON document."""

from kview.language import incidents as said
from kview.model.incidents import HitPartition, Incident
from kview.plain import schema_incidents as schema
from kview.plain.columns import known


def incident(fact: Incident, now_ms: int) -> schema.Incident:
    """Return an incident as of `now_ms`."""
    return schema.Incident(
        kind=fact.kind,
        severity=fact.severity,
        text=said.sentence(fact, now_ms),
        began_ms=fact.began_ms,
        ended_ms=known(fact.ended_ms),
        brokers=list(fact.brokers),
        controllers=list(fact.controllers),
        phases=[
            schema.Phase(
                kind=phase.kind,
                at_ms=phase.at_ms,
                after_ms=phase.at_ms - fact.began_ms,
                text=said.phase_text(phase, fact),
                count=phase.count,
                total=phase.total,
                internal_count=phase.internal_count,
                internal_total=phase.internal_total,
            )
            for phase in fact.phases
        ],
        partition_count=fact.partitions,
        internal_partition_count=fact.internal_partitions,
        partitions=[_hit(partition) for partition in fact.hit],
        without_leader=fact.leaderless,
        records_gone_at_least=known(fact.gone),
        producers_waited_at_most_ms=known(fact.waited_ms),
        groups=list(fact.groups),
        group_count=fact.groups_count,
    )


def _hit(partition: HitPartition) -> schema.HitPartition:
    return schema.HitPartition(
        topic=partition.topic,
        partition=partition.partition,
        leader_before=known(partition.leader_before),
        epoch_before=known(partition.epoch_before),
        isr_before=list(partition.isr_before),
        leader_after=partition.leader_after if partition.moved else None,
        epoch_after=known(partition.epoch_after) if partition.moved else None,
        isr_least=list(partition.isr_after),
        has_leader=not partition.leaderless,
        records_gone_at_least=known(partition.gone),
    )
