"""The controller's side of access control lists. Source: org.apache.kafka.controller.AclControlManager."""

from collections.abc import Generator, Iterable, Sequence

from kview.simulate.acls import (
    ANY,
    CLUSTER_NAME,
    Acl,
    AclFilter,
    AclOperation,
    Acls,
    PatternType,
    Permission,
    ResourceType,
)
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.results import AdminResult

OK = AdminResult(ErrorCode.NONE, "")
RULES_MAX = 10_000
TEXT_MAX = 1_000
"""Limits of the rules, and of the characters in each text of one. Kafka has none."""

SELECTED_MAX = 2 * RULES_MAX
"""Limit of the rules that the filters of one request select. One filter can select all there are."""
RULES_PER_STEP = 256


class AclRules:
    """Changes the rules, which are part of the metadata. Operations after `last_operation` are not known."""

    def __init__(self, metadata: MetadataLog, last_operation: AclOperation) -> None:
        self._metadata = metadata
        self._last_operation = last_operation

    def create(self, rules: Sequence[Acl]) -> list[AdminResult]:
        """Add rules in one step, but for wrong ones. A rule that exists already stays as it is."""
        known = self._metadata.image.acls
        added: dict[Acl, None] = {}
        results = []
        for rule in rules:
            wrong = wrong_rule(rule, self._last_operation)
            if wrong is None and len(known) + len(added) >= RULES_MAX:
                wrong = "There are too many ACLs."
            if wrong is None and rule not in known:
                added[rule] = None
            results.append(OK if wrong is None else AdminResult(ErrorCode.INVALID_REQUEST, wrong))
        if added:
            self._metadata.commit({}, acls=Acls((*known, *added)))
        return results

    def select(
        self, filters: Iterable[AclFilter]
    ) -> Generator[None, None, list[list[Acl] | AdminResult] | None]:
        """Return which rules each filter selects, or what is wrong with it, in small steps.

        Return None if the filters select more than SELECTED_MAX rules together.
        """
        known, number = list(self._metadata.image.acls), 0
        selected: list[list[Acl] | AdminResult] = []
        for each in filters:
            wrong = wrong_filter(each, self._last_operation)
            rules: list[Acl] = []
            for begin in range(0, 0 if wrong else len(known), RULES_PER_STEP):
                rules += filter(each.matches, known[begin : begin + RULES_PER_STEP])
                yield
            number += len(rules)
            if number > SELECTED_MAX:
                return None
            selected.append(wrong or rules)
        return selected

    def delete(self, rules: Iterable[Acl]) -> None:
        """Remove rules in one step."""
        known, gone = self._metadata.image.acls, set(rules)
        if any(rule in known for rule in gone):
            self._metadata.commit({}, acls=Acls(rule for rule in known if rule not in gone))


def wrong_rule(rule: Acl, last_operation: AclOperation) -> str | None:
    """Return what is wrong with a new rule, or None."""
    if rule.resource == ResourceType.CLUSTER and rule.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not rule.name:
        return "Invalid empty resource name"
    for number, known, what in (
        (rule.resource, ResourceType, "resourceType"),
        (rule.pattern, PatternType, "patternType"),
        (rule.operation, AclOperation, "operation"),
        (rule.permission, Permission, "permissionType"),
    ):
        if number not in known.__members__.values() or (known is AclOperation and number > last_operation):
            return f"Invalid {what} UNKNOWN"
    if ":" not in rule.principal:
        why = "no colon is present separating the principal type from the principal name"
        return f"Could not parse principal from `{rule.principal}` ({why})"
    if max(map(len, (rule.name, rule.principal, rule.host))) > TEXT_MAX:
        return f"A text in an ACL may have at most {TEXT_MAX} characters."
    return None


def wrong_filter(wanted: AclFilter, last_operation: AclOperation) -> AdminResult | None:
    """Return the error for a filter with a number that has no meaning, or None."""
    of_pattern = wanted.resource in (ANY, *ResourceType) and wanted.pattern in (ANY, *PatternType)
    of_entry = wanted.operation in (ANY, *AclOperation) and wanted.permission in (ANY, *Permission)
    if of_pattern and of_entry and wanted.operation <= last_operation:
        return None
    what = "entryFilter" if of_pattern else "patternFilter"
    return AdminResult(ErrorCode.INVALID_REQUEST, f"Unknown {what}.")


def only_for_filters(rule: Acl) -> bool:
    """Return whether a number in a new rule is meant for filters."""
    return ANY in (rule.resource, rule.pattern, rule.operation, rule.permission) or (
        rule.pattern == PatternType.MATCH
    )
