"""Writes a report: to the terminal or a pipe, to a file, or to a folder with a file for each table."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from kview.errors import BadUse, ErrorKind
from kview.model.report import Report
from kview.model.report_tables import Table

WIDTH = 120
"""The width of text that does not go to a terminal, in cells."""


class ReportFormat(StrEnum):
    """What a report is written as."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    HTML = "html"


FOLDERS = frozenset({ReportFormat.CSV, ReportFormat.PARQUET})
"""Formats with a file for each table."""


def check_output(form: ReportFormat, out: Path | None, is_terminal: bool) -> None:
    """Check before a report is made that it can be written. Raises BadUse if not."""
    if out is None:
        if form in FOLDERS:
            raise BadUse(ErrorKind.REPORT_NEEDS_FOLDER, format=form.value)
        if form is ReportFormat.HTML and is_terminal:
            raise BadUse(ErrorKind.REPORT_NEEDS_FILE)
        return
    if form in FOLDERS and out.exists() and not out.is_dir():
        raise BadUse(ErrorKind.REPORT_NOT_A_FOLDER, path=str(out), format=form.value)
    if form not in FOLDERS and out.is_dir():
        raise BadUse(ErrorKind.REPORT_NOT_A_FILE, path=str(out), format=form.value)
    if _is_device(out):
        is_writable = os.access(out, os.W_OK)
    else:
        folder = out if form in FOLDERS and out.exists() else out.resolve().parent
        while not folder.exists() and form in FOLDERS:
            folder = folder.parent
        is_writable = os.access(folder, os.W_OK | os.X_OK)
    if not is_writable:
        raise BadUse(ErrorKind.REPORT_NOT_WRITABLE, path=str(out))


def _is_device(path: Path) -> bool:
    """Return whether a path is a pipe or a device, such as /dev/stdout, which no file may replace."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_report(report: Report, form: ReportFormat, out: Path | None, ascii_only: bool) -> None:
    """Write a report. Files get their new content at once or keep the old one. Raises BadUse."""
    try:
        if form in FOLDERS:
            assert out is not None
            _write_folder(report, form, out)
        elif out is None:
            sys.stdout.write(_content(report, form, ascii_only, _width()))
            sys.stdout.flush()
        else:
            with _whole(out) as path:
                path.write_bytes(_content(report, form, ascii_only, WIDTH).encode())
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        reason = error.strerror or str(error)
        raise BadUse(
            ErrorKind.REPORT_NOT_WRITTEN, path=str(out or "standard output"), reason=reason
        ) from error


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give the path of a new file, which takes the place of `path` once it is complete.

    A link stays a link. Pipes and devices are written to directly. Raises OSError.
    """
    if _is_device(path):
        yield path
        return
    path = path.resolve()
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        if path.exists():
            part.chmod(path.stat().st_mode & 0o7777)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _width() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def _content(report: Report, form: ReportFormat, ascii_only: bool, width: int) -> str:
    made: dict[ReportFormat, Callable[[], str]] = {
        ReportFormat.TABLE: lambda: _text(report, ascii_only, width),
        ReportFormat.JSON: lambda: _json(report),
        ReportFormat.HTML: lambda: page_of(report),
    }
    return made[form]()


def _text(report: Report, ascii_only: bool, width: int) -> str:
    from kview.plain.report.text import text

    return "\n".join(text(report, width, ascii_only)) + "\n"


def _json(report: Report) -> str:
    from kview.plain.report.documents import json_document

    return json_document(report).decode()


def page_of(report: Report) -> str:
    """Return a report as a page of HTML."""
    from kview.plain.report.page import page

    return page(report)


def _write_folder(report: Report, form: ReportFormat, out: Path) -> None:
    from kview.plain.report.documents import csv_file, write_folder, write_parquet

    write = csv_file if form is ReportFormat.CSV else write_parquet

    def write_whole(table: Table, path: Path) -> None:
        with _whole(path) as part:
            write(table, part)

    write_folder(report, out, form.value, write_whole)
