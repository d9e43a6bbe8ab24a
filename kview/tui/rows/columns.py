"""Columns of a table, and how they share its width. All functions here are pure."""

from collections.abc import Sequence

from msgspec import Struct

GAP = 2
"""The number of cells between two columns. A single cell would not separate figures clearly."""


EXTRA = 4
"""Columns of this rank and above are extras."""

LEAST_NAME = 8
"""The cells to which names shrink before anything else does."""


class Column(Struct, frozen=True):
    """A column of at least `width` cells. With `flex` it gets a share of the cells left over, up to `most`.

    If the table is too narrow, the columns of the highest `rank` are left out first, and those of rank 0 are
    always kept. `name`: the column's text is cut in the middle. Before there are any extras, a column has
    `roomy` cells.

    `exported` has the titles of the columns that take its place in an exported table, with their units, ()
    for a column that is left out. If it is None, that is one column with the same title.
    """

    key: str
    title: str
    width: int
    right: bool = False
    flex: int = 0
    most: int = 1_000
    rank: int = 0
    name: bool = False
    roomy: int = 0
    exported: tuple[str, ...] | None = None


def with_bound(title: str, unit: str = "") -> tuple[str, str]:
    """Return the titles of an exported figure, and of the mark that says whether it is a bound or an
    estimate."""
    return f"{title} {unit}".rstrip(), f"{title} bound"


def share(columns: Sequence[Column], cells: int) -> list[tuple[int, int]]:
    """Return the columns that fit into `cells`, as (index, width), in order.

    Columns are left out by rank until the others fit at their smallest widths. If those of rank 0 do not fit
    either, names shrink, the widest first, then whatever else can grow, and what still does not fit is cut
    off on the right.
    """
    kept = list(range(len(columns)))
    while _needs(columns, kept) > cells:
        worst = max((columns[i].rank for i in kept), default=0)
        if worst == 0:
            break
        kept.remove(max(i for i in kept if columns[i].rank == worst))
    widths = {i: columns[i].width for i in kept}
    _shrink(columns, kept, widths, cells)
    _grow(columns, kept, widths, cells)
    return [(i, widths[i]) for i in kept if widths[i] > 0]


def _needs(columns: Sequence[Column], kept: Sequence[int]) -> int:
    has_extras = any(columns[i].rank >= EXTRA for i in kept)
    widths = (max(columns[i].width, columns[i].roomy * has_extras) for i in kept)
    return sum(widths) + GAP * max(0, len(kept) - 1)


def _shrink(columns: Sequence[Column], kept: Sequence[int], widths: dict[int, int], cells: int) -> None:
    over = sum(widths.values()) + GAP * max(0, len(kept) - 1) - cells
    for least, shrinking in (
        (LEAST_NAME, [i for i in kept if columns[i].name]),
        (1, [i for i in kept if columns[i].name or columns[i].flex]),
    ):
        while over > 0 and shrinking:
            widest = max(shrinking, key=lambda i: widths[i])
            if widths[widest] <= least:
                break
            widths[widest] -= 1
            over -= 1


def _grow(columns: Sequence[Column], kept: Sequence[int], widths: dict[int, int], cells: int) -> None:
    left = cells - sum(widths.values()) - GAP * max(0, len(kept) - 1)
    while left > 0:
        growing = [i for i in kept if columns[i].flex and widths[i] < columns[i].most]
        if not growing:
            return
        total = sum(columns[i].flex for i in growing)
        given = 0
        for i in growing:
            more = min(max(1, left * columns[i].flex // total), columns[i].most - widths[i], left - given)
            widths[i] += more
            given += more
        left -= given
