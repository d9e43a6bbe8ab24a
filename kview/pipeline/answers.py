"""The tables of a report, from the rows that Spark's tasks answered."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from kview.model.report import Note, NoteKind
from kview.model.report_tables import TABLES, Table, TableName, table_of
from kview.model.sums import Kind, Sum, skew
from kview.pipeline.kernel.columns import FigureRows
from kview.pipeline.kernel.tables import STATES, peak_of
from kview.pipeline.periods import Seconds, Share

MOST_KEYS = 10_000
"""The most topics, or groups, in a table."""

GB = 10**9
MS_PER_DAY = 86_400_000


class Answers:
    """What Spark's tasks answered about the shares of some recordings, as tables. `notes` says what was left
    out."""

    def __init__(
        self, counted: Sequence[Share], figures: Mapping[str, FigureRows], step_s: int, price_per_gb: float
    ) -> None:
        self.notes: list[Note] = []
        self._counted = counted
        self._figures = figures
        self._step_s = step_s
        self._price_per_gb = price_per_gb
        self._known_s: dict[str, int] = {}
        self._out_known_s: dict[str, int] = {}
        for share in counted:
            cluster = share.cluster
            self._known_s[cluster] = self._known_s.get(cluster, 0) + share.known_s()
            self._out_known_s[cluster] = self._out_known_s.get(cluster, 0) + share.out_known_s()
        self._join(figures)
        self._note_facts()

    def tables(self, shown: Sequence[tuple[str, str]]) -> dict[TableName, Table]:
        """Return all tables, throughput of clusters and of the topics `shown`: (cluster, topic)."""
        figures = self._figures
        elections = sorted(figures["elections"], key=lambda row: (-row["elections"], row["topic"]))
        return {
            TableName.PERIODS: self._periods(),
            TableName.CLUSTERS: self._clusters(),
            TableName.TOPICS: self._keys(TableName.TOPICS, Kind.TOPIC, "topic"),
            TableName.PARTITIONS: self._partitions(figures["partitions"], figures["traffic"]),
            TableName.BROKERS: self._keys(TableName.BROKERS, Kind.BROKER, "broker"),
            TableName.RACKS: self._keys(TableName.RACKS, Kind.RACK, "rack"),
            TableName.GROUPS: self._groups(figures["group_lags"]),
            TableName.INCIDENTS: _named(TableName.INCIDENTS, figures["incidents"]),
            TableName.ELECTIONS: _named(TableName.ELECTIONS, elections),
            TableName.FINDINGS: self._findings(figures["findings"]),
            TableName.TRAFFIC: self._traffic(figures["traffic"]),
            TableName.GROWTH: self._growth(figures["sizes"]),
            TableName.THROUGHPUT: self._throughput(set(shown)),
        }

    def topics_by_records(self) -> list[tuple[str, str]]:
        """Return (cluster, topic), the busiest first."""
        return [(row["cluster"], row["name"]) for row in self._sums_of(Kind.TOPIC)]

    def _join(self, figures: Mapping[str, FigureRows]) -> None:
        """Put sums, percentiles and hottest partitions of a key into one row."""
        self._sums: dict[tuple[str, str, str], dict[str, Any]] = {}
        for row in figures["sums"]:
            zeros: dict[str, Any] = {"in_p50": 0, "in_p95": 0, "in_p99": 0, "in_most": 0, "in_most_s": None}
            self._sums[row["cluster"], row["kind"], row["name"]] = row | zeros | {"hottest": (None, None)}
        for row in figures["percentiles"]:
            self._sums[row["cluster"], row["kind"], row["name"]].update(row)
        for row in figures["hottest"]:
            self._sums[row["cluster"], row["kind"], row["name"]]["hottest"] = (row["topic"], row["partition"])

    def _sums_of(self, kind: Kind) -> FigureRows:
        rows = [row for row in self._sums.values() if row["kind"] == kind]
        column = Sum.RECORDS_OUT if kind is Kind.GROUP else Sum.RECORDS_IN
        return sorted(rows, key=lambda row: (-row[column], row["cluster"], row["name"]))

    def cut_off(self, table: TableName, rows: int, total: int) -> None:
        """Note that a table has fewer rows than there are, if it has."""
        if rows < total:
            self.notes.append(Note(NoteKind.CUT_OFF, {"table": table.value, "rows": rows, "total": total}))

    def _periods(self) -> Table:
        order = sorted(self._counted, key=lambda share: (share.cluster, share.seconds))
        return table_of(
            TableName.PERIODS,
            {
                "cluster": [share.cluster for share in order],
                "recording": [share.rolled.source.address for share in order],
                "since_ms": [share.seconds.from_s * 1000 for share in order],
                "until_ms": [share.seconds.until_s * 1000 for share in order],
                "known_s": [share.known_s() for share in order],
                "gaps": [share.gap_count for share in order],
                "gap_ms": [share.gap_ms for share in order],
                "segments": [
                    sum(len(batch.about.segments) for batch in share.rolled.batches) for share in order
                ],
                "rolled_up": [share.rolled.rolled_segments for share in order],
            },
        )

    def _figures_of(self, rows: FigureRows) -> dict[str, list[Any]]:
        """Return the columns that every kind of key has."""
        known = [self._known_s[row["cluster"]] for row in rows]
        out_known = [self._out_known_s[row["cluster"]] for row in rows]
        columns = {
            name: _column(rows, name)
            for name in (
                *("records_in", "records_out", "replicated", "cross_rack", "truncated", "records_in_gap"),
                *("in_p50", "in_p95", "in_p99", "in_most", "rewound", "records_out_gap"),
                *(f"{name}_ms" for name in STATES),
            )
        }
        columns["bytes_in"] = [row["centibytes_in"] // 100 for row in rows]
        columns["in_rate"] = [_ratio(row["records_in"], s) for row, s in zip(rows, known, strict=True)]
        columns["out_rate"] = [_ratio(row["records_out"], s) for row, s in zip(rows, out_known, strict=True)]
        columns["in_most_ms"] = [
            None if row["in_most_s"] is None else row["in_most_s"] * 1000 for row in rows
        ]
        columns["skew"] = [_skew(row) for row in rows]
        columns["hottest_topic"] = [row["hottest"][0] for row in rows]
        columns["hottest_partition"] = [row["hottest"][1] for row in rows]
        return columns

    def _keys(self, table: TableName, kind: Kind, named: str) -> Table:
        every = self._sums_of(kind)
        rows = every[:MOST_KEYS]
        self.cut_off(table, len(rows), len(every))
        columns = self._figures_of(rows)
        columns |= {"cluster": _column(rows, "cluster"), named: _column(rows, "name")}
        if kind is Kind.TOPIC:
            columns |= {f"{state}_s": _column(rows, f"{state}_s") for state in STATES}
            columns["partitions"] = _column(rows, "partitions")
            columns["available"] = [self._share_without(row, "offline_ms") for row in rows]
            columns["answering"] = [self._share_without(row, "offline_ms", "silent_ms") for row in rows]
        return _table_with(table, columns)

    def _share_without(self, row: dict[str, Any], *states: str) -> float | None:
        """Return the share of a topic's partition-time that was in none of these states."""
        if not row["partition_seconds"]:
            return None
        mean = row["partition_sum"] / row["partition_seconds"]
        whole_ms = mean * self._known_s[row["cluster"]] * 1000
        return max(0.0, 1 - sum(row[state] for state in states) / whole_ms) if whole_ms else None

    def _clusters(self) -> Table:
        rows = self._sums_of(Kind.CLUSTER)
        rows.sort(key=lambda row: str(row["cluster"]))
        columns = self._figures_of(rows)
        columns["cluster"] = _column(rows, "cluster")
        columns["known_s"] = [self._known_s[row["cluster"]] for row in rows]
        columns["out_known_s"] = [self._out_known_s[row["cluster"]] for row in rows]
        if len(rows) > 1:
            summed = {
                *("records_in", "bytes_in", "records_out", "replicated", "cross_rack", "truncated"),
                *("records_in_gap", "rewound", "known_s", "out_known_s", *(f"{name}_ms" for name in STATES)),
            }
            for name, values in columns.items():
                values.append(sum(values) if name in summed else None)
            columns["cluster"][-1] = ""
        return _table_with(TableName.CLUSTERS, columns)

    def _groups(self, lags: FigureRows) -> Table:
        of_group = {(row["cluster"], row["group"]): row for row in lags}
        every = self._sums_of(Kind.GROUP)
        known = {(row["cluster"], row["name"]) for row in every}
        every += [
            {"cluster": cluster, "name": group, "records_out": 0, "rewound": 0, "records_out_gap": 0}
            for cluster, group in sorted(of_group.keys() - known)
        ]
        rows = every[:MOST_KEYS]
        self.cut_off(TableName.GROUPS, len(rows), len(every))
        lag = [of_group.get((row["cluster"], row["name"]), {}) for row in rows]
        worst = [row_lag.get("worst") or {} for row_lag in lag]
        names = (
            *("lag_most", "lag_most_ms", "behind_most", "behind_most_ms"),
            *("above_ms", "lag_known_ms", "lost"),
        )
        return table_of(
            TableName.GROUPS,
            {
                "cluster": _column(rows, "cluster"),
                "group": _column(rows, "name"),
                "records_out": _column(rows, "records_out"),
                "out_rate": [_ratio(row["records_out"], self._out_known_s[row["cluster"]]) for row in rows],
                "rewound": _column(rows, "rewound"),
                "records_out_gap": _column(rows, "records_out_gap"),
                **{name: [row_lag.get(name) for row_lag in lag] for name in names},
                "worst_topic": [partition.get("worst_topic") for partition in worst],
                "worst_partition": [partition.get("worst_partition") for partition in worst],
            },
        )

    def _partitions(self, rows: FigureRows, topics: FigureRows) -> Table:
        rows = sorted(rows, key=lambda row: (-row["records_in"], row["topic"], row["partition"]))
        self.cut_off(TableName.PARTITIONS, len(rows), sum(_column(topics, "partitions")))
        peaks = [(None, None) if row["peak"] is None else peak_of(row["peak"]) for row in rows]
        same = ("cluster", "topic", "partition", "records_in", "replicated", "cross_rack", "truncated")
        return table_of(
            TableName.PARTITIONS,
            {
                **{name: _column(rows, name) for name in (*same, "records_in_gap")},
                **{f"{name}_ms": _column(rows, f"{name}_ms") for name in STATES},
                "bytes_in": [row["centibytes_in"] // 100 for row in rows],
                "times_mean": [self._times_mean(row) for row in rows],
                "peak": [rate for rate, _ in peaks],
                "peak_ms": [None if second is None else second * 1000 for _, second in peaks],
            },
        )

    def _times_mean(self, row: dict[str, Any]) -> float | None:
        topic = self._sums.get((row["cluster"], Kind.TOPIC, row["topic"]))
        if topic is None or not topic["records_in"] or not topic["partitions"]:
            return None
        return float(row["records_in"] * topic["partitions"] / topic["records_in"])

    def _findings(self, rows: FigureRows) -> Table:
        rows = sorted(rows, key=lambda row: (row["cluster"], -row["held_ms"], row["kind"]))
        known_ms = {cluster: seconds * 1000 for cluster, seconds in self._known_s.items()}
        columns = _columns_of(rows, TableName.FINDINGS, without=("share",))
        columns["share"] = [_ratio(row["held_ms"], known_ms[row["cluster"]]) for row in rows]
        return _table_with(TableName.FINDINGS, columns)

    def _traffic(self, rows: FigureRows) -> Table:
        names = (
            "centibytes_in",
            "replicated",
            "replicated_centibytes",
            "cross_rack",
            "cross_rack_centibytes",
        )
        rows = sorted(rows, key=lambda row: (row["cluster"], -row["cross_rack_centibytes"], row["topic"]))
        totals = []
        for cluster in sorted({row["cluster"] for row in rows}):
            mine = [row for row in rows if row["cluster"] == cluster]
            sums = {name: sum(row[name] for row in mine) for name in names}
            totals.append({"cluster": cluster, "topic": "", **sums})
        rows = [*totals, *rows[:MOST_KEYS]]
        return table_of(
            TableName.TRAFFIC,
            {
                "cluster": _column(rows, "cluster"),
                "topic": _column(rows, "topic"),
                "bytes_in": [row["centibytes_in"] // 100 for row in rows],
                "replicated_bytes": [row["replicated_centibytes"] // 100 for row in rows],
                "cross_rack_bytes": [row["cross_rack_centibytes"] // 100 for row in rows],
                "cross_rack_share": [_ratio(row["cross_rack"], row["replicated"]) for row in rows],
                "cost": [row["cross_rack_centibytes"] / 100 / GB * self._price_per_gb for row in rows],
            },
        )

    def _growth(self, rows: FigureRows) -> Table:
        rows = sorted(rows, key=lambda row: (row["cluster"], -((row["last"] or {}).get("bytes") or 0)))
        rows = rows[:MOST_KEYS]
        columns: dict[str, list[Any]] = {
            name: _column(rows, name)
            for name in ("cluster", "topic", "retention_ms", "retention_bytes", "cleanup_policy")
        }
        first, last = ([row[name] or {} for row in rows] for name in ("first", "last"))
        columns["bytes_first"] = [size.get("bytes") for size in first]
        columns["bytes_last"] = [size.get("bytes") for size in last]
        columns["span_ms"] = [
            None if not earlier else later["observed_ms"] - earlier["observed_ms"]
            for earlier, later in zip(first, last, strict=True)
        ]
        columns["growth"] = [
            _per_day(later["bytes"] - earlier["bytes"], span) if earlier and span else None
            for earlier, later, span in zip(first, last, columns["span_ms"], strict=True)
        ]
        columns["written"] = [self._written_per_day(row) for row in rows]
        columns["forecast_bytes"] = [
            _forecast(row, written) for row, written in zip(rows, columns["written"], strict=True)
        ]
        return _table_with(TableName.GROWTH, columns)

    def _written_per_day(self, row: dict[str, Any]) -> float | None:
        topic = self._sums.get((row["cluster"], Kind.TOPIC, row["topic"]))
        known_s = self._known_s[row["cluster"]]
        if topic is None or not known_s or not row["partitions"] or row["replicas"] is None:
            return None
        copies = row["replicas"] / row["partitions"]
        return _per_day(topic["centibytes_in"] / 100 * copies, known_s * 1000)

    def _throughput(self, shown: Set[tuple[str, str]]) -> Table:
        rows = [
            row
            for row in self._figures["throughput"]
            if row["kind"] == Kind.CLUSTER or (row["cluster"], row["name"]) in shown
        ]
        of_cluster = {
            cluster: [share for share in self._counted if share.cluster == cluster]
            for cluster in self._known_s
        }
        rows = sorted(rows, key=lambda row: (row["cluster"], row["name"], row["at_s"]))
        known: dict[tuple[str, int], tuple[int, int]] = {}
        for cluster, at_s in {(row["cluster"], row["at_s"]) for row in rows}:
            step = Seconds(at_s, at_s + self._step_s)
            mine = of_cluster[cluster]
            known[cluster, at_s] = (
                sum(share.known_s(step) for share in mine),
                sum(share.out_known_s(step) for share in mine),
            )
        return table_of(
            TableName.THROUGHPUT,
            {
                "cluster": _column(rows, "cluster"),
                "at_ms": [row["at_s"] * 1000 for row in rows],
                "topic": _column(rows, "name"),
                "known_s": [known[row["cluster"], row["at_s"]][0] for row in rows],
                "out_known_s": [known[row["cluster"], row["at_s"]][1] for row in rows],
                **{name: _column(rows, name) for name in ("records_in", "records_out")},
                "bytes_in": [row["centibytes_in"] // 100 for row in rows],
                **{name: _column(rows, name) for name in ("replicated", "cross_rack")},
            },
        )

    def _note_facts(self) -> None:
        for share in self._counted:
            source = share.rolled.source
            if not all((batch.folder / "findings").is_dir() for batch in share.rolled.batches):
                self.notes.append(Note(NoteKind.FACTS_INCOMPLETE, {"recording": source.name}))


# -- what is calculated from a row in which a task answered


def _column(rows: FigureRows, name: str) -> list[Any]:
    """Return the value of this name in each row."""
    return [row[name] for row in rows]


def _ratio(value: float, by: float) -> float | None:
    """Return a quotient, None if there is nothing to divide by."""
    return value / by if by else None


def _per_day(value: float, length_ms: float) -> float:
    """Return what a change over `length_ms` would be over a day."""
    return value * MS_PER_DAY / length_ms


def _skew(row: Mapping[str, Any]) -> float | None:
    """Return the skew, None if nothing came in."""
    if not (row["records_in"] > 0 and row["partition_seconds"] > 0 and row["hottest_total"] > 0):
        return None
    return float(
        skew(row["hottest_total"], row["partition_sum"], row["partition_seconds"], row["records_in"])
    )


def _forecast(row: Mapping[str, Any], written: float | None) -> int | None:
    """Return the size at which what is deleted equals what is written: the smaller of what both limits of
    retention allow. None if there is no limit, or if the log is compacted."""
    if "delete" not in (row["cleanup_policy"] or "").split(",") or row["retention_ms"] is None:
        return None
    limits = []
    if row["retention_ms"] >= 0 and written is not None:
        limits.append(written * row["retention_ms"] / MS_PER_DAY)
    if (row["retention_bytes"] or -1) >= 0 and row["replicas"] is not None:
        limits.append(float(row["retention_bytes"] * row["replicas"]))
    return int(min(limits)) if limits else None


def _columns_of(rows: FigureRows, table: TableName, without: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the columns of a table that rows have under the same names."""
    return {c.name: _column(rows, c.name) for c in TABLES[table] if c.name not in without}


def _named(table: TableName, rows: FigureRows) -> Table:
    """Return a table whose columns rows have under the same names."""
    return table_of(table, _columns_of(rows, table))


def _table_with(table: TableName, columns: Mapping[str, Any]) -> Table:
    """Return a table of these columns, without those that TABLES does not have for it."""
    names = {column.name for column in TABLES[table]}
    return table_of(table, {name: values for name, values in columns.items() if name in names})
