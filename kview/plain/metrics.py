"""A view as Prometheus metrics. An unknown figure has no series; it is never exported as 0."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kview.derive.brokers.controllers import ControllerState, controllers, quorum_nodes
from kview.derive.brokers.silence import answering, other_apis
from kview.derive.groups.connect import are_known
from kview.derive.groups.unheard import unheard
from kview.derive.view import PartitionStatus, Verdict, View
from kview.model.failures import Part
from kview.model.snapshot import Longs, Strings
from kview.model.states import BrokerState
from kview.model.units import CONNECTOR_TASK, NO_BROKER, UNKNOWN, UNKNOWN_ID

BROKER, TOPIC, GROUP = ("broker",), ("topic",), ("group",)
LOG_DIR = ("broker", "path")
PARTITION = ("topic", "partition")
GROUP_PARTITION = ("group", "topic", "partition")
"""The labels of each kind of row."""

Labels = Sequence[str]
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most rows that have series of their own.

    If there are more, none of them has one: sums over a part would be wrong. `kview_omitted_rows` says how
    many have none. With these limits, a scrape has fewer than 100,000 series, and a cluster that grows
    cannot fill Prometheus' memory.
    """

    brokers: int = 1_000
    topics: int = 2_000
    groups: int = 2_000
    partitions: int = 2_000
    group_partitions: int = 5_000
    connectors: int = 5_000
    log_dirs: int = 2_000


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Costs:
    """What kview has cost since it started."""

    observations: int = 0
    requests: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0

    def plus(self, view: View) -> "Costs":
        """Return the costs with those of another observation."""
        seen = view.snapshot.observation
        return Costs(
            self.observations + 1,
            self.requests + seen.requests,
            self.sent_bytes + seen.bytes_sent,
            self.received_bytes + seen.bytes_received,
        )


def metrics(view: View, costs: Costs, version: str, limits: Limits = LIMITS) -> Iterator[Metric]:
    """Yield all metrics of a view. `version` is kview's own.

    If no broker answers, nothing else is known of the cluster but that.
    """
    yield from of_kview(view, costs, version)
    brokers = answering(view)
    yield from _one("kview_brokers", "Brokers of the cluster.", brokers.all)
    yield from _one("kview_answering_brokers", "Brokers that answer kview.", brokers.answer)
    yield _findings(view)
    if not brokers.answer:
        if len(view.snapshot.brokers) <= limits.brokers:
            yield _broker_states(view)
        return
    yield from _of_cluster(view)
    groups, offsets = _heeded_groups(view), _heeded_offsets(view)
    heard = not unheard(view.snapshot.observation)
    yield from _one(
        "kview_groups",
        "Consumer groups, without ignored ones; no series while a coordinator has not listed its groups.",
        len(groups) if heard else None,
    )
    omitted = GaugeMetricFamily(
        "kview_omitted_rows",
        "Brokers, topics, partitions and so on without series of their own, because there are too many.",
        labels=("of",),
    )
    for name, count, most, families in (
        ("brokers", len(view.snapshot.brokers), limits.brokers, _of_brokers(view)),
        ("log_dirs", len(view.snapshot.log_dirs), limits.log_dirs, _of_log_dirs(view)),
        ("topics", len(view.topics.topic), limits.topics, _of_topics(view)),
        ("partitions", len(view.snapshot.partitions), limits.partitions, _of_partitions(view)),
        ("groups", len(groups), limits.groups, _of_groups(view, groups)),
        ("group_partitions", len(offsets), limits.group_partitions, _of_group_partitions(view, offsets)),
        ("connectors", len(view.snapshot.connectors), limits.connectors, _of_connectors(view)),
    ):
        omitted.add_metric((name,), count if count > most else 0)
        if count <= most:
            yield from families
    yield omitted


def of_kview(view: View, costs: Costs, version: str) -> Iterator[Metric]:
    """Yield the metrics of kview itself: its version, its last observation and its costs."""
    seen = view.snapshot.observation
    info = GaugeMetricFamily("kview_build_info", "kview's version; the value is 1.", labels=("version",))
    info.add_metric((version,), 1)
    yield info
    yield from _one(
        "kview_observation_timestamp_seconds", "When the last observation ended.", seen.ended_ms / 1000
    )
    yield from _one(
        "kview_observation_duration_seconds",
        "How long the last observation took.",
        max(0, seen.ended_ms - seen.began_ms) / 1000,
    )
    for name, text, total in (
        ("kview_observations", "Observations of the cluster.", costs.observations),
        ("kview_requests", "Requests that kview has sent to the cluster.", costs.requests),
        ("kview_sent_bytes", "Bytes that kview has sent to the cluster.", costs.sent_bytes),
        ("kview_received_bytes", "Bytes that kview has received from the cluster.", costs.received_bytes),
    ):
        yield CounterMetricFamily(name, text, value=total)
    failed = GaugeMetricFamily(
        "kview_failed_parts", "Parts of the last observation that failed.", labels=("part",)
    )
    parts = [failure.part for failure in seen.failures]
    for part in Part:
        failed.add_metric((part.value,), parts.count(part))
    yield failed


def _of_cluster(view: View) -> Iterator[Metric]:
    seen, head, table = view.snapshot.observation, view.headline, view.snapshot.partitions
    if seen.cluster_id:
        info = GaugeMetricFamily("kview_cluster_info", "The cluster's id; the value is 1.", labels=("id",))
        info.add_metric((label(seen.cluster_id),), 1)
        yield info
    has = None if seen.controller_id == UNKNOWN_ID else float(seen.controller_id != NO_BROKER)
    yield from _one("kview_active_controllers", "Active controllers: 1, or 0 if there is none.", has)
    yield from _of_quorum(view)
    features = view.snapshot.features
    yield _rows_of(
        "kview_finalized_feature_level",
        "Level of a finalized feature, such as metadata.version.",
        ("feature",),
        [(label(name),) for name in features.name.tolist()],
        _known(features.level),
    )
    others = other_apis(view.snapshot)
    apis_known = bool((view.snapshot.brokers.apis != "").any())
    yield from _one(
        "kview_brokers_with_other_apis",
        "Brokers that offer other APIs than most, as in a rolling upgrade.",
        int(others.sum()) if apis_known else None,
    )
    yield from _one("kview_topics", "Topics, without internal ones.", head.topics)
    statuses = GaugeMetricFamily(
        "kview_partitions", "Partitions by their worst status.", labels=("status", "internal")
    )
    for internal in (False, True):
        partition_statuses = view.partitions.status[table.internal == internal].tolist()
        for status in PartitionStatus:
            statuses.add_metric((status.value, str(internal).lower()), partition_statuses.count(status))
    yield statuses
    unset = bool((~table.internal & (table.min_isr == UNKNOWN_ID)).any())
    under, at = (None, None) if unset else (head.under_min_isr, head.at_min_isr)
    for name, text, count in (
        ("offline", "without a leader", head.offline),
        ("under_replicated", "with fewer replicas in sync than replicas", head.under_replicated),
        ("under_min_isr", "with fewer replicas in sync than min.insync.replicas", under),
        ("at_min_isr", "with exactly min.insync.replicas in sync, and not all replicas", at),
    ):
        yield from _one(f"kview_{name}_partitions", f"Partitions of the user's topics {text}.", count)


def _of_quorum(view: View) -> Iterator[Metric]:
    """Yield the metrics of the quorum's nodes, nothing without a quorum."""
    seen, nodes = view.snapshot.observation, quorum_nodes(view)
    if not nodes:
        return
    epoch = None if seen.controller_epoch == UNKNOWN_ID else seen.controller_epoch
    yield from _one("kview_controller_epoch", "The active controller's epoch.", epoch)
    states = GaugeMetricFamily(
        "kview_controller_state",
        "1 for the state of a controller, 0 for the others.",
        labels=("controller", "state"),
    )
    for node in controllers(view):
        for state in ControllerState:
            states.add_metric((str(node.node), state.value), float(node.state is state))
    yield states
    rows = [(str(node.node), "voter" if node.votes else "observer") for node in nodes]
    for name, text, values, divisor in (
        ("log_end_offset", "End of a node's metadata log.", view.snapshot.quorum.log_end, 1),
        (
            "lag_records",
            "How far a node's metadata log is behind the active controller's.",
            np.array([node.behind for node in nodes], np.int64),
            1,
        ),
        (
            "last_fetch_age_seconds",
            "How long ago a node had fetched when the active controller told it.",
            np.array([node.quiet_ms for node in nodes], np.int64),
            1000,
        ),
    ):
        yield _rows_of(f"kview_quorum_{name}", text, ("node", "role"), rows, _known(values, divisor))


def _findings(view: View) -> Metric:
    findings = GaugeMetricFamily(
        "kview_findings", "Findings in kview's headline, by kind and severity.", labels=("kind", "severity")
    )
    kinds = [(finding.kind.value, finding.severity.value) for finding in view.headline.findings]
    for kind in sorted(set(kinds)):
        findings.add_metric(kind, kinds.count(kind))
    return findings


def _broker_states(view: View) -> Metric:
    states = GaugeMetricFamily(
        "kview_broker_state", "1 for the broker's state, 0 for the others.", labels=("broker", "state")
    )
    table = view.snapshot.brokers
    for broker, now in zip(table.id.tolist(), table.state.tolist(), strict=True):
        for state in BrokerState:
            states.add_metric((str(broker), state.value), float(now == state))
    return states


def _of_brokers(view: View) -> Iterator[Metric]:
    table, figures = view.snapshot.brokers, view.brokers
    rows = [(str(broker),) for broker in table.id.tolist()]
    yield _broker_states(view)
    up = np.asarray(table.state == BrokerState.UP, np.bool_)
    latency = np.where(up, _known(table.latency_us, 1_000_000), np.nan)
    slow = np.where(up, (figures.slow_since_ms != UNKNOWN).astype(np.float64), np.nan)
    for name, text, values in (
        ("latency_seconds", "How long the broker takes to answer a small request.", latency),
        ("slow", "1 if the broker takes much longer than usual to answer, otherwise 0.", slow),
        ("leader_partitions", "Partitions that it leads.", _known(figures.leads + figures.leads_internal)),
        ("replicas", "Replicas that it holds.", _known(figures.replicas + figures.replicas_internal)),
        ("disk_bytes", "Bytes of its replicas on disk.", _known(table.disk_bytes)),
        (
            "in_records_per_second",
            "Records appended per second to the partitions of the user's topics that it leads.",
            _known(figures.in_rate),
        ),
    ):
        yield _rows_of(f"kview_broker_{name}", text, BROKER, rows, values)


def _of_log_dirs(view: View) -> Iterator[Metric]:
    """Yield the log directories of the brokers that are up. What others told is old."""
    brokers = view.snapshot.brokers
    up = np.isin(
        view.snapshot.log_dirs.broker, brokers.id[np.asarray(brokers.state == BrokerState.UP, np.bool_)]
    )
    table, full_ms = view.snapshot.log_dirs.take(up), view.dirs_full_ms[up]
    rows = [(str(broker), label(path)) for broker, path in zip(table.broker, table.path, strict=True)]
    for name, text, values in (
        ("offline", "1 if the log directory has failed, otherwise 0.", _known(table.error_code != 0)),
        ("total_bytes", "The size of its volume; no series before Kafka 3.3.", _known(table.total_bytes)),
        ("usable_bytes", "What is free on its volume.", _known(table.usable_bytes)),
        (
            "full_timestamp_seconds",
            "When it will be full at the rate of the last 10 minutes, ≈; no series unless it fills.",
            _known(full_ms, 1000),
        ),
    ):
        yield _rows_of(f"kview_log_dir_{name}", text, LOG_DIR, rows, values)


def _of_connectors(view: View) -> Iterator[Metric]:
    """Yield the states of connectors and tasks, without any series while they are not known."""
    table = view.snapshot.connectors
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
    if are_known(view.snapshot.observation):
        columns = table.connector.tolist(), table.task.tolist(), table.kind.tolist(), table.state.tolist()
        for name, task, kind, state in zip(*columns, strict=True):
            if task == CONNECTOR_TASK:
                connectors.add_metric((label(name), kind, label(state)), 1)
            else:
                tasks.add_metric((label(name), str(task), label(state)), 1)
    yield connectors
    yield tasks


def _of_topics(view: View) -> Iterator[Metric]:
    figures = view.topics
    rows = [(label(topic),) for topic in figures.topic.tolist()]
    for name, text, values in (
        ("partitions", "Partitions.", _known(figures.partitions)),
        ("offline_partitions", "Partitions without a leader.", _known(figures.no_leader)),
        ("silent_leader_partitions", "Partitions led by a silent broker.", _known(figures.silent_leader)),
        ("frozen_partitions", "Partitions whose high watermark stands still.", _known(figures.frozen)),
        (
            "under_replicated_partitions",
            "Partitions with fewer replicas in sync than replicas.",
            _known(figures.under_replicated),
        ),
        (
            "under_min_isr_partitions",
            "Partitions with fewer replicas in sync than min.insync.replicas.",
            np.where(figures.min_isr == UNKNOWN_ID, np.nan, _known(figures.under_min_isr)),
        ),
        ("in_records_per_second", "Records appended per second.", _known(figures.in_rate)),
        ("size_bytes", "Bytes of all replicas on disk.", _known(figures.size_bytes)),
    ):
        yield _rows_of(f"kview_topic_{name}", text, TOPIC, rows, values)


def _of_partitions(view: View) -> Iterator[Metric]:
    table, figures = view.snapshot.partitions, view.partitions
    rows = _partition_labels(table.topic, table.partition)
    states = GaugeMetricFamily(
        "kview_partition_status",
        "1 for the partition's worst status; other statuses have no series.",
        labels=(*PARTITION, "status"),
    )
    for row, status in zip(rows, figures.status.tolist(), strict=True):
        states.add_metric((*row, str(status)), 1)
    yield states
    leader = np.where(table.leader == NO_BROKER, UNKNOWN_ID, table.leader)
    held = table.last_stable_since_ms != UNKNOWN
    unread = (table.leader < 0) | figures.leader_unreached | (figures.leader_silent_since_ms != UNKNOWN)

    def read(offsets: Longs) -> Values:
        return np.where(unread, np.nan, _known(offsets))

    for name, text, values in (
        ("leader_broker_id", "The leader's broker id; no series without a leader.", _known(leader)),
        ("in_sync_replicas", "Replicas in sync.", _known(figures.isr_count)),
        (
            "log_start_offset",
            "The first offset of the log; no series while the leader does not answer.",
            read(table.log_start),
        ),
        ("high_watermark_offset", "The end of the log for consumers.", read(table.high_watermark)),
        (
            "last_stable_offset",
            "The end of the log for consumers with read_committed; no series unless an open transaction holds"
            " it back.",
            np.where(held, read(table.last_stable), np.nan),
        ),
        (
            "last_stable_held_seconds",
            "For how long an open transaction has held it where it is; no series if none does.",
            np.where(held, (view.snapshot.observation.ended_ms - table.last_stable_since_ms) / 1000, np.nan),
        ),
        ("log_end_offset", "The end of the leader's log.", read(table.log_end)),
        ("uncommitted_records", "Records beyond the high watermark.", _known(figures.uncommitted)),
        ("in_records_per_second", "Records appended per second.", _known(figures.in_rate)),
        (
            "reassigning_records_left",
            "Records that replicas which are being added have to copy; no series if nothing is moved.",
            np.where(view.moves.records_left_is_bound, np.nan, _known(view.moves.records_left)),
        ),
    ):
        yield _rows_of(f"kview_partition_{name}", text, PARTITION, rows, values)


# -- consumer groups


def _exact(values: Longs, is_bound: NDArray[np.bool_]) -> Values:
    return np.where(is_bound, np.nan, _known(values))


def _of_groups(view: View, heeded: Longs) -> Iterator[Metric]:
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
        ("lag_min_records", "Records behind, at least.", _known(figures.lag)),
        (
            "lag_seconds",
            "Time behind; no series if only a bound is known.",
            _exact(figures.behind_ms, figures.behind_is_bound) / 1000,
        ),
        ("lag_min_seconds", "Time behind, at least.", _known(figures.behind_ms, 1000)),
        (
            "lost_records",
            "Records deleted before the group read them, at least; no series for a group that commits no"
            " offsets.",
            _known(figures.lost),
        ),
        ("members", "Members of the group.", _known(table.members)),
        (
            "read_records_per_second",
            "Records read per second, as its commits show.",
            _known(figures.read_rate),
        ),
        ("age_seconds", "How old the group's figures are.", _known(figures.age_ms, 1000)),
    ):
        yield _rows_of(f"kview_group_{name}", text, GROUP, rows, values[heeded])


def _heeded_groups(view: View) -> Longs:
    """Return the rows of the groups that the user does not ignore."""
    return np.flatnonzero(~view.groups.ignored).astype(np.int64)


def _heeded_offsets(view: View) -> Longs:
    """Return the rows of `Offsets` whose groups the user does not ignore."""
    ignored = set(view.snapshot.groups.group[view.groups.ignored].tolist())
    names = view.snapshot.offsets.group.tolist()
    return np.array([row for row, name in enumerate(names) if name not in ignored], np.int64)


def _of_group_partitions(view: View, heeded: Longs) -> Iterator[Metric]:
    """Yield the metrics of the groups' partitions in the rows `heeded` of `Offsets`."""
    table, figures = view.snapshot.offsets, view.offsets
    names = [label(group) for group in table.group[heeded].tolist()]
    at = _partition_labels(table.topic[heeded], table.partition[heeded])
    rows = [(group, *partition) for group, partition in zip(names, at, strict=True)]
    committed = np.where(table.committed < 0, UNKNOWN, table.committed)
    for name, text, values in (
        ("committed_offset", "The committed offset.", _known(committed)),
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
        yield _rows_of(f"kview_group_partition_{name}", text, GROUP_PARTITION, rows, values[heeded])


# -- series from columns


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


def _known(values: NDArray[np.generic], divisor: float = 1.0) -> Values:
    """Return values as floats, NaN for those that are not known."""
    if values.dtype.kind == "f":
        floats = values.astype(np.float64)
        return np.where(np.isfinite(floats), floats / divisor, np.nan)
    whole = values.astype(np.int64)
    unknown = (whole == UNKNOWN) | (whole == UNKNOWN_ID)
    return np.where(unknown, np.nan, whole.astype(np.float64) / divisor)


def _one(name: str, text: str, value: float | None) -> Iterator[Metric]:
    """Yield a metric with a single series, or nothing if `value` is None."""
    if value is not None:
        yield GaugeMetricFamily(name, text, value=value)


def _rows_of(name: str, text: str, names: Labels, rows: Iterable[Labels], values: Values) -> Metric:
    """Return a metric with a series for each row whose value is known."""
    family = GaugeMetricFamily(name, text, labels=names)
    for row, value in zip(rows, values.tolist(), strict=True):
        if value == value:
            family.add_metric(row, value)
    return family


def _partition_labels(topics: Strings, partitions: NDArray[np.int32]) -> list[tuple[str, str]]:
    """Return the labels of partitions: (topic, number)."""
    return [
        (label(topic), str(partition))
        for topic, partition in zip(topics.tolist(), partitions.tolist(), strict=True)
    ]
