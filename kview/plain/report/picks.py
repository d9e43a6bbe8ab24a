"""How each table of a report is shown to people: its columns, rows and their order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kview.model.events import Severity
from kview.model.report_tables import Array, Table, TableName
from kview.model.sums import INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class Pick:
    """How a table is shown: its columns (name and rank), which rows, and in which order."""

    table: TableName
    name: str
    columns: tuple[tuple[str, int], ...]
    order: Callable[[Table], Sequence[Array]]
    """The keys to sort by, the most important first; the greatest comes first, unknown ones last."""
    keep: Callable[[Table], Array] = lambda table: np.ones(len(table), np.bool_)
    hint: str = ""


def _worst(table: Table) -> Sequence[Array]:
    return [-np.nan_to_num(table["available"], nan=2), table["silent_ms"], table["under_min_isr_ms"]]


def _busiest(table: Table) -> Sequence[Array]:
    return [table["records_in"]]


def _mine(table: Table) -> Array:
    """Return which rows are about the user's topics, or about no topic."""
    mine: Array = ~np.isin(table["topic"].astype(str), list(INTERNAL_TOPICS))
    return mine


def _is_trouble(table: Table) -> Array:
    trouble: Array = np.isin(table["severity"].astype(str), [Severity.RISK, Severity.WARN])
    return trouble


def _troubled(table: Table) -> Array:
    names = ("offline_ms", "silent_ms", "under_min_isr_ms", "under_replicated_ms")
    troubled: Array = np.any([table[name] > 0 for name in names], axis=0)
    return troubled


def _several(table: Table) -> Array:
    """Return all rows if they are about more than one cluster, otherwise none."""
    return np.full(len(table), len(table) > 1)


_CHANGED_LEADERS = "What a partition got while it changed leaders counts for the new leader."
"""Nobody reads the log of the old leader after its last answer, so it is not known how much came before the
change and how much after it."""

PICKS = (
    Pick(
        TableName.CLUSTERS,
        TableName.CLUSTERS,
        (
            ("in_rate", 0),
            ("in_p99", 4),
            ("in_most", 2),
            ("out_rate", 0),
            ("records_in", 3),
            ("bytes_in", 1),
            ("offline_ms", 0),
            ("silent_ms", 0),
            ("known_s", 2),
        ),
        lambda table: [table["cluster"] == "", table["offline_ms"], table["silent_ms"], table["records_in"]],
        _several,
        "no leader, leader silent: summed up over the partitions, so ten partitions without a leader for one"
        " second make 10 s.",
    ),
    Pick(
        TableName.TOPICS,
        "availability",
        (
            ("available", 0),
            ("offline_s", 0),
            ("silent_s", 0),
            ("under_min_isr_s", 2),
            ("under_replicated_s", 3),
            ("partitions", 4),
        ),
        _worst,
        _troubled,
        "available: the share of the partitions' time in which they had a leader. A silent leader counts,"
        " because the cluster still lists it.",
    ),
    Pick(
        TableName.GROUPS,
        TableName.GROUPS,
        (
            ("lag_most", 0),
            ("lag_most_ms", 3),
            ("behind_most", 0),
            ("behind_most_ms", 4),
            ("above_ms", 1),
            ("records_out", 2),
            ("rewound", 5),
            ("lost", 1),
        ),
        lambda table: [table["behind_most"], table["lag_most"]],
    ),
    Pick(
        TableName.TOPICS,
        TableName.TOPICS,
        (
            ("in_rate", 0),
            ("in_p50", 3),
            ("in_p95", 4),
            ("in_p99", 2),
            ("in_most", 1),
            ("out_rate", 0),
            ("records_in", 3),
            ("bytes_in", 1),
            ("skew", 2),
            ("truncated", 6),
        ),
        _busiest,
        _mine,
    ),
    Pick(
        TableName.PARTITIONS,
        TableName.PARTITIONS,
        (
            ("partition", 0),
            ("records_in", 0),
            ("times_mean", 0),
            ("bytes_in", 2),
            ("peak", 1),
            ("peak_ms", 3),
            ("offline_ms", 2),
        ),
        _busiest,
        _mine,
    ),
    Pick(
        TableName.BROKERS,
        TableName.BROKERS,
        (("in_rate", 0), ("in_p99", 2), ("in_most", 1), ("out_rate", 1), ("bytes_in", 0), ("cross_rack", 3)),
        _busiest,
        hint=_CHANGED_LEADERS,
    ),
    Pick(
        TableName.RACKS,
        TableName.RACKS,
        (("in_rate", 0), ("in_p99", 2), ("in_most", 1), ("out_rate", 1), ("bytes_in", 0), ("cross_rack", 3)),
        _busiest,
        lambda table: table["rack"].astype(str) != "",
        _CHANGED_LEADERS,
    ),
    Pick(
        TableName.ELECTIONS,
        TableName.ELECTIONS,
        (
            ("elections", 0),
            ("lost_leader", 0),
            ("unclean", 0),
            ("partitions", 1),
            ("first_ms", 2),
            ("last_ms", 1),
        ),
        lambda table: [table["unclean"], table["elections"]],
    ),
    Pick(
        TableName.FINDINGS,
        TableName.FINDINGS,
        (
            ("severity", 0),
            ("held_ms", 0),
            ("share", 1),
            ("first_ms", 2),
            ("last_ms", 1),
            ("partitions_most", 3),
            ("groups_most", 4),
        ),
        lambda table: [table["severity"] == Severity.RISK, table["held_ms"]],
        _is_trouble,
        "While no broker answers, kview finds nothing else, so other findings can have lasted longer than"
        " this table says.",
    ),
    Pick(
        TableName.TRAFFIC,
        TableName.TRAFFIC,
        (
            ("bytes_in", 1),
            ("replicated_bytes", 2),
            ("cross_rack_bytes", 0),
            ("cross_rack_share", 0),
            ("cost", 1),
        ),
        lambda table: [table["topic"] == "", table["cross_rack_bytes"]],
    ),
    Pick(
        TableName.GROWTH,
        TableName.GROWTH,
        (
            ("bytes_last", 0),
            ("growth", 0),
            ("written", 2),
            ("retention_ms", 1),
            ("retention_bytes", 3),
            ("forecast_bytes", 1),
        ),
        lambda table: [table["forecast_bytes"], table["bytes_last"]],
    ),
    Pick(
        TableName.PERIODS,
        TableName.PERIODS,
        (("recording", 0), ("since_ms", 3), ("until_ms", 4), ("known_s", 0), ("gaps", 2), ("gap_ms", 1)),
        lambda table: [-table["since_ms"]],
    ),
)

KEYS = {
    TableName.CLUSTERS: (),
    "availability": ("topic",),
    TableName.TOPICS: ("topic",),
    TableName.GROUPS: ("group",),
    TableName.PARTITIONS: ("topic",),
    TableName.BROKERS: ("broker",),
    TableName.RACKS: ("rack",),
    TableName.ELECTIONS: ("topic",),
    TableName.FINDINGS: ("kind",),
    TableName.TRAFFIC: ("topic",),
    TableName.GROWTH: ("topic",),
    TableName.PERIODS: (),
}
"""The columns that name a row, besides the cluster, keyed by the shown table's name."""
