"""The findings of a headline that are about the cluster alone."""

from kview.derive.view import View
from kview.model.findings import Finding, FindingKind

_OF_CLIENTS = frozenset(
    {FindingKind.GROUPS_TROUBLED, FindingKind.GROUPS_UNREAD, FindingKind.GROUPS_UNJUDGED}
    | {FindingKind.LEADS_NOTHING, FindingKind.NOT_PREFERRED, FindingKind.LEADER_RECORDS_LOST}
)


def of_cluster(view: View) -> tuple[Finding, ...]:
    """What is wrong with the cluster, or that it is well, without clients and the past."""
    return tuple(finding for finding in view.headline.findings if finding.kind not in _OF_CLIENTS)
