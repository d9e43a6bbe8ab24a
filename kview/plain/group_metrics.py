"""Consumer groups as Prometheus metrics."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kview.derive.view import Verdict, View
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN
from kview.plain.series import GROUP, GROUP_PARTITION, Values, known, label, partition_labels, rows_of


def _exact(values: Longs, is_bound: NDArray[np.bool_]) -> Values:
    return np.where(is_bound, np.nan, known(values))


def of_groups(view: View, heeded: Longs) -> Iterator[Metric]:
    """Yield the metrics of the groups in the rows `heeded`.

    A lag that is only a lower bound is a metric of its own: `_min` always has it, and the other one only if
    it is exact.
    """
    table, figures = view.snapshot.groups, view.groups
    rows = [(label(group),) for group in table.group[heeded].tolist()]
    verdicts = GaugeMetricFamily(
        "kview_group_verdict",
        "1 for the verdict on the group, 0 for the others.",
        labels=("group", "verdict"),
    )
    for (group,), now in zip(rows, figures.verdict[heeded].tolist(), strict=True):
        for verdict in Verdict:
            verdicts.add_metric((group, verdict.value), float(now == verdict))
    yield verdicts
    kinds = GaugeMetricFamily("kview_group_kind", "1 for the kind of the group.", labels=("group", "kind"))
    for (group,), kind in zip(rows, table.type[heeded].tolist(), strict=True):
        kinds.add_metric((group, kind), 1.0)
    yield kinds
    for name, text, values in (
        (
            "lag_records",
            "Records behind; no series if only a bound is known.",
            _exact(figures.lag, figures.lag_is_bound),
        ),
        ("lag_min_records", "Records behind, at least.", known(figures.lag)),
        (
            "lag_seconds",
            "Time behind; no series if only a bound is known.",
            _exact(figures.behind_ms, figures.behind_is_bound) / 1000,
        ),
        ("lag_min_seconds", "Time behind, at least.", known(figures.behind_ms, 1000)),
        ("lost_records", "Records deleted before the group read them, at least.", known(figures.lost)),
        ("members", "Members of the group.", known(table.members)),
        (
            "read_records_per_second",
            "Records read per second, as its commits show.",
            known(figures.read_rate),
        ),
        ("age_seconds", "How old the group's figures are.", known(figures.age_ms, 1000)),
    ):
        yield rows_of(f"kview_group_{name}", text, GROUP, rows, values[heeded])


def heeded_groups(view: View) -> Longs:
    """Return the rows of the groups that the user does not ignore."""
    return np.flatnonzero(~view.groups.ignored).astype(np.int64)


def heeded_offsets(view: View) -> Longs:
    """Return the rows of `Offsets` whose groups the user does not ignore."""
    ignored = set(view.snapshot.groups.group[view.groups.ignored].tolist())
    names = view.snapshot.offsets.group.tolist()
    return np.array([row for row, name in enumerate(names) if name not in ignored], np.int64)


def of_group_partitions(view: View, heeded: Longs) -> Iterator[Metric]:
    """Yield the metrics of the groups' partitions in the rows `heeded` of `Offsets`."""
    table, figures = view.snapshot.offsets, view.offsets
    names = [label(group) for group in table.group[heeded].tolist()]
    at = partition_labels(table.topic[heeded], table.partition[heeded])
    rows = [(group, *partition) for group, partition in zip(names, at, strict=True)]
    committed = np.where(table.committed < 0, UNKNOWN, table.committed)
    for name, text, values in (
        ("committed_offset", "The committed offset.", known(committed)),
        (
            "lag_records",
            "Records behind; no series if only a bound is known.",
            _exact(figures.lag, figures.lag_is_bound),
        ),
        (
            "lag_seconds",
            "Time behind; no series if only a bound is known.",
            _exact(figures.behind_ms, figures.behind_is_bound) / 1000,
        ),
    ):
        yield rows_of(f"kview_group_partition_{name}", text, GROUP_PARTITION, rows, values[heeded])
