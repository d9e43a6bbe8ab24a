"""Makes columns from rows, for the builders of snapshots."""

from collections.abc import Iterable
from typing import Any

from kview.model.snapshot import AnyTable, columns
from kview.school.camera.columns import table as table_of

START_MS = 1_760_000_000_000
"""The moment of a world's first observation. It is not on a minute's boundary, where mistakes in buckets
could go unnoticed."""


def table(kind: type[AnyTable], rows: Iterable[dict[str, Any]]) -> AnyTable:
    """Return a table of `kind` from one dictionary per row, which must have every column."""
    names = list(columns(kind))
    return table_of(kind, [[row[name] for name in names] for row in rows])
