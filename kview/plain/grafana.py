"""A dashboard for Grafana over kview's metrics, as JSON. Its rows have the order of kview's own screens."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kview.derive.groups.retained import NEAR_RETENTION

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_OWN = 'instance="$instance", cluster="$name"'
"""What selects the chosen cluster's series of the kview that watches it. Only the series of a kview that
watches several clusters have a `cluster`."""
_WIDTH, _STAT, _PLOT = 24, (4, 4), (12, 8)
"""The width of a dashboard, and the widths and heights of panels, in Grafana's units."""
_MOST = 20
"""The most lines in a plot."""


class Query(NamedTuple):
    """A query, and how its series are called. `@` in an expression stands for the chosen kview."""

    expr: str
    legend: str = ""


class Panel(NamedTuple):
    """A number (`stat`), a plot (`timeseries`) or a table. `red` and `yellow` are limits of a number."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    red: float | None = None
    yellow: float | None = None
    low_is_bad: bool = False
    text: str = ""
    says_value: bool = True
    """Whether a table has a column with the value: a state says it all."""


def _stat(title: str, expr: str, unit: str = "short", **alarms: Any) -> Panel:
    return Panel(title, (Query(expr),), unit, "stat", **alarms)


def _plot(title: str, *queries: tuple[str, str], unit: str = "short", text: str = "") -> Panel:
    return Panel(title, tuple(Query(*query) for query in queries), unit, text=text)


def _states(title: str, expr: str, text: str = "") -> Panel:
    return Panel(title, (Query(expr),), kind="table", text=text, says_value=False)


ROWS: Mapping[str, tuple[Panel, ...]] = {
    "Overview": (
        _stat("Brokers that do not answer", "kview_brokers{@} - kview_answering_brokers{@}", red=1),
        _stat("Brokers", "kview_brokers{@}"),
        _stat(
            "Findings: risk", 'sum(kview_findings{@, severity="risk"}) or 0 * sum(kview_brokers{@})', red=1
        ),
        _stat(
            "Findings: warn", 'sum(kview_findings{@, severity="warn"}) or 0 * sum(kview_brokers{@})', yellow=1
        ),
        _stat("Partitions without a leader", 'sum(kview_partitions{@, status="no_leader"})', red=1),
        _stat("Active controllers", "kview_active_controllers{@}", red=1, low_is_bad=True),
        _plot(
            "Findings",
            ('sum by (kind) (kview_findings{@, severity=~"risk|warn"})', "{{kind}}"),
            text="What kview's headline says, by kind.",
        ),
        _plot(
            "Partitions in trouble",
            ("kview_offline_partitions{@}", "offline"),
            ("kview_under_min_isr_partitions{@}", "under min ISR"),
            ("kview_at_min_isr_partitions{@}", "at min ISR"),
            ("kview_under_replicated_partitions{@}", "under-replicated"),
            ('sum(kview_partitions{@, status="silent_leader"})', "leader is silent"),
            ('sum(kview_partitions{@, status="frozen"})', "watermark is frozen"),
        ),
    ),
    "Brokers": (
        _states(
            "States",
            "sum by (broker, state) (kview_broker_state{@}) == 1",
        ),
        _plot("Latency", ("kview_broker_latency_seconds{@}", "{{broker}}"), unit="s"),
        _plot("Partitions led", ("kview_broker_leader_partitions{@}", "{{broker}}")),
        _plot("In", ("kview_broker_in_records_per_second{@}", "{{broker}}"), unit="cps"),
        _plot("Bytes on disk", ("kview_broker_disk_bytes{@}", "{{broker}}"), unit="bytes"),
        _plot(
            "Log directories: free",
            ("kview_log_dir_usable_bytes{@} / kview_log_dir_total_bytes{@}", "{{broker}} {{path}}"),
            unit="percentunit",
            text="The share of the volume; Kafka tells it from 3.3 on.",
        ),
    ),
    "Topics": (
        _plot(
            "In by topic",
            (f"topk({_MOST}, kview_topic_in_records_per_second{{@}})", "{{topic}}"),
            unit="cps",
        ),
        _plot("Bytes by topic", (f"topk({_MOST}, kview_topic_size_bytes{{@}})", "{{topic}}"), unit="bytes"),
        Panel(
            "Topics in trouble",
            (
                Query(
                    "sort_desc(kview_topic_offline_partitions{@} + kview_topic_silent_leader_partitions{@}"
                    " + kview_topic_frozen_partitions{@} + kview_topic_under_replicated_partitions{@} > 0)",
                ),
            ),
            kind="table",
            text="The number of their partitions without a leader, with a silent one, with a frozen"
            " high watermark, or under-replicated. One can be several of these.",
        ),
        _stat("Topics without series", "kview_rest_topics{@}"),
    ),
    "Partitions": (
        _states(
            "Partitions in trouble",
            'kview_partition_status{@, status!~"ok|not_preferred|reassigning|unknown"}',
        ),
        _plot("By status", ("sum by (status) (kview_partitions{@})", "{{status}}")),
        _plot(
            "Uncommitted",
            (f"topk({_MOST}, kview_partition_uncommitted_records{{@}} > 0)", "{{topic}}-{{partition}}"),
            text="Records beyond the high watermark.",
        ),
        _plot(
            "Held by a transaction",
            (f"topk({_MOST}, kview_partition_last_stable_held_seconds{{@}})", "{{topic}}-{{partition}}"),
            unit="s",
        ),
        _plot(
            "Reassignments: records left",
            (f"topk({_MOST}, kview_partition_reassigning_records_left{{@}})", "{{topic}}-{{partition}}"),
        ),
        _stat("Partitions without series", "sum(kview_rest_partitions{@})"),
    ),
    "Groups": (
        _states(
            "Verdicts",
            'sum by (group, verdict) (kview_group_verdict{@, verdict!~"ok|none|abandoned|undecided"}) == 1',
            text="Groups that are not well, and those of which too little is known.",
        ),
        _plot("Time behind", (f"topk({_MOST}, kview_group_lag_min_seconds{{@}})", "{{group}}"), unit="s"),
        _plot("Records behind", (f"topk({_MOST}, kview_group_lag_min_records{{@}})", "{{group}}")),
        _plot(
            "Lag as a share of retention: time",
            (f"topk({_MOST}, kview_group_lag_min_retention_ratio{{@}})", "{{group}}"),
            unit="percentunit",
            text="Time behind / retention.ms of the worst partition, at least."
            f" At {NEAR_RETENTION:.0%}, kview's rules alert.",
        ),
        _plot(
            "Lag as a share of retention: log",
            (f"topk({_MOST}, kview_group_lag_log_ratio{{@}})", "{{group}}"),
            unit="percentunit",
            text="Lag / length of the log of the worst partition whose log retention.bytes limits."
            " Above 100%, records were removed unread.",
        ),
        _plot("Read", (f"topk({_MOST}, kview_group_read_records_per_second{{@}})", "{{group}}"), unit="cps"),
        _stat("Groups", "kview_groups{@}"),
        _stat("Groups without series", "sum(kview_rest_groups{@})"),
        _stat("Their largest lag", "kview_rest_groups_max_lag_min_seconds{@}", "s"),
        _stat(
            "Lost records",
            "sum(kview_group_lost_records{@}) + (sum(kview_rest_groups_lost_records{@}) or vector(0))",
            red=1,
        ),
    ),
    "Throughput": (
        _plot("In", ("sum(kview_broker_in_records_per_second{@})", "all topics"), unit="cps"),
        _plot(
            "Read",
            (
                "sum(kview_group_read_records_per_second{@})"
                " + (sum(kview_rest_groups_read_records_per_second{@}) or vector(0))",
                "all groups",
            ),
            unit="cps",
        ),
    ),
    "Kafka Connect": (
        _states("Tasks that do not run", 'kview_connector_task_state{@, state!="RUNNING"}'),
        _states("Connectors that do not run", 'kview_connector_state{@, state!="RUNNING"}'),
    ),
    "Controllers": (
        _states("States", "sum by (controller, state) (kview_controller_state{@}) == 1"),
        _plot("Behind", ("kview_quorum_lag_records{@}", "{{node}} ({{role}})"), text="Of the metadata log."),
        _plot("Last fetch", ("kview_quorum_last_fetch_age_seconds{@}", "{{node}} ({{role}})"), unit="s"),
        _plot("Epoch", ("kview_controller_epoch{@}", "epoch")),
    ),
    "kview": (
        _stat("Age of the observation", "time() - kview_observation_timestamp_seconds{@}", "s", yellow=30),
        Panel("Version", (Query("kview_build_info{@}", "{{version}}"),), kind="stat"),
        _plot("An observation takes", ("kview_observation_duration_seconds{@}", "duration"), unit="s"),
        _plot("Requests", ("rate(kview_requests_total{@}[$__rate_interval])", "requests"), unit="reqps"),
        _plot(
            "Bytes",
            ("rate(kview_sent_bytes_total{@}[$__rate_interval])", "sent"),
            ("rate(kview_received_bytes_total{@}[$__rate_interval])", "received"),
            unit="Bps",
        ),
        _plot("Parts that failed", ("kview_failed_parts{@} > 0", "{{part}}")),
        _plot(
            "Rows without series of their own",
            ("sum by (of) (kview_omitted_rows{@}) > 0", "{{of}}"),
            ('sum by (of) (kview_omitted_rows{@, in_trouble="true"}) > 0', "{{of}} in trouble"),
        ),
    ),
}


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it, from version 10 on."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": _at(0, y, _WIDTH, 1)})
        y = _place(row, y + 1, panels)
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    return {
        "uid": "kview",
        "title": "Kafka (kview)",
        "tags": ["kafka", "kview"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": panels,
    }


def _variables() -> list[dict[str, Any]]:
    """Return the variables: where the series are, which cluster, and which kview watches it."""
    queries = {
        "cluster": ("cluster", "label_values(kview_cluster_info, id)"),
        "instance": ("kview", 'label_values(kview_cluster_info{id="$cluster"}, instance)'),
        "name": (
            "its name there",
            'label_values(kview_cluster_info{id="$cluster", instance="$instance"}, cluster)',
        ),
    }
    return [
        {"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus"},
        *(
            {
                "name": name,
                "label": shown,
                "type": "query",
                "datasource": _SOURCE,
                "definition": query,
                "query": {"query": query, "refId": name},
                "refresh": 2,
                "sort": 1,
            }
            for name, (shown, query) in queries.items()
        ),
    ]


def _place(row: Sequence[Panel], y: int, panels: list[dict[str, Any]]) -> int:
    """Add the panels of a row from the height `y` on, left to right, and return the height below them."""
    x = height = 0
    for panel in row:
        width, high = _STAT if panel.kind == "stat" else _PLOT
        if x + width > _WIDTH or (height and high != height):
            x, y, height = 0, y + height, 0
        panels.append(_panel(panel, _at(x, y, width, high)))
        x, height = x + width, high
    return y + height


def _at(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    is_table = panel.kind == "table"
    drawn: dict[str, Any] = {
        "type": panel.kind,
        "title": panel.title,
        "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "thresholds": _thresholds(panel)},
            "overrides": [],
        },
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": query.expr.replace("@", _OWN),
                "legendFormat": query.legend or "__auto",
                "instant": is_table,
                "range": not is_table,
                **({"format": "table"} if is_table else {}),
            }
            for number, query in enumerate(panel.queries)
        ],
    }
    if panel.text:
        drawn["description"] = panel.text
    if panel.kind == "timeseries":
        drawn["options"] = {"tooltip": {"mode": "multi", "sort": "desc"}, "legend": {"displayMode": "list"}}
    if panel.kind == "stat" and panel.queries[0].legend:
        drawn["options"] = {"textMode": "name"}
    if is_table:
        columns = ("Time", "__name__", "instance", "job", *(() if panel.says_value else ("Value",)))
        hidden = dict.fromkeys(columns, True)
        drawn["transformations"] = [{"id": "organize", "options": {"excludeByName": hidden}}]
    return drawn


def _thresholds(panel: Panel) -> dict[str, Any]:
    """Return the colours of a number. Below a limit, `low_is_bad`."""
    alarms = [(limit, c) for limit, c in ((panel.yellow, "yellow"), (panel.red, "red")) if limit is not None]
    base = alarms[0][1] if panel.low_is_bad else "green"
    steps: list[dict[str, Any]] = [{"color": base, "value": None}]
    steps += [{"color": "green" if panel.low_is_bad else c, "value": limit} for limit, c in alarms]
    return {"mode": "absolute", "steps": steps}
