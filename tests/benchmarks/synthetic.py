"""Recordings of any size, written directly as the Parquet files of closed segments."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kview.recording.manifest import Manifest, SegmentEntry, write_manifest
from kview.recording.schema import OBSERVATIONS, OFFSET_DELTAS, PARTITION_DELTAS
from tests.benchmarks.synthetic_facts import START_MS, write_facts

__all__ = ("START_MS", "write_recording")

PER_TOPIC = 100
ROWS_PER_SEGMENT = 4_000_000


def write_recording(
    folder: Path, partitions: int, seconds: int, segments: int = 0, *, facts: bool = False
) -> int:
    """Write a recording in which every partition gets records every second, and every tenth is read by a
    group. With `facts`, it has facts, made up. Returns its number of rows of partitions and groups."""
    segments = segments or max(1, -(-partitions * seconds // ROWS_PER_SEGMENT))
    entries, rows = [], 0
    for number, some in enumerate(np.array_split(np.arange(seconds), segments), 1):
        entry = SegmentEntry(
            number=number,
            closed=True,
            first_sequence=int(some[0]),
            last_sequence=int(some[-1]),
            began_ms=START_MS + 1000 * int(some[0]),
            ended_ms=START_MS + 1000 * int(some[-1]),
        )
        where = folder / entry.folder
        where.mkdir(parents=True)
        rows += _write(where, some, partitions)
        if facts:
            write_facts(where, some, -(-partitions // PER_TOPIC))
        size = sum(path.stat().st_size for path in where.iterdir())
        entries.append(
            SegmentEntry(**{f: getattr(entry, f) for f in entry.__struct_fields__} | {"size_bytes": size})
        )
    write_manifest(folder, Manifest(segments=tuple(entries)))
    return rows


def _write(folder: Path, sequences: "np.ndarray", partitions: int) -> int:
    count = len(sequences)
    ended = START_MS + 1000 * sequences
    given = {
        "sequence": pa.array(sequences, pa.int64()),
        "ended_ms": pa.array(ended, pa.int64()),
        "cluster_id": pa.array(["synthetic"] * count),
    }
    arrays = [given.get(field.name, pa.nulls(count, field.type)) for field in OBSERVATIONS]
    pq.write_table(pa.Table.from_arrays(arrays, schema=OBSERVATIONS), folder / "observations.parquet")
    chance = np.random.default_rng(int(sequences[0]))
    number = np.tile(np.arange(partitions), count)
    sequence = np.repeat(sequences, partitions)
    observed = np.repeat(ended, partitions)
    phase = number * 7919 % 1000
    topics = pa.array([f"topic-{at:05}" for at in range(-(-partitions // PER_TOPIC))])
    racks = pa.array(["a", "b", "c"])
    records = chance.poisson(40, len(number)) + number % 13
    columns = {
        "sequence": sequence,
        "observed_ms": observed,
        "topic": pa.DictionaryArray.from_arrays(pa.array(number // PER_TOPIC, pa.int32()), topics).cast(
            pa.string()
        ),
        "partition": number % PER_TOPIC,
        "internal": np.zeros(len(number), bool),
        "leader": number % 6,
        "leader_rack": pa.DictionaryArray.from_arrays(pa.array(number % 3, pa.int32()), racks).cast(
            pa.string()
        ),
        "topic_partitions": np.full(len(number), PER_TOPIC),
        "began_ms": observed - 1000 - phase,
        "ended_ms": observed - phase,
        "records_in": records,
        "record_centibytes": 10_000 + number % 50 * 100,
        "truncated": np.zeros(len(number), np.int64),
        "records_in_gap": np.zeros(len(number), np.int64),
        "replicated": 2 * records,
        "cross_rack": records,
        "state_ms": np.where(number % 97 == 0, 1000, 0),
        "offline": np.zeros(len(number), bool),
        "silent": np.zeros(len(number), bool),
        "under_min_isr": np.zeros(len(number), bool),
        "under_replicated": number % 97 == 0,
    }
    _save(folder / "partition_deltas.parquet", columns, PARTITION_DELTAS)
    read = (number % 10 == 0) & (sequence % 5 == 0) & (sequence > 5)
    groups = pa.array([f"group-{at}" for at in range(5)])
    offsets = {
        **{
            name: columns[name]
            for name in ("sequence", "observed_ms", "topic", "partition", "leader", "leader_rack")
        },
        "group": pa.DictionaryArray.from_arrays(pa.array(number % 5, pa.int32()), groups).cast(pa.string()),
        "since_ms": observed - 5000 - phase,
        "ended_ms": observed - phase,
        "records_out": 5 * records,
        "rewound": np.zeros(len(number), np.int64),
        "records_out_gap": np.zeros(len(number), np.int64),
    }
    _save(folder / "offset_deltas.parquet", offsets, OFFSET_DELTAS, read)
    return len(number) + int(read.sum())


def _save(path: Path, columns, schema: pa.Schema, mask=None) -> None:  # type: ignore[no-untyped-def]
    arrays = [pa.array(columns[f.name]).cast(f.type) for f in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    table = table if mask is None else table.filter(pa.array(mask))
    words = [f.name for f in schema if pa.types.is_string(f.type)]
    if len(table):
        pq.write_table(table, path, compression="zstd", use_dictionary=words, store_schema=False)
