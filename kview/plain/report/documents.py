"""A report for programs: JSON, CSV and Parquet, with every row and every column."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from kview.model.report import Period, Report
from kview.model.report_tables import Table
from kview.model.units import UNKNOWN


def json_document(report: Report) -> bytes:
    """Return a report as a JSON document. What is not known is null; the columns of a table say what its
    figures mean."""
    document: dict[str, Any] = {
        "kview_report": report.version,
        "step_s": report.step_s,
        "threshold_ms": report.threshold_ms,
        "price_per_gb": None if report.price_per_gb != report.price_per_gb else report.price_per_gb,
        "topics": list(report.topics),
        "groups": list(report.groups),
        **_period(report.period),
    }
    if report.against is not None:
        document["against"] = _period(report.against)
    if report.comparison is not None:
        document["comparison"] = _table(report.comparison)
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _period(period: Period) -> dict[str, Any]:
    return {
        "since_ms": _known(period.since_ms),
        "until_ms": _known(period.until_ms),
        "notes": [{"kind": note.kind.value, **note.values} for note in period.notes],
        "tables": {name.value: _table(table) for name, table in period.tables.items()},
    }


def _table(table: Table) -> dict[str, Any]:
    columns = [
        {
            "name": column.name,
            "unit": column.unit,
            "meaning": column.meaning,
            "is_estimate": column.is_estimate,
        }
        for column in table.spec
    ]
    return {"columns": columns, "rows": _rows(table)}


def _rows(table: Table) -> list[dict[str, Any]]:
    texts = [column.name for column in table.spec if column.is_text]
    rows = [table.row(at) for at in range(len(table))]
    for row in rows:
        row |= {name: row[name].encode(errors="replace").decode() for name in texts}  # half a character
    return rows


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def all_tables(report: Report) -> Mapping[str, Table]:
    """Return the tables by the names of their files: those of the period compared with are `against_…`."""
    named = {name.value: table for name, table in report.period.tables.items()}
    if report.against is not None:
        named |= {f"against_{name.value}": table for name, table in report.against.tables.items()}
    if report.comparison is not None:
        named["comparison"] = report.comparison
    return named


def write_csv(table: Table, file: IO[str]) -> None:
    """Write a table as CSV, with the names of its columns first. What is not known is an empty field."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.name for column in table.spec])
    for row in _rows(table):
        writer.writerow(["" if value is None else value for value in row.values()])


def write_parquet(table: Table, path: Path) -> None:
    """Write a table as a Parquet file. The unit and the meaning of a column are metadata of its field."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = _rows(table)
    fields, arrays = [], []
    for column in table.spec:
        kind = pa.string() if column.is_text else pa.float64() if column.is_fraction else pa.int64()
        fields.append(pa.field(column.name, kind, metadata={"unit": column.unit, "meaning": column.meaning}))
        arrays.append(pa.array([row[column.name] for row in rows], kind))
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)


def write_folder(report: Report, folder: Path, suffix: str, write: Callable[[Table, Path], None]) -> None:
    """Write every table to a file of its own in `folder`, which is created. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in all_tables(report).items():
        write(table, folder / f"{name}.{suffix}")


def csv_file(table: Table, path: Path) -> None:
    """Write a table to a CSV file. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(table, file)
