"""The outcome of a check as a JSON document."""

import math
from collections.abc import Sequence
from itertools import starmap

from msgspec import UNSET

from kview.derive.checks.outcome import Outcome
from kview.derive.view import Reason, Verdict
from kview.language import checks, failures
from kview.model.checks import CheckFinding, Key, NotJudged
from kview.plain import schema_check
from kview.plain.columns import cause, known
from kview.plain.documents import json_line
from kview.plain.schema import FORMAT
from kview.plain.schema_fields import PartitionName


def check_document(outcome: Outcome, cluster: str | None = None) -> str:
    """Return the outcome as one line of JSON, which names the `cluster` if it is one of several. It escapes
    whatever a terminal would obey or not show."""
    return json_line(check_document_of(outcome, cluster))


def check_document_of(outcome: Outcome, cluster: str | None = None) -> schema_check.CheckDocument:
    """Return the outcome as a struct, which names the `cluster` if it is one of several."""
    return schema_check.CheckDocument(
        format=FORMAT,
        at_ms=outcome.at_ms,
        cluster=UNSET if cluster is None else cluster,
        cluster_id=outcome.cluster_id or None,
        watched_ms=outcome.watched_ms,
        healthy=outcome.healthy,
        fail_on=outcome.rules.fail_on,
        allow_not_judged=outcome.rules.allow_not_judged,
        broker_count=outcome.brokers,
        topic_count=outcome.topics,
        partition_count=outcome.partitions,
        group_count=outcome.groups,
        findings=[_finding(outcome, finding) for finding in outcome.judgement.findings],
        not_judged=[_not_judged(outcome, item) for item in outcome.judgement.not_judged],
        ignored_findings=outcome.judgement.ignored,
    )


def _finding(outcome: Outcome, finding: CheckFinding) -> schema_check.CheckFinding:
    return schema_check.CheckFinding(
        kind=finding.kind,
        name=finding.name or None,
        level=finding.level,
        fails=outcome.rules.fails(finding),
        text=checks.sentence(finding, outcome.at_ms),
        brokers=list(finding.brokers),
        paths=list(finding.paths),
        partitions=list(starmap(PartitionName, finding.partitions)),
        partition_count=finding.partition_count,
        leaderless_partitions=finding.leaderless,
        under_min_isr_partitions=finding.under_min_isr,
        amount=known(finding.amount),
        mean=None if math.isnan(finding.mean) else finding.mean,
        group_type=finding.group_type or None,
        verdict=Verdict(finding.verdict) if finding.verdict else None,
        reason=Reason(finding.reason) if finding.reason else None,
        headline_kind=finding.headline,
        lag_records=known(finding.lag),
        lag_is_bound=finding.lag_is_bound,
        behind_ms=known(finding.behind_ms),
        is_bound=finding.is_bound,
        is_estimate=finding.is_estimate,
        since_ms=known(finding.since_ms),
        since_is_bound=finding.since_is_bound,
        explained_by=_keys(finding.explained_by),
    )


def _keys(causes: Sequence[Key]) -> list[schema_check.CheckKey]:
    return list(starmap(schema_check.CheckKey, causes))


def _not_judged(outcome: Outcome, item: NotJudged) -> schema_check.CheckNotJudged:
    return schema_check.CheckNotJudged(
        kinds=list(item.kinds),
        names=list(item.names),
        why=item.why,
        fails=outcome.rules.fails_unjudged(item),
        brokers=list(item.brokers),
        cause=cause(item.cause.kind, item.cause.code, failures.of(item.cause.kind, item.cause.code)),
        text=checks.not_judged(item),
        explained_by=_keys(item.explained_by),
    )
