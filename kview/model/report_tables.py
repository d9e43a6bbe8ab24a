"""The tables of a report and their columns.

Every column is defined once, with its unit and meaning, so that the terminal, JSON, CSV, Parquet and HTML say
the same. Text columns are arrays of str, '' if there is none. Whole numbers are int64 arrays, UNKNOWN if a
figure is not known. Fractions are float64 arrays, NaN if a figure is not known.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from kview.model.units import UNKNOWN

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Unit(StrEnum):
    """The unit of a column. JSON documents contain the values, so they must not change."""

    NAME = "name"
    """A name, an id or the value of an enum, as text."""
    TIME = "epoch_ms"
    """A moment in epoch milliseconds UTC."""
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    RECORDS = "records"
    RECORDS_PER_SECOND = "records_per_second"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes_per_second"
    BYTES_PER_DAY = "bytes_per_day"
    COUNT = "count"
    ID = "id"
    """The number of a broker, a partition or an epoch."""
    SHARE = "share"
    """0 to 1."""
    RATIO = "ratio"
    MONEY = "money"
    """The currency of the price that was given."""


_TEXTS = frozenset({Unit.NAME})
_FRACTIONS = frozenset(
    {Unit.RECORDS_PER_SECOND, Unit.BYTES_PER_SECOND, Unit.BYTES_PER_DAY, Unit.SHARE, Unit.RATIO, Unit.MONEY}
)


class Column(Struct, frozen=True):
    """A column of a table: its name, unit and meaning. `is_estimate` marks figures that are not counted."""

    name: str
    unit: Unit
    meaning: str
    is_estimate: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the values are str."""
        return self.unit in _TEXTS

    @property
    def is_fraction(self) -> bool:
        """Whether the values are float64."""
        return self.unit in _FRACTIONS

    def array(self, values: Any = ()) -> Array:
        """Return `values` in the column's type; None and NaN become its unknown value."""
        if self.is_text:
            texts = np.empty(len(values), object)
            texts[:] = ["" if value is None else str(value) for value in values]
            return texts
        if self.is_fraction:
            return np.array([np.nan if value is None else value for value in values], np.float64)
        return np.array([UNKNOWN if value is None else int(value) for value in values], np.int64)


class TableName(StrEnum):
    """The tables of a report, in the order in which they are shown."""

    PERIODS = "periods"
    CLUSTERS = "clusters"
    TOPICS = "topics"
    PARTITIONS = "partitions"
    BROKERS = "brokers"
    RACKS = "racks"
    GROUPS = "groups"
    INCIDENTS = "incidents"
    ELECTIONS = "elections"
    FINDINGS = "findings"
    TRAFFIC = "traffic"
    GROWTH = "growth"
    THROUGHPUT = "throughput"


_CLUSTER = Column("cluster", Unit.NAME, "The cluster's id, or the recording's name if it has none.")

_RECORDS = (
    Column("records_in", Unit.RECORDS, "Records that arrived in known seconds."),
    Column("bytes_in", Unit.BYTES, "Their size: records × mean size of a record in the log.", True),
    Column("records_out", Unit.RECORDS, "Records that consumer groups committed as read."),
    Column("replicated", Unit.RECORDS, "Records by which followers' logs grew."),
    Column("cross_rack", Unit.RECORDS, "Those of them that went from one rack to another."),
)

_RATES = (
    Column("in_rate", Unit.RECORDS_PER_SECOND, "Records in per known second."),
    Column("in_p50", Unit.RECORDS, "Median of the records in per second, by nearest rank."),
    Column("in_p95", Unit.RECORDS, "95th percentile of the records in per second."),
    Column("in_p99", Unit.RECORDS, "99th percentile of the records in per second."),
    Column("in_most", Unit.RECORDS, "The most records in within one second."),
    Column("in_most_ms", Unit.TIME, "When that second began; the first if there are several."),
    Column("out_rate", Unit.RECORDS_PER_SECOND, "Records out per second whose commits are complete."),
)

_SKEW = (
    Column("skew", Unit.RATIO, "What came into the hottest partition ÷ the mean per partition."),
    Column("hottest_topic", Unit.NAME, "The topic of the hottest partition."),
    Column("hottest_partition", Unit.ID, "The hottest partition."),
)

_LOSSES = (
    Column("truncated", Unit.RECORDS, "Records by which log ends fell."),
    Column("records_in_gap", Unit.RECORDS, "Records in over intervals too long for a rate."),
)

_STATES = (
    Column("offline_ms", Unit.MILLISECONDS, "Partition-time without a leader."),
    Column("silent_ms", Unit.MILLISECONDS, "Partition-time whose leader did not answer."),
    Column(
        "under_min_isr_ms", Unit.MILLISECONDS, "Partition-time with fewer in-sync replicas than required."
    ),
    Column("under_replicated_ms", Unit.MILLISECONDS, "Partition-time with replicas out of sync."),
)

_AVAILABILITY = (
    *_STATES,
    Column("offline_s", Unit.SECONDS, "Seconds in which at least one partition had no leader."),
    Column("silent_s", Unit.SECONDS, "Seconds in which at least one partition's leader was silent."),
    Column("under_min_isr_s", Unit.SECONDS, "Seconds in which at least one partition was under min ISR."),
    Column(
        "under_replicated_s", Unit.SECONDS, "Seconds in which at least one partition was under-replicated."
    ),
    Column("partitions", Unit.COUNT, "Partitions, the most that were seen."),
    Column("available", Unit.SHARE, "Share of the partition-time in known seconds with a leader."),
    Column("answering", Unit.SHARE, "The same with a leader that answered."),
)

_KNOWN = (
    Column("known_s", Unit.SECONDS, "Complete seconds that the recordings cover."),
    Column("out_known_s", Unit.SECONDS, "Those seconds whose commits are complete."),
)

TABLES: Mapping[TableName, tuple[Column, ...]] = {
    TableName.PERIODS: (
        _CLUSTER,
        Column("recording", Unit.NAME, "The recording's folder."),
        Column("since_ms", Unit.TIME, "The first known second."),
        Column("until_ms", Unit.TIME, "The end of the last known second."),
        Column("known_s", Unit.SECONDS, "Complete seconds that are counted from this recording."),
        Column("gaps", Unit.COUNT, "Pauses between observations of more than a minute."),
        Column("gap_ms", Unit.MILLISECONDS, "The length of all these pauses."),
        Column("segments", Unit.COUNT, "Segments of the recording that were read."),
        Column("rolled_up", Unit.COUNT, "Those of them that this report had to roll up."),
    ),
    TableName.CLUSTERS: (
        Column("cluster", Unit.NAME, "The cluster's id; '' for all clusters together."),
        *_KNOWN,
        *_RECORDS,
        *_RATES,
        *_LOSSES,
        Column("rewound", Unit.RECORDS, "Records by which committed offsets fell."),
        *_STATES,
    ),
    TableName.TOPICS: (
        _CLUSTER,
        Column("topic", Unit.NAME, "The topic."),
        *_RECORDS,
        *_RATES,
        *_SKEW,
        *_LOSSES,
        *_AVAILABILITY,
    ),
    TableName.PARTITIONS: (
        _CLUSTER,
        Column("topic", Unit.NAME, "The topic."),
        Column("partition", Unit.ID, "The partition."),
        Column("records_in", Unit.RECORDS, "Records that arrived in known seconds."),
        Column("bytes_in", Unit.BYTES, "Their size: records × mean size of a record in the log.", True),
        Column("times_mean", Unit.RATIO, "Records in ÷ the mean of the topic's partitions."),
        Column("replicated", Unit.RECORDS, "Records by which followers' logs grew."),
        Column("cross_rack", Unit.RECORDS, "Those of them that went from one rack to another."),
        Column("peak", Unit.RECORDS, "The greatest records per second between two readings."),
        Column("peak_ms", Unit.TIME, "When that interval began, to the second."),
        *_LOSSES,
        *_STATES,
    ),
    TableName.BROKERS: (
        _CLUSTER,
        Column(
            "broker",
            Unit.NAME,
            "The broker that led the partitions. What came between the last reading of one leader and the"
            " first of the next counts for the next.",
        ),
        *_RECORDS,
        *_RATES,
        *_SKEW,
        *_STATES,
    ),
    TableName.RACKS: (
        _CLUSTER,
        Column(
            "rack", Unit.NAME, "The leader's rack, '' if it has none. See `broker` for changes of leaders."
        ),
        *_RECORDS,
        *_RATES,
        *_SKEW,
        *_STATES,
    ),
    TableName.GROUPS: (
        _CLUSTER,
        Column("group", Unit.NAME, "The consumer group."),
        Column("records_out", Unit.RECORDS, "Records that the group committed as read."),
        Column("out_rate", Unit.RECORDS_PER_SECOND, "Records out per second whose commits are complete."),
        Column("rewound", Unit.RECORDS, "Records by which its committed offsets fell."),
        Column("records_out_gap", Unit.RECORDS, "Records out over intervals too long for a rate."),
        Column("lag_most", Unit.RECORDS, "The greatest lag in records."),
        Column("lag_most_ms", Unit.TIME, "When it was first seen."),
        Column(
            "behind_most",
            Unit.MILLISECONDS,
            "The greatest lag in time, interpolated between readings of the log.",
            True,
        ),
        Column("behind_most_ms", Unit.TIME, "When it was first seen."),
        Column("above_ms", Unit.MILLISECONDS, "Time with a lag in time above the threshold of the report."),
        Column("lag_known_ms", Unit.MILLISECONDS, "Time in which the lag in time was known."),
        Column("worst_topic", Unit.NAME, "Topic of the partition that was furthest behind."),
        Column("worst_partition", Unit.ID, "Number of that partition."),
        Column("lost", Unit.RECORDS, "Records deleted before the group had read them, the most seen."),
    ),
    TableName.INCIDENTS: (
        _CLUSTER,
        Column("kind", Unit.NAME, "What was hit first: brokers, the quorum or partitions."),
        Column("cause", Unit.NAME, "Its first stage."),
        Column("began_ms", Unit.TIME, "The first sign of it."),
        Column("ended_ms", Unit.TIME, "Its end, unknown while it went on."),
        Column("end", Unit.NAME, "The stage that ended it, '' while it went on."),
        Column("brokers", Unit.NAME, "The brokers that were lost, separated by commas."),
        Column("controllers", Unit.NAME, "The controllers that were lost, separated by commas."),
        Column("racks", Unit.NAME, "The racks that the lost brokers are in, separated by commas."),
        Column("frozen_ms", Unit.MILLISECONDS, "From its beginning to the first frozen watermark."),
        Column(
            "no_leader_ms", Unit.MILLISECONDS, "From its beginning to the first partition without a leader."
        ),
        Column("fenced_ms", Unit.MILLISECONDS, "From its beginning to the first fenced broker."),
        Column("fenced_all_ms", Unit.MILLISECONDS, "From its beginning until all lost brokers were fenced."),
        Column("elected_ms", Unit.MILLISECONDS, "From its beginning to the first new leader."),
        Column(
            "elected_all_ms", Unit.MILLISECONDS, "From its beginning until every partition was led again."
        ),
        Column("moves_all_ms", Unit.MILLISECONDS, "From its beginning until every watermark moved again."),
        Column("back_all_ms", Unit.MILLISECONDS, "From its beginning until every broker answered again."),
        Column("isr_full_ms", Unit.MILLISECONDS, "From its beginning until all replicas were in sync again."),
        Column("quorum_back_ms", Unit.MILLISECONDS, "From its beginning until a controller could act again."),
        Column("partitions", Unit.COUNT, "Partitions of the user's topics that were hit."),
        Column("moved", Unit.COUNT, "Those of them that got another leader."),
        Column("leaderless", Unit.COUNT, "Partitions without a leader at the end."),
        Column("gone", Unit.RECORDS, "Records that only an old leader had; a lower bound."),
        Column("waited_ms", Unit.MILLISECONDS, "How long an acks=all producer waited; an upper bound."),
        Column("groups", Unit.COUNT, "Groups with members that had to wait."),
    ),
    TableName.ELECTIONS: (
        _CLUSTER,
        Column("topic", Unit.NAME, "The topic."),
        Column("elections", Unit.COUNT, "Leaders elected."),
        Column("lost_leader", Unit.COUNT, "Times that a partition was left without a leader."),
        Column("unclean", Unit.COUNT, "Elections known to be unclean."),
        Column("partitions", Unit.COUNT, "Partitions whose leader changed."),
        Column("first_ms", Unit.TIME, "The first change."),
        Column("last_ms", Unit.TIME, "The last change."),
    ),
    TableName.FINDINGS: (
        _CLUSTER,
        Column("kind", Unit.NAME, "What was wrong."),
        Column("severity", Unit.NAME, "The worst severity it had."),
        Column("held_ms", Unit.MILLISECONDS, "How long it was so, in all."),
        Column("share", Unit.SHARE, "The same, as a share of the time for which findings were recorded."),
        Column("first_ms", Unit.TIME, "When it was first seen."),
        Column("last_ms", Unit.TIME, "When it was last seen."),
        Column("partitions_most", Unit.COUNT, "The most partitions concerned at once."),
        Column("groups_most", Unit.COUNT, "The most groups concerned at once."),
    ),
    TableName.TRAFFIC: (
        _CLUSTER,
        Column("topic", Unit.NAME, "The topic; '' for all of the cluster."),
        Column("bytes_in", Unit.BYTES, "What producers wrote.", True),
        Column("replicated_bytes", Unit.BYTES, "What followers copied.", True),
        Column("cross_rack_bytes", Unit.BYTES, "The part of it that went from one rack to another.", True),
        Column("cross_rack_share", Unit.SHARE, "The same as a share of the records copied."),
        Column("cost", Unit.MONEY, "The price of the bytes between racks; unknown without a price.", True),
    ),
    TableName.GROWTH: (
        _CLUSTER,
        Column("topic", Unit.NAME, "The topic."),
        Column("bytes_first", Unit.BYTES, "The size of all its replicas when first known."),
        Column("bytes_last", Unit.BYTES, "The size of all its replicas when last known."),
        Column("span_ms", Unit.MILLISECONDS, "The time between these two."),
        Column("growth", Unit.BYTES_PER_DAY, "The slope between these two, per day.", True),
        Column("written", Unit.BYTES_PER_DAY, "What producers wrote, × replicas, per day.", True),
        Column("retention_ms", Unit.MILLISECONDS, "retention.ms; −1 for no limit."),
        Column("retention_bytes", Unit.BYTES, "retention.bytes per partition; −1 for no limit."),
        Column("cleanup_policy", Unit.NAME, "cleanup.policy."),
        Column("forecast_bytes", Unit.BYTES, "The size that retention lets it reach at this rate.", True),
    ),
    TableName.THROUGHPUT: (
        _CLUSTER,
        Column("at_ms", Unit.TIME, "The beginning of the step. All steps of a report are equally long."),
        Column("topic", Unit.NAME, "The topic; '' for all of the cluster's user topics."),
        Column("known_s", Unit.SECONDS, "Known seconds in the step."),
        Column("out_known_s", Unit.SECONDS, "Those seconds whose commits are complete."),
        *_RECORDS,
    ),
}
"""The columns of each table, in the order in which they are shown."""

COMPARISON = (
    _CLUSTER,
    Column("topic", Unit.NAME, "The topic; '' for the cluster."),
    Column("figure", Unit.NAME, "The column of the table `topics` or `clusters` that is compared."),
    Column("before", Unit.RATIO, "Its value in the period to compare with."),
    Column("now", Unit.RATIO, "Its value in the report's period."),
    Column("change", Unit.RATIO, "now ÷ before − 1; unknown if there was nothing before."),
)
"""The columns of `Report.comparison`. `before` and `now` have the unit of the figure."""


class Table(Struct, frozen=True):
    """A table's columns by name, all of the same length."""

    name: str
    spec: tuple[Column, ...]
    columns: Mapping[str, Array]

    def __post_init__(self) -> None:
        assert list(self.columns) == [column.name for column in self.spec], (self.name, list(self.columns))
        assert len({len(values) for values in self.columns.values()}) <= 1, self.name

    def __len__(self) -> int:
        return len(self.columns[self.spec[0].name])

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    def row(self, at: int) -> dict[str, Any]:
        """Return a row by the names of its columns, with None for what is unknown."""
        return {column.name: _known(self.columns[column.name][at]) for column in self.spec}


def _known(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, np.floating):
        return None if np.isnan(value) else float(value)
    return None if int(value) == UNKNOWN else int(value)


def table_of(name: TableName, values: Mapping[str, Any]) -> Table:
    """Return a table with these columns; one that is missing is unknown in every row."""
    return _table(name.value, TABLES[name], values)


def comparison_of(values: Mapping[str, Any]) -> Table:
    """Return the table of a comparison."""
    return _table("comparison", COMPARISON, values)


def _table(name: str, spec: tuple[Column, ...], values: Mapping[str, Any]) -> Table:
    rows = len(next(iter(values.values()))) if values else 0
    unknown = values.keys() - {column.name for column in spec}
    assert not unknown, (name, unknown)
    return Table(name, spec, {c.name: c.array(values.get(c.name, [None] * rows)) for c in spec})
