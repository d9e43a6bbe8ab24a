"""Tables from rows, with the columns that did not change shared between snapshots."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.model.snapshot import AnyTable, columns
from kview.model.units import NO_BROKER


def table(kind: type[AnyTable], rows: Sequence[Sequence[Any]]) -> AnyTable:
    """Return a table of that kind. Each row has one value per column, in the order of the columns."""
    arrays: dict[str, NDArray[Any]] = {}
    for at, (name, column) in enumerate(columns(kind).items()):
        values = [row[at] for row in rows]
        if column.dimensions == 2:
            arrays[name] = matrix(values)
        elif column.dtype is np.object_:
            arrays[name] = np.empty(len(values), object)
            arrays[name][:] = [sys.intern(str(value)) for value in values]
        else:
            arrays[name] = np.array(values, column.dtype)
    return kind(**arrays)


def shared(new: AnyTable, last: AnyTable) -> AnyTable:
    """Return `new` with the arrays of `last` wherever they are equal, so that `is` shows what changed."""
    same = {
        name: getattr(last, name)
        for name in new.__struct_fields__
        if np.array_equal(getattr(new, name), getattr(last, name))
    }
    return replace(new, **same) if same else new


def matrix(lists: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """Return lists of broker ids as rows of a matrix, padded with NO_BROKER."""
    out = np.full((len(lists), max(map(len, lists), default=0)), NO_BROKER, np.int32)
    for row, ids in enumerate(lists):
        out[row, : len(ids)] = ids
    return out
