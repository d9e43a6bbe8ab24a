"""Recordings in an S3 store are reported on as if they were in a folder."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from tests.benchmarks.synthetic import write_recording
from tests.pipeline.commanded import document, start

KEY, SECRET = "AKIAOFATEST", "sesame/open"
BUCKET = "recordings"


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Start a store with an empty bucket, and yield its address, HOST:PORT."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    system(f"{host}:{port}").create_dir(BUCKET)
    yield f"{host}:{port}"
    server.stop()


def system(store: str) -> fs.S3FileSystem:
    return fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        region="eu-west-1",
        scheme="http",
        endpoint_override=store,
        allow_bucket_creation=True,
    )


def url(store: str, path: str, scheme: str = "s3") -> str:
    options = f"region=eu-west-1&scheme=http&endpoint_override={store}"
    return f"{scheme}://{KEY}:{SECRET.replace('/', '%2F')}@{BUCKET}/{path}?{options}"


def uploaded(store: str, folder: Path, path: str) -> None:
    fs.copy_files(str(folder), f"{BUCKET}/{path}", destination_filesystem=system(store))


def figures(made: dict[str, object]) -> object:
    """A report without the recordings' addresses."""
    tables = made["tables"]
    assert isinstance(tables, dict)
    return {name: rows for name, rows in tables.items() if name != "periods"}


def test_a_report_on_a_store_is_the_same(store: str, tmp_path: Path) -> None:
    for number in range(2):
        write_recording(tmp_path / "fleet" / f"r{number}", 20, 70 + 70 * number, 2 + number)
        uploaded(store, tmp_path / "fleet" / f"r{number}", f"fleet/x/r{number}")
    expected = document(start(tmp_path / "fleet" / "r1", "--format", "json"))
    cache = ("--format", "json", "--cache", tmp_path / "cache")
    fresh = document(start(url(store, "fleet/x/r1"), *cache))
    assert figures(fresh) == figures(expected)
    assert [row["recording"] for row in fresh["tables"]["periods"]] == [f"s3://{BUCKET}/fleet/x/r1"]

    for entry in system(store).get_file_info(fs.FileSelector(f"{BUCKET}/fleet", recursive=True)):
        if entry.base_name in ("partition_deltas.parquet", "offset_deltas.parquet") and "/r1/" in entry.path:
            system(store).open_output_stream(entry.path).close()  # reading it again would fail
    kept = document(start(url(store, "fleet/x/r1", "s3a"), *cache))
    assert figures(kept) == figures(expected)
