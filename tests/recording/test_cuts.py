"""After a kill or a power cut at any byte, every complete observation before it can be read."""

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.recording.segment import STREAM_FILE
from kview.recording.writer import RecordingWriter
from tests.recording.snapshots import all_of, assert_all_equal, ticking
from tests.served import kview_environment
from tests.waiting import wait_until

SEED = 20
RANDOM_CUTS = 60
WRITTEN = ticking(8, crash_at=4)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, list[int]]:
    """Return a recording of eight observations that was killed, with its stream and the ends of the stream's
    messages."""
    folder = tmp_path_factory.mktemp("cut") / "r"
    writer = RecordingWriter(folder)
    ends = []
    for snapshot in WRITTEN:
        writer.append(snapshot)
        ends.append((folder / "seg-000001" / STREAM_FILE).stat().st_size)
    content = (folder / "seg-000001" / STREAM_FILE).read_bytes()
    assert len(content) == ends[-1]
    return folder, content, ends


def check_cut(stream: tuple[Path, bytes, list[int]], cut: int, tail: bytes = b"") -> None:
    folder, content, ends = stream
    (folder / "seg-000001" / STREAM_FILE).write_bytes(content[:cut] + tail)
    read = all_of(Recording.open(folder))
    whole = sum(end <= cut for end in ends)
    assert_all_equal(read, WRITTEN[:whole])
    batches = list(Recording.open(folder).delta_batches())
    assert [batch.last_sequence for batch in batches] == ([whole - 1] if whole else [])


def test_cuts_at_every_boundary_of_a_message(stream: tuple[Path, bytes, list[int]]) -> None:
    head = [0, 1, 4, 7, 8]
    for end in [0, *stream[2]]:
        for near in (-1, 0, 1, 4, 8, 9):
            if 0 <= end + near <= len(stream[1]):
                check_cut(stream, end + near)
    for cut in head:
        check_cut(stream, cut)


def test_cuts_between_metadata_and_body(stream: tuple[Path, bytes, list[int]]) -> None:
    content, at = stream[1], 0
    with pa.BufferReader(content) as source:
        while at < len(content):
            message = pa.ipc.read_message(source)
            body = 0 if message.body is None else message.body.size
            at = source.tell()
            check_cut(stream, at - body)
            check_cut(stream, at - body + min(8, body))


def test_cuts_at_random_bytes(stream: tuple[Path, bytes, list[int]]) -> None:
    chance = random.Random(SEED)
    for _ in range(RANDOM_CUTS):
        check_cut(stream, chance.randrange(len(stream[1]) + 1))


@pytest.mark.parametrize("tail", [b"\0" * 7, b"\0" * 4096])
def test_zeros_that_a_power_cut_left_behind_are_no_observations(
    stream: tuple[Path, bytes, list[int]], tail: bytes
) -> None:
    check_cut(stream, stream[2][4], tail)


def test_a_kill_while_a_segment_is_being_closed(tmp_path: Path) -> None:
    """The folder may have part of the Parquet files, all files but an old manifest, or a new manifest with
    the stream still there."""
    written = ticking(6)
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in written:
        writer.append(snapshot)
    killed, closed = tmp_path / "killed", tmp_path / "r"
    shutil.copytree(closed, killed)
    writer.close()
    for path in sorted((closed / "seg-000001").iterdir()):
        for part in (path.read_bytes()[:100], path.read_bytes()):
            (killed / "seg-000001" / path.name).write_bytes(part)
            assert_all_equal(all_of(Recording.open(killed)), written)
    (killed / f"{MANIFEST}.new").write_bytes((closed / MANIFEST).read_bytes()[:10])
    assert_all_equal(all_of(Recording.open(killed)), written)
    shutil.copy(closed / MANIFEST, killed / MANIFEST)
    assert_all_equal(all_of(Recording.open(killed)), written)


RECORD_FOR_EVER = """
import sys
from pathlib import Path
from kview.recording.writer import RecordingWriter
from tests.worlds import default_world
world, writer = default_world(), RecordingWriter(Path(sys.argv[1]), segment_s=3, small_segment_bytes=0)
while True:
    writer.append(world.tick())
"""


def test_a_process_killed_while_it_records(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    process = subprocess.Popen([sys.executable, "-c", RECORD_FOR_EVER, str(folder)], env=kview_environment())
    try:
        wait_until((folder / "seg-000004").exists, "a fourth segment")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    read = all_of(Recording.open(folder))
    assert len(read) >= 9
    assert_all_equal(read, ticking(len(read)))
