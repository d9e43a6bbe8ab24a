"""A recording that is read equals what was written, from streams and from Parquet."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from kview.errors import BadUse, KviewError
from kview.model.snapshot import Snapshot
from kview.recording import segment
from kview.recording.columns import NAMES
from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.recording.schema import SCHEMA_VERSION
from kview.recording.segment import CELLS, STREAM_FILE, part_of, stream_batches, write_closed
from kview.recording.writer import RecordingWriter
from tests.errors import raises_saying
from tests.recording.snapshots import (
    all_of,
    assert_all_equal,
    assert_equal,
    changed_partitions,
    histories,
    moved,
    size_of,
    ticking,
)
from tests.worlds import default_world

MEASURED_S = 240
MOST_BYTES_EACH = 12
"""Limit of bytes for each changed partition in each observation."""


def recorded(folder: Path, snapshots: list[Snapshot], **options: float) -> RecordingWriter:
    writer = RecordingWriter(folder, **options)  # type: ignore[arg-type]
    for snapshot in snapshots:
        writer.append(snapshot)
    return writer


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(histories())
def test_any_snapshots_come_back_equal(history: list[Snapshot]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "recording"
        writer = recorded(folder, history, small_segment_bytes=0)
        assert_all_equal(all_of(Recording.open(folder)), history)
        writer.close()
        recording = Recording.open(folder)
        assert_all_equal(all_of(recording), history)
        assert_all_equal([recording.at_place(at) for at in reversed(range(len(history)))], history[::-1])


def test_unchanged_columns_are_the_same_objects_from_moment_to_moment(tmp_path: Path) -> None:
    written = ticking(5)
    recorded(tmp_path / "r", written).close()
    read = all_of(Recording.open(tmp_path / "r"))
    assert read[1].partitions.topic is read[4].partitions.topic
    assert read[1].partitions.isr is read[4].partitions.isr
    assert read[1].time_points is read[4].time_points
    assert read[1].partitions.log_end is not read[2].partitions.log_end


def test_columns_are_shared_across_segments(tmp_path: Path) -> None:
    recorded(tmp_path / "r", ticking(4), segment_s=2, small_segment_bytes=0).close()
    recording = Recording.open(tmp_path / "r")
    assert len(recording.segments()) == 2
    read = all_of(recording)
    assert read[0].partitions.topic is read[3].partitions.topic


def test_words_are_interned(tmp_path: Path) -> None:
    recorded(tmp_path / "r", ticking(1)).close()
    topic = Recording.open(tmp_path / "r").at_place(0).partitions.topic[0]
    assert topic is sys.intern(str(topic))


def test_a_moment_is_found_by_its_time(tmp_path: Path) -> None:
    written = ticking(30, crash_at=10)
    recorded(tmp_path / "r", written, segment_s=10, small_segment_bytes=0)
    recording = Recording.open(tmp_path / "r")
    assert [segment.closed for segment in recording.segments()] == [True, True, False]
    moments = recording.moments()
    for place in (0, 9, 10, 11, 25, 29):
        assert_equal(recording.at_place(recording.place_of(int(moments[place]))), written[place])
        assert_equal(recording.at_place(recording.place_of(int(moments[place]) + 999)), written[place])
        assert_equal(Recording.open(tmp_path / "r").at_place(place), written[place])
    assert_equal(recording.at_place(recording.place_of(0)), written[0])
    between = recording.stretch(9, 21)
    assert_all_equal(list(between), written[9:22])


def test_the_order_is_that_of_recording_when_the_clock_jumps(tmp_path: Path) -> None:
    world = default_world()
    written = [world.tick() for _ in range(3)]
    world.next_ms -= 3_600_000
    written += [world.tick() for _ in range(3)]
    world.next_ms += 10 * 3_600_000
    written += [world.tick() for _ in range(3)]
    recorded(tmp_path / "r", written).close()
    recording = Recording.open(tmp_path / "r")
    assert recording.sequences().tolist() == list(range(9))
    # A clock that jumps back or far ahead begins a new segment, so that times in a segment only rise by small
    # steps.
    assert [segment.times[0].tolist() for segment in recording.segments()] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert_all_equal(all_of(recording), written)
    assert (np.diff(recording.moments()) < 0).sum() == 1


def test_an_observer_that_counts_from_0_again_does_not_confuse_the_order(tmp_path: Path) -> None:
    written = [*ticking(3), *ticking(3)]
    assert [s.observation.sequence for s in written] == [0, 1, 2, 0, 1, 2]
    recorded(tmp_path / "r", written).close()
    assert_all_equal(all_of(Recording.open(tmp_path / "r")), written)


def test_a_recording_that_is_being_written_grows_under_its_reader(tmp_path: Path) -> None:
    written = ticking(25)
    writer = recorded(tmp_path / "r", written[:5], segment_s=10, small_segment_bytes=0)
    recording = Recording.open(tmp_path / "r")
    assert len(recording.moments()) == 5
    for at in range(5, 25):
        writer.append(written[at])
        recording.refresh()
        assert_equal(recording.at_place(at), written[at])
    writer.close()
    recording.refresh()
    assert_all_equal(all_of(recording), written)


def test_a_segment_that_is_closed_between_two_refreshes_is_read_as_well(tmp_path: Path) -> None:
    written = ticking(5)
    writer = recorded(tmp_path / "r", written)
    recording = Recording.open(tmp_path / "r")
    writer.close()
    assert_all_equal(all_of(recording), written)
    assert recording.segments()[0].delta_batches().last_sequence == 4


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, SCHEMA_VERSION - 1, 0])
def test_another_format_is_refused_with_what_to_do(tmp_path: Path, version: int) -> None:
    recorded(tmp_path / "r", ticking(1)).close()
    manifest = json.loads((tmp_path / "r" / MANIFEST).read_text())
    manifest |= {"version": version, "segments": "in another shape"}
    (tmp_path / "r" / MANIFEST).write_text(json.dumps(manifest))
    with raises_saying(KviewError, f"format {version}, but this kview reads format {SCHEMA_VERSION} only"):
        Recording.open(tmp_path / "r")


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"version": "1"}'])
def test_what_is_not_a_recording_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_bytes(content)
    with raises_saying(KviewError, "not a kview recording|damaged"):
        Recording.open(tmp_path)


def test_an_empty_recording_is_an_error(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "r").close()
    recording = Recording.open(tmp_path / "r")
    assert not len(recording.moments())
    with raises_saying(KviewError, "has no complete observation"):
        recording.at_place(recording.place_of(0))


def test_cells_that_are_sorted_a_few_columns_at_a_time_are_the_same(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in ticking(9):
        writer.append(snapshot)
    writer.abandon()
    (folder,) = (tmp_path / "r").glob("seg-*")
    closed = {}
    for sorted_rows in (1, 40, 1_000_000):
        write_closed(folder, sorted_rows)
        files = {part: pq.ParquetFile(folder / f"{part}.parquet") for part in CELLS}
        assert all((file.num_row_groups > 1) == (sorted_rows < 1_000) for file in files.values())
        closed[sorted_rows] = {part: file.read() for part, file in files.items()}
    assert closed[1] == closed[40] == closed[1_000_000]


def test_a_part_that_could_not_be_written_to_its_end_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RecordingWriter(tmp_path / "r")
    writer.append(ticking(1)[0])
    writer.abandon()
    (folder,) = (tmp_path / "r").glob("seg-*")
    in_order, made = segment._in_order, list[str]()

    def fails_at_the_second(part: str, table: pa.Table) -> pa.Table:
        made.append(part)
        if len(made) == 2:
            raise MemoryError
        return in_order(part, table)

    monkeypatch.setattr(segment, "_in_order", fails_at_the_second)
    with pytest.raises(MemoryError):
        write_closed(folder, 1)
    assert made == ["numbers", "numbers"]
    assert not (folder / "numbers.parquet").exists() and (folder / STREAM_FILE).exists()


def test_damaged_parquet_is_an_error(tmp_path: Path) -> None:
    recorded(tmp_path / "r", ticking(2)).close()
    (tmp_path / "r" / "seg-000001" / "numbers.parquet").write_bytes(b"PAR1 and then nothing PAR1")
    with raises_saying(KviewError, "damaged"):
        Recording.open(tmp_path / "r").at_place(0)


def test_nothing_is_recorded_over(tmp_path: Path) -> None:
    recorded(tmp_path / "r", ticking(1)).close()
    with raises_saying(BadUse, "already holds a recording"):
        RecordingWriter(tmp_path / "r")


def test_a_row_without_news_costs_nothing(tmp_path: Path) -> None:
    """Unchanged values are read again every second, but only one time per broker is stored for them."""
    world = default_world()
    for log in world.logs:
        log.rate = 0.0
    recorded(tmp_path / "r", [world.tick() for _ in range(3)])
    batches = stream_batches(tmp_path / "r" / "seg-000001" / STREAM_FILE)
    changed = {NAMES[number] for number in part_of(batches[2:], "numbers")["column"].to_pylist()}
    of_rows = {name for name in changed if name.partition(".")[0] in ("partitions", "replicas", "offsets")}
    assert of_rows and all(name.endswith("@") for name in of_rows)
    assert not len(part_of(batches[2:], "partition_deltas")) + len(part_of(batches[2:], "offset_deltas"))


@pytest.mark.slow  # the size changes with the format alone
def test_four_minutes_of_the_default_world_are_small(tmp_path: Path) -> None:
    """This includes the log ends and times of three replicas. The internal topic is idle, which makes the
    limit harder to meet."""
    world, chance = default_world(), np.random.default_rng(1)
    for log in world.logs:
        log.rate *= not log.internal
    written = [moved(world.tick(), chance) for _ in range(MEASURED_S)]
    recorded(tmp_path / "r", written).close()
    changed = changed_partitions(written)
    assert changed >= 19 * MEASURED_S
    assert size_of(tmp_path / "r") / changed <= MOST_BYTES_EACH
