"""Recordings are found by folder and pattern, and told apart by their manifests alone."""

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from kview.errors import BadUse, ErrorKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.recording.listing import list_recordings
from kview.recording.names import MANIFEST
from kview.recording.schema import SCHEMA_VERSION
from kview.recording.writer import RecordingWriter
from tests.errors import raises_saying
from tests.recording.snapshots import size_of, ticking

WRITTEN = ticking(9)
OLD = Path(__file__).parent


def of_cluster(snapshot: Snapshot, cluster: str) -> Snapshot:
    return replace(snapshot, observation=replace(snapshot.observation, cluster_id=cluster))


def recorded(folder: Path, cluster: str, snapshots: list[Snapshot], close: bool = True) -> RecordingWriter:
    writer = RecordingWriter(folder, segment_s=4, small_segment_bytes=0)
    for snapshot in snapshots:
        writer.append(of_cluster(snapshot, cluster))
    if close:
        writer.close()
    return writer


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a folder with three recordings at different depths, in the order b, c, a."""
    recorded(tmp_path / "fleet" / "x" / "y" / "a", "alpha", WRITTEN[6:])
    recorded(tmp_path / "fleet" / "b", "beta", WRITTEN)
    recorded(tmp_path / "fleet" / "c", "gamma", WRITTEN[3:], close=False)
    (tmp_path / "fleet" / "other").mkdir()
    (tmp_path / "fleet" / "other" / "notes.txt").write_text("not a recording")
    return tmp_path / "fleet"


def ms(number: int) -> int:
    return WRITTEN[number].observation.ended_ms


def test_a_folder_of_recordings(fleet: Path) -> None:
    b, c, a = list_recordings([str(fleet)])
    assert [one.folder.name for one in (b, c, a)] == ["b", "c", "a"]
    assert (b.clusters, c.clusters, a.clusters) == (("beta",), ("gamma",), ("alpha",))
    assert [(one.began_ms, one.ended_ms, one.observations) for one in (b, c, a)] == [
        (ms(0), ms(8), 9),
        (ms(3), ms(8), 6),
        (ms(6), ms(8), 3),
    ]
    assert [(one.is_open, one.segments, one.version) for one in (b, c, a)] == [
        (False, 3, SCHEMA_VERSION),
        (True, 2, SCHEMA_VERSION),
        (False, 1, SCHEMA_VERSION),
    ]
    assert all(one.error is None for one in (a, b, c))
    assert b.size_bytes == size_of(fleet / "b") - (fleet / "b" / MANIFEST).stat().st_size


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["fleet/[bc]"], ["b", "c"]),
        (["fleet/**/a"], ["a"]),
        (["fleet/x", "fleet/x/y/a", "fleet/*"], ["b", "c", "a"]),
        (["fleet/b/"], ["b"]),
    ],
)
def test_patterns(fleet: Path, patterns: list[str], names: list[str]) -> None:
    listed = list_recordings([str(fleet.parent / pattern) for pattern in patterns])
    assert [one.folder.name for one in listed] == names


def test_a_name_that_looks_like_a_pattern(tmp_path: Path) -> None:
    recorded(tmp_path / "run [1]", "alpha", WRITTEN[:2])
    (listed,) = list_recordings([str(tmp_path / "run [1]")])
    assert listed.observations == 2


def test_links_lead_to_a_recording_once(fleet: Path) -> None:
    (fleet / "again").symlink_to(fleet / "b")
    (fleet / "x" / "up").symlink_to(fleet)
    assert len(list_recordings([str(fleet), str(fleet / "again")])) == 3


def test_only_the_manifest_of_a_closed_recording_is_read(fleet: Path) -> None:
    before = list_recordings([str(fleet / "b")])
    for folder in (fleet / "b").glob("seg-*"):
        shutil.rmtree(folder)
    assert list_recordings([str(fleet / "b")]) == before


@pytest.mark.parametrize("path", ["nowhere", "fleet/other", "fleet/z*", ""])
def test_a_path_without_recordings_is_an_error(fleet: Path, path: str) -> None:
    with raises_saying(BadUse, "is not a kview recording"):
        list_recordings([str(fleet), str(fleet.parent / path) if path else ""])


def test_those_that_cannot_be_read_are_listed_with_the_reason(fleet: Path) -> None:
    (fleet / "b" / MANIFEST).write_text("{")
    newer = json.loads((fleet / "c" / MANIFEST).read_text()) | {"version": SCHEMA_VERSION + 1}
    (fleet / "c" / MANIFEST).write_text(json.dumps(newer))
    listed = {one.folder.name: one for one in list_recordings([str(fleet)])}
    kinds = {name: one.error.kind for name, one in listed.items() if one.error is not None}
    assert kinds == {"b": ErrorKind.FILE_DAMAGED, "c": ErrorKind.RECORDING_FORMAT}
    assert listed["a"].error is None


def test_an_empty_recording_and_one_killed_within_its_first_observation(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "empty").close()
    recorded(tmp_path / "torn", "alpha", WRITTEN[:1], close=False)
    stream = tmp_path / "torn" / "seg-000001" / "observations.arrows"
    for content in (stream.read_bytes()[:-9], b""):
        stream.write_bytes(content)
        for one in list_recordings([str(tmp_path)]):
            assert (one.began_ms, one.observations, one.error) == (UNKNOWN, 0, None)


def test_a_recording_of_two_clusters(tmp_path: Path) -> None:
    writer = recorded(tmp_path / "r", "alpha", WRITTEN[:2], close=False)
    writer.append(of_cluster(WRITTEN[2], "beta"))
    assert list_recordings([str(tmp_path)])[0].clusters == ("alpha", "beta")
    writer.close()
    assert list_recordings([str(tmp_path)])[0].clusters == ("alpha", "beta")
