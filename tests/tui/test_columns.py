"""Columns: the important ones stay, widths add up, and figures keep their width."""

from hypothesis import given
from hypothesis import strategies as st

from kview.tui.rows.columns import GAP, Column, share

COLUMNS = (
    Column("topic", "topic", 8, flex=1, most=20, name=True),
    Column("leader", "leader", 6),
    Column("watermark", "watermark", 11, right=True),
    Column("in", "in rec/s", 8, right=True, rank=2),
    Column("start", "log start", 9, right=True, rank=3),
)


def keys(cells: int) -> list[str]:
    return [COLUMNS[index].key for index, _ in share(COLUMNS, cells)]


def test_the_least_important_go_first() -> None:
    assert keys(60) == ["topic", "leader", "watermark", "in", "start"]
    assert keys(49) == ["topic", "leader", "watermark", "in"]
    assert keys(38) == ["topic", "leader", "watermark"]


def test_names_shrink_before_figures() -> None:
    assert dict(share(COLUMNS, 25)) == {0: 4, 1: 6, 2: 11}


def test_names_shrink_before_other_texts() -> None:
    columns = (Column("group", "group", 14, flex=1, name=True), Column("verdict", "verdict", 13, flex=1))
    assert [dict(share(columns, cells)) for cells in (29, 25, 20)] == [
        {0: 14, 1: 13},
        {0: 10, 1: 13},
        {0: 8, 1: 10},
    ]


def test_extras_come_after_room_for_others() -> None:
    columns = (
        Column("reason", "", 10, roomy=20),
        Column("state", "", 10, rank=3),
        Column("extra", "", 8, rank=4),
    )
    assert dict(share(columns, 41)) == {0: 10, 1: 10}
    assert dict(share(columns, 42)) == {0: 10, 1: 10, 2: 8}


def test_names_grow_to_their_bound() -> None:
    assert dict(share(COLUMNS, 200))[0] == 20


@given(
    st.lists(
        st.builds(
            Column,
            key=st.just("k"),
            title=st.just(""),
            width=st.integers(1, 30),
            flex=st.integers(0, 4),
            most=st.integers(30, 60),
            rank=st.integers(0, 3),
        ),
        max_size=8,
    ),
    st.integers(1, 200),
)
def test_they_fit_unless_what_must_stay_is_too_wide(columns: list[Column], cells: int) -> None:
    shared = share(columns, cells)
    used = sum(width for _, width in shared) + GAP * max(0, len(shared) - 1)
    fixed = [column for column in columns if not column.rank]
    least = sum(1 if c.flex else c.width for c in fixed) + GAP * max(0, len(fixed) - 1)
    assert used <= max(cells, least)
    assert [index for index, _ in shared] == sorted(index for index, _ in shared)
