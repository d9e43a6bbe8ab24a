"""Whatever is wrong in the files of a recording, the error names the file and is one of wrong input."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kview.errors import BadUse
from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.recording.segment import STREAM_FILE
from tests.errors import raises_saying
from tests.recording.snapshots import ticking
from tests.recording.test_reading import recorded

Damage = Callable[[Path], object]
CLOSED, OPEN = "seg-000001", "seg-000002"
VERSION_1 = Path(__file__).parent / "version1" / "closed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording with a closed segment and an open one."""
    recorded(tmp_path / "r", ticking(6, crash_at=2), segment_s=3, small_segment_bytes=0)
    return tmp_path / "r"


def read_all(folder: Path) -> None:
    """Read a recording in every way."""
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


def the_version_before(folder: Path) -> None:
    columns = json.loads((VERSION_1 / MANIFEST).read_text())["columns"]
    in_manifest(version=lambda _: 1, columns=lambda _: columns)(folder)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        *((lambda folder, name=name: (folder / CLOSED / name).unlink(), name)
          for name in ("numbers.parquet", "words.parquet", "observations.parquet")),
        (lambda folder: (folder / CLOSED / "partition_deltas.parquet").unlink(), "partition_deltas.parquet"),
        (lambda folder: shutil.copy(folder / CLOSED / "words.parquet", folder / CLOSED / "numbers.parquet"),
         "numbers.parquet"),
        (a_file_for_a_folder, CLOSED),
        (in_file(f"{OPEN}/{STREAM_FILE}", b"invoice", b"\xff\xfe\xfdoice"), OPEN),
        (in_file(MANIFEST, None, b'{"version": 2, "columns": ["\xff"]}'), MANIFEST),
        (in_manifest(columns=lambda columns: columns[:-1]), MANIFEST),
        (in_manifest(columns=lambda columns: [*columns[:-1], "brokers.colour"]), MANIFEST),
        (in_manifest(columns=lambda columns: [*columns[:-1], columns[0]]), MANIFEST),
        (in_manifest(columns=lambda columns: columns[::-1]), CLOSED),
        (in_manifest(segments=lambda segments: [*segments, segments[0]]), MANIFEST),
        (in_manifest(version=lambda _: 0), MANIFEST),
        (in_manifest(version=lambda _: -1), MANIFEST),
        (the_version_before, "observations.parquet"),
    ],
)  # fmt: skip
def test_damage_is_an_error_that_names_the_file(folder: Path, damage: Damage, named: str) -> None:
    read_all(folder)
    damage(folder)
    with raises_saying(BadUse, rf"{named}\S* is damaged \(.+\)"):
        read_all(folder)


def test_a_part_without_rows_has_no_file(tmp_path: Path) -> None:
    recorded(tmp_path / "r", ticking(1)).close()
    assert not (tmp_path / "r" / CLOSED / "partition_deltas.parquet").exists()
    read_all(tmp_path / "r")
