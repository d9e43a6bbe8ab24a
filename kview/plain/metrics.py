"""A view as Prometheus metrics: of kview, of the cluster, and the tables' own."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kview.derive.brokers.controllers import ControllerState, controllers, quorum_nodes
from kview.derive.brokers.silence import answering, other_apis
from kview.derive.groups.unheard import unheard
from kview.derive.view import PartitionStatus, View
from kview.model.failures import Part
from kview.model.findings import FindingKind
from kview.model.units import NO_BROKER, UNKNOWN_ID
from kview.plain.metric_families import known, label, one, rows_of
from kview.plain.metric_tables import TABLES, Scrape, broker_rows, broker_states
from kview.plain.own_series import OwnSeries

_UNTOLD_CONTROLLER = frozenset({FindingKind.QUORUM_SILENT, FindingKind.QUORUM_LOST})
"""The findings that mean that nobody tells whether the controller that was active still is."""


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


def metrics(view: View, costs: Costs, version: str, own: OwnSeries) -> Iterator[Metric]:
    """Yield all metrics of a view. `version` is kview's own. `own` remembers which rows have series.

    If no broker answers, nothing else is known of the cluster but that.
    """
    scrape, now_ms = Scrape(view, own.names), view.snapshot.observation.ended_ms
    yield build_info(version)
    yield from of_kview(view, costs)
    brokers = answering(view)
    yield from one("kview_brokers", "Brokers of the cluster.", brokers.all)
    yield from one("kview_answering_brokers", "Brokers that answer kview.", brokers.answer)
    yield _findings(view)
    if not brokers.answer:
        yield broker_states(scrape, own.choose("brokers", broker_rows(scrape), now_ms))
        return
    yield from _of_cluster(view)
    heard = not unheard(view.snapshot.observation)
    yield from one(
        "kview_groups",
        "Consumer groups, without ignored ones; no series while a coordinator has not listed its groups.",
        int((~view.groups.ignored).sum()) if heard else None,
    )
    omitted = GaugeMetricFamily(
        "kview_omitted_rows",
        "Brokers, topics, partitions and so on without series of their own, because there are too many."
        " kview_rest metrics add up topics, partitions and groups.",
        labels=("of", "in_trouble"),
    )
    for of, table in TABLES.items():
        chosen = own.choose(of, table.rows(scrape), now_ms)
        omitted.add_metric((of, "true"), chosen.rest_in_trouble)
        omitted.add_metric((of, "false"), len(chosen.rest) - chosen.rest_in_trouble)
        yield from table.families(scrape, chosen)
    yield omitted


def build_info(version: str) -> Metric:
    """Return the metric that is always there."""
    info = GaugeMetricFamily("kview_build_info", "kview's version; the value is 1.", labels=("version",))
    info.add_metric((version,), 1)
    return info


def of_kview(view: View, costs: Costs) -> Iterator[Metric]:
    """Yield the metrics of kview itself: its last observation and its costs."""
    seen = view.snapshot.observation
    yield from one(
        "kview_observation_timestamp_seconds", "When the last observation ended.", seen.ended_ms / 1000
    )
    yield from one(
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
        failed.add_metric((part.value,), float(parts.count(part)))
    yield failed


def _of_cluster(view: View) -> Iterator[Metric]:
    seen, head, table = view.snapshot.observation, view.headline, view.snapshot.partitions
    if seen.cluster_id:
        info = GaugeMetricFamily("kview_cluster_info", "The cluster's id; the value is 1.", labels=("id",))
        info.add_metric((label(seen.cluster_id),), 1)
        yield info
    untold = seen.controller_id == UNKNOWN_ID or any(f.kind in _UNTOLD_CONTROLLER for f in head.findings)
    yield from one(
        "kview_active_controllers",
        "Active controllers: 1, or 0 if there is none; no series while no controller answers, or the active"
        " one hears no majority.",
        None if untold else float(seen.controller_id != NO_BROKER),
    )
    yield from _of_quorum(view)
    features = view.snapshot.features
    yield rows_of(
        "kview_finalized_feature_level",
        "Level of a finalized feature, such as metadata.version.",
        ("feature",),
        [(label(name),) for name in features.name.tolist()],
        known(features.level),
    )
    others = other_apis(view.snapshot)
    apis_known = bool((view.snapshot.brokers.apis != "").any())
    yield from one(
        "kview_brokers_with_other_apis",
        "Brokers that offer other APIs than most, as in a rolling upgrade.",
        int(others.sum()) if apis_known else None,
    )
    yield from one("kview_topics", "Topics, without internal ones.", head.topics)
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
        yield from one(f"kview_{name}_partitions", f"Partitions of the user's topics {text}.", count)


def _of_quorum(view: View) -> Iterator[Metric]:
    """Yield the metrics of the quorum's nodes, nothing without a quorum."""
    seen, nodes = view.snapshot.observation, quorum_nodes(view)
    if not nodes:
        return
    epoch = None if seen.controller_epoch == UNKNOWN_ID else seen.controller_epoch
    yield from one("kview_controller_epoch", "The active controller's epoch.", epoch)
    states = GaugeMetricFamily(
        "kview_controller_state",
        "1 for the state of a controller, 0 for the others.",
        labels=("controller", "state"),
    )
    for node in controllers(view):
        for state in ControllerState:
            states.add_metric((str(node.node), state.value), float(node.state is state))
    yield states
    roles = [(str(node.node), "voter" if node.votes else "observer") for node in nodes]
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
        yield rows_of(f"kview_quorum_{name}", text, ("node", "role"), roles, known(values, divisor))


def _findings(view: View) -> Metric:
    findings = GaugeMetricFamily(
        "kview_findings", "Findings in kview's headline, by kind and severity.", labels=("kind", "severity")
    )
    kinds = [(finding.kind.value, finding.severity.value) for finding in view.headline.findings]
    for kind in sorted(set(kinds)):
        findings.add_metric(kind, kinds.count(kind))
    return findings
