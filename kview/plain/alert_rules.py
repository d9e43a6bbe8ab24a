"""Alert rules for Prometheus over kview's metrics, as the YAML of a rule file."""

import json
from typing import NamedTuple

from kview.derive.groups.retained import NEAR_RETENTION

CRITICAL, WARNING, INFO = "critical", "warning", "info"


class Alert(NamedTuple):
    """A rule: `expr` holds for `lasts` before it fires."""

    name: str
    expr: str
    lasts: str
    severity: str
    summary: str
    description: str


_ABANDONED = 'kview_group_verdict{verdict="abandoned"} == 1'
_INTERNAL = 'sum without (status) (kview_partitions{{internal="true", status=~"{}"}}) > 0'
"""Partitions of internal topics, such as those that hold committed offsets, by their worst status."""

ALERTS: dict[str, tuple[Alert, ...]] = {
    "kview": (
        Alert(
            "KviewGone",
            "group by (job, instance) (last_over_time(kview_build_info[1h]))"
            " unless on (job, instance) kview_build_info or absent(kview_build_info)",
            "2m",
            CRITICAL,
            "{{ if $labels.instance }}kview at {{ $labels.instance }} is no longer scraped"
            "{{ else }}No kview is scraped{{ end }}",
            "Nobody watches its Kafka cluster. Start kview connect … --metrics, or look at the scrape's error"
            " under Status > Targets. If that kview was removed on purpose, this ends after an hour.",
        ),
        Alert(
            "KviewNotObserving",
            "kview_build_info unless on (job, instance, cluster) kview_brokers",
            "1m",
            CRITICAL,
            "kview at {{ $labels.instance }} does not observe"
            " {{ if $labels.cluster }}{{ $labels.cluster }}{{ else }}its cluster{{ end }}",
            "It answers scrapes, but has no observation, or none that is young enough. Its messages on"
            " standard error and kview.log say why.",
        ),
        Alert(
            "KviewReadsFail",
            "kview_failed_parts > 0 and on (job, instance, cluster) kview_answering_brokers == kview_brokers",
            "10m",
            INFO,
            "kview cannot read {{ $labels.part }}",
            "What depends on it is old or has no series. kview connect and kview.log say what is known of the"
            " cause, such as a missing ACL (kview's README lists those that it wants), or Kafka Connect that"
            " does not answer.",
        ),
        Alert(
            "KviewOmitsTrouble",
            'kview_omitted_rows{in_trouble="true"} > 0',
            "5m",
            INFO,
            "{{ $value }} {{ $labels.of }} in trouble have no series of their own",
            "More are in trouble than kview has series for. No alert names them. Those of"
            " topics, partitions and groups count in kview_rest metrics, and kview connect shows all.",
        ),
    ),
    "kafka-brokers": (
        Alert(
            "KafkaNoBrokerAnswers",
            "kview_answering_brokers == 0",
            "30s",
            CRITICAL,
            "No broker answers kview",
            "Nothing else is known of the cluster. Either it is down, or kview cannot reach it.",
        ),
        Alert(
            "KafkaBrokerSilent",
            'kview_broker_state{state="silent"} == 1',
            "30s",
            CRITICAL,
            "Broker {{ $labels.broker }} is silent and has not been fenced",
            "A broker that has died is fenced after broker.session.timeout.ms (9 s). This one has been silent"
            " for longer and is still listed: no controller can fence it, or only kview cannot reach it.",
        ),
        Alert(
            "KafkaBrokerDown",
            'sum without (state) (kview_broker_state{state=~"fenced|gone"}) == 1',
            "2m",
            CRITICAL,
            "Broker {{ $labels.broker }} is down",
            "The controller has fenced it, or no longer lists it. A restart takes less than this alert waits."
            " If it was removed on purpose, restart kview.",
        ),
        Alert(
            "KafkaBrokerSlow",
            "kview_broker_slow == 1",
            "5m",
            WARNING,
            "Broker {{ $labels.broker }} takes much longer than usual to answer",
            "kview_broker_latency_seconds says how long.",
        ),
        Alert(
            "KafkaLogDirFailed",
            "kview_log_dir_offline == 1",
            "30s",
            CRITICAL,
            "{{ $labels.path }} of broker {{ $labels.broker }} has failed",
            "Kafka does not use a log directory again after an I/O error until the broker restarts. Repair"
            " the disk, then restart the broker.",
        ),
        Alert(
            "KafkaLogDirFills",
            "kview_log_dir_full_timestamp_seconds - time() < 4 * 3600",
            "10m",
            WARNING,
            "{{ $labels.path }} of broker {{ $labels.broker }} is full in {{ $value | humanizeDuration }}",
            "That is an estimate, at the rate of the last 10 minutes. kview_topic_size_bytes says which"
            " topics are large.",
        ),
        Alert(
            "KafkaLogDirNearlyFull",
            "kview_log_dir_usable_bytes / kview_log_dir_total_bytes < 0.1",
            "10m",
            WARNING,
            "{{ $labels.path }} of broker {{ $labels.broker }} has {{ $value | humanizePercentage }} free",
            "A log directory that is full fails, and a broker without another one stops."
            " kview_topic_size_bytes says which topics are large.",
        ),
    ),
    "kafka-controllers": (
        Alert(
            "KafkaNoController",
            "kview_active_controllers == 0 or on (job, instance, cluster) sum by (job, instance, cluster)"
            ' (kview_findings{kind=~"no_controller|quorum_lost|quorum_silent"}) > 0',
            "30s",
            CRITICAL,
            "The cluster has no active controller, or none that can act",
            "No leader can be elected and no topic be changed. An election takes a few seconds"
            " (controller.quorum.election.timeout.ms is 1 s), so a majority of the voters is missing, or no"
            " broker reaches them.",
        ),
        Alert(
            "KafkaControllerLost",
            'kview_controller_state{state="lost"} == 1',
            "2m",
            WARNING,
            "Controller {{ $labels.controller }} is lost",
            "It no longer fetches the metadata log. While a majority of the voters is left, the cluster"
            " works.",
        ),
    ),
    "kafka-partitions": (
        Alert(
            "KafkaPartitionsOffline",
            'sum without (internal) (kview_partitions{status="no_leader"}) > 0',
            "30s",
            CRITICAL,
            "{{ $value }} partitions have no leader",
            "They can be neither read nor written: no replica that is eligible as leader is up. Bring those"
            " brokers back; kview_partition_status names the partitions.",
        ),
        Alert(
            "KafkaPartitionsFrozen",
            'sum without (internal, status) (kview_partitions{status=~"silent_leader|frozen"}) > 0',
            "1m",
            CRITICAL,
            "The high watermark of {{ $value }} partitions stands still",
            "Producers with acks=all wait, and consumers get nothing new. This ends when the silent broker is"
            " fenced (broker.session.timeout.ms, 9 s) or has left the ISR (replica.lag.time.max.ms, 30 s),"
            " and it has not.",
        ),
        Alert(
            "KafkaPartitionsUnderMinIsr",
            f"kview_under_min_isr_partitions > 0 or {_INTERNAL.format('under_min_isr')}",
            "1m",
            CRITICAL,
            "{{ $value }} {{ if $labels.internal }}internal {{ end }}partitions have fewer"
            " replicas in sync than min.insync.replicas",
            "Producers with acks=all are refused there. In internal topics, groups cannot commit offsets, or"
            " transactions cannot end.",
        ),
        Alert(
            "KafkaPartitionsUnderReplicated",
            "kview_under_replicated_partitions > 0"
            f" or {_INTERNAL.format('under_min_isr|at_min_isr|under_replicated')}",
            "10m",
            WARNING,
            "{{ $value }} {{ if $labels.internal }}internal {{ end }}partitions have had"
            " replicas out of sync for 10 minutes",
            "That is longer than a broker's restart. kview_partition_status names the partitions.",
        ),
        Alert(
            "KafkaUncleanElection",
            'sum without (kind, severity) (kview_findings{kind="unclean_election"}) > 0',
            "0s",
            CRITICAL,
            "A replica that was not in sync has become leader",
            "Records that were acknowledged may be lost. kview connect shows which partitions, and how many"
            " records at least.",
        ),
        Alert(
            "KafkaTransactionHolds",
            "kview_partition_last_stable_held_seconds > 900",
            "1m",
            WARNING,
            "A transaction has held back {{ $labels.topic }}-{{ $labels.partition }} for"
            " {{ $value | humanizeDuration }}",
            "That is longer than transaction.max.timeout.ms (15 minutes) allows by default. Consumers with"
            " read_committed get nothing new. kview connect shows whose it is, and whether it hangs:"
            " kafka-transactions.sh can abort one that hangs.",
        ),
    ),
    "kafka-groups": (
        Alert(
            "KafkaGroupStuck",
            'kview_group_verdict{verdict="stuck"} == 1',
            "2m",
            WARNING,
            "Group {{ $labels.group }} is stuck",
            "It has members and records to read, and its offsets stand still. kview connect shows at which"
            " partition, and reads the record there.",
        ),
        Alert(
            "KafkaGroupStopped",
            'kview_group_verdict{verdict="stopped"} == 1',
            "5m",
            WARNING,
            "Group {{ $labels.group }} has stopped",
            "There are records to read, and nobody reads them. If that is meant, --ignore-group or"
            " --metrics-exclude leaves the group out.",
        ),
        Alert(
            "KafkaGroupFallsBehind",
            'kview_group_verdict{verdict="falling_behind"} == 1',
            "10m",
            WARNING,
            "Group {{ $labels.group }} falls further behind",
            "It reads, but less than is written.",
        ),
        Alert(
            "KafkaGroupBlocked",
            'sum without (verdict) (kview_group_verdict{verdict=~"blocked|blocked_by_transaction"}) == 1',
            "5m",
            WARNING,
            "Group {{ $labels.group }} is blocked by the cluster",
            "The group is not the cause: a partition has no leader that answers, its high watermark stands"
            " still, or a transaction holds it back.",
        ),
        Alert(
            "KafkaGroupAheadOfLog",
            'kview_group_verdict{verdict="ahead_of_log"} == 1',
            "5m",
            WARNING,
            "Group {{ $labels.group }} has committed offsets beyond the end of a log",
            "The topic was created again or truncated, or old offsets were restored. Records below the commit"
            " are not read.",
        ),
        Alert(
            "KafkaGroupNearRetention",
            f"(kview_group_lag_min_retention_ratio > {NEAR_RETENTION} or kview_group_lag_log_ratio"
            f" > {NEAR_RETENTION}) unless on (job, instance, group) {_ABANDONED}",
            "5m",
            CRITICAL,
            "Group {{ $labels.group }} is about to lose records",
            "Its lag is {{ $value | humanizePercentage }} at least of what a topic keeps. A longer"
            " retention.ms of the topic (or larger retention.bytes) gives it more time.",
        ),
        Alert(
            "KafkaGroupLostRecords",
            f"kview_group_lost_records > 0 unless on (job, instance, group) {_ABANDONED}",
            "0s",
            CRITICAL,
            "Group {{ $labels.group }} has lost {{ $value }} records at least",
            "They were removed before the group read them.",
        ),
    ),
    "kafka-connect": (
        Alert(
            "KafkaConnectTaskFailed",
            'kview_connector_task_state{state="FAILED"} == 1',
            "1m",
            WARNING,
            "Task {{ $labels.task }} of connector {{ $labels.connector }} has failed",
            "Kafka Connect does not restart it by itself. Its trace says why; then restart the task.",
        ),
        Alert(
            "KafkaConnectorFailed",
            'kview_connector_state{state="FAILED"} == 1',
            "1m",
            WARNING,
            "Connector {{ $labels.connector }} has failed",
            "Kafka Connect does not restart it by itself. Its trace says why; then restart the connector.",
        ),
    ),
}
"""The rules by the name of their group. They wait longer than Kafka takes by default to help itself."""

_HEAD = """\
# Alert rules for Prometheus over kview's metrics: kview connect … --metrics [HOST:]PORT.
# They want a scrape every 30 s at least, and Kafka's default times: make for: longer if yours are longer.
# A row in trouble has series (of topics, partitions and groups 2,000 at most, of groups' partitions 5,000),
# until 10 minutes after its trouble, so that a rule sees the end of it.
groups:
"""


def rules() -> str:
    """Return the rule file."""
    return _HEAD + "".join(_group(name, alerts) for name, alerts in ALERTS.items())


def _group(name: str, alerts: tuple[Alert, ...]) -> str:
    return f"- name: {name}\n  rules:\n" + "".join(map(_rule, alerts))


def _rule(alert: Alert) -> str:
    """Return a rule. JSON's strings are strings of YAML, whatever they contain."""
    return (
        f"  - alert: {alert.name}\n"
        f"    expr: {json.dumps(alert.expr)}\n"
        f"    for: {alert.lasts}\n"
        f"    labels: {{severity: {alert.severity}}}\n"
        "    annotations:\n"
        f"      summary: {json.dumps(alert.summary, ensure_ascii=False)}\n"
        f"      description: {json.dumps(alert.description, ensure_ascii=False)}\n"
    )
