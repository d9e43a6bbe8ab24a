"""A view as a JSON document for other programs. Names of figures end in their unit, and unknown is null."""

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import starmap
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kview.derive.brokers import silence, still_heard
from kview.derive.view import GroupFigures, OffsetFigures, Reason, Verdict, View
from kview.language import events, failures, findings, verdicts
from kview.model import events as facts
from kview.model.failures import FailureKind
from kview.model.findings import Finding
from kview.model.units import NO_BROKER, PENDING, UNKNOWN, UNKNOWN_ID
from kview.plain import schema

Item = TypeVar("Item")
Row = TypeVar("Row", bound=msgspec.Struct)

Columns = Mapping[str, Any]
"""Arrays and lists of equal length, each under the name of the field that it fills."""


def document(view: View) -> str:
    """Return the view as one line of JSON."""
    return msgspec.json.encode(document_of(view)).decode()


def document_of(view: View) -> schema.Document:
    """Return the view as a struct."""
    seen, head = view.snapshot.observation, view.headline
    return schema.Document(
        format=schema.FORMAT,
        at_ms=seen.ended_ms,
        cluster_id=seen.cluster_id or None,
        controller_id=_known(seen.controller_id),
        controller_epoch=_known(seen.controller_epoch),
        severity=head.severity,
        findings=[_finding(finding, seen.ended_ms) for finding in head.findings],
        topic_count=head.topics,
        partition_count=head.partitions,
        under_replicated_partitions=head.under_replicated,
        offline_partitions=head.offline,
        under_min_isr_partitions=head.under_min_isr,
        at_min_isr_partitions=head.at_min_isr,
        requests_per_second=_rate(head.requests_per_second),
        in_records_per_second=_rate(view.throughput.total_in),
        out_records_per_second=_rate(view.throughput.total_out),
        brokers=_brokers(view),
        topics=_topics(view),
        partitions=_partitions(view),
        groups=_groups(view),
        events=[_event(event) for event in view.new_events],
        failures=[
            schema.Failure(
                part=failure.part,
                broker_id=None if failure.broker == NO_BROKER else _known(failure.broker),
                cause=schema.Cause(
                    failure.kind, _known(failure.code), failures.of(failure.kind, failure.code)
                ),
                shown_since_ms=_known(failure.shown_since_ms),
            )
            for failure in seen.failures
        ],
    )


def _finding(finding: Finding, now_ms: int) -> schema.Finding:
    return schema.Finding(
        kind=finding.kind,
        severity=finding.severity,
        text=findings.sentence(finding, now_ms),
        brokers=list(finding.brokers),
        controllers=list(finding.controllers),
        rack=finding.rack or None,
        group=finding.group or None,
        partitions=finding.partitions,
        internal_partitions=finding.internal_partitions,
        count=_known(finding.count),
        since_ms=_known(finding.since_ms),
        due_ms=_known(finding.due_ms),
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
        partitions=list(starmap(schema.PartitionName, event.partitions)),
        partition_count=event.partition_count,
        internal_partition_count=event.internal_count,
        records=event.records or None,
        members=_known(event.members),
        cause=None if event.cause is FailureKind.NONE else event.cause,
        before=event.before,
        after=event.after,
        epoch=event.epoch,
    )


def _cause(kind: str, code: int, text: str) -> schema.Cause | None:
    known = kind == FailureKind.KAFKA_ERROR and code not in (0, UNKNOWN_ID)
    return schema.Cause(FailureKind(kind), code if known else None, text) if kind else None


def _kafka_error(code: int) -> schema.Cause | None:
    return _cause(FailureKind.KAFKA_ERROR, code, failures.of_partition(code)) if code else None


def _brokers(view: View) -> list[schema.Broker]:
    table, figures = view.snapshot.brokers, view.brokers
    columns: Columns = {
        "id": table.id,
        "host": table.host,
        "port": table.port,
        "rack": _optional(table.rack),
        "state": table.state,
        "since_ms": table.since_ms,
        "severity": figures.severity,
        "is_controller": figures.is_controller,
        "answers": table.answers,
        "answered_ms": table.answered_ms,
        "silent_since_ms": figures.silent_since_ms,
        "fencing_due_ms": figures.fencing_due_ms,
        "leaders": figures.leads,
        "leaders_internal": figures.leads_internal,
        "replicas": figures.replicas,
        "replicas_internal": figures.replicas_internal,
        "in_records_per_second": figures.in_rate,
        "out_records_per_second": figures.out_rate,
        "disk_bytes": table.disk_bytes,
        "error": [
            _cause(kind, UNKNOWN_ID, failures.of_broker(kind, heard))
            for kind, heard in zip(
                table.error.tolist(), still_heard(view.snapshot, silence(table)).tolist(), strict=True
            )
        ],
    }
    return _rows(schema.Broker, columns)


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
        "rack_safe": figures.rack_safe,
        "in_records_per_second": figures.in_rate,
        "size_bytes": figures.size_bytes,
    }
    return _rows(schema.Topic, columns)


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
        "log_end": table.log_end,
        "log_end_ms": table.log_end_ms,
        "uncommitted_records": figures.uncommitted,
        "frozen_since_ms": figures.frozen_since_ms,
        "leader_silent_since_ms": figures.leader_silent_since_ms,
        "in_records_per_second": figures.in_rate,
        "error": [_kafka_error(code) for code in table.error_code.tolist()],
        "isr": _split(table.isr[table.isr >= 0].tolist(), (table.isr >= 0).sum(1)),
        "offline": _split(table.offline[table.offline >= 0].tolist(), (table.offline >= 0).sum(1)),
        "replicas": _split(_rows(schema.Replica, replicas), real.sum(1)),
    }
    return _rows(schema.Partition, columns)


def _groups(view: View) -> list[schema.Group]:
    table, figures = view.snapshot.groups, view.groups
    by_group: dict[str, list[schema.GroupPartition]] = {name: [] for name in table.group.tolist()}
    for name, row in zip(view.snapshot.offsets.group.tolist(), _group_partitions(view), strict=True):
        if name in by_group:
            by_group[name].append(row)
    columns: Columns = {
        "group": table.group,
        "type": table.type,
        "state": table.state,
        "coordinator": table.coordinator,
        "assignment_strategy": _optional(table.assignment_strategy),
        "members": table.members,
        "members_active": figures.members_active,
        "severity": figures.severity,
        "verdict": [_verdict(figures, row, verdicts.of_group(figures, row)) for row in range(len(table))],
        "lost_records": figures.lost,
        "lag_records": figures.lag,
        "lag_is_bound": figures.lag_is_bound,
        "behind_ms": figures.behind_ms,
        "behind_is_bound": figures.behind_is_bound,
        "read_records_per_second": figures.read_rate,
        "write_records_per_second": figures.write_rate,
        "age_ms": figures.age_ms,
        "error": [
            _cause(kind, code, failures.of_group(kind, code, coordinator))
            for kind, code, coordinator in zip(
                table.error.tolist(), table.error_code.tolist(), table.coordinator.tolist(), strict=True
            )
        ],
        "partitions": list(by_group.values()),
    }
    return _rows(schema.Group, columns)


def _group_partitions(view: View) -> list[schema.GroupPartition]:
    table, figures = view.snapshot.offsets, view.offsets
    columns: Columns = {
        "topic": table.topic,
        "partition": table.partition,
        "owner": _optional(table.owner),
        "committed": table.committed,
        "log_end_offset": figures.log_end_offset,
        "lag_records": figures.lag,
        "behind_ms": figures.behind_ms,
        "behind_is_bound": figures.behind_is_bound,
        "read_records_per_second": figures.read_rate,
        "write_records_per_second": figures.write_rate,
        "verdict": list(_offset_verdicts(figures)),
        "lost_records": figures.lost,
    }
    return _rows(schema.GroupPartition, columns)


def _offset_verdicts(figures: OffsetFigures) -> Iterator[schema.GroupVerdict]:
    """Yield the verdicts. All verdicts that are ok share one struct, because there may be very many."""
    columns = figures.verdict.tolist(), figures.lost.tolist()
    for row, (verdict, lost) in enumerate(zip(*columns, strict=True)):
        if verdict == Verdict.OK and not lost:
            yield _ok()
        else:
            yield _verdict(figures, row, verdicts.of_offset(figures, row))


@cache
def _ok() -> schema.GroupVerdict:
    return schema.GroupVerdict(Verdict.OK, verdicts.VERDICTS[Verdict.OK], None, None, None)


def _verdict(figures: GroupFigures | OffsetFigures, row: int, why: str) -> schema.GroupVerdict:
    kind, reason = Verdict(figures.verdict[row]), Reason(figures.reason[row])
    text = verdicts.VERDICTS[kind]
    return schema.GroupVerdict(
        kind=kind,
        text=f"{text}: {why}" if why else text,
        reason=None if reason is Reason.NONE else reason,
        reason_ms=_known(int(figures.reason_ms[row])),
        reason_count=_known(int(figures.reason_count[row])),
    )


def _rows(struct: type[Row], columns: Columns) -> list[Row]:
    """Return a struct for each row of `columns`, which are in the order of the struct's fields."""
    assert tuple(columns) == struct.__struct_fields__
    values = (column if isinstance(column, list) else _values(column) for column in columns.values())
    return list(starmap(struct, zip(*values, strict=True)))


def _values(column: NDArray[Any]) -> list[Any]:
    """Return a column's values for JSON, with None for values that are not known."""
    if column.dtype.kind in "if" and (unknown := _unknown(column)).any():
        column = column.astype(object)
        column[unknown] = None
    values: list[Any] = column.tolist()
    return values


def _unknown(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.asarray(~np.isfinite(column), np.bool_)
    return np.asarray((column <= PENDING) | (column == UNKNOWN_ID), np.bool_)


def _optional(texts: NDArray[np.object_]) -> list[str | None]:
    return [text or None for text in texts.tolist()]


def _split(items: list[Item], sizes: Iterable[int]) -> list[list[Item]]:
    """Cut `items` into consecutive lists of these sizes."""
    out, at = [], 0
    for size in sizes:
        out.append(items[at : at + size])
        at += size
    return out


def _known(value: int) -> int | None:
    return None if value in (UNKNOWN, PENDING, UNKNOWN_ID) else value


def _rate(value: float) -> float | None:
    return value if math.isfinite(value) else None
