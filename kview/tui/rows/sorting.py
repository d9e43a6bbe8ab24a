"""Sorts a table's rows by one of its columns, from the columns' values as arrays. All functions are pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.derive.view import Floats, View
from kview.language import glyphs
from kview.model.events import SEVERITY_ORDER
from kview.model.snapshot import Longs, Strings
from kview.model.units import UNKNOWN
from kview.tui.options import Options, Sort
from kview.tui.rows.columns import Column

_NUMBER = re.compile("([0-9]{1,18})")

Values = Mapping[str, Callable[[View], NDArray[Any]]]
"""What to sort by, by column: one value for each row of the view's table."""


def figures(values: NDArray[Any]) -> Floats:
    """Return values as floats, NaN for what is not known."""
    floats = np.asarray(values, np.float64).copy()
    if values.dtype.kind == "i":
        floats[values == UNKNOWN] = np.nan
    floats[~np.isfinite(floats)] = np.nan
    return floats


def ids(values: NDArray[Any]) -> Floats:
    """Return the numbers of brokers as floats, NaN for none and for what is not known."""
    return np.where(values >= 0, np.asarray(values, np.float64), np.nan)


def by_number(name: str) -> tuple[list[str | int], str]:
    """Return a key that sorts R2 before R10, whatever the case."""
    parts: list[str | int] = list(_NUMBER.split(name.casefold()))
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def codes(words: Strings | Sequence[str]) -> Floats:
    """Return the place of each word in the order of the alphabet and the numbers. Empty words are not
    known."""
    listed = [str(word) for word in words]
    places = {word: place for place, word in enumerate(sorted(set(listed), key=by_number))}
    return np.array([places[word] if word else np.nan for word in listed], np.float64)


def ranks(words: Strings, order: Iterable[object] = SEVERITY_ORDER) -> Floats:
    """Return the place of each word in `order`, such as the severities with the worst first."""
    listed = words.tolist()
    places: dict[object, float] = dict.fromkeys(listed, np.nan)
    places.update((word, float(place)) for place, word in enumerate(order))
    return np.fromiter(map(places.__getitem__, listed), np.float64, len(listed))


def sorted_rows(
    rows: Longs, options: Options, panel: str, view: View, values: Values, keys: Callable[[View], object]
) -> Longs:
    """Return `rows`, which are in the panel's own order, in the order that the user chose.

    Rows that are equal stay in the panel's order, and what is not known comes last, whatever the direction.
    `keys` are the keys of all rows of the table in a view: the values of the view that holds the order are
    used if they are of the same rows, so that a list whose figures change does not jump.
    """
    sort = options.sort(panel)
    if sort.column not in values:
        return rows[::-1] if sort.descending else rows
    held = options.held
    basis = held if held is not None and held is not view and _same(keys(held), keys(view)) else view
    column_values = values[sort.column](basis)
    by = np.asarray(column_values if column_values.dtype.kind == "f" else figures(column_values))[rows]
    key = np.where(np.isnan(by), np.inf, -by if sort.descending else by)
    arranged: Longs = rows[np.argsort(key, kind="stable")]
    return arranged


def _same(keys: object, other: object) -> bool:
    if keys is other:
        return True
    return isinstance(keys, tuple) and isinstance(other, tuple) and all(map(_equal, keys, other))


def _equal(values: NDArray[Any], other: NDArray[Any]) -> bool:
    return values is other or (len(values) == len(other) and bool(np.array_equal(values, other)))


def sort_mark(sort: Sort) -> str:
    """Return the mark of a direction."""
    return glyphs.DOWN if sort.descending else glyphs.UP


def order_note(options: Options, panel: str, columns: Sequence[Column], own: str) -> str:
    """Return the order of a list for its title: `own` is the name of the panel's own order."""
    sort = options.sort(panel)
    column = next((column for column in columns if column.key == sort.column), None)
    if column is None:
        return f"{own}, reversed".lstrip(", ") if sort.descending else own
    return f"by {(column.title or column.key).strip()} {sort_mark(sort)}"
