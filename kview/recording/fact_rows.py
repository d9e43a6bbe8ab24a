"""Facts as rows of the parts in `fact_schema`, without the columns that say when they were seen."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kview.model.findings import Finding
from kview.model.incidents import ENDS, Incident, PhaseKind
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.recording.columns import Array

Row = dict[str, Any]

STARTED = (
    PhaseKind.FROZEN,
    PhaseKind.NO_LEADER,
    PhaseKind.FENCED,
    PhaseKind.ELECTED,
    PhaseKind.MOVES,
    PhaseKind.BACK,
    PhaseKind.ISR_FULL,
    PhaseKind.QUORUM_BACK,
)
"""The phases with a stopwatch that stops when the first of them was seen."""

COMPLETED = (PhaseKind.FENCED, PhaseKind.ELECTED, PhaseKind.MOVES, PhaseKind.BACK)
"""The phases with another one that stops when all that was to happen had happened."""


def finding_row(finding: Finding, now_ms: int) -> Row:
    """Return a finding as a row of FINDINGS, as of `now_ms`."""
    since = _known(finding.since_ms)
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "broker": finding.brokers[0] if finding.brokers else None,
        "brokers": list(finding.brokers),
        "controllers": list(finding.controllers),
        "rack": finding.rack or None,
        "group": finding.group or None,
        "verdict": finding.verdict or None,
        "partitions": finding.partitions,
        "internal_partitions": finding.internal_partitions,
        "groups": finding.groups,
        "count": _known(finding.count),
        "since_ms": since,
        "held_ms": None if since is None else max(0, now_ms - since),
    }


def incident_row(incident: Incident, rack_of: Mapping[int, str]) -> Row:
    """Return a row of INCIDENTS. `rack_of` has the racks of brokers, as far as they are known."""
    began_ms, phases = incident.began_ms, incident.phases
    last = phases[-1].kind if phases else None
    has_end = not incident.is_open and (last in ENDS or last is PhaseKind.BACK)
    return {
        "id": f"{began_ms}-{incident.kind.value}",
        "kind": incident.kind.value,
        "cause": phases[0].kind.value if phases else None,
        "severity": incident.severity.value,
        "began_ms": began_ms,
        "ended_ms": _known(incident.ended_ms),
        "over": not incident.is_open,
        "end": last.value if last is not None and has_end else None,
        "brokers": list(incident.brokers),
        "controllers": list(incident.controllers),
        "racks": sorted({rack_of[broker] for broker in incident.brokers if rack_of.get(broker)}),
        **_stopwatches(incident),
        "partitions": incident.partitions,
        "internal_partitions": incident.internal_partitions,
        "moved": incident.moved,
        "leaderless": incident.leaderless,
        "gone": _known(incident.gone),
        "gone_partitions": incident.gone_partitions,
        "waited_ms": _known(incident.waited_ms),
        "waiting": incident.is_waiting,
        "groups": incident.groups_count,
        "group_names": list(incident.groups),
    }


def _stopwatches(incident: Incident) -> Row:
    row: Row = {}
    for kind in STARTED:
        phase = incident.phase(kind)
        row[f"{kind.value}_ms"] = None if phase is None else phase.at_ms - incident.began_ms
    for kind in COMPLETED:
        phase = incident.phase(kind)
        done_ms = phase.last_ms if phase is not None and phase.is_complete else UNKNOWN
        row[f"{kind.value}_all_ms"] = None if done_ms == UNKNOWN else done_ms - incident.began_ms
    return row


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number


def batch_of_rows(schema: pa.Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as a batch, with null for what a row does not have."""
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def batch_of_columns(schema: pa.Schema, columns: Mapping[str, Array]) -> pa.RecordBatch:
    """Return columns as a batch. UNKNOWN, UNKNOWN_ID and None become null."""
    arrays = [_array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_integer(kind):
        return pa.array(values, kind)
    unknown = values == (UNKNOWN_ID if values.dtype == np.int32 else UNKNOWN)
    if not unknown.any():
        return pa.array(values, kind)
    return pa.array(np.where(unknown, 0, values), kind, mask=unknown)
