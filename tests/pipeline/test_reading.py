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

from kview.derive.deltas import offset_deltas, partition_deltas
from kview.model.aggregates import SET_BACK_MS
from kview.model.snapshot import Snapshot
from kview.pipeline.kernel.pieces import NAMES_IN_ROWS
from kview.pipeline.kernel.tables import SECONDS as SECONDS_COLUMNS
from kview.pipeline.reading import before_set_back, first_rows, next_rollups, next_rows, rows, up_to
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


def by_observation(batches: Iterable[pa.RecordBatch]) -> Rows:
    """Return the rows of each observation, in order; its own row has no topic."""
    found: Rows = {}
    for batch in batches:
        for row in batch.to_pylist():
            if "topic" not in row:
                row = {"sequence": row["sequence"], "observed_ms": row["ended_ms"], "topic": None}
            row = {"group": None, **{NAMES_IN_ROWS.get(name, name): value for name, value in row.items()}}
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
        assert moment == there | {"topic": None, "group": None}
        assert all(row.items() >= there.items() for row in partitions + offsets)
        counted = partition_deltas(before, seen)
        assert sum(row["records"] for row in partitions) == counted.records_in.sum()
        assert sum(row["fell"] for row in partitions) == counted.truncated.sum()
        if before is not None:
            out = offset_deltas(before, seen).records_out.sum()
            assert sum(row["records"] for row in offsets) == out


@pytest.mark.quick(5)
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


def test_roll_ups_say_which_observations_they_are_of(recording: Recording) -> None:
    found = next_rollups(str(recording.folder), -1)
    assert found is not None
    ends = [seen.observation.ended_ms for seen in WRITTEN]
    for name, value in (("last_sequence", SECONDS - 1), ("first_ms", ends[0]), ("last_ms", ends[-1])):
        assert set(found[name].to_pylist()) == {value}
    assert found.schema.names == [*SECONDS_COLUMNS.names, "last_sequence", "first_ms", "last_ms"]
    assert next_rollups(str(recording.folder), SECONDS - 1) is None


def test_roll_ups_of_what_is_added(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    assert next_rollups(str(tmp_path / "r"), -1) is None
    for number, snapshot in enumerate(WRITTEN[:4]):
        writer.append(snapshot)
        found = next_rollups(str(tmp_path / "r"), number - 1)
        assert found is not None and found["last_sequence"][0].as_py() == number
    assert next_rollups(str(tmp_path / "r"), 3) is None


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


JUMPS_MS = (1_000, 1_000, 1_000, -1_000, -SET_BACK_MS, -SET_BACK_MS - 1, -3_600_000, 90_000)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
