"""Recordings reach an S3 store, where they are the same, and the credentials reach no log."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from kview.model.notices import Notice
from kview.recording.fact_schema import FACTS
from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.recording.upload import Uploading, hidden_secrets, open_target
from tests.recording.runs_with_facts import recorded, rows, two_incidents_seen
from tests.recording.snapshots import all_of, assert_all_equal
from tests.s3_store import BUCKET, KEY, SECRET, s3_store, system
from tests.served import kview_command, kview_environment
from tests.waiting import PATIENCE_S, wait_until


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with s3_store() as address:
        yield address


def _ignore(notice: Notice) -> None:
    """Take a notice of an attempt that a busy machine made too slow: there is another one."""


def fetched(store: str, name: str, folder: Path) -> Path:
    """Copy a recording from the store to a folder."""
    fs.copy_files(f"{BUCKET}/{name}", str(folder), source_filesystem=system(store))
    return folder


@pytest.mark.slow  # tests/cli/test_recordings.py uploads, too
def test_what_is_uploaded_is_what_was_recorded(store: str, tmp_path: Path) -> None:
    options = f"region=eu-west-1&scheme=http&endpoint_override={store}"
    url = f"s3://{KEY}:{SECRET.replace('/', '%2F')}@{BUCKET}/run?{options}"
    uploading = Uploading(tmp_path / "r", url, _ignore)
    uploading.start()
    run = two_incidents_seen()
    writer = recorded(tmp_path / "r", run, segment_s=20, small_segment_bytes=0)
    writer.close()
    uploading.closed(tmp_path / "r", writer.segments[-1])
    last = f"{BUCKET}/run/{writer.segments[-1].folder}/words.parquet"
    wait_until(lambda: system(store).get_file_info(last).is_file, "the last segment", 2 * PATIENCE_S)
    assert uploading.stop(PATIENCE_S)
    here = Recording.open(tmp_path / "r")
    there = Recording.open(fetched(store, "run", tmp_path / "there"))
    assert_all_equal(all_of(there), all_of(here))
    assert {part: rows(there, part) for part in FACTS} == {part: rows(here, part) for part in FACTS}
    for entry in writer.segments:
        for path in (tmp_path / "r" / entry.folder).glob("*.parquet"):
            read = pq.read_table(f"{BUCKET}/run/{entry.folder}/{path.name}", filesystem=system(store))
            assert read.equals(pq.read_table(path))


def test_a_run_uploads_with_the_environments_credentials(store: str, tmp_path: Path) -> None:
    environment = {
        **kview_environment(),
        "AWS_ENDPOINT_URL": f"http://{store}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "eu-west-1",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    flags = ("--record", str(tmp_path / "r"), "--record-upload", f"s3://{BUCKET}/live", "--format", "json")
    said = tmp_path / "said"
    with said.open("wb") as output:  # a pipe that nobody reads would stop it
        process = subprocess.Popen(
            kview_command("--simulate", *flags),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        stream = tmp_path / "r" / "seg-000001" / "group_lags.arrows"
        wait_until(stream.exists, "facts on the disk", PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    here = Recording.open(tmp_path / "r")
    there = Recording.open(fetched(store, "live", tmp_path / "there"))
    assert [segment.closed for segment in there.segments()] == [True]
    assert there.moments().tolist() == here.moments().tolist()
    assert rows(there, "findings") == rows(here, "findings") != []
    logs = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    logs += said.read_bytes()
    assert SECRET.encode() not in logs and KEY.encode() not in logs


class _Echoing(BaseHTTPRequestHandler):
    """A store that repeats in its error what it was sent."""

    def _deny(self) -> None:
        said = f"{self.headers['Authorization']} {SECRET}"
        body = f"<Error><Code>AccessDenied</Code><Message>{said}</Message></Error>".encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = _deny

    def do_HEAD(self) -> None:
        """Say that the bucket is there, because an answer to HEAD has no body to repeat anything in."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("in_url", [True, False])
def test_what_a_store_repeats_is_hidden_in_the_log(
    in_url: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorded(tmp_path / "r", two_incidents_seen()[:2]).close()
    denying = ThreadingHTTPServer(("127.0.0.1", 0), _Echoing)
    threading.Thread(target=denying.serve_forever, daemon=True).start()
    options = f"region=eu-1&scheme=http&endpoint_override=127.0.0.1:{denying.server_port}"
    user = f"{KEY}:{SECRET.replace('/', '%2F')}@" if in_url else ""
    if not in_url:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    try:
        uploading = Uploading(tmp_path / "r", f"s3://{user}{BUCKET}/x?{options}", lambda notice: None)
        uploading.start()
        assert not uploading.stop(PATIENCE_S)
    finally:
        denying.shutdown()
        denying.server_close()
    assert f"upload to s3://{BUCKET}/x failed" in caplog.text and "ACCESS_DENIED" in caplog.text
    assert "***" in caplog.text
    assert SECRET not in caplog.text and KEY not in caplog.text


@pytest.mark.parametrize(
    ("url", "text", "said"),
    [
        ("s3://AKIA:ses%2Fame@b/x", "key AKIA, secret ses/ame or ses%2Fame", "key ***, secret *** or ***"),
        ("s3://b/x?secret=ab+c&n=", "ab c", "***"),
        (
            "s3://b/x?region=eu-1&scheme=http&endpoint_override=http://me:ses@minio:80",
            "http://me:ses@minio:80 in eu-1",
            "http://***:***@minio:80 in eu-1",
        ),
        ("s3://b/x", "nothing to hide", "nothing to hide"),
        ("http://[bad", "s3", "s3"),
    ],
)
def test_secrets_are_hidden(url: str, text: str, said: str) -> None:
    assert hidden_secrets(text, url) == said


def test_the_manifest_in_the_store_is_complete_at_any_time(store: str, tmp_path: Path) -> None:
    run = two_incidents_seen()[:20]
    options = f"region=eu-west-1&scheme=http&endpoint_override={store}"
    url = f"s3://{KEY}:{SECRET.replace('/', '%2F')}@{BUCKET}/growing?{options}"
    target, path = open_target(url)
    uploading = Uploading(tmp_path / "r", url, _ignore)
    uploading.start()
    writer = recorded(tmp_path / "r", run[:15], segment_s=8, small_segment_bytes=0)
    uploading.closed(tmp_path / "r", writer.segments[0])
    wait_until(lambda: target.get_file_info(f"{path}/{MANIFEST}").is_file, "the first segment", PATIENCE_S)
    with target.open_input_stream(f"{path}/{MANIFEST}") as stream:
        manifest = json.loads(stream.read())
    for entry in manifest["segments"]:
        assert entry["closed"]
        there = target.get_file_info(fs.FileSelector(f"{path}/seg-{entry['number']:06}"))
        assert sum(file.size for file in there) == entry["size_bytes"]
    assert uploading.stop(PATIENCE_S)
    assert os.listdir(tmp_path) == ["r"]
