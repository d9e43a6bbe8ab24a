"""The metrics of brokers, log directories, topics, partitions, groups and connectors: which rows compete for
series of their own, and the series of those that have them."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kview.derive.align import group_rows
from kview.derive.groups.connect import are_known
from kview.derive.groups.retained import NEAR_RETENTION, LagShares, lag_shares
from kview.derive.groups.verdicts import ORDER
from kview.derive.groups.verdicts import SEVERITIES as OF_VERDICTS
from kview.derive.statuses import SEVERITIES as OF_STATUSES
from kview.derive.statuses import STATUSES
from kview.derive.transactions.findings import stands_still
from kview.derive.view import GroupFigures, OffsetFigures, Verdict, View
from kview.model.events import Severity, severity_rank
from kview.model.name_patterns import Of
from kview.model.snapshot import Flags, Longs, Strings
from kview.model.states import BrokerState, ConnectorState
from kview.model.units import CONNECTOR_TASK, NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.plain.metric_families import (
    BOTH,
    MAX,
    SUM,
    Column,
    Values,
    exact,
    families,
    known,
    label,
    one,
    partition_labels,
)
from kview.plain.own_series import CALM, RISK, WARN, Choice, Names, Rows

BROKER, TOPIC, GROUP = ("broker",), ("topic",), ("group",)
LOG_DIR = ("broker", "path")
PARTITION = ("topic", "partition")
GROUP_PARTITION = ("group", "topic", "partition")
"""The labels of each kind of row."""


@dataclass(frozen=True)
class Scrape:
    """What the tables are made of."""

    view: View
    names: Names

    @cached_property
    def shares(self) -> LagShares:
        """The lag of groups' partitions as a share of what topics keep."""
        return lag_shares(self.view)

    @cached_property
    def of_groups(self) -> LagShares:
        """The largest share of each group. It is not known if a bound might be larger."""
        groups = self.view.snapshot.groups.group
        at = group_rows(groups, self.view.snapshot.offsets.group)
        worst = LagShares(*(_worst(at, shares, len(groups)) for shares in self.shares))
        bound = at[(at >= 0) & np.isnan(self.shares.of_time) & ~np.isnan(self.shares.of_time_min)]
        worst.of_time[bound] = np.nan
        return worst


def _worst(at: Longs, shares: Values, groups: int) -> Values:
    """Return the largest share of each group, NaN if none is known. `at` are the groups' rows."""
    worst = np.full(groups, np.nan)
    told = (at >= 0) & ~np.isnan(shares)
    np.fmax.at(worst, at[told], shares[told])
    return worst


def _near(shares: LagShares, verdicts: Strings) -> Longs:
    """Return WARN for what is about to lose records, else CALM. Nobody misses those of an abandoned group."""
    near = (shares.of_log > NEAR_RETENTION) | (shares.of_time_min > NEAR_RETENTION)
    return np.where(near & (verdicts != Verdict.ABANDONED), WARN, CALM)


def broker_rows(scrape: Scrape) -> Rows:
    """Return the brokers."""
    view = scrape.view
    table = view.snapshot.brokers
    down = np.asarray(table.state != BrokerState.UP, np.bool_)
    return _rows(table.id.tolist(), np.where(down, RISK, CALM), view.brokers.in_rate)


def broker_states(scrape: Scrape, chosen: Choice) -> Metric:
    """Return the metric of the states of brokers."""
    view = scrape.view
    states = GaugeMetricFamily(
        "kview_broker_state", "1 for the broker's state, 0 for the others.", labels=("broker", "state")
    )
    table = view.snapshot.brokers.take(chosen.own)
    for broker, now in zip(table.id.tolist(), table.state.tolist(), strict=True):
        for state in BrokerState:
            states.add_metric((str(broker), state.value), float(now == state))
    return states


def _of_brokers(scrape: Scrape, chosen: Choice) -> Iterator[Metric]:
    view = scrape.view
    table, figures = view.snapshot.brokers, view.brokers
    yield broker_states(scrape, chosen)
    up = np.asarray(table.state == BrokerState.UP, np.bool_)
    latency = np.where(up, known(table.latency_us, 1_000_000), np.nan)
    slow = np.where(up, (figures.slow_since_ms != UNKNOWN).astype(np.float64), np.nan)
    yield from families(
        "broker",
        BROKER,
        [(str(broker),) for broker in table.id[chosen.own].tolist()],
        chosen,
        (
            Column("latency_seconds", "How long the broker takes to answer a small request.", latency),
            Column("slow", "1 if the broker takes much longer than usual to answer, otherwise 0.", slow),
            Column(
                "leader_partitions",
                "Partitions that it leads.",
                known(figures.leads + figures.leads_internal),
            ),
            Column(
                "replicas", "Replicas that it holds.", known(figures.replicas + figures.replicas_internal)
            ),
            Column("disk_bytes", "Bytes of its replicas on disk.", known(table.disk_bytes)),
            Column(
                "in_records_per_second",
                "Records appended per second to the partitions of the user's topics that it leads.",
                known(figures.in_rate),
            ),
        ),
    )


def _log_dir_rows(scrape: Scrape) -> Rows:
    """Return the log directories, without those of brokers that are not up: what these told is old."""
    view = scrape.view
    table, brokers = view.snapshot.log_dirs, view.snapshot.brokers
    up = np.isin(table.broker, brokers.id[np.asarray(brokers.state == BrokerState.UP, np.bool_)])
    full = np.where(view.dirs_full_ms != UNKNOWN, WARN, CALM)
    used = 1 - known(table.usable_bytes) / np.maximum(known(table.total_bytes), 1)
    keys = list(zip(table.broker.tolist(), table.path.tolist(), strict=True))
    return _rows(keys, np.where(table.error_code != 0, RISK, full), used, excluded=~up)


def _of_log_dirs(scrape: Scrape, chosen: Choice) -> Iterator[Metric]:
    view = scrape.view
    table = view.snapshot.log_dirs
    at = zip(table.broker[chosen.own].tolist(), table.path[chosen.own].tolist(), strict=True)
    yield from families(
        "log_dir",
        LOG_DIR,
        [(str(broker), label(path)) for broker, path in at],
        chosen,
        (
            Column(
                "offline", "1 if the log directory has failed, otherwise 0.", known(table.error_code != 0)
            ),
            Column(
                "total_bytes",
                "The size of its volume; no series before Kafka 3.3.",
                known(table.total_bytes),
            ),
            Column("usable_bytes", "What is free on its volume.", known(table.usable_bytes)),
            Column(
                "full_timestamp_seconds",
                "When it will be full at the rate of the last 10 minutes, ≈; no series unless it fills.",
                known(view.dirs_full_ms, 1000),
            ),
        ),
    )


def _connector_rows(scrape: Scrape) -> Rows:
    """Return the connectors and tasks, none while their states are not known."""
    view = scrape.view
    table = view.snapshot.connectors
    failed = np.asarray(table.state == ConnectorState.FAILED, np.bool_)
    told = np.full(len(table), are_known(view.snapshot.observation))
    keys = list(zip(table.connector.tolist(), table.task.tolist(), strict=True))
    return _rows(keys, np.where(failed, RISK, CALM), np.zeros(len(table)), excluded=~told)


def _of_connectors(scrape: Scrape, chosen: Choice) -> Iterator[Metric]:
    view = scrape.view
    table = view.snapshot.connectors.take(chosen.own)
    connectors = GaugeMetricFamily(
        "kview_connector_state",
        "1 for the connector's state in Kafka Connect; other states have no series.",
        labels=("connector", "kind", "state"),
    )
    tasks = GaugeMetricFamily(
        "kview_connector_task_state",
        "1 for the task's state in Kafka Connect; other states have no series.",
        labels=("connector", "task", "state"),
    )
    columns = table.connector.tolist(), table.task.tolist(), table.kind.tolist(), table.state.tolist()
    for name, task, kind, state in zip(*columns, strict=True):
        if task == CONNECTOR_TASK:
            connectors.add_metric((label(name), kind, label(state)), 1)
        else:
            tasks.add_metric((label(name), str(task), label(state)), 1)
    yield connectors
    yield tasks


def _topic_rows(scrape: Scrape) -> Rows:
    view, names = scrape.view, scrape.names
    figures = view.topics
    return _rows(
        figures.topic.tolist(),
        _ranks(figures.severity),
        figures.in_rate,
        names.included(Of.TOPIC, figures.topic),
        names.excluded(Of.TOPIC, figures.topic),
    )


def _of_topics(scrape: Scrape, chosen: Choice) -> Iterator[Metric]:
    view = scrape.view
    figures = view.topics
    yield from one(
        "kview_rest_topics",
        "Topics without series of their own, not counting excluded ones.",
        len(chosen.rest),
    )
    yield from families(
        "topic",
        TOPIC,
        [(label(topic),) for topic in figures.topic[chosen.own].tolist()],
        chosen,
        (
            Column("partitions", "Partitions.", known(figures.partitions), SUM),
            Column("offline_partitions", "Partitions without a leader.", known(figures.no_leader), SUM),
            Column(
                "silent_leader_partitions",
                "Partitions led by a silent broker.",
                known(figures.silent_leader),
                SUM,
            ),
            Column(
                "frozen_partitions",
                "Partitions whose high watermark stands still.",
                known(figures.frozen),
                SUM,
            ),
            Column(
                "under_replicated_partitions",
                "Partitions with fewer replicas in sync than replicas.",
                known(figures.under_replicated),
                SUM,
            ),
            Column(
                "under_min_isr_partitions",
                "Partitions with fewer replicas in sync than min.insync.replicas.",
                np.where(figures.min_isr == UNKNOWN_ID, np.nan, known(figures.under_min_isr)),
                SUM,
            ),
            Column("in_records_per_second", "Records appended per second.", known(figures.in_rate), SUM),
            Column("size_bytes", "Bytes of all replicas on disk.", known(figures.size_bytes), SUM),
        ),
    )


def _partition_rows(scrape: Scrape) -> Rows:
    view, names = scrape.view, scrape.names
    table, figures = view.snapshot.partitions, view.partitions
    levels = np.array([severity_rank(OF_STATUSES.get(status, Severity.CALM)) for status in STATUSES])
    trouble = np.minimum(levels[figures.rank], np.where(stands_still(view.snapshot), WARN, CALM))
    return _rows(
        list(zip(table.topic.tolist(), table.partition.tolist(), strict=True)),
        trouble,
        figures.in_rate,
        names.included(Of.TOPIC, table.topic),
        names.excluded(Of.TOPIC, table.topic),
    )


def _of_partitions(scrape: Scrape, chosen: Choice) -> Iterator[Metric]:
    view = scrape.view
    table, figures = view.snapshot.partitions, view.partitions
    rows = partition_labels(table.topic[chosen.own], table.partition[chosen.own])
    states = GaugeMetricFamily(
        "kview_partition_status",
        "1 for the partition's worst status; other statuses have no series.",
        labels=(*PARTITION, "status"),
    )
    for row, rank in zip(rows, figures.rank[chosen.own].tolist(), strict=True):
        states.add_metric((*row, STATUSES[rank].value), 1)
    yield states
    rest = GaugeMetricFamily(
        "kview_rest_partitions",
        "Partitions without series of their own, by their worst status.",
        labels=("status",),
    )
    counts = np.bincount(figures.rank[chosen.rest], minlength=len(STATUSES)).tolist()
    for status, count in zip(STATUSES, counts, strict=True):
        rest.add_metric((status.value,), count)
    yield rest
    leader = np.where(table.leader == NO_BROKER, UNKNOWN_ID, table.leader)
    held = table.last_stable_since_ms != UNKNOWN
    unread = (table.leader < 0) | figures.leader_unreached | (figures.leader_silent_since_ms != UNKNOWN)

    def read(offsets: Longs) -> Values:
        return np.where(unread, np.nan, known(offsets))

    yield from families(
        "partition",
        PARTITION,
        rows,
        chosen,
        (
            Column("leader_broker_id", "The leader's broker id; no series without a leader.", known(leader)),
            Column("in_sync_replicas", "Replicas in sync.", known(figures.isr_count)),
            Column(
                "log_start_offset",
                "The first offset of the log; no series while the leader does not answer.",
                read(table.log_start),
            ),
            Column("high_watermark_offset", "The end of the log for consumers.", read(table.high_watermark)),
            Column(
                "last_stable_offset",
                "The end of the log for consumers with read_committed; no series unless an open transaction"
                " holds it back.",
                np.where(held, read(table.last_stable), np.nan),
            ),
            Column(
                "last_stable_held_seconds",
                "For how long an open transaction has held it where it is; no series if none does.",
                np.where(
                    held, (view.snapshot.observation.ended_ms - table.last_stable_since_ms) / 1000, np.nan
                ),
                MAX,
            ),
            Column("log_end_offset", "The end of the leader's log.", read(table.log_end)),
            Column(
                "uncommitted_records", "Records beyond the high watermark.", known(figures.uncommitted), MAX
            ),
            Column("in_records_per_second", "Records appended per second.", known(figures.in_rate), SUM),
            Column(
                "reassigning_records_left",
                "Records that replicas which are being added have to copy; no series if nothing is moved.",
                np.where(view.moves.records_left_is_bound, np.nan, known(view.moves.records_left)),
                SUM,
            ),
        ),
    )


# -- consumer groups


def _group_rows(scrape: Scrape) -> Rows:
    """Return the groups that the user does not ignore."""
    view, names = scrape.view, scrape.names
    groups, figures = view.snapshot.groups.group, view.groups
    return _rows(
        groups.tolist(),
        np.minimum(_ranks(figures.severity), _near(scrape.of_groups, figures.verdict)),
        _busy(figures),
        names.included(Of.GROUP, groups),
        names.excluded(Of.GROUP, groups),
        figures.ignored,
    )


def _busy(figures: GroupFigures | OffsetFigures) -> Values:
    """Return how busy readers are: one that reads a lot as much as one that is a second of that behind.

    The lag of an abandoned group, however large, concerns nobody.
    """
    busy = np.nan_to_num(known(figures.lag)) + np.nan_to_num(known(figures.read_rate))
    return np.where(figures.verdict == Verdict.ABANDONED, 0.0, busy)


def _of_groups(scrape: Scrape, chosen: Choice) -> Iterator[Metric]:
    """Yield the metrics of groups.

    A lag that is only a lower bound is a metric of its own: `_min` always has it, and the other one only if
    it is exact.
    """
    view = scrape.view
    table, figures = view.snapshot.groups, view.groups
    rows = [(label(group),) for group in table.group[chosen.own].tolist()]
    verdicts = GaugeMetricFamily(
        "kview_group_verdict",
        "1 for the verdict on the group, 0 for the others.",
        labels=(*GROUP, "verdict"),
    )
    for row, now in zip(rows, figures.verdict[chosen.own].tolist(), strict=True):
        for verdict in Verdict:
            verdicts.add_metric((*row, verdict.value), float(now == verdict))
    yield verdicts
    rest = GaugeMetricFamily(
        "kview_rest_groups", "Groups without series of their own, by verdict.", labels=("verdict",)
    )
    of_rest = figures.verdict[chosen.rest].tolist()
    for verdict in Verdict:
        rest.add_metric((verdict.value,), of_rest.count(verdict))
    yield rest
    kinds = GaugeMetricFamily("kview_group_kind", "1 for the kind of the group.", labels=(*GROUP, "kind"))
    for row, kind in zip(rows, table.type[chosen.own].tolist(), strict=True):
        kinds.add_metric((*row, kind), 1)
    yield kinds
    yield from families(
        "group",
        GROUP,
        rows,
        chosen,
        (
            Column(
                "lag_records",
                "Records behind; no series if only a bound is known.",
                exact(figures.lag, figures.lag_is_bound),
            ),
            Column("lag_min_records", "Records behind, at least.", known(figures.lag), BOTH),
            Column(
                "lag_seconds",
                "Time behind; no series if only a bound is known.",
                exact(figures.behind_ms, figures.behind_is_bound) / 1000,
            ),
            Column("lag_min_seconds", "Time behind, at least.", known(figures.behind_ms, 1000), MAX),
            Column(
                "lag_log_ratio",
                f"The worst partition's: {_LOG_RATIO}",
                scrape.of_groups.of_log,
                MAX,
            ),
            Column(
                "lag_retention_ratio",
                f"The worst partition's: {_RETENTION_RATIO}; no series if only a bound is known.",
                scrape.of_groups.of_time,
            ),
            Column(
                "lag_min_retention_ratio",
                f"The worst partition's, at least: {_RETENTION_RATIO}.",
                scrape.of_groups.of_time_min,
                MAX,
            ),
            Column(
                "lost_records",
                "Records deleted before the group read them, at least; no series for a group that commits no"
                " offsets.",
                known(figures.lost),
                SUM,
            ),
            Column("members", "Members of the group.", known(table.members), SUM),
            Column(
                "read_records_per_second",
                "Records read per second, as its commits show.",
                known(figures.read_rate),
                SUM,
            ),
            Column("age_seconds", "How old the group's figures are.", known(figures.age_ms, 1000), MAX),
        ),
    )


_LOG_RATIO = (
    "lag / (end of the log − log start), in offsets. Above 1, records were removed unread. No series unless"
    " retention.bytes limits the log, for a compacted topic, whose offsets have gaps and whose last value of"
    " a key stays, and before anything was removed (log start 0)."
)
_RETENTION_RATIO = (
    "time behind / retention.ms. Above 1, the next record to read may be removed at any time. No series for"
    " a compacted topic, and for one without a limit of time"
)


def _group_partition_rows(scrape: Scrape) -> Rows:
    """Return the partitions of the groups that the user does not ignore."""
    view, names = scrape.view, scrape.names
    table, figures = view.snapshot.offsets, view.offsets
    levels = np.array([severity_rank(OF_VERDICTS[verdict]) for verdict in ORDER])
    lost = np.where((figures.lost > 0) & (figures.verdict != Verdict.ABANDONED), RISK, CALM)
    ignored = set(view.snapshot.groups.group[view.groups.ignored].tolist())
    groups = table.group.tolist()
    of_group, of_topic = (
        (names.included(of, column), names.excluded(of, column))
        for of, column in ((Of.GROUP, table.group), (Of.TOPIC, table.topic))
    )
    never = (of_group[1] & ~of_group[0]) | (of_topic[1] & ~of_topic[0])
    return _rows(
        list(zip(groups, table.topic.tolist(), table.partition.tolist(), strict=True)),
        np.minimum(np.minimum(levels[figures.rank], lost), _near(scrape.shares, figures.verdict)),
        _busy(figures),
        (of_group[0] | of_topic[0]) & ~never,
        never,
        np.array([name in ignored for name in groups], np.bool_) if ignored else None,
    )


def _of_group_partitions(scrape: Scrape, chosen: Choice) -> Iterator[Metric]:
    view = scrape.view
    table, figures = view.snapshot.offsets, view.offsets
    names = [label(group) for group in table.group[chosen.own].tolist()]
    at = partition_labels(table.topic[chosen.own], table.partition[chosen.own])
    yield from one(
        "kview_rest_group_partitions", "Partitions of groups without series of their own.", len(chosen.rest)
    )
    committed = np.where(table.committed < 0, UNKNOWN, table.committed)
    yield from families(
        "group_partition",
        GROUP_PARTITION,
        [(group, *partition) for group, partition in zip(names, at, strict=True)],
        chosen,
        (
            Column("committed_offset", "The committed offset.", known(committed)),
            Column(
                "lag_records",
                "Records behind; no series if only a bound is known.",
                exact(figures.lag, figures.lag_is_bound),
                BOTH,
            ),
            Column(
                "lag_seconds",
                "Time behind; no series if only a bound is known.",
                exact(figures.behind_ms, figures.behind_is_bound) / 1000,
                MAX,
            ),
            Column("lag_log_ratio", _LOG_RATIO[0].upper() + _LOG_RATIO[1:], scrape.shares.of_log, MAX),
            Column(
                "lag_retention_ratio",
                f"{_RETENTION_RATIO[0].upper()}{_RETENTION_RATIO[1:]}; no series if only a bound is known.",
                scrape.shares.of_time,
            ),
            Column(
                "lag_min_retention_ratio", f"At least: {_RETENTION_RATIO}.", scrape.shares.of_time_min, MAX
            ),
        ),
    )


class Table(NamedTuple):
    """A kind of row: which rows compete for series, and the series of those that were chosen."""

    rows: Callable[[Scrape], Rows]
    families: Callable[[Scrape, Choice], Iterator[Metric]]


TABLES: Mapping[str, Table] = {
    "brokers": Table(broker_rows, _of_brokers),
    "log_dirs": Table(_log_dir_rows, _of_log_dirs),
    "topics": Table(_topic_rows, _of_topics),
    "partitions": Table(_partition_rows, _of_partitions),
    "groups": Table(_group_rows, _of_groups),
    "group_partitions": Table(_group_partition_rows, _of_group_partitions),
    "connectors": Table(_connector_rows, _of_connectors),
}
"""The tables by their names in `Limits`."""


def _ranks(severities: Strings) -> Longs:
    return np.array([severity_rank(severity) for severity in severities.tolist()], np.int64)


def _rows(
    keys: Sequence[Hashable],
    trouble: Longs,
    busy: Values,
    included: Flags | None = None,
    excluded: Flags | None = None,
    ignored: Flags | None = None,
) -> Rows:
    """Return rows that compete for series. What is `ignored` does not, even if it is included."""
    none = np.zeros(len(keys), np.bool_)
    ignored = none if ignored is None else ignored
    included = (none if included is None else included) & ~ignored
    return Rows(keys, trouble, busy, included, (none if excluded is None else excluded) | ignored)
