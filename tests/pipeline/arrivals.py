"""Hand-made tables of roll-ups, in the form in which they arrive from the live job."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kview.model.aggregates import Block, Key
from kview.model.sums import BLOCK_S, SUMS, Kind, Sum
from kview.pipeline.store import RollupStore

START_S = 29_000_000 * BLOCK_S
START_MS = START_S * 1000

CLUSTER = Key(Kind.CLUSTER)

Hottest = tuple[int, str, int]
"""Rate, topic, partition."""

ARRIVAL = pa.schema(
    [
        ("second", pa.int64()),
        ("kind", pa.string()),
        ("name", pa.string()),
        *((str(column), pa.int64()) for column in SUMS),
        ("hottest", pa.struct([("rate", pa.int64()), ("topic", pa.string()), ("partition", pa.int32())])),
        ("topic_partitions", pa.int32()),
        ("last_sequence", pa.int64()),
        ("first_ms", pa.int64()),
        ("last_ms", pa.int64()),
    ]
)
"""The columns of `kview.pipeline.reading.next_rollups`."""


@dataclass(frozen=True)
class Row:
    """What one observation adds to the roll-up of a key and second."""

    second: int
    """Seconds after START_S."""
    key: Key = CLUSTER
    sums: dict[Sum, int] = field(default_factory=dict)
    hottest: Hottest | None = None
    topic_partitions: int | None = None


@dataclass(frozen=True)
class Seen:
    """An observation with the roll-up rows that it adds."""

    ended_ms: int
    rows: tuple[Row, ...]


def arrival(seen: Sequence[Seen], first: int = 0) -> pa.Table:
    """Return the roll-ups of some observations, numbered from `first`, summed up as Spark does and in no
    particular order."""
    merged: dict[tuple[int, Key], list[tuple[int, Seen, Row]]] = {}
    for number, observation in enumerate(seen, first):
        for row in observation.rows:
            merged.setdefault((row.second, row.key), []).append((number, observation, row))
    out = []
    for (second, key), parts in merged.items():
        hottest = max((row.hottest for _, _, row in parts if row.hottest), default=None)
        known = [row.topic_partitions for _, _, row in parts if row.topic_partitions is not None]
        times = [observation.ended_ms for _, observation, _ in parts]
        out.append(
            {
                "second": START_S + second,
                "kind": str(key.kind),
                "name": key.name,
                **{str(name): sum(row.sums.get(name, 0) for _, _, row in parts) for name in SUMS},
                "hottest": dict(zip(("rate", "topic", "partition"), hottest, strict=True))
                if hottest
                else None,
                "topic_partitions": max(known, default=None),
                "last_sequence": max(number for number, _, _ in parts),
                "first_ms": min(times),
                "last_ms": max(times),
            }
        )
    random.Random(len(out)).shuffle(out)
    return pa.Table.from_pylist(out, schema=ARRIVAL)


def stored(arrivals: Iterable[pa.Table]) -> RollupStore:
    store = RollupStore()
    for table in arrivals:
        store.add(table)
    return store


def at(second: float, *rows: Row) -> Seen:
    """Return an observation at `second` seconds after the start. It always has a row for the cluster, even an
    empty one."""
    return Seen(START_MS + int(second * 1000), (Row(int(second)), *rows))


def read(second: int, records: int = 1, key: Key = CLUSTER, **others: object) -> Row:
    return Row(second, key, {Sum.RECORDS_IN: records}, **others)  # type: ignore[arg-type]


def assert_same(blocks: Sequence[Block], others: Sequence[Block]) -> None:
    assert [block.minute for block in blocks] == [block.minute for block in others]
    for a, b in zip(blocks, others, strict=True):
        for name in ("sums", "hottest_rate", "hottest", "topic_partitions"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
