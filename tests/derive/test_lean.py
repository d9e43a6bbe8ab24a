"""Columns with one value in all rows are held once."""

from typing import Any

import numpy as np
import pytest
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.history import LEAST_ROWS, lean


class Columns(Struct, frozen=True):
    """Columns and something else."""

    column: NDArray[Any]
    number: int = 7


def held_bytes(column: NDArray[Any]) -> int:
    """The bytes of the array that a column is a view of."""
    return int(column.nbytes if column.base is None else np.asarray(column.base).nbytes)


@pytest.mark.parametrize("value", [-1, 2.5, float("nan"), True])
def test_a_single_value_is_held_once(value: float) -> None:
    column = np.full(LEAST_ROWS, value)
    made = lean(Columns(column))
    np.testing.assert_array_equal(made.column, column)
    assert (made.column.dtype, made.number, held_bytes(made.column)) == (column.dtype, 7, column.itemsize)
    assert lean(made) is made
    with pytest.raises(ValueError, match="read-only"):
        made.column[0] = 0


@pytest.mark.parametrize("at", [0, 1, LEAST_ROWS // 2, LEAST_ROWS - 1])
def test_one_other_value_leaves_a_column_as_it_is(at: int) -> None:
    for column in (np.zeros(LEAST_ROWS), np.full(LEAST_ROWS, np.nan)):
        column[at] = 1
        before = Columns(column)
        assert lean(before) is before


def test_short_columns_and_objects_stay_as_they_are() -> None:
    for column in (np.zeros(LEAST_ROWS - 1), np.full(LEAST_ROWS, "a", object)):
        before = Columns(column)
        assert lean(before) is before
