"""The deltas read for aggregation are the same from streams and from Parquet, and equal those of `derive`."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kview.derive.deltas import CarriedPartitions, offset_deltas, partition_deltas
from kview.recording.reader import Recording
from kview.recording.schema import OFFSET_DELTAS, PARTITION_DELTAS
from kview.recording.writer import RecordingWriter
from tests.recording.snapshots import ticking

SECONDS, CRASH_AT = 40, 15
WRITTEN = ticking(SECONDS, crash_at=CRASH_AT)
COUNTED = [partition_deltas(None, WRITTEN[0])]
for before, now in itertools.pairwise(WRITTEN):
    COUNTED.append(partition_deltas(before, now, CarriedPartitions.of(COUNTED[-1])))


@pytest.fixture(scope="module", params=["stream", "parquet", "both"])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("deltas") / "r"
    segment_s = 12 if request.param == "both" else 3600
    writer = RecordingWriter(folder, segment_s=segment_s, small_segment_bytes=0)
    for snapshot in WRITTEN:
        writer.append(snapshot)
    if request.param == "parquet":
        writer.close()
    return Recording.open(folder)


def test_sums_are_those_of_the_deltas(recording: Recording) -> None:
    batches = list(recording.delta_batches())
    assert batches[-1].last_sequence == SECONDS - 1
    pairs = list(itertools.pairwise(WRITTEN))
    for name in ("records_in", "replicated", "cross_rack", "truncated", "records_in_gap"):
        expected = sum(int(getattr(deltas, name).sum()) for deltas in COUNTED)
        assert sum(pc.sum(batch.partitions[name]).as_py() or 0 for batch in batches) == expected
    out = sum(int(offset_deltas(a, b).records_out.sum()) for a, b in pairs)
    assert sum(pc.sum(batch.offsets["records_out"]).as_py() or 0 for batch in batches) == out > 0


def test_rows_have_their_moments_places_and_states(recording: Recording) -> None:
    for batch in recording.delta_batches():
        assert batch.partitions.schema.equals(PARTITION_DELTAS) and batch.offsets.schema.equals(OFFSET_DELTAS)
        sequences = batch.partitions["sequence"].to_numpy()
        assert (np.diff(sequences) >= 0).all()
        for row in batch.partitions.to_pylist():
            seen = WRITTEN[row["sequence"]]
            deltas = COUNTED[row["sequence"]]
            table = seen.partitions
            at = int(np.flatnonzero((table.topic == row["topic"]) & (table.partition == row["partition"]))[0])
            assert row["leader"] == table.leader[at] and row["leader_rack"] == deltas.leader_rack[at]
            assert row["observed_ms"] == seen.observation.ended_ms
            assert row["records_in"] * row["record_centibytes"] // 100 == deltas.bytes_in[at]
            states = [row[name] for name in ("offline", "silent", "under_min_isr", "under_replicated")]
            assert row["state_ms"] == (1000 if any(states) else 0)
            assert states[3] == deltas.under_replicated[at]


def test_a_state_that_lasts_has_a_row_each_second_although_nothing_changes(recording: Recording) -> None:
    offline = [
        row["sequence"]
        for batch in recording.delta_batches()
        for row in batch.partitions.to_pylist()
        if row["topic"] == "audit-log" and row["partition"] == 3 and row["offline"]
    ]
    assert offline == list(range(CRASH_AT + 10, SECONDS))


@pytest.mark.parametrize("after", [-1, 0, 11, 12, 25, SECONDS - 2, SECONDS - 1, SECONDS + 5])
def test_what_came_after_a_moment(recording: Recording, after: int) -> None:
    batches = list(recording.delta_batches(after))
    got = [sequence for batch in batches for sequence in batch.partitions["sequence"].to_pylist()]
    assert sorted(set(got)) == list(range(max(after + 1, 1), SECONDS))
    assert bool(batches) == (after < SECONDS - 1)


def test_parquet_holds_plain_columns_that_others_can_read(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in WRITTEN:
        writer.append(snapshot)
    writer.close()
    file = pq.ParquetFile(tmp_path / "r" / "seg-000001" / "partition_deltas.parquet")
    assert file.schema_arrow.names == PARTITION_DELTAS.names
    group = file.metadata.row_group(0)
    known = {"PLAIN", "RLE", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"}
    assert {e for i in range(group.num_columns) for e in group.column(i).encodings} <= known
