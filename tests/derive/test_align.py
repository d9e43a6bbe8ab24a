"""Rows are found whatever the ids, and whether equal topics stand together or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.derive.align import MOST_LISTED, positions, rows_at
from tests.worlds import wide_snapshots

HIGHEST = 2**31 - 1
SOME_IDS = st.lists(st.integers(0, 40) | st.integers(HIGHEST - 40, HIGHEST), unique=True, max_size=12)
ANY_ID = st.integers(-1, 45) | st.integers(HIGHEST - 45, HIGHEST)


@given(SOME_IDS, st.lists(ANY_ID, max_size=20))
def test_an_id_is_found_where_it_is_and_nowhere_else(ids: list[int], wanted: list[int]) -> None:
    held = sorted(ids)
    found = positions(np.array(held, np.int32), np.array(wanted, np.int32))
    assert found.tolist() == [held.index(one) if one in held else -1 for one in wanted]


@pytest.mark.parametrize("apart", [1, MOST_LISTED])
def test_ids_far_apart_are_found_in_a_matrix_too(apart: int) -> None:
    held = np.array([3, 3 + apart], np.int32)
    wanted = np.array([[3 + apart, -1], [2, 3], [4 + apart, HIGHEST]], np.int32)
    assert positions(held, wanted).tolist() == [[1, -1], [-1, 0], [-1, -1]]


@given(SOME_IDS, st.lists(ANY_ID, max_size=20))
def test_nothing_is_found_where_it_is_not_in_a_damaged_table(ids: list[int], wanted: list[int]) -> None:
    held = np.array([*ids, *ids[:1]], np.int32)
    for one, at in zip(wanted, positions(held, np.array(wanted, np.int32)).tolist(), strict=True):
        assert at == -1 or held[at] == one


def test_rows_of_partitions_in_any_order() -> None:
    table = wide_snapshots(250, 1)[0].partitions
    order = np.random.default_rng(7).permutation(len(table))
    assert len(set(table.topic.tolist())) > 1
    assert rows_at(table, table.topic[order], table.partition[order]).tolist() == order.tolist()
    nowhere = rows_at(table, np.array(["absent", table.topic[0]], object), np.array([0, 9999], np.int32))
    assert nowhere.tolist() == [-1, -1]
    assert not len(rows_at(table, table.topic[:0], table.partition[:0]))
