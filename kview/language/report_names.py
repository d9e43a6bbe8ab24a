"""Names in reports: titles of tables and plots, heads of columns, and values that are words."""

from collections.abc import Mapping

from kview.language import glyphs
from kview.model.events import Severity
from kview.model.findings import FindingKind
from kview.model.report_tables import TableName

TITLES: Mapping[str, str] = {
    TableName.PERIODS: "Recordings",
    TableName.CLUSTERS: "Clusters",
    TableName.TOPICS: "Topics",
    TableName.PARTITIONS: "Partitions",
    TableName.BROKERS: "Brokers",
    TableName.RACKS: "Racks",
    TableName.GROUPS: "Consumer groups",
    TableName.INCIDENTS: "Incidents",
    TableName.ELECTIONS: "Elections",
    TableName.FINDINGS: "What was wrong, and for how long",
    TableName.TRAFFIC: "Traffic between racks",
    TableName.GROWTH: "Growth",
    TableName.THROUGHPUT: "Throughput",
    "availability": "Availability",
    "comparison": "Comparison",
}
"""Titles by the names of tables."""


CARDS: Mapping[str, str] = {
    "availability": "lowest availability",
    "lag": "worst lag",
    "records": "records in",
    "incidents": "incidents",
}
"""Names of the figures at the top of a page."""

HEADS: Mapping[str, str] = {
    "recording": "recording",
    "since_ms": "from",
    "until_ms": "until",
    "known_s": "known",
    "gaps": "gaps",
    "gap_ms": "unknown",
    "cluster": "cluster",
    "topic": "topic",
    "partition": "partition",
    "broker": "broker",
    "rack": "rack",
    "group": "group",
    "records_in": "records in",
    "bytes_in": "bytes in",
    "records_out": "records out",
    "replicated": "copied",
    "cross_rack": "records between racks",
    "in_rate": "in/s",
    "in_p50": "p50",
    "in_p95": "p95",
    "in_p99": "p99",
    "in_most": "most in 1 s",
    "in_most_ms": "at",
    "out_rate": "out/s",
    "skew": "× mean",
    "truncated": "truncated",
    "rewound": "rewound",
    "offline_ms": "no leader",
    "silent_ms": "leader silent",
    "under_min_isr_ms": "under min ISR",
    "under_replicated_ms": "under-replicated",
    "offline_s": "no leader",
    "silent_s": "leader silent",
    "under_min_isr_s": "under min ISR",
    "under_replicated_s": "under-replicated",
    "partitions": "partitions",
    "available": "available",
    "answering": "answering",
    "times_mean": "× mean",
    "peak": "most/s",
    "peak_ms": "at",
    "lag_most": "worst lag",
    "lag_most_ms": "at",
    "behind_most": "worst behind",
    "behind_most_ms": "at",
    "lost": "lost unread",
    "began_ms": "began",
    "fenced_ms": "fenced",
    "elected_all_ms": "led again",
    "moves_all_ms": "moves again",
    "isr_full_ms": "all in sync",
    "moved": "moved",
    "leaderless": "leaderless at end",
    "gone": "records gone",
    "waited_ms": "acks=all waited",
    "elections": "elections",
    "lost_leader": "lost leader",
    "unclean": "unclean",
    "first_ms": "first",
    "last_ms": "last",
    "held_ms": "in all",
    "share": "of the time",
    "partitions_most": "partitions",
    "groups_most": "groups",
    "severity": "severity",
    "replicated_bytes": "copied to followers",
    "cross_rack_bytes": "between racks",
    "cross_rack_share": "share",
    "cost": "cost",
    "bytes_first": "size at start",
    "bytes_last": "size at end",
    "growth": "grows a day",
    "written": "written a day",
    "retention_ms": "keeps for",
    "retention_bytes": "keeps per partition",
    "cleanup_policy": "cleanup",
    "forecast_bytes": "will reach",
    "figure": "figure",
    "before": "before",
    "now": "now",
    "change": "change",
}
"""Heads by the names of columns."""

FIGURES: Mapping[str, str] = {
    **HEADS,
    "in_p50": "p50 in/s",
    "in_p95": "p95 in/s",
    "in_p99": "p99 in/s",
    "in_most": "most in 1 s",
}
"""Names of figures by the names of columns, where no other column stands next to them."""

LINES: Mapping[str, str] = {"records_in": "in", "records_out": "out"}
"""Names of a plot's lines."""

PLOTS: Mapping[str, str] = {
    "throughput": "Records per second",
    "clusters": "Records in per second, the busiest clusters",
    "topics": "Records in per second, the busiest topics",
}
"""Titles of plots."""

_KINDS: Mapping[str, str] = {
    Severity.RISK: f"{glyphs.SIGNS[Severity.RISK]} risk",
    Severity.WARN: f"{glyphs.SIGNS[Severity.WARN]} warning",
    FindingKind.NOT_AUTHORIZED: "not all visible to kview",
    FindingKind.METADATA_FAILED: "metadata not read",
    FindingKind.WATERMARK_FROZEN: "watermarks frozen",
    FindingKind.QUORUM_HEARS_BROKERS: "brokers that only kview cannot reach",
    FindingKind.BROKERS_LATE: "brokers late to answer",
    FindingKind.FENCING_DUE: "brokers about to be fenced",
    FindingKind.BROKERS_GONE: "brokers no longer listed",
    FindingKind.SILENT_LEADER: "leader silent",
    FindingKind.UNDER_REPLICATED: "under-replicated",
    FindingKind.LEADER_RECORDS_LOST: "records of old leaders gone",
    FindingKind.PARTITIONS_UNREAD: "partitions not read",
    FindingKind.RECORDS_LOST: "records deleted unread",
    FindingKind.NO_CONTROLLER: "no active controller",
    FindingKind.GROUPS_TROUBLED: "groups in trouble",
    FindingKind.GROUPS_UNREAD: "groups not read",
    FindingKind.LOG_DIR_OFFLINE: "log directories failed",
    FindingKind.CONNECT_TASK_FAILED: "connectors or tasks failed",
    FindingKind.CONNECTORS_UNREAD: "connectors not read",
    FindingKind.LEADS_NOTHING: "brokers that lead nothing",
    FindingKind.NOT_PREFERRED: "not led by the preferred leader",
}
"""Words for values that would not be read as they are."""


def kind_words(kind: str) -> str:
    """Return the value of an enum as words: `under min ISR`."""
    return _KINDS.get(kind) or kind.replace("_", " ").replace(" isr", " ISR")
