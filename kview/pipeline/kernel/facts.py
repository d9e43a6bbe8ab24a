"""The figures of a report that come from the recorder's facts (`kview.recording.fact_schema`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kview.pipeline.kernel.columns import ALL, Counted, FactRows, FigureRows, Names, matching
from kview.pipeline.kernel.words import Bools, Longs

SEVERITIES = ("good", "calm", "warn", "risk")
"""The worst one last."""

SIZE_SETTINGS = ("partitions", "replicas", "retention_ms", "retention_bytes", "cleanup_policy")
"""What a topic's last row of sizes says besides them."""


_LONG_MS = 1 << 60
_NONE = -(1 << 62)
"""Less than every figure."""


@dataclass(slots=True)
class _Groups:
    """Rows in groups: the order that puts each group's rows together, and where the groups begin in it."""

    order: Longs
    starts: Longs

    @classmethod
    def by(cls, *keys: Longs | Bools) -> "_Groups":
        """Group rows by the last of `keys`, and order them within a group by those before it, the most
        important one last."""
        order = np.lexsort(keys)
        sorted_keys = keys[-1][order]
        starts = (
            np.flatnonzero(np.diff(sorted_keys, prepend=sorted_keys[:1] - 1))
            if len(sorted_keys)
            else np.empty(0, np.int64)
        )
        return cls(order, starts)

    @property
    def first(self) -> Longs:
        """The first row of each group."""
        rows: Longs = self.order[self.starts]
        return rows

    @property
    def last(self) -> Longs:
        """The last row of each group."""
        rows: Longs = self.order[np.append(self.starts[1:], len(self.order)) - 1]
        return rows

    def of(self, how: np.ufunc, values: Longs) -> Longs:
        """Return the sums, the greatest or the least values of the groups."""
        reduced: Longs = how.reduceat(values[self.order], self.starts)
        return reduced


class _Facts:
    """The rows of a table of facts, with the cluster and the recording (its place) of each, and the seconds
    that count of them (epoch ms)."""

    def __init__(
        self,
        batches: Sequence[Counted],
        table: str,
        columns: Sequence[str],
        named: str,
        names: Names,
    ) -> None:
        self.rows = FactRows(batches, table, ["sequence", "observed_ms", *columns], named, names)
        self.clusters = sorted({batch.cluster for batch in batches})
        # (recording, cluster, first ms, end in ms) of each batch.
        batch_columns = [
            (
                batch.recording,
                self.clusters.index(batch.cluster),
                batch.from_s * 1000,
                batch.until_s * 1000,
            )
            for batch in batches
        ]
        self._batches = np.array(batch_columns, np.int64)
        self._find()

    def _find(self) -> None:
        self.recording, self.cluster, self.from_ms, self.until_ms = self._batches[self.rows.owners].T
        self.observed_ms = self.rows.numbers("observed_ms")
        self.sequence = self.rows.numbers("sequence")

    def keep(self, mask: Bools) -> None:
        """Leave out the rows that are not in a mask, and set the attributes to the others."""
        self.rows.keep(mask)
        self._find()

    def inside(self) -> Bools:
        """Return which rows were seen in the seconds that count."""
        is_inside: Bools = (self.observed_ms >= self.from_ms) & (self.observed_ms < self.until_ms)
        return is_inside

    def keep_matching(self, name: str, pattern: str) -> None:
        """Leave out the rows whose word in a column does not match."""
        if pattern:
            codes, words = self.rows.words(name)
            self.keep(np.append(matching(words, pattern), False)[codes])

    def keep_held(self) -> Longs:
        """Leave out the rows whose interval does not count, and return how much of it counts, in ms."""
        began_ms = self.observed_ms - self.rows.numbers("interval_ms", _LONG_MS)
        overlap = np.minimum(self.observed_ms, self.until_ms) - np.maximum(began_ms, self.from_ms)
        counted_ms: Longs = np.maximum(overlap, 0)
        held = (counted_ms > 0) | self.inside()
        self.keep(held)
        return counted_ms[held]

    def keyed(self, name: str) -> tuple[Longs, Callable[[Longs], FigureRows]]:
        """Return a key per row for its cluster and its word in a column, and what names the keys of rows."""
        codes, words = self.rows.words(name)
        named = [*words, None]

        def rows_of_keys(at: Longs) -> FigureRows:
            pairs = zip(self.cluster[at].tolist(), codes[at].tolist(), strict=True)
            return [{"cluster": self.clusters[cluster], name: named[code]} for cluster, code in pairs]

        return self.cluster * len(named) + codes, rows_of_keys


def _with(rows: FigureRows, columns: dict[str, list[Any]]) -> FigureRows:
    """Add columns to rows, in place, and return the rows."""
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


def _listed(values: Longs) -> list[int | None]:
    return [None if value == _NONE else value for value in values.tolist()]


def group_lags(batches: Sequence[Counted], pattern: str, threshold_ms: int, names: Names) -> FigureRows:
    """Return each group's greatest lags and when they were first seen, the time above the threshold and the
    time in which the lag in time was known."""
    columns = ("interval_ms", "group", "lag", "behind_ms", "lost", "worst_topic", "worst_partition")
    facts = _Facts(batches, "group_lags", columns, "group", names)
    facts.keep_matching("group", pattern)
    counted_ms = facts.keep_held()
    # The last row of a group that is gone says nothing about it.
    known = facts.rows.known("lag") | facts.rows.known("behind_ms") | (facts.rows.numbers("lost") > 0)
    says = (counted_ms > 0) | known
    facts.keep(says)
    counted_ms = counted_ms[says]
    if not len(counted_ms):
        return []
    keys, named = facts.keyed("group")
    groups = _Groups.by(keys)
    began_ms = facts.observed_ms - counted_ms
    behind_ms, behind = facts.rows.numbers("behind_ms"), facts.rows.known("behind_ms")
    figures: dict[str, list[Any]] = {}
    for name, most in (("lag", "lag_most"), ("behind_ms", "behind_most")):
        values = facts.rows.numbers(name, _NONE)
        greatest = _Groups.by(began_ms, -values, keys).first
        figures[most] = _listed(values[greatest])
        figures[f"{most}_ms"] = _listed(np.where(values[greatest] == _NONE, _NONE, began_ms[greatest]))
    above = behind & (behind_ms > threshold_ms)
    figures["above_ms"] = groups.of(np.add, np.where(above, counted_ms, 0)).tolist()
    figures["lag_known_ms"] = groups.of(np.add, np.where(behind, counted_ms, 0)).tolist()
    figures["lost"] = _listed(groups.of(np.maximum, facts.rows.numbers("lost", _NONE)))
    topics, topic_names = facts.rows.words("worst_topic")
    partitions = facts.rows.numbers("worst_partition", _NONE)
    worst = _Groups.by(partitions, topics, facts.observed_ms, -behind_ms, ~behind, keys).first
    figures["worst"] = [
        {"worst_topic": [*topic_names, None][topic], "worst_partition": partition} if is_known else None
        for topic, partition, is_known in zip(
            topics[worst].tolist(), _listed(partitions[worst]), behind[worst].tolist(), strict=True
        )
    ]
    return _with(named(groups.first), figures)


def findings(batches: Sequence[Counted], names: Names) -> FigureRows:
    """Return how long each kind of finding held, its worst severity and its greatest counts."""
    columns = ("interval_ms", "kind", "severity", "partitions", "internal_partitions", "groups")
    facts = _Facts(batches, "findings", columns, "kind", names)
    counted_ms = facts.keep_held()
    if not len(counted_ms):
        return []
    keys, named = facts.keyed("kind")
    severities, words = facts.rows.words("severity")
    ranks = [SEVERITIES.index(word) + 1 if word in SEVERITIES else 0 for word in words]
    rank = np.array([*ranks, -1], np.int64)[severities]
    at_once = _Groups.by(facts.sequence, facts.recording, keys)
    # Findings of one kind about several groups stand at the same time.
    parts = [column[at_once.order] for column in (keys, facts.recording, facts.sequence)]
    at_once.starts = np.flatnonzero(np.any([np.diff(part, prepend=part[0] - 1) for part in parts], axis=0))
    some = facts.rows.known("groups")
    groups_known = at_once.of(np.maximum, some.astype(np.int64)) > 0
    sums = np.where(groups_known, at_once.of(np.add, facts.rows.numbers("groups")), _NONE)
    partitions = facts.rows.numbers("partitions") + facts.rows.numbers("internal_partitions")
    its_ms, seen_ms = at_once.of(np.maximum, counted_ms), at_once.of(np.maximum, facts.observed_ms)
    kinds = _Groups.by(keys[at_once.first])
    worst = kinds.of(np.maximum, at_once.of(np.maximum, rank))
    return _with(
        named(at_once.first[kinds.first]),
        {
            "severity": [SEVERITIES[at - 1] if at > 0 else None for at in worst.tolist()],
            "held_ms": kinds.of(np.add, its_ms).tolist(),
            "first_ms": kinds.of(np.minimum, seen_ms - its_ms).tolist(),
            "last_ms": kinds.of(np.maximum, seen_ms).tolist(),
            "partitions_most": kinds.of(np.maximum, at_once.of(np.maximum, partitions)).tolist(),
            "groups_most": _listed(kinds.of(np.maximum, sums)),
        },
    )


def incidents(batches: Sequence[Counted], columns: Sequence[str], most: int) -> FigureRows:
    """Return these columns of the incidents that went on in the period, the first `most` of them."""
    facts = _Facts(batches, "incidents", ["id", *columns], "id", ALL)
    ids, _ = facts.rows.words("id")
    rows = np.arange(len(facts.rows))
    by_incident = _Groups.by(rows, facts.sequence, facts.recording * (int(ids.max()) + 2) + ids)
    last = by_incident.last
    began_ms = facts.rows.numbers("began_ms")
    ended_ms = facts.rows.numbers("ended_ms", _NONE)
    until_ms = np.where(ended_ms == _NONE, facts.observed_ms, ended_ms)
    last = last[(began_ms[last] < facts.until_ms[last]) & (until_ms[last] >= facts.from_ms[last])]
    kinds, _ = facts.rows.words("kind")
    order = np.lexsort((facts.recording[last], kinds[last], facts.cluster[last], began_ms[last]))
    last = last[order][:most]
    incident_rows: FigureRows = facts.rows.table.select(list(columns)).take(last).to_pylist()
    for row, cluster in zip(incident_rows, facts.cluster[last].tolist(), strict=True):
        row["cluster"] = facts.clusters[cluster]
        for name in ("brokers", "controllers", "racks"):
            row[name] = ",".join(str(value) for value in row[name] or () if value is not None)
    return incident_rows


def elections(batches: Sequence[Counted], pattern: str, names: Names) -> FigureRows:
    """Return how often the partitions of each topic changed or lost their leader."""
    columns = ("topic", "partition", "new_leader", "unclean")
    facts = _Facts(batches, "elections", columns, "topic", names)
    facts.keep_matching("topic", pattern)
    facts.keep(facts.inside())
    if not len(facts.rows):
        return []
    keys, named = facts.keyed("topic")
    groups = _Groups.by(facts.rows.numbers("partition"), keys)
    led = facts.rows.known("new_leader").astype(np.int64)
    partition, key = facts.rows.numbers("partition")[groups.order], keys[groups.order]
    is_new = (np.diff(partition, prepend=-1) != 0) | (np.diff(key, prepend=-1) != 0)
    return _with(
        named(groups.first),
        {
            "elections": groups.of(np.add, led).tolist(),
            "lost_leader": groups.of(np.add, 1 - led).tolist(),
            "unclean": groups.of(np.add, facts.rows.numbers("unclean")).tolist(),
            "partitions": np.add.reduceat(is_new.astype(np.int64), groups.starts).tolist(),
            "first_ms": groups.of(np.minimum, facts.observed_ms).tolist(),
            "last_ms": groups.of(np.maximum, facts.observed_ms).tolist(),
        },
    )


def sizes(batches: Sequence[Counted], pattern: str, names: Names) -> FigureRows:
    """Return the first and the last known size of each topic, and its settings at last."""
    facts = _Facts(batches, "sizes", ("topic", "bytes", "leader_bytes", *SIZE_SETTINGS), "topic", names)
    facts.keep_matching("topic", pattern)
    facts.keep(facts.inside())
    if not len(facts.rows):
        return []
    keys, named = facts.keyed("topic")
    unknown = (~facts.rows.known("bytes")).astype(np.int64)
    in_order = (facts.sequence, facts.recording, facts.observed_ms)
    first, last = _Groups.by(*in_order, unknown, keys).first, _Groups.by(*in_order, 1 - unknown, keys).last
    seen = ["observed_ms", "bytes", "leader_bytes"]
    columns: dict[str, list[Any]] = {
        name: [
            row if row["bytes"] is not None else None
            for row in facts.rows.table.select(seen).take(at).to_pylist()
        ]
        for name, at in (("first", first), ("last", last))
    }
    at_last = _Groups.by(*in_order, keys).last
    settings = facts.rows.table.select(list(SIZE_SETTINGS)).take(at_last)
    return _with(named(at_last), columns | settings.to_pydict())
