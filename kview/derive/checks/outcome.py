"""The outcome of a check: what it found and when, and whether it passes by the user's rules."""

from collections.abc import Mapping
from dataclasses import dataclass

from kview.derive.brokers import answering
from kview.derive.view import View
from kview.model.checks import CheckFinding, Judgement
from kview.model.events import SEVERITY_ORDER, Severity

FAIL_ON = (Severity.RISK, Severity.WARN, Severity.CALM)
"""The severities that findings of a check have, the worst first."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a check fail."""

    fail_on: Severity = Severity.WARN
    """The lowest severity that makes it fail."""
    allow_not_judged: bool = False
    """Whether it passes if something could not be judged."""

    def fails(self, finding: CheckFinding) -> bool:
        """Return whether the finding makes the check fail."""
        return SEVERITY_ORDER.index(finding.severity) <= SEVERITY_ORDER.index(self.fail_on)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found in a cluster. The counts include internal topics."""

    at_ms: int
    watched_ms: int
    """The time from the beginning of the first observation to the end of the last one."""
    cluster_id: str
    brokers: int
    answering: int
    topics: int
    partitions: int
    groups: int
    judgement: Judgement
    rules: Rules

    @property
    def healthy(self) -> bool:
        """Whether the check passes."""
        if self.judgement.not_judged and not self.rules.allow_not_judged:
            return False
        return not any(self.rules.fails(finding) for finding in self.judgement.findings)

    @property
    def counts(self) -> Mapping[Severity, int]:
        """The number of findings by severity, the worst first."""
        found = [finding.severity for finding in self.judgement.findings]
        return {severity: found.count(severity) for severity in FAIL_ON}


def outcome_of(view: View, judgement: Judgement, watched_ms: int, rules: Rules) -> Outcome:
    """Return the outcome of a check that ends with `view`."""
    snapshot, brokers = view.snapshot, answering(view)
    return Outcome(
        at_ms=snapshot.observation.ended_ms,
        watched_ms=watched_ms,
        cluster_id=snapshot.observation.cluster_id,
        brokers=brokers.all,
        answering=brokers.answer,
        topics=len(view.topics.topic),
        partitions=len(snapshot.partitions),
        groups=len(snapshot.groups),
        judgement=judgement,
        rules=rules,
    )
