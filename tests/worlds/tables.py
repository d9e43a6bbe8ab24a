"""Makes columns from rows, for the builders of snapshots."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kview.model.snapshot import AnyTable, columns, empty
from kview.model.units import NO_BROKER

START_MS = 1_760_000_000_000
"""The moment of a world's first observation. It is not on a minute's boundary, where mistakes in buckets
could go unnoticed."""


def matrix(rows: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
    """Return replica lists as an int32 matrix, padded with NO_BROKER."""
    width = max((len(row) for row in rows), default=0)
    out = np.full((len(rows), width), NO_BROKER, np.int32)
    for at, row in enumerate(rows):
        out[at, : len(row)] = row
    return out


def table(kind: type[AnyTable], rows: Iterable[dict[str, Any]]) -> AnyTable:
    """Return a table of `kind` from one dictionary per row, which must have every column."""
    all_rows = list(rows)
    if not all_rows:
        return empty(kind)
    made: dict[str, Any] = {}
    for name, column in columns(kind).items():
        values = [row[name] for row in all_rows]
        if column.dimensions == 2:
            made[name] = matrix(values)
        elif column.dtype is np.object_:
            made[name] = np.array([*values, None], dtype=object)[:-1]
        else:
            made[name] = np.array(values, column.dtype)
    return kind(**made)
