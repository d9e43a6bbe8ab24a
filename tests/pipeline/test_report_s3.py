"""Recordings in an S3 store are reported on as if they were in a folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark import SparkContext

from kview.errors import BadUse
from kview.model.report import NoteKind, Report
from kview.model.report_tables import TableName
from kview.pipeline.kept import place_of
from kview.pipeline.kernel.summing import Scope
from kview.pipeline.kernel.walking import RollUp, Segment, roll_up
from kview.pipeline.report import Question, report
from kview.pipeline.rolling import DELTAS
from kview.pipeline.sources import check_files, closed_moments, open_source
from kview.recording.places import find_places, open_place
from kview.run.reporting import recordings
from tests.benchmarks.synthetic import write_recording
from tests.errors import raises_saying
from tests.pipeline.here import HERE
from tests.pipeline.recorded import figures_of, report_on
from tests.s3_store import BUCKET, KEY, SECRET, s3_store, system


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with s3_store() as address:
        yield address


def url(store: str, path: str, scheme: str = "s3") -> str:
    options = f"region=eu-west-1&scheme=http&endpoint_override={store}"
    return f"{scheme}://{KEY}:{SECRET.replace('/', '%2F')}@{BUCKET}/{path}?{options}"


def uploaded(store: str, folder: Path, path: str) -> None:
    fs.copy_files(str(folder), f"{BUCKET}/{path}", destination_filesystem=system(store))


def addresses(made: Report) -> list[str]:
    return [str(one) for one in made[TableName.PERIODS]["recording"]]


def test_a_report_on_a_store_is_the_same(spark: SparkContext, store: str, tmp_path: Path) -> None:
    write_recording(tmp_path / "r", 20, 130, 2)
    uploaded(store, tmp_path / "r", "fleet/x/r")
    expected = report_on(spark, tmp_path, tmp_path / "r")
    cache = tmp_path / "cache"
    places = recordings([url(store, "fleet")])
    fresh = report(spark, places, Question(), tmp_path, cache)
    assert figures_of(fresh) == figures_of(expected)
    assert addresses(fresh) == [f"s3://{BUCKET}/fleet/x/r"]
    assert list(tmp_path.glob("fetched-*")) == []

    for number in (1, 2):  # reading them again would fail
        file = f"{BUCKET}/fleet/x/r/seg-{number:06}/partition_deltas.parquet"
        with system(store).open_output_stream(file) as emptied:
            emptied.write(bytes(1 << 20))
    kept = report(spark, recordings([url(store, "fleet/x/r", "s3a")]), Question(), tmp_path, cache)
    assert figures_of(kept) == figures_of(expected)
    assert kept[TableName.PERIODS]["rolled_up"].tolist() == [0]


def test_recordings_are_found_in_a_store(store: str, tmp_path: Path) -> None:
    write_recording(tmp_path / "r", 1, 3, 2)
    for path in ("found/a/r1", "found/a/r2", "found/b/c/r1", "found/r1"):
        uploaded(store, tmp_path / "r", path)
    for pattern, paths in {
        "found": ["a/r1", "a/r2", "b/c/r1", "r1"],
        "found/a/r1": ["a/r1"],
        "found/*/r1": ["a/r1"],
        "found/**/r1": ["a/r1", "b/c/r1", "r1"],
        "found/a*": ["a/r1", "a/r2"],
        "found/*/*": ["a/r1", "a/r2", "b/c/r1"],
    }.items():
        places = find_places(url(store, pattern))
        assert [place.address for place in places] == [f"s3://{BUCKET}/found/{path}" for path in paths]
        assert all(SECRET not in place.address and KEY not in place.address for place in places)
    with raises_saying(BadUse, "is not a kview recording"):
        find_places(url(store, "found/z*"))
    with raises_saying(BadUse, "is not a kview recording"):
        find_places(url(store, "nowhere"))


def test_what_is_wrong_with_a_store_is_told_from_damage(store: str, tmp_path: Path) -> None:
    write_recording(tmp_path / "r", 5, 130, 3)
    file = tmp_path / "r" / "seg-000002" / "partition_deltas.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 3 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 3)
    file.write_bytes(content)
    uploaded(store, tmp_path / "r", "damaged")
    (place,) = find_places(url(store, "damaged"))
    source = open_source(place)
    for entry in source.closed:
        check_files(source, entry)
        assert len(closed_moments(source, entry)[0])
    with raises_saying(BadUse, "--cache DIR"):
        place_of(source, None)
    made = report(HERE, [place], Question(), tmp_path, tmp_path / "cache")
    (note,) = (note for note in made.period.notes if note.kind is NoteKind.SEGMENT_DAMAGED)
    assert note.values["file"] == f"s3://{BUCKET}/damaged/seg-000002/partition_deltas.parquet"

    system(store).delete_file(f"{BUCKET}/damaged/seg-000001/partition_deltas.parquet")
    with raises_saying(BadUse, f"s3://{BUCKET}/damaged/seg-000001 is damaged"):
        check_files(source, source.closed[0])
    nobody = open_place(url("127.0.0.1:1", "damaged"))
    for where, is_store, reason in ((place, False, None), (nobody, True, "NETWORK")):
        paths = {"partition_deltas": f"{BUCKET}/damaged/seg-000001/partition_deltas.parquet"}
        segment = Segment(1, f"{where.address}/seg-000001", where.system, paths)
        work = RollUp(0, 0, tmp_path, Scope(0, 0, ()), DELTAS, {}, [segment])
        (found,) = roll_up([work])
        assert found.is_store is is_store
        assert found.reason is None if reason is None else reason in str(found.reason)
