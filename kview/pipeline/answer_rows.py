"""What is calculated from a row in which a task of Spark's answered."""

from collections.abc import Mapping, Sequence
from typing import Any

from kview.model.report import Table, table_of
from kview.model.report_tables import TABLES, TableName
from kview.pipeline.kernel.figures import Rows

MS_PER_DAY = 86_400_000


def column(rows: Rows, name: str) -> list[Any]:
    """Return the value of this name in each row."""
    return [row[name] for row in rows]


def ratio(value: float, by: float) -> float | None:
    """Return a quotient, None if there is nothing to divide by."""
    return value / by if by else None


def per_day(value: float, length_ms: float) -> float:
    """Return what a change over `length_ms` would be over a day."""
    return value * MS_PER_DAY / length_ms


def skew(row: Mapping[str, Any]) -> float | None:
    """Return the skew as `kview.derive.windows` defines it."""
    if not (row["records_in"] > 0 and row["partition_seconds"] > 0 and row["hottest_total"] > 0):
        return None
    mean = row["partition_sum"] / row["partition_seconds"]
    return float(row["hottest_total"] * mean / row["records_in"])


def forecast(row: Mapping[str, Any], written: float | None) -> int | None:
    """Return the size at which what is deleted equals what is written: the smaller of what both limits of
    retention allow. None if there is no limit, or if the log is compacted."""
    if "delete" not in (row["cleanup_policy"] or "").split(",") or row["retention_ms"] is None:
        return None
    limits = []
    if row["retention_ms"] >= 0 and written is not None:
        limits.append(written * row["retention_ms"] / MS_PER_DAY)
    if (row["retention_bytes"] or -1) >= 0 and row["replicas"] is not None:
        limits.append(float(row["retention_bytes"] * row["replicas"]))
    return int(min(limits)) if limits else None


def columns_of(rows: Rows, table: TableName, without: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the columns of a table that rows have under the same names."""
    return {c.name: column(rows, c.name) for c in TABLES[table] if c.name not in without}


def named(table: TableName, rows: Rows) -> Table:
    """Return a table whose columns rows have under the same names."""
    return table_of(table, columns_of(rows, table))


def table_with(table: TableName, columns: Mapping[str, Any]) -> Table:
    """Return a table of these columns, without those that TABLES does not have for it."""
    names = {column.name for column in TABLES[table]}
    return table_of(table, {name: values for name, values in columns.items() if name in names})
