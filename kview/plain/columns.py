"""Structs of JSON documents from columns: a struct for each row, and None for what is not known."""

import math
from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kview.model.failures import FailureKind
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.plain.schema_fields import Cause

Item = TypeVar("Item")
Row = TypeVar("Row", bound=msgspec.Struct)

Columns = Mapping[str, Any]
"""Arrays and lists of equal length, each under the name of the field that it fills."""


def rows(struct: type[Row], columns: Columns) -> list[Row]:
    """Return a struct for each row of `columns`, which are in the order of the struct's fields."""
    assert tuple(columns) == struct.__struct_fields__
    values = (column if isinstance(column, list) else _values(column) for column in columns.values())
    return list(starmap(struct, zip(*values, strict=True)))


def _values(column: NDArray[Any]) -> list[Any]:
    """Return a column's values for JSON, with None for values that are not known."""
    if column.dtype.kind in "if" and (unknown := _unknown(column)).any():
        column = column.astype(object)
        column[unknown] = None
    values: list[Any] = column.tolist()
    return values


def _unknown(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.asarray(~np.isfinite(column), np.bool_)
    return np.asarray((column == UNKNOWN) | (column == UNKNOWN_ID), np.bool_)


def optional(texts: NDArray[np.object_]) -> list[str | None]:
    """Return texts for JSON, with None for empty ones."""
    return [text or None for text in texts.tolist()]


def split(items: list[Item], sizes: Iterable[int]) -> list[list[Item]]:
    """Cut `items` into consecutive lists of these sizes."""
    out, at = [], 0
    for size in sizes:
        out.append(items[at : at + size])
        at += size
    return out


def known(value: int) -> int | None:
    """Return a number for JSON, None if it is not known."""
    return None if value in (UNKNOWN, UNKNOWN_ID) else value


def rate(value: float) -> float | None:
    """Return a rate for JSON, None if it is not known."""
    return value if math.isfinite(value) else None


def cause(kind: str, code: int, text: str) -> Cause | None:
    """Return why something was not answered, None if it was."""
    known = kind == FailureKind.KAFKA_ERROR and code not in (0, UNKNOWN_ID)
    return Cause(FailureKind(kind), code if known else None, text) if kind else None
