"""Converts roll-ups from any source to one plain form that can be compared."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from kview.derive.deltas import CarriedOffsets, offset_deltas, partition_deltas
from kview.model.aggregates import Rollups
from kview.model.snapshot import Snapshot
from kview.model.sums import BLOCK_S, SUMS, Sum


class Cell(NamedTuple):
    """A key in one second."""

    second: int
    kind: str
    name: str


Figures = dict[Cell, dict[str, Any]]
"""All values that are not zero: sums by their names, `hottest` as rate, topic and partition, and
`topic_partitions`. A cell without sums is left out."""

_OTHERS = ("hottest", "topic_partitions")


def _without_zeros(cells: Iterable[tuple[Cell, dict[str, Any]]]) -> Figures:
    found = {}
    for cell, figures in cells:
        kept = {name: value for name, value in figures.items() if value}
        if kept.keys() - set(_OTHERS):
            found[cell] = kept
    return found


def of_table(table: pa.Table) -> Figures:
    """Convert the columns of `kview.pipeline.kernel.tables.SECONDS`."""
    return _without_zeros(
        (
            Cell(row["second"], row["kind"], row["name"]),
            {str(name): row[name] for name in SUMS}
            | {
                "hottest": tuple((row["hottest"] or {}).values()),
                "topic_partitions": row["topic_partitions"],
            },
        )
        for row in table.to_pylist()
    )


def of_rollups(rollups: Rollups) -> Figures:
    """Convert the roll-ups that the dashboard receives."""

    def cells() -> Iterable[tuple[Cell, dict[str, Any]]]:
        for block in rollups.blocks:
            for row in range(block.hottest.shape[0]):
                for at in range(BLOCK_S):
                    key = rollups.keys[row]
                    figures: dict[str, Any] = {
                        str(name): int(block.sums[place, row, at]) for place, name in enumerate(SUMS)
                    }
                    if (hottest := int(block.hottest[row, at])) >= 0:
                        rate = int(block.hottest_rate[row, at])
                        figures["hottest"] = (rate, *rollups.partitions[hottest])
                    figures["topic_partitions"] = int(block.topic_partitions[row, at])
                    yield Cell(block.minute * BLOCK_S + at, str(key.kind), key.name), figures

    return _without_zeros(cells())


def total(figures: Figures, column: str, kind: str = "cluster", name: str = "") -> int:
    """Return the total of a column over all seconds, for one kind and name."""
    return sum(
        cell.get(column, 0) for (_, its_kind, its), cell in figures.items() if (its_kind, its) == (kind, name)
    )


COUNTED = (
    *(Sum.RECORDS_IN, Sum.REPLICATED, Sum.CROSS_RACK, Sum.TRUNCATED, Sum.RECORDS_IN_GAP),
    *(Sum.RECORDS_OUT, Sum.REWOUND, Sum.RECORDS_OUT_GAP),
)


class Counted:
    """The sums that observations add to the cluster's roll-ups, counted directly from the deltas."""

    def __init__(self, snapshots: Iterable[Snapshot] = ()) -> None:
        self.sums = dict.fromkeys(COUNTED, 0)
        self._before: Snapshot | None = None
        self._carried: CarriedOffsets | None = None
        for snapshot in snapshots:
            self.add(snapshot)

    def add(self, now: Snapshot) -> None:
        of_users = ~now.partitions.internal
        deltas = partition_deltas(self._before, now)
        offsets = offset_deltas(self._before, now, self._carried)
        self._carried = CarriedOffsets.of(offsets)
        for column in COUNTED:
            grown = getattr(deltas, column, None)
            grown = getattr(offsets, column) if grown is None else grown[of_users]
            self.sums[column] += int(grown.sum())
        self._before = now


_FACTS = """
create or replace temp table deltas as
select row_number() over () as id, * from (
    select sequence, topic, partition, null as consumers, internal, leader, leader_rack, topic_partitions,
        observed_ms, began_ms, ended_ms, state_ms, record_centibytes,
        records_in, 0 as records_out, replicated, cross_rack, truncated, records_in_gap,
        0 as rewound, 0 as records_out_gap, offline, silent, under_min_isr, under_replicated
    from read_parquet('{folder}/seg-*/partition_deltas.parquet')
    union all
    select sequence, topic, partition, "group", starts_with(topic, '__'), leader, leader_rack, 0,
        observed_ms, since_ms, ended_ms, 0, 0, 0, records_out, 0, 0, 0, 0, rewound, records_out_gap,
        false, false, false, false
    from read_parquet('{folder}/seg-*/offset_deltas.parquet'));

-- Where the clock was set back, what it said before of later seconds is not counted.
create or replace temp table set_backs as
select sequence as from_sequence, ended_ms // 1000 as from_second
from (select *, lag(ended_ms) over (order by sequence) as before_ms
    from read_parquet('{folder}/seg-*/observations.parquet'))
where before_ms - ended_ms > 2000;

create or replace temp macro stays(number, of_second) as not exists (
    select 1 from set_backs where number < from_sequence and of_second >= from_second);

-- Each second of each interval, and how much of the interval lies in it.
create or replace temp table spans as
select *, least(ended_ms, second * 1000 + 1000) - greatest(began_ms, second * 1000) as ms
from (select *, unnest(range(began_ms // 1000, (ended_ms - 1) // 1000 + 1)) as second from deltas
    where ended_ms > began_ms);

-- The largest remainder, as it is taught: whole parts first, what is left to the largest fractions.
create or replace temp table shares as
with parts as (
    select id, second, figure, amount, amount * ms // (ended_ms - began_ms) as whole,
        amount * ms % (ended_ms - began_ms) as fraction
    from (unpivot (select id, second, ms, began_ms, ended_ms, records_in, records_out, replicated, cross_rack
            from spans)
        on records_in, records_out, replicated, cross_rack into name figure value amount)
    where amount > 0),
ranked as (
    select *, row_number() over (partition by id, figure order by fraction desc, second) as rank,
        amount - sum(whole) over (partition by id, figure) as left_over
    from parts)
select id, second, figure, whole + if(rank <= left_over, 1, 0) as value from ranked;

create or replace temp table facts as
select id, second, figure, value from shares
union all
select id, second, 'centibytes_in', value * record_centibytes
from shares join deltas using (id) where figure = 'records_in'
union all
select id, second, 'active_ms', ms from spans where records_in > 0
union all
from (unpivot (select id, ended_ms // 1000 as second, truncated, records_in_gap, rewound, records_out_gap
        from deltas)
    on truncated, records_in_gap, rewound, records_out_gap into name figure value value)
union all
select id, second, figure || '_ms',
    least(observed_ms, second * 1000 + 1000) - greatest(observed_ms - state_ms, second * 1000)
from (select *, unnest(range((observed_ms - state_ms) // 1000, (observed_ms - 1) // 1000 + 1)) as second
    from (unpivot deltas on offline, silent, under_min_isr, under_replicated into name figure value so)
    where so and state_ms > 0);

create or replace temp table keys as
select id, 'cluster' as kind, '' as name from deltas where not internal
union all select id, 'internal', '' from deltas where internal
union all select id, 'topic', topic from deltas
union all select id, 'broker', leader::varchar from deltas where not internal and leader >= 0
union all select id, 'rack', leader_rack from deltas where not internal and leader >= 0
union all select id, 'group', consumers from deltas where consumers is not null;
"""

_SUMS = """
select second, kind, name, figure, sum(value)::bigint
from facts join deltas using (id) join keys using (id)
where stays(sequence, second)
group by all"""

_HOTTEST = """
select second, kind, name, max(row(records * 1000 // (ended_ms - began_ms), topic, partition))
from (select *, records_in + records_out as records from spans) join keys using (id)
where records > 0 and (kind = 'group') = (consumers is not null) and stays(sequence, second)
group by all"""

_PARTITIONS = """
select second, 'topic', topic, max(topic_partitions)
from (select sequence, topic, topic_partitions, unnest(range(
        least(began_ms, if(state_ms > 0, observed_ms - state_ms, began_ms)) // 1000,
        greatest(ended_ms, if(state_ms > 0, observed_ms - 1, ended_ms)) // 1000 + 1)) as second
    from deltas where topic_partitions > 0)
where stays(sequence, second)
group by all"""


def by_duckdb(recording: Path) -> Figures:
    """Count the figures again with another engine and other queries, from the Parquet files of closed
    segments."""
    with duckdb.connect() as connection:
        connection.execute(_FACTS.format(folder=recording))
        cells: dict[Cell, dict[str, Any]] = {}
        for second, kind, name, figure, value in connection.execute(_SUMS).fetchall():
            cells.setdefault(Cell(second, kind, name), {})[figure] = value
        for query, figure in ((_HOTTEST, "hottest"), (_PARTITIONS, "topic_partitions")):
            for second, kind, name, value in connection.execute(query).fetchall():
                if Cell(second, kind, name) in cells:
                    found = tuple(value.values()) if isinstance(value, dict) else value
                    cells[Cell(second, kind, name)][figure] = found
    return _without_zeros(cells.items())


def size_of(rollups: Rollups) -> int:
    """Return the size of the roll-ups' arrays in bytes."""
    return sum(
        column.nbytes
        for block in rollups.blocks
        for column in (block.sums, block.hottest_rate, block.hottest, block.topic_partitions)
    )
