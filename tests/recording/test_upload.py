"""Closed segments reach another file system sooner or later, but secrets do not reach any message."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kview.errors import BadUse
from kview.language.notices import text
from kview.model.notices import Notice, NoticeKind
from kview.recording.reader import Recording
from kview.recording.upload import Uploading, open_target, upload_missing, without_secrets
from kview.recording.writer import RecordingWriter
from tests.errors import raises_saying
from tests.recording.snapshots import all_of, assert_all_equal, ticking
from tests.waiting import PATIENCE_S, wait_until


def test_segments_are_uploaded_as_they_are_closed(tmp_path: Path) -> None:
    notices: list[Notice] = []
    uploading = Uploading(tmp_path / "r", f"file://{tmp_path}/there/r", notices.append)
    uploading.start()
    writer = RecordingWriter(tmp_path / "r", segment_s=5, small_segment_bytes=0, on_closed=uploading.closed)
    written = ticking(12)
    for snapshot in written[:8]:
        writer.append(snapshot)
    there = tmp_path / "there" / "r"
    wait_until((there / "manifest.json").exists, "the first segment")
    assert_all_equal(all_of(Recording.open(there)), written[:5])
    for snapshot in written[8:]:
        writer.append(snapshot)
    writer.close()
    assert uploading.stop(PATIENCE_S)
    assert_all_equal(all_of(Recording.open(there)), written)
    assert not list(there.rglob("*.arrows")) and not notices


def test_a_store_that_is_away_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("in the way")
    notices: list[Notice] = []
    uploading = Uploading(tmp_path / "r", f"file://{tmp_path}/there/r", notices.append)
    uploading.start()
    writer = RecordingWriter(tmp_path / "r", on_closed=uploading.closed)
    writer.append(ticking(1)[0])
    writer.close()
    wait_until(lambda: notices, "a notice")
    assert notices[0].kind is NoticeKind.UPLOAD_FAILED
    (tmp_path / "there").unlink()
    wait_until((tmp_path / "there" / "r" / "manifest.json").exists, "the segment")
    assert uploading.stop(PATIENCE_S)
    assert notices[-1].kind is NoticeKind.UPLOADING_AGAIN


def test_uploading_what_is_there_twice_does_nothing(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    writer.append(ticking(1)[0])
    writer.close()
    system, path = open_target(f"file://{tmp_path}/there")
    done: set[int] = set()
    assert upload_missing(tmp_path / "r", system, path, done) == 1
    assert upload_missing(tmp_path / "r", system, path, done) == 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nowhere://user:sesame@host/x", r"nowhere://host/x \(Unrecognized filesystem type in URI\)"),
        ("s3:///", r"s3:/// \(Missing bucket name in S3 URI\)"),
        ("not a url", r"not a url \(Cannot parse URI\)"),
        ("bucket/x", r"bucket/x \(URI has empty scheme\)"),
        ("user:sesame@bucket/x", r"bucket/x \("),
        ("http://[bad", r"http://\[bad \(Cannot parse URI\)"),
    ],
)
def test_the_error_of_a_bad_target_has_words_and_no_secrets(url: str, says: str) -> None:
    with raises_saying(BadUse, f"cannot upload to {says}") as raised:
        open_target(url)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "s3://AKIA:sesame@bucket/folder?endpoint_override=http://u:sesame@minio",
            "s3://bucket/folder",
        ),
        ("s3://AKIA:ses/sesame@bucket/folder", "s3://bucket/folder"),
        ("hdfs://sesame@host:80/a", "hdfs://host:80/a"),
        ("bucket/folder?sesame", "bucket/folder"),
        ("file:///here/a@b", "file:///here/a@b"),
    ],
)
def test_messages_leave_secrets_out(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


class _Denying(BaseHTTPRequestHandler):
    """A store that lets nobody in."""

    def _deny(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_PUT = do_POST = _deny

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_a_store_that_denies_access_is_named_as_the_reason(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    writer.append(ticking(1)[0])
    writer.close()
    store = ThreadingHTTPServer(("127.0.0.1", 0), _Denying)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    notices: list[Notice] = []
    url = f"s3://key:sesame@bucket/x?region=eu-1&scheme=http&endpoint_override=127.0.0.1:{store.server_port}"
    try:
        uploading = Uploading(tmp_path / "r", url, notices.append)
        uploading.start()
        assert not uploading.stop(PATIENCE_S)
    finally:
        store.shutdown()
        store.server_close()
    said = "uploading to s3://bucket/x failed (access denied); retrying"
    assert [text(notice) for notice in notices] == [said]


def test_a_target_that_cannot_be_reached_is_not_called_a_bad_url() -> None:
    said = r"kview cannot access hdfs://nowhere:1/x \(.*: check the address, the network"
    with raises_saying(BadUse, said):
        open_target("hdfs://nowhere:1/x")
