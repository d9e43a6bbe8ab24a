"""A report is written completely or not at all, and to what the user named."""

import os
import threading
from pathlib import Path

import pytest

from kview.errors import BadUse, ErrorKind, KviewError
from kview.run.report_files import ReportFormat, check_output, write_report
from tests.plain.report.sample import sample

TEXT_FORMS = (ReportFormat.JSON, ReportFormat.HTML, ReportFormat.TABLE)


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_a_file_is_replaced_and_keeps_its_mode_and_its_links(tmp_path: Path, form: ReportFormat) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    check_output(form, link, False)
    write_report(sample(), form, link, False)
    assert link.is_symlink() and len(file.read_bytes()) > 1000
    assert file.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link"}


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    check_output(ReportFormat.JSON, pipe, False)
    write_report(sample(), ReportFormat.JSON, pipe, False)
    reader.join()
    assert read[0].startswith("{") and pipe.is_fifo()


def test_a_full_device_is_reported_and_stays() -> None:
    full = Path("/dev/full")
    check_output(ReportFormat.HTML, full, False)
    with pytest.raises(BadUse) as caught:
        write_report(sample(), ReportFormat.HTML, full, False)
    assert caught.value.kind is ErrorKind.REPORT_NOT_WRITTEN
    assert full.is_char_device()


@pytest.mark.parametrize("form", [ReportFormat.CSV, ReportFormat.PARQUET])
def test_a_folder_cannot_take_the_place_of_a_device(form: ReportFormat) -> None:
    with pytest.raises(BadUse) as caught:
        check_output(form, Path("/dev/full"), False)
    assert caught.value.kind is ErrorKind.REPORT_NOT_A_FOLDER


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_report(sample(), ReportFormat.CSV, out, False)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "topics.csv").unlink()
    (out / "topics.csv").mkdir()
    with pytest.raises(KviewError):
        write_report(sample(), ReportFormat.CSV, out, False)
    after = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert after == {name: content for name, content in before.items() if name != "topics.csv"}
