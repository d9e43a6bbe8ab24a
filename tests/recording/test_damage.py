"""Any damage in the files of a recording results in an error that names the file and reports bad input."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kview.errors import BadUse
from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.recording.schema import SCHEMA_VERSION
from kview.recording.segment import STREAM_FILE
from tests.errors import raises_saying
from tests.recording.snapshots import ticking
from tests.recording.test_reading import recorded

Damage = Callable[[Path], object]
CLOSED, OPEN = "seg-000001", "seg-000002"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a recording with a closed segment and an open one."""
    recorded(tmp_path / "r", ticking(6, crash_at=2), segment_s=3, small_segment_bytes=0)
    return tmp_path / "r"


def read_all(folder: Path) -> None:
    """Read a recording in every possible way."""
    recording = Recording.open(folder)
    places = range(len(recording.moments()))
    for place in places:
        recording.at_place(place)
    list(recording.stretch(0, places[-1]))
    list(recording.changes(0, 1))
    list(recording.delta_batches())


def in_file(name: str, old: bytes | None, new: bytes) -> Damage:
    def change(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes().replace(old, new) if old else new)

    return change


def in_manifest(**changes: Any) -> Damage:
    def change(folder: Path) -> None:
        path = folder / MANIFEST
        manifest = json.loads(path.read_text())
        path.write_text(
            json.dumps(manifest | {name: change(manifest[name]) for name, change in changes.items()})
        )

    return change


def a_file_for_a_folder(folder: Path) -> None:
    shutil.rmtree(folder / CLOSED)
    (folder / CLOSED).write_text("")


def pipe_for(name: str) -> Damage:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def folder_for(name: str) -> Damage:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return change


def in_the_middle(name: str) -> Damage:
    """One bit is flipped, in the middle of the file."""

    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)

    return change


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (in_the_middle(f"{CLOSED}/numbers.parquet"), "numbers.parquet"),
        (pipe_for(f"{CLOSED}/numbers.parquet"), "numbers.parquet"),
        (pipe_for(f"{OPEN}/{STREAM_FILE}"), STREAM_FILE),
        (pipe_for(MANIFEST), MANIFEST),
        (folder_for(f"{OPEN}/{STREAM_FILE}"), STREAM_FILE),
        *((lambda folder, name=name: (folder / CLOSED / name).unlink(), name)
          for name in ("numbers.parquet", "words.parquet", "observations.parquet")),
        (lambda folder: (folder / CLOSED / "partition_deltas.parquet").unlink(), "partition_deltas.parquet"),
        (lambda folder: shutil.copy(folder / CLOSED / "words.parquet", folder / CLOSED / "numbers.parquet"),
         "numbers.parquet"),
        (a_file_for_a_folder, CLOSED),
        (in_file(f"{OPEN}/{STREAM_FILE}", b"invoice", b"\xff\xfe\xfdoice"), OPEN),
        (in_file(MANIFEST, None, b'{"version": %d, "columns": ["\xff"]}' % SCHEMA_VERSION), MANIFEST),
        (in_manifest(columns=lambda columns: columns[:-1]), MANIFEST),
        (in_manifest(columns=lambda columns: [*columns[:-1], "brokers.colour"]), MANIFEST),
        (in_manifest(columns=lambda columns: [*columns[:-1], columns[0]]), MANIFEST),
        (in_manifest(columns=lambda columns: columns[::-1]), CLOSED),
        (in_manifest(segments=lambda segments: [*segments, segments[0]]), MANIFEST),
    ],
)  # fmt: skip
def test_damage_is_an_error_that_names_the_file(folder: Path, damage: Damage, named: str) -> None:
    read_all(folder)
    damage(folder)
    with raises_saying(BadUse, rf"{named}\S* is (damaged \(.+\)|missing)"):
        read_all(folder)


def test_a_part_without_rows_has_no_file(tmp_path: Path) -> None:
    recorded(tmp_path / "r", ticking(1)).close()
    assert not (tmp_path / "r" / CLOSED / "partition_deltas.parquet").exists()
    read_all(tmp_path / "r")


FLIPS = """
import random, sys
from pathlib import Path
from kview.errors import KviewError
from tests.recording.test_damage import read_all
folder, stream = Path(sys.argv[1]), Path(sys.argv[2])
content, random = stream.read_bytes(), random.Random(7)
outcomes = {"read": 0, "damaged": 0}
for _ in range(20):
    changed = bytearray(content)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    stream.write_bytes(changed)
    try:
        read_all(folder)
    except KviewError:
        outcomes["damaged"] += 1
    else:
        outcomes["read"] += 1
print(*outcomes.values())
"""


def test_a_flipped_bit_in_a_stream_ends_no_process(folder: Path) -> None:
    """In a process of its own, because Arrow follows offsets that it has not checked."""
    stream = folder / OPEN / STREAM_FILE
    done = subprocess.run(
        [sys.executable, "-c", FLIPS, folder, stream], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    read, damaged = map(int, done.stdout.split())
    assert damaged and read + damaged == 20
