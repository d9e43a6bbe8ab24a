"""Series of Prometheus metrics from columns. What is not known has no series."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kview.model.snapshot import Strings
from kview.model.units import UNKNOWN, UNKNOWN_ID

BROKER, TOPIC, GROUP = ("broker",), ("topic",), ("group",)
LOG_DIR = ("broker", "path")
PARTITION = ("topic", "partition")
GROUP_PARTITION = ("group", "topic", "partition")
"""The labels of each kind of row."""

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
