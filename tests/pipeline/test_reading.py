"""Reading what is new in a recording yields each observation once and completely, whatever happens to the
recording."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyspark.sql import SparkSession

from kview.derive.deltas import offset_deltas, partition_deltas
from kview.model.aggregates import SET_BACK_MS
from kview.model.snapshot import Snapshot
from kview.pipeline.packed import PACKED, WORDS, unpacked
from kview.pipeline.reading import SCHEMA, before_set_back, first_rows, next_rows, packed_table, rows, up_to
from kview.pipeline.rollup import DELTAS
from kview.pipeline.source import RecordingSource
from kview.recording.reader import Recording
from kview.recording.ring import FlightRecorder
from kview.recording.segment_reader import DeltaBatches
from kview.recording.writer import LONGEST_SEGMENT_S, RecordingWriter
from tests.recording.snapshots import ticking
from tests.worlds import default_world

SECONDS, SEGMENT_S = 40, 12
WRITTEN = ticking(SECONDS, crash_at=15)
ALL = 1 << 40

Rows = dict[int, list[dict[str, Any]]]


def flat(packed: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Unpack the batches."""
    for batch in packed:
        assert batch.schema.names == PACKED.names and batch.num_rows == 1
        (row,) = batch.to_pylist()
        for name in WORDS:
            words = row.pop(f"{name}_words")
            row[name] = row[name] and [None if at is None else words[at] for at in row[name]]
        count = row.pop("count")
        yield pa.record_batch({name: values or [None] * count for name, values in row.items()}, SCHEMA)


def by_observation(batches: Iterable[pa.RecordBatch]) -> Rows:
    """Return the rows of each observation, in order."""
    found: Rows = {}
    for batch in batches:
        assert batch.schema.equals(SCHEMA)
        for row in batch.to_pylist():
            found.setdefault(row["sequence"], []).append(row)
    return dict(sorted(found.items()))


def deltas(of: Rows) -> dict[int, int]:
    """Return the number of rows of partitions and offsets for each observation."""
    return {number: sum(row["topic"] is not None for row in these) for number, these in of.items()}


def taken(recording: Recording, enough: int, after: int = -1) -> list[Rows]:
    """Read everything that is new, in takes of about `enough` rows."""
    takes: list[Rows] = []
    while True:
        batches, last = next_rows(recording, after, enough)
        if last == after:
            assert not batches
            return takes
        takes.append(by_observation(batches))
        # Each take contains everything up to `last`, and nothing after it.
        assert min(takes[-1]) > after and max(takes[-1]) == last
        after = last


def joined(takes: list[Rows]) -> Rows:
    """Join all takes, and check that no observation is in two of them."""
    found = {number: these for take in takes for number, these in take.items()}
    assert sum(map(len, takes)) == len(found), "an observation came twice or in parts"
    return found


def written(folder: Path, snapshots: list[Snapshot], segment_s: float, close: bool) -> Path:
    writer = RecordingWriter(folder, segment_s=segment_s, small_segment_bytes=0)
    for snapshot in snapshots:
        writer.append(snapshot)
    if close:
        writer.close()
    return folder


@pytest.fixture(scope="module", params=["stream", "parquet", "both"])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    segment_s = SEGMENT_S if request.param == "both" else 3600
    folder = tmp_path_factory.mktemp("recording") / "r"
    return Recording.open(written(folder, WRITTEN, segment_s, close=request.param == "parquet"))


def test_an_observation_has_all_its_rows_and_one_of_its_own(recording: Recording) -> None:
    found = joined(taken(recording, ALL))
    assert list(found) == list(range(SECONDS))
    for number, (before, seen) in enumerate(zip([None, *WRITTEN], WRITTEN, strict=False)):
        partitions = [row for row in found[number] if row["topic"] is not None and row["group"] is None]
        offsets = [row for row in found[number] if row["group"] is not None]
        (moment,) = [row for row in found[number] if row["topic"] is None]
        there = {"sequence": number, "observed_ms": seen.observation.ended_ms}
        assert moment == dict.fromkeys(DELTAS.names) | there
        assert all(row.items() >= there.items() for row in partitions + offsets)
        counted = partition_deltas(before, seen)
        assert sum(row["records"] for row in partitions) == counted.records_in.sum()
        assert sum(row["fell"] for row in partitions) == counted.truncated.sum()
        if before is not None:
            out = offset_deltas(before, seen).records_out.sum()
            assert sum(row["records"] for row in offsets) == out


@pytest.mark.parametrize("enough", [0, 1, 40, 300, 1500])
def test_each_observation_comes_once_and_whole_however_much_is_taken(
    recording: Recording, enough: int
) -> None:
    takes = taken(recording, enough)
    assert joined(takes) == joined(taken(recording, ALL))
    assert len(takes) > 1
    for take in takes:
        *others, last = deltas(take).values()
        assert not others or sum(others) < enough
        assert take is takes[-1] or sum(others) + last >= enough


def test_what_is_not_new_does_not_come(recording: Recording) -> None:
    for after in (0, SEGMENT_S - 1, SEGMENT_S, SECONDS - 2):
        assert list(joined(taken(recording, 200, after))) == list(range(after + 1, SECONDS))
    for after in (SECONDS - 1, SECONDS + 5):
        assert next_rows(recording, after) == ([], after)


def test_an_empty_recording_has_nothing_new(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "r")
    assert next_rows(Recording.open(tmp_path / "r"), -1) == ([], -1)


def test_the_source_reads_the_same_again(recording: Recording) -> None:
    """Spark reads again after a failure, when an open segment may have been closed."""
    options = {"path": str(recording.folder), "after": "-1"}
    reader = RecordingSource(options).simpleStreamReader(PACKED)
    assert reader.initialOffset() == {"sequence": -1}
    batches, end = reader.read({"sequence": -1})
    assert end == {"sequence": SECONDS - 1}
    found = by_observation(flat(batches))
    assert found == joined(taken(recording, ALL))
    for first, last in ((-1, SECONDS - 1), (4, 5), (SEGMENT_S - 2, 2 * SEGMENT_S), (7, 7)):
        again = by_observation(flat(reader.readBetweenOffsets({"sequence": first}, {"sequence": last})))
        assert again == {number: found[number] for number in range(first + 1, last + 1)}


def test_what_is_packed_is_the_same_in_spark(spark: SparkSession, recording: Recording) -> None:
    batches, _ = next_rows(recording, -1, 2000)
    packed = packed_table(batches)
    assert packed.num_rows == len(batches)
    there = unpacked(spark.createDataFrame(packed)).toArrow()
    assert there.to_pylist() == pa.Table.from_batches(batches).to_pylist()


def test_the_source_sees_what_is_added(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    reader = RecordingSource({"path": str(tmp_path / "r"), "after": "-1"}).simpleStreamReader(PACKED)
    end = reader.initialOffset()
    for number, snapshot in enumerate(WRITTEN[:4]):
        writer.append(snapshot)
        batches, end = reader.read(end)
        assert list(by_observation(flat(batches))) == [number] and end == {"sequence": number}
    batches, again = reader.read(end)
    assert not list(batches) and again == end


@pytest.mark.parametrize("enough", [1, ALL])
def test_a_recording_is_read_while_it_is_written(tmp_path: Path, enough: int) -> None:
    writer = RecordingWriter(tmp_path / "r", segment_s=SEGMENT_S, small_segment_bytes=0)
    recording = Recording.open(tmp_path / "r")
    takes: list[Rows] = []
    for number, snapshot in enumerate(WRITTEN):
        writer.append(snapshot)
        if number % 3 == 0:  # Segments are closed between two reads, and during a read.
            takes += taken(recording, enough, max(takes[-1], default=-1) if takes else -1)
            recording.refresh()
            takes += taken(recording, enough, max(takes[-1], default=-1) if takes else -1)
            assert max(takes[-1]) == number
    writer.close()
    takes += taken(recording, enough, max(takes[-1]))
    recording.refresh()
    takes += taken(recording, enough, max(takes[-1]))
    assert joined(takes) == joined(taken(Recording.open(tmp_path / "r"), ALL))
    assert len(joined(takes)) == SECONDS


def test_what_a_ring_has_dropped_is_passed_over(tmp_path: Path) -> None:
    recorder, world = FlightRecorder(tmp_path, "run", limit_ms=LONGEST_SEGMENT_S * 3000), default_world()

    def observe(count: int) -> None:
        """Record observations so far apart that each of them is in a segment of its own."""
        for _ in range(count):
            recorder.append(world.tick())
            world.skip(LONGEST_SEGMENT_S)

    observe(3)
    recording = Recording.open(recorder.folder)
    assert list(joined(taken(recording, 1, 0))) == [1, 2]
    observe(9)
    # The reader does not know the new segments yet, and those that it knows have been deleted.
    assert next_rows(recording, 2) == ([], 2)
    recording.refresh()
    left = Recording.open(recorder.folder).sequences().tolist()
    assert left[0] > 3 and left[-1] == 11
    assert list(joined(taken(recording, 1, 2))) == left
    known = Recording.open(recorder.folder)
    observe(1)
    assert list(joined(taken(known, ALL, 2))) == left[1:]
    reader = RecordingSource({"path": str(recorder.folder), "after": "-1"}).simpleStreamReader(PACKED)
    again = flat(reader.readBetweenOffsets({"sequence": 2}, {"sequence": 12}))
    assert list(by_observation(again)) == [*left[1:], 12]


JUMPS_MS = (1_000, 1_000, 1_000, -1_000, -SET_BACK_MS, -SET_BACK_MS - 1, -3_600_000, 90_000)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    jumps=st.lists(st.sampled_from(JUMPS_MS), min_size=1, max_size=14),
    segment_s=st.sampled_from((3, 3600)),
    enough=st.sampled_from((1, 150, ALL)),
    close=st.booleans(),
)
def test_a_take_never_spans_a_clock_that_is_set_back(
    tmp_path_factory: pytest.TempPathFactory,
    jumps: list[int],
    segment_s: int,
    enough: int,
    close: bool,
) -> None:
    now_ms, snapshots = WRITTEN[0].observation.ended_ms, []
    for snapshot, jump_ms in zip(WRITTEN, [0, *jumps], strict=False):
        now_ms += jump_ms
        seen = replace(snapshot.observation, began_ms=now_ms - 5, ended_ms=now_ms)
        snapshots.append(replace(snapshot, observation=seen))
    recording = Recording.open(written(tmp_path_factory.mktemp("r") / "r", snapshots, segment_s, close))
    takes = taken(recording, enough)
    assert list(joined(takes)) == list(range(len(snapshots)))
    cuts, latest_ms = {0}, 0
    for take in takes:
        times = [snapshots[number].observation.ended_ms for number in take]
        for number, time_ms in enumerate(times):
            assert max(times[: number + 1]) - time_ms <= SET_BACK_MS, times
    for number, snapshot in enumerate(snapshots):
        time_ms = snapshot.observation.ended_ms
        if latest_ms - time_ms > SET_BACK_MS:
            cuts.add(number)
            latest_ms = 0
        latest_ms = max(latest_ms, time_ms)
    begins = {min(take) for take in takes}
    assert begins == cuts if enough == ALL else begins >= {0}


def only_batches(recording: Recording) -> DeltaBatches:
    (batches,) = recording.delta_batches()
    return batches


def test_parts_of_batches(tmp_path: Path) -> None:
    batches = only_batches(Recording.open(written(tmp_path / "r", WRITTEN, 3600, close=False)))
    every = by_observation(rows(batches))
    counts = deltas(every)

    cut = up_to(batches, 7)
    assert cut.last_sequence == 7 and by_observation(rows(cut)) == {n: every[n] for n in range(8)}
    assert up_to(batches, SECONDS + 3).last_sequence == SECONDS - 1
    assert not list(rows(up_to(batches, -1)))

    for count in range(5, 9):
        room = sum(counts[number] for number in range(count))
        assert first_rows(batches, room).last_sequence == count - 1
        assert first_rows(batches, room + 1).last_sequence == count
    assert first_rows(batches, -5).last_sequence == 0
    assert first_rows(batches, sum(counts.values())) is batches

    began_ms = WRITTEN[0].observation.ended_ms
    assert before_set_back(batches, began_ms + SET_BACK_MS) is batches
    assert before_set_back(batches, began_ms + SET_BACK_MS + 1).last_sequence == -1
