"""The figures of a report: what a task of Spark's answers about some batches of roll-ups and facts.

Each is a list of rows: a row per cluster and key. Screen 6 shows the same of short windows
(`kview.derive.windows`); what both have in common is in `kview.model.sums`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kview.model.sums import PERCENTS, SUMS, Kind, Sum, nearest_rank
from kview.pipeline.kernel import facts, tables
from kview.pipeline.kernel.columns import ALL, Columns, Counted, FigureRows, Names, matching
from kview.pipeline.kernel.tables import HOTTEST_SHIFT, MINUTE_SUMS, STATES
from kview.pipeline.kernel.words import Bools, Longs


@dataclass(frozen=True, slots=True)
class Filters:
    """Which topics and groups a report is about: regular expressions, '' for all."""

    topics: str = ""
    groups: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report asks about a period.

    `known_s` is the number of known seconds of each cluster, `incident_columns` what is shown of an incident.
    Of partitions, incidents and the topics of throughput, there are `most_…` each.
    """

    filters: Filters
    known_s: Mapping[str, int]
    threshold_ms: int
    step_s: int
    incident_columns: Sequence[str]
    most_partitions: int
    most_incidents: int
    most_topics: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a table: some batches, which have rows of it, and a range of names."""

    table: str
    batches: Sequence[Counted]
    names: Names = ALL


NAMED = {
    tables.SECONDS_TABLE: "name",
    tables.MINUTES_TABLE: "topic",
    "group_lags": "group",
    "findings": "kind",
    "incidents": "",
    "elections": "topic",
    "sizes": "topic",
}
"""Table → the column whose words are in a range of names. All incidents are in one part."""


def answer(part: Part, asked: Asked) -> dict[str, FigureRows]:
    """Return the figures that come from a part of a table, by their names."""
    batches, names = part.batches, part.names
    topics, groups = asked.filters.topics, asked.filters.groups
    match part.table:
        case tables.SECONDS_TABLE:
            seconds = SecondFigures(batches, asked.filters, names)
            return {
                "sums": seconds.sums(),
                "percentiles": seconds.percentiles(asked.known_s),
                "hottest": seconds.hottest(),
                "throughput": seconds.throughput(asked.most_topics, asked.step_s),
            }
        case tables.MINUTES_TABLE:
            partitions = PartitionFigures(batches, asked.filters, names)
            return {
                "partitions": partitions.partitions(asked.most_partitions),
                "traffic": partitions.traffic(),
            }
        case "group_lags":
            return {"group_lags": facts.group_lags(batches, groups, asked.threshold_ms, names)}
        case "findings":
            return {"findings": facts.findings(batches, names)}
        case "incidents":
            return {"incidents": facts.incidents(batches, asked.incident_columns, asked.most_incidents)}
        case "elections":
            return {"elections": facts.elections(batches, topics, names)}
        case "sizes":
            return {"sizes": facts.sizes(batches, topics, names)}
        case _:
            raise ValueError(part.table)


class SecondFigures:
    """The figures that come from one-second roll-ups."""

    def __init__(self, batches: Sequence[Counted], filters: Filters, names: Names) -> None:
        rows = Columns(batches, tables.SECONDS_TABLE, "second", "name", names)
        kinds, kind_names = rows.words("kind")
        named, self._names = rows.words("name")
        kept = np.ones(len(kinds), np.bool_)
        for kind, pattern in ((Kind.TOPIC, filters.topics), (Kind.GROUP, filters.groups)):
            if pattern and kind in kind_names:
                kept &= (kinds != kind_names.index(kind)) | matching(self._names, pattern)[named]
        rows.keep(kept)
        kinds, named = kinds[kept], named[kept]
        clusters = [batch.cluster for batch in batches]
        self._clusters = sorted(set(clusters))
        owner_cluster = np.array([self._clusters.index(cluster) for cluster in clusters], np.int64)
        width = max(1, len(self._names))
        key = (owner_cluster[rows.owners] * len(kind_names) + kinds) * width + named
        keys, key_at = np.unique(key, return_inverse=True)
        self.keys = [
            (
                self._clusters[key // width // len(kind_names)],
                kind_names[key // width % len(kind_names)],
                self._names[key % width],
            )
            for key in keys.tolist()
        ]
        self._is_group = np.array([kind == Kind.GROUP for _, kind, _ in self.keys], np.bool_)
        self._order = np.lexsort((rows.times, key_at))
        key_at, times = key_at[self._order], rows.times[self._order]
        # A second in two batches is one row. An interval that began in one batch and ended in the next has a
        # share of it in both.
        self._rows = np.flatnonzero(_changes(key_at) | _changes(times))
        self.key_at, self.second = key_at[self._rows], times[self._rows]
        self._starts = np.flatnonzero(_changes(self.key_at))
        out_until_s = np.array([batch.out_until_s for batch in batches], np.int64)
        settled = rows.times < out_until_s[rows.owners]
        self._columns = {
            name: self._merged(np.where(settled, values, 0) if name == Sum.RECORDS_OUT else values)
            for name, values in ((name, rows.numbers(name)) for name in SUMS)
        }
        self._partitions = self._merged(rows.numbers("topic_partitions", -1), np.maximum)
        self._find_hottest(rows, settled)

    def _merged(self, values: Longs, how: np.ufunc = np.add) -> Longs:
        values = values[self._order]
        return values if len(self._rows) == len(values) else how.reduceat(values, self._rows)

    def _find_hottest(self, rows: Columns, settled: Bools) -> None:
        rates, topics, self._topics, partitions = rows.hottest()
        rates, places = rates[self._order], (topics * HOTTEST_SHIFT + partitions)[self._order]
        of_row = np.repeat(np.arange(len(self._rows)), np.diff(self._rows, append=len(rates)))
        counts = (rates >= 0) & (~self._is_group[self.key_at[of_row]] | settled[self._order])
        # Of the parts of a row, the one with the greatest rate counts, then the greatest place.
        rates = np.where(counts, rates, -1)
        most = np.maximum.reduceat(rates, self._rows)
        place = np.maximum.reduceat(np.where(rates == most[of_row], places, -1), self._rows)
        self._hot_row = np.flatnonzero(most >= 0)
        self._hot_rate, self._hot_place = most[self._hot_row], place[self._hot_row]

    def sums(self) -> FigureRows:
        """Return the sums of every key, seconds with partitions in each state, and what skew needs:
        `hottest_total`, `partition_sum` ÷ `partition_seconds`, and `partitions` of a topic."""
        if not len(self.keys):
            return []
        of_topic = np.array([kind == Kind.TOPIC for _, kind, _ in self.keys], np.bool_)[self.key_at]
        held_ms = np.where(of_topic, np.maximum(self._partitions, 0) * 1000, self._columns[Sum.ACTIVE_MS])
        hottest = np.zeros(len(self.second), np.int64)
        hottest[self._hot_row] = self._hot_rate
        columns: dict[str, Any] = {str(n): self._sum(values) for n, values in self._columns.items()}
        columns |= {f"{n}_s": self._sum((self._columns[Sum(f"{n}_ms")] > 0).astype(np.int64)) for n in STATES}
        columns["hottest_total"] = self._sum(hottest)
        columns["partition_sum"] = self._sum(held_ms) / 1000
        columns["partition_seconds"] = self._sum((held_ms > 0).astype(np.int64))
        most = np.maximum.reduceat(self._partitions, self._starts).tolist()
        rows = self._rows_of(columns)
        for row, partitions in zip(rows, most, strict=True):
            row["partitions"] = None if partitions < 0 else partitions
        return rows

    def _sum(self, values: Longs) -> Longs:
        return np.add.reduceat(values, self._starts)

    def _rows_of(self, columns: dict[str, Any]) -> FigureRows:
        lists = {name: values.tolist() for name, values in columns.items()}
        return [
            {"cluster": cluster, "kind": kind, "name": name} | {n: values[at] for n, values in lists.items()}
            for at, (cluster, kind, name) in enumerate(self.keys)
        ]

    def percentiles(self, known: Mapping[str, int]) -> FigureRows:
        """Return the percentiles of the records in per second, as `in_p50` … over all known seconds of a
        cluster, and the greatest second, as `in_most` and `in_most_s`. Keys without records in are left
        out."""
        records = self._columns[Sum.RECORDS_IN]
        some = np.flatnonzero((records > 0) & ~self._is_group[self.key_at])
        order = some[np.lexsort((-self.second[some], records[some], self.key_at[some]))]
        starts = np.flatnonzero(_changes(self.key_at[order]))
        ends = np.append(starts[1:], len(order))[: len(starts)]
        rows: FigureRows = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            cluster, kind, name = self.keys[self.key_at[order[start]]]
            count, known_s = end - start, known[cluster]
            row: dict[str, Any] = {"cluster": cluster, "kind": kind, "name": name}
            for percent in PERCENTS:
                # Seconds without records come first in the order, and have no rows.
                rank = nearest_rank(percent, known_s) - max(known_s - count, 0)
                is_in_rows = 0 < rank <= count
                row[f"in_p{percent}"] = int(records[order[start + rank - 1]]) if is_in_rows else 0
            most = order[end - 1]
            rows.append(row | {"in_most": int(records[most]), "in_most_s": int(self.second[most])})
        return rows

    def hottest(self) -> FigureRows:
        """Return the partition with the greatest sum of rates over the seconds in which it was the hottest,
        as `topic` and `partition`. Of equally hot partitions it is the first by name."""
        keys = self.key_at[self._hot_row]
        order = np.lexsort((self._hot_place, keys))
        keys, places, rates = keys[order], self._hot_place[order], self._hot_rate[order]
        if not len(keys):
            return []
        starts = np.flatnonzero(_changes(keys) | _changes(places))
        keys, places, rates = keys[starts], places[starts], np.add.reduceat(rates, starts)
        order = np.lexsort((places, -rates, keys))
        first = order[np.flatnonzero(_changes(keys[order]))]
        return [
            dict(zip(("cluster", "kind", "name"), self.keys[key], strict=True))
            | {"topic": self._topics[place // HOTTEST_SHIFT], "partition": place % HOTTEST_SHIFT}
            for key, place in zip(keys[first].tolist(), places[first].tolist(), strict=True)
        ]

    def throughput(self, most: int, step_s: int) -> FigureRows:
        """Return the sums of each step of `step_s`, of clusters and of the `most` topics with most
        records."""
        records = self._sum(self._columns[Sum.RECORDS_IN]).tolist() if self.keys else []
        topics = [at for at, (_, kind, _) in enumerate(self.keys) if kind == Kind.TOPIC]
        topics.sort(key=lambda at: (-records[at], self.keys[at]))
        chosen = np.array([kind == Kind.CLUSTER for _, kind, _ in self.keys], np.bool_)
        chosen[topics[:most]] = True
        there = np.flatnonzero(chosen[self.key_at]) if len(self.keys) else np.empty(0, np.int64)
        if not len(there):
            return []
        keys, steps = self.key_at[there], self.second[there] // step_s
        starts = np.flatnonzero(_changes(keys) | _changes(steps))
        names = (Sum.RECORDS_IN, Sum.CENTIBYTES_IN, Sum.RECORDS_OUT, Sum.REPLICATED, Sum.CROSS_RACK)
        sums = {str(n): np.add.reduceat(self._columns[n][there], starts).tolist() for n in names}
        return [
            dict(zip(("cluster", "kind", "name"), self.keys[key], strict=True))
            | {"at_s": step * step_s}
            | {name: values[at] for name, values in sums.items()}
            for at, (key, step) in enumerate(zip(keys[starts].tolist(), steps[starts].tolist(), strict=True))
        ]


class PartitionFigures:
    """The figures that come from one-minute roll-ups of partitions."""

    def __init__(self, batches: Sequence[Counted], filters: Filters, names: Names) -> None:
        rows = Columns(batches, tables.MINUTES_TABLE, "slot", "topic", names, 60)
        topics, self._topics = rows.words("topic")
        if filters.topics:
            kept = matching(self._topics, filters.topics)[topics] if self._topics else topics >= 0
            rows.keep(kept)
            topics = topics[kept]
        clusters = [batch.cluster for batch in batches]
        self._clusters = sorted(set(clusters))
        owner_cluster = np.array([self._clusters.index(cluster) for cluster in clusters], np.int64)
        topic_key = owner_cluster[rows.owners] * max(1, len(self._topics)) + topics
        keys, at = np.unique(topic_key * HOTTEST_SHIFT + rows.numbers("partition"), return_inverse=True)
        self._topic_key, self._partition = keys // HOTTEST_SHIFT, keys % HOTTEST_SHIFT
        self._sums = {name: _added(at, rows.numbers(name), len(keys)) for name in MINUTE_SUMS}
        self._peak = np.full(len(keys), -1, np.int64)
        np.maximum.at(self._peak, at, rows.numbers("peak", -1))

    def partitions(self, most: int) -> FigureRows:
        """Return partitions: the `most` busiest, the busiest of each of the `most` least even topics, and the
        `most` with the longest time in a bad state (`bad_ms`). `uneven` is a topic's busiest partition ÷ its
        mean one, None for the other partitions. Keys are in the order of their names."""
        records = self._sums["records_in"]
        bad_ms = sum((self._sums[f"{name}_ms"] for name in STATES), np.zeros(len(records), np.int64))
        order = np.lexsort((-records, self._topic_key))
        first = order[np.flatnonzero(_changes(self._topic_key[order]))]
        first = first[records[first] > 0]
        _, topic_at = np.unique(self._topic_key, return_inverse=True)
        counts = np.bincount(topic_at)
        means = _added(topic_at, records, len(counts)) / np.maximum(counts, 1)
        uneven = np.full(len(records), np.nan)
        uneven[first] = records[first] / means[topic_at[first]]
        bad = np.flatnonzero(bad_ms > 0)
        chosen = {
            *np.argsort(-records, kind="stable")[:most].tolist(),
            *first[np.lexsort((first, -uneven[first]))][:most].tolist(),
            *bad[np.argsort(-bad_ms[bad], kind="stable")][:most].tolist(),
        }
        return [
            self._row(at)
            | {"bad_ms": int(bad_ms[at]), "uneven": None if np.isnan(uneven[at]) else float(uneven[at])}
            for at in sorted(chosen)
        ]

    def _row(self, at: int) -> dict[str, Any]:
        peak = int(self._peak[at])
        return {
            **self._named(int(self._topic_key[at])),
            "partition": int(self._partition[at]),
            **{name: int(values[at]) for name, values in self._sums.items()},
            "peak": None if peak < 0 else peak,
        }

    def _named(self, key: int) -> dict[str, str]:
        cluster, topic = divmod(key, max(1, len(self._topics)))
        return {"cluster": self._clusters[cluster], "topic": self._topics[topic]}

    def traffic(self) -> FigureRows:
        """Return the replicated records and their estimated sizes, and the number of partitions with any
        figure, by topic."""
        starts = np.flatnonzero(_changes(self._topic_key))
        if not len(starts):
            return []
        names = (
            *("centibytes_in", "replicated", "replicated_centibytes"),
            *("cross_rack", "cross_rack_centibytes"),
        )
        sums = {name: np.add.reduceat(self._sums[name], starts).tolist() for name in names}
        counts = np.diff(starts, append=len(self._topic_key)).tolist()
        return [
            self._named(key)
            | {name: values[at] for name, values in sums.items()}
            | {"partitions": counts[at]}
            for at, key in enumerate(self._topic_key[starts].tolist())
        ]


def _changes(values: Longs) -> Bools:
    """Return where a value differs from the one before it."""
    differs = np.ones(len(values), np.bool_)
    differs[1:] = values[1:] != values[:-1]
    return differs


def _added(at: Longs, values: Longs, count: int) -> Longs:
    """Return the sums of values per index. They are exact, unlike those of numpy's `bincount`."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, at, values)
    return sums
