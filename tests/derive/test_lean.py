"""Columns with one value in all rows, and values that do not change, are held once."""

from typing import Any

import numpy as np
import pytest
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.derive.align import Alignment
from kview.derive.groups.commits import Commits, CommitsThen, carried
from kview.derive.history import LEAST_ROWS, lean
from kview.derive.series import Series, extended
from kview.model.units import UNKNOWN


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


@pytest.mark.parametrize("value", [1234.5, float("nan")])
def test_a_series_at_rest_is_one_object_and_follows_the_first_change(value: float) -> None:
    held: dict[str, Series] = {}
    seen = []
    for _ in range(5):
        held["g"] = extended(held, ["g"], np.array([value]), 3)[0]
        seen.append(held["g"])
    assert [len(series) for series in seen] == [1, 2, 3, 3, 3]
    assert seen[4] is seen[3] is seen[2]
    assert len({id(number) for number in seen[4]}) == 1
    (moved,) = extended(held, ["g"], np.array([2.0]), 3)
    np.testing.assert_array_equal(moved, [value, value, 2.0])


def test_columns_that_moments_share_are_shared_when_rows_come_and_go() -> None:
    size = LEAST_ROWS + 1
    names = [name for name in CommitsThen.__struct_fields__ if name != "at_ms"]
    columns = {name: np.arange(size) + place for place, name in enumerate(names)}
    earlier = CommitsThen(at_ms=1, **columns)
    moved = replace(earlier, at_ms=2, committed=np.arange(size) * 2)
    alignment = Alignment(np.r_[1:size, -1], size)
    commits = replace(Commits.none(size), **columns, history=(earlier, moved))
    now = carried(commits, alignment)
    first, second = now.history
    assert first.moved_ms is second.moved_ms is now.moved_ms
    for then, before in ((first, earlier), (second, moved), (now, commits)):
        for name in names:
            fill = 0 if name in ("moves", "passed", "group_moves") else UNKNOWN
            np.testing.assert_array_equal(
                getattr(then, name), alignment.carry(getattr(before, name), fill), name
            )
    assert held_bytes(now.purged_ms) == now.purged_ms.itemsize, "which is the same for all, also for the new"
    np.testing.assert_array_equal(now.purged_ms, np.full(size, UNKNOWN))
