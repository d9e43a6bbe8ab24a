"""Metrics made of columns: a series for each row that has one, and aggregates of the rest. An unknown figure
has no series; it is never exported as 0."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kview.model.snapshot import Longs, Strings
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.plain.own_series import Choice

Labels = Sequence[str]
Values = NDArray[np.float64]


def label(text: str) -> str:
    """Return a name as a label's value, so that different names stay different.

    A scraper may stop at a control character, and a lone surrogate has no bytes. So names with one of those,
    or with a backslash, are escaped as in Python.
    """
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        "\\\\" if c == "\\" else c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def known(values: NDArray[np.generic], divisor: float = 1.0) -> Values:
    """Return values as floats, NaN for those that are not known."""
    if values.dtype.kind == "f":
        floats = values.astype(np.float64)
        return np.where(np.isfinite(floats), floats / divisor, np.nan)
    whole = values.astype(np.int64)
    unknown = (whole == UNKNOWN) | (whole == UNKNOWN_ID)
    return np.where(unknown, np.nan, whole.astype(np.float64) / divisor)


def exact(values: Longs, is_bound: NDArray[np.bool_]) -> Values:
    """Return values as floats, NaN for those that are only bounds."""
    return np.where(is_bound, np.nan, known(values))


SUM, MAX, BOTH = ("sum",), ("max",), ("sum", "max")
"""How the rest is added up."""


class Column(NamedTuple):
    """A metric of each row of a table. NaN is not known."""

    name: str
    text: str
    values: Values
    rest: tuple[str, ...] = ()
    """Its aggregates over the rows without series of their own."""


def families(
    of: str, names: Labels, rows: Sequence[Labels], chosen: Choice, columns: Sequence[Column]
) -> Iterator[Metric]:
    """Yield the metrics of the rows `chosen`, whose labels `names` are `rows`, and the aggregates of the
    rest."""
    for column in columns:
        yield rows_of(f"kview_{of}_{column.name}", column.text, names, rows, column.values[chosen.own])
        if not column.rest:
            continue
        values = column.values[chosen.rest]
        values = values[~np.isnan(values)]
        nothing = len(values) == 0
        if "sum" in column.rest:
            total = None if nothing and len(chosen.rest) else float(values.sum())
            yield from one(f"kview_rest_{of}s_{column.name}", f"{_REST} {_SUM_OF}{column.text}", total)
        if "max" in column.rest:
            most = None if nothing else float(values.max())
            yield from one(f"kview_rest_{of}s_max_{column.name}", f"{_REST} {_MOST_OF}{column.text}", most)


_REST = "Of those without series of their own:"
_SUM_OF, _MOST_OF = "the sum of what is known. ", "the largest. "


def one(name: str, text: str, value: float | None) -> Iterator[Metric]:
    """Yield a metric with a single series, or nothing if `value` is None."""
    if value is not None:
        yield GaugeMetricFamily(name, text, value=value)


def rows_of(name: str, text: str, names: Labels, rows: Iterable[Labels], values: Values) -> Metric:
    """Return a metric with a series for each row whose value is known."""
    family = GaugeMetricFamily(name, text, labels=names)
    for row, value in zip(rows, values.tolist(), strict=True):
        if value == value:
            family.add_metric(row, value)
    return family


def partition_labels(topics: Strings, partitions: NDArray[np.int32]) -> list[tuple[str, str]]:
    """Return the labels of partitions: (topic, number)."""
    return [
        (label(topic), str(partition))
        for topic, partition in zip(topics.tolist(), partitions.tolist(), strict=True)
    ]
