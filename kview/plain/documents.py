"""A view as a JSON document for other programs. Names of figures end in their unit, and unknown is null."""

import json
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from itertools import starmap

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from kview.derive.brokers.controllers import quorum_nodes
from kview.derive.brokers.silence import answering, other_apis
from kview.derive.finding_changes import HIDES_OTHERS, Change, FindingChange
from kview.derive.groups.unheard import unheard
from kview.derive.view import GroupFigures, Headline, OffsetFigures, RackSafety, Reason, Verdict, View
from kview.language import events, failures, findings, verdicts
from kview.language import incidents as incident_words
from kview.model import events as facts
from kview.model.events import Severity
from kview.model.failures import FailureKind
from kview.model.findings import Finding, OpenTransaction
from kview.model.incidents import HitPartition, Incident
from kview.model.snapshot import Strings
from kview.model.units import CONNECTOR_TASK, NO_BROKER, NO_OFFSET, UNKNOWN, UNKNOWN_ID
from kview.plain import schema, schema_findings, schema_groups, schema_hook, schema_incidents
from kview.plain.columns import Columns, Row, cause, known, optional, rate, rows, split
from kview.plain.schema_fields import Cause, PartitionName

MOST_KEY = 255
"""The most characters of a key: those that PagerDuty takes. Of longer ones the end is hashed."""


def document(view: View, cluster: str | None = None) -> str:
    """Return the view as one line of JSON, which names the `cluster` if it is one of several.

    Whatever a terminal would obey or not show is escaped, such as control characters in a group's name.
    """
    return json_line(document_of(view, cluster))


def json_line(struct: msgspec.Struct) -> str:
    """Return a struct as one line of JSON, in which every character is printable."""
    try:
        text = msgspec.json.encode(struct).decode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot represent, but JSON can
        text = json.dumps(msgspec.to_builtins(struct))
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    """Return a character as it stands in a JSON string: escaped if it is not printable."""
    return character if character.isprintable() else json.dumps(character)[1:-1]


def document_of(view: View, cluster: str | None = None) -> schema.Document:
    """Return the view as a struct, which names the `cluster` if it is one of several."""
    seen, head = view.snapshot.observation, view.headline
    brokers, features = answering(view), view.snapshot.features
    return schema.Document(
        format=schema.FORMAT,
        cluster=UNSET if cluster is None else cluster,
        at_ms=seen.ended_ms,
        cluster_id=seen.cluster_id or None,
        controller_id=known(seen.controller_id),
        controller_epoch=known(seen.controller_epoch),
        severity=head.severity,
        findings=[_finding(finding, seen.ended_ms) for finding in head.findings],
        broker_count=brokers.all,
        answering_broker_count=brokers.answer,
        topic_count=head.topics,
        partition_count=head.partitions,
        under_replicated_partitions=head.under_replicated,
        offline_partitions=head.offline,
        under_min_isr_partitions=head.under_min_isr,
        at_min_isr_partitions=head.at_min_isr,
        requests_per_second=rate(head.requests_per_second),
        in_records_per_second=rate(view.throughput.total_in),
        in_is_bound=view.throughput.in_is_bound,
        out_records_per_second=rate(view.throughput.total_out),
        out_is_bound=view.throughput.out_is_bound,
        quorum=_quorum(view),
        features=rows(schema.Feature, {"name": features.name, "level": features.level}),
        apis_differ_since_ms=known(seen.apis_differ_since_ms),
        brokers=_brokers(view),
        topics=_topics(view),
        partitions=_partitions(view),
        groups=None if unheard(seen) and not len(view.snapshot.groups) else _groups(view),
        connectors=None if seen.connectors_received_ms == UNKNOWN else _connectors(view),
        connectors_received_ms=known(seen.connectors_received_ms),
        events=[_event(event) for event in view.new_events],
        incidents=[_incident(fact, seen.ended_ms) for fact in view.incidents],
        failures=[
            schema.Failure(
                part=failure.part,
                broker_id=None if failure.broker == NO_BROKER else known(failure.broker),
                cause=Cause(failure.kind, known(failure.code), failures.of(failure.kind, failure.code)),
                shown_since_ms=known(failure.shown_since_ms),
            )
            for failure in seen.failures
        ],
    )


def hook_document(
    change: FindingChange, cluster: str, cluster_id: str, head: Headline, now_ms: int
) -> schema_hook.HookDocument:
    """Return what is sent about a finding in the cluster with this name and id, whose headline is `head` at
    `now_ms`, epoch ms."""
    found = _finding(change.finding, now_ms)
    # Who answers nobody has no id yet, and the key stays the same when it has one.
    known_as = cluster if change.finding.kind in HIDES_OTHERS else cluster_id or cluster
    key = "/".join((known_as, *change.key))
    if len(key) > MOST_KEY:
        key = f"{key[: MOST_KEY - 65]}/{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"
    text = f"{found.text}{findings.where(change.finding)}"
    if change.change is Change.ENDS:
        worst = [each for each in head.findings if each.severity in (Severity.RISK, Severity.WARN)][:1]
        now = "".join(findings.sentences(worst, now_ms))
        text = f"no longer: {text}{f'; now: {now}' if now else ''}"
    return schema_hook.HookDocument(
        format=schema.FORMAT,
        at_ms=now_ms,
        cluster=cluster,
        cluster_id=cluster_id or None,
        change=change.change,
        key=key,
        severity=head.severity,
        text=f"{cluster}: {text}",
        finding=found,
    )


def _finding(finding: Finding, now_ms: int) -> schema_findings.Finding:
    return schema_findings.Finding(
        kind=finding.kind,
        severity=finding.severity,
        text=findings.sentence(finding, now_ms),
        brokers=list(finding.brokers),
        controllers=list(finding.controllers),
        rack=finding.rack or None,
        paths=list(finding.paths),
        topics=list(finding.topics),
        group=finding.group or None,
        groups=finding.groups,
        verdict=Verdict(finding.verdict) if finding.verdict else None,
        behind_ms=known(finding.behind_ms),
        behind_is_bound=finding.behind_is_bound,
        behind_is_estimate=finding.behind_is_estimate,
        connector=finding.connector or None,
        task=known(finding.task),
        trace=finding.trace or None,
        partitions=finding.partitions,
        internal_partitions=finding.internal_partitions,
        count=known(finding.count),
        count_is_bound=finding.count_is_bound,
        rate_before=known(finding.rate_before),
        rate=known(finding.rate),
        since_ms=known(finding.since_ms),
        since_is_bound=finding.since_is_bound,
        due_ms=known(finding.due_ms),
        cause=cause(
            finding.cause.kind,
            finding.cause.code,
            failures.of_group(finding.cause.kind, finding.cause.code, finding.coordinator),
        ),
        transaction=_transaction(finding.transaction) if finding.transaction else None,
    )


def _transaction(opened: OpenTransaction) -> schema_findings.Transaction:
    return schema_findings.Transaction(
        topic=opened.topic,
        partition=opened.partition,
        start_offset=opened.start_offset,
        producer_id=known(opened.producer_id),
        producer_epoch=known(opened.producer_epoch),
        transactional_id=opened.transactional_id or None,
        coordinator=opened.coordinator if opened.coordinator >= 0 else None,
        timeout_ms=known(opened.timeout_ms),
    )


def _event(event: facts.Event) -> schema.Event:
    return schema.Event(
        at_ms=event.at_ms,
        kind=event.kind,
        severity=event.severity,
        text=events.sentence(event),
        brokers=list(event.brokers),
        controllers=list(event.controllers),
        group=event.group or None,
        topic=event.topic or None,
        topics=event.topics or None,
        connector=event.connector or None,
        task=event.task if event.connector and event.task != CONNECTOR_TASK else None,
        tasks=event.tasks or None,
        partitions=list(starmap(PartitionName, event.partitions)),
        partition_count=event.partition_count,
        internal_partition_count=event.internal_count,
        records=event.records or None,
        members=known(event.members),
        cause=None if event.cause is FailureKind.NONE else event.cause,
        before=event.before,
        after=event.after,
        transactional_id=event.transactional_id or None,
        producer_id=known(event.producer_id),
        since_ms=known(event.since_ms),
        since_is_bound=event.since_is_bound,
        epoch=event.epoch,
    )


def _kafka_error(code: int) -> Cause | None:
    return cause(FailureKind.KAFKA_ERROR, code, failures.of_partition(code)) if code else None


def _log_dirs(view: View) -> dict[int, list[schema.LogDir]]:
    """Return the log directories of each broker."""
    table, codes = view.snapshot.log_dirs, view.snapshot.log_dirs.error_code.tolist()
    columns: Columns = {
        "path": table.path,
        "error": [
            cause(FailureKind.KAFKA_ERROR if code else "", code, failures.of(FailureKind.KAFKA_ERROR, code))
            for code in codes
        ],
        "total_bytes": table.total_bytes,
        "usable_bytes": table.usable_bytes,
        "full_ms": view.dirs_full_ms,
        "received_ms": table.received_ms,
    }
    by_broker: dict[int, list[schema.LogDir]] = {}
    for broker, directory in zip(table.broker.tolist(), rows(schema.LogDir, columns), strict=True):
        by_broker.setdefault(broker, []).append(directory)
    return by_broker


def _brokers(view: View) -> list[schema.Broker]:
    table, figures = view.snapshot.brokers, view.brokers
    dirs = _log_dirs(view)
    columns: Columns = {
        "id": table.id,
        "host": table.host,
        "port": table.port,
        "rack": optional(table.rack),
        "state": table.state,
        "since_ms": table.since_ms,
        "since_is_bound": figures.since_is_bound,
        "severity": figures.severity,
        "is_controller": figures.is_controller,
        "answers": table.answers,
        "answered_ms": table.answered_ms,
        "silent_since_ms": figures.silent_since_ms,
        "unreached": figures.unreached,
        "latency_us": table.latency_us,
        "slow_since_ms": figures.slow_since_ms,
        "fencing_due_ms": figures.fencing_due_ms,
        "cannot_be_fenced": figures.cannot_be_fenced,
        "leaders": figures.leads,
        "leaders_internal": figures.leads_internal,
        "replicas": figures.replicas,
        "replicas_internal": figures.replicas_internal,
        "in_records_per_second": figures.in_rate,
        "in_is_bound": figures.in_is_bound,
        "out_records_per_second": figures.out_rate,
        "out_is_bound": figures.out_is_bound,
        "offers_other_apis": other_apis(view.snapshot),
        "disk_bytes": table.disk_bytes,
        "log_dirs": [dirs.get(broker, []) for broker in table.id.tolist()],
        "error": [
            cause(kind, UNKNOWN_ID, failures.of_broker(kind, unreached))
            for kind, unreached in zip(table.error.tolist(), figures.unreached.tolist(), strict=True)
        ],
    }
    return rows(schema.Broker, columns)


def _quorum(view: View) -> schema.Quorum | None:
    seen, ends = view.snapshot.observation, view.snapshot.quorum.log_end.tolist()
    if seen.quorum_received_ms == UNKNOWN:
        return None
    return schema.Quorum(
        leader=known(seen.controller_id),
        epoch=known(seen.controller_epoch),
        received_ms=seen.quorum_received_ms,
        nodes=[
            schema.QuorumNode(
                id=node.node,
                state=node.state,
                votes=node.votes,
                is_broker=node.is_broker,
                log_end=known(log_end),
                lag_records=known(node.behind),
                last_fetch_age_ms=known(node.quiet_ms),
            )
            for node, log_end in zip(quorum_nodes(view), ends, strict=True)
        ],
    )


def _topics(view: View) -> list[schema.Topic]:
    figures = view.topics
    columns: Columns = {
        "topic": figures.topic,
        "internal": figures.internal,
        "severity": figures.severity,
        "partitions": figures.partitions,
        "replication": figures.replication,
        "min_isr": figures.min_isr,
        "no_leader_partitions": figures.no_leader,
        "silent_leader_partitions": figures.silent_leader,
        "frozen_partitions": figures.frozen,
        "under_min_isr_partitions": figures.under_min_isr,
        "under_replicated_partitions": figures.under_replicated,
        "not_preferred_partitions": figures.not_preferred,
        "unknown_partitions": figures.unknown,
        "rack_safe": _rack_safe(figures.rack_safe),
        "not_rack_safe_partitions": figures.not_rack_safe,
        "in_records_per_second": figures.in_rate,
        "in_is_bound": figures.in_is_bound,
        "size_bytes": figures.size_bytes,
    }
    return rows(schema.Topic, columns)


def _partitions(view: View) -> list[schema.Partition]:
    table, figures = view.snapshot.partitions, view.partitions
    real = table.replicas >= 0
    replicas: Columns = {
        "broker_id": table.replicas[real],
        "log_end": figures.replica_end[real],
        "log_end_ms": figures.replica_end_ms[real],
        "lag_records": figures.replica_lag[real],
        "in_isr": figures.in_isr[real],
        "silent": figures.replica_silent[real],
        "being_added": figures.being_added[real],
        "being_removed": figures.being_removed[real],
    }
    columns: Columns = {
        "topic": table.topic,
        "partition": table.partition,
        "internal": table.internal,
        "status": figures.status,
        "severity": figures.severity,
        "leader": table.leader,
        "leader_epoch": table.leader_epoch,
        "min_isr": table.min_isr,
        "log_start": table.log_start,
        "high_watermark": table.high_watermark,
        "high_watermark_ms": table.high_watermark_ms,
        "last_stable": table.last_stable,
        "last_stable_ms": table.last_stable_ms,
        "last_stable_since_ms": table.last_stable_since_ms,
        "log_end": table.log_end,
        "log_end_ms": table.log_end_ms,
        "uncommitted_records": figures.uncommitted,
        "frozen_since_ms": figures.frozen_since_ms,
        "leader_silent_since_ms": figures.leader_silent_since_ms,
        "in_records_per_second": figures.in_rate,
        "rack_safe": _rack_safe(figures.rack_safe),
        "error": [_kafka_error(code) for code in table.error_code.tolist()],
        "isr": split(table.isr[table.isr >= 0].tolist(), (table.isr >= 0).sum(1)),
        "elr": _eligible(view),
        "offline": split(table.offline[table.offline >= 0].tolist(), (table.offline >= 0).sum(1)),
        "replicas": split(rows(schema.Replica, replicas), real.sum(1)),
        "reassignment": _reassignments(view),
    }
    return rows(schema.Partition, columns)


def _eligible(view: View) -> list[list[int] | None]:
    """Return the eligible leader replicas of each partition, None where nobody has told them."""
    table = view.snapshot.partitions
    if "elr" not in view.snapshot.observation.capabilities:
        return [None] * len(table)
    known_ids = split(table.elr[table.elr >= 0].tolist(), (table.elr >= 0).sum(1))
    unknown = (table.elr == UNKNOWN_ID).any(1).tolist()
    return [None if is_unknown else ids for ids, is_unknown in zip(known_ids, unknown, strict=True)]


def _reassignments(view: View) -> list[schema.Reassignment | None]:
    moves, moving = view.moves, view.moves.moving
    columns: Columns = {
        "records_left": moves.records_left[moving],
        "records_left_is_bound": moves.records_left_is_bound[moving],
        "bytes_left": moves.bytes_left[moving],
        "time_left_ms": moves.time_left_ms[moving],
    }
    reassignments = iter(rows(schema.Reassignment, columns))
    return [next(reassignments) if is_moved else None for is_moved in moving.tolist()]


def _connectors(view: View) -> list[schema.Connector]:
    table = view.snapshot.connectors
    columns: Columns = {
        "connector": table.connector,
        "task": table.task,
        "group": optional(table.group),
        "kind": optional(table.kind),
        "state": table.state,
        "worker": optional(table.worker),
        "trace": optional(table.trace),
        "root_cause": optional(table.root_cause),
    }
    return rows(schema.Connector, columns)


_RACK_SAFE = {RackSafety.YES: True, RackSafety.NO: False, RackSafety.CANNOT_BE: None}


def _rack_safe(answers: NDArray[np.object_]) -> list[bool | None]:
    return [_RACK_SAFE[answer] for answer in answers.tolist()]


# -- groups


def _groups(view: View) -> list[schema_groups.Group]:
    """Return the groups of a view, each with its partitions."""
    table, figures = view.snapshot.groups, view.groups
    seen = view.snapshot
    names = table.group.tolist()
    columns: Columns = {
        "group": table.group,
        "type": table.type,
        "state": table.state,
        "coordinator": table.coordinator,
        "assignment_strategy": optional(table.assignment_strategy),
        "epoch": table.epoch,
        "assignment_epoch": table.assignment_epoch,
        "topology_epoch": table.topology_epoch,
        "subtopologies": optional(table.subtopologies),
        "members": table.members,
        "members_active": figures.members_active,
        "severity": figures.severity,
        "verdict": [
            _verdict(figures, row, verdicts.of_group(figures, row), age_ms)
            for row, age_ms in enumerate(figures.verdict_age_ms.tolist())
        ],
        "verdict_age_ms": figures.verdict_age_ms,
        "lost_records": figures.lost,
        "lost_is_bound": figures.lost_is_bound,
        "lag_records": figures.lag,
        "lag_is_bound": figures.lag_is_bound,
        "behind_ms": figures.behind_ms,
        "behind_is_bound": figures.behind_is_bound,
        "behind_is_estimate": figures.behind_is_estimate,
        "read_records_per_second": figures.read_rate,
        "read_is_bound": figures.read_is_bound,
        "write_records_per_second": figures.write_rate,
        "write_is_bound": figures.write_is_bound,
        "age_ms": figures.age_ms,
        "ignored": figures.ignored,
        "error": [
            cause(kind, code, failures.of_group(kind, code, coordinator))
            for kind, code, coordinator in zip(
                table.error.tolist(), table.error_code.tolist(), table.coordinator.tolist(), strict=True
            )
        ],
        "member_list": _by_group(names, seen.members.group, _members(view)),
        "partitions": _by_group(names, seen.offsets.group, _group_partitions(view)),
        "share_partitions": _by_group(names, seen.share_offsets.group, _share_partitions(view)),
    }
    return rows(schema_groups.Group, columns)


def _by_group(names: list[str], groups: Strings, group_rows: list[Row]) -> list[list[Row]]:
    """Return the rows of each group. `groups` has the group of each of the rows."""
    by_group: dict[str, list[Row]] = {name: [] for name in names}
    for name, row in zip(groups.tolist(), group_rows, strict=True):
        if name in by_group:
            by_group[name].append(row)
    return list(by_group.values())


def _members(view: View) -> list[schema_groups.GroupMember]:
    table = view.snapshot.members
    columns: Columns = {
        "member_id": table.member_id,
        "client_id": table.client_id,
        "host": table.host,
        "rack": optional(table.rack),
        "epoch": table.epoch,
        "assigned": table.assigned,
        "target": table.target,
        "to_get": table.to_get,
        "to_give_back": table.to_give_back,
        "runs": optional(table.runs),
    }
    return rows(schema_groups.GroupMember, columns)


def _share_partitions(view: View) -> list[schema_groups.SharePartition]:
    table = view.snapshot.share_offsets
    columns: Columns = {
        "topic": table.topic,
        "partition": table.partition,
        "start_offset": table.start_offset,
        "lag_records": table.lag,
    }
    return rows(schema_groups.SharePartition, columns)


def _group_partitions(view: View) -> list[schema_groups.GroupPartition]:
    table, figures = view.snapshot.offsets, view.offsets
    columns: Columns = {
        "topic": table.topic,
        "partition": table.partition,
        "owner": optional(table.owner),
        "committed": np.where(table.committed == NO_OFFSET, UNKNOWN, table.committed),
        "log_end_offset": figures.log_end_offset,
        "log_end_offset_ms": figures.log_end_ms,
        "lag_records": figures.lag,
        "lag_is_bound": figures.lag_is_bound,
        "behind_ms": figures.behind_ms,
        "behind_is_bound": figures.behind_is_bound,
        "behind_is_estimate": figures.behind_is_estimate,
        "read_records_per_second": figures.read_rate,
        "write_records_per_second": figures.write_rate,
        "verdict": list(_offset_verdicts(figures)),
        "lost_records": figures.lost,
        "lost_is_bound": figures.lost_is_bound,
    }
    return rows(schema_groups.GroupPartition, columns)


def _offset_verdicts(figures: OffsetFigures) -> Iterator[schema_groups.GroupVerdict]:
    """Yield the verdicts. All verdicts that are ok share one struct, because there may be very many."""
    columns = figures.verdict.tolist(), figures.lost.tolist()
    for row, (verdict, lost) in enumerate(zip(*columns, strict=True)):
        if verdict == Verdict.OK and not lost:
            yield _ok()
        else:
            yield _verdict(figures, row, verdicts.of_offset(figures, row))


@cache
def _ok() -> schema_groups.GroupVerdict:
    return schema_groups.GroupVerdict(Verdict.OK, verdicts.VERDICTS[Verdict.OK], None, None, None)


def _verdict(
    figures: GroupFigures | OffsetFigures, row: int, why: str, age_ms: int = UNKNOWN
) -> schema_groups.GroupVerdict:
    kind, reason = Verdict(figures.verdict[row]), Reason(figures.reason[row])
    text = verdicts.name(kind, age_ms, int(figures.lost[row]))
    return schema_groups.GroupVerdict(
        kind=kind,
        text=f"{text}: {why}" if why else text,
        reason=None if reason is Reason.NONE else reason,
        reason_ms=known(int(figures.reason_ms[row])),
        reason_count=known(int(figures.reason_count[row])),
    )


# -- incidents


def _incident(fact: Incident, now_ms: int) -> schema_incidents.Incident:
    """Return an incident as of `now_ms`."""
    return schema_incidents.Incident(
        kind=fact.kind,
        severity=fact.severity,
        text=incident_words.sentence(fact, now_ms),
        began_ms=fact.began_ms,
        ended_ms=known(fact.ended_ms),
        brokers=list(fact.brokers),
        controllers=list(fact.controllers),
        phases=[
            schema_incidents.Phase(
                kind=phase.kind,
                at_ms=phase.at_ms,
                after_ms=phase.at_ms - fact.began_ms,
                text=incident_words.phase_text(phase, fact),
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


def _hit(partition: HitPartition) -> schema_incidents.HitPartition:
    return schema_incidents.HitPartition(
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
