"""A report with something in each of its tables, made of figures that belong together."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kview.model.report import Note, NoteKind, Period, Report
from kview.model.report_tables import COMPARISON, TABLES, TableName, comparison_of, table_of
from kview.model.units import UNKNOWN

START_MS = 1_772_373_600_000
STEP_S = 60
MINUTES = 60
NAN = float("nan")


def sample(**changes: Any) -> Report:
    """Return the report; `changes` replace its fields."""
    fields: dict[str, Any] = {
        "period": period(),
        "step_s": STEP_S,
        "threshold_ms": 60_000,
        "price_per_gb": 0.02,
    }
    return Report(**fields | changes)


def empty() -> Report:
    """Return a report about nothing."""
    nothing = Period(UNKNOWN, UNKNOWN, {name: table_of(name, {}) for name in TABLES})
    return Report(nothing, STEP_S, 60_000, NAN)


def period(name: str = "prod", notes: tuple[Note, ...] = ()) -> Period:
    """Return a period of an hour in which broker 4 was lost for a while."""
    end = START_MS + MINUTES * 60_000
    tables: dict[TableName, Mapping[str, Any]] = {
        TableName.PERIODS: {
            "cluster": [name],
            "recording": ["/var/lib/kview/monday"],
            "since_ms": [START_MS],
            "until_ms": [end],
            "known_s": [3_590],
            "gaps": [0],
            "gap_ms": [0],
            "segments": [60],
            "rolled_up": [60],
        },
        TableName.CLUSTERS: {
            "cluster": ["prod"],
            "known_s": [3_590],
            "out_known_s": [3_584],
            "records_in": [28_361_000],
            "bytes_in": [28_361_000_000],
            "records_out": [28_100_000],
            "in_rate": [7_900.0],
            "in_p50": [7_900],
            "in_p95": [8_300],
            "in_p99": [9_100],
            "in_most": [12_003],
            "in_most_ms": [START_MS + 1_201_000],
            "out_rate": [7_840.3],
        },
        TableName.TOPICS: {
            "cluster": [name] * 3,
            "topic": ["invoice", "payment", "audit-log"],
            "records_in": [15_796_000, 8_975_000, 3_590_000],
            "bytes_in": [15_796_000_000, 8_975_000_000, 3_590_000_000],
            "records_out": [15_700_000, 8_900_000, 3_500_000],
            "in_rate": [4_400.0, 2_500.0, 1_000.0],
            "in_p50": [4_400, 2_500, 1_000],
            "in_p95": [4_600, 2_600, 1_100],
            "in_p99": [5_000, 2_900, 1_200],
            "in_most": [6_700, 3_900, 1_403],
            "in_most_ms": [START_MS + 1_201_000] * 3,
            "out_rate": [4_380.0, 2_490.0, 970.3],
            "skew": [1.3, 1.1, NAN],
            "hottest_topic": ["invoice", "payment", ""],
            "hottest_partition": [3, 1, None],
            "truncated": [12, 0, 0],
            "offline_ms": [0, 0, 61_000],
            "silent_ms": [36_400, 9_100, 9_100],
            "under_min_isr_ms": [0, 12_000, 0],
            "under_replicated_ms": [250_000, 90_000, 0],
            "offline_s": [0, 0, 61],
            "silent_s": [10, 10, 10],
            "under_min_isr_s": [0, 12, 0],
            "under_replicated_s": [45, 45, 0],
            "partitions": [10, 6, 4],
            "available": [1.0, 1.0, 0.99575],
            "answering": [0.99898, 0.99958, 0.99511],
        },
        TableName.PARTITIONS: {
            "cluster": [name] * 2,
            "topic": ["invoice", "payment"],
            "partition": [3, 1],
            "records_in": [2_053_480, 1_640_000],
            "bytes_in": [2_053_480_000, 1_640_000_000],
            "times_mean": [1.3, 1.1],
            "peak": [901, 702],
            "peak_ms": [START_MS + 1_201_000, START_MS + 7_000],
            "offline_ms": [0, 0],
        },
        TableName.BROKERS: {
            "cluster": [name],
            "broker": ["4"],
            "records_in": [3_000_000],
            "bytes_in": [3_000_000_000],
            "in_rate": [835.7],
        },
        TableName.RACKS: {"cluster": [name], "rack": ["R2"], "records_in": [14_000_000]},
        TableName.GROUPS: {
            "cluster": [name] * 2,
            "group": ["billing", "audit-export"],
            "records_out": [15_700_000, 3_500_000],
            "out_rate": [4_380.0, 970.3],
            "rewound": [0, 300],
            "lag_most": [2_204, 190_113],
            "lag_most_ms": [START_MS + 1_209_000, START_MS + 3_500_000],
            "behind_most": [11_200, 460_000],
            "behind_most_ms": [START_MS + 1_209_000, START_MS + 3_500_000],
            "above_ms": [0, 2_310_000],
            "lag_known_ms": [3_580_000, 3_580_000],
            "worst_topic": ["invoice", "audit-log"],
            "worst_partition": [9, 2],
            "lost": [0, 41],
        },
        TableName.INCIDENTS: {
            "cluster": [name] * 2,
            "kind": ["brokers", "quorum"],
            "cause": ["silent", "quorum_lost"],
            "began_ms": [START_MS + 1_200_300, START_MS + 3_000_000],
            "ended_ms": [START_MS + 1_221_400, None],
            "end": ["isr_full", ""],
            "brokers": ["4", ""],
            "controllers": ["", "101"],
            "racks": ["", ""],
            "frozen_ms": [600, None],
            "fenced_ms": [8_700, None],
            "elected_ms": [8_700, None],
            "elected_all_ms": [8_700, None],
            "moves_all_ms": [8_900, None],
            "isr_full_ms": [21_100, None],
            "partitions": [10, 0],
            "moved": [3, 0],
            "leaderless": [0, 0],
            "gone": [12, None],
            "waited_ms": [8_700, None],
            "groups": [2, 0],
        },
        TableName.ELECTIONS: {
            "cluster": [name],
            "topic": ["invoice"],
            "elections": [3],
            "lost_leader": [0],
            "unclean": [0],
            "partitions": [3],
            "first_ms": [START_MS + 1_209_000],
            "last_ms": [START_MS + 1_240_000],
        },
        TableName.FINDINGS: {
            "cluster": [name],
            "kind": ["under_replicated"],
            "severity": ["warn"],
            "held_ms": [45_000],
            "share": [0.0125],
            "first_ms": [START_MS + 1_209_000],
            "last_ms": [START_MS + 1_254_000],
            "partitions_most": [9],
            "groups_most": [0],
        },
        TableName.TRAFFIC: {
            "cluster": [name, name],
            "topic": ["", "invoice"],
            "bytes_in": [28_361_000_000, 15_796_000_000],
            "replicated_bytes": [49_542_000_000, 31_592_000_000],
            "cross_rack_bytes": [33_028_000_000, 21_061_000_000],
            "cross_rack_share": [0.66667, 0.66667],
            "cost": [0.66056, 0.42122],
        },
        TableName.GROWTH: {
            "cluster": [name],
            "topic": ["invoice"],
            "bytes_first": [60_000_000_000],
            "bytes_last": [91_000_000_000],
            "span_ms": [3_580_000],
            "growth": [748_156_000_000.0],
            "written": [1_140_000_000_000.0],
            "retention_ms": [604_800_000],
            "retention_bytes": [-1],
            "cleanup_policy": ["delete"],
            "forecast_bytes": [5_237_000_000_000],
        },
        TableName.THROUGHPUT: throughput(name),
    }
    made = {table: table_of(table, values) for table, values in tables.items()}
    return Period(
        START_MS,
        end,
        made,
        notes or (Note(NoteKind.TORN, {"recording": "monday", "sequence": 3_600, "bytes": 4_711}),),
    )


def throughput(name: str) -> dict[str, Any]:
    """Return an hour by minutes, in which nothing is known of minutes 30 to 34."""
    minutes = [minute for minute in range(MINUTES) if not 30 <= minute < 35]
    columns: dict[str, list[Any]] = {
        key: []
        for key in ("cluster", "at_ms", "topic", "known_s", "out_known_s", "records_in", "records_out")
    }
    for topic, rate in (("", 7_900), ("invoice", 4_400), ("payment", 2_500), ("audit-log", 1_000)):
        for minute in minutes:
            swing = 1 + 0.2 * float(np.sin(minute / 6))
            row = (
                name,
                START_MS + minute * 60_000,
                topic,
                60,
                60,
                int(rate * 60 * swing),
                int(rate * 58 * swing),
            )
            for key, value in zip(columns, row, strict=True):
                columns[key].append(value)
    return columns


def fleet(count: int, prefix: str = "cluster-") -> Report:
    """Return a report about several clusters, each with the same figures."""
    names = [f"{prefix}{number:03}" for number in range(count)]
    one = period()
    tables = {}
    for name, table in one.tables.items():
        columns = {key: np.concatenate([values] * count) for key, values in table.columns.items()}
        columns["cluster"] = np.repeat(np.array(names, object), len(table))
        if name is TableName.CLUSTERS:
            every = {key: table[key] for key in columns}
            unknown = np.array([NAN])
            every |= {"cluster": np.array([""], object), "in_rate": unknown, "out_rate": unknown}
            columns = {key: np.append(every[key], values) for key, values in columns.items()}
        tables[name] = table_of(name, columns)
    return sample(period=Period(one.since_ms, one.until_ms, tables, one.notes))


def compared() -> Report:
    """Return the report, compared with another hour."""
    rows = [
        ("prod", "", "in_rate", 6_500.0, 7_900.0, 7_900 / 6_500 - 1),
        ("prod", "audit-log", "offline_ms", 0.0, 61_000.0, NAN),
    ]
    columns = {
        column.name: list(values) for column, values in zip(COMPARISON, zip(*rows, strict=True), strict=True)
    }
    return sample(against=period(), comparison=comparison_of(columns))
