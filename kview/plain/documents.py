"""A view as a JSON document, for other programs: every figure with its unit in its name, what is not known
as null.

The fields are what README lists; a field keeps its name and meaning, new ones may come.
"""

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from kview.derive.view import View
from kview.language import failures
from kview.model.events import Event
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

FORMAT = 1
"""Goes up when a field changes its meaning or goes away."""

Row = dict[str, Any]


def document(view: View) -> str:
    """The view as one line of JSON."""
    seen = view.snapshot.observation
    head = view.headline
    fields: Row = {
        "format": FORMAT,
        "at_ms": seen.ended_ms,
        "cluster_id": seen.cluster_id or None,
        "controller_id": _known(seen.controller_id),
        "controller_epoch": _known(seen.controller_epoch),
        "severity": str(head.severity),
        "sentences": list(head.sentences),
        "topic_count": head.topics,
        "partition_count": head.partitions,
        "under_replicated_partitions": head.under_replicated,
        "offline_partitions": head.offline,
        "under_min_isr_partitions": head.under_min_isr,
        "at_min_isr_partitions": head.at_min_isr,
        "requests_per_second": _known(head.requests_per_second),
        "in_records_per_second": _known(view.throughput.total_in),
        "out_records_per_second": _known(view.throughput.total_out),
        "brokers": _brokers(view),
        "topics": _topics(view),
        "partitions": _partitions(view),
        "groups": _groups(view),
        "events": [_event(event) for event in view.new_events],
        "failures": [
            {
                "part": failure.part,
                "broker_id": _broker(failure.broker),
                "kind": failure.kind.value,
                "code": _known(failure.code),
                "text": failures.of(failure.kind, failure.code),
                "shown_since_ms": _known(failure.shown_since_ms),
            }
            for failure in seen.failures
        ],
    }
    return msgspec.json.encode(fields).decode()


def _brokers(view: View) -> list[Row]:
    table, figures = view.snapshot.brokers, view.brokers
    return _rows(
        {
            "id": table.id,
            "host": table.host,
            "port": table.port,
            "rack": table.rack,
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
            "error": table.error,
        }
    )


def _topics(view: View) -> list[Row]:
    figures = view.topics
    return _rows(
        {
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
    )


def _partitions(view: View) -> list[Row]:
    table, figures = view.snapshot.partitions, view.partitions
    rows = _rows(
        {
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
            "error_code": table.error_code,
        }
    )
    lists = (_ids(table.replicas), _ids(table.isr), _ids(table.offline))
    replicas = zip(
        _values(figures.replica_end),
        _values(figures.replica_end_ms),
        _values(figures.replica_lag),
        _values(figures.replica_silent),
        strict=True,
    )
    for row, ids, isr, offline, (ends, ends_ms, lags, silent) in zip(rows, *lists, replicas, strict=True):
        row["isr"] = isr
        row["offline"] = offline
        row["replicas"] = [
            {
                "broker_id": broker,
                "log_end": ends[at],
                "log_end_ms": ends_ms[at],
                "lag_records": lags[at],
                "in_isr": broker in isr,
                "silent": silent[at],
            }
            for at, broker in enumerate(ids)
        ]
    return rows


def _groups(view: View) -> list[Row]:
    table, figures = view.snapshot.groups, view.groups
    rows = _rows(
        {
            "group": table.group,
            "type": table.type,
            "state": table.state,
            "coordinator": table.coordinator,
            "assignment_strategy": table.assignment_strategy,
            "members": table.members,
            "members_active": figures.members_active,
            "severity": figures.severity,
            "verdict": figures.verdict,
            "reason": figures.reason,
            "lag_records": figures.lag,
            "lag_is_bound": figures.lag_is_bound,
            "behind_ms": figures.behind_ms,
            "behind_is_bound": figures.behind_is_bound,
            "read_records_per_second": figures.read_rate,
            "write_records_per_second": figures.write_rate,
            "age_ms": figures.age_ms,
            "error": table.error,
            "error_code": table.error_code,
        }
    )
    by_group: dict[str, list[Row]] = {row["group"]: [] for row in rows}
    for row in _offsets(view):
        by_group.setdefault(row.pop("group"), []).append(row)
    for row in rows:
        row["partitions"] = by_group[row["group"]]
    return rows


def _offsets(view: View) -> list[Row]:
    table, figures = view.snapshot.offsets, view.offsets
    return _rows(
        {
            "group": table.group,
            "topic": table.topic,
            "partition": table.partition,
            "owner": table.owner,
            "committed": table.committed,
            "log_end_offset": figures.log_end_offset,
            "lag_records": figures.lag,
            "behind_ms": figures.behind_ms,
            "behind_is_bound": figures.behind_is_bound,
            "read_records_per_second": figures.read_rate,
            "write_records_per_second": figures.write_rate,
            "verdict": figures.verdict,
            "reason": figures.reason,
            "lost_records": figures.lost,
        }
    )


def _event(event: Event) -> Row:
    return {
        "at_ms": event.at_ms,
        "kind": str(event.kind),
        "severity": str(event.severity),
        "text": event.text,
        "broker_id": _broker(event.broker),
        "group": event.group or None,
        "topic": event.topic or None,
        "partitions": [{"topic": topic, "partition": partition} for topic, partition in event.partitions],
    }


def _rows(columns: Mapping[str, NDArray[Any]]) -> list[Row]:
    names = list(columns)
    return [
        dict(zip(names, values, strict=True)) for values in zip(*map(_values, columns.values()), strict=True)
    ]


def _values(column: NDArray[Any]) -> list[Any]:
    """A column's values (a matrix's rows of values) as JSON has them, null where not known."""
    values: list[Any] = column.tolist()
    if column.dtype == np.bool_:
        return values
    if column.ndim == 2:
        return [[_known(value) for value in row] for row in values]
    return [_known(value) for value in values]


def _ids(matrix: NDArray[np.int32]) -> list[list[int]]:
    return [[broker for broker in row if broker != NO_BROKER] for row in matrix.tolist()]


def _known(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if value in (UNKNOWN, UNKNOWN_ID) else value


def _broker(broker: int) -> int | None:
    return None if broker == NO_BROKER else _known(broker)
