"""Facts for recordings of any size: as many as are written in a bad hour, with gaps in what is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kview.recording.fact_schema import FACTS

START_MS = 1_760_000_000_100
GROUPS = 5
LAGS_EVERY_S, SIZES_EVERY_S = 10, 60
KINDS = ("brokers_silent", "under_replicated", "groups_troubled")
SEVERITIES = ("risk", "warn", "calm")

Longs = np.ndarray[tuple[int], np.dtype[np.int64]]


def write_facts(folder: Path, sequences: Longs, topics: int) -> None:
    """Write the facts of the observations `sequences`, one a second."""
    chance = np.random.default_rng([7, int(sequences[0])])
    at = sequences[sequences % LAGS_EVERY_S == 0]
    sequence, group = np.repeat(at, GROUPS), np.tile(np.arange(GROUPS), len(at))
    behind = chance.integers(0, 120_000, len(group))
    is_known = chance.random(len(group)) > 0.1
    lags = {
        "interval_ms": np.where(sequence > 0, LAGS_EVERY_S * 1000, 0),
        "group": [f"group-{one}" for one in group.tolist()],
        "lag": pa.array(chance.integers(0, 50, len(group)), mask=chance.random(len(group)) < 0.05),
        "behind_ms": pa.array(behind // 5_000 * 5_000, mask=~is_known),
        "lost": chance.integers(0, 3, len(group)),
        "worst_topic": pa.array([f"topic-{one:05}" for one in (group % topics).tolist()], mask=~is_known),
        "worst_partition": pa.array(group % 7, mask=~is_known),
    }
    _save(folder, "group_lags", sequence, lags)
    sequence = np.repeat(sequences, 2)
    which = chance.integers(0, len(KINDS), len(sequence))
    found = {
        "interval_ms": np.where(sequence > 0, 1000, 0),
        "kind": [KINDS[one] for one in which.tolist()],
        "severity": [SEVERITIES[one] for one in chance.integers(0, 3, len(sequence)).tolist()],
        "partitions": chance.integers(0, 100, len(sequence)),
        "groups": pa.array(chance.integers(1, 5, len(sequence)), mask=which != 2),
    }
    _save(folder, "findings", sequence, found)
    some = sequences[chance.random(len(sequences)) < 0.02]
    number = some // 300
    incidents = {
        "id": [f"{one}-brokers" for one in number.tolist()],
        "kind": ["brokers"] * len(some),
        "began_ms": START_MS + number * 300_000 - 500,
        "ended_ms": pa.array(START_MS + some * 1000, mask=some % 2 == 0),
        "brokers": [[1, 2 + one % 3] for one in number.tolist()],
        "racks": [["a"]] * len(some),
        "elected_ms": pa.array(chance.integers(0, 9_000, len(some)), mask=some % 3 == 0),
        "moved": chance.integers(0, 100, len(some)),
    }
    _save(folder, "incidents", some, incidents)
    sequence = np.sort(chance.choice(sequences, 2 * len(sequences)))
    elections = {
        "topic": [f"topic-{one:05}" for one in chance.integers(0, topics, len(sequence)).tolist()],
        "partition": chance.integers(0, 100, len(sequence)),
        "new_leader": pa.array(chance.integers(0, 6, len(sequence)), mask=chance.random(len(sequence)) < 0.5),
        "unclean": pa.array(chance.random(len(sequence)) < 0.1, mask=chance.random(len(sequence)) < 0.3),
    }
    _save(folder, "elections", sequence, elections)
    at = sequences[sequences % SIZES_EVERY_S == 0]
    sequence, topic = np.repeat(at, topics), np.tile(np.arange(topics), len(at))
    size = sequence * 1_000 + topic
    sizes = {
        "topic": [f"topic-{one:05}" for one in topic.tolist()],
        "partitions": np.full(len(topic), 100),
        "replicas": np.full(len(topic), 300),
        "bytes": pa.array(size, mask=chance.random(len(size)) < 0.3),
        "leader_bytes": size // 3,
        "retention_ms": 1000 * chance.integers(-1, 10, len(size)),
        "retention_bytes": np.full(len(size), -1),
        "cleanup_policy": ["delete"] * len(size),
    }
    _save(folder, "sizes", sequence, sizes)


def _save(folder: Path, part: str, sequence: Longs, columns: dict[str, Any]) -> None:
    if not len(sequence):
        return
    columns |= {"sequence": sequence, "observed_ms": START_MS + 1000 * sequence}
    arrays = []
    for one in FACTS[part]:
        given = columns.get(one.name)
        arrays.append(pa.nulls(len(sequence), one.type) if given is None else pa.array(given).cast(one.type))
    table = pa.Table.from_arrays(arrays, schema=FACTS[part])
    pq.write_table(table, folder / f"{part}.parquet", compression="zstd", store_schema=False)
