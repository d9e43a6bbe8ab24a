"""Which rows of facts each observation adds to a recording."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from kview.derive.facts import Facts
from kview.derive.partitions.elections import elections, last_leaders
from kview.derive.partitions.sizes import TopicSizes, topic_sizes
from kview.model.findings import Finding
from kview.model.incidents import ENDS, Incident, PhaseKind
from kview.model.snapshot import Flags, Ids, Snapshot, Strings
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.recording.columns import Array
from kview.recording.fact_schema import ELECTIONS, FINDINGS, GROUP_LAGS, INCIDENTS, SIZES
from kview.recording.group_lags import GroupLags, LagRows

MOST_FINDINGS = 50
"""The most findings written of one observation, the worst first. There are a few dozen kinds, and one finding
for each group that lost records, which its rows in `group_lags` tell, too."""

SIZES_EVERY_MS = 60_000
"""How often sizes are written while only they change. Brokers are asked every 30 s, one after the other."""

SIZES_COMPARED = (
    "partitions",
    "replicas",
    "bytes",
    "bytes_are_bound",
    "leader_bytes",
    "retention_ms",
    "retention_bytes",
    "cleanup_policy",
)
"""The columns whose change is worth a row. Log ends change all the time."""

Row = dict[str, Any]

Part = tuple[str, pa.RecordBatch]
"""The name of a part, and rows to add to it."""


class FactRows:
    """Follows a run from observation to observation, and returns the rows to write."""

    def __init__(self) -> None:
        self._previous: Snapshot | None = None
        self._sequence = -1
        self._led: Ids | None = None
        """The last leader of each partition of the previous snapshot."""
        self._lags = GroupLags()
        self._incidents: dict[str, Row] = {}
        """The last row of each incident, by id, as far as it was written in this segment or is over."""
        self._racks: dict[int, str] = {}
        self._racks_of: Strings | None = None
        self._sizes = _Sizes()

    def rows(self, sequence: int, snapshot: Snapshot, facts: Facts | None, interval_ms: int) -> list[Part]:
        """Return the rows that an observation adds, in order.

        `facts` is None if the observation was not folded. `interval_ms` is the time since the last one, 0 if
        that is not known, as over a gap.
        """
        parts: list[Part] = []
        if self._previous is not None and not _goes_on(self._previous, snapshot):
            parts += self.pending()
            self._begin_again()
        now_ms, was = snapshot.observation.ended_ms, self._sequence
        moment: Row = {"sequence": sequence, "observed_ms": now_ms}
        self._note_racks(snapshot)
        if self._previous is not None:
            parts += self._elections(self._previous, snapshot, sequence)
        self._led = last_leaders(self._led, self._previous, snapshot)
        self._previous, self._sequence = snapshot, sequence
        if facts is None:
            parts += self._written(self._lags.pending(), was)
            self._lags.forget()
        else:
            finding_rows = [
                {**moment, "interval_ms": interval_ms, **_finding_row(finding, now_ms)}
                for finding in facts.findings[:MOST_FINDINGS]
            ]
            parts += [("findings", _batch_of_rows(FINDINGS, finding_rows))] if finding_rows else []
            parts += self._incident_rows(facts, moment)
            parts += self._written(self._lags.rows(snapshot, facts, interval_ms), sequence)
        if (sizes := self._sizes.changed(snapshot)) is not None:
            parts.append(("sizes", _of_one_moment(SIZES, sizes, sequence, now_ms)))
        return parts

    def pending(self) -> list[Part]:
        """Return the rows that account for all groups until the last observation."""
        return self._written(self._lags.pending(), self._sequence)

    def begin_segment(self) -> None:
        """Note that a segment begins, which must be complete without the ones before it."""
        self._incidents = {id: row for id, row in self._incidents.items() if row["over"]}
        self._sizes.forget()

    def written_is_lost(self) -> None:
        """Note that the last rows may not have reached the disk. What matters later is written again."""
        self._incidents = {}
        self._lags.forget()
        self._sizes.forget()

    def _begin_again(self) -> None:
        """Forget what was seen of another cluster, or by another observer."""
        self._previous, self._led = None, None
        self.written_is_lost()

    def _note_racks(self, snapshot: Snapshot) -> None:
        table = snapshot.brokers
        if table.rack is not self._racks_of:
            self._racks |= dict(zip(table.id.tolist(), table.rack.tolist(), strict=True))
            self._racks_of = table.rack

    def _incident_rows(self, facts: Facts, moment: Row) -> list[Part]:
        changed, there = [], set()
        for incident in facts.incidents:
            row = incident_row(incident, self._racks)
            there.add(row["id"])
            if self._incidents.get(row["id"]) != row:
                self._incidents[row["id"]] = row
                changed.append({**moment, **row})
        self._incidents = {id: row for id, row in self._incidents.items() if id in there}
        return [("incidents", _batch_of_rows(INCIDENTS, changed))] if changed else []

    def _elections(self, then: Snapshot, now: Snapshot, sequence: int) -> Iterator[Part]:
        assert self._led is not None
        elected = elections(then, now, self._led)
        if elected is None:
            return
        table = now.partitions
        columns: dict[str, Array] = {name: getattr(elected, name) for name in elected.__struct_fields__}
        unclean = np.where(
            elected.clean | elected.unclean, elected.unclean.astype(object), np.array(None, object)
        )
        columns |= {name: getattr(table, name)[elected.row] for name in ("topic", "partition", "internal")}
        columns |= {"unclean": unclean}
        yield "elections", _of_one_moment(ELECTIONS, columns, sequence, now.observation.ended_ms)

    def _written(self, rows: Iterator[LagRows], sequence: int) -> list[Part]:
        parts = []
        for some in rows:
            same = {"sequence": np.full(len(some.observed_ms), sequence, np.int64)}
            times = {"observed_ms": some.observed_ms, "interval_ms": some.interval_ms}
            if len(some.observed_ms):
                parts.append(("group_lags", _batch_of_columns(GROUP_LAGS, {**same, **times, **some.columns})))
        return parts


class _Sizes:
    """Follows the sizes of topics."""

    def __init__(self) -> None:
        self._written: TopicSizes | None = None
        self._written_ms = UNKNOWN
        self._of: tuple[Array, ...] = ()
        """The columns of sizes and settings that were looked at last."""

    def forget(self) -> None:
        """Forget what was written, so that every topic is written again."""
        self._written, self._of = None, ()

    def changed(self, snapshot: Snapshot) -> dict[str, Array] | None:
        """Return the columns of the topics to write, None if there is none."""
        configs, table, now_ms = snapshot.topic_configs, snapshot.partitions, snapshot.observation.ended_ms
        of = (configs.name, configs.value, table.topic, snapshot.replicas.size_bytes)
        written = self._written
        new = [a is not b for a, b in zip(self._of, of, strict=False)] or [True]
        if not any(new):
            return None
        lately = 0 <= now_ms - self._written_ms < SIZES_EVERY_MS
        only_sizes = written is not None and not any(new[:-1]) and not written.bytes_are_bound.any()
        if only_sizes and lately:
            return None
        sizes = topic_sizes(snapshot)
        self._of = of
        known = (sizes.bytes != UNKNOWN) | (sizes.retention_ms != UNKNOWN)
        which = known if written is None else known & _differs(written, sizes)
        if not which.any():
            return None
        self._written, self._written_ms = sizes, now_ms
        return {f.name: getattr(sizes, f.name)[which] for f in fields(sizes)}


def _differs(before: TopicSizes, now: TopicSizes) -> Flags:
    """Return which topics are new or differ from what was written."""
    index = {name: row for row, name in enumerate(before.topic.tolist())}
    rows = np.array([index.get(name, -1) for name in now.topic.tolist()], np.int64)
    out = rows < 0
    if len(before.topic):
        for name in SIZES_COMPARED:
            out |= np.asarray(getattr(now, name) != getattr(before, name)[np.maximum(rows, 0)], np.bool_)
    return out


def _goes_on(before: Snapshot, now: Snapshot) -> bool:
    """Return whether the same observer saw the same cluster."""
    a, b = before.observation, now.observation
    return b.follows(a) and a.cluster_id == b.cluster_id


def _of_one_moment(
    schema: pa.Schema, columns: dict[str, Array], sequence: int, observed_ms: int
) -> pa.RecordBatch:
    size = len(columns["topic"])
    times = {"sequence": np.full(size, sequence), "observed_ms": np.full(size, observed_ms)}
    return _batch_of_columns(schema, {**columns, **times})


# -- facts as rows of the parts in `fact_schema`, without the columns that say when they were seen


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


def _finding_row(finding: Finding, now_ms: int) -> Row:
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


def _batch_of_rows(schema: pa.Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as a batch, with null for what a row does not have."""
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def _batch_of_columns(schema: pa.Schema, columns: Mapping[str, Array]) -> pa.RecordBatch:
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
