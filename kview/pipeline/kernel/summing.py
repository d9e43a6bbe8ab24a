"""Sums up rows of deltas, and writes the roll-ups as the tables of a batch.

The partitions of a topic add up to the topic, because their minutes are sums of the same shares of the same
seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kview.model.sums import Kind, Sum
from kview.pipeline.kernel.pieces import NO_ID, TRUE, Rows, SetBacks, Shares, Split
from kview.pipeline.kernel.tables import (
    AT_END,
    HOTTEST_SHIFT,
    MINUTE_SUMS,
    MINUTES,
    MINUTES_TABLE,
    PEAK_SHIFT,
    PRODUCTS,
    SECONDS,
    SECONDS_TABLE,
    SPREAD,
    STATES,
)
from kview.pipeline.kernel.words import Longs, Words

MERGE_ROWS = 1_000_000
"""Roll-ups of parts are merged when they have this many rows."""

GROUP_ROWS = 1 << 16
"""The rows of a row group, the least that is read of a table: rows are in the order of names, so anyone who
wants some names reads some groups."""

KINDS = tuple(Kind)

Columns = dict[str, Longs]
"""Columns of roll-ups. Sums that are 0 everywhere are left out."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a batch of roll-ups counts. Minutes leave out what is before the second `head_s`; from `tail_s`
    on, a row of minutes is about a single second, because those seconds are not complete yet."""

    head_s: int
    tail_s: int
    set_backs: SetBacks


class Summing:
    """Sums up rows of deltas, also `by_partition` in minutes."""

    def __init__(self, scope: Scope, by_partition: bool = True) -> None:
        self._scope = scope
        self._by_partition = by_partition
        self._words = Words()
        self._parts: dict[str, list[Columns]] = {SECONDS_TABLE: [], MINUTES_TABLE: []}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows of a part of a segment."""
        if not batch.num_rows:
            return
        scope = self._scope
        rows = Rows.of(batch, self._words)
        split = Split(rows, scope.head_s, scope.set_backs)
        self._put(SECONDS_TABLE, self._merged_seconds([self._by_kind(*_sums_by_topic(rows, split))]))
        if self._by_partition and "topic_partitions" in batch.schema.names:
            topic, partition, columns = _sums_by_partition(rows, split, scope.head_s, scope.tail_s)
            self._put(MINUTES_TABLE, {"topic": topic, "partition": partition, **columns})

    def _put(self, table: str, columns: Columns) -> None:
        parts = self._parts[table]
        parts.append(columns)
        first, *rest = (len(next(iter(part.values()))) for part in parts)
        if sum(rest) > max(MERGE_ROWS, first):
            merged = self._merged_seconds if table == SECONDS_TABLE else _merged_minutes
            parts[:] = [merged(parts)]

    def _by_kind(self, rows: Rows, of: Columns) -> Columns:
        """Return a row for each kind under which a sum counts."""
        is_user = rows.internal != TRUE
        has_group = rows.group >= 0
        nothing = np.zeros(len(rows), np.int64)
        empty = np.full(len(rows), self._words.place(""))
        leaders, at = np.unique(rows.leader, return_inverse=True)
        leader_codes = np.array([self._words.place(str(leader)) for leader in leaders.tolist()], np.int64)
        names = {
            Kind.CLUSTER: (is_user, empty),
            Kind.INTERNAL: (~is_user, empty),
            Kind.TOPIC: (rows.topic >= 0, rows.topic),
            Kind.BROKER: (is_user & (rows.leader >= 0), leader_codes[at]),
            Kind.RACK: (
                is_user & ((rows.leader >= 0) | (rows.leader == NO_ID)) & (rows.rack >= 0),
                rows.rack,
            ),
            Kind.GROUP: (has_group, rows.group),
        }
        columns = {
            Sum.RECORDS_IN: of["records"] * ~has_group,
            Sum.CENTIBYTES_IN: of["centibytes"],
            Sum.REPLICATED: of["replicated"],
            Sum.CROSS_RACK: of["cross_rack"],
            Sum.RECORDS_OUT: of["records"] * has_group,
            Sum.ACTIVE_MS: of["active_ms"] * ~has_group,
            Sum.TRUNCATED: of["fell"] * ~has_group,
            Sum.RECORDS_IN_GAP: of["in_gap"] * ~has_group,
            Sum.REWOUND: of["fell"] * has_group,
            Sum.RECORDS_OUT_GAP: of["in_gap"] * has_group,
            **{Sum(f"{name}_ms"): of[f"{name}_ms"] for name in STATES},
        }
        columns = {name: values for name, values in columns.items() if values.any()}
        hot = {
            is_group: np.where((of["hottest"] >= 0) & (has_group == is_group), of["hottest"], -1)
            for is_group in (False, True)
        }
        parts: dict[str, list[Longs]] = {}
        for kind, (mask, name) in names.items():
            at = np.flatnonzero(mask)
            hottest = hot[kind is Kind.GROUP]
            of_kind = {
                "second": of["second"],
                "kind": np.full(len(rows), KINDS.index(kind)),
                "name": name,
                **{str(column): values for column, values in columns.items()},
                # Without any, the rate is −1, and the topic and partition do not matter.
                "hot_rate": hottest // HOTTEST_SHIFT,
                "hot_topic": np.maximum(rows.topic, 0),
                "hot_partition": hottest % HOTTEST_SHIFT,
                "topic_partitions": of["topic_partitions"] if kind is Kind.TOPIC else nothing - 1,
            }
            for column, values in of_kind.items():
                parts.setdefault(column, []).append(values[at])
        return {column: np.concatenate(values) for column, values in parts.items()}

    def _merged_seconds(self, parts: Sequence[Columns]) -> Columns:
        of = _joined(parts)
        if not len(of["second"]):
            return of
        index = _Index(of["kind"], of["name"], of["second"] - of["second"].min())
        merged = {name: of[name][index.example] for name in ("kind", "name", "second")}
        merged |= {str(name): index.sums(of[name]) for name in Sum if name in of}
        # The hottest partition is the one with the greatest (rate, topic, partition).
        ranks = self._words.ranks()
        rate = index.most(of["hot_rate"])
        places = ranks[of["hot_topic"]] * HOTTEST_SHIFT + of["hot_partition"]
        is_most = (of["hot_rate"] >= 0) & (of["hot_rate"] == rate[index.at])
        place = np.maximum(index.most(np.where(is_most, places, -1)), 0)
        merged |= {"hot_rate": rate, "hot_topic": np.argsort(ranks)[place // HOTTEST_SHIFT]}
        merged |= {"hot_partition": place % HOTTEST_SHIFT}
        merged["topic_partitions"] = index.most(of["topic_partitions"])
        return merged

    def seconds(self) -> pa.Table:
        """Return the one-second roll-ups, in the order of kinds, names and seconds."""
        if not self._parts[SECONDS_TABLE]:
            return SECONDS.empty_table()
        of = self._merged_seconds(self._parts[SECONDS_TABLE])
        of = _in_order(of, of["second"], self._words.ranks()[of["name"]], of["kind"])
        hottest = [
            pa.array(of["hot_rate"]),
            self._strings(of["hot_topic"]),
            pa.array(of["hot_partition"], pa.int32()),
        ]
        kinds = pa.array([str(kind) for kind in KINDS])
        nothing = np.zeros(len(of["second"]), np.int64)
        columns = {
            **{name: pa.array(of.get(name, nothing)) for name in ("second", *map(str, Sum))},
            "kind": pa.DictionaryArray.from_arrays(pa.array(of["kind"], pa.int32()), kinds),
            "name": self._strings(of["name"]),
            "hottest": pa.StructArray.from_arrays(
                hottest, fields=list(SECONDS.field("hottest").type), mask=pa.array(of["hot_rate"] < 0)
            ),
            "topic_partitions": _known(of["topic_partitions"], pa.int32()),
        }
        return _table(columns, SECONDS)

    def minutes(self) -> pa.Table:
        """Return the one-minute roll-ups of partitions, in the order of topics, partitions and minutes."""
        if not self._parts[MINUTES_TABLE]:
            return MINUTES.empty_table()
        of = _merged_minutes(self._parts[MINUTES_TABLE])
        of = _in_order(of, of["slot"], of["partition"], self._words.ranks()[of["topic"]])
        nothing = np.zeros(len(of["slot"]), np.int64)
        columns = {name: pa.array(of.get(name, nothing)) for name in ("slot", "partition", *MINUTE_SUMS)}
        columns |= {"topic": self._strings(of["topic"]), "internal": pa.array(of["internal"] == TRUE)}
        columns |= {"peak": _known(of["peak"], pa.int64())}
        return _table(columns, MINUTES)

    def write(self, folder: Path, part: int) -> None:
        """Write the roll-ups into the folder of a batch, as a part of its tables. Raises OSError."""
        write_part(self.seconds(), folder / SECONDS_TABLE, part)
        write_part(self.minutes(), folder / MINUTES_TABLE, part)

    def _strings(self, codes: Longs) -> pa.Array:
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int32()), pa.array(self._words.listed(), pa.string())
        ).cast(pa.string())


def _joined(parts: Sequence[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    nothing = [np.zeros(len(next(iter(part.values()))), np.int64) for part in parts]
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part.get(name, zeros) for part, zeros in zip(parts, nothing, strict=True)])
        for name in names
    }


def _merged_minutes(parts: Sequence[Columns]) -> Columns:
    of = _joined(parts)
    if not len(of["slot"]):
        return of
    index = _Index(of["slot"] - of["slot"].min(), of["topic"], of["partition"])
    same, most = ("slot", "topic", "partition", "internal"), ("peak",)
    merged = {name: of[name][index.example] for name in same}
    merged |= {name: index.most(of[name]) for name in most}
    return merged | {name: index.sums(values) for name, values in of.items() if name not in (*same, *most)}


def _known(values: Longs, kind: pa.DataType) -> pa.Array:
    return pa.array(np.maximum(values, 0), kind, mask=values < 0)


def _in_order(of: Columns, *keys: Longs) -> Columns:
    order = np.lexsort(keys)
    return {name: values[order] for name, values in of.items()}


def _table(columns: dict[str, pa.Array], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)


def write_part(table: pa.Table, folder: Path, part: int) -> None:
    """Write rows as a part of the table in `folder`. Raises OSError."""
    folder.mkdir(exist_ok=True)
    # Damaged files must not become wrong figures.
    pq.write_table(
        table,
        folder / f"rows-{part:05}.parquet",
        row_group_size=GROUP_ROWS,
        compression="zstd",
        use_dictionary=[field.name for field in table.schema if not pa.types.is_integer(field.type)],
        store_schema=False,
        write_page_checksum=True,
    )


# -- sums of what rows have in seconds and minutes


class _Index:
    """Numbers the different combinations of some keys, which are 0 or more."""

    def __init__(self, *keys: Longs) -> None:
        key, size = np.zeros(len(keys[0]), np.int64), 1
        for column in keys:
            width = int(column.max()) + 1 if len(column) else 1
            key, size = key * width + column, size * width
        if size <= 4 * len(key) + 1_000:
            # A table of all combinations takes less time than sorting the keys.
            last = np.full(size, -1, np.int64)
            last[key] = np.arange(len(key))
            there = np.flatnonzero(last >= 0)
            places = np.empty(size, np.int64)
            places[there] = np.arange(len(there))
            self.at, self.example = places[key], last[there]
        else:
            _, self.example, self.at = np.unique(key, return_index=True, return_inverse=True)
        self.count = len(self.example)
        """`at` is the number of each row's combination, `example` a row of each combination."""

    def sums(self, values: Longs | None) -> Longs:
        """Return the sums of values per combination; None stands for zeros."""
        sums = np.zeros(self.count, np.int64)
        if values is not None and values.any():
            np.add.at(sums, self.at, values)
        return sums

    def most(self, values: Longs) -> Longs:
        """Return the greatest value per combination, at least −1."""
        most = np.full(self.count, -1, np.int64)
        np.maximum.at(most, self.at, values)
        return most


def _near(values: Longs) -> Longs:
    """Return values as small numbers from 0 on."""
    if not len(values):
        return values
    least, most = int(values.min()), int(values.max())
    if most - least <= len(values) + 1_000:
        return values - least
    return np.unique(values, return_inverse=True)[1]


class _Cells:
    """The combinations of a time and a group of rows that shares are about. `groups` are numbered from 0."""

    def __init__(self, shares: Sequence[Shares], groups: _Index) -> None:
        count = sum(len(share.second) for share in shares)
        base = min((int(share.second.min()) for share in shares if len(share.second)), default=0)
        last = max((int(share.second.max()) for share in shares if len(share.second)), default=-1)
        self._size = (last - base + 1) * groups.count
        self._at = [(share.second - base) * groups.count + groups.at[share.at] for share in shares]
        if self._size <= 4 * count + 1_000:
            there = np.zeros(self._size, np.bool_)
            for at in self._at:
                there[at] = True
            self._there = keys = np.flatnonzero(there)
        else:
            keys, inverse = np.unique(np.concatenate(self._at), return_inverse=True)
            ends = np.cumsum([0, *map(len, self._at)]).tolist()
            self._at = [inverse[begin:end] for begin, end in pairwise(ends)]
            self._size, self._there = len(keys), np.arange(len(keys))
        self.second: Longs = keys // groups.count + base
        self.example: Longs = groups.example[keys % groups.count]
        """A row of each."""

    def sums(self, columns: Sequence[Longs | None]) -> Longs:
        """Return the sums of a column of each of the shares, in their order; None stands for zeros."""
        sums = np.zeros(self._size, np.int64)
        for at, values in zip(self._at, columns, strict=True):
            if values is not None:
                np.add.at(sums, at, values)
        return sums[self._there]

    def most(self, columns: Sequence[Longs | None]) -> Longs:
        """Return the greatest value of a column of each of the shares, at least −1."""
        most = np.full(self._size, -1, np.int64)
        for at, values in zip(self._at, columns, strict=True):
            if values is not None:
                np.maximum.at(most, at, values)
        return most[self._there]


def _sums_by_topic(rows: Rows, split: Split) -> tuple[Rows, dict[str, Longs]]:
    """Return sums by second, topic, leader, rack, group and whether it is internal: a row that has these
    names for each, and the columns."""
    shares = (split.first, split.last, split.rest)
    keys = (rows.topic + 1, _near(rows.leader), rows.rack + 1, rows.group + 1, rows.internal)
    cells = _Cells(shares, _Index(*keys))
    names = (*SPREAD, "active_ms", *AT_END)
    columns = {name: _sums(cells, shares, name) for name in (*names, *(f"{state}_ms" for state in STATES))}
    columns["centibytes"] = _products(cells, shares, "records", rows)
    columns["hottest"] = cells.most([_joined_rates(share, HOTTEST_SHIFT, rows.partition) for share in shares])
    columns["topic_partitions"] = cells.most([rows.topic_partitions[share.at] for share in shares])
    columns["second"] = cells.second
    return rows.take(cells.example), columns


def _sums_by_partition(
    rows: Rows, split: Split, head_s: int, tail_s: int
) -> tuple[Longs, Longs, Mapping[str, Longs]]:
    """Return sums by minute, topic and partition: topics, partitions, and the columns of MINUTES that are
    not 0 everywhere.

    The rows must be those of partitions.
    """
    shares = split.by_slot(tail_s, head_s)
    cells = _Cells(shares, _Index(rows.topic, rows.partition))
    names = {
        **{"records_in": "records", "truncated": "fell", "records_in_gap": "in_gap"},
        **{name: name for name in ("replicated", "cross_rack", "active_ms")},
        **{f"{name}_ms": f"{name}_ms" for name in STATES},
    }
    columns = {name: _sums(cells, shares, of) for name, of in names.items()}
    columns |= {name: _products(cells, shares, of, rows) for name, of in PRODUCTS.items()}
    columns = {name: values for name, values in columns.items() if values.any()}
    began_s = rows.began_ms // 1000
    columns["peak"] = cells.most([_joined_rates(share, 1 << PEAK_SHIFT, began_s) for share in shares])
    columns["slot"], columns["internal"] = cells.second, rows.internal[cells.example]
    return rows.topic[cells.example], rows.partition[cells.example], columns


def _sums(cells: _Cells, shares: Sequence[Shares], name: str) -> Longs:
    return cells.sums([share.sums.get(name) for share in shares])


def _products(cells: _Cells, shares: Sequence[Shares], name: str, rows: Rows) -> Longs:
    """Return the sums of a column in hundredths of bytes."""
    centibytes = rows.number("record_centibytes")
    return cells.sums(
        [share.sums[name] * centibytes[share.at] if name in share.sums else None for share in shares]
    )


def _joined_rates(shares: Shares, scale: int, lower: Longs) -> Longs | None:
    """Return the rates with what counts if they are equal, in one number; −1 where there is no rate."""
    if shares.rates is None:
        return None
    joined: Longs = shares.rates * scale + lower[shares.at]
    joined[shares.rates < 0] = -1
    return joined
