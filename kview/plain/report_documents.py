"""A report as a JSON document."""

from typing import Any

from kview.model.report import Note, Period, Report, Table
from kview.model.report_tables import Column


def report_document(report: Report) -> dict[str, Any]:
    """Return the document. What is unknown is null; `columns` of a table say what its figures mean."""
    document: dict[str, Any] = {
        "kview_report": report.version,
        "step_s": report.step_s,
        "threshold_ms": report.threshold_ms,
        "price_per_gb": None if report.price_per_gb != report.price_per_gb else report.price_per_gb,
        **_period(report.period),
    }
    if report.against is not None:
        document["against"] = _period(report.against)
    if report.comparison is not None:
        document["comparison"] = _table(report.comparison)
    return document


def _period(period: Period) -> dict[str, Any]:
    return {
        "since_ms": period.since_ms,
        "until_ms": period.until_ms,
        "notes": [_note(note) for note in period.notes],
        "tables": {name.value: _table(table) for name, table in period.tables.items()},
    }


def _note(note: Note) -> dict[str, Any]:
    return {"kind": note.kind.value, **note.values}


def _table(table: Table) -> dict[str, Any]:
    return {
        "columns": [_column(column) for column in table.spec],
        "rows": [table.row(at) for at in range(len(table))],
    }


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "unit": column.unit.value,
        "meaning": column.meaning,
        "is_estimate": column.is_estimate,
    }
